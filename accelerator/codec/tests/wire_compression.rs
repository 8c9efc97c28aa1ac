//! Compressed frames: whatever bytes they hold come back within the bound, and no forged frame takes more than it may.

use proptest::collection::vec;
use proptest::prelude::*;
use relay_accel_codec::wire::compression::{Compression, token};
use relay_accel_codec::wire::{Fault, WireError};

const LENGTH_MAX: usize = 1 << 24;

fn built_in() -> impl Iterator<Item = Compression> {
    Compression::ALL.into_iter().filter(|format| format.is_built_in())
}

fn comes_back(bytes: &[u8]) -> [usize; 3] {
    let mut lengths = [0; 3];
    for (format, length) in built_in().zip(&mut lengths) {
        let frame = format.compress(bytes).unwrap();
        *length = frame.len();
        assert!(frame.len() <= format.compress_bound(bytes.len()), "{format:?}: {}", frame.len());
        assert_eq!(Compression::of_frame(&frame), Some(format));
        assert_eq!(format.declared_length(&frame), Ok(bytes.len() as u64));
        assert!(format.decompress(&frame, bytes.len()).as_deref() == Ok(bytes), "{format:?}");
    }
    lengths
}

/// Pieces that repeat at some distance, cut into each other.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = (vec(any::<u8>(), 1..40), 1..60_usize).prop_map(|(bytes, count)| bytes.repeat(count));
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_come_back(bytes in vec(any::<u8>(), 0..2_000), text in texts(), few in vec(0..4_u8, 0..3_000)) {
        comes_back(&bytes);
        comes_back(&text);
        comes_back(&few);
        comes_back(&[text.clone(), bytes, text].concat());
    }

    #[test]
    fn a_buffer_that_is_too_short_is_an_error(text in texts(), share in 0..100_usize) {
        for format in built_in() {
            let length = format.compress(&text).unwrap().len();
            let mut short = vec![0; length * share / 100];
            prop_assert!(format.compress_into(&text, &mut short).is_err(), "{:?}", format);
        }
    }
}

proptest! {
    // Each one decompresses some hundred frames.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn cut_frames_and_flipped_bits_are_found(text in vec(0..3_u8, 1..120)) {
        for format in built_in() {
            let frame = format.compress(&text).unwrap();
            for cut in 0..frame.len() {
                prop_assert!(format.decompress(&frame[..cut], LENGTH_MAX).is_err(), "{:?} cut to {}", format, cut);
            }
            let longer = [&frame[..], &[0]].concat();
            prop_assert!(format.decompress(&longer, LENGTH_MAX).is_err(), "{:?} followed by a byte", format);
            for bit in 0..frame.len() * 8 {
                let mut flipped = frame.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                if let Ok(found) = format.decompress(&flipped, LENGTH_MAX) {
                    // A bit of a foreign header may mean nothing for the bytes.
                    prop_assert!(found == text && format != Compression::Token, "{:?} bit {}", format, bit);
                }
            }
        }
    }
}

#[test]
fn long_inputs_of_every_kind_come_back_and_repeated_ones_get_small() {
    let mut random = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 56) as u8
    })
    .take(300_000)
    .collect();
    comes_back(&noise);
    comes_back(&noise[..65_535]);
    comes_back(&noise[..65_536]);
    comes_back(&[&noise[..65_535], &noise[..65_535]].concat());
    comes_back(&[&noise[..65_536], &noise[..65_536]].concat());
    let zeros = comes_back(&vec![0; 1_000_000]);
    assert!(zeros.iter().all(|length| *length < 5_000), "{zeros:?}");
    let ticks: Vec<u8> = (0..20_000_u64)
        .flat_map(|n| [1_700_000_000_000 + n * 3, 7, 100 + n % 5, n % 13].map(u64::to_le_bytes))
        .flatten()
        .collect();
    let lengths = comes_back(&ticks);
    assert!(lengths.iter().all(|length| *length < ticks.len() * 2 / 3), "{lengths:?} of {}", ticks.len());
}

#[test]
fn the_bound_of_tokens_is_reached_by_noise_and_never_passed() {
    assert_eq!(token::compress_bound(0), 17);
    assert_eq!(Compression::Token.compress(b"").unwrap().len(), 17);
    assert_eq!(Compression::Token.compress(b"abc").unwrap().len(), token::compress_bound(3));
    // Copies that are just worth it, each behind one literal.
    let mut bytes = b"0123456789".to_vec();
    for separator in 0..200_u8 {
        bytes.push(separator);
        bytes.extend_from_slice(b"0123456789");
    }
    comes_back(&bytes);
}

fn token_frame(original: u32, tokens: &[u8], content: &[u8]) -> Vec<u8> {
    let crc = relay_accel_codec::wire::nanomq::crc32(content);
    let header = [token::MAGIC, original, tokens.len() as u32, crc];
    [&header.map(u32::to_le_bytes).concat(), tokens].concat()
}

fn refused(original: u32, tokens: &[u8]) -> WireError {
    Compression::Token.decompress(&token_frame(original, tokens, b""), LENGTH_MAX).unwrap_err()
}

#[test]
fn tokens_that_lie_are_refused_where_they_stand() {
    let sound = [0, 2, 0, b'a', b'b', 1, 2, 0, 5, 0, 2];
    assert_eq!(Compression::Token.decompress(&token_frame(7, &sound, b"abababa"), 7).as_deref(), Ok(&b"abababa"[..]));
    for (original, tokens, field, offset) in [
        (1, &[3][..], "token", 16),
        (1, &[], "token", 16),
        (1, &[0, 1], "length", 17),
        (1, &[0, 2, 0, 7, 7, 2], "length", 17),
        (1, &[0, 0, 0, 2], "length", 17),
        (2, &[0, 2, 0, 7], "literals", 19),
        (9, &[1, 1, 0, 1, 0, 2], "offset", 17),
        (9, &[0, 1, 0, 7, 1, 2, 0, 1, 0, 2], "offset", 21),
        (9, &[0, 1, 0, 7, 1, 0, 0, 1, 0, 2], "offset", 21),
        (9, &[0, 1, 0, 7, 1, 1, 0, 9, 0, 2], "length", 23),
        (9, &[0, 1, 0, 7, 2], "original", 4),
        (1, &[0, 1, 0, 7, 2, 2], "end", 20),
        (1, &[0, 1, 0, 7], "token", 20),
    ] {
        let error = refused(original, tokens);
        assert_eq!((error.field, error.offset), (field, offset), "{tokens:?}: {error}");
    }
    let error = refused(1, &[0, 1, 0, 7, 2]);
    assert_eq!((error.fault, error.field), (Fault::Checksum, "crc32"));
}

#[test]
fn a_bomb_is_refused_before_memory_is_taken_for_it() {
    assert_eq!(refused(u32::MAX, &[2; 200]).field, "original");
    assert_eq!(refused(2 * 65_535 + 1, &[2; 5]).field, "original");
    assert_eq!(refused(65_536, &[2; 4]).field, "original");
    for format in built_in() {
        let frame = format.compress(&[0; 1_000]).unwrap();
        let error = format.decompress(&frame, 999).unwrap_err();
        assert_eq!(error.field, "original", "{format:?}");
    }
}

#[test]
fn frames_of_another_format_are_refused_by_name() {
    for format in built_in() {
        for other in built_in().filter(|other| *other != format) {
            let frame = other.compress(&[7; 100]).unwrap();
            assert_eq!(format.decompress(&frame, 100).unwrap_err().field, "magic", "{format:?} {other:?}");
        }
    }
    assert_eq!(Compression::of_frame(b"ABCD"), None);
    assert_eq!(Compression::of_frame(b""), None);
    assert_eq!(Compression::ALL.map(Compression::name), ["token", "lz4", "zstd"]);
}
