//! Counters that other processes read.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use relay_accel_core::counters::{Counter as CoreCounter, CounterSet, LABEL_LENGTH_MAX, STANDARD, SharedCounters};

use crate::errors::raised;
use crate::memory::{named_segment, not_shared};
use crate::segments::{created, mapped, place};

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
    #[staticmethod]
    #[pyo3(signature = (count=64))]
    fn heap(py: Python<'_>, count: usize) -> PyResult<Self> {
        let set = CounterSet::heap(count).map_err(|error| raised(py, error))?;
        Ok(Self { name: String::new(), shared: None, set })
    }

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
        SharedCounters::create(&directory, &segment, count, created(pre_fault, huge_pages, replace_stale))
            .map(|shared| Self::over(name, shared))
            .map_err(|error| raised(py, error))
    }

    #[staticmethod]
    #[pyo3(signature = (name, *, directory=None, pre_fault=false, huge_pages=false))]
    fn open(py: Python<'_>, name: &str, directory: Option<&str>, pre_fault: bool, huge_pages: bool) -> PyResult<Self> {
        let (directory, segment) = place(py, directory, name)?;
        SharedCounters::open(&directory, &segment, mapped(pre_fault, huge_pages))
            .map(|shared| Self::over(name, shared))
            .map_err(|error| raised(py, error))
    }

    #[staticmethod]
    fn standard() -> Vec<(i32, &'static str)> {
        STANDARD.iter().map(|counter| (counter.type_id, counter.label)).collect()
    }

    fn allocate(&self, type_id: i32, label: &str) -> PyResult<Option<Counter>> {
        if label.len() > LABEL_LENGTH_MAX {
            let text = format!("label: expected at most {LABEL_LENGTH_MAX} bytes of UTF-8, got {}", label.len());
            return Err(PyValueError::new_err(text));
        }
        Ok(self.set.allocate(type_id, label).map(|counter| Counter { counter }))
    }

    fn find(&self, type_id: i32, label: &str) -> Option<Counter> {
        self.set.find(type_id, label).map(|counter| Counter { counter })
    }

    fn snapshot(&self) -> Vec<(i32, String, i64)> {
        self.set.snapshot().into_iter().map(|one| (one.type_id, one.label, one.value)).collect()
    }

    fn reset(&self) {
        self.set.reset();
    }

    fn __len__(&self) -> usize {
        self.set.capacity()
    }
}

named_segment!(Counters, shared);

#[pyclass(frozen, module = "relay_accel")]
pub(crate) struct Counter {
    counter: CoreCounter,
}

#[pymethods]
impl Counter {
    #[pyo3(signature = (amount=1))]
    fn add(&self, amount: i64) {
        self.counter.add(amount);
    }

    fn set(&self, value: i64) {
        self.counter.set(value);
    }

    fn get(&self) -> i64 {
        self.counter.get()
    }

    fn take(&self) -> i64 {
        self.counter.take()
    }

    fn free(&self) {
        self.counter.clone().free();
    }
}
