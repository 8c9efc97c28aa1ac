//! `Producer.offer`, `Consumer.take` and `Unpacker.unpack_from`, called once a message: without the general machinery for arguments.
//!
//! Each answers the plain case itself: one `bytes` and no type id, an end that is open and free. Whatever else comes, wrong
//! arguments and errors among it, goes to the method `_offer`, `_take` or `_unpack_from` that `PyO3` made. That machinery was between a seventh and a
//! third of a call's time (offer and take in turn, as a ratio to a C extension: 2.03 to 1.75 at the best tenth, 2.85 to 1.89 at the median).

use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::consumer::Consumer;
use crate::producer::Producer;

const OFFER_DOC: &CStr = c"offer($self, payload, type_id=1)
--

Write one message, without waiting; return an Outcome as a plain int.

0 ACCEPTED, -1 BACK_PRESSURED (the reader is too far behind: offer it again), -2 TOO_LONG, -3 CLOSED, -4 CORRUPT.
Compare it: ACCEPTED is 0, so `not offer(x)` is true when it was written.

Raises RuntimeError: closed, or a claim is open.";

const TAKE_DOC: &CStr = c"take($self)
--

Return the next payload as bytes, without waiting, or None: `stop` says why.

Raises RuntimeError: closed.";

/// Puts the two in the place of what `PyO3` would make.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let offer_call = ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: offer };
    let keywords = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
    let producer = module.py().get_type::<Producer>();
    replace(&producer, c"offer", offer_call, keywords, OFFER_DOC)?;
    let take_call = ffi::PyMethodDefPointer { PyCFunction: take };
    let consumer = module.py().get_type::<Consumer>();
    replace(&consumer, c"take", take_call, ffi::METH_NOARGS, TAKE_DOC)
}

/// Put a method into a class.
pub(crate) fn replace(
    class: &Bound<'_, pyo3::types::PyType>,
    name: &'static CStr,
    ml_meth: ffi::PyMethodDefPointer,
    ml_flags: c_int,
    doc: &'static CStr,
) -> PyResult<()> {
    let method = ffi::PyMethodDef { ml_name: name.as_ptr(), ml_meth, ml_flags, ml_doc: doc.as_ptr() };
    // The descriptor points to it as long as the class lives: for ever.
    let method = Box::leak(Box::new(method));
    // SAFETY: the class is a type, and the definition is never freed.
    let made = unsafe { ffi::PyDescr_NewMethod(class.as_ptr().cast(), method) };
    // SAFETY: a new reference, or null with an exception set.
    let made = unsafe { Bound::from_owned_ptr_or_err(class.py(), made) }?;
    class.setattr(name.to_string_lossy(), made)
}

/// The number as a Python object, a new reference.
fn long(number: i32) -> *mut ffi::PyObject {
    // SAFETY: the interpreter's lock is held by who called the method.
    unsafe { ffi::PyLong_FromLong(number.into()) }
}

/// The bytes of a `bytes` object; `None` for everything else, its subclasses too.
#[inline]
pub(crate) fn bytes_of<'a>(object: Borrowed<'a, '_, PyAny>) -> Option<&'a [u8]> {
    // SAFETY: a live object has a type.
    let kind = unsafe { ffi::Py_TYPE(object.as_ptr()) };
    if kind != &raw mut ffi::PyBytes_Type {
        return None;
    }
    // SAFETY: it is a `bytes` object.
    let first = unsafe { ffi::PyBytes_AsString(object.as_ptr()) };
    // SAFETY: as above.
    let length = unsafe { ffi::PyBytes_Size(object.as_ptr()) };
    // SAFETY: the bytes never change, and live as long as the object that is borrowed.
    Some(unsafe { std::slice::from_raw_parts(first.cast(), usize::try_from(length).ok()?) })
}

/// # Safety
/// Called by the interpreter, with a producer, its arguments, and the names of the last ones or null.
unsafe extern "C" fn offer(
    producer: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let try_offer = |_: Python<'_>, object: Borrowed<'_, '_, Producer>, payload: &[u8]| {
        object.try_borrow_mut().ok()?.try_offer(payload)
    };
    // SAFETY: as the interpreter gave them, with an object of this class.
    if let Some(outcome) = unsafe { of_bytes(producer, arguments, count, names, try_offer) } {
        return long(outcome);
    }
    // SAFETY: as the interpreter gave them.
    unsafe { general(producer, "_offer", arguments, count, names) }
}

/// What `answer` makes of a call with one `bytes`; `None` of any other call, and where it answers so or panics.
///
/// # Safety
/// An object of the class `T`, arguments, their count, and the names of the last ones or null, as the interpreter gives
/// them.
#[inline]
pub(crate) unsafe fn of_bytes<T, R>(
    object: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    answer: impl FnOnce(Python<'_>, Borrowed<'_, '_, T>, &[u8]) -> Option<R>,
) -> Option<R> {
    if count != 1 || !names.is_null() {
        return None;
    }
    let plain = || {
        // SAFETY: the interpreter's lock is held by who called.
        let py = unsafe { Python::assume_attached() };
        // SAFETY: there is one argument, which lives during the call.
        let bytes = unsafe { *arguments };
        // SAFETY: as above.
        let bytes = bytes_of(unsafe { Borrowed::from_ptr(py, bytes) })?;
        // SAFETY: the object lives during the call.
        let object = unsafe { Borrowed::from_ptr(py, object) };
        // SAFETY: the descriptor belongs to the class, and has checked that the object does.
        answer(py, unsafe { object.cast_unchecked::<T>() }, bytes)
    };
    catch_unwind(AssertUnwindSafe(plain)).ok().flatten()
}

/// The call by the machinery for arguments: the method `name` with all that was given.
///
/// # Safety
/// An object, arguments, their count, and the names of the last ones or null, as the interpreter gives them.
#[cold]
pub(crate) unsafe fn general(
    object: *mut ffi::PyObject,
    name: &str,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    returned(|py| {
        let names: Vec<Bound<'_, PyAny>> = if names.is_null() {
            Vec::new()
        } else {
            // SAFETY: the interpreter gives a tuple of names.
            unsafe { Borrowed::from_ptr(py, names) }.extract()?
        };
        let positional = usize::try_from(count)?;
        let given: &[*mut ffi::PyObject] = if arguments.is_null() {
            &[]
        } else {
            // SAFETY: so many arguments lie there during the call, those with names behind the others.
            unsafe { std::slice::from_raw_parts(arguments, positional + names.len()) }
        };
        // SAFETY: an argument lives during the call.
        let mut given = given.iter().map(|argument| unsafe { Borrowed::from_ptr(py, *argument) });
        let arguments: Vec<_> = given.by_ref().take(positional).collect();
        let arguments = PyTuple::new(py, arguments)?;
        let keywords = PyDict::new(py);
        for (name, argument) in names.iter().zip(given) {
            keywords.set_item(name, argument)?;
        }
        // SAFETY: the object lives during the call.
        unsafe { Borrowed::from_ptr(py, object) }.call_method(name, arguments, Some(&keywords))
    })
}

/// # Safety
/// Called by the interpreter, with a consumer and null.
unsafe extern "C" fn take(consumer: *mut ffi::PyObject, _none: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let plain = || {
        // SAFETY: the interpreter's lock is held by who called.
        let py = unsafe { Python::assume_attached() };
        // SAFETY: the object lives during the call.
        let object = unsafe { Borrowed::from_ptr(py, consumer) };
        // SAFETY: the descriptor belongs to the class, and has checked that the object does.
        let object = unsafe { object.cast_unchecked::<Consumer>() };
        object.try_borrow_mut().ok()?.try_take(py)
    };
    match catch_unwind(AssertUnwindSafe(plain)) {
        Ok(Some(found)) => found.into_ptr(),
        // SAFETY: the object lives during the call.
        _ => returned(|py| unsafe { Borrowed::from_ptr(py, consumer) }.call_method0("_take")),
    }
}

/// What a call gives, or null with its exception set.
#[cold]
fn returned<'py>(call: impl FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>) -> *mut ffi::PyObject {
    // SAFETY: the interpreter's lock is held by who called.
    let py = unsafe { Python::assume_attached() };
    match catch_unwind(AssertUnwindSafe(|| call(py))) {
        Ok(Ok(found)) => found.into_ptr(),
        Ok(Err(error)) => {
            error.restore(py);
            ptr::null_mut()
        }
        Err(_) => {
            pyo3::exceptions::PyRuntimeError::new_err("a fault of relay_accel: it panicked").restore(py);
            ptr::null_mut()
        }
    }
}
