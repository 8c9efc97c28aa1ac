//! The reading end of a ring or channel.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relay_accel_core::ring::{
    ConsumerCounts, FrameBatch, FrameConsumer, MpscConsumer, Polled, RingGeometry, Stop, TermGeometry,
};

use crate::batch::Batch;
use crate::bell::Ringer;
use crate::errors::{closed, forked};
use crate::memory::not_shared;
use crate::state::{described, timeout};

pub(crate) enum End {
    Ring(FrameConsumer<RingGeometry>),
    Terms(FrameConsumer<TermGeometry>),
    Many(MpscConsumer),
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

/// The name of why a poll ended. Raises where this end is of no use any more.
pub(crate) fn stopped(stop: Stop) -> PyResult<&'static str> {
    match stop {
        Stop::Limit => Ok("limit"),
        Stop::Empty => Ok("empty"),
        Stop::InProgress => Ok("in_progress"),
        Stop::Closed => Ok("closed"),
        Stop::Corrupt => Ok("corrupt"),
        Stop::Forked => Err(forked()),
    }
}

#[pyclass(module = "relay_accel")]
pub(crate) struct Consumer {
    // Dropped before the end: its word in the page is given back first.
    ringer: Option<Ringer>,
    end: Option<End>,
    last: Stop,
}

impl Consumer {
    pub(crate) fn of(end: End, ringer: Option<Ringer>) -> Self {
        Self { ringer, end: Some(end), last: Stop::Empty }
    }

    pub(crate) fn poll(&mut self, limit: usize) -> PyResult<FrameBatch> {
        let mut batch = FrameBatch::new();
        let end = self.open()?;
        let polled: Polled = each!(end, one => one.poll_batch(limit, &mut batch));
        self.last = polled.stop;
        stopped(polled.stop)?;
        Ok(batch)
    }

    fn open(&mut self) -> PyResult<&mut End> {
        self.end.as_mut().ok_or_else(closed)
    }
}

#[pymethods]
impl Consumer {
    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut found = None;
        let end = self.open()?;
        let polled: Polled = each!(end, one => one.poll_frames(1, |frame| {
            found = Some(PyBytes::new_with(py, frame.payload_length(), |bytes| {
                frame.copy_to(bytes);
                Ok(())
            }));
        }));
        self.last = polled.stop;
        match found {
            Some(bytes) => bytes.map(Some),
            None => stopped(polled.stop).map(|_| None),
        }
    }

    fn take_message<'py>(&mut self, py: Python<'py>) -> PyResult<Option<(i32, Bound<'py, PyBytes>)>> {
        let mut found = None;
        let end = self.open()?;
        let polled: Polled = each!(end, one => one.poll(1, |type_id, payload| {
            found = Some((type_id, PyBytes::new(py, payload)));
        }));
        self.last = polled.stop;
        if found.is_none() {
            stopped(polled.stop)?;
        }
        Ok(found)
    }

    #[pyo3(signature = (limit=1024))]
    fn poll_batch(&mut self, limit: usize) -> PyResult<Batch> {
        let batch = self.poll(limit)?;
        Ok(Batch::of(batch, stopped(self.last)?, false))
    }

    #[pyo3(signature = (timeout=None))]
    fn wait(&mut self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = self::timeout(timeout)?;
        let end = self.open()?;
        Ok(py.detach(|| each!(end, one => one.wait(limit))))
    }

    fn fileno(&mut self, py: Python<'_>) -> PyResult<i32> {
        self.open()?;
        self.ringer.as_mut().ok_or_else(not_shared)?.fileno(py)
    }

    fn arm(&mut self, py: Python<'_>) -> PyResult<u8> {
        let end = self.end.as_ref().ok_or_else(closed)?;
        self.ringer.as_mut().ok_or_else(not_shared)?.arm(py, || each!(end, one => one.is_ready()))
    }

    #[getter]
    fn stop(&self) -> PyResult<&'static str> {
        stopped(self.last)
    }

    #[getter]
    fn position(&mut self) -> PyResult<u64> {
        Ok(each!(self.open()?, one => one.position()))
    }

    fn unblock(&mut self) -> PyResult<bool> {
        match self.open()? {
            End::Many(one) => Ok(one.unblock()),
            _ => Err(PyValueError::new_err("only a ring of many producers can be blocked by a dead one")),
        }
    }

    fn producer_state(&mut self) -> PyResult<(&'static str, u32)> {
        match self.open()? {
            End::Ring(one) => Ok(described(one.producer_state())),
            End::Terms(one) => Ok(described(one.producer_state())),
            End::Many(_) => Err(PyValueError::new_err("expected a ring of one producer; see producer_states()")),
        }
    }

    fn producer_states(&mut self) -> PyResult<Vec<(&'static str, u32)>> {
        match self.open()? {
            End::Ring(one) => Ok(vec![described(one.producer_state())]),
            End::Terms(one) => Ok(vec![described(one.producer_state())]),
            End::Many(one) => Ok(one.producer_states().map(described).collect()),
        }
    }

    fn counts(&mut self) -> PyResult<Vec<(&'static str, u64)>> {
        let counts: ConsumerCounts = each!(self.open()?, one => one.counts());
        Ok(vec![
            ("frames", counts.frames),
            ("payload_bytes", counts.payload_bytes),
            ("padding_bytes", counts.padding_bytes),
            ("unblocked", counts.unblocked),
            ("corrupt", counts.corrupt),
        ])
    }

    fn beat(&mut self) -> PyResult<()> {
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_nanos() as u64);
        each!(self.open()?, one => one.beat(now_ns));
        Ok(())
    }

    fn close(&mut self) {
        self.ringer = None;
        self.end = None;
    }

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
