//! The writing end of a ring or channel.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyBytesMethods, PyList};
use relay_accel_core::ring::{
    EndState, FrameProducer, MpscProducer, MpscReservation, ProducerCounts, Refusal, Reservation, RingGeometry,
    TermGeometry,
};

use crate::claim::Claim;
use crate::errors::{closed, outcome, refused_as};
use crate::fast::bytes_of;
use crate::state::{described, timeout};

pub(crate) enum End {
    Ring(FrameProducer<RingGeometry>),
    Terms(FrameProducer<TermGeometry>),
    Many(MpscProducer),
}

pub(crate) enum Reserved {
    Frames(Reservation),
    Many(MpscReservation),
}

macro_rules! each {
    ($end:expr, $one:ident => $body:expr) => {
        match $end {
            End::Ring($one) => $body,
            End::Terms($one) => $body,
            End::Many($one) => $body,
        }
    };
}

impl End {
    pub(crate) fn reserve(&mut self, type_id: i32, length: usize) -> Result<Reserved, Refusal> {
        match self {
            Self::Ring(one) => one.reserve_open(type_id, length).map(Reserved::Frames),
            Self::Terms(one) => one.reserve_open(type_id, length).map(Reserved::Frames),
            Self::Many(one) => one.reserve_open(type_id, length).map(Reserved::Many),
        }
    }

    pub(crate) fn put(&mut self, reserved: &Reserved, offset: usize, bytes: &[u8]) -> bool {
        match (self, reserved) {
            (Self::Ring(one), Reserved::Frames(reserved)) => one.put(reserved, offset, bytes),
            (Self::Terms(one), Reserved::Frames(reserved)) => one.put(reserved, offset, bytes),
            (Self::Many(one), Reserved::Many(reserved)) => one.put(reserved, offset, bytes),
            _ => false,
        }
    }

    /// Commits or aborts; false where the claim was over already.
    pub(crate) fn end(&mut self, reserved: Reserved, commit: bool) -> bool {
        match (self, reserved) {
            (Self::Ring(one), Reserved::Frames(r)) => {
                if commit {
                    one.publish(r)
                } else {
                    one.cancel(r)
                }
            }
            (Self::Terms(one), Reserved::Frames(r)) => {
                if commit {
                    one.publish(r)
                } else {
                    one.cancel(r)
                }
            }
            (Self::Many(one), Reserved::Many(r)) => {
                if commit {
                    one.publish(r)
                } else {
                    one.cancel(r)
                }
            }
            _ => false,
        }
    }
}

/// The bytes of a `bytes` object as they are, of anything else through its buffer (C-contiguous).
pub(crate) fn with_bytes<T>(payload: &Bound<'_, PyAny>, each: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
    if let Ok(bytes) = payload.cast::<PyBytes>() {
        return Ok(each(bytes.as_bytes()));
    }
    // Items of any type are bytes to us.
    let view = pyo3::types::PyMemoryView::from(payload)?;
    let bytes = match view.call_method1("cast", ("B",)) {
        Ok(flat) => flat,
        Err(_) if view.getattr("nbytes")?.extract::<usize>()? == 0 => return Ok(each(&[])),
        Err(error) => return Err(error),
    };
    let buffer = PyBuffer::<u8>::get(&bytes)?;
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("expected a contiguous buffer"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(each(&[]));
    }
    // SAFETY: a contiguous buffer of bytes that `buffer` holds; the interpreter's lock is held, so no Python code writes meanwhile.
    let slice = unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) };
    Ok(each(slice))
}

/// The bytes of a list of `bytes`, without a reference taken of each; `None` if anything in it is no plain `bytes`.
fn listed<'a>(list: &'a Bound<'_, PyList>) -> Option<Vec<&'a [u8]>> {
    let count = list.len();
    let mut all = Vec::with_capacity(count);
    for at in 0..count {
        // SAFETY: the list is as long as it was, since the interpreter's lock is held and no Python code runs.
        let item = unsafe { ffi::PyList_GetItem(list.as_ptr(), at as ffi::Py_ssize_t) };
        // SAFETY: the list keeps it alive, as above, until the call that gave the list returns.
        all.push(bytes_of(unsafe { Borrowed::from_ptr(list.py(), item) })?);
    }
    Some(all)
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_nanos() as u64)
}

/// A writing end.
#[pyclass(module = "relay_accel")]
pub(crate) struct Producer {
    pub(crate) end: Option<End>,
}

impl Producer {
    pub(crate) fn of(end: End) -> Self {
        Self { end: Some(end) }
    }

    pub(crate) fn open(&mut self) -> PyResult<&mut End> {
        self.end.as_mut().ok_or_else(closed)
    }

    /// The plain case of an offer, as [`crate::fast`] calls it; `None` where something is to be raised.
    #[inline]
    pub(crate) fn try_offer(&mut self, payload: &[u8]) -> Option<i32> {
        let written = each!(self.end.as_mut()?, one => one.try_write(1, payload));
        written.map_or_else(|refusal| refused_as(refusal).ok(), |()| Some(0))
    }
}

#[pymethods]
impl Producer {
    /// `offer`, whatever its arguments: [`crate::fast`].
    #[pyo3(name = "_offer", signature = (payload, type_id=1))]
    fn offer(&mut self, payload: &Bound<'_, PyAny>, type_id: i32) -> PyResult<i32> {
        let end = self.open()?;
        outcome(with_bytes(payload, |bytes| each!(end, one => one.try_write(type_id, bytes)))?)
    }

    /// Write messages and show them together; return how many, and the `Outcome` of the one after (0 where all were).
    #[pyo3(signature = (payloads, type_id=1))]
    fn offer_batch(&mut self, payloads: &Bound<'_, PyAny>, type_id: i32) -> PyResult<(usize, i32)> {
        let end = self.open()?;
        if let Ok(list) = payloads.cast_exact::<PyList>()
            && let Some(payloads) = listed(list)
        {
            let messages = payloads.into_iter().map(|payload| (type_id, payload));
            let (written, refused) = each!(end, one => one.write_batch(messages));
            return Ok((written, refused.map_or(Ok(0), refused_as)?));
        }
        let payloads: Vec<Bound<'_, PyBytes>> = payloads.extract()?;
        let messages = payloads.iter().map(|payload| (type_id, payload.as_bytes()));
        let (written, refused) = each!(end, one => one.write_batch(messages));
        Ok((written, refused.map_or(Ok(0), refused_as)?))
    }

    /// Write each `record_length` bytes of a buffer as one message; return as `offer_batch`.
    #[pyo3(signature = (records, record_length, type_id=1))]
    fn offer_records(
        &mut self,
        records: &Bound<'_, PyAny>,
        record_length: usize,
        type_id: i32,
    ) -> PyResult<(usize, i32)> {
        let end = self.open()?;
        let written = with_bytes(records, |bytes| {
            if record_length == 0 || !bytes.len().is_multiple_of(record_length) {
                let text = format!("expected whole records of {record_length} bytes, got {} bytes", bytes.len());
                return Err(PyValueError::new_err(text));
            }
            let messages = bytes.chunks_exact(record_length).map(|record| (type_id, record));
            Ok(each!(end, one => one.write_batch(messages)))
        })??;
        Ok((written.0, written.1.map_or(Ok(0), refused_as)?))
    }

    /// Take room to be filled in parts; None when the ring is full now.
    ///
    /// Raises ValueError: longer than this ring ever takes. RuntimeError: another claim is open.
    #[pyo3(signature = (length, type_id=1))]
    fn claim(slf: Bound<'_, Self>, length: usize, type_id: i32) -> PyResult<Option<Claim>> {
        let reserved = slf.borrow_mut().open()?.reserve(type_id, length);
        match reserved {
            Ok(reserved) => Ok(Some(Claim::of(slf.unbind(), reserved, length))),
            Err(Refusal::BackPressured | Refusal::Closed) => Ok(None),
            Err(Refusal::TooLong) => {
                let longest = slf.borrow_mut().payload_length_max()?;
                Err(PyValueError::new_err(format!("expected at most {longest} bytes, got {length}")))
            }
            Err(Refusal::Corrupt) => Err(PyValueError::new_err("the ring is corrupt: make it anew")),
            Err(refusal) => refused_as(refusal).map(|_| None),
        }
    }

    /// Sleep until a payload of `length` bytes fits; return whether it does now. Lets other threads run.
    #[pyo3(signature = (length=0, timeout=None))]
    fn wait_for_room(&mut self, py: Python<'_>, length: usize, timeout: Option<f64>) -> PyResult<bool> {
        let limit = self::timeout(timeout)?;
        let end = self.open()?;
        Ok(py.detach(|| each!(end, one => one.wait_for_room(length, limit))))
    }

    /// Longest payload that this ring takes.
    #[getter]
    fn payload_length_max(&mut self) -> PyResult<usize> {
        Ok(each!(self.open()?, one => one.payload_length_max()))
    }

    /// Bytes published since the ring was made. Raises ValueError for one producer of many.
    #[getter]
    fn position(&mut self) -> PyResult<u64> {
        match self.open()? {
            End::Ring(one) => Ok(one.position()),
            End::Terms(one) => Ok(one.position()),
            End::Many(_) => Err(PyValueError::new_err("a producer among many has no position of its own")),
        }
    }

    /// Return state and process id of who holds the reading end.
    fn consumer_state(&mut self) -> PyResult<(&'static str, u32)> {
        let state: EndState = each!(self.open()?, one => one.consumer_state());
        Ok(described(state))
    }

    /// Return frames, payload_bytes, back_pressured, aborted and corrupt since the end was made.
    fn counts(&mut self) -> PyResult<Vec<(&'static str, u64)>> {
        let counts: ProducerCounts = each!(self.open()?, one => one.counts());
        Ok(vec![
            ("frames", counts.frames),
            ("payload_bytes", counts.payload_bytes),
            ("back_pressured", counts.back_pressured),
            ("aborted", counts.aborted),
            ("corrupt", counts.corrupt),
        ])
    }

    /// Note in the segment that this end is alive now.
    fn beat(&mut self) -> PyResult<()> {
        let now_ns = now_ns();
        each!(self.open()?, one => one.beat(now_ns));
        Ok(())
    }

    /// Give the end back; the consumer sees it when everything was read.
    fn close(&mut self) {
        self.end = None;
    }

    /// Whether `close` was called.
    #[getter]
    fn closed(&self) -> bool {
        self.end.is_none()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&mut self, _args: &Bound<'_, PyAny>) {
        self.close();
    }
}
