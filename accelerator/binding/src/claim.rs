//! Room in a ring that is filled in parts.

use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;

use crate::producer::{Producer, Reserved, with_bytes};

/// Holds its producer, never a view of the ring: after its end every use raises.
#[pyclass(module = "relay_accel")]
pub(crate) struct Claim {
    producer: Py<Producer>,
    reserved: Option<Reserved>,
    length: usize,
}

impl Claim {
    pub(crate) fn of(producer: Py<Producer>, reserved: Reserved, length: usize) -> Self {
        Self { producer, reserved: Some(reserved), length }
    }

    fn end(&mut self, py: Python<'_>, commit: bool) -> PyResult<bool> {
        let Some(reserved) = self.reserved.take() else { return Ok(false) };
        let mut producer = self.producer.bind(py).borrow_mut();
        Ok(producer.end.as_mut().is_some_and(|end| end.end(reserved, commit)))
    }
}

#[pymethods]
impl Claim {
    fn __len__(&self) -> usize {
        self.length
    }

    /// Write a part.
    ///
    /// Raises IndexError: it does not fit. RuntimeError: the claim is over.
    #[pyo3(signature = (payload, offset=0))]
    fn put(&mut self, payload: &Bound<'_, PyAny>, offset: usize) -> PyResult<()> {
        let over = || PyRuntimeError::new_err("this claim is over: it was committed, aborted, or its producer closed");
        let reserved = self.reserved.as_ref().ok_or_else(over)?;
        let mut producer = self.producer.bind(payload.py()).borrow_mut();
        let end = producer.end.as_mut().ok_or_else(over)?;
        let length = self.length;
        with_bytes(payload, |bytes| {
            if offset > length || bytes.len() > length - offset {
                let text = format!("{} bytes at {offset} do not fit into a claim of {length}", bytes.len());
                return Err(PyIndexError::new_err(text));
            }
            if end.put(reserved, offset, bytes) { Ok(()) } else { Err(over()) }
        })?
    }

    /// Show the message to the consumer. Raises RuntimeError when the claim is over.
    fn commit(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.end(py, true)? {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("this claim is over already"))
    }

    /// Give the room up.
    fn abort(&mut self, py: Python<'_>) -> PyResult<()> {
        self.end(py, false).map(|_| ())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &mut self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        _value: Option<Bound<'_, PyAny>>,
        _trace: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if self.reserved.is_some() {
            self.end(py, kind.is_none())?;
        }
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.reserved.is_some() {
            // A claim that is forgotten must not close the ring for ever. At the end of the interpreter there is none to attach to.
            let _ = Python::try_attach(|py| self.end(py, false));
        }
    }
}
