//! Mutated records and numbers: nothing panics or reads past an end, and what is read can be written again.
//!
//! A run is made again by its seed: `SBE_FUZZ_SEED=7 SBE_FUZZ_INPUTS=1000 cargo test -p relay-accel-codec --test fuzz_records`.

mod fuzzing;

use fuzzing::{Dice, setting};
use relay_accel_codec::decimal::{Decimal64, Rounding};
use relay_accel_codec::records::{BookSide, FixedRecord, OrderKind, OrderMessage, OrderSide, RecordError, TickMessage};

fn mutated(dice: &mut Dice, seed: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..dice.roll(4) {
        let at = dice.roll(bytes.len());
        match dice.roll(8) {
            0..=3 => bytes[at] ^= 1 << dice.roll(8),
            4 | 5 => bytes[at] = [0, 1, 2, 0x7f, 0x80, 0xff][dice.roll(6)],
            6 => bytes.truncate(at + 1),
            _ => bytes.insert(at, dice.roll(256) as u8),
        }
    }
    bytes
}

/// Whether the bytes were records; those are written back, and only padding may differ.
fn judged<R: FixedRecord>(bytes: &[u8]) -> bool {
    match R::decode_all(bytes) {
        Ok(records) => {
            let mut again = vec![0xcc; bytes.len()];
            assert_eq!(R::encode_all(&records, &mut again), Ok(bytes.len()));
            for (old, new) in bytes.chunks(R::LENGTH).zip(again.chunks(R::LENGTH)) {
                for place in R::FIELDS {
                    let field = place.offset..place.offset + place.length;
                    assert_eq!(old[field.clone()], new[field]);
                }
            }
            true
        }
        Err(RecordError::NotWhole { length, actual }) => {
            assert!(actual % length != 0);
            false
        }
        Err(RecordError::Unknown { offset, value, .. }) => {
            assert_eq!(bytes[offset], value);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn mutated_records_are_read_or_refused() {
    let mut dice = Dice(setting("SBE_FUZZ_SEED", 0x5eed) | 1);
    let inputs = setting("SBE_FUZZ_INPUTS", 20_000);
    let tick = TickMessage { timestamp_ns: 1, symbol_id: 7, price: -5, volume: 10, side: BookSide::Ask };
    let (side, kind) = (OrderSide::Sell, OrderKind::Cancel);
    let order = OrderMessage { timestamp_ns: 1, order_id: 2, symbol_id: 7, price: -5, quantity: 10, side, kind };
    let (mut ticks, mut orders) = ([0; 64], [0; 96]);
    TickMessage::encode_all(&[tick; 2], &mut ticks).unwrap();
    OrderMessage::encode_all(&[order; 2], &mut orders).unwrap();
    let mut whole = 0;
    for _ in 0..inputs {
        whole += u64::from(judged::<TickMessage>(&mutated(&mut dice, &ticks)));
        whole += u64::from(judged::<OrderMessage>(&mutated(&mut dice, &orders)));
    }
    assert!(whole > inputs / 2 && whole < 2 * inputs, "{whole} of {inputs} pairs were read");
}

#[test]
fn mutated_numbers_are_exact_rounded_or_refused() {
    let mut dice = Dice(setting("SBE_FUZZ_SEED", 0x5eed) | 1);
    let inputs = setting("SBE_FUZZ_INPUTS", 20_000);
    let seeds =
        ["67000.25", "-0.0000001", "1E-7", "922337203685.4775806", "12345678901234567890123456789012345678901234E-30"];
    let (mut exact, mut rounded) = (0_u64, 0_u64);
    for _ in 0..inputs {
        let format = Decimal64::new(-(dice.roll(19) as i32)).unwrap();
        let mut bytes = seeds[dice.roll(seeds.len())].as_bytes().to_vec();
        for _ in 0..dice.roll(3) {
            let at = dice.roll(bytes.len());
            bytes[at] = b"0123456789.-+eE"[dice.roll(15)];
        }
        let text = String::from_utf8(bytes).unwrap();
        let nearest = format.parse(&text, Some(Rounding::HalfEven));
        if let Ok(mantissa) = format.parse(&text, None) {
            exact += 1;
            assert_eq!(nearest, Ok(mantissa), "{text}");
            assert_eq!(format.parse(&format.text(mantissa).unwrap(), None), Ok(mantissa), "{text}");
        } else if let Ok(nearest) = nearest {
            rounded += 1;
            let up = format.parse(&text, Some(Rounding::Ceiling)).unwrap_or(nearest);
            let down = format.parse(&text, Some(Rounding::Floor)).unwrap_or(nearest);
            assert!((down..=up).contains(&nearest) && up - down <= 1, "{text}");
        }
    }
    assert!(exact > inputs / 10 && rounded > inputs / 20, "{exact} exact and {rounded} rounded of {inputs}");
}
