//! Mutated market messages: nothing panics or reads past an end, and what is read can be written again.
//!
//! A run is made again by its seed: `SBE_FUZZ_SEED=7 SBE_FUZZ_INPUTS=1000 cargo test -p relay-accel-codec --test fuzz_market`.

mod fuzzing;
mod market_support;

use fuzzing::{Dice, setting};
use market_support::{TICKER, made};
use relay_accel_codec::market::{Head, MarketError, head, ticker, to_protobuf, to_sbe};

fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>) {
    for _ in 0..dice.roll(4) {
        let at = dice.roll(bytes.len() + 1);
        match dice.roll(8) {
            _ if at == bytes.len() => bytes.push(dice.roll(256) as u8),
            0..=3 => bytes[at] ^= 1 << dice.roll(8),
            4 | 5 => bytes[at] = [0, 1, 0x1b, 0x1c, 0x7f, 0x80, 0xff][dice.roll(7)],
            6 => bytes.truncate(at),
            _ => bytes.insert(at, dice.roll(256) as u8),
        }
    }
}

/// Whether bytes are a message that fits; its record says the same message when it is read again.
fn is_sent(type_id: u32, protobuf: &[u8], record: &mut Vec<u8>) -> bool {
    record.clear();
    if let Err(error) = to_sbe(type_id, protobuf, 1, record) {
        assert!(record.is_empty() && matches!(error, MarketError::Protobuf(..) | MarketError::Unfit(..)));
        return false;
    }
    assert!(std::str::from_utf8(ticker(type_id, protobuf).unwrap().as_bytes()).is_ok());
    assert_eq!(head(record), Ok(Head::Message { type_id: type_id as u8, symbol_id: 1 }));
    let (mut plain, mut again) = (Vec::new(), Vec::new());
    to_protobuf(record, TICKER, &mut plain).unwrap();
    to_sbe(type_id, &plain, 1, &mut again).unwrap();
    assert_eq!(&again, record);
    true
}

/// Whether a record is a message; protobuf's form of it has a form in SBE again.
fn is_heard(record: &[u8]) -> bool {
    let mut plain = Vec::new();
    if to_protobuf(record, TICKER, &mut plain).is_err() {
        assert!(plain.is_empty());
        return false;
    }
    let Ok(Head::Message { type_id, symbol_id }) = head(record) else { panic!("a message has a head") };
    let mut again = Vec::new();
    match to_sbe(type_id.into(), &plain, symbol_id, &mut again) {
        Ok(()) => {
            let mut plain_again = Vec::new();
            to_protobuf(&again, TICKER, &mut plain_again).unwrap();
            assert_eq!(plain_again, plain);
        }
        // A text of 65,535 bytes can be read, but is not written.
        Err(error) => assert!(matches!(error, MarketError::Unfit(..)), "{error}"),
    }
    true
}

#[test]
fn mutated_market_messages_are_converted_or_refused() {
    let mut dice = Dice(setting("SBE_FUZZ_SEED", 0x5eed) | 1);
    let inputs = setting("SBE_FUZZ_INPUTS", 20_000);
    let (mut sent, mut heard, mut record) = (0_u64, 0_u64, Vec::new());
    for _ in 0..inputs {
        let mut made = made(&mut dice);
        assert!(is_sent(made.type_id, &made.protobuf, &mut record));
        mutate(&mut dice, &mut record);
        heard += u64::from(is_heard(&record));
        mutate(&mut dice, &mut made.protobuf);
        sent += u64::from(is_sent(made.type_id, &made.protobuf, &mut record));
    }
    assert!(sent > inputs / 4 && sent < inputs, "{sent} of {inputs} were sent");
    assert!(heard > inputs / 4 && heard < inputs, "{heard} of {inputs} were heard");
}
