//! A transmitter and a receiver that it overtakes: no torn record is ever handed over.

use loom::thread;

use super::model;
use crate::broadcast::broadcast;

fn payload(n: i32) -> [u8; 8] {
    u64::try_from(n).unwrap().to_le_bytes()
}

#[test]
fn a_record_that_is_overwritten_while_it_is_copied_is_not_handed_over() {
    model(3, || {
        // Eight records of 16 bytes fill the buffer; the ninth overwrites the first.
        let (mut transmitter, mut receiver) = broadcast(128).unwrap();
        for n in 1..=8 {
            transmitter.transmit(n, &payload(n)).unwrap();
        }
        let writer = thread::spawn(move || transmitter.transmit(9, &payload(9)).unwrap());
        let mut last = 0;
        let mut lapped = false;
        for _ in 0..2 {
            let received = receiver.poll(1, |n, bytes| {
                assert_eq!(bytes, payload(n));
                assert!(n > last);
                last = n;
            });
            assert!(!received.corrupt);
            lapped |= received.lapped;
        }
        writer.join().unwrap();
        assert!(last == 2 || lapped);
    });
}

#[test]
fn a_record_behind_padding_is_seen_whole_or_not_at_all() {
    model(3, || {
        let (mut transmitter, mut receiver) = broadcast(128).unwrap();
        for n in 1..=7 {
            transmitter.transmit(n, &payload(n)).unwrap();
        }
        transmitter.transmit(8, b"").unwrap();
        let _ = receiver.poll(8, |_, _| {});
        // Eight bytes are left before the end: padding, then the record at the beginning.
        let writer = thread::spawn(move || transmitter.transmit(9, &payload(9)).unwrap());
        let received = receiver.poll(1, |n, bytes| assert_eq!((n, bytes), (9, &payload(9)[..])));
        assert!(!received.corrupt && !received.lapped);
        writer.join().unwrap();
        assert_eq!(receiver.position() > 120, received.records == 1);
    });
}
