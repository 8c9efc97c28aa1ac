//! The ring of fixed items.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relay_accel_core::ring::{
    FixedConsumer as CoreConsumer, FixedProducer as CoreProducer, Refusal, SharedFixedRing, Stop, fixed,
};

use crate::batch::Batch;
use crate::consumer::stopped;
use crate::errors::{closed, detached, raised, refused_as};
use crate::memory::{named_segment, not_shared};
use crate::producer::with_bytes;
use crate::segments::{created, mapped, place};
use crate::state::{described, timeout};

/// A ring of items of one size: whole batches are pushed and popped with one release.
#[pyclass(module = "relay_accel")]
pub(crate) struct FixedRing {
    name: String,
    shared: Option<SharedFixedRing>,
    producer: Option<CoreProducer>,
    consumer: Option<CoreConsumer>,
    item_length: usize,
    item_count: usize,
}

impl FixedRing {
    fn shared(&self) -> PyResult<&SharedFixedRing> {
        self.shared.as_ref().ok_or_else(not_shared)
    }

    fn over(name: &str, shared: SharedFixedRing) -> Self {
        let (item_length, item_count) = (shared.item_length(), shared.item_count());
        Self { name: name.into(), shared: Some(shared), producer: None, consumer: None, item_length, item_count }
    }
}

#[pymethods]
impl FixedRing {
    /// Make a ring of this process; `item_count` is a power of two.
    #[staticmethod]
    fn heap(py: Python<'_>, item_length: usize, item_count: usize) -> PyResult<Self> {
        let (producer, consumer) = fixed(item_length, item_count).map_err(|error| raised(py, error))?;
        let (producer, consumer) = (Some(producer), Some(consumer));
        Ok(Self { name: String::new(), shared: None, producer, consumer, item_length, item_count })
    }

    /// Make a named ring; see `Ring.create`.
    #[staticmethod]
    #[pyo3(signature = (
        name, item_length, item_count, *, directory=None, pre_fault=true, huge_pages=false, replace_stale=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn create(
        py: Python<'_>,
        name: &str,
        item_length: usize,
        item_count: usize,
        directory: Option<&str>,
        pre_fault: bool,
        huge_pages: bool,
        replace_stale: bool,
    ) -> PyResult<Self> {
        let (directory, segment) = place(py, directory, name)?;
        let options = created(pre_fault, huge_pages, replace_stale);
        detached(py, || SharedFixedRing::create(&directory, &segment, item_length, item_count, options))
            .map(|shared| Self::over(name, shared))
    }

    /// Open a named ring; see `Ring.open`.
    #[staticmethod]
    #[pyo3(signature = (name, *, directory=None, pre_fault=true, huge_pages=false))]
    fn open(py: Python<'_>, name: &str, directory: Option<&str>, pre_fault: bool, huge_pages: bool) -> PyResult<Self> {
        let (directory, segment) = place(py, directory, name)?;
        detached(py, || SharedFixedRing::open(&directory, &segment, mapped(pre_fault, huge_pages)))
            .map(|shared| Self::over(name, shared))
    }

    /// Take the writing end; see `Ring.producer`.
    fn producer(&mut self, py: Python<'_>) -> PyResult<FixedProducer> {
        let end = match &self.shared {
            Some(shared) => shared.producer().map_err(|error| raised(py, error))?,
            None => self.producer.take().ok_or_else(|| PyValueError::new_err("the producer was taken already"))?,
        };
        Ok(FixedProducer { end: Some(end) })
    }

    /// Take the reading end; see `Ring.consumer`.
    fn consumer(&mut self, py: Python<'_>) -> PyResult<FixedConsumer> {
        let end = match &self.shared {
            Some(shared) => shared.consumer().map_err(|error| raised(py, error))?,
            None => self.consumer.take().ok_or_else(|| PyValueError::new_err("the consumer was taken already"))?,
        };
        Ok(FixedConsumer { end: Some(end) })
    }

    /// Return state and process id of who holds the writing end.
    fn producer_state(&self) -> PyResult<(&'static str, u32)> {
        Ok(described(self.shared()?.producer_state()))
    }

    /// Return state and process id of who holds the reading end.
    fn consumer_state(&self) -> PyResult<(&'static str, u32)> {
        Ok(described(self.shared()?.consumer_state()))
    }

    /// Bytes of one item.
    #[getter]
    fn item_length(&self) -> usize {
        self.item_length
    }

    /// Items that fit.
    #[getter]
    fn item_count(&self) -> usize {
        self.item_count
    }
}

named_segment!(FixedRing, shared);

/// A writing end of items.
#[pyclass(module = "relay_accel")]
pub(crate) struct FixedProducer {
    end: Option<CoreProducer>,
}

impl FixedProducer {
    fn open(&mut self) -> PyResult<&mut CoreProducer> {
        self.end.as_mut().ok_or_else(closed)
    }
}

#[pymethods]
impl FixedProducer {
    /// Push whole items; return how many were taken, from the first on, or an outcome below 0 for none.
    ///
    /// Raises ValueError: the buffer is no whole number of items.
    fn push(&mut self, items: &Bound<'_, PyAny>) -> PyResult<isize> {
        let end = self.open()?;
        let item_length = end.item_length();
        let pushed = with_bytes(items, |bytes| {
            if !bytes.len().is_multiple_of(item_length) {
                let text = format!("expected whole items of {item_length} bytes, got {} bytes", bytes.len());
                return Err(PyValueError::new_err(text));
            }
            Ok(end.push(bytes))
        })??;
        match pushed {
            Ok(count) => Ok(count as isize),
            Err(Refusal::BackPressured) => Ok(-1),
            Err(refusal) => refused_as(refusal).map(|code| code as isize),
        }
    }

    /// Bytes of one item.
    #[getter]
    fn item_length(&mut self) -> PyResult<usize> {
        Ok(self.open()?.item_length())
    }

    /// Items pushed since the ring was made.
    #[getter]
    fn position(&mut self) -> PyResult<u64> {
        Ok(self.open()?.position())
    }

    /// Return state and process id of who holds the reading end.
    fn consumer_state(&mut self) -> PyResult<(&'static str, u32)> {
        Ok(described(self.open()?.consumer_state()))
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

/// The reading end of items.
#[pyclass(module = "relay_accel")]
pub(crate) struct FixedConsumer {
    end: Option<CoreConsumer>,
}

impl FixedConsumer {
    fn open(&mut self) -> PyResult<&mut CoreConsumer> {
        self.end.as_mut().ok_or_else(closed)
    }
}

#[pymethods]
impl FixedConsumer {
    /// Return the next item, or None.
    fn pop<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let end = self.open()?;
        let mut popped = Err(Stop::Empty);
        let item = PyBytes::new_with(py, end.item_length(), |bytes| {
            popped = end.pop(bytes);
            Ok(())
        })?;
        match popped {
            Ok(0) | Err(Stop::Empty) => Ok(None),
            Ok(_) => Ok(Some(item)),
            Err(stop) => stopped(stop).map(|_| None),
        }
    }

    /// Return at most so many items, and at most 64 MiB of them.
    #[pyo3(signature = (limit=1024))]
    fn pop_batch(&mut self, limit: usize) -> PyResult<Batch> {
        let end = self.open()?;
        let item_length = end.item_length();
        let mut bytes = vec![0; limit.max(1).saturating_mul(item_length).min(1 << 26) / item_length * item_length];
        let (count, stop) = match end.pop(&mut bytes) {
            Ok(count) if count * item_length == bytes.len() => (count, Stop::Limit),
            Ok(count) => (count, Stop::Empty),
            Err(stop) => (0, stop),
        };
        bytes.truncate(count * item_length);
        Ok(Batch::of_items(bytes, item_length, stopped(stop)?))
    }

    /// Sleep until there is something; return whether there is. Lets other threads run.
    #[pyo3(signature = (timeout=None))]
    fn wait(&mut self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = self::timeout(timeout)?;
        let end = self.open()?;
        Ok(py.detach(|| end.wait(limit)))
    }

    /// Bytes of one item.
    #[getter]
    fn item_length(&mut self) -> PyResult<usize> {
        Ok(self.open()?.item_length())
    }

    /// Items popped since the ring was made.
    #[getter]
    fn position(&mut self) -> PyResult<u64> {
        Ok(self.open()?.position())
    }

    /// Return state and process id of who holds the writing end.
    fn producer_state(&mut self) -> PyResult<(&'static str, u32)> {
        Ok(described(self.open()?.producer_state()))
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
