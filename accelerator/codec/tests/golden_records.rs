//! Vectors in `proto/golden/records`: this library makes them byte for byte, and reads from them what their index says.
//!
//! `UPDATE_GOLDEN=1 cargo test -p relay-accel-codec --test golden_records` writes them anew.
#![allow(missing_docs)]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use relay_accel_codec::decimal::Decimal64;
use relay_accel_codec::records::{BookSide, FixedRecord, OrderKind, OrderMessage, OrderSide, TickMessage};

const TICKS: [TickMessage; 4] = [
    TickMessage {
        timestamp_ns: 1_700_000_000_000_000_000,
        symbol_id: 7,
        price: 670_002_500_000,
        volume: 10,
        side: BookSide::Bid,
    },
    TickMessage { timestamp_ns: 1, symbol_id: 0x0102_0304, price: -1, volume: 0x0102, side: BookSide::Ask },
    TickMessage { timestamp_ns: u64::MAX, symbol_id: u32::MAX, price: i64::MIN, volume: u64::MAX, side: BookSide::Ask },
    TickMessage { timestamp_ns: 0, symbol_id: 0, price: i64::MAX, volume: 0, side: BookSide::Bid },
];

const ORDERS: [OrderMessage; 3] = [
    OrderMessage {
        timestamp_ns: 1_700_000_000_000_000_000,
        order_id: 0x0102_0304_0506_0708,
        symbol_id: 7,
        price: 670_002_500_000,
        quantity: 10,
        side: OrderSide::Buy,
        kind: OrderKind::Limit,
    },
    OrderMessage {
        timestamp_ns: u64::MAX,
        order_id: u64::MAX,
        symbol_id: u32::MAX,
        price: i64::MIN,
        quantity: u64::MAX,
        side: OrderSide::Sell,
        kind: OrderKind::Market,
    },
    OrderMessage {
        timestamp_ns: 0,
        order_id: 1,
        symbol_id: 0,
        price: i64::MAX,
        quantity: 0,
        side: OrderSide::Sell,
        kind: OrderKind::Cancel,
    },
];

/// Exponent, text that is given, what it comes to: its shortest text, or why it is refused.
const DECIMALS: [(i32, &str, Result<&str, &str>); 20] = [
    (-7, "67000.25", Ok("67000.25")),
    (-7, "-0.0000001", Ok("-0.0000001")),
    (-7, "-0.000", Ok("0")),
    (-7, "1E-7", Ok("0.0000001")),
    (-7, "12.5e+3", Ok("12500")),
    (-7, "922337203685.4775806", Ok("922337203685.4775806")),
    (-7, "-922337203685.4775808", Ok("-922337203685.4775808")),
    (-18, "9.2", Ok("9.2")),
    (0, "9223372036854775806", Ok("9223372036854775806")),
    (-2, "000125.2500000000000000000000000000000000000000", Ok("125.25")),
    (-7, "0.00000001", Err("inexact")),
    (0, "0.5", Err("inexact")),
    (-7, "922337203685.4775807", Err("range")),
    (-18, "10", Err("range")),
    (-7, "1E999999999999", Err("range")),
    (-7, "", Err("text")),
    (-7, "+1", Err("text")),
    (-7, ".5", Err("text")),
    (-7, "1_000", Err("text")),
    (-7, "NaN", Err("text")),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../proto/golden/records")
}

fn bytes_of<R: FixedRecord>(records: &[R]) -> Vec<u8> {
    let mut bytes = vec![0xcc; records.len() * R::LENGTH];
    R::encode_all(records, &mut bytes).unwrap();
    bytes
}

fn decimal_bytes() -> Vec<u8> {
    mantissas().flat_map(i64::to_le_bytes).collect()
}

/// Those of the numbers that fit, then null.
fn mantissas() -> impl Iterator<Item = i64> {
    let fitting = DECIMALS.iter().filter(|(_, _, outcome)| outcome.is_ok());
    fitting
        .map(|(exponent, text, _)| Decimal64::new(*exponent).unwrap().parse(text, None).unwrap())
        .chain([Decimal64::NULL])
}

fn lines<T>(items: &[T], line: impl Fn(&T) -> String) -> String {
    items.iter().map(line).collect::<Vec<_>>().join(",\n  ")
}

fn index() -> String {
    let ticks = lines(&TICKS, |tick| {
        format!(
            r#"{{"timestamp_ns": {}, "symbol_id": {}, "price": {}, "volume": {}, "side": "{:?}"}}"#,
            tick.timestamp_ns, tick.symbol_id, tick.price, tick.volume, tick.side
        )
    });
    let orders = lines(&ORDERS, |order| {
        let mut text = format!(r#"{{"timestamp_ns": {}, "order_id": {}, "#, order.timestamp_ns, order.order_id);
        write!(text, r#""symbol_id": {}, "price": {}, "#, order.symbol_id, order.price).unwrap();
        write!(text, r#""quantity": {}, "side": "{:?}", "kind": "{:?}"}}"#, order.quantity, order.side, order.kind)
            .unwrap();
        text
    });
    let decimals = lines(&DECIMALS, |(exponent, text, outcome)| {
        let outcome = match outcome {
            Ok(shortest) => format!(r#""shortest": "{shortest}""#),
            Err(reason) => format!(r#""refused": "{reason}""#),
        };
        format!(r#"{{"exponent": {exponent}, "text": "{text}", {outcome}}}"#)
    });
    format!(
        "{{\n \"ticks.bin\": [\n  {ticks}\n ],\n \"orders.bin\": [\n  {orders}\n ],\n \"decimals.bin\": [\n  {decimals}\n ]\n}}\n"
    )
}

#[test]
fn the_golden_files_are_what_this_library_writes_and_reads() {
    let files = [("ticks.bin", bytes_of(&TICKS)), ("orders.bin", bytes_of(&ORDERS)), ("decimals.bin", decimal_bytes())];
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(folder()).unwrap();
        fs::write(folder().join("index.json"), index()).unwrap();
        for (name, bytes) in &files {
            fs::write(folder().join(name), bytes).unwrap();
        }
    }
    assert_eq!(fs::read_to_string(folder().join("index.json")).unwrap(), index());
    let read = |name| fs::read(folder().join(name)).unwrap();
    for (name, bytes) in files {
        assert_eq!(read(name), bytes, "{name}");
    }
    assert_eq!(TickMessage::decode_all(&read("ticks.bin")).unwrap(), TICKS);
    assert_eq!(OrderMessage::decode_all(&read("orders.bin")).unwrap(), ORDERS);
}

#[test]
fn golden_decimals_are_exact_or_refused_for_their_reason() {
    use relay_accel_codec::decimal::DecimalError;
    for (exponent, text, expected) in DECIMALS {
        let format = Decimal64::new(exponent).unwrap();
        let found = format.parse(text, None).map(|mantissa| format.text(mantissa).unwrap());
        let found = found.map_err(|error| match error {
            DecimalError::Text(_) => "text",
            DecimalError::Inexact { .. } => "inexact",
            DecimalError::Range { .. } => "range",
            DecimalError::Exponent(_) => "exponent",
        });
        assert_eq!(found.as_deref().map_err(|reason| *reason), expected, "{text}");
    }
}
