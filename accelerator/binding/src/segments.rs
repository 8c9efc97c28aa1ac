//! The directory of named segments.

use pyo3::prelude::*;
use relay_accel_core::memory::{SegmentDirectory, SegmentName, SegmentOptions};
use relay_accel_core::ring::CreateOptions;

use crate::errors::{detached, raised};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(default_directory, module)?)?;
    module.add_function(wrap_pyfunction!(segment_names, module)?)?;
    module.add_function(wrap_pyfunction!(unlink, module)?)
}

/// A checked directory and name.
pub(crate) fn place(py: Python<'_>, directory: Option<&str>, name: &str) -> PyResult<(SegmentDirectory, SegmentName)> {
    let name = SegmentName::new(name).map_err(|error| raised(py, error))?;
    Ok((opened(py, directory)?, name))
}

fn opened(py: Python<'_>, directory: Option<&str>) -> PyResult<SegmentDirectory> {
    let path = directory.map_or_else(SegmentDirectory::default_path, Into::into);
    detached(py, || SegmentDirectory::open(path))
}

pub(crate) fn mapped(pre_fault: bool, huge_pages: bool) -> SegmentOptions {
    SegmentOptions { pre_fault, huge_pages }
}

pub(crate) fn created(pre_fault: bool, huge_pages: bool, replace_stale: bool) -> CreateOptions {
    CreateOptions { segment: mapped(pre_fault, huge_pages), replace_stale }
}

/// Return where named segments lie when nothing else is said: below /dev/shm, for this user alone.
#[pyfunction]
fn default_directory() -> String {
    SegmentDirectory::default_path().to_string_lossy().into_owned()
}

/// Return the names in a directory, sorted.
#[pyfunction]
#[pyo3(signature = (*, directory=None))]
fn segment_names(py: Python<'_>, directory: Option<&str>) -> PyResult<Vec<String>> {
    let directory = opened(py, directory)?;
    let names = detached(py, || directory.names())?;
    Ok(names.into_iter().map(|name| name.as_str().to_owned()).collect())
}

/// Remove a name; who has the segment open keeps it. Return whether there was one.
#[pyfunction]
#[pyo3(signature = (name, *, directory=None))]
fn unlink(py: Python<'_>, name: &str, directory: Option<&str>) -> PyResult<bool> {
    let (directory, name) = place(py, directory, name)?;
    detached(py, || directory.unlink(&name))
}
