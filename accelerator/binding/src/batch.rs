//! Messages in one buffer that Python owns.

use std::ffi::{c_int, c_void};

use pyo3::exceptions::{PyBufferError, PyIndexError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relay_accel_core::ring::FrameBatch;

/// Never changed once it is made, so that a view of it stays right as long as it lives.
#[pyclass(frozen, sequence, module = "relay_accel")]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    type_ids: Vec<i32>,
    stop: &'static str,
    lapped: bool,
}

impl Batch {
    pub(crate) fn of(batch: FrameBatch, stop: &'static str, lapped: bool) -> Self {
        let (bytes, ends, type_ids) = batch.into_parts();
        Self { bytes, ends, type_ids, stop, lapped }
    }

    pub(crate) fn of_items(bytes: Vec<u8>, item_length: usize, stop: &'static str) -> Self {
        let count = bytes.len() / item_length;
        let ends = (1..=count).map(|n| n * item_length).collect();
        Self { bytes, ends, type_ids: vec![1; count], stop, lapped: false }
    }

    fn payload(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    fn checked(&self, index: isize) -> PyResult<usize> {
        let wrapped = if index < 0 { index + self.ends.len() as isize } else { index };
        match usize::try_from(wrapped) {
            Ok(found) if found < self.ends.len() => Ok(found),
            _ => Err(PyIndexError::new_err(format!("index {index} of a batch of {}", self.ends.len()))),
        }
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.ends.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.payload(self.checked(index)?)))
    }

    /// Return the type of a message.
    fn type_id(&self, index: isize) -> PyResult<i32> {
        Ok(self.type_ids[self.checked(index)?])
    }

    /// Return all payloads.
    fn payloads<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        (0..self.ends.len()).map(|index| PyBytes::new(py, self.payload(index))).collect()
    }

    /// Return type and payload of all messages.
    fn messages<'py>(&self, py: Python<'py>) -> Vec<(i32, Bound<'py, PyBytes>)> {
        (0..self.ends.len()).map(|index| (self.type_ids[index], PyBytes::new(py, self.payload(index)))).collect()
    }

    /// Where each payload ends in the buffer; it begins where the one before ends.
    #[getter]
    fn ends(&self) -> Vec<usize> {
        self.ends.clone()
    }

    /// The type of each message.
    #[getter]
    fn type_ids(&self) -> Vec<i32> {
        self.type_ids.clone()
    }

    /// Bytes of all payloads.
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes.len()
    }

    /// Why the poll ended.
    #[getter]
    fn stop(&self) -> &'static str {
        self.stop
    }

    /// Of a broadcast: whether messages were overwritten before they could be read.
    #[getter]
    fn lapped(&self) -> bool {
        self.lapped
    }

    fn __repr__(&self) -> String {
        format!("<Batch of {} messages, {} bytes, stop={}>", self.ends.len(), self.bytes.len(), self.stop)
    }

    /// All payloads end to end, read-only.
    ///
    /// # Safety
    /// Called by the interpreter with a view that it owns.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: the object is frozen and its vector never moves or changes.
        unsafe { show(slf.as_any(), &slf.get().bytes, view, flags) }
    }
}

/// Fills a view of bytes, read-only; it keeps their owner alive.
///
/// # Safety
/// The view is null or the caller's to fill. The bytes stay where they are as long as their owner lives.
pub(crate) unsafe fn show(
    owner: &Bound<'_, PyAny>,
    bytes: &[u8],
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("expected a view"));
    }
    let (first, length) = (bytes.as_ptr().cast_mut().cast::<c_void>(), bytes.len() as ffi::Py_ssize_t);
    // SAFETY: the caller's promise; the view takes a reference to the owner.
    let filled = unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), first, length, 1, flags) };
    if filled == 0 { Ok(()) } else { Err(PyErr::fetch(owner.py())) }
}
