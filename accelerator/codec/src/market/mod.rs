//! Market messages: protobuf's bytes into records of Simple Binary Encoding and back, without an object between.
//!
//! ```text
//! 0        1                        9
//! +--------+------------------------+-------------+-----------------------------+
//! |  0x02  | block_length, template | block       | texts: u16 length, UTF-8    |   little-endian
//! |        | schema 2, version: u16 | (forms.rs)  | in the order of the schema  |
//! +--------+------------------------+-------------+-----------------------------+
//! ```
//!
//! [`Message`] and [`Record`] are for whoever looks the ticker up between reading and writing, the functions for the rest.
//! Specification: `proto/spec/0018-market-data-in-sbe.md`; messages: `proto/relay/protocol/v1/market.proto`. What is protobuf
//! and what is none is judged as google.protobuf's own parser (upb) does it; what is written, as it writes it.
//!
//! ```
//! use relay_accel_codec::market::{self, Head};
//!
//! let tick = [0x0a, 2, b'4', b'2', 0x12, 1, b'T', 0x20, 7]; // trade_id "42", ticker "T", price 7
//! assert_eq!(market::ticker(4, &tick)?, "T");
//! let mut record = Vec::new();
//! market::to_sbe(4, &tick, 1 << 32 | 1, &mut record)?;
//! assert_eq!(market::head(&record)?, Head::Message { type_id: 4, symbol_id: 1 << 32 | 1 });
//! let mut again = Vec::new();
//! market::to_protobuf(&record, "T", &mut again)?;
//! assert_eq!(again, tick);
//! # Ok::<(), market::MarketError>(())
//! ```

mod fault;
mod forms;
mod message;
mod protobuf;
mod record;
mod writing;

pub use fault::{MarketError, Problem};
pub use message::Message;
pub use record::{Head, Record};

/// The ticker of a message in protobuf; empty where it has none.
///
/// # Errors
/// [`MarketError::NoForm`], [`MarketError::Protobuf`].
pub fn ticker(type_id: u32, protobuf: &[u8]) -> Result<&str, MarketError> {
    Message::new(type_id, protobuf).map(|message| message.ticker())
}

/// Append the record of a message in protobuf. Fields that are unknown are left out.
///
/// # Errors
/// [`MarketError::NoForm`], [`MarketError::Protobuf`], [`MarketError::Unfit`]; `out` is as it was then.
pub fn to_sbe(type_id: u32, protobuf: &[u8], symbol_id: u64, out: &mut Vec<u8>) -> Result<(), MarketError> {
    Message::new(type_id, protobuf)?.write_sbe(symbol_id, out)
}

/// Append the record that says a ticker's number.
///
/// # Errors
/// [`MarketError::Unfit`]; `out` is as it was then.
pub fn define(symbol_id: u64, epoch: u64, ticker: &str, out: &mut Vec<u8>) -> Result<(), MarketError> {
    let mut block = [0; 16];
    block[..8].copy_from_slice(&symbol_id.to_le_bytes());
    block[8..].copy_from_slice(&epoch.to_le_bytes());
    record::put(&forms::DEFINITION, &block, &[ticker], out)
}

/// What a record is. All its lengths and texts are checked; bytes behind it are passed over.
///
/// # Errors
/// [`MarketError::Record`].
pub fn head(record: &[u8]) -> Result<Head<'_>, MarketError> {
    Record::new(record).map(|record| record.head())
}

/// Append the message of a record in protobuf, the very bytes that protobuf writes for an equal message.
///
/// # Errors
/// [`MarketError::Record`], also for a definition and for an enum that is null; `out` is as it was then.
pub fn to_protobuf(record: &[u8], ticker: &str, out: &mut Vec<u8>) -> Result<(), MarketError> {
    Record::new(record)?.write_protobuf(ticker, out)
}
