//! Files with holes: judged by what their page says before any memory is taken for them.
#![allow(missing_docs)]

mod support;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};

use relay_accel_core::Code;
use relay_accel_core::broadcast::SharedBroadcast;
use relay_accel_core::counters::SharedCounters;
use relay_accel_core::memory::SegmentOptions;
use relay_accel_core::ring::{CreateOptions, IpcChannel, PAGE_LENGTH, SharedFixedRing, SharedMpscRing, SharedRing};
use support::{Scratch, named};

const OPEN: SegmentOptions = SegmentOptions { pre_fault: true, huge_pages: false };

fn overwrite(scratch: &Scratch, name: &str, offset: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(scratch.file(name)).unwrap().write_all_at(bytes, offset).unwrap();
}

#[test]
fn a_file_with_holes_whose_length_is_not_what_its_page_says_is_refused_before_memory_is_taken_for_it() {
    let scratch = Scratch::new();
    let options = CreateOptions::default;
    IpcChannel::create(&scratch, &named("channel"), 4096, options()).unwrap();
    SharedRing::create(&scratch, &named("ring"), 4096, options()).unwrap();
    SharedMpscRing::create(&scratch, &named("many"), 4096, 32, options()).unwrap();
    SharedFixedRing::create(&scratch, &named("items"), 8, 8, options()).unwrap();
    SharedBroadcast::create(&scratch, &named("broadcast"), 4096, options()).unwrap();
    SharedCounters::create(&scratch, &named("counters"), 8, options()).unwrap();
    for name in scratch.names().unwrap() {
        let path = scratch.file(name.as_str());
        let taken = fs::metadata(&path).unwrap().blocks();
        for length in [1 << 30, 4 << 30, (4 << 30) + 8, u64::MAX >> 2] {
            if OpenOptions::new().write(true).open(&path).unwrap().set_len(length).is_err() {
                continue; // The file system has no file that long.
            }
            let refused = [
                IpcChannel::open(&scratch, &name, OPEN).map(drop),
                SharedRing::open(&scratch, &name, OPEN).map(drop),
                SharedMpscRing::open(&scratch, &name, OPEN).map(drop),
                SharedFixedRing::open(&scratch, &name, OPEN).map(drop),
                SharedBroadcast::open(&scratch, &name, OPEN).map(drop),
                SharedCounters::open(&scratch, &name, OPEN).map(drop),
            ]
            .map(|opened| opened.unwrap_err().code());
            let by_name = if length > 4 << 30 { Code::InvalidArgument } else { Code::TermLengthMismatch };
            assert!(refused.contains(&by_name), "{name} {length}: {refused:?}");
            assert_eq!(fs::metadata(&path).unwrap().blocks(), taken, "{name} {length}");
        }
    }
}

#[test]
fn a_file_with_holes_that_says_a_length_which_is_not_allowed_is_refused_before_memory_is_taken_for_it() {
    let scratch = Scratch::new();
    SharedFixedRing::create(&scratch, &named("items"), 8, 8, CreateOptions::default()).unwrap();
    let path = scratch.file("items");
    let taken = fs::metadata(&path).unwrap().blocks();
    for (item_length, item_count) in [(u32::MAX - 7, 1u32 << 31), (1 << 31, 1 << 31), (8, 1 << 30), (0, 8), (8, 0)] {
        overwrite(&scratch, "items", 12, &item_count.to_le_bytes());
        overwrite(&scratch, "items", 20, &item_length.to_le_bytes());
        let length = PAGE_LENGTH as u64 + (u64::from(item_length) * u64::from(item_count)).min((4 << 30) - 4096);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        SharedFixedRing::open(&scratch, &named("items"), OPEN).unwrap_err();
        assert!(fs::metadata(&path).unwrap().blocks() <= taken, "{item_length} {item_count}");
    }
}
