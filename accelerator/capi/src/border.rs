//! What crosses into Rust is checked, and nothing unwinds out of it.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use relay_accel_core::{Code, Error};

/// Done.
pub(crate) const OK: c_int = 0;
/// The reader is too far behind.
pub(crate) const BACK_PRESSURED: c_int = -1;
/// The other side has left or is dead, or the segment is corrupt.
pub(crate) const CLOSED: c_int = -2;
/// The caller's fault.
pub(crate) const BAD_ARGUMENT: c_int = -3;
/// A panic: the library's fault.
pub(crate) const INTERNAL: c_int = -4;

/// Why a call failed: what it returns, a stable name, and a text for people.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// What a call that returns numbers returns.
    pub(crate) number: c_int,
    code: &'static str,
    text: String,
}

impl Failure {
    /// A failure that the core does not know.
    pub(crate) fn new(number: c_int, code: &'static str, text: impl Into<String>) -> Self {
        Self { number, code, text: text.into() }
    }

    /// The caller's fault.
    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(BAD_ARGUMENT, "INVALID_ARGUMENT", text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (number, code) = match error.code() {
            Code::InvalidArgument => (BAD_ARGUMENT, "INVALID_ARGUMENT"),
            Code::InvalidName => (BAD_ARGUMENT, "INVALID_NAME"),
            Code::InvalidTermLength => (BAD_ARGUMENT, "INVALID_TERM_LENGTH"),
            Code::InvalidChannel => (CLOSED, "INVALID_CHANNEL"),
            Code::NotReady => (CLOSED, "NOT_READY"),
            Code::UnsupportedVersion => (CLOSED, "UNSUPPORTED_VERSION"),
            Code::WrongKind => (CLOSED, "WRONG_KIND"),
            Code::TermLengthMismatch => (CLOSED, "TERM_LENGTH_MISMATCH"),
            Code::CorruptChannel => (CLOSED, "CORRUPT_CHANNEL"),
            Code::EndTaken => (CLOSED, "END_TAKEN"),
            Code::NoFreeSlot => (CLOSED, "NO_FREE_SLOT"),
            Code::AlreadyExists => (CLOSED, "ALREADY_EXISTS"),
            Code::NotFound => (CLOSED, "NOT_FOUND"),
            Code::AccessDenied => (CLOSED, "ACCESS_DENIED"),
            Code::NoSpace => (CLOSED, "NO_SPACE"),
            Code::LockBusy => (CLOSED, "LOCK_BUSY"),
            _ => (CLOSED, "SYSTEM"),
        };
        Self::new(number, code, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<(CString, CString)> = RefCell::default();
}

fn remember(failure: &Failure) {
    // A text with a zero byte inside can only come from a name; names with one cannot come from C.
    let text = |bytes: &str| CString::new(bytes.replace('\0', " ")).unwrap_or_default();
    // A thread that is ending has no place for it any more.
    let _ = LAST.try_with(|last| last.replace((text(failure.code), text(&failure.text))));
}

/// Runs the inside of a call. A failure is remembered for this thread, a panic becomes one.
pub(crate) fn enter<T>(inside: impl FnOnce() -> Result<T, Failure>, failed: impl FnOnce(&Failure) -> T) -> T {
    // What a panic leaves half done is never used unchecked: positions are validated at every step.
    let done = catch_unwind(AssertUnwindSafe(inside)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
        Err(Failure::new(INTERNAL, "INTERNAL", format!("the library panicked: {}", said.unwrap_or("no text"))))
    });
    done.unwrap_or_else(|failure| {
        remember(&failure);
        failed(&failure)
    })
}

/// As [`enter`], for calls that return a number below 0 when they fail.
pub(crate) fn number(inside: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    enter(inside, |failure| failure.number)
}

/// What a handle points to.
///
/// # Safety
/// A pointer that is neither null nor misaligned leads to a live `T` that nobody borrows mutably.
pub(crate) unsafe fn handle<'a, T>(pointer: *const T, what: &'static str) -> Result<&'a T, Failure> {
    check(pointer, what)?;
    // SAFETY: the caller's promise; null and misaligned pointers were refused.
    Ok(unsafe { &*pointer })
}

/// Takes back what a variable of the caller points to, and makes it null. `None` where it is null already.
///
/// # Safety
/// As [`handle`], for the variable and for what it points to, which came from [`Box::into_raw`].
pub(crate) unsafe fn retake<T>(variable: *mut *mut T, what: &'static str) -> Result<Option<Box<T>>, Failure> {
    check(variable, "the address of the handle")?;
    // SAFETY: the caller's promise; null and misaligned addresses were refused.
    let variable = unsafe { &mut *variable };
    if variable.is_null() {
        return Ok(None);
    }
    check(*variable, what)?;
    let pointer = std::mem::replace(variable, std::ptr::null_mut());
    // SAFETY: it came from a box, and the variable that led to it is null from now on.
    Ok(Some(unsafe { Box::from_raw(pointer) }))
}

/// Refuses null and misaligned pointers.
pub(crate) fn check<T>(pointer: *const T, what: &'static str) -> Result<(), Failure> {
    if pointer.is_null() || !pointer.is_aligned() {
        let found = if pointer.is_null() { "NULL" } else { "a misaligned pointer" };
        return Err(Failure::argument(format!("{what}: expected a pointer from this library, got {found}")));
    }
    Ok(())
}

/// A text of the caller's.
///
/// # Safety
/// It is null or ends with a zero byte, and stays as it is during the call.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &'static str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what}: expected a text, got NULL")));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map_err(|_| Failure::argument(format!("{what}: expected UTF-8, got {bytes:?}")))
}

/// Text of the last failure.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ra_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().1.as_ptr()).unwrap_or(c"".as_ptr())
}

/// Stable name of the last failure.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ra_last_error_code() -> *const c_char {
    LAST.try_with(|last| last.borrow().0.as_ptr()).unwrap_or(c"".as_ptr())
}
