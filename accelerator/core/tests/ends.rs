//! What the ends of a ring promise besides order: refusals, leaving, waiting, panics, stale reservations.
#![allow(missing_docs)]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use relay_accel_core::ring::{EndState, Refusal, Stop, fixed, log_buffer, spsc};
use support::payload;

const LONG: Duration = Duration::from_secs(30);

#[test]
fn two_threads_get_every_message_once_in_order() {
    let (mut producer, mut consumer) = spsc(4096).unwrap();
    let count = 200_000;
    let writer = thread::spawn(move || {
        for number in 0..count {
            let bytes = payload(number, (number % 200) as usize);
            while producer.try_write(1, &bytes) == Err(Refusal::BackPressured) {
                producer.wait_for_room(bytes.len(), LONG);
            }
        }
    });
    let mut number = 0;
    while number < count {
        let polled = consumer.poll(64, |_, bytes| {
            assert_eq!(bytes, payload(number, (number % 200) as usize));
            number += 1;
        });
        if polled.stop == Stop::Empty {
            consumer.wait(LONG);
        }
    }
    writer.join().unwrap();
    assert_eq!(consumer.poll(1, |_, _| ()).stop, Stop::Closed);
}

#[test]
fn two_threads_get_every_item_once_in_order() {
    let (mut producer, mut consumer) = fixed(16, 64).unwrap();
    let count = 300_000u64;
    let writer = thread::spawn(move || {
        let mut next = 0;
        while next < count {
            let end = (next + 7).min(count);
            let items: Vec<u8> = (next..end).flat_map(|n| [n.to_le_bytes(), (!n).to_le_bytes()].concat()).collect();
            next += producer.push(&items).unwrap_or(0) as u64;
        }
    });
    let mut next = 0;
    let mut items = [0; 16 * 10];
    while next < count {
        let Ok(popped) = consumer.pop(&mut items) else {
            consumer.wait(LONG);
            continue;
        };
        for item in items.chunks_exact(16).take(popped) {
            assert_eq!(item, [next.to_le_bytes(), (!next).to_le_bytes()].concat());
            next += 1;
        }
    }
    writer.join().unwrap();
    assert_eq!(consumer.pop(&mut items), Err(Stop::Closed));
}

#[test]
fn a_producer_gets_two_terms_ahead_and_not_further() {
    let (mut producer, mut consumer) = log_buffer(4096).unwrap();
    let mut written = 0;
    while producer.try_write(1, &[7; 500]).is_ok() {
        written += 1;
    }
    // 512 bytes a frame, 8 a term, two terms.
    assert_eq!((written, producer.position()), (16, 8192));
    assert_eq!(producer.counts().back_pressured, 1);
    assert_eq!(consumer.poll(1, |_, _| ()).frames, 1);
    assert_eq!(producer.try_write(1, &[7; 500]), Ok(()));
    assert_eq!(producer.try_write(1, &[7; 500]), Err(Refusal::BackPressured));
}

#[test]
fn refusals_say_what_was_wrong() {
    let (mut producer, _consumer) = spsc(1024).unwrap();
    assert_eq!(producer.try_write(0, b"x"), Err(Refusal::BadType));
    assert_eq!(producer.try_write(-5, b"x"), Err(Refusal::BadType));
    assert_eq!(producer.try_write(1, &[0; 129]), Err(Refusal::TooLong));
    assert_eq!(producer.try_write(1, &[0; 128]), Ok(()));
}

#[test]
fn a_full_ring_whose_consumer_left_says_closed() {
    let (mut producer, consumer) = spsc(64).unwrap();
    drop(consumer);
    while producer.try_write(1, b"12345678").is_ok() {}
    assert_eq!(producer.try_write(1, b"12345678"), Err(Refusal::Closed));
    assert_eq!(producer.consumer_state(), EndState::Left);
}

#[test]
fn what_was_published_is_read_before_the_consumer_hears_that_the_producer_left() {
    let (mut producer, mut consumer) = spsc(256).unwrap();
    producer.try_write(1, b"last").unwrap();
    drop(producer);
    let mut got = 0;
    assert_eq!(consumer.poll(10, |_, bytes| got += bytes.len()).stop, Stop::Closed);
    assert_eq!(got, 4);
}

#[test]
fn a_stale_reservation_is_refused() {
    let (mut producer, mut consumer) = spsc(256).unwrap();
    let first = producer.reserve_open(1, 8).unwrap();
    assert_eq!(producer.reserve_open(1, 8), Err(Refusal::ClaimOpen));
    assert_eq!(producer.try_write(1, b"x"), Err(Refusal::ClaimOpen));
    assert!(!producer.put(&first, 4, b"too long"));
    assert!(!producer.put(&first, usize::MAX, b"x"));
    assert!(producer.put(&first, 0, b"payload!"));
    assert!(producer.publish(first));
    assert!(!producer.publish(first) && !producer.cancel(first) && !producer.put(&first, 0, b"late"));
    assert_eq!(producer.payload_ptr(&first), None);
    let mut got = Vec::new();
    let _ = consumer.poll(2, |_, bytes| got.push(bytes.to_vec()));
    assert_eq!(got, [b"payload!"]);
}

#[test]
fn a_claim_that_is_not_filled_ends_in_zeros() {
    let (mut producer, mut consumer) = spsc(64).unwrap();
    for _ in 0..10 {
        producer.try_write(1, &[0xff; 8]).unwrap();
        let _ = consumer.poll(1, |_, _| ());
    }
    producer.claim(1, 3).unwrap().commit();
    let mut got = Vec::new();
    let _ = consumer.poll(1, |_, bytes| got.extend_from_slice(bytes));
    assert_eq!(got, [0; 3]);
}

#[test]
fn a_panic_of_the_handler_loses_only_its_own_message() {
    let (mut producer, mut consumer) = spsc(256).unwrap();
    for number in 1..=3u8 {
        producer.try_write(1, &[number]).unwrap();
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| consumer.poll(3, |_, bytes| assert_ne!(bytes, [2]))));
    assert!(panicked.is_err());
    let mut got = Vec::new();
    let _ = consumer.poll(3, |_, bytes| got.push(bytes[0]));
    assert_eq!(got, [3]);
}

#[test]
fn a_sleeping_consumer_is_woken_by_a_message() {
    let (mut producer, mut consumer) = spsc(256).unwrap();
    let sleeper = thread::spawn(move || {
        let mut slept_through = 0;
        for _ in 0..2000 {
            let start = Instant::now();
            while !consumer.wait(LONG) {}
            slept_through += u32::from(start.elapsed() > LONG);
            let _ = consumer.poll(1, |_, _| ());
        }
        slept_through
    });
    for _ in 0..2000 {
        while producer.try_write(1, b"wake").is_err() {
            thread::yield_now();
        }
        if producer.position() % 5 == 0 {
            thread::yield_now();
        }
    }
    assert_eq!(sleeper.join().unwrap(), 0);
}
