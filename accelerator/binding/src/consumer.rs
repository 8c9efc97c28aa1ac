//! The reading end of a ring or channel.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relay_accel_core::ring::{
    ConsumerCounts, Frame, FrameBatch, FrameConsumer, MpscConsumer, Polled, RingGeometry, Stop, TermGeometry,
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

/// The reading end.
#[pyclass(module = "relay_accel")]
pub(crate) struct Consumer {
    // Dropped before the end: its word in the page is given back first.
    ringer: Option<Ringer>,
    end: Option<End>,
    last: Stop,
    /// Messages and bytes of the last batch: the next will need as much room.
    room: (usize, usize),
}

impl Consumer {
    pub(crate) fn of(end: End, ringer: Option<Ringer>) -> Self {
        Self { ringer, end: Some(end), last: Stop::Empty, room: (0, 0) }
    }

    pub(crate) fn poll(&mut self, limit: usize) -> PyResult<FrameBatch> {
        let mut batch = FrameBatch::with_capacity(self.room.0.min(limit), self.room.1);
        let end = self.open()?;
        let polled: Polled = each!(end, one => one.poll_batch(limit, &mut batch));
        self.last = polled.stop;
        self.room = (batch.len(), batch.bytes().len());
        stopped(polled.stop)?;
        Ok(batch)
    }

    fn open(&mut self) -> PyResult<&mut End> {
        self.end.as_mut().ok_or_else(closed)
    }

    /// The plain case of a take, as [`crate::fast`] calls it; `None` where something is to be raised.
    #[inline]
    pub(crate) fn try_take<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let mut found = None;
        let polled: Polled = each!(self.end.as_mut()?, one => one.poll_frames(1, |frame| {
            found = Some(payload_of(py, &frame).ok());
        }));
        self.last = polled.stop;
        match found {
            // None where there is no memory for it: the message is lost.
            Some(bytes) => bytes.map(Bound::into_any),
            None if polled.stop == Stop::Forked => None,
            None => Some(py.None().into_bound(py)),
        }
    }
}

#[inline]
fn payload_of<'py>(py: Python<'py>, frame: &Frame<'_>) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, frame.payload_length(), |bytes| {
        frame.copy_to(bytes);
        Ok(())
    })
}

#[pymethods]
impl Consumer {
    /// `take`, where something is to be raised: [`crate::fast`].
    #[pyo3(name = "_take")]
    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut found = None;
        let end = self.open()?;
        let polled: Polled = each!(end, one => one.poll_frames(1, |frame| {
            found = Some(payload_of(py, &frame));
        }));
        self.last = polled.stop;
        match found {
            Some(bytes) => bytes.map(Some),
            None => stopped(polled.stop).map(|_| None),
        }
    }

    /// Return type and payload of the next message, or None.
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

    /// Return at most so many messages.
    #[pyo3(signature = (limit=1024))]
    fn poll_batch(&mut self, limit: usize) -> PyResult<Batch> {
        let batch = self.poll(limit)?;
        Ok(Batch::of(batch, stopped(self.last)?, false))
    }

    /// Sleep until there is something to read; return whether there is. Lets other threads run.
    ///
    /// Args: timeout: seconds; None waits without end. or_left: do not sleep, or sleep on, once the producer has left:
    /// False then means that nothing will come, until another one takes its end. One that was killed has not left.
    ///
    /// Raises ValueError: or_left of a ring of many producers, who come and go.
    #[pyo3(signature = (timeout=None, *, or_left=false))]
    fn wait(&mut self, py: Python<'_>, timeout: Option<f64>, or_left: bool) -> PyResult<bool> {
        let limit = self::timeout(timeout)?;
        let end = self.open()?;
        if !or_left {
            return Ok(py.detach(|| each!(end, one => one.wait(limit))));
        }
        match end {
            End::Ring(one) => Ok(py.detach(|| one.wait_or_left(limit))),
            End::Terms(one) => Ok(py.detach(|| one.wait_or_left(limit))),
            End::Many(_) => {
                Err(PyValueError::new_err("expected a ring of one producer: of many there is always another"))
            }
        }
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
        self.ringer.as_mut().ok_or_else(not_shared)?.arm(py, || each!(end, one => one.is_ready()))
    }

    /// Why the last poll ended.
    #[getter]
    fn stop(&self) -> PyResult<&'static str> {
        stopped(self.last)
    }

    /// Bytes read since the ring was made.
    #[getter]
    fn position(&mut self) -> PyResult<u64> {
        Ok(each!(self.open()?, one => one.position()))
    }

    /// Skip the claim of a producer that is proven dead; return whether there was one.
    fn unblock(&mut self) -> PyResult<bool> {
        match self.open()? {
            End::Many(one) => Ok(one.unblock()),
            _ => Err(PyValueError::new_err("only a ring of many producers can be blocked by a dead one")),
        }
    }

    /// Return state and process id of who holds the writing end.
    fn producer_state(&mut self) -> PyResult<(&'static str, u32)> {
        match self.open()? {
            End::Ring(one) => Ok(described(one.producer_state())),
            End::Terms(one) => Ok(described(one.producer_state())),
            End::Many(_) => Err(PyValueError::new_err("expected a ring of one producer; see producer_states()")),
        }
    }

    /// Return the same of all producers.
    fn producer_states(&mut self) -> PyResult<Vec<(&'static str, u32)>> {
        match self.open()? {
            End::Ring(one) => Ok(vec![described(one.producer_state())]),
            End::Terms(one) => Ok(vec![described(one.producer_state())]),
            End::Many(one) => Ok(one.producer_states().map(described).collect()),
        }
    }

    /// Return frames, payload_bytes, padding_bytes, unblocked and corrupt since the end was made.
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

    /// Note in the segment that this end is alive now.
    fn beat(&mut self) -> PyResult<()> {
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_nanos() as u64);
        each!(self.open()?, one => one.beat(now_ns));
        Ok(())
    }

    /// Give the end back.
    fn close(&mut self) {
        self.ringer = None;
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
