//! Vectors in `proto/golden/market`: the records and the messages in protobuf that belong together, each made of the other.
#![allow(missing_docs)]

use std::fs;
use std::path::PathBuf;

use relay_accel_codec::market::{Head, define, head, ticker, to_protobuf, to_sbe};

/// One of the index: JSON with one member a line.
struct Row {
    file: String,
    record: Vec<u8>,
    /// None of a definition.
    protobuf: Option<Vec<u8>>,
    ticker: String,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../proto/golden/market")
}

fn member(row: &str, name: &str) -> Option<String> {
    let (_, rest) = row.split_once(&format!("\"{name}\": \""))?;
    Some(rest.split_once('"')?.0.to_owned())
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn rows() -> Vec<Row> {
    let index = fs::read_to_string(folder().join("index.json")).unwrap();
    let parts = index.split("\"file\":").skip(1).map(|part| format!("\"file\":{part}"));
    parts
        .map(|part| Row {
            file: member(&part, "file").unwrap(),
            record: bytes(&member(&part, "record").unwrap()),
            protobuf: member(&part, "protobuf").map(|hex| bytes(&hex)),
            ticker: member(&part, "ticker").unwrap_or_default(),
        })
        .collect()
}

#[test]
fn the_files_are_the_records_without_their_version() {
    let rows = rows();
    assert!(rows.len() >= 8);
    for row in rows {
        assert_eq!(row.record[0], 2);
        assert_eq!(fs::read(folder().join(&row.file)).unwrap(), row.record[1..], "{}", row.file);
    }
}

#[test]
fn golden_messages_give_the_golden_records_and_the_other_way_round() {
    for row in rows() {
        let (mut record, mut plain) = (Vec::new(), Vec::new());
        match (head(&row.record).unwrap(), row.protobuf) {
            (Head::Message { type_id, symbol_id }, Some(protobuf)) => {
                to_sbe(type_id.into(), &protobuf, symbol_id, &mut record).unwrap();
                to_protobuf(&row.record, &row.ticker, &mut plain).unwrap();
                assert_eq!(ticker(type_id.into(), &protobuf), Ok(&*row.ticker), "{}", row.file);
                assert_eq!(plain, protobuf, "{}", row.file);
            }
            (Head::Definition { symbol_id, epoch, ticker }, None) => {
                define(symbol_id, epoch, ticker, &mut record).unwrap();
                assert_eq!(ticker, row.ticker, "{}", row.file);
            }
            (head, _) => panic!("{}: {head:?}", row.file),
        }
        assert_eq!(record, row.record, "{}", row.file);
    }
}
