//! One transmitter, many receivers.

use std::hint;
use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relay_accel_core::broadcast::{
    Receiver as CoreReceiver, SharedBroadcast, Transmitter as CoreTransmitter, broadcast,
};
use relay_accel_core::ring::FrameBatch;

use crate::batch::Batch;
use crate::bell::Ringer;
use crate::errors::{closed, detached, outcome, raised, refused_as};
use crate::memory::{named_segment, not_shared};
use crate::producer::with_bytes;
use crate::segments::{created, mapped, place};
use crate::state::{described, timeout};

/// Looks of a spinning receiver between two looks at the clock.
const SPINS: usize = 64;

/// One transmitter that waits for nobody, any number of receivers. Capacity: a power of two, 512 bytes to 1 GiB.
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
    /// Make a broadcast of this process, for threads; more receivers by `Receiver.another`.
    #[staticmethod]
    fn heap(py: Python<'_>, length: usize) -> PyResult<(Transmitter, Receiver)> {
        let (transmitter, receiver) = broadcast(length).map_err(|error| raised(py, error))?;
        Ok((Transmitter { end: Some(transmitter) }, Receiver { ringer: None, end: Some(receiver) }))
    }

    /// Make a named broadcast; see `Ring.create`.
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
        detached(py, || {
            SharedBroadcast::create(&directory, &segment, length, created(pre_fault, huge_pages, replace_stale))
        })
        .map(|shared| Self::over(name, shared))
    }

    /// Open a named broadcast; see `Ring.open`.
    #[staticmethod]
    #[pyo3(signature = (name, *, directory=None, pre_fault=true, huge_pages=false))]
    fn open(py: Python<'_>, name: &str, directory: Option<&str>, pre_fault: bool, huge_pages: bool) -> PyResult<Self> {
        let (directory, segment) = place(py, directory, name)?;
        detached(py, || SharedBroadcast::open(&directory, &segment, mapped(pre_fault, huge_pages)))
            .map(|shared| Self::over(name, shared))
    }

    /// Take the writing end. Raises BusyError: END_TAKEN.
    fn transmitter(&self, py: Python<'_>) -> PyResult<Transmitter> {
        let end = self.shared()?.transmitter().map_err(|error| raised(py, error))?;
        Ok(Transmitter { end: Some(end) })
    }

    /// Begin a reading end, behind the last message.
    fn receiver(&self, py: Python<'_>) -> PyResult<Receiver> {
        let end = self.shared()?.receiver().map_err(|error| raised(py, error))?;
        let shared = self.shared.clone();
        let ringer = shared.map(|shared| Ringer::new(move || shared.bell()));
        Ok(Receiver { ringer, end: Some(end) })
    }

    /// Return state and process id of who holds the writing end.
    fn transmitter_state(&self) -> PyResult<(&'static str, u32)> {
        Ok(described(self.shared()?.transmitter_state()))
    }

    /// Capacity in bytes.
    #[getter]
    fn length(&self) -> usize {
        self.length
    }
}

named_segment!(Broadcast, shared);

/// The writing end of a broadcast.
#[pyclass(module = "relay_accel")]
pub(crate) struct Transmitter {
    end: Option<CoreTransmitter>,
}

impl Transmitter {
    pub(crate) fn open(&mut self) -> PyResult<&mut CoreTransmitter> {
        self.end.as_mut().ok_or_else(closed)
    }
}

#[pymethods]
impl Transmitter {
    /// Write one message; return an `Outcome` as a plain int: 0 ACCEPTED or -2 TOO_LONG.
    #[pyo3(signature = (payload, type_id=1))]
    fn offer(&mut self, payload: &Bound<'_, PyAny>, type_id: i32) -> PyResult<i32> {
        let end = self.open()?;
        outcome(with_bytes(payload, |bytes| end.transmit(type_id, bytes))?)
    }

    /// Write messages one behind the other; return how many, and the `Outcome` of the one after (0 where all were).
    #[pyo3(signature = (payloads, type_id=1))]
    fn offer_batch(&mut self, payloads: Vec<Bound<'_, PyBytes>>, type_id: i32) -> PyResult<(usize, i32)> {
        let end = self.open()?;
        match end.transmit_batch(payloads.iter().map(|payload| (type_id, payload.as_bytes()))) {
            Ok(written) => Ok((written, 0)),
            Err((written, refusal)) => Ok((written, refused_as(refusal)?)),
        }
    }

    /// Longest payload: an eighth of the capacity, less 8.
    #[getter]
    fn payload_length_max(&mut self) -> PyResult<usize> {
        Ok(self.open()?.payload_length_max())
    }

    /// Bytes written since the broadcast was made.
    #[getter]
    fn position(&mut self) -> PyResult<u64> {
        Ok(self.open()?.position())
    }

    /// Return records and payload_bytes since the end was made.
    fn counts(&mut self) -> PyResult<Vec<(&'static str, u64)>> {
        let counts = self.open()?.counts();
        Ok(vec![("records", counts.records), ("payload_bytes", counts.payload_bytes)])
    }

    /// Give the end back.
    fn close(&mut self) {
        self.end = None;
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&mut self, _args: &Bound<'_, PyAny>) {
        self.close();
    }
}

/// A reading end of a broadcast. `Batch.lapped` says that it was overtaken: it goes on with the newest message.
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
    /// Return at most so many messages, each whole.
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

    /// Sleep until there is something; return whether there is. Lets other threads run.
    #[pyo3(signature = (timeout=None))]
    fn wait(&mut self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = self::timeout(timeout)?;
        let end = self.open()?;
        Ok(py.detach(|| end.wait(limit)))
    }

    /// Look for something, without sleep, for at most so many seconds; return whether it is there. Others may run.
    #[pyo3(signature = (timeout))]
    fn spin(&mut self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let limit = self::timeout(Some(timeout))?;
        let end = self.open()?;
        Ok(py.detach(|| {
            let began = Instant::now();
            loop {
                // The clock is asked now and then: it costs as much as many looks.
                for _ in 0..SPINS {
                    if end.is_ready() {
                        return true;
                    }
                    hint::spin_loop();
                }
                if began.elapsed() >= limit {
                    return false;
                }
            }
        }))
    }

    /// Return a descriptor that becomes readable when there is something to read, after `arm`.
    ///
    /// Raises ValueError: it has no name. BusyError: NO_FREE_SLOT: sixteen readers of this segment sleep so already.
    fn fileno(&mut self, py: Python<'_>) -> PyResult<i32> {
        self.open()?;
        self.ringer.as_mut().ok_or_else(not_shared)?.fileno(py)
    }

    /// Say that this reader will sleep in a poller, and look once more; take the wake-up of before.
    ///
    /// Returns 0: there is something to read, do not sleep; 1: sleep, and look again after a second or so, for a
    /// publisher that has no descriptor left cannot ring; 2: sleep for a millisecond at most, for a publisher may
    /// miss it.
    fn arm(&mut self, py: Python<'_>) -> PyResult<u8> {
        let end = self.end.as_ref().ok_or_else(closed)?;
        self.ringer.as_mut().ok_or_else(not_shared)?.arm(py, || end.is_ready())
    }

    /// Return another receiver, which begins behind the last message.
    fn another(&mut self) -> PyResult<Self> {
        Ok(Self { ringer: None, end: Some(self.open()?.another()) })
    }

    /// Bytes read since the broadcast was made.
    #[getter]
    fn position(&mut self) -> PyResult<u64> {
        Ok(self.open()?.position())
    }

    /// Return state and process id of who holds the writing end.
    fn transmitter_state(&mut self) -> PyResult<(&'static str, u32)> {
        Ok(described(self.open()?.transmitter_state()))
    }

    /// Return records, payload_bytes, lapped, lost_bytes and corrupt since the end was made.
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

    /// End it.
    fn close(&mut self) {
        self.ringer = None;
        self.end = None;
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&mut self, _args: &Bound<'_, PyAny>) {
        self.close();
    }
}
