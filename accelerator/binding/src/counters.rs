//! Counters that other processes read.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use relay_accel_core::counters::{
    Counter as CoreCounter, CounterSet, LABEL_LENGTH_MAX, STANDARD, SharedCounters, is_label,
};

use crate::errors::{detached, raised};
use crate::memory::{named_segment, not_shared};
use crate::segments::{created, mapped, place};

/// Counters that other processes read while they are counted.
#[pyclass(frozen, module = "relay_accel")]
pub(crate) struct Counters {
    name: String,
    shared: Option<SharedCounters>,
    set: CounterSet,
}

impl Counters {
    fn shared(&self) -> PyResult<&SharedCounters> {
        self.shared.as_ref().ok_or_else(not_shared)
    }

    fn over(name: &str, shared: SharedCounters) -> Self {
        Self { name: name.into(), set: CounterSet::clone(&shared), shared: Some(shared) }
    }
}

#[pymethods]
impl Counters {
    /// Make counters of this process.
    #[staticmethod]
    #[pyo3(signature = (count=64))]
    fn heap(py: Python<'_>, count: usize) -> PyResult<Self> {
        let set = CounterSet::heap(count).map_err(|error| raised(py, error))?;
        Ok(Self { name: String::new(), shared: None, set })
    }

    /// Make a named set of `count` counters (1 to 65,536); see `Ring.create`.
    #[staticmethod]
    #[pyo3(signature = (name, count=64, *, directory=None, pre_fault=true, huge_pages=false, replace_stale=false))]
    fn create(
        py: Python<'_>,
        name: &str,
        count: usize,
        directory: Option<&str>,
        pre_fault: bool,
        huge_pages: bool,
        replace_stale: bool,
    ) -> PyResult<Self> {
        let (directory, segment) = place(py, directory, name)?;
        detached(py, || {
            SharedCounters::create(&directory, &segment, count, created(pre_fault, huge_pages, replace_stale))
        })
        .map(|shared| Self::over(name, shared))
    }

    /// Open a named set, to read or to count in; see `Ring.open`.
    #[staticmethod]
    #[pyo3(signature = (name, *, directory=None, pre_fault=false, huge_pages=false))]
    fn open(py: Python<'_>, name: &str, directory: Option<&str>, pre_fault: bool, huge_pages: bool) -> PyResult<Self> {
        let (directory, segment) = place(py, directory, name)?;
        detached(py, || SharedCounters::open(&directory, &segment, mapped(pre_fault, huge_pages)))
            .map(|shared| Self::over(name, shared))
    }

    /// Return type id and label of the standard counters.
    #[staticmethod]
    fn standard() -> Vec<(i32, &'static str)> {
        STANDARD.iter().map(|counter| (counter.type_id, counter.label)).collect()
    }

    /// Take a free place; None when all are taken.
    ///
    /// Args: type_id: of `standard`, or one's own from 1,000 on. label: at most 64 bytes of UTF-8, no control characters.
    ///
    /// Raises ValueError: it is no such label.
    fn allocate(&self, type_id: i32, label: &str) -> PyResult<Option<Counter>> {
        if !is_label(label) {
            let length = label.len();
            let text = format!(
                "label: expected at most {LABEL_LENGTH_MAX} bytes of UTF-8 without control characters, got {length} bytes"
            );
            return Err(PyValueError::new_err(text));
        }
        Ok(self.set.allocate(type_id, label).map(|counter| Counter { counter }))
    }

    /// Return the counter of a type and label, where there is one.
    fn find(&self, type_id: i32, label: &str) -> Option<Counter> {
        self.set.find(type_id, label).map(|counter| Counter { counter })
    }

    /// Return type id, label and value of all counters. Each value is whole; together they are of no one instant.
    ///
    /// Another process may have written anything: a label has at most 64 characters, and U+FFFD stands for control
    /// characters and bytes that are no UTF-8.
    fn snapshot(&self) -> Vec<(i32, String, i64)> {
        self.set.snapshot().into_iter().map(|one| (one.type_id, one.label, one.value)).collect()
    }

    /// Set all counters to 0.
    fn reset(&self) {
        self.set.reset();
    }

    fn __len__(&self) -> usize {
        self.set.capacity()
    }
}

named_segment!(Counters, shared);

/// One counter, a signed number of 64 bits that wraps. Any number of threads and processes may count.
#[pyclass(frozen, module = "relay_accel")]
pub(crate) struct Counter {
    counter: CoreCounter,
}

#[pymethods]
impl Counter {
    /// Add.
    #[pyo3(signature = (amount=1))]
    fn add(&self, amount: i64) {
        self.counter.add(amount);
    }

    /// Set it.
    fn set(&self, value: i64) {
        self.counter.set(value);
    }

    /// Return its value.
    fn get(&self) -> i64 {
        self.counter.get()
    }

    /// Set it to 0 and return what it was.
    fn take(&self) -> i64 {
        self.counter.take()
    }

    /// Give its place back; other objects of this counter must not be used any more.
    fn free(&self) {
        self.counter.clone().free();
    }
}
