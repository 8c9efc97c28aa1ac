//! One producer, one consumer: frames arrive whole and in order, and nothing unread is overwritten.

use loom::thread;

use super::model;
use crate::ring::{FrameConsumer, FrameProducer, Geometry, Refusal, Stop, fixed, log_buffer, spsc};

fn payload(number: u8) -> [u8; 8] {
    [number; 8]
}

/// Writes `count` messages, a turn given away at every refusal.
fn write_all<G: Geometry>(producer: &mut FrameProducer<G>, count: u8) {
    for number in 1..=count {
        while producer.try_write(i32::from(number), &payload(number)) == Err(Refusal::BackPressured) {
            thread::yield_now();
        }
    }
}

fn read_all<G: Geometry>(consumer: &mut FrameConsumer<G>, count: u8) {
    let mut next = 1;
    while next <= count {
        let polled = consumer.poll(2, |type_id, bytes| {
            assert_eq!((type_id, bytes), (i32::from(next), &payload(next)[..]));
            next += 1;
        });
        assert!(matches!(polled.stop, Stop::Limit | Stop::Empty | Stop::Closed), "{:?}", polled.stop);
        if polled.frames == 0 {
            thread::yield_now();
        }
    }
}

#[test]
fn a_ring_that_wraps_and_fills() {
    model(3, || {
        // 64 bytes: three frames of 16 and a padding of 16 at the end.
        let (mut producer, mut consumer) = spsc(64).unwrap();
        let writer = thread::spawn(move || write_all(&mut producer, 5));
        read_all(&mut consumer, 5);
        writer.join().unwrap();
    });
}

#[test]
fn a_log_buffer_that_rotates_and_fills() {
    model(2, || {
        let (mut producer, mut consumer) = log_buffer(64).unwrap();
        let writer = thread::spawn(move || write_all(&mut producer, 10));
        read_all(&mut consumer, 10);
        writer.join().unwrap();
    });
}

#[test]
fn a_batch_is_published_at_once() {
    model(3, || {
        let (mut producer, mut consumer) = spsc(128).unwrap();
        let writer = thread::spawn(move || {
            let messages = [(1, &[1u8; 8][..]), (2, &[2; 8]), (3, &[])];
            assert_eq!(producer.write_batch(messages), (3, None));
        });
        let mut seen = Vec::new();
        let polled = consumer.poll(8, |type_id, bytes| seen.push((type_id, bytes.len())));
        assert!(seen.is_empty() || seen == [(1, 8), (2, 8), (3, 0)], "{seen:?} {polled:?}");
        writer.join().unwrap();
    });
}

#[test]
fn an_aborted_claim_is_never_seen() {
    model(3, || {
        let (mut producer, mut consumer) = spsc(64).unwrap();
        let writer = thread::spawn(move || {
            let mut claim = producer.claim(9, 8).unwrap();
            claim.put(0, &[9; 8]);
            claim.abort();
            producer.try_write(1, &payload(1)).unwrap();
        });
        read_all(&mut consumer, 1);
        writer.join().unwrap();
    });
}

#[test]
fn the_last_frames_come_before_the_word_that_the_producer_left() {
    model(3, || {
        let (mut producer, mut consumer) = spsc(64).unwrap();
        let writer = thread::spawn(move || producer.try_write(1, &payload(1)).unwrap());
        let mut frames = 0;
        loop {
            let polled = consumer.poll(1, |_, _| frames += 1);
            if polled.stop == Stop::Closed {
                break;
            }
            thread::yield_now();
        }
        assert_eq!(frames, 1);
        writer.join().unwrap();
    });
}

#[test]
fn items_that_wrap_and_fill() {
    model(3, || {
        let (mut producer, mut consumer) = fixed(8, 2).unwrap();
        let writer = thread::spawn(move || {
            let items: Vec<u8> = (1..=5u64).flat_map(u64::to_le_bytes).collect();
            let mut written = 0;
            while written < 5 {
                match producer.push(&items[written * 8..]) {
                    Ok(count) => written += count,
                    Err(_) => thread::yield_now(),
                }
            }
        });
        let (mut next, mut items) = (1u64, [0; 16]);
        while next <= 5 {
            match consumer.pop(&mut items) {
                Ok(count) => {
                    for item in items.chunks_exact(8).take(count) {
                        assert_eq!(item, next.to_le_bytes());
                        next += 1;
                    }
                }
                Err(_) => thread::yield_now(),
            }
        }
        writer.join().unwrap();
    });
}
