//! A sleeper never misses a publication.

use loom::thread;

use super::model;
use crate::memory::Region;
use crate::ring::Waiter;
use crate::sync::Ordering;

#[test]
fn either_the_sleeper_sees_the_position_or_the_publisher_sees_the_sleeper() {
    model(3, || {
        let page = Region::heap(16);
        let position = page.word(8);
        let waiter = Waiter::new(&page, 0);
        let publisher = {
            let (waiter, position) = (waiter.clone(), position.clone());
            thread::spawn(move || {
                position.store(1, Ordering::Release);
                waiter.notify();
            })
        };
        waiter.announce();
        let would_sleep = position.load(Ordering::Acquire) == 0;
        publisher.join().unwrap();
        // The publisher is done: whoever went to sleep was woken, that is, the word is clear.
        assert!(!(would_sleep && waiter.is_announced()), "asleep for ever");
    });
}
