//! Named segments: who may see them, what is refused by name, what is stale.
#![allow(missing_docs)]

mod support;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use relay_accel_core::Code;
use relay_accel_core::memory::process::ProcessIdentity;
use relay_accel_core::memory::{HugePages, Segment, SegmentDirectory, SegmentOptions};
use relay_accel_core::ring::{
    CreateOptions, EndState, IpcChannel, PAGE_LENGTH, Refusal, SharedFixedRing, SharedRing, Stop,
};
use support::{Scratch, named};

const OPEN: SegmentOptions = SegmentOptions { pre_fault: true, huge_pages: false };
const CREATOR_AT: u64 = 512;
const PRODUCER_AT: u64 = 640;

fn create(scratch: &Scratch, name: &str) -> IpcChannel {
    IpcChannel::create(scratch, &named(name), 4096, CreateOptions::default()).unwrap()
}

fn open_code(scratch: &Scratch, name: &str) -> Code {
    IpcChannel::open(scratch, &named(name), OPEN).unwrap_err().code()
}

fn overwrite(scratch: &Scratch, name: &str, offset: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(scratch.file(name)).unwrap().write_all_at(bytes, offset).unwrap();
}

fn dead_identity() -> u64 {
    let mut child = Command::new("true").spawn().unwrap();
    let namespace = fs::metadata("/proc/self/ns/pid").unwrap().ino();
    let identity = ProcessIdentity::new(child.id(), 0, namespace);
    child.wait().unwrap();
    identity.word()
}

#[test]
fn a_channel_is_found_by_name_and_carries_messages() {
    let scratch = Scratch::new();
    let made = create(&scratch, "ticks");
    let opened = IpcChannel::open(&scratch, &named("ticks"), OPEN).unwrap();
    assert_eq!((opened.term_length(), opened.epoch_ns()), (4096, made.epoch_ns()));
    let mut producer = made.producer().unwrap();
    let mut consumer = opened.consumer().unwrap();
    producer.try_write(3, b"hello").unwrap();
    let mut got = Vec::new();
    let _ = consumer.poll(1, |id, bytes| got.push((id, bytes.to_vec())));
    assert_eq!(got, [(3, b"hello".to_vec())]);
    let (producer_beat, _) = opened.beats_ns();
    producer.beat(producer_beat + 5);
    assert_eq!(opened.beats_ns(), (5, 0));
}

#[test]
fn each_end_has_one_owner_at_a_time() {
    let scratch = Scratch::new();
    let channel = create(&scratch, "a");
    let producer = channel.producer().unwrap();
    let error = channel.producer().unwrap_err();
    assert_eq!(error.code(), Code::EndTaken);
    assert!(error.to_string().contains(&std::process::id().to_string()));
    assert!(matches!(channel.producer_state(), EndState::Held(..)));
    drop(producer);
    assert_eq!(channel.producer_state(), EndState::Left);
    drop(channel.producer().unwrap());
    assert_eq!(channel.consumer_state(), EndState::Vacant);
}

#[test]
fn a_name_is_made_once_and_files_are_private() {
    let scratch = Scratch::new();
    let channel = create(&scratch, "a");
    let again = IpcChannel::create(&scratch, &named("a"), 4096, CreateOptions::default());
    assert_eq!(again.unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(fs::metadata(scratch.file("a")).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(fs::metadata(scratch.path()).unwrap().mode() & 0o7777, 0o700);
    assert_eq!(scratch.names().unwrap(), [named("a")]);
    assert!(channel.unlink().unwrap());
    assert!(!channel.unlink().unwrap() && !channel.is_named());
    assert_eq!(open_code(&scratch, "a"), Code::NotFound);
}

#[test]
fn unlink_spares_another_segment_of_the_same_name() {
    let scratch = Scratch::new();
    let old = create(&scratch, "a");
    fs::remove_file(scratch.file("a")).unwrap();
    let new = create(&scratch, "a");
    assert!(!old.unlink().unwrap());
    assert!(new.is_named());
}

#[test]
fn a_directory_or_file_that_others_may_touch_is_refused() {
    let scratch = Scratch::new();
    create(&scratch, "a");
    fs::set_permissions(scratch.file("a"), fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(open_code(&scratch, "a"), Code::AccessDenied);
    let link = scratch.file("link");
    symlink(scratch.file("a"), &link).unwrap();
    assert_eq!(open_code(&scratch, "link"), Code::AccessDenied);
    assert_eq!(SegmentDirectory::open(&link).unwrap_err().code(), Code::AccessDenied);
    fs::create_dir(scratch.file("dir")).unwrap();
    fs::set_permissions(scratch.file("dir"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(SegmentDirectory::open(scratch.file("dir")).unwrap_err().code(), Code::AccessDenied);
}

#[test]
fn what_is_no_segment_of_ours_is_refused_by_name() {
    let scratch = Scratch::new();
    create(&scratch, "version");
    overwrite(&scratch, "version", 8, &1u32.to_le_bytes());
    let error = IpcChannel::open(&scratch, &named("version"), OPEN).unwrap_err();
    assert_eq!(error.code(), Code::UnsupportedVersion);
    assert!(error.to_string().contains("original"), "{error}");

    create(&scratch, "magic");
    overwrite(&scratch, "magic", 0, b"whatever");
    assert_eq!(open_code(&scratch, "magic"), Code::InvalidChannel);
    overwrite(&scratch, "magic", 0, &[0; 8]);
    assert_eq!(open_code(&scratch, "magic"), Code::NotReady);

    for term_length in [0u32, 1000, 2048, 1 << 31] {
        create(&scratch, "length");
        overwrite(&scratch, "length", 12, &term_length.to_le_bytes());
        assert_eq!(open_code(&scratch, "length"), Code::InvalidTermLength, "{term_length}");
        fs::remove_file(scratch.file("length")).unwrap();
    }
    create(&scratch, "length");
    overwrite(&scratch, "length", 12, &8192u32.to_le_bytes());
    assert_eq!(open_code(&scratch, "length"), Code::TermLengthMismatch);

    SharedRing::create(&scratch, &named("ring"), 4096, CreateOptions::default()).unwrap();
    assert_eq!(open_code(&scratch, "ring"), Code::InvalidChannel);
    assert_eq!(SharedFixedRing::open(&scratch, &named("ring"), OPEN).unwrap_err().code(), Code::WrongKind);
    fs::write(scratch.file("short"), [1; 12]).unwrap();
    fs::set_permissions(scratch.file("short"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(open_code(&scratch, "short"), Code::InvalidChannel);
    File::create(scratch.file("empty")).unwrap();
    fs::set_permissions(scratch.file("empty"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(open_code(&scratch, "empty"), Code::InvalidArgument);
}

#[test]
fn positions_that_contradict_each_other_stop_writer_and_reader() {
    let scratch = Scratch::new();
    let sets = [(8u64, 0u64), (0, 12_296), (4, 8), (8, 12), (u64::MAX - 7, u64::MAX - 7), (0, u64::MAX)];
    for (head, tail) in sets {
        let channel = create(&scratch, "a");
        overwrite(&scratch, "a", 128, &tail.to_le_bytes());
        overwrite(&scratch, "a", 256, &head.to_le_bytes());
        assert_eq!(channel.producer().unwrap_err().code(), Code::CorruptChannel, "{head} {tail}");
        let mut consumer = channel.consumer().unwrap();
        let polled = consumer.poll(10, |_, _| panic!("nothing was written"));
        if head != tail {
            assert_eq!((polled.frames, polled.stop), (0, Stop::Corrupt), "{head} {tail}");
            assert_eq!(consumer.counts().corrupt, 1);
        }
        channel.unlink().unwrap();
    }
}

#[test]
fn a_forged_head_stops_the_producer_and_is_counted() {
    let scratch = Scratch::new();
    let channel = create(&scratch, "a");
    let mut producer = channel.producer().unwrap();
    overwrite(&scratch, "a", 256, &(1u64 << 40).to_le_bytes());
    while producer.try_write(1, &[0; 400]).is_ok() {}
    assert_eq!(producer.try_write(1, &[0; 400]), Err(Refusal::Corrupt));
    assert_eq!(producer.counts().corrupt, 2);
}

#[test]
fn a_segment_of_the_dead_is_replaced_and_one_of_the_living_is_not() {
    let scratch = Scratch::new();
    let replace = CreateOptions { replace_stale: true, ..CreateOptions::default() };
    let living = create(&scratch, "a");
    let refused = IpcChannel::create(&scratch, &named("a"), 4096, replace).unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert!(refused.to_string().contains("no channel whose maker and holders are proven dead"), "{refused}");
    overwrite(&scratch, "a", CREATOR_AT, &dead_identity().to_le_bytes());
    let consumer = living.consumer().unwrap();
    assert!(!living.is_stale());
    assert_eq!(IpcChannel::create(&scratch, &named("a"), 4096, replace).unwrap_err().code(), Code::AlreadyExists);
    drop(consumer);
    overwrite(&scratch, "a", PRODUCER_AT, &dead_identity().to_le_bytes());
    assert!(living.is_stale());
    let replaced = IpcChannel::create(&scratch, &named("a"), 8192, replace).unwrap();
    assert_eq!(replaced.term_length(), 8192);
    assert!(!living.is_named() && replaced.is_named());
}

#[test]
fn an_end_of_another_namespace_is_not_taken_over() {
    let scratch = Scratch::new();
    let channel = create(&scratch, "a");
    let namespace = fs::metadata("/proc/self/ns/pid").unwrap().ino();
    let foreign = ProcessIdentity::new(77, 5, namespace + 1);
    overwrite(&scratch, "a", PRODUCER_AT, &foreign.word().to_le_bytes());
    let error = channel.producer().unwrap_err();
    assert!(error.to_string().contains("cannot be proven dead"), "{error}");
    overwrite(&scratch, "a", PRODUCER_AT, &dead_identity().to_le_bytes());
    channel.producer().unwrap();
}

#[test]
fn a_segment_that_does_not_fit_is_an_error_and_leaves_nothing() {
    let scratch = Scratch::new();
    let mount = scratch.file("small");
    fs::create_dir(&mount).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs"]).arg(&mount).status();
    if !mounted.is_ok_and(|status| status.success()) {
        println!("skipped: this user may not mount a small tmpfs");
        return;
    }
    let small = SegmentDirectory::open(&mount).unwrap();
    let full = IpcChannel::create(&small, &named("a"), 1 << 20, CreateOptions::default()).unwrap_err();
    let fits = SharedRing::create(&small, &named("b"), 4096, CreateOptions::default()).map(|_| small.names().unwrap());
    drop(small);
    assert!(Command::new("umount").arg(&mount).status().unwrap().success());
    assert_eq!(full.code(), Code::NoSpace);
    assert_eq!(fits.unwrap(), [named("b")]);
}

#[test]
fn a_file_that_was_cut_is_found() {
    let scratch = Scratch::new();
    let channel = create(&scratch, "a");
    channel.verify_length().unwrap();
    OpenOptions::new().write(true).open(scratch.file("a")).unwrap().set_len(PAGE_LENGTH as u64).unwrap();
    assert_eq!(channel.verify_length().unwrap_err().code(), Code::TermLengthMismatch);
    assert_eq!(open_code(&scratch, "a"), Code::TermLengthMismatch);
}

#[test]
fn huge_pages_are_had_or_the_reason_is_told() {
    let scratch = Scratch::new();
    let options = SegmentOptions { pre_fault: true, huge_pages: true };
    let segment = Segment::create(&scratch, &named("a"), 4 << 20, options, |_| ()).unwrap();
    match segment.huge_pages() {
        HugePages::NotAsked => panic!("they were asked for"),
        HugePages::Advised { mapped_bytes } => assert!(*mapped_bytes <= 4 << 20),
        HugePages::Unavailable { reason } => assert!(reason.contains("advise"), "{reason}"),
    }
}

#[test]
fn rings_of_bytes_and_of_items_live_in_segments_too() {
    let scratch = Scratch::new();
    let ring = SharedRing::create(&scratch, &named("ring"), 4096, CreateOptions::default()).unwrap();
    let opened = SharedRing::open(&scratch, &named("ring"), OPEN).unwrap();
    ring.producer().unwrap().try_write(1, b"abc").unwrap();
    assert_eq!(opened.consumer().unwrap().poll(5, |_, bytes| assert_eq!(bytes, b"abc")).frames, 1);

    SharedFixedRing::create(&scratch, &named("items"), 24, 8, CreateOptions::default()).unwrap();
    let items = SharedFixedRing::open(&scratch, &named("items"), OPEN).unwrap();
    assert_eq!((items.item_length(), items.item_count()), (24, 8));
    assert_eq!(items.producer().unwrap().push(&[5; 72]), Ok(3));
    assert_eq!(items.consumer().unwrap().pop(&mut [0; 240]), Ok(3));
}

#[test]
fn owners_that_cannot_be_looked_up_are_dead_when_nobody_has_the_segment_open() {
    let scratch = Scratch::new();
    let elsewhere = ProcessIdentity::new(4_000_000, 5, fs::metadata("/proc/self/ns/pid").unwrap().ino() + 1).word();
    let held = create(&scratch, "ticks");
    for offset in [CREATOR_AT, PRODUCER_AT] {
        overwrite(&scratch, "ticks", offset, &elsewhere.to_le_bytes());
    }
    let opened = IpcChannel::open(&scratch, &named("ticks"), OPEN).unwrap();
    assert!(!opened.is_stale() && !held.is_stale());
    drop(held);
    assert!(opened.is_stale());
    // Asking takes nothing away: the one that asks still counts for others.
    let again = IpcChannel::open(&scratch, &named("ticks"), OPEN).unwrap();
    assert!(!again.is_stale());
}
