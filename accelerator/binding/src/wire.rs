//! `relay_accel._wire`: frames of other systems as tuples, and compressed frames. Its face is `relay_accel/wire`.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};
use relay_accel_codec::wire::aeron::{TermPositions as Positions, frames};
use relay_accel_codec::wire::compression::Compression;
use relay_accel_codec::wire::{self, Fault, nanomq, nbmq, zigbolt};

use crate::errors::AccelError;
use crate::producer::with_bytes;
use crate::wire_values::{bytes_of, frame_tuple, tuple_of};

create_exception!(relay_accel.wire, WireError, AccelError);

/// Make the module, under a name of its own: `from relay_accel import _wire`.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = parent.py();
    let module = PyModule::new(py, "relay_accel._wire")?;
    module.add("WireError", py.get_type::<WireError>())?;
    module.add_class::<TermPositions>()?;
    module.add_function(wrap_pyfunction!(decode, &module)?)?;
    module.add_function(wrap_pyfunction!(encode, &module)?)?;
    module.add_function(wrap_pyfunction!(walk, &module)?)?;
    module.add_function(wrap_pyfunction!(compress, &module)?)?;
    module.add_function(wrap_pyfunction!(compress_bound, &module)?)?;
    module.add_function(wrap_pyfunction!(declared_length, &module)?)?;
    module.add_function(wrap_pyfunction!(decompress, &module)?)?;
    module.add_function(wrap_pyfunction!(format_of, &module)?)?;
    module.add_function(wrap_pyfunction!(formats, &module)?)?;
    module.add_function(wrap_pyfunction!(crc32, &module)?)?;
    module.add_function(wrap_pyfunction!(fnv1a64, &module)?)?;
    module.add_function(wrap_pyfunction!(message_id, &module)?)?;
    module.add_function(wrap_pyfunction!(session_id, &module)?)?;
    module.add_function(wrap_pyfunction!(reassembly_key, &module)?)?;
    py.import("sys")?.getattr("modules")?.set_item("relay_accel._wire", &module)?;
    parent.add("_wire", module)
}

/// The exception for a refusal, with its code and parts.
pub(crate) fn wire_error(py: Python<'_>, error: wire::WireError) -> PyErr {
    let code = match error.fault {
        Fault::Truncated => "TRUNCATED",
        Fault::Invalid => "INVALID",
        Fault::Checksum => "CHECKSUM",
    };
    let exception = WireError::new_err(error.to_string());
    let value = exception.value(py);
    // An exception without its parts is still the right one.
    let _ = value.setattr("code", code);
    let _ = value.setattr("field", error.field);
    let _ = value.setattr("offset", error.offset);
    let _ = value.setattr("expected", error.expected.to_string());
    let _ = value.setattr("got", error.got.to_string());
    exception
}

#[pyfunction]
#[pyo3(signature = (kind, buffer, offset=0))]
fn decode<'py>(
    py: Python<'py>,
    kind: &str,
    buffer: &Bound<'py, PyAny>,
    offset: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    with_bytes(buffer, |bytes| {
        let Some(rest) = bytes.get(offset..) else {
            let text = format!("expected an offset within the buffer of {} bytes, got {offset}", bytes.len());
            return Err(PyValueError::new_err(text));
        };
        tuple_of(py, kind, rest)?.map_err(|error| wire_error(py, error.behind(offset)))
    })?
}

#[pyfunction]
fn encode<'py>(py: Python<'py>, kind: &str, values: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyBytes>> {
    match bytes_of(kind, values)? {
        Ok(bytes) => Ok(PyBytes::new(py, &bytes)),
        Err(error) => Err(wire_error(py, error)),
    }
}

type Walked<'py> = (Vec<(usize, &'static str, Bound<'py, PyTuple>)>, Option<PyErr>);

/// The frames up to the first refusal, and the refusal.
#[pyfunction]
fn walk<'py>(py: Python<'py>, datagram: &Bound<'py, PyAny>) -> PyResult<Walked<'py>> {
    with_bytes(datagram, |bytes| {
        let mut found = Vec::new();
        for frame in frames(bytes) {
            match frame {
                Ok((offset, frame)) => {
                    let (kind, values) = frame_tuple(py, &frame)?;
                    found.push((offset, kind, values));
                }
                Err(error) => return Ok((found, Some(wire_error(py, error)))),
            }
        }
        Ok((found, None))
    })?
}

fn format(name: &str) -> PyResult<Compression> {
    Compression::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
        let names = Compression::ALL.map(Compression::name).join(", ");
        PyValueError::new_err(format!("expected a format of {names}, got {name:?}"))
    })
}

/// Bytes that nobody can change are worked on without the interpreter's lock.
fn unlocked<T: Send>(buffer: &Bound<'_, PyAny>, work: impl Fn(&[u8]) -> T + Send + Sync) -> PyResult<T> {
    match buffer.cast::<PyBytes>() {
        Ok(bytes) => {
            let slice = bytes.as_bytes();
            Ok(buffer.py().detach(|| work(slice)))
        }
        Err(_) => with_bytes(buffer, work),
    }
}

#[pyfunction]
fn compress<'py>(py: Python<'py>, name: &str, buffer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let format = format(name)?;
    let frame = unlocked(buffer, |bytes| format.compress(bytes))?;
    frame.map(|frame| PyBytes::new(py, &frame)).map_err(|error| wire_error(py, error))
}

#[pyfunction]
fn compress_bound(name: &str, length: usize) -> PyResult<usize> {
    if length > 1 << 40 {
        return Err(PyValueError::new_err(format!("expected a length of at most 1 TiB, got {length}")));
    }
    Ok(format(name)?.compress_bound(length))
}

#[pyfunction]
fn declared_length(py: Python<'_>, name: &str, frame: &Bound<'_, PyAny>) -> PyResult<u64> {
    let format = format(name)?;
    with_bytes(frame, |bytes| format.declared_length(bytes))?.map_err(|error| wire_error(py, error))
}

#[pyfunction]
fn decompress<'py>(
    py: Python<'py>,
    name: &str,
    frame: &Bound<'py, PyAny>,
    length_max: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let format = format(name)?;
    let bytes = unlocked(frame, |frame| format.decompress(frame, length_max))?;
    bytes.map(|bytes| PyBytes::new(py, &bytes)).map_err(|error| wire_error(py, error))
}

#[pyfunction]
fn format_of(frame: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    with_bytes(frame, |bytes| Compression::of_frame(bytes).map(Compression::name))
}

#[pyfunction]
fn formats() -> Vec<&'static str> {
    Compression::ALL.into_iter().filter(|format| format.is_built_in()).map(Compression::name).collect()
}

#[pyfunction]
fn crc32(data: &Bound<'_, PyAny>) -> PyResult<u32> {
    with_bytes(data, nanomq::crc32)
}

#[pyfunction]
fn fnv1a64(data: &Bound<'_, PyAny>) -> PyResult<u64> {
    with_bytes(data, nbmq::fnv1a64)
}

#[pyfunction]
fn message_id(parts: Vec<PyBackedBytes>, counter: u64) -> u64 {
    nbmq::message_id(parts.iter().map(|part| &**part), counter)
}

#[pyfunction]
fn session_id(random: u64, address: &str) -> u64 {
    nbmq::session_id(random, address)
}

#[pyfunction]
fn reassembly_key(stream_id: u32, message_id: u32) -> u64 {
    zigbolt::reassembly_key(stream_id, message_id)
}

/// How a stream counts: (term id, term offset) ↔ position in bytes. Term ids wrap at 2³¹.
///
/// Args: initial_term_id: the first term of the stream. term_length: bytes of a term, a power of two from 65,536 to 1
/// GiB.
///
/// Raises WireError: the length is another.
#[pyclass(frozen, eq, hash, module = "relay_accel._wire")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct TermPositions(Positions);

#[pymethods]
impl TermPositions {
    #[new]
    fn new(py: Python<'_>, initial_term_id: i32, term_length: i32) -> PyResult<Self> {
        Positions::new(initial_term_id, term_length).map(Self).map_err(|error| wire_error(py, error))
    }

    /// log2 of the term length.
    #[getter]
    fn shift(&self) -> u32 {
        self.0.shift()
    }

    /// The last position that the stream can reach: 2³¹ terms.
    #[getter]
    fn position_max(&self) -> i64 {
        self.0.position_max()
    }

    /// Return the position of a byte; 0 before the first term, an offset outside of the term is its end.
    fn position(&self, term_id: i32, term_offset: i32) -> i64 {
        self.0.position(term_id, term_offset)
    }

    /// Return term id and offset; of 0 when it is negative, of the last byte behind the end.
    fn term_at(&self, position: i64) -> (i32, i32) {
        self.0.term_at(position)
    }
}
