//! Rings and channels: made on the heap for threads, or by name for processes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use relay_accel_core::memory::HugePages;
use relay_accel_core::ring::{
    FrameConsumer, FrameProducer, IpcChannel, Mpsc, RingGeometry, SharedMpscRing, SharedRing, TermGeometry, log_buffer,
    spsc,
};

use crate::bell::Ringer;
use crate::consumer::{self, Consumer};
use crate::errors::{detached, raised};
use crate::producer::{self, Producer};
use crate::segments::{created, mapped, place};
use crate::state::described;

/// What came of asking for huge pages, in words.
pub(crate) fn pages(of: &HugePages) -> String {
    match of {
        HugePages::NotAsked => "not asked for".into(),
        HugePages::Advised { mapped_bytes } => format!("{mapped_bytes} bytes in huge pages"),
        HugePages::Unavailable { reason } => format!("unavailable: {reason}"),
    }
}

/// What every named segment can be asked.
macro_rules! named_segment {
    ($class:ident, $field:ident) => {
        #[pymethods]
        impl $class {
            /// Name of the segment; None on the heap.
            #[getter]
            fn name(&self) -> Option<String> {
                self.$field.as_ref().map(|_| self.name.clone())
            }

            /// When the segment was made, since 1970: tells it from a later one of the same name.
            #[getter]
            fn epoch_ns(&self) -> PyResult<u64> {
                Ok(self.shared()?.epoch_ns())
            }

            /// Return state and process id of who made the segment.
            fn creator(&self) -> PyResult<(&'static str, u32)> {
                Ok(crate::state::described(self.shared()?.creator()))
            }

            /// Whether its creator and all who held an end are proven dead or have left.
            #[getter]
            fn is_stale(&self) -> PyResult<bool> {
                Ok(self.shared()?.is_stale())
            }

            /// Whether the name still leads to this segment.
            #[getter]
            fn is_named(&self) -> PyResult<bool> {
                Ok(self.shared()?.is_named())
            }

            /// Remove the name if it still leads here; return whether it did.
            ///
            /// Args: timeout: seconds to wait, at most, for a process that changes the directory; others run meanwhile.
            ///
            /// Raises StorageError: LOCK_BUSY, and the name stays: `create(replace_stale=True)` replaces it when
            /// everybody who used the segment is gone.
            #[pyo3(signature = (*, timeout=1.0))]
            fn unlink(slf: &Bound<'_, Self>, timeout: f64) -> PyResult<bool> {
                let wait = crate::state::timeout(Some(timeout))?;
                // Not borrowed while it waits: other threads may use it.
                let shared = slf.borrow().shared()?.clone();
                crate::errors::detached(slf.py(), || shared.unlink_within(wait))
            }

            /// Raise SegmentError (TERM_LENGTH_MISMATCH) when the file was cut: stop using it then.
            fn verify_length(&self, py: Python<'_>) -> PyResult<()> {
                self.shared()?.verify_length().map_err(|error| crate::errors::raised(py, error))
            }

            /// What came of asking for huge pages, in words.
            #[getter]
            fn huge_pages(&self) -> PyResult<String> {
                Ok(crate::memory::pages(self.shared()?.huge_pages()))
            }
        }
    };
}
pub(crate) use named_segment;

pub(crate) fn not_shared() -> PyErr {
    PyValueError::new_err("expected a named segment; this one is memory of this process alone")
}

/// An end of a ring on the heap is there once: it is taken, and given back by nobody.
fn taken(what: &str) -> PyErr {
    PyValueError::new_err(format!(
        "the {what} of this ring was taken already; a named ring gives it back when it is closed"
    ))
}

macro_rules! ring_class {
    ($class:ident, $shared:ident, $geometry:ident, $heap:path, $variant:ident, $length:ident, $about:literal) => {
        #[doc = $about]
        #[pyclass(module = "relay_accel")]
        pub(crate) struct $class {
            name: String,
            shared: Option<$shared>,
            producer: Option<FrameProducer<$geometry>>,
            consumer: Option<FrameConsumer<$geometry>>,
            length: usize,
        }

        impl $class {
            fn shared(&self) -> PyResult<&$shared> {
                self.shared.as_ref().ok_or_else(not_shared)
            }

            fn over(name: &str, shared: $shared) -> Self {
                let length = shared.$length();
                Self { name: name.into(), shared: Some(shared), producer: None, consumer: None, length }
            }
        }

        #[pymethods]
        impl $class {
            /// Make a ring of this process, for threads; each end can be taken once.
            #[staticmethod]
            fn heap(py: Python<'_>, length: usize) -> PyResult<Self> {
                let (producer, consumer) = $heap(length).map_err(|error| raised(py, error))?;
                Ok(Self { name: String::new(), shared: None, producer: Some(producer), consumer: Some(consumer), length })
            }

            /// Make a named ring.
            ///
            /// Args: name: 1 to 128 of `a-z 0-9 . _ -`, the first no dot. length: capacity in bytes. directory: made
            /// 0700 where it does not exist. pre_fault: touch every page now, so that no message pays for it.
            /// huge_pages: ask for them; `huge_pages` tells what came of it. replace_stale: replace a segment of this
            /// name that nobody can use any more.
            ///
            /// Raises StorageError: ALREADY_EXISTS, NO_SPACE (all memory is taken here, never later), LOCK_BUSY (a stale
            /// one was to be replaced, and another process held the directory for a second). ArgumentError, AccessError:
            /// see there.
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
                let options = created(pre_fault, huge_pages, replace_stale);
                detached(py, || $shared::create(&directory, &segment, length, options)).map(|shared| Self::over(name, shared))
            }

            /// Open a named ring; the length is its creator's.
            ///
            /// Raises StorageError: NOT_FOUND. SegmentError: it is something else, or damaged.
            #[staticmethod]
            #[pyo3(signature = (name, *, directory=None, pre_fault=true, huge_pages=false))]
            fn open(
                py: Python<'_>,
                name: &str,
                directory: Option<&str>,
                pre_fault: bool,
                huge_pages: bool,
            ) -> PyResult<Self> {
                let (directory, segment) = place(py, directory, name)?;
                detached(py, || $shared::open(&directory, &segment, mapped(pre_fault, huge_pages))).map(|shared| Self::over(name, shared))
            }

            /// Take the writing end.
            ///
            /// Raises BusyError: END_TAKEN. ValueError: that of a ring on the heap was taken before.
            fn producer(&mut self, py: Python<'_>) -> PyResult<Producer> {
                let end = match &self.shared {
                    Some(shared) => shared.producer().map_err(|error| raised(py, error))?,
                    None => self.producer.take().ok_or_else(|| taken("producer"))?,
                };
                Ok(Producer::of(producer::End::$variant(end)))
            }

            /// Take the reading end; it goes on where the last one released. Raises as `producer`.
            fn consumer(&mut self, py: Python<'_>) -> PyResult<Consumer> {
                let end = match &self.shared {
                    Some(shared) => shared.consumer().map_err(|error| raised(py, error))?,
                    None => self.consumer.take().ok_or_else(|| taken("consumer"))?,
                };
                let ringer = self.shared.clone().map(|shared| Ringer::new(move || shared.bell()));
                Ok(Consumer::of(consumer::End::$variant(end), ringer))
            }

            /// Return state and process id of who holds the writing end.
            fn producer_state(&self) -> PyResult<(&'static str, u32)> {
                Ok(described(self.shared()?.producer_state()))
            }

            /// Return state and process id of who holds the reading end.
            fn consumer_state(&self) -> PyResult<(&'static str, u32)> {
                Ok(described(self.shared()?.consumer_state()))
            }

            /// Return when producer and consumer last called `beat()`, since 1970; 0 for never.
            fn beats_ns(&self) -> PyResult<(u64, u64)> {
                Ok(self.shared()?.beats_ns())
            }

            /// Capacity in bytes; of a channel the length of one of its three terms.
            #[getter]
            fn length(&self) -> usize {
                self.length
            }
        }

        named_segment!($class, shared);
    };
}

ring_class!(Ring, SharedRing, RingGeometry, spsc, Ring, capacity, "A byte ring of one producer and one consumer.");
ring_class!(
    Channel,
    IpcChannel,
    TermGeometry,
    log_buffer,
    Terms,
    term_length,
    "The same with the largest window: three terms."
);

/// A byte ring of many producers, who come and go, and one consumer.
#[pyclass(module = "relay_accel")]
pub(crate) struct MpscRing {
    name: String,
    shared: Option<SharedMpscRing>,
    heap: Option<Mpsc>,
}

impl MpscRing {
    fn shared(&self) -> PyResult<&SharedMpscRing> {
        self.shared.as_ref().ok_or_else(not_shared)
    }

    fn over(name: &str, shared: SharedMpscRing) -> Self {
        Self { name: name.into(), shared: Some(shared), heap: None }
    }
}

#[pymethods]
impl MpscRing {
    /// Make a ring of this process; `slots` is how many producers it can have at a time.
    #[staticmethod]
    #[pyo3(signature = (length, *, slots=32))]
    fn heap(py: Python<'_>, length: usize, slots: usize) -> PyResult<Self> {
        let heap = Mpsc::heap(length, slots).map_err(|error| raised(py, error))?;
        Ok(Self { name: String::new(), shared: None, heap: Some(heap) })
    }

    /// Make a named ring; see `Ring.create`.
    #[staticmethod]
    #[pyo3(signature = (name, length, *, slots=32, directory=None, pre_fault=true, huge_pages=false, replace_stale=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn create(
        py: Python<'_>,
        name: &str,
        length: usize,
        slots: usize,
        directory: Option<&str>,
        pre_fault: bool,
        huge_pages: bool,
        replace_stale: bool,
    ) -> PyResult<Self> {
        let (directory, segment) = place(py, directory, name)?;
        detached(py, || {
            SharedMpscRing::create(&directory, &segment, length, slots, created(pre_fault, huge_pages, replace_stale))
        })
        .map(|shared| Self::over(name, shared))
    }

    /// Open a named ring; see `Ring.open`.
    #[staticmethod]
    #[pyo3(signature = (name, *, directory=None, pre_fault=true, huge_pages=false))]
    fn open(py: Python<'_>, name: &str, directory: Option<&str>, pre_fault: bool, huge_pages: bool) -> PyResult<Self> {
        let (directory, segment) = place(py, directory, name)?;
        detached(py, || SharedMpscRing::open(&directory, &segment, mapped(pre_fault, huge_pages)))
            .map(|shared| Self::over(name, shared))
    }

    /// Take a producer's slot.
    ///
    /// Raises BusyError: NO_FREE_SLOT.
    fn producer(&self, py: Python<'_>) -> PyResult<Producer> {
        let end = match (&self.shared, &self.heap) {
            (Some(shared), _) => shared.producer(),
            (_, Some(heap)) => heap.producer(),
            _ => return Err(not_shared()),
        };
        Ok(Producer::of(producer::End::Many(end.map_err(|error| raised(py, error))?)))
    }

    /// Take the reading end; see `Ring.consumer`.
    fn consumer(&self, py: Python<'_>) -> PyResult<Consumer> {
        let end = match (&self.shared, &self.heap) {
            (Some(shared), _) => shared.consumer(),
            (_, Some(heap)) => heap.consumer(),
            _ => return Err(not_shared()),
        };
        let ringer = self.shared.clone().map(|shared| Ringer::new(move || shared.bell()));
        Ok(Consumer::of(consumer::End::Many(end.map_err(|error| raised(py, error))?), ringer))
    }

    /// Return state and process id of who holds the reading end.
    fn consumer_state(&self) -> PyResult<(&'static str, u32)> {
        Ok(described(self.shared()?.consumer_state()))
    }

    /// Capacity in bytes.
    #[getter]
    fn length(&self) -> usize {
        match (&self.shared, &self.heap) {
            (Some(shared), _) => shared.capacity(),
            (_, Some(heap)) => heap.capacity(),
            _ => 0,
        }
    }

    /// How many producers it can have at a time.
    #[getter]
    fn slots(&self) -> usize {
        match (&self.shared, &self.heap) {
            (Some(shared), _) => shared.slot_count(),
            (_, Some(heap)) => heap.slot_count(),
            _ => 0,
        }
    }
}

named_segment!(MpscRing, shared);
