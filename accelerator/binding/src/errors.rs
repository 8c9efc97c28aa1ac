//! The core's errors as exceptions: one root, branches by what the caller can do, a stable code on each.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use relay_accel_core::ring::Refusal;
use relay_accel_core::{Code, Error};

create_exception!(relay_accel, AccelError, PyException);
create_exception!(relay_accel, ArgumentError, AccelError);
create_exception!(relay_accel, SegmentError, AccelError);
create_exception!(relay_accel, BusyError, AccelError);
create_exception!(relay_accel, StorageError, AccelError);
create_exception!(relay_accel, AccessError, AccelError);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("AccelError", py.get_type::<AccelError>())?;
    module.add("ArgumentError", py.get_type::<ArgumentError>())?;
    module.add("SegmentError", py.get_type::<SegmentError>())?;
    module.add("BusyError", py.get_type::<BusyError>())?;
    module.add("StorageError", py.get_type::<StorageError>())?;
    module.add("AccessError", py.get_type::<AccessError>())
}

/// The exception for an error of the core, with its `code`.
pub(crate) fn raised(py: Python<'_>, error: Error) -> PyErr {
    let text = error.to_string();
    let (code, exception) = match error.code() {
        Code::InvalidArgument => ("INVALID_ARGUMENT", ArgumentError::new_err(text)),
        Code::InvalidName => ("INVALID_NAME", ArgumentError::new_err(text)),
        Code::InvalidTermLength => ("INVALID_TERM_LENGTH", ArgumentError::new_err(text)),
        Code::InvalidChannel => ("INVALID_CHANNEL", SegmentError::new_err(text)),
        Code::UnsupportedVersion => ("UNSUPPORTED_VERSION", SegmentError::new_err(text)),
        Code::WrongKind => ("WRONG_KIND", SegmentError::new_err(text)),
        Code::TermLengthMismatch => ("TERM_LENGTH_MISMATCH", SegmentError::new_err(text)),
        Code::CorruptChannel => ("CORRUPT_CHANNEL", SegmentError::new_err(text)),
        Code::NotReady => ("NOT_READY", BusyError::new_err(text)),
        Code::EndTaken => ("END_TAKEN", BusyError::new_err(text)),
        Code::NoFreeSlot => ("NO_FREE_SLOT", BusyError::new_err(text)),
        Code::AlreadyExists => ("ALREADY_EXISTS", StorageError::new_err(text)),
        Code::NotFound => ("NOT_FOUND", StorageError::new_err(text)),
        Code::NoSpace => ("NO_SPACE", StorageError::new_err(text)),
        Code::LockBusy => ("LOCK_BUSY", StorageError::new_err(text)),
        Code::AccessDenied => ("ACCESS_DENIED", AccessError::new_err(text)),
        _ => ("SYSTEM", StorageError::new_err(text)),
    };
    // An exception without its code is still the right one.
    let _ = exception.value(py).setattr("code", code);
    exception
}

/// Asks the core for what may wait for another process, or takes much memory; other threads of the interpreter run meanwhile.
pub(crate) fn detached<T: Send>(py: Python<'_>, ask: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    py.detach(ask).map_err(|error| raised(py, error))
}

/// Outcomes of the hot path are numbers; what a caller did wrong is raised.
pub(crate) fn outcome(refused: Result<(), Refusal>) -> PyResult<i32> {
    match refused {
        Ok(()) => Ok(0),
        Err(refusal) => refused_as(refusal),
    }
}

pub(crate) fn refused_as(refusal: Refusal) -> PyResult<i32> {
    match refusal {
        Refusal::BackPressured => Ok(-1),
        Refusal::TooLong => Ok(-2),
        Refusal::Closed => Ok(-3),
        Refusal::Corrupt => Ok(-4),
        Refusal::BadType => Err(PyValueError::new_err("expected a type id greater than 0")),
        Refusal::Forked => Err(forked()),
        Refusal::ClaimOpen => Err(PyRuntimeError::new_err("a claim is open: commit or abort it first")),
    }
}

pub(crate) fn forked() -> PyErr {
    PyRuntimeError::new_err("this end belongs to the parent process: make one of your own after a fork")
}

pub(crate) fn closed() -> PyErr {
    PyRuntimeError::new_err("this end was closed")
}
