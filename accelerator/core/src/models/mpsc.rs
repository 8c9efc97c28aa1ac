//! Many producers: nothing lost, nothing twice, and the claims of the dead are skipped while the living go on.

use loom::thread;

use super::model;
use crate::ring::{Death, Mpsc, MpscConsumer, MpscProducer, Refusal, Stop};

fn write(producer: &mut MpscProducer, number: u8) {
    while producer.try_write(i32::from(number), &[number; 8]) == Err(Refusal::BackPressured) {
        thread::yield_now();
    }
}

fn read(consumer: &mut MpscConsumer, count: usize) -> Vec<u8> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let polled = consumer.poll(4, |type_id, bytes| {
            assert_eq!(bytes, [type_id as u8; 8]);
            seen.push(type_id as u8);
        });
        assert_ne!(polled.stop, Stop::Corrupt);
        if polled.stop == Stop::InProgress {
            consumer.unblock();
        }
        if polled.frames == 0 {
            thread::yield_now();
        }
    }
    seen
}

#[test]
fn two_producers_lose_and_double_nothing() {
    model(2, || {
        let ring = Mpsc::heap(128, 2).unwrap();
        let mut consumer = ring.consumer().unwrap();
        let writers = [[1, 2], [11, 12]].map(|numbers| {
            let mut producer = ring.producer().unwrap();
            thread::spawn(move || numbers.into_iter().for_each(|number| write(&mut producer, number)))
        });
        let seen = read(&mut consumer, 4);
        let of = |tens: u8| seen.iter().copied().filter(|n| n / 10 == tens).collect::<Vec<_>>();
        assert_eq!((of(0), of(1)), (vec![1, 2], vec![11, 12]));
        let _ = writers.map(|writer| writer.join().unwrap());
    });
}

#[test]
fn a_full_ring_that_wraps_overwrites_nothing_unread() {
    model(2, || {
        let ring = Mpsc::heap(64, 1).unwrap();
        let mut consumer = ring.consumer().unwrap();
        let mut producer = ring.producer().unwrap();
        let writer = thread::spawn(move || (1..=6).for_each(|number| write(&mut producer, number)));
        assert_eq!(read(&mut consumer, 6), [1, 2, 3, 4, 5, 6]);
        writer.join().unwrap();
    });
}

fn one_dies(death: Death) {
    model(2, move || {
        let ring = Mpsc::heap(128, 2).unwrap();
        let mut consumer = ring.consumer().unwrap();
        let mut living = ring.producer().unwrap();
        let dying = ring.producer().unwrap();
        let writers = [thread::spawn(move || dying.die(death, 16)), thread::spawn(move || write(&mut living, 1))];
        assert_eq!(read(&mut consumer, 1), [1]);
        let _ = writers.map(|writer| writer.join().unwrap());
        // What is left is the claim of the dead, or nothing.
        consumer.unblock();
        assert_eq!(consumer.poll(1, |_, _| ()).stop, Stop::Empty);
    });
}

#[test]
fn one_dies_after_its_note() {
    one_dies(Death::Noted);
}

#[test]
fn one_dies_after_its_claim() {
    one_dies(Death::Claimed);
}

#[test]
fn one_dies_after_its_header() {
    one_dies(Death::HeaderWritten);
}

/// Two die, a third writes: lengths such that the end of the wrong claim is the tail, too.
fn two_die(deaths: [(Death, usize); 2]) {
    model(2, move || {
        let ring = Mpsc::heap(128, 3).unwrap();
        let mut consumer = ring.consumer().unwrap();
        let mut living = ring.producer().unwrap();
        let dying = deaths.map(|(death, length)| {
            let producer = ring.producer().unwrap();
            thread::spawn(move || producer.die(death, length))
        });
        write(&mut living, 1);
        assert_eq!(read(&mut consumer, 1), [1]);
        let _ = dying.map(|thread| thread.join().unwrap());
        for _ in 0..2 {
            consumer.unblock();
            let _ = consumer.poll(1, |_, _| ());
        }
        assert_eq!(consumer.poll(1, |_, _| ()).stop, Stop::Empty);
    });
}

#[test]
fn two_die_at_one_position_and_the_claim_that_was_made_is_found() {
    two_die([(Death::Claimed, 0), (Death::Claimed, 16)]);
}

#[test]
fn one_dies_with_its_claim_and_another_with_a_note_of_the_same_position() {
    two_die([(Death::Claimed, 0), (Death::Noted, 16)]);
}

#[test]
fn a_slot_of_the_dead_is_taken_again_while_its_claim_is_being_skipped() {
    model(2, || {
        let ring = Mpsc::heap(128, 1).unwrap();
        let mut consumer = ring.consumer().unwrap();
        ring.producer().unwrap().die(Death::HeaderWritten, 0);
        let successor = thread::spawn(move || write(&mut ring.producer().unwrap(), 1));
        assert_eq!(read(&mut consumer, 1), [1]);
        assert_eq!(consumer.counts().unblocked, 1);
        successor.join().unwrap();
    });
}
