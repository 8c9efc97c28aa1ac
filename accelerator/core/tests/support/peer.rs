//! The other process of the process tests: `ring-peer DIRECTORY NAME ROLE [NUMBER]`. It runs until it is killed.

use std::env::args;
use std::io::{Write, stdin, stdout};
use std::time::Duration;

use relay_accel_core::Error;
use relay_accel_core::broadcast::SharedBroadcast;
use relay_accel_core::memory::{SegmentDirectory, SegmentName, SegmentOptions};
use relay_accel_core::ring::{
    CreateOptions, FrameConsumer, FrameProducer, Geometry, IpcChannel, Refusal, SharedMpscRing, SharedRing,
};

const SOON: Duration = Duration::from_millis(100);

fn main() -> Result<(), Error> {
    let args: Vec<String> = args().skip(1).collect();
    let directory = SegmentDirectory::open(&args[0])?;
    let name = SegmentName::new(&args[1])?;
    let number: u64 = args.get(3).map_or(0, |text| text.parse().expect("a number"));
    let options = SegmentOptions::default();
    match args[2].as_str() {
        "create" => {
            let channel = IpcChannel::create(&directory, &name, 4096, CreateOptions::default())?;
            write_for_ever(&mut channel.producer()?, number)
        }
        "channel-write" => write_for_ever(&mut IpcChannel::open(&directory, &name, options)?.producer()?, number),
        "channel-read" => read_for_ever(&mut IpcChannel::open(&directory, &name, options)?.consumer()?),
        "channel-claim" => {
            let channel = IpcChannel::open(&directory, &name, options)?;
            let mut producer = channel.producer()?;
            let mut claim = producer.claim(1, 64).expect("room");
            claim.put(0, &[0xff; 64]);
            stop_here()
        }
        "channel-write-on-line" => {
            let mut producer = IpcChannel::open(&directory, &name, options)?.producer()?;
            say("ready");
            while stdin().read_line(&mut String::new()).is_ok_and(|length| length > 0) {
                producer.try_write(1, b"line").expect("room");
            }
            Ok(())
        }
        "ring-write" => write_for_ever(&mut SharedRing::open(&directory, &name, options)?.producer()?, number),
        "mpsc-write" => mpsc_write(&SharedMpscRing::open(&directory, &name, options)?, number),
        "mpsc-read" => mpsc_read(&SharedMpscRing::open(&directory, &name, options)?),
        "mpsc-claim" => {
            let mut producer = SharedMpscRing::open(&directory, &name, options)?.producer()?;
            let mut claim = producer.claim(1, 40).expect("room");
            claim.put(3, b"half of it");
            stop_here()
        }
        "broadcast-write" => {
            let mut transmitter = SharedBroadcast::open(&directory, &name, options)?.transmitter()?;
            let mut bytes = vec![0; transmitter.payload_length_max()];
            say("ready");
            for n in number.. {
                bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&n.to_le_bytes()));
                transmitter.transmit(1, &bytes).expect("a record");
            }
            unreachable!("numbers do not end")
        }
        role => panic!("unknown role {role}"),
    }
}

/// A line for the test to wait for.
fn say(line: &str) {
    println!("{line}");
    stdout().flush().expect("the test reads");
}

/// Until it is killed, or the test ends and closes the input.
fn stop_here() -> ! {
    say("claimed");
    let _ = stdin().read_line(&mut String::new());
    std::process::exit(1)
}

/// Who writes, which message it is, and a length that goes with it.
fn message(writer: u64, number: u64) -> Vec<u8> {
    let mut bytes = vec![number as u8; 16 + (number % 90) as usize];
    bytes[..8].copy_from_slice(&writer.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn write_for_ever<G: Geometry>(producer: &mut FrameProducer<G>, writer: u64) -> ! {
    say("ready");
    for number in 0.. {
        let bytes = message(writer, number);
        if number % 3 == 0 {
            while producer.claim(1, bytes.len()).map(|mut claim| {
                claim.put(0, &bytes);
                claim.commit();
            }) == Err(Refusal::BackPressured)
            {
                producer.wait_for_room(bytes.len(), SOON);
            }
        } else {
            while producer.try_write(1, &bytes) == Err(Refusal::BackPressured) {
                producer.wait_for_room(bytes.len(), SOON);
            }
        }
    }
    unreachable!("numbers do not end")
}

fn read_for_ever<G: Geometry>(consumer: &mut FrameConsumer<G>) -> ! {
    loop {
        let polled = consumer.poll(10, |_, bytes| say_number(bytes));
        if polled.frames == 0 {
            consumer.wait(SOON);
        }
    }
}

fn say_number(bytes: &[u8]) {
    let number = u64::from_le_bytes(bytes[8..16].try_into().expect("16 bytes"));
    say(&number.to_string());
}

fn mpsc_write(ring: &SharedMpscRing, writer: u64) -> ! {
    let mut producer = ring.producer().expect("a slot");
    say("ready");
    for number in 0.. {
        let bytes = message(writer, number);
        while producer.claim(1, bytes.len()).map(|mut claim| {
            claim.put(0, &bytes);
            claim.commit();
        }) == Err(Refusal::BackPressured)
        {
            producer.wait_for_room(bytes.len(), SOON);
        }
    }
    unreachable!("numbers do not end")
}

fn mpsc_read(ring: &SharedMpscRing) -> ! {
    let mut consumer = ring.consumer().expect("the end");
    loop {
        let polled = consumer.poll(10, |_, bytes| say_number(bytes));
        if polled.frames == 0 {
            consumer.wait(SOON);
        }
    }
}
