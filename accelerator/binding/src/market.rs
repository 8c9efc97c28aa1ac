//! Market messages between protobuf's bytes and records of SBE. The face is `relay_accel/market.py`.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use relay_accel_codec::market::{self, Head, MarketError, Message, Record};

use crate::producer::with_bytes;
use crate::sbe::{DecodeError, EncodeError};

const DEFINITION_ID: u32 = 256;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(market_ticker, module)?)?;
    module.add_function(wrap_pyfunction!(market_to_sbe, module)?)?;
    module.add_function(wrap_pyfunction!(market_to_sbe_by, module)?)?;
    module.add_function(wrap_pyfunction!(market_to_protobuf_by, module)?)?;
    module.add_function(wrap_pyfunction!(market_define, module)?)?;
    module.add_function(wrap_pyfunction!(market_head, module)?)?;
    module.add_function(wrap_pyfunction!(market_to_protobuf, module)?)
}

fn raised(error: MarketError) -> PyErr {
    let text = error.to_string();
    match error {
        MarketError::NoForm(_) => PyKeyError::new_err(text),
        MarketError::Protobuf(..) | MarketError::Record(_) => DecodeError::new_err(text),
        MarketError::Unfit(..) => EncodeError::new_err(text),
    }
}

fn made(
    py: Python<'_>,
    length: usize,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), MarketError>,
) -> PyResult<Bound<'_, PyBytes>> {
    let mut bytes = Vec::with_capacity(length);
    write(&mut bytes).map_err(raised)?;
    Ok(PyBytes::new(py, &bytes))
}

/// Return the ticker of a message in protobuf; see `relay_accel.market`.
#[pyfunction]
fn market_ticker(type_id: u32, protobuf: &Bound<'_, PyAny>) -> PyResult<String> {
    with_bytes(protobuf, |bytes| market::ticker(type_id, bytes).map(str::to_owned))?.map_err(raised)
}

/// Return the record of a message in protobuf; see `relay_accel.market`.
#[pyfunction]
fn market_to_sbe<'py>(type_id: u32, protobuf: &Bound<'py, PyAny>, symbol_id: u64) -> PyResult<Bound<'py, PyBytes>> {
    let py = protobuf.py();
    with_bytes(protobuf, |bytes| {
        made(py, bytes.len() + 128, |record| market::to_sbe(type_id, bytes, symbol_id, record))
    })?
}

/// Return the record that says a ticker's number; see `relay_accel.market`.
#[pyfunction]
fn market_define<'py>(py: Python<'py>, symbol_id: u64, epoch: u64, ticker: &str) -> PyResult<Bound<'py, PyBytes>> {
    made(py, ticker.len() + 32, |record| market::define(symbol_id, epoch, ticker, record))
}

/// Return what a record is; see `relay_accel.market`.
#[pyfunction]
fn market_head(record: &Bound<'_, PyAny>) -> PyResult<(u32, u64, u64, String)> {
    let head = with_bytes(record, |bytes| {
        market::head(bytes).map(|head| match head {
            Head::Message { type_id, symbol_id } => (type_id.into(), symbol_id, 0, String::new()),
            Head::Definition { symbol_id, epoch, ticker } => (DEFINITION_ID, symbol_id, epoch, ticker.to_owned()),
        })
    })?;
    head.map_err(raised)
}

/// Return the message of a record in protobuf; see `relay_accel.market`.
#[pyfunction]
fn market_to_protobuf<'py>(record: &Bound<'py, PyAny>, ticker: &str) -> PyResult<Bound<'py, PyBytes>> {
    let py = record.py();
    with_bytes(record, |bytes| {
        made(py, bytes.len() + ticker.len() + 32, |protobuf| market::to_protobuf(bytes, ticker, protobuf))
    })?
}

/// Return the record of a message in protobuf, by the numbers of tickers; see `relay_accel.market`.
#[pyfunction]
fn market_to_sbe_by<'py>(
    type_id: u32,
    protobuf: &Bound<'py, PyAny>,
    symbol_ids: &Bound<'py, PyDict>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = protobuf.py();
    with_bytes(protobuf, |bytes| {
        let message = Message::new(type_id, bytes).map_err(raised)?;
        let symbol_id = match message.ticker() {
            "" => 0,
            ticker => match symbol_ids.get_item(ticker)? {
                Some(number) => number.extract()?,
                None => return Ok(None),
            },
        };
        made(py, bytes.len() + 128, |record| message.write_sbe(symbol_id, record)).map(Some)
    })?
}

/// Return type id and protobuf of a record, by the tickers of numbers; see `relay_accel.market`.
#[pyfunction]
fn market_to_protobuf_by<'py>(
    record: &Bound<'py, PyAny>,
    tickers: &Bound<'py, PyDict>,
) -> PyResult<Option<(u8, Bound<'py, PyBytes>)>> {
    let py = record.py();
    with_bytes(record, |bytes| {
        let record = Record::new(bytes).map_err(raised)?;
        let (type_id, found) = match record.head() {
            Head::Definition { .. } => return Ok(None),
            Head::Message { type_id, symbol_id: 0 } => (type_id, PyString::new(py, "").into_any()),
            Head::Message { type_id, symbol_id } => match tickers.get_item(symbol_id)? {
                Some(ticker) => (type_id, ticker),
                None => return Ok(None),
            },
        };
        let ticker = found.cast::<PyString>()?.to_str()?;
        let length = bytes.len() + ticker.len() + 32;
        made(py, length, |protobuf| record.write_protobuf(ticker, protobuf)).map(|protobuf| Some((type_id, protobuf)))
    })?
}
