//! Market messages: protobuf and SBE say the same, what was cut off or does not fit is refused, nothing is written then.
#![allow(missing_docs)]

#[expect(dead_code, reason = "these tests have no settings")]
mod fuzzing;
mod market_support;

use fuzzing::Dice;
use market_support::{TICKER, made, text, varint};
use proptest::prelude::*;
use relay_accel_codec::market::{Head, MarketError, Problem, define, head, ticker, to_protobuf, to_sbe};

const ID: u64 = 7 << 32 | 1;

fn record_of(type_id: u32, protobuf: &[u8]) -> Result<Vec<u8>, MarketError> {
    let mut record = vec![0xcc];
    let refused = to_sbe(type_id, protobuf, ID, &mut record);
    assert_eq!(record.remove(0), 0xcc);
    assert!(refused.is_ok() || record.is_empty(), "nothing is written of what is refused");
    refused.map(|()| record)
}

fn protobuf_of(record: &[u8], ticker: &str) -> Result<Vec<u8>, MarketError> {
    let mut protobuf = vec![0xcc];
    let refused = to_protobuf(record, ticker, &mut protobuf);
    assert_eq!(protobuf.remove(0), 0xcc);
    assert!(refused.is_ok() || protobuf.is_empty(), "nothing is written of what is refused");
    refused.map(|()| protobuf)
}

fn field(number: u32, wire: u32, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(u64::from(number << 3 | wire), &mut bytes);
    if wire == 2 {
        text(value, &mut bytes);
    } else {
        bytes.extend_from_slice(value);
    }
    bytes
}

fn is_protobuf(type_id: u32, protobuf: &[u8]) -> bool {
    !matches!(record_of(type_id, protobuf), Err(MarketError::Protobuf(..)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn messages_come_back_byte_for_byte(seed in 1..u64::MAX) {
        let made = made(&mut Dice(seed));
        let record = record_of(made.type_id, &made.protobuf).unwrap();
        prop_assert_eq!(ticker(made.type_id, &made.protobuf), Ok(made.ticker));
        prop_assert_eq!(head(&record), Ok(Head::Message { type_id: made.type_id as u8, symbol_id: ID }));
        prop_assert_eq!(protobuf_of(&record, made.ticker).unwrap(), made.protobuf);
    }

    #[test]
    fn definitions_come_back(symbol_id: u64, epoch: u64, ticker in ".{0,40}") {
        let mut record = Vec::new();
        define(symbol_id, epoch, &ticker, &mut record).unwrap();
        prop_assert_eq!(head(&record), Ok(Head::Definition { symbol_id, epoch, ticker: &ticker }));
        prop_assert!(matches!(protobuf_of(&record, ""), Err(MarketError::Record(_))));
    }

    #[test]
    fn protobuf_cut_inside_of_a_field_is_refused_and_between_fields_it_is_a_message(seed in 1..u64::MAX) {
        let made = made(&mut Dice(seed));
        for cut in 0..=made.protobuf.len() {
            let part = &made.protobuf[..cut];
            prop_assert_eq!(is_protobuf(made.type_id, part), made.ends.contains(&cut), "{}", cut);
            prop_assert_eq!(ticker(made.type_id, part).is_ok(), made.ends.contains(&cut), "{}", cut);
        }
    }

    #[test]
    fn a_record_cut_anywhere_is_refused_and_bytes_behind_it_are_passed_over(seed in 1..u64::MAX) {
        let made = made(&mut Dice(seed));
        let mut record = record_of(made.type_id, &made.protobuf).unwrap();
        for cut in 0..record.len() {
            prop_assert!(matches!(head(&record[..cut]), Err(MarketError::Record(_))));
            prop_assert!(protobuf_of(&record[..cut], TICKER).is_err());
        }
        record.extend(*b"more");
        prop_assert_eq!(protobuf_of(&record, made.ticker).unwrap(), made.protobuf);
    }

    #[test]
    fn a_flipped_bit_gives_another_message_or_is_refused(seed in 1..u64::MAX, at: prop::sample::Index, bit in 0..8_u32) {
        let made = made(&mut Dice(seed));
        let mut record = record_of(made.type_id, &made.protobuf).unwrap();
        let at = at.index(record.len());
        record[at] ^= 1 << bit;
        if let Ok(protobuf) = protobuf_of(&record, made.ticker) {
            prop_assert!(head(&record).is_ok());
            prop_assert!(matches!(record_of(u32::from(record[3]), &protobuf), Ok(_) | Err(MarketError::Unfit(..))));
        }
    }

    #[test]
    fn fields_in_any_order_with_unknown_ones_between_give_the_same_record(seed in 1..u64::MAX) {
        let dice = &mut Dice(seed);
        let made = made(dice);
        let mut fields: Vec<&[u8]> = made.ends.windows(2).map(|ends| &made.protobuf[ends[0]..ends[1]]).collect();
        for at in (1..fields.len()).rev() {
            fields.swap(at, dice.roll(at + 1));
        }
        let unknown = [
            field(100, 0, &[0x80, 1]),
            field(100, 1, &[1; 8]),
            field(100, 2, b"text"),
            [field(100, 3, &field(1, 3, &[])), field(1, 4, &[]), field(100, 4, &[])].concat(),
            // Known by its number, but in another wire type.
            field(15, 0, &[1]),
            field(3, 5, &[1; 4]),
        ];
        let mixed: Vec<u8> = fields.iter().flat_map(|one| [one, &unknown[dice.roll(6)][..]].concat()).collect();
        prop_assert_eq!(record_of(made.type_id, &mixed), record_of(made.type_id, &made.protobuf));
    }
}

#[test]
fn the_last_one_of_a_field_counts_and_messages_inside_are_merged() {
    let twice = [field(4, 0, &[9]), field(4, 0, &[7]), field(15, 2, &[8, 1, 16, 2]), field(15, 2, &[16, 3])].concat();
    let once = [field(4, 0, &[7]), field(15, 2, &[8, 1, 16, 3])].concat();
    assert_eq!(record_of(4, &twice), record_of(4, &once));
    let unfit = [field(6, 0, &[0xff, 1]), field(6, 0, &[1])].concat();
    assert_eq!(record_of(13, &unfit), record_of(13, &field(6, 0, &[1])), "a number that is replaced need not fit");
}

#[test]
fn numbers_are_cut_to_their_width() {
    let high = [0x81, 0x80, 0x80, 0x80, 0x10];
    assert_eq!(record_of(4, &field(12, 0, &high)), record_of(4, &field(12, 0, &[1])));
    assert_eq!(record_of(13, &field(6, 0, &high)), record_of(13, &field(6, 0, &[1])));
    assert_eq!(record_of(4, &field(7, 0, &[0x80, 0x80, 0x80, 0x80, 0x10])), record_of(4, &field(7, 0, &[1])));
    let tenth = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    assert_eq!(protobuf_of(&record_of(4, &field(3, 0, &tenth)).unwrap(), "").unwrap().len(), 11);
}

#[test]
fn what_no_parser_of_protobuf_takes_is_refused() {
    let groups = |count: u32| [vec![0x1b; count as usize], vec![0x1c; count as usize]].concat();
    assert!(is_protobuf(4, &groups(100)) && is_protobuf(4, &field(15, 2, &groups(99))));
    let refused: [Vec<u8>; 12] = [
        groups(101),
        field(15, 2, &groups(100)),
        field(3, 0, &[0x80; 11]),
        vec![0x98, 0x80, 0x80, 0x80, 0x80, 0, 1],
        vec![0x98, 0x80, 0x80, 0x80, 0x10, 1],
        vec![0x12, 0x81, 0x80, 0x80, 0x80, 0x80, 0, b'A'],
        vec![0, 1],
        vec![0x1e, 0],
        vec![0x1c],
        vec![0x1b, 0x24],
        [field(2, 2, &[0xff]), field(2, 2, b"T")].concat(),
        field(15, 2, &[0, 1]),
    ];
    for protobuf in refused {
        assert!(matches!(record_of(4, &protobuf), Err(MarketError::Protobuf("Tick", _))), "{protobuf:x?}");
    }
}

#[test]
fn what_does_not_fit_is_told_with_its_place() {
    let long = field(1, 2, &vec![b'x'; 65_535]);
    let error = record_of(4, &long).unwrap_err().to_string();
    let expected = "trade_id at byte 111: expected at most 65,534 bytes, got 65535";
    assert_eq!(error, format!("Tick does not fit SBE: {expected}; send it as protobuf"));
    assert!(record_of(4, &field(1, 2, &vec![b'x'; 65_534])).is_ok());
    let problem = Problem { field: "cause", offset: 50, expected: "an enum's number of 0 to 254", got: -1 };
    let minus = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(record_of(13, &field(6, 0, &minus)), Err(MarketError::Unfit("Gap", problem)));
    assert!(record_of(13, &field(6, 0, &[0xfe, 1])).is_ok());
    assert!(record_of(13, &field(6, 0, &[0xff, 1])).is_err());
    assert!(define(1, 1, &"x".repeat(65_535), &mut Vec::new()).is_err());
    assert_eq!(record_of(6, &[]), Err(MarketError::NoForm(6)));
    assert_eq!(ticker(256, &[]), Err(MarketError::NoForm(256)));
}

#[test]
fn an_enum_that_is_null_is_no_message_and_yet_has_a_head() {
    let mut record = record_of(13, &[]).unwrap();
    record[9 + 50] = 255;
    assert!(head(&record).is_ok());
    let error = protobuf_of(&record, "").unwrap_err().to_string();
    assert_eq!(error, "market message in SBE: cause at byte 50: expected an enum's number of 0 to 254, got 255");
}

#[test]
fn a_longer_block_of_a_later_version_is_read_and_a_shorter_one_is_not() {
    let record = record_of(4, &field(2, 2, b"T")).unwrap();
    let mut later = record.clone();
    later[1] += 2;
    later[7] = 1;
    later.splice(9 + 102..9 + 102, [9, 9]);
    assert_eq!(protobuf_of(&later, "T"), protobuf_of(&record, "T"));
    let mut shorter = record;
    shorter[1] -= 1;
    assert!(head(&shorter).is_err());
}
