//! Every sequence of operations behaves like a queue, at every capacity.
#![allow(missing_docs)]

mod support;

use std::collections::VecDeque;

use proptest::prelude::*;
use relay_accel_core::ring::{
    FrameBatch, FrameConsumer, FrameProducer, Geometry, Refusal, Stop, fixed, log_buffer, spsc,
};
use support::payload;

#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    WriteBatch(Vec<usize>),
    Commit(usize),
    Abort(usize),
    Poll(usize),
    PollBatch(usize),
    PollFrames(usize),
}

fn steps(length_max: usize) -> impl Strategy<Value = Vec<Step>> {
    let length = 0..length_max + 2;
    let step = prop_oneof![
        4 => length.clone().prop_map(Step::Write),
        2 => prop::collection::vec(length.clone(), 0..20).prop_map(Step::WriteBatch),
        2 => length.clone().prop_map(Step::Commit),
        1 => length.prop_map(Step::Abort),
        3 => (0usize..12).prop_map(Step::Poll),
        2 => (0usize..12).prop_map(Step::PollBatch),
        1 => (0usize..12).prop_map(Step::PollFrames),
    ];
    prop::collection::vec(step, 0..200)
}

/// The queue that a ring should be, next to the ring.
struct Twin<G: Geometry> {
    producer: FrameProducer<G>,
    consumer: FrameConsumer<G>,
    queue: VecDeque<(i32, Vec<u8>)>,
    number: u64,
}

impl<G: Geometry> Twin<G> {
    fn new((producer, consumer): (FrameProducer<G>, FrameConsumer<G>)) -> Self {
        Self { producer, consumer, queue: VecDeque::new(), number: 0 }
    }

    fn message(&mut self, length: usize) -> (i32, Vec<u8>) {
        self.number += 1;
        (1 + (self.number % 1000) as i32, payload(self.number, length))
    }

    fn note(&mut self, message: (i32, Vec<u8>), outcome: Result<(), Refusal>) {
        let too_long = message.1.len() > self.producer.payload_length_max();
        match outcome {
            Ok(()) => {
                assert!(!too_long);
                self.queue.push_back(message);
            }
            Err(Refusal::TooLong) => assert!(too_long),
            // A ring that has been read to the end always has room.
            Err(Refusal::BackPressured) => assert!(!self.queue.is_empty()),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write(length) => {
                let message = self.message(length);
                let outcome = self.producer.try_write(message.0, &message.1);
                self.note(message, outcome);
            }
            Step::WriteBatch(lengths) => {
                let messages: Vec<_> = lengths.into_iter().map(|length| self.message(length)).collect();
                let (count, refusal) = self.producer.write_batch(messages.iter().map(|(id, bytes)| (*id, &bytes[..])));
                assert_eq!(refusal.is_none(), count == messages.len());
                for (at, message) in messages.into_iter().take(count + 1).enumerate() {
                    let outcome = if at < count { Ok(()) } else { Err(refusal.unwrap()) };
                    self.note(message, outcome);
                }
            }
            Step::Commit(length) => {
                let message = self.message(length);
                let outcome = self.producer.claim(message.0, length).map(|mut claim| {
                    let (front, back) = message.1.split_at(length / 3);
                    claim.put(front.len(), back);
                    claim.put(0, front);
                    claim.commit();
                });
                self.note(message, outcome);
            }
            Step::Abort(length) => {
                let before = self.producer.position();
                if let Ok(mut claim) = self.producer.claim(9, length) {
                    claim.put(0, &vec![0xff; length]);
                    claim.abort();
                }
                assert_eq!(self.producer.position(), before);
            }
            Step::Poll(limit) => {
                let mut got = Vec::new();
                let polled = self.consumer.poll(limit, |id, bytes| got.push((id, bytes.to_vec())));
                self.compare(limit, polled.stop, &got);
            }
            Step::PollBatch(limit) => {
                let mut batch = FrameBatch::new();
                let polled = self.consumer.poll_batch(limit, &mut batch);
                assert_eq!(batch.len(), polled.frames);
                let got: Vec<_> = batch.iter().map(|(id, bytes)| (id, bytes.to_vec())).collect();
                self.compare(limit, polled.stop, &got);
            }
            Step::PollFrames(limit) => {
                let mut got = Vec::new();
                let polled = self.consumer.poll_frames(limit, |frame| {
                    let mut bytes = vec![0; frame.payload_length()];
                    assert_eq!(frame.copy_to(&mut bytes), bytes.len());
                    got.push((frame.type_id(), bytes));
                });
                self.compare(limit, polled.stop, &got);
            }
        }
    }

    fn compare(&mut self, limit: usize, stop: Stop, got: &[(i32, Vec<u8>)]) {
        let count = limit.min(self.queue.len());
        let expected: Vec<_> = self.queue.drain(..count).collect();
        assert_eq!(got, expected);
        assert_eq!(stop, if count == limit { Stop::Limit } else { Stop::Empty });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_ring_is_a_queue(power in 6u32..13, steps in steps(40)) {
        let mut twin = Twin::new(spsc(1 << power).unwrap());
        for step in steps {
            twin.step(step);
        }
    }

    #[test]
    fn a_log_buffer_is_a_queue(steps in steps(512)) {
        let mut twin = Twin::new(log_buffer(4096).unwrap());
        for step in steps {
            twin.step(step);
        }
    }

    #[test]
    fn a_ring_of_items_is_a_queue(words in 1usize..6, power in 0u32..7, counts in prop::collection::vec((any::<bool>(), 0usize..80), 0..200)) {
        let length = words * 8;
        let (mut producer, mut consumer) = fixed(length, 1 << power).unwrap();
        let mut queue = VecDeque::new();
        let mut number = 0;
        for (is_push, count) in counts {
            if is_push {
                let items: Vec<Vec<u8>> = (0..count).map(|at| payload(number + at as u64, length)).collect();
                let room = (1 << power) - queue.len();
                let pushed = match producer.push(&items.concat()) {
                    Ok(pushed) => pushed,
                    Err(refusal) => { prop_assert_eq!((refusal, room), (Refusal::BackPressured, 0)); 0 }
                };
                prop_assert_eq!(pushed, room.min(count));
                queue.extend(items.into_iter().take(pushed));
                number += pushed as u64;
            } else {
                let mut items = vec![0; count * length];
                let popped = match consumer.pop(&mut items) {
                    Ok(popped) => popped,
                    Err(stop) => { prop_assert_eq!((stop, queue.len()), (Stop::Empty, 0)); 0 }
                };
                prop_assert_eq!(popped, queue.len().min(count));
                let expected: Vec<u8> = queue.drain(..popped).flatten().collect();
                prop_assert_eq!(&items[..popped * length], &expected[..]);
            }
        }
    }
}

#[test]
fn a_message_of_the_largest_length_passes_when_its_padding_is_the_longest() {
    let (mut producer, mut consumer) = spsc(64).unwrap();
    for number in 0..100 {
        producer.try_write(1, &payload(number, 8)).unwrap();
        let mut got = Vec::new();
        let _ = consumer.poll(1, |_, bytes| got.extend_from_slice(bytes));
        assert_eq!(got, payload(number, 8));
    }
}
