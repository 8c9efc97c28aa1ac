//! Whatever stands in a segment, and whoever writes into it meanwhile: no panic, no access outside, no endless poll.
//!
//! Every access goes through checked slices, so an index outside would panic here.
#![allow(missing_docs)]

mod support;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use relay_accel_core::memory::SegmentOptions;
use relay_accel_core::ring::{
    CHANNEL_MAGIC, Claim, CreateOptions, FrameBatch, Geometry, IpcChannel, RING_MAGIC, SharedFixedRing, SharedFrames,
    SharedMpscRing, SharedRing,
};
use support::{Scratch, named};

const OPEN: SegmentOptions = SegmentOptions { pre_fault: false, huge_pages: false };
const NAME: &str = "a";

fn write_file(scratch: &Scratch, bytes: &[u8]) {
    let _ = fs::remove_file(scratch.file(NAME));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(scratch.file(NAME)).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

fn forge(scratch: &Scratch, words: &[(u64, u64)]) {
    let file = OpenOptions::new().write(true).open(scratch.file(NAME)).unwrap();
    let length = file.metadata().unwrap().len();
    for (offset, word) in words {
        file.write_all_at(&word.to_le_bytes(), offset % (length / 8) * 8).unwrap();
    }
}

/// Words as an attacker would choose them: small, near powers of two, negative lengths, and anything.
fn word() -> impl Strategy<Value = u64> {
    let length = prop_oneof![0u64..64, (0u64..13_000).prop_map(|n| n & !7), any::<u64>()];
    let negative =
        (1i32..20_000, -3i32..3).prop_map(|(length, id)| u64::from((-length) as u32) | u64::from(id as u32) << 32);
    let header = (8u64..9000, 1u64..4).prop_map(|(length, id)| length | id << 32);
    let power = (0u32..64, -9i64..9).prop_map(|(power, off)| (1u64 << power).wrapping_add_signed(off));
    prop_oneof![length, negative, header, power]
}

/// Offsets (in words): the page's own fields more often than the rest.
fn forged() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let field = prop_oneof![
        Just(16u64),
        Just(32),
        Just(33),
        Just(80),
        Just(96),
        Just(112),
        Just(128),
        512u64..560,
        1024u64..1100,
        any::<u64>()
    ];
    prop::collection::vec((field, word()), 1..24)
}

fn exercise<G: Geometry>(shared: &SharedFrames<G>) {
    let _ = (shared.is_stale(), shared.creator(), shared.producer_state(), shared.consumer_state());
    if let Ok(mut consumer) = shared.consumer() {
        for _ in 0..4 {
            let _ = consumer.poll(50, |id, bytes| assert!(id > 0 && bytes.len() <= 1 << 20));
            let _ = consumer.poll_batch(50, &mut FrameBatch::new());
        }
    }
    if let Ok(mut producer) = shared.producer() {
        for length in [0, 1, 100, 512, 1000] {
            let _ = producer.try_write(1, &vec![1; length]);
            let _ = producer.claim(1, length).map(Claim::commit);
        }
    }
}

fn exercise_mpsc(shared: &SharedMpscRing) {
    let _ = shared.is_stale();
    if let Ok(mut consumer) = shared.consumer() {
        for _ in 0..4 {
            let _ = consumer.poll(50, |id, bytes| assert!(id > 0 && bytes.len() <= 1 << 20));
            consumer.unblock();
        }
        let _ = consumer.producer_states().count();
    }
    if let Ok(mut producer) = shared.producer() {
        for length in [0, 1, 100, 512, 1000] {
            let _ = producer.try_write(1, &vec![1; length]);
        }
    }
}

fn exercise_fixed(shared: &SharedFixedRing) {
    let length = shared.item_length();
    if let Ok(mut consumer) = shared.consumer() {
        let _ = (consumer.pop(&mut vec![0; 3 * length]), consumer.pop(&mut vec![0; 3 * length]));
    }
    if let Ok(mut producer) = shared.producer() {
        let _ = (producer.push(&vec![1; 3 * length]), producer.push(&vec![1; 3 * length]));
    }
}

fn open_all(scratch: &Scratch) {
    let name = named(NAME);
    let _ = IpcChannel::open(scratch, &name, OPEN).map(|found| exercise(&found));
    let _ = SharedRing::open(scratch, &name, OPEN).map(|found| exercise(&found));
    let _ = SharedMpscRing::open(scratch, &name, OPEN).map(|found| exercise_mpsc(&found));
    let _ = SharedFixedRing::open(scratch, &name, OPEN).map(|found| exercise_fixed(&found));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_file_is_opened_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..6000), magic in prop::option::of(any::<bool>())) {
        let scratch = Scratch::new();
        let mut bytes = bytes;
        if let (Some(of_channel), true) = (magic, bytes.len() >= 16) {
            bytes[..8].copy_from_slice(&if of_channel { CHANNEL_MAGIC } else { RING_MAGIC }.to_le_bytes());
            bytes[8..12].copy_from_slice(&if of_channel { 2u32 } else { 1 }.to_le_bytes());
        }
        write_file(&scratch, &bytes);
        open_all(&scratch);
    }

    #[test]
    fn a_forged_channel_is_survived(words in forged(), filled in 0usize..40) {
        let scratch = Scratch::new();
        let channel = IpcChannel::create(&scratch, &named(NAME), 4096, CreateOptions { segment: OPEN, replace_stale: false }).unwrap();
        let (mut producer, mut consumer) = (channel.producer().unwrap(), channel.consumer().unwrap());
        for length in 0..filled {
            let _ = producer.try_write(1, &vec![2; length * 9]);
        }
        forge(&scratch, &words);
        let _ = consumer.poll(100, |id, _| assert!(id > 0));
        let _ = producer.try_write(1, &[3; 300]);
        let _ = (consumer.wait(Duration::ZERO), producer.wait_for_room(64, Duration::ZERO));
        let _ = consumer.poll(100, |id, _| assert!(id > 0));
        drop((producer, consumer));
        open_all(&scratch);
    }

    #[test]
    fn a_forged_ring_of_many_producers_is_survived(words in forged(), filled in 0usize..20) {
        let scratch = Scratch::new();
        let options = CreateOptions { segment: OPEN, replace_stale: false };
        let ring = SharedMpscRing::create(&scratch, &named(NAME), 2048, 32, options).unwrap();
        let (mut producer, mut consumer) = (ring.producer().unwrap(), ring.consumer().unwrap());
        for length in 0..filled {
            let _ = producer.try_write(1, &vec![2; length * 9]);
        }
        forge(&scratch, &words);
        for _ in 0..4 {
            let _ = consumer.poll(100, |id, _| assert!(id > 0));
            let _ = (consumer.unblock(), producer.try_write(1, &[3; 100]));
            let _ = (consumer.wait(Duration::ZERO), producer.wait_for_room(64, Duration::ZERO));
        }
        drop((producer, consumer));
        open_all(&scratch);
    }

    #[test]
    fn a_forged_ring_of_items_is_survived(words in forged(), filled in 0usize..8) {
        let scratch = Scratch::new();
        let options = CreateOptions { segment: OPEN, replace_stale: false };
        let ring = SharedFixedRing::create(&scratch, &named(NAME), 16, 8, options).unwrap();
        let (mut producer, mut consumer) = (ring.producer().unwrap(), ring.consumer().unwrap());
        let _ = producer.push(&vec![5; filled * 16]);
        forge(&scratch, &words);
        let _ = (consumer.pop(&mut [0; 64]), producer.push(&[1; 64]), consumer.pop(&mut [0; 64]));
        drop((producer, consumer));
        open_all(&scratch);
    }
}

#[test]
fn a_peer_that_scribbles_all_the_time_makes_values_wrong_and_nothing_else() {
    let scratch = Scratch::new();
    let channel = IpcChannel::create(&scratch, &named(NAME), 4096, CreateOptions::default()).unwrap();
    let (mut producer, mut consumer) = (channel.producer().unwrap(), channel.consumer().unwrap());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut seed = 1u64;
            while !stop.load(Ordering::Relaxed) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Tail, head, or a word of the terms; a value of the size of positions and lengths.
                let offset = [16, 32, 512 + (seed >> 40) % 1536][(seed >> 32) as usize % 3];
                forge(&scratch, &[(offset, seed >> (seed >> 58))]);
            }
        });
        for round in 0..100_000u32 {
            let _ = producer.try_write(1, &[7; 90][..(round % 90) as usize]);
            let polled = consumer.poll(8, |id, bytes| assert!(id > 0 && bytes.len() <= 512));
            if polled.frames == 0 && round % 64 == 0 {
                // What a caller does with a corrupt channel: begin anew.
                forge(&scratch, &[(16, 0), (32, 0)]);
                drop(producer);
                drop(consumer);
                forge(&scratch, &[(80, 0), (96, 0)]);
                (producer, consumer) = loop {
                    if let (Ok(producer), Ok(consumer)) = (channel.producer(), channel.consumer()) {
                        break (producer, consumer);
                    }
                    forge(&scratch, &[(16, 0), (32, 0), (80, 0), (96, 0)]);
                };
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
