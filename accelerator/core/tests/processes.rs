//! Processes that were started separately share rings, and any of them may be killed at any moment.
#![allow(missing_docs)]

mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use relay_accel_core::Code;
use relay_accel_core::broadcast::SharedBroadcast;
use relay_accel_core::memory::SegmentOptions;
use relay_accel_core::ring::{
    CreateOptions, FrameConsumer, Geometry, IpcChannel, PAGE_LENGTH, Polled, SharedMpscRing, SharedRing, Stop,
};
use support::{Scratch, named, wait_for};

const LONG: Duration = Duration::from_secs(30);
const ROUNDS: u64 = 8;

/// Another process; killed with SIGKILL, at the latest when it is dropped.
struct Peer {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Peer {
    fn start(scratch: &Scratch, name: &str, role: &str, number: u64) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ring-peer"))
            .args([scratch.path().to_str().unwrap(), name, role, &number.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Numbers that it had said when it was killed.
    fn numbers_said(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        loop {
            let line = self.line();
            match line.parse() {
                Ok(number) => numbers.push(number),
                Err(_) => return numbers,
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What arrived, checked to be whole: the number of each writer's next message.
#[derive(Default)]
struct Arrivals {
    next: HashMap<u64, u64>,
}

impl Arrivals {
    fn take(&mut self, bytes: &[u8]) {
        let writer = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        let number = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
        assert_eq!(bytes.len() as u64, 16 + number % 90);
        assert!(bytes[16..].iter().all(|byte| *byte == number as u8));
        let next = self.next.entry(writer).or_insert(number);
        assert_eq!(*next, number, "writer {writer}");
        *next += 1;
    }

    fn of(&self, writer: u64) -> u64 {
        self.next.get(&writer).copied().unwrap_or(0)
    }
}

/// Kills a writer again and again, each time somewhere else; its successor takes the end over.
fn kill_writers<G: Geometry>(scratch: &Scratch, role: &str, mut consumer: FrameConsumer<G>) {
    for round in 1..=ROUNDS {
        let mut writer = Peer::start(scratch, "a", role, round);
        assert_eq!(writer.line(), "ready");
        let mut arrivals = Arrivals::default();
        let goal = 37 * round * round;
        wait_for("messages", || {
            assert_ne!(consumer.poll(16, |_, bytes| arrivals.take(bytes)).stop, Stop::Corrupt);
            (arrivals.of(round) > goal).then_some(())
        });
        writer.kill();
        while consumer.poll(100, |_, bytes| arrivals.take(bytes)).stop == Stop::Limit {}
        assert!(consumer.producer_state().is_free());
        assert_eq!(arrivals.next.len(), 1);
    }
    assert_eq!(consumer.counts().corrupt, 0);
}

#[test]
fn a_killed_writer_of_a_channel_leaves_whole_messages_and_a_free_end() {
    let scratch = Scratch::new();
    let channel = IpcChannel::create(&scratch, &named("a"), 4096, CreateOptions::default()).unwrap();
    kill_writers(&scratch, "channel-write", channel.consumer().unwrap());
}

#[test]
fn a_killed_writer_of_a_ring_leaves_whole_messages_and_a_free_end() {
    let scratch = Scratch::new();
    let ring = SharedRing::create(&scratch, &named("a"), 4096, CreateOptions::default()).unwrap();
    kill_writers(&scratch, "ring-write", ring.consumer().unwrap());
}

/// Whether the last transmitter had announced a record and not finished it: the first two words behind the records.
fn is_broken_off(scratch: &Scratch, capacity: usize) -> bool {
    let bytes = std::fs::read(scratch.file("a")).unwrap();
    let word = |line: usize| {
        let at = PAGE_LENGTH + capacity + 128 * line;
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    };
    let (intent, tail) = (word(0), word(1));
    assert!(intent >= tail);
    intent > tail
}

#[test]
fn what_a_killed_transmitter_had_begun_is_never_read_and_its_successor_goes_on() {
    const STEP: u64 = 1 << 32;
    let scratch = Scratch::new();
    let capacity = 1 << 20;
    let shared = SharedBroadcast::create(&scratch, &named("a"), capacity, CreateOptions::default()).unwrap();
    let mut receiver = shared.receiver().unwrap();
    let (mut broken_off, mut last) = (0, 0);
    for round in 1u64.. {
        assert!(round < 1_000, "no kill hit a record that was being written");
        let mut take = |type_id: i32, bytes: &[u8]| {
            let n = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            assert!(bytes.chunks_exact(8).all(|word| word == n.to_le_bytes()), "torn at {n:#x}");
            assert!(type_id == 1 && n > last, "{n:#x} after {last:#x}");
            last = n;
        };
        let mut peer = Peer::start(&scratch, "a", "broadcast-write", round * STEP);
        assert_eq!(peer.line(), "ready");
        let mut records = 0;
        wait_for("records", || {
            let received = receiver.poll(16, &mut take);
            assert!(!received.corrupt);
            records += received.records;
            (records as u64 > round % 9).then_some(())
        });
        peer.kill();
        // What is left of it: whole records, or the word that it was overtaken.
        while receiver.is_ready() {
            assert!(!receiver.poll(16, &mut take).corrupt);
        }
        assert_eq!(last / STEP, round);
        broken_off += u32::from(is_broken_off(&scratch, capacity));
        if broken_off == 3 {
            return;
        }
    }
}

#[test]
fn a_writer_that_is_killed_between_claim_and_commit_has_written_nothing() {
    let scratch = Scratch::new();
    let channel = IpcChannel::create(&scratch, &named("a"), 4096, CreateOptions::default()).unwrap();
    let mut consumer = channel.consumer().unwrap();
    let mut peer = Peer::start(&scratch, "a", "channel-claim", 0);
    assert_eq!(peer.line(), "claimed");
    assert_eq!(channel.producer().unwrap_err().code(), Code::EndTaken);
    peer.kill();
    let mut producer = channel.producer().unwrap();
    producer.try_write(1, b"next").unwrap();
    let mut got = Vec::new();
    let _ = consumer.poll(9, |_, bytes| got.push(bytes.to_vec()));
    assert_eq!(got, [b"next"]);
}

#[test]
fn a_killed_reader_of_a_channel_loses_nothing() {
    let scratch = Scratch::new();
    let channel = IpcChannel::create(&scratch, &named("a"), 4096, CreateOptions::default()).unwrap();
    let mut writer = Peer::start(&scratch, "a", "channel-write", 1);
    assert_eq!(writer.line(), "ready");
    let mut expected = 0;
    for round in 1..=ROUNDS {
        let mut reader = Peer::start(&scratch, "a", "channel-read", 0);
        expected = read_some_and_kill(&mut reader, expected, 29 * round);
    }
    let mut consumer = channel.consumer().unwrap();
    let mut arrivals = Arrivals::default();
    wait_for("a message", || (consumer.poll(1, |_, bytes| arrivals.take(bytes)).frames > 0).then_some(()));
    assert!(arrivals.of(1) <= expected + 1);
}

#[test]
fn a_killed_reader_of_many_writers_loses_nothing() {
    let scratch = Scratch::new();
    let ring = SharedMpscRing::create(&scratch, &named("a"), 4096, 32, CreateOptions::default()).unwrap();
    let mut writer = Peer::start(&scratch, "a", "mpsc-write", 1);
    assert_eq!(writer.line(), "ready");
    let mut expected = 0;
    for round in 1..=ROUNDS {
        let mut reader = Peer::start(&scratch, "a", "mpsc-read", 0);
        expected = read_some_and_kill(&mut reader, expected, 29 * round);
    }
    assert!(ring.consumer_state().is_free());
}

/// Messages go on where they were, or a little before: what was not released comes again. Returns what comes next.
fn read_some_and_kill(reader: &mut Peer, expected: u64, count: u64) -> u64 {
    let first: u64 = reader.line().parse().unwrap();
    assert!(first <= expected, "{first} after {expected}: some were lost");
    assert!(expected - first <= 200, "{first} after {expected}: far too many came again");
    for number in first + 1..first + count.max(expected - first) {
        assert_eq!(reader.line(), number.to_string());
    }
    reader.kill();
    let said = reader.numbers_said();
    first + count.max(expected - first).max(1) + said.len() as u64
}

#[test]
fn killed_writers_of_a_common_ring_stop_nobody() {
    let scratch = Scratch::new();
    let ring = SharedMpscRing::create(&scratch, &named("a"), 8192, 32, CreateOptions::default()).unwrap();
    let mut consumer = ring.consumer().unwrap();
    let mut arrivals = Arrivals::default();
    let mut survivor = Peer::start(&scratch, "a", "mpsc-write", 0);
    assert_eq!(survivor.line(), "ready");
    for round in 1..=ROUNDS {
        let mut victim = Peer::start(&scratch, "a", "mpsc-write", round);
        assert_eq!(victim.line(), "ready");
        wait_for("messages of the victim", || {
            assert_ne!(consumer.poll(64, |_, bytes| arrivals.take(bytes)).stop, Stop::Corrupt);
            (arrivals.of(round) > 23 * round).then_some(())
        });
        victim.kill();
        let goal = arrivals.of(0) + 500;
        wait_for("messages of the survivor", || {
            let _ = consumer.poll(64, |_, bytes| arrivals.take(bytes));
            (arrivals.of(0) > goal).then_some(())
        });
    }
    assert_eq!(consumer.counts().corrupt, 0);
}

#[test]
fn a_claim_of_a_killed_writer_is_skipped_and_counted() {
    let scratch = Scratch::new();
    let ring = SharedMpscRing::create(&scratch, &named("a"), 4096, 32, CreateOptions::default()).unwrap();
    let mut consumer = ring.consumer().unwrap();
    let mut peer = Peer::start(&scratch, "a", "mpsc-claim", 0);
    assert_eq!(peer.line(), "claimed");
    ring.producer().unwrap().try_write(1, b"behind it").unwrap();
    for _ in 0..3000 {
        assert_eq!(consumer.poll(1, |_, _| ()), Polled { frames: 0, stop: Stop::InProgress });
    }
    peer.kill();
    let mut got = Vec::new();
    wait_for("what is behind", || (consumer.poll(1, |_, bytes| got.extend_from_slice(bytes)).frames > 0).then_some(()));
    assert_eq!((&got[..], consumer.counts().unblocked), (&b"behind it"[..], 1));
}

#[test]
fn the_segment_of_a_killed_creator_is_replaced() {
    let scratch = Scratch::new();
    let mut creator = Peer::start(&scratch, "a", "create", 1);
    assert_eq!(creator.line(), "ready");
    let replace = CreateOptions { replace_stale: true, ..CreateOptions::default() };
    let refused = IpcChannel::create(&scratch, &named("a"), 8192, replace).unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    let old = IpcChannel::open(&scratch, &named("a"), SegmentOptions::default()).unwrap();
    creator.kill();
    assert!(old.is_stale());
    IpcChannel::create(&scratch, &named("a"), 8192, replace).unwrap();
    assert!(!old.is_named());
}

#[test]
fn a_reader_that_sleeps_is_woken_by_another_process() {
    let scratch = Scratch::new();
    let channel = IpcChannel::create(&scratch, &named("a"), 4096, CreateOptions::default()).unwrap();
    let mut consumer = channel.consumer().unwrap();
    let mut writer = Peer::start(&scratch, "a", "channel-write-on-line", 0);
    assert_eq!(writer.line(), "ready");
    let mut stdin = writer.child.stdin.take().unwrap();
    for _ in 0..50 {
        stdin.write_all(b"\n").unwrap();
        let start = std::time::Instant::now();
        while !consumer.wait(LONG) {}
        assert!(start.elapsed() < LONG, "a wake-up was lost");
        assert_eq!(consumer.poll(1, |_, bytes| assert_eq!(bytes, b"line")).frames, 1);
    }
}
