//! One transmitter, many receivers.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relay_accel_core::broadcast::{
    Receiver as CoreReceiver, SharedBroadcast, Transmitter as CoreTransmitter, broadcast,
};
use relay_accel_core::ring::FrameBatch;

use crate::batch::Batch;
use crate::bell::Ringer;
use crate::errors::{closed, outcome, raised, refused_as};
use crate::memory::{named_segment, not_shared};
use crate::producer::with_bytes;
use crate::segments::{created, mapped, place};
use crate::state::{described, timeout};

#[pyclass(module = "relay_accel")]
pub(crate) struct Broadcast {
    name: String,
    shared: Option<SharedBroadcast>,
    length: usize,
}

impl Broadcast {
    fn shared(&self) -> PyResult<&SharedBroadcast> {
        self.shared.as_ref().ok_or_else(not_shared)
    }

    fn over(name: &str, shared: SharedBroadcast) -> Self {
        let length = shared.capacity();
        Self { name: name.into(), shared: Some(shared), length }
    }
}

#[pymethods]
impl Broadcast {
    #[staticmethod]
    fn heap(py: Python<'_>, length: usize) -> PyResult<(Transmitter, Receiver)> {
        let (transmitter, receiver) = broadcast(length).map_err(|error| raised(py, error))?;
        Ok((Transmitter { end: Some(transmitter) }, Receiver { ringer: None, end: Some(receiver) }))
    }

    #[staticmethod]
    #[pyo3(signature = (name, length, *, directory=None, pre_fault=true, huge_pages=false, replace_stale=false))]
    fn create(
        py: Python<'_>,
        name: &str,
        length: usize,
        directory: Option<&str>,
        pre_fault: bool,
        huge_pages: bool,
        replace_stale: bool,
    ) -> PyResult<Self> {
        let (directory, segment) = place(py, directory, name)?;
        SharedBroadcast::create(&directory, &segment, length, created(pre_fault, huge_pages, replace_stale))
            .map(|shared| Self::over(name, shared))
            .map_err(|error| raised(py, error))
    }

    #[staticmethod]
    #[pyo3(signature = (name, *, directory=None, pre_fault=true, huge_pages=false))]
    fn open(py: Python<'_>, name: &str, directory: Option<&str>, pre_fault: bool, huge_pages: bool) -> PyResult<Self> {
        let (directory, segment) = place(py, directory, name)?;
        SharedBroadcast::open(&directory, &segment, mapped(pre_fault, huge_pages))
            .map(|shared| Self::over(name, shared))
            .map_err(|error| raised(py, error))
    }

    fn transmitter(&self, py: Python<'_>) -> PyResult<Transmitter> {
        let end = self.shared()?.transmitter().map_err(|error| raised(py, error))?;
        Ok(Transmitter { end: Some(end) })
    }

    fn receiver(&self, py: Python<'_>) -> PyResult<Receiver> {
        let end = self.shared()?.receiver().map_err(|error| raised(py, error))?;
        let shared = self.shared.clone();
        let ringer = shared.map(|shared| Ringer::new(move || shared.bell()));
        Ok(Receiver { ringer, end: Some(end) })
    }

    fn transmitter_state(&self) -> PyResult<(&'static str, u32)> {
        Ok(described(self.shared()?.transmitter_state()))
    }

    #[getter]
    fn length(&self) -> usize {
        self.length
    }
}

named_segment!(Broadcast, shared);

#[pyclass(module = "relay_accel")]
pub(crate) struct Transmitter {
    end: Option<CoreTransmitter>,
}

impl Transmitter {
    fn open(&mut self) -> PyResult<&mut CoreTransmitter> {
        self.end.as_mut().ok_or_else(closed)
    }
}

#[pymethods]
impl Transmitter {
    #[pyo3(signature = (payload, type_id=1))]
    fn offer(&mut self, payload: &Bound<'_, PyAny>, type_id: i32) -> PyResult<i32> {
        let end = self.open()?;
        outcome(with_bytes(payload, |bytes| end.transmit(type_id, bytes))?)
    }

    #[pyo3(signature = (payloads, type_id=1))]
    fn offer_batch(&mut self, payloads: Vec<Bound<'_, PyBytes>>, type_id: i32) -> PyResult<(usize, i32)> {
        let end = self.open()?;
        match end.transmit_batch(payloads.iter().map(|payload| (type_id, payload.as_bytes()))) {
            Ok(written) => Ok((written, 0)),
            Err((written, refusal)) => Ok((written, refused_as(refusal)?)),
        }
    }

    #[getter]
    fn payload_length_max(&mut self) -> PyResult<usize> {
        Ok(self.open()?.payload_length_max())
    }

    #[getter]
    fn position(&mut self) -> PyResult<u64> {
        Ok(self.open()?.position())
    }

    fn counts(&mut self) -> PyResult<Vec<(&'static str, u64)>> {
        let counts = self.open()?.counts();
        Ok(vec![("records", counts.records), ("payload_bytes", counts.payload_bytes)])
    }

    fn close(&mut self) {
        self.end = None;
    }
}

#[pyclass(module = "relay_accel")]
pub(crate) struct Receiver {
    ringer: Option<Ringer>,
    end: Option<CoreReceiver>,
}

impl Receiver {
    fn open(&mut self) -> PyResult<&mut CoreReceiver> {
        self.end.as_mut().ok_or_else(closed)
    }
}

#[pymethods]
impl Receiver {
    #[pyo3(signature = (limit=1024))]
    fn poll_batch(&mut self, limit: usize) -> PyResult<Batch> {
        if limit == 0 {
            return Err(PyValueError::new_err("limit: expected 1 or more, got 0"));
        }
        let mut batch = FrameBatch::new();
        let received = self.open()?.poll_batch(limit, &mut batch);
        let stop = match received {
            _ if received.corrupt => "corrupt",
            _ if received.records == limit => "limit",
            _ => "empty",
        };
        Ok(Batch::of(batch, stop, received.lapped))
    }

    #[pyo3(signature = (timeout=None))]
    fn wait(&mut self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = self::timeout(timeout)?;
        let end = self.open()?;
        Ok(py.detach(|| end.wait(limit)))
    }

    fn fileno(&mut self, py: Python<'_>) -> PyResult<i32> {
        self.open()?;
        self.ringer.as_mut().ok_or_else(not_shared)?.fileno(py)
    }

    fn arm(&mut self, py: Python<'_>) -> PyResult<u8> {
        let end = self.end.as_ref().ok_or_else(closed)?;
        self.ringer.as_mut().ok_or_else(not_shared)?.arm(py, || end.is_ready())
    }

    fn another(&mut self) -> PyResult<Self> {
        Ok(Self { ringer: None, end: Some(self.open()?.another()) })
    }

    #[getter]
    fn position(&mut self) -> PyResult<u64> {
        Ok(self.open()?.position())
    }

    fn transmitter_state(&mut self) -> PyResult<(&'static str, u32)> {
        Ok(described(self.open()?.transmitter_state()))
    }

    fn counts(&mut self) -> PyResult<Vec<(&'static str, u64)>> {
        let counts = self.open()?.counts();
        Ok(vec![
            ("records", counts.records),
            ("payload_bytes", counts.payload_bytes),
            ("lapped", counts.lapped),
            ("lost_bytes", counts.lost_bytes),
            ("corrupt", counts.corrupt),
        ])
    }

    fn close(&mut self) {
        self.ringer = None;
        self.end = None;
    }
}
