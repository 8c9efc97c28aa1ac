//! Decimal64: text to mantissas and back, one or whole columns. The face is `relay_accel/decimals.py`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList, PyString};
use relay_accel_codec::decimal::{Decimal64, DecimalError, Rounding};

use crate::producer::with_bytes;
use crate::sbe::EncodeError;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(decimal_mantissa, module)?)?;
    module.add_function(wrap_pyfunction!(decimal_mantissas, module)?)?;
    module.add_function(wrap_pyfunction!(decimal_text, module)?)?;
    module.add_function(wrap_pyfunction!(decimal_texts, module)?)
}

fn format_of(exponent: i32) -> PyResult<Decimal64> {
    Decimal64::new(exponent).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn rounding_of(name: Option<&str>) -> PyResult<Option<Rounding>> {
    let Some(name) = name else { return Ok(None) };
    let found = name.strip_prefix("ROUND_").and_then(Rounding::named);
    found.map(Some).ok_or_else(|| {
        PyValueError::new_err(format!(
            "expected a rounding such as decimal.ROUND_HALF_EVEN or ROUND_DOWN, got {name:?}"
        ))
    })
}

fn refused(error: &DecimalError) -> PyErr {
    EncodeError::new_err(error.to_string())
}

/// Return text as a mantissa; see `relay_accel.Decimal64`.
#[pyfunction]
#[pyo3(signature = (text, exponent, rounding=None))]
fn decimal_mantissa(text: &Bound<'_, PyString>, exponent: i32, rounding: Option<&str>) -> PyResult<i64> {
    let parsed = format_of(exponent)?.parse(&text.to_string_lossy(), rounding_of(rounding)?);
    parsed.map_err(|error| refused(&error))
}

/// Return texts as mantissas of eight bytes each, in the machine's byte order; None is null.
#[pyfunction]
#[pyo3(signature = (texts, exponent, rounding=None))]
fn decimal_mantissas<'py>(
    texts: &Bound<'py, PyList>,
    exponent: i32,
    rounding: Option<&str>,
) -> PyResult<Bound<'py, PyByteArray>> {
    let (format, rounding) = (format_of(exponent)?, rounding_of(rounding)?);
    let mut bytes = Vec::with_capacity(texts.len() * size_of::<i64>());
    for (index, item) in texts.iter().enumerate() {
        let mantissa = if item.is_none() {
            Decimal64::NULL
        } else {
            let text = item.cast::<PyString>()?;
            let parsed = format.parse(&text.to_string_lossy(), rounding);
            parsed.map_err(|error| EncodeError::new_err(format!("item {index}: {error}")))?
        };
        bytes.extend_from_slice(&mantissa.to_ne_bytes());
    }
    Ok(PyByteArray::new(texts.py(), &bytes))
}

/// Return the shortest plain text of a mantissa.
#[pyfunction]
fn decimal_text(mantissa: i64, exponent: i32) -> PyResult<Option<String>> {
    Ok(format_of(exponent)?.text(mantissa))
}

/// Return the shortest plain texts of mantissas of eight bytes each, in the machine's byte order.
#[pyfunction]
fn decimal_texts(mantissas: &Bound<'_, PyAny>, exponent: i32) -> PyResult<Vec<Option<String>>> {
    let format = format_of(exponent)?;
    with_bytes(mantissas, |bytes| {
        let (words, _) = bytes.as_chunks();
        words.iter().map(|word| format.text(i64::from_ne_bytes(*word))).collect()
    })
}
