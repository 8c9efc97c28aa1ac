//! Mutated frames: nothing panics, hangs, or reads past an end, and what is read is written back. `make fuzz` runs ten million.
//!
//! A run is made again by its seed: `SBE_FUZZ_SEED=7 SBE_FUZZ_INPUTS=1000 cargo test -p relay-accel-codec --test wire_fuzz`.

mod fuzzing;

use std::fs;
use std::path::PathBuf;

use fuzzing::{Dice, setting};
use relay_accel_codec::wire::Flyweight;
use relay_accel_codec::wire::aeron::{self, Frame, FrameHeader, frames};
use relay_accel_codec::wire::compression::Compression;
use relay_accel_codec::wire::nanomq::{Message, Record, TcpFrame};
use relay_accel_codec::wire::nbmq::{self, ControlFrame};
use relay_accel_codec::wire::zigbolt::{Fragment, NakBody, NetworkPacket};

const LENGTH_MAX: usize = 1 << 16;

/// The golden frames by the beginning of their names, some datagrams of several, and compressed frames.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../proto/golden/wire");
    let mut found: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
        .collect();
    found.sort();
    let aligned = |name: &str| {
        let mut bytes = found.iter().find(|(other, _)| other == name).unwrap().1.clone();
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes
    };
    let datagram = ["aeron_data", "aeron_setup", "aeron_data", "aeron_pad"].map(aligned).concat();
    found.push(("aeron_datagram".to_owned(), datagram));
    let text: Vec<u8> = (0..300_u16).flat_map(|number| [(number % 7) as u8, 0, (number / 9) as u8]).collect();
    for format in Compression::ALL.into_iter().filter(|format| format.is_built_in()) {
        found.push((format!("compressed_{}", format.name()), format.compress(&text).unwrap()));
    }
    found
}

fn mutated(dice: &mut Dice, seed: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..dice.roll(4) {
        let at = dice.roll(bytes.len());
        match dice.roll(4) {
            0 => bytes[at] ^= 1 << dice.roll(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][dice.roll(6)],
            2 => bytes.truncate(at + 1),
            _ => bytes.insert(at, dice.roll(256) as u8),
        }
    }
    bytes
}

macro_rules! written_back {
    ($type:ident, $bytes:expr) => {
        $type::decode($bytes).is_ok_and(|value| {
            let mut again = vec![0; value.encoded_length()];
            assert_eq!(value.encode(&mut again), Ok(again.len()));
            assert_eq!($type::decode(&again), Ok(value));
            true
        })
    };
}

fn read(name: &str, bytes: &[u8]) -> bool {
    use nbmq::DataFrame;
    match name.split('_').next().unwrap() {
        "aeron" => {
            let _ = FrameHeader::decode(bytes);
            let mut end = 0;
            for frame in frames(bytes) {
                let Ok((at, frame)) = frame else { return false };
                assert!(at >= end && at < bytes.len() && at.is_multiple_of(aeron::FRAME_ALIGNMENT));
                end = at + frame.encoded_length();
                assert!(end <= bytes.len());
            }
            written_back!(Frame, bytes)
        }
        "zigbolt" => {
            written_back!(NetworkPacket, bytes) | written_back!(NakBody, bytes) | written_back!(Fragment, bytes)
        }
        "nbmq" => written_back!(DataFrame, bytes) | written_back!(ControlFrame, bytes),
        "nanomq" => written_back!(Message, bytes) | written_back!(Record, bytes) | written_back!(TcpFrame, bytes),
        _ => Compression::of_frame(bytes).is_some_and(|format| {
            format.decompress(bytes, LENGTH_MAX).is_ok_and(|found| {
                assert_eq!(format.declared_length(bytes), Ok(found.len() as u64));
                true
            })
        }),
    }
}

#[test]
fn mutated_frames_are_read_or_refused() {
    let seeds = seeds();
    let mut dice = Dice(setting("SBE_FUZZ_SEED", 0x5eed) | 1);
    let inputs = setting("SBE_FUZZ_INPUTS", 20_000);
    let mut whole = 0_u64;
    for _ in 0..inputs {
        let (name, seed) = &seeds[dice.roll(seeds.len())];
        whole += u64::from(read(name, &mutated(&mut dice, seed)));
    }
    assert!(whole > inputs / 20, "most mutations would be refused at the header: {whole} of {inputs} were read");
}
