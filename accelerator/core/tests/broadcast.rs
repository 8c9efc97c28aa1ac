//! A broadcast gives every receiver what was transmitted, or says that it was overtaken; never a torn record.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::prelude::*;
use relay_accel_core::broadcast::{CAPACITY_MIN, Receiver, Transmitter, broadcast, payload_length_max};
use relay_accel_core::ring::{FrameBatch, Refusal};

fn read(receiver: &mut Receiver, limit: usize) -> (Vec<(i32, Vec<u8>)>, bool) {
    let mut got = Vec::new();
    let received = receiver.poll(limit, |type_id, payload| got.push((type_id, payload.to_vec())));
    assert!(!received.corrupt);
    assert_eq!(received.records, got.len());
    (got, received.lapped)
}

#[test]
fn records_come_in_their_order_with_empty_ones_among_them() {
    let (mut transmitter, mut receiver) = broadcast(512).unwrap();
    for (type_id, payload) in [(1, &b"one"[..]), (2, b""), (3, b"exactly8"), (4, &[7; 56])] {
        transmitter.transmit(type_id, payload).unwrap();
    }
    let (got, lapped) = read(&mut receiver, 10);
    assert_eq!(got[1..3], [(2, vec![]), (3, b"exactly8".to_vec())]);
    assert_eq!((got.len(), lapped, read(&mut receiver, 10).0.len()), (4, false, 0));
}

#[test]
fn what_does_not_fit_or_has_no_type_is_refused_and_changes_nothing() {
    let (mut transmitter, mut receiver) = broadcast(512).unwrap();
    assert_eq!(transmitter.payload_length_max(), 56);
    assert_eq!(transmitter.transmit(1, &[0; 57]), Err(Refusal::TooLong));
    assert_eq!(transmitter.transmit(0, b"x"), Err(Refusal::BadType));
    assert_eq!(transmitter.transmit(-1, b"x"), Err(Refusal::BadType));
    assert_eq!((read(&mut receiver, 1).0.len(), transmitter.position()), (0, 0));
    for capacity in [0, 256, 513, 1 << 31] {
        assert!(broadcast(capacity).is_err());
    }
}

#[test]
fn a_receiver_that_was_overtaken_says_so_and_goes_on_with_the_newest() {
    let (mut transmitter, mut receiver) = broadcast(512).unwrap();
    for n in 1..=100 {
        transmitter.transmit(n, &[n as u8; 16]).unwrap();
    }
    let (got, lapped) = read(&mut receiver, 10);
    assert!(lapped);
    assert_eq!(got, [(100, vec![100; 16])]);
    let counts = receiver.counts();
    assert_eq!((counts.lapped, counts.records), (1, 1));
    assert_eq!(counts.lost_bytes, transmitter.position() - 24);
    transmitter.transmit(101, b"next").unwrap();
    assert_eq!(read(&mut receiver, 10), (vec![(101, b"next".to_vec())], false));
}

#[test]
fn a_batch_has_the_same_records() {
    let (mut transmitter, mut receiver) = broadcast(512).unwrap();
    transmitter.transmit(5, b"abc").unwrap();
    transmitter.transmit(6, b"").unwrap();
    let mut batch = FrameBatch::new();
    assert_eq!(receiver.poll_batch(10, &mut batch).records, 2);
    assert_eq!(batch.iter().collect::<Vec<_>>(), [(5, &b"abc"[..]), (6, b"")]);
}

fn step() -> impl Strategy<Value = (usize, usize)> {
    (0usize..=24, 0usize..4)
}

proptest! {
    /// A receiver that polls at any moments sees a part of what was sent, in order, and everything where it was not overtaken.
    #[test]
    fn a_receiver_sees_all_or_is_told(power in 9u32..12, steps in prop::collection::vec(step(), 1..400)) {
        let capacity = 1usize << power;
        let (mut transmitter, mut receiver) = broadcast(capacity).unwrap();
        let (mut sent, mut got, mut was_lapped) = (0i32, Vec::new(), false);
        for (length, polls) in steps {
            sent += 1;
            let length = length * payload_length_max(capacity) / 24;
            transmitter.transmit(sent, &vec![sent as u8; length]).unwrap();
            let (records, lapped) = read(&mut receiver, polls);
            was_lapped |= lapped;
            for (type_id, payload) in records {
                prop_assert!(payload.iter().all(|byte| *byte == type_id as u8));
                got.push(type_id);
            }
        }
        let (records, lapped) = read(&mut receiver, usize::MAX);
        was_lapped |= lapped;
        got.extend(records.into_iter().map(|(type_id, _)| type_id));
        prop_assert!(got.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert_eq!(got.last(), Some(&sent));
        if !was_lapped {
            prop_assert_eq!(got, (1..=sent).collect::<Vec<_>>());
        }
        prop_assert_eq!(receiver.counts().lapped > 0, was_lapped);
    }
}

/// Every payload is filled with its number, so that a torn copy shows.
fn stream(transmitter: &mut Transmitter, stop: &AtomicBool, count: u64) {
    let mut n = 0u64;
    while n < count || !stop.load(Ordering::Relaxed) {
        n += 1;
        let length = 8 * (1 + n as usize % 6);
        let payload: Vec<u8> = n.to_le_bytes().into_iter().cycle().take(length).collect();
        transmitter.transmit(1 + (n % 1000) as i32, &payload).unwrap();
    }
}

#[test]
fn receivers_on_other_threads_never_see_a_torn_record_however_often_they_are_overtaken() {
    let (mut transmitter, first) = broadcast(CAPACITY_MIN).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (mut receiver, mut last, mut seen) = (first, 0u64, 0u64);
            while seen < 20_000 || receiver.counts().lapped < 10 {
                let received = receiver.poll(64, |type_id, payload| {
                    let n = u64::from_le_bytes(payload[..8].try_into().unwrap());
                    assert!(payload.chunks(8).all(|word| word == n.to_le_bytes()), "torn at {n}");
                    assert_eq!((type_id, payload.len()), (1 + (n % 1000) as i32, 8 * (1 + n as usize % 6)));
                    assert!(n > last);
                    (last, seen) = (n, seen + 1);
                });
                assert!(!received.corrupt);
            }
            stop.store(true, Ordering::Relaxed);
        });
        stream(&mut transmitter, &stop, 100_000);
        receiver.join().unwrap();
    });
}
