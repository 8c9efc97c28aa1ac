//! Codecs of binary layouts. No Python, no clock, no thread; only [`sbe::Folder`] touches files.
//!
//! | module | what it is |
//! |---|---|
//! | [`decimal`] | Decimal64: decimal numbers as an i64 mantissa with a constant exponent |
//! | [`market`] | market messages: protobuf's bytes ↔ records of SBE |
//! | [`records`] | fixed records: packed structs with checked offsets, `TickMessage` and `OrderMessage` |
//! | [`sbe`] | Simple Binary Encoding: XML schema → checked layout → views and encoder |
//! | [`wire`] | frames and headers of other messaging systems, and compressed frames |
//!
//! Layouts: `proto/spec/0014-sbe.md` to `0018-market-data-in-sbe.md`.

pub mod decimal;
pub mod market;
pub mod records;
pub mod sbe;
pub mod wire;
