//! Memory images in `proto/golden/memory`: this library makes them byte for byte, and reads from them what their index says.
//!
//! `UPDATE_GOLDEN=1 cargo test --test golden` writes them anew.
#![allow(missing_docs)]

mod support;

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use relay_accel_core::memory::SegmentOptions;
use relay_accel_core::ring::{
    CreateOptions, FrameConsumer, FrameProducer, Geometry, IpcChannel, SharedFixedRing, SharedMpscRing, SharedRing,
};
use support::{Scratch, named};

/// Words from here to the end of the page belong to the processes that held the ends; an image has none.
const ADDITIONS: std::ops::Range<usize> = 512..4096;

type Message = (i32, Vec<u8>);

struct Image {
    file: &'static str,
    kind: &'static str,
    says: &'static str,
    bytes: Vec<u8>,
    /// What a consumer reads from it.
    unread: Vec<Message>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../proto/golden/memory")
}

/// What the segment `name` looks like after `fill`, without its owners.
fn image_of(scratch: &Scratch, name: &str) -> Vec<u8> {
    let mut bytes = fs::read(scratch.file(name)).unwrap();
    bytes[ADDITIONS].fill(0);
    bytes
}

fn text(number: usize) -> Vec<u8> {
    format!("message {number}").into_bytes()
}

/// Frames of every alignment; the first three are read, the rest is not.
fn some_frames<G: Geometry>(producer: &mut FrameProducer<G>, consumer: &mut FrameConsumer<G>) -> Vec<Message> {
    let messages: Vec<Message> = (0..12).map(|number| (number as i32 + 1, vec![number as u8; number * 3])).collect();
    for (type_id, payload) in &messages {
        producer.try_write(*type_id, payload).unwrap();
    }
    assert_eq!(consumer.poll(3, |_, _| ()).frames, 3);
    messages[3..].to_vec()
}

/// Goes on until frames have wrapped or rotated, with few of them unread.
fn many_frames<G: Geometry>(
    producer: &mut FrameProducer<G>,
    consumer: &mut FrameConsumer<G>,
    end: u64,
) -> Vec<Message> {
    let mut unread = Vec::new();
    for number in 0.. {
        if producer.position() > end {
            break;
        }
        let payload = text(number).repeat(1 + number % 5);
        producer.try_write(7, &payload).unwrap();
        unread.push((7, payload));
        if unread.len() > 8 {
            assert_eq!(consumer.poll(1, |_, _| ()).frames, 1);
            unread.remove(0);
        }
    }
    unread
}

fn channel(file: &'static str, says: &'static str, end: u64) -> Image {
    let scratch = Scratch::new();
    let channel = IpcChannel::create(&scratch, &named("a"), 4096, CreateOptions::default()).unwrap();
    let (mut producer, mut consumer) = (channel.producer().unwrap(), channel.consumer().unwrap());
    let unread = match end {
        0 => some_frames(&mut producer, &mut consumer),
        end => many_frames(&mut producer, &mut consumer, end),
    };
    Image { file, kind: "channel", says, bytes: image_of(&scratch, "a"), unread }
}

fn ring() -> Image {
    let scratch = Scratch::new();
    let ring = SharedRing::create(&scratch, &named("a"), 1024, CreateOptions::default()).unwrap();
    let (mut producer, mut consumer) = (ring.producer().unwrap(), ring.consumer().unwrap());
    let unread = many_frames(&mut producer, &mut consumer, 3000);
    let says = "a ring of 1024 bytes that wrapped";
    Image { file: "ring.bin", kind: "spsc", says, bytes: image_of(&scratch, "a"), unread }
}

fn items() -> Image {
    let scratch = Scratch::new();
    let ring = SharedFixedRing::create(&scratch, &named("a"), 24, 8, CreateOptions::default()).unwrap();
    let (mut producer, mut consumer) = (ring.producer().unwrap(), ring.consumer().unwrap());
    let items: Vec<Vec<u8>> = (0..13u8).map(|number| vec![number; 24]).collect();
    assert_eq!(producer.push(&items[..8].concat()), Ok(8));
    assert_eq!(consumer.pop(&mut [0; 24 * 6]), Ok(6));
    assert_eq!(producer.push(&items[8..].concat()), Ok(5));
    let unread = items[6..].iter().map(|item| (0, item.clone())).collect();
    let says = "8 items of 24 bytes; positions count items";
    Image { file: "items.bin", kind: "fixed", says, bytes: image_of(&scratch, "a"), unread }
}

fn many_producers() -> Image {
    let scratch = Scratch::new();
    let ring = SharedMpscRing::create(&scratch, &named("a"), 1024, 32, CreateOptions::default()).unwrap();
    let (mut first, mut second) = (ring.producer().unwrap(), ring.producer().unwrap());
    let mut consumer = ring.consumer().unwrap();
    first.try_write(1, b"read and zeroed").unwrap();
    assert_eq!(consumer.poll(1, |_, _| ()).frames, 1);
    first.try_write(2, b"first").unwrap();
    second.claim(3, 20).unwrap().abort();
    second.try_write(4, b"second").unwrap();
    let mut claim = second.claim(5, 10).unwrap();
    claim.put(0, b"unfinished");
    first.try_write(6, b"behind a claim in progress").unwrap();
    let mut bytes = image_of(&scratch, "a");
    // Owners of the slots.
    for slot in 0..32 {
        bytes[4096 + slot * 128..][..16].fill(0);
    }
    let unread = vec![(2, b"first".to_vec()), (4, b"second".to_vec())];
    let says = "padding of an aborted claim, then a claim in progress of slot 1, generation 1, and a frame behind it";
    Image { file: "many_producers.bin", kind: "mpsc", says, bytes, unread }
}

fn images() -> Vec<Image> {
    vec![
        channel("channel.bin", "a channel with terms of 4096 bytes; three of twelve frames are read", 0),
        channel("channel_rotated.bin", "the same after two rotations, with padding at the ends of terms", 10_000),
        ring(),
        items(),
        many_producers(),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn entry(image: &Image) -> String {
    let word = |at: usize| u64::from_le_bytes(image.bytes[at..at + 8].try_into().unwrap());
    let half = |at: usize| u32::from_le_bytes(image.bytes[at..at + 4].try_into().unwrap());
    let unread: Vec<String> = image
        .unread
        .iter()
        .map(|(type_id, payload)| format!("   {{\"type_id\": {type_id}, \"payload\": \"{}\"}}", hex(payload)))
        .collect();
    format!(
        " {{\n  \"file\": \"{}\",\n  \"kind\": \"{}\",\n  \"says\": \"{}\",\n  \"magic\": \"{:#018x}\",\n  \"version\": {},\n  \"length\": {},\n  \"item_length\": {},\n  \"slot_count\": {},\n  \"tail\": {},\n  \"head\": {},\n  \"unread\": [\n{}\n  ]\n }}",
        image.file,
        image.kind,
        image.says,
        word(0),
        half(8),
        half(12),
        half(20),
        half(24),
        word(128),
        word(256),
        unread.join(",\n"),
    )
}

/// Reads an image as a consumer that opens it.
fn read(image: &Image) -> Vec<Message> {
    let scratch = Scratch::new();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(scratch.file("a")).unwrap();
    file.write_all(&image.bytes).unwrap();
    let options = SegmentOptions::default();
    let (name, mut got) = (named("a"), Vec::new());
    let push = |type_id: i32, bytes: &[u8]| got.push((type_id, bytes.to_vec()));
    match image.kind {
        "channel" => drop(IpcChannel::open(&scratch, &name, options).unwrap().consumer().unwrap().poll(99, push)),
        "spsc" => drop(SharedRing::open(&scratch, &name, options).unwrap().consumer().unwrap().poll(99, push)),
        "mpsc" => drop(SharedMpscRing::open(&scratch, &name, options).unwrap().consumer().unwrap().poll(99, push)),
        _ => {
            let mut items = [0; 24 * 8];
            let ring = SharedFixedRing::open(&scratch, &name, options).unwrap();
            let count = ring.consumer().unwrap().pop(&mut items).unwrap();
            got.extend(items.chunks(24).take(count).map(|item| (0, item.to_vec())));
        }
    }
    got
}

#[test]
fn images_are_made_byte_for_byte_and_say_what_their_index_says() {
    let images = images();
    let index = format!("[\n{}\n]\n", images.iter().map(entry).collect::<Vec<_>>().join(",\n"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(folder()).unwrap();
        for image in &images {
            fs::write(folder().join(image.file), &image.bytes).unwrap();
        }
        fs::write(folder().join("index.json"), &index).unwrap();
    }
    assert_eq!(fs::read_to_string(folder().join("index.json")).unwrap(), index);
    for image in &images {
        assert!(fs::read(folder().join(image.file)).unwrap() == image.bytes, "{} differs", image.file);
        assert_eq!(read(image), image.unread, "{}", image.file);
    }
}
