//! Producers that die at every step of a claim, and the consumer that goes on.

use std::sync::atomic::Ordering;
use std::thread;

use super::*;
use crate::ring::{Refusal, Stop, page};

fn read(consumer: &mut MpscConsumer) -> (Vec<Vec<u8>>, Stop) {
    let mut got = Vec::new();
    let polled = consumer.poll(usize::MAX, |_, bytes| got.push(bytes.to_vec()));
    (got, polled.stop)
}

fn ring() -> Mpsc {
    Mpsc::heap(512, SLOT_COUNT_STEP).unwrap()
}

#[test]
fn every_message_of_every_thread_comes_once_and_in_its_order() {
    let ring = Mpsc::heap(4096, SLOT_COUNT_STEP).unwrap();
    let (threads, count) = (4u64, 20_000u64);
    let mut consumer = ring.consumer().unwrap();
    let writers: Vec<_> = (0..threads)
        .map(|thread_id| {
            let mut producer = ring.producer().unwrap();
            thread::spawn(move || {
                for number in 0..count {
                    let mut bytes = vec![number as u8; 16 + (number % 100) as usize];
                    bytes[..8].copy_from_slice(&thread_id.to_le_bytes());
                    bytes[8..16].copy_from_slice(&number.to_le_bytes());
                    if number % 10 == 0 {
                        producer.claim(1, bytes.len()).map(MpscClaim::abort).ok();
                    }
                    while producer.try_write(1, &bytes) == Err(Refusal::BackPressured) {
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut next = vec![0; threads as usize];
    while next.iter().sum::<u64>() < threads * count {
        let polled = consumer.poll(256, |_, bytes| {
            let thread_id = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            let number = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
            assert_eq!(number, next[thread_id as usize]);
            assert!(bytes[16..].iter().all(|byte| *byte == number as u8));
            next[thread_id as usize] += 1;
        });
        assert_ne!(polled.stop, Stop::Corrupt);
        if polled.frames == 0 {
            thread::yield_now();
        }
    }
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(read(&mut consumer), (vec![], Stop::Empty));
    assert_eq!((consumer.counts().unblocked, consumer.counts().corrupt), (0, 0));
}

#[test]
fn all_that_was_consumed_is_zero_again() {
    let ring = ring();
    let (mut producer, mut consumer) = (ring.producer().unwrap(), ring.consumer().unwrap());
    for _ in 0..40 {
        producer.try_write(1, &[0xff; 61]).unwrap();
        assert_eq!(consumer.poll(9, |_, _| ()).frames, 1);
    }
    assert!(ring.paged().buffer.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
}

#[test]
fn a_producer_that_died_at_any_step_stops_nobody() {
    for (death, unblocked) in [(Death::Noted, 0), (Death::Claimed, 1), (Death::HeaderWritten, 1)] {
        for round in 0..20 {
            let ring = ring();
            let mut consumer = ring.consumer().unwrap();
            let mut other = ring.producer().unwrap();
            for _ in 0..round {
                other.try_write(1, b"before").unwrap();
                let _ = consumer.poll(1, |_, _| ());
            }
            ring.producer().unwrap().die(death, 20);
            other.try_write(1, b"after").unwrap();
            if unblocked > 0 {
                assert_eq!(read(&mut consumer), (vec![], Stop::InProgress), "{death:?}");
                assert!(consumer.unblock());
            }
            assert_eq!(read(&mut consumer), (vec![b"after".to_vec()], Stop::Empty), "{death:?} {round}");
            assert_eq!(consumer.counts().unblocked, unblocked);
        }
    }
}

#[test]
fn polls_alone_skip_the_claim_of_the_dead_in_the_end() {
    let ring = ring();
    let mut consumer = ring.consumer().unwrap();
    ring.producer().unwrap().die(Death::Claimed, 8);
    ring.producer().unwrap().try_write(1, b"x").unwrap();
    let polls = (1..5000).find(|_| consumer.poll(1, |_, _| ()).frames == 1);
    assert_eq!(polls, Some(1024));
}

#[test]
fn a_claim_of_the_living_is_never_skipped() {
    let ring = ring();
    let (mut producer, mut consumer) = (ring.producer().unwrap(), ring.consumer().unwrap());
    let mut claim = producer.claim(1, 4).unwrap();
    for _ in 0..3000 {
        assert_eq!(consumer.poll(1, |_, _| ()).stop, Stop::InProgress);
        assert!(!consumer.unblock());
    }
    claim.put(0, b"late");
    claim.commit();
    assert_eq!(read(&mut consumer).0, [b"late"]);
}

#[test]
fn of_several_dead_who_noted_one_position_the_winner_is_found_by_where_the_next_claim_begins() {
    for winner in [8, 16, 24, 32] {
        for loser in [0, 8, 16, 24, 32, 40] {
            for follower in [None, Some(None), Some(Some(Death::Claimed)), Some(Some(Death::HeaderWritten))] {
                let ring = ring();
                let mut consumer = ring.consumer().unwrap();
                let lost = ring.producer().unwrap();
                lost.note_only(0, loser);
                lost.die_silently();
                ring.producer().unwrap().die(Death::Claimed, winner);
                let mut expected = vec![];
                match follower {
                    None => {}
                    Some(None) => {
                        ring.producer().unwrap().try_write(1, b"alive").unwrap();
                        expected.push(b"alive".to_vec());
                    }
                    Some(Some(death)) => ring.producer().unwrap().die(death, 8),
                }
                let skipped = 1 + u64::from(matches!(follower, Some(Some(_))));
                for _ in 0..skipped {
                    let _ = consumer.unblock();
                    let (got, stop) = read(&mut consumer);
                    expected.drain(..got.len());
                    assert_ne!(stop, Stop::Corrupt);
                }
                let case = format!("winner {winner}, loser {loser}, {follower:?}");
                assert_eq!((expected.len(), consumer.counts().unblocked), (0, skipped), "{case}");
                assert_eq!(consumer.poll(1, |_, _| ()).stop, Stop::Empty, "{case}");
            }
        }
    }
}

#[test]
fn a_dead_slot_is_taken_again_only_when_nobody_needs_its_note() {
    let ring = ring();
    let mut consumer = ring.consumer().unwrap();
    ring.producer().unwrap().die(Death::Claimed, 8);
    let others: Vec<_> = std::iter::from_fn(|| ring.producer().ok()).collect();
    assert_eq!(others.len(), SLOT_COUNT_STEP - 1);
    assert!(consumer.unblock());
    let _ = consumer.poll(1, |_, _| ());
    assert!(ring.producer().is_ok());
}

#[test]
fn a_frame_of_an_earlier_owner_of_the_slot_is_known_by_its_generation() {
    let ring = ring();
    let mut consumer = ring.consumer().unwrap();
    ring.producer().unwrap().die(Death::HeaderWritten, 8);
    let mut next = ring.producer().unwrap();
    next.try_write(1, b"next").unwrap();
    assert!(consumer.unblock());
    assert_eq!(read(&mut consumer).0, [b"next"]);
}

#[test]
fn a_consumer_that_died_while_it_cleaned_is_finished_by_the_next() {
    let ring = ring();
    let mut producer = ring.producer().unwrap();
    for number in 0..4u8 {
        producer.try_write(1, &[number; 8]).unwrap();
    }
    let words = ring.paged().page.words();
    // The first two frames were consumed, and half of the first was zeroed, when the last consumer died.
    words[page::CLEANING / 8].store(32, Ordering::Relaxed);
    ring.paged().buffer.words()[0].store(0, Ordering::Relaxed);
    let mut consumer = ring.consumer().unwrap();
    assert_eq!(read(&mut consumer).0, [[2; 8], [3; 8]]);
}

#[test]
fn many_aborted_claims_in_a_row_are_walked_over() {
    let ring = ring();
    let (mut producer, mut consumer) = (ring.producer().unwrap(), ring.consumer().unwrap());
    while let Ok(claim) = producer.claim(1, 0) {
        claim.abort();
    }
    assert_eq!(consumer.poll(1, |_, _| ()).stop, Stop::Limit, "a caller breathes in between");
    assert_eq!(consumer.poll(1, |_, _| ()).stop, Stop::Empty);
    assert_eq!((consumer.counts().padding_bytes, consumer.counts().corrupt), (512, 0));
}

#[test]
fn a_slot_that_is_given_back_is_used_again() {
    let ring = ring();
    for _ in 0..100 {
        ring.producer().unwrap().try_write(1, b"").unwrap_or_default();
    }
    let held: Vec<_> = std::iter::from_fn(|| ring.producer().ok()).collect();
    assert_eq!(held.len(), SLOT_COUNT_STEP);
    assert!(matches!(ring.producer(), Err(Error::NoFreeSlot { count: 32 })));
}
