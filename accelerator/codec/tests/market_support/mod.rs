//! Market messages in protobuf as protobuf writes them, made by dice: the messages' fields once more, apart from the codec.

use crate::fuzzing::Dice;

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Long,
    Short,
    Enum,
    Truth,
    Text,
    Ticker,
    Flags,
    Stamp,
}
use Kind::{Enum, Flags, Long, Short, Stamp, Text, Ticker, Truth};

/// Number, kind, and whether it is optional.
type Fields = &'static [(u32, Kind, bool)];

/// By type id.
pub(crate) const MESSAGES: [(u32, Fields); 4] = [(4, TICK), (5, BAR), (13, GAP), (30, BEAT)];

const TICK: Fields = &[
    (1, Text, false),
    (2, Ticker, false),
    (3, Long, false),
    (4, Long, false),
    (5, Long, false),
    (6, Long, true),
    (7, Truth, false),
    (8, Truth, true),
    (9, Long, true),
    (10, Flags, true),
    (11, Long, false),
    (12, Short, false),
    (13, Short, false),
    (14, Truth, false),
    (15, Stamp, true),
    (16, Short, true),
];

const BAR: Fields = &[
    (1, Ticker, false),
    (2, Long, false),
    (3, Short, false),
    (4, Long, false),
    (5, Long, false),
    (6, Long, false),
    (7, Long, false),
    (8, Text, false),
    (9, Text, true),
    (10, Text, true),
    (11, Text, true),
    (12, Long, true),
    (13, Truth, false),
    (14, Short, false),
    (15, Stamp, true),
    (16, Enum, false),
    (17, Text, true),
    (18, Text, true),
    (19, Short, false),
    (20, Truth, false),
];

const GAP: Fields = &[
    (1, Ticker, false),
    (2, Long, false),
    (3, Long, false),
    (4, Text, false),
    (5, Text, false),
    (6, Enum, false),
    (7, Enum, false),
    (15, Stamp, true),
];

const BEAT: Fields = &[
    (1, Enum, false),
    (2, Text, false),
    (3, Long, false),
    (4, Long, false),
    (5, Ticker, true),
    (6, Long, true),
    (7, Text, true),
    (8, Enum, false),
    (9, Short, false),
    (15, Stamp, true),
];

const TEXTS: [&str; 9] =
    ["", "0", "007", "42", "18446744073709551615", "18446744073709551616", "+1", "T-ß-€-𝄞", "12345.678"];
pub(crate) const TICKER: &str = "BTC/USDT.BINANCE";

/// A message, and where its fields end.
pub(crate) struct Made {
    pub(crate) type_id: u32,
    pub(crate) protobuf: Vec<u8>,
    pub(crate) ends: Vec<usize>,
    /// Empty where it has none.
    pub(crate) ticker: &'static str,
}

pub(crate) fn made(dice: &mut Dice) -> Made {
    let (type_id, fields) = MESSAGES[dice.roll(MESSAGES.len())];
    let mut made = Made { type_id, protobuf: Vec::new(), ends: vec![0], ticker: "" };
    for &(number, kind, is_optional) in fields {
        if dice.roll(4) == 0 {
            continue;
        }
        let (wire, bytes) = value(dice, kind);
        if is_optional || bytes != [0] {
            varint(u64::from(number << 3 | wire), &mut made.protobuf);
            made.protobuf.extend(bytes);
            made.ends.push(made.protobuf.len());
            made.ticker = if kind == Ticker { TICKER } else { made.ticker };
        }
    }
    made
}

fn value(dice: &mut Dice, kind: Kind) -> (u32, Vec<u8>) {
    let mut bytes = Vec::new();
    match kind {
        Long => varint(number(dice), &mut bytes),
        Short => varint(number(dice) & 0xffff_ffff, &mut bytes),
        Enum => varint(dice.roll(255) as u64, &mut bytes),
        Truth => varint(dice.roll(2) as u64, &mut bytes),
        Text => text(TEXTS[dice.roll(TEXTS.len())].as_bytes(), &mut bytes),
        Ticker => text(TICKER.as_bytes(), &mut bytes),
        Flags => text(&inner(dice, 4, |dice| dice.roll(2) as u64), &mut bytes),
        Stamp => text(&inner(dice, 3, number), &mut bytes),
    }
    (if matches!(kind, Text | Ticker | Flags | Stamp) { 2 } else { 0 }, bytes)
}

fn inner(dice: &mut Dice, fields: u64, value: impl Fn(&mut Dice) -> u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 1..=fields {
        let value = value(dice);
        if value != 0 {
            varint(number << 3, &mut bytes);
            varint(value, &mut bytes);
        }
    }
    bytes
}

/// Of any length.
fn number(dice: &mut Dice) -> u64 {
    dice.roll(2);
    dice.0 >> dice.roll(65).min(63)
}

pub(crate) fn text(value: &[u8], out: &mut Vec<u8>) {
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

pub(crate) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
