//! How far is the ring from what the machine allows? Two pinned processes, messages of 64 bytes and 1 KiB.
//!
//! `cargo run --release --example ring_rate [ROUNDS]` compares the ring and the log buffer with a floor: a bare ring of raw
//! copies, which checks nothing, wakes nobody and knows no refusals. They take turns in every round, and each turn is many
//! short stretches. What is printed is the median of the stretches, and the best tenth of them, which is what
//! the code can do where the machine has other work, too; ratios are of the latter.

#![allow(clippy::multiple_unsafe_ops_per_block, clippy::cast_ptr_alignment, clippy::cast_precision_loss)]

use std::env::{args, current_exe};
use std::hint::spin_loop;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use relay_accel_core::Error;
use relay_accel_core::memory::{Placement, Region, Segment, SegmentDirectory, SegmentName, SegmentOptions};
use relay_accel_core::ring::{
    CreateOptions, FrameConsumer, FrameProducer, Geometry, IpcChannel, SharedFrames, SharedRing,
};
use rustix::thread::{CpuSet, sched_setaffinity};

const CAPACITY: usize = 1 << 18;
const BATCH: usize = 64;
/// Stretches of one turn.
const STRETCHES: usize = 40;

/// One end to write to and one to read from, of whatever is measured.
trait Pipe {
    fn write(&mut self, payload: &[u8]) -> bool;
    fn write_batch(&mut self, payload: &[u8], count: usize) -> usize;
    /// Reads at most `limit` messages; returns how many and a sum over something of each.
    fn read(&mut self, limit: usize) -> (usize, u64);
}

struct Ring<G: Geometry> {
    producer: Option<FrameProducer<G>>,
    consumer: Option<FrameConsumer<G>>,
}

impl<G: Geometry> Ring<G> {
    fn over(shared: &SharedFrames<G>, is_writer: bool) -> Result<Self, Error> {
        let producer = if is_writer { Some(shared.producer()?) } else { None };
        let consumer = if is_writer { None } else { Some(shared.consumer()?) };
        Ok(Self { producer, consumer })
    }
}

impl<G: Geometry> Pipe for Ring<G> {
    #[inline]
    fn write(&mut self, payload: &[u8]) -> bool {
        self.producer.as_mut().is_some_and(|producer| producer.try_write(1, payload).is_ok())
    }

    #[inline]
    fn write_batch(&mut self, payload: &[u8], count: usize) -> usize {
        let messages = std::iter::repeat_n((1, payload), count);
        self.producer.as_mut().map_or(0, |producer| producer.write_batch(messages).0)
    }

    #[inline]
    fn read(&mut self, limit: usize) -> (usize, u64) {
        let mut sum = 0;
        let polled = self.consumer.as_mut().map(|consumer| consumer.poll(limit, |_, bytes| sum += u64::from(bytes[9])));
        (polled.map_or(0, |polled| polled.frames), sum)
    }
}

/// The floor: what a C programmer writes in an hour, header and payload copied raw, positions cached.
struct Floor {
    tail: *const AtomicU64,
    head: *const AtomicU64,
    data: *mut u8,
    position: u64,
    other: u64,
    scratch: [u8; 1024],
    _region: Region,
}

impl Floor {
    fn over(region: Region) -> Self {
        let base = region.as_ptr();
        Self {
            tail: base.wrapping_add(128).cast(),
            head: base.wrapping_add(256).cast(),
            data: base.wrapping_add(4096),
            position: 0,
            other: 0,
            scratch: [0; 1024],
            _region: region,
        }
    }

    #[inline]
    fn put(&mut self, payload: &[u8]) -> bool {
        let total = 8 + payload.len();
        let index = self.position as usize & (CAPACITY - 1);
        let padding = if index + total > CAPACITY { CAPACITY - index } else { 0 };
        let end = self.position + (padding + total) as u64;
        if end - self.other > CAPACITY as u64 {
            // SAFETY: the region has room for the page and the data behind it.
            self.other = unsafe { &*self.head }.load(Ordering::Acquire);
            if end - self.other > CAPACITY as u64 {
                return false;
            }
        }
        if padding > 0 {
            // SAFETY: as above; frames are multiples of 8, so a header always fits.
            unsafe { self.data.add(index).cast::<i64>().write(-(padding as i64)) };
        }
        // SAFETY: as above.
        let frame = unsafe { self.data.add((index + padding) & (CAPACITY - 1)) };
        // SAFETY: as above.
        unsafe { frame.cast::<i64>().write(payload.len() as i64) };
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(payload.as_ptr(), frame.add(8), payload.len()) };
        self.position = end;
        true
    }

    #[inline]
    fn get(&mut self) -> Option<u64> {
        if self.position == self.other {
            // SAFETY: as above.
            self.other = unsafe { &*self.tail }.load(Ordering::Acquire);
            if self.position == self.other {
                return None;
            }
        }
        // SAFETY: as above.
        let mut frame = unsafe { self.data.add(self.position as usize & (CAPACITY - 1)) };
        // SAFETY: as above.
        let mut length = unsafe { frame.cast::<i64>().read() };
        if length < 0 {
            self.position += length.unsigned_abs();
            frame = self.data;
            // SAFETY: as above.
            length = unsafe { frame.cast::<i64>().read() };
        }
        // SAFETY: payloads of this benchmark fit into the scratch.
        unsafe { std::ptr::copy_nonoverlapping(frame.add(8), self.scratch.as_mut_ptr(), length as usize) };
        self.position += 8 + length as u64;
        Some(u64::from(self.scratch[9]))
    }

    #[inline]
    fn publish(&self, word: *const AtomicU64) {
        // SAFETY: as above.
        unsafe { &*word }.store(self.position, Ordering::Release);
    }
}

impl Pipe for Floor {
    #[inline]
    fn write(&mut self, payload: &[u8]) -> bool {
        let written = self.put(payload);
        if written {
            self.publish(self.tail);
        }
        written
    }

    #[inline]
    fn write_batch(&mut self, payload: &[u8], count: usize) -> usize {
        let written = (0..count).take_while(|_| self.put(payload)).count();
        self.publish(self.tail);
        written
    }

    #[inline]
    fn read(&mut self, limit: usize) -> (usize, u64) {
        let (mut count, mut sum) = (0, 0);
        while count < limit {
            let Some(value) = self.get() else { break };
            sum += value;
            count += 1;
        }
        if count > 0 {
            self.publish(self.head);
        }
        (count, sum)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Work {
    RoundTrip,
    Single,
    Batched,
}

struct Plan {
    label: &'static str,
    work: Work,
    payload_length: usize,
    count: usize,
}

const PLANS: [Plan; 4] = [
    Plan { label: "round trip, 64 B, ns p50", work: Work::RoundTrip, payload_length: 64, count: 2_000 },
    Plan { label: "one call a message, 64 B, M/s", work: Work::Single, payload_length: 64, count: 60_000 },
    Plan { label: "batches of 64, 64 B, M/s", work: Work::Batched, payload_length: 64, count: 200_000 },
    Plan { label: "batches of 64, 1 KiB, M/s", work: Work::Batched, payload_length: 1024, count: 40_000 },
];

const KINDS: [&str; 3] = ["floor", "ring", "log"];

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // Where it is refused the figures are those of a wandering process.
    let _ = sched_setaffinity(None, &set);
}

fn send(pipe: &mut impl Pipe, plan: &Plan) {
    let payload = vec![1; plan.payload_length];
    let mut left = plan.count;
    while left > 0 {
        if plan.work == Work::Batched {
            left -= pipe.write_batch(&payload, BATCH.min(left));
        } else if pipe.write(&payload) {
            left -= 1;
        }
    }
}

fn receive(pipe: &mut impl Pipe, plan: &Plan) -> u64 {
    let limit = if plan.work == Work::Batched { BATCH } else { 1 };
    let (mut left, mut total) = (plan.count, 0);
    while left > 0 {
        let (count, sum) = pipe.read(limit);
        left -= count;
        total += sum;
    }
    total
}

fn ping(out: &mut impl Pipe, back: &mut impl Pipe, plan: &Plan) -> f64 {
    let payload = vec![1; plan.payload_length];
    let mut times = Vec::with_capacity(plan.count);
    for _ in 0..plan.count {
        let start = Instant::now();
        while !out.write(&payload) {}
        while back.read(1).0 == 0 {
            spin_loop();
        }
        times.push(start.elapsed().as_nanos() as u32);
    }
    times.sort_unstable();
    f64::from(times[times.len() / 2])
}

fn pong(input: &mut impl Pipe, back: &mut impl Pipe, plan: &Plan) {
    let payload = vec![1; plan.payload_length];
    for _ in 0..plan.count {
        while input.read(1).0 == 0 {
            spin_loop();
        }
        while !back.write(&payload) {}
    }
}

/// The parent writes on `a` and reads on `b`; the child the other way round. Returns the figures of the parent's stretches.
fn run(a: &mut impl Pipe, b: &mut impl Pipe, plan: &Plan, is_parent: bool) -> Vec<f64> {
    (0..STRETCHES)
        .map(|_| match (plan.work, is_parent) {
            (Work::RoundTrip, true) => ping(a, b, plan),
            (Work::RoundTrip, false) => {
                pong(a, b, plan);
                0.0
            }
            (_, true) => {
                // The child says by one message that it is there, and by another that it has read everything.
                while b.read(1).0 == 0 {}
                let start = Instant::now();
                send(a, plan);
                while b.read(1).0 == 0 {}
                plan.count as f64 / start.elapsed().as_secs_f64() / 1e6
            }
            (_, false) => {
                while !b.write(&[0; 16]) {}
                assert_eq!(receive(a, plan), plan.count as u64);
                while !b.write(&[0; 16]) {}
                0.0
            }
        })
        .collect()
}

fn measure(directory: &SegmentDirectory, kind: &str, plan: &Plan, is_parent: bool) -> Result<Vec<f64>, Error> {
    pin(usize::from(!is_parent));
    let [out, back] = ["out", "back"].map(|name| SegmentName::new(name).expect("a good name"));
    let options = SegmentOptions::default();
    match kind {
        "floor" => {
            let over = |name| {
                Segment::open(directory, name, options, |_, _| Ok(())).map(|segment| Floor::over(segment.region()))
            };
            Ok(run(&mut over(&out)?, &mut over(&back)?, plan, is_parent))
        }
        "ring" => {
            let open = |name, is_writer| Ring::over(&SharedRing::open(directory, name, options)?, is_writer);
            Ok(run(&mut open(&out, is_parent)?, &mut open(&back, !is_parent)?, plan, is_parent))
        }
        _ => {
            let open = |name, is_writer| Ring::over(&IpcChannel::open(directory, name, options)?, is_writer);
            Ok(run(&mut open(&out, is_parent)?, &mut open(&back, !is_parent)?, plan, is_parent))
        }
    }
}

fn create(directory: &SegmentDirectory, kind: &str) -> Result<(), Error> {
    for name in ["out", "back"] {
        let name = SegmentName::new(name)?;
        directory.unlink(&name)?;
        match kind {
            "floor" => {
                let length = 4096 + CAPACITY + 64;
                Segment::create(directory, &name, length, SegmentOptions::default(), |_| ())?;
            }
            "ring" => {
                SharedRing::create(directory, &name, CAPACITY, CreateOptions::default())?;
            }
            _ => {
                IpcChannel::create(directory, &name, CAPACITY / 2, CreateOptions::default())?;
            }
        }
    }
    Ok(())
}

/// Median and best tenth; the best are the lowest where a round trip is measured.
fn summary(mut values: Vec<f64>, work: Work) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let best = if work == Work::RoundTrip { values.len() / 10 } else { values.len() - 1 - values.len() / 10 };
    (values[values.len() / 2], values[best])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = args().skip(1).collect();
    if let [path, kind, plan] = &args[..] {
        measure(&SegmentDirectory::open(path)?, kind, &PLANS[plan.parse::<usize>()?], false)?;
        return Ok(());
    }
    let rounds: usize = args.first().map_or(Ok(5), |text| text.parse())?;
    let path = format!("/dev/shm/relay-ring-rate-{}", std::process::id());
    let directory = SegmentDirectory::open(&path)?;
    println!("{:?}; parent on processor 0, child on 1; {rounds} rounds", Placement::current());
    println!("{:32} {:>15} {:>15} {:>15}   ring/floor  log/floor", "median, best tenth", KINDS[0], KINDS[1], KINDS[2]);
    for (number, plan) in PLANS.iter().enumerate() {
        let mut figures = vec![Vec::new(); KINDS.len()];
        for _ in 0..rounds {
            for (kind, figures) in KINDS.iter().zip(&mut figures) {
                create(&directory, kind)?;
                let mut child = Command::new(current_exe()?).args([&path, *kind, &number.to_string()]).spawn()?;
                figures.extend(measure(&directory, kind, plan, true)?);
                child.wait()?;
            }
        }
        let found: Vec<_> = figures.into_iter().map(|values| summary(values, plan.work)).collect();
        print!("{:32}", plan.label);
        for (middle, best) in &found {
            print!(" {middle:7.1} {best:7.1}");
        }
        println!("   {:10.2} {:10.2}", found[1].1 / found[0].1, found[2].1 / found[0].1);
    }
    std::fs::remove_dir_all(&path)?;
    Ok(())
}
