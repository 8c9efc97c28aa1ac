//! An end has one owner at a time, and the next one sees what the last one did.

use loom::thread;

use super::model;
use crate::memory::Region;
use crate::ring::{End, Mpsc};
use crate::sync::Ordering;

#[test]
fn of_two_who_take_an_end_one_gets_it() {
    model(3, || {
        let page = Region::heap(8);
        let takers = [0, 1].map(|_| {
            let page = page.clone();
            thread::spawn(move || End::take(&page, 0, "producer").ok())
        });
        let taken = takers.map(|taker| taker.join().unwrap());
        assert_eq!(taken.iter().flatten().count(), 1);
    });
}

#[test]
fn whoever_takes_an_end_after_another_sees_what_that_one_wrote() {
    model(3, || {
        let page = Region::heap(16);
        let first = End::take(&page, 0, "producer").unwrap();
        let leaver = {
            let page = page.clone();
            thread::spawn(move || {
                page.word(8).store(7, Ordering::Relaxed);
                drop(first);
            })
        };
        if End::take(&page, 0, "producer").is_ok() {
            assert_eq!(page.word(8).load(Ordering::Relaxed), 7);
        }
        leaver.join().unwrap();
    });
}

#[test]
fn two_who_take_slots_get_different_ones() {
    model(2, || {
        let ring = Mpsc::heap(64, 2).unwrap();
        let takers = [0, 1].map(|_| {
            let ring = ring.clone();
            thread::spawn(move || ring.producer().is_ok())
        });
        assert_eq!(takers.map(|taker| taker.join().unwrap()), [true, true]);
    });
}
