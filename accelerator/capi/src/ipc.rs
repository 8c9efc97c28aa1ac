//! One channel: its segment, and the ends that this handle took.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::slice;
use std::time::Duration;

use relay_accel_core::memory::process::Liveness;
use relay_accel_core::memory::{SegmentName, SegmentOptions};
use relay_accel_core::ring::{
    CreateOptions, EndState, IpcChannel, LogConsumer, LogProducer, PAYLOAD_LENGTH_MAX, Refusal, Stop,
};

use crate::border::{BACK_PRESSURED, BAD_ARGUMENT, CLOSED, Failure, OK, check, enter, handle, number, retake, text};
use crate::transport::Transport;

const PRODUCER: u32 = 1;
const CONSUMER: u32 = 2;
const REPLACE_STALE: u32 = 4;
const LAZY_PAGES: u32 = 8;
const HUGE_PAGES: u32 = 16;
const FLAGS: u32 = PRODUCER | CONSUMER | REPLACE_STALE | LAZY_PAGES | HUGE_PAGES;

/// While a channel is full its reader is looked up at this refusal in a row, and then at every so many.
const LOOK_AT_REFUSAL: u32 = 16;
const LOOK_EVERY: u32 = 1024;
/// Longest sleep in one go.
const SLEEP_MAX: Duration = Duration::from_secs(86_400);

/// Called for each message.
pub(crate) type Handler =
    unsafe extern "C" fn(context: *mut c_void, type_id: i32, payload: *const c_void, length: usize);

/// An end, used by one call at a time.
#[derive(Debug)]
struct Guarded<T> {
    end: UnsafeCell<T>,
    is_used: Cell<bool>,
}

impl<T> Guarded<T> {
    fn new(end: T) -> Self {
        Self { end: UnsafeCell::new(end), is_used: Cell::new(false) }
    }

    /// Runs `each` with the end; refuses a call from inside another.
    #[inline]
    fn with<R>(&self, each: impl FnOnce(&mut T) -> R) -> Result<R, Failure> {
        /// Ends the use also when `each` panics.
        struct Use<'a>(&'a Cell<bool>);
        impl Drop for Use<'_> {
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        if self.is_used.replace(true) {
            return Err(Failure::argument("a handler used the end that called it; let it return first"));
        }
        let _use = Use(&self.is_used);
        // SAFETY: the flag keeps other calls of this thread out; the header forbids other threads.
        Ok(each(unsafe { &mut *self.end.get() }))
    }
}

/// What `ra_ipc *` points to.
#[derive(Debug)]
pub(crate) struct Ipc {
    channel: IpcChannel,
    producer: Option<Guarded<LogProducer>>,
    consumer: Option<Guarded<LogConsumer>>,
    refusals_in_a_row: Cell<u32>,
}

impl Ipc {
    fn over(channel: IpcChannel, flags: u32) -> Result<*mut Self, Failure> {
        let producer = if flags & PRODUCER != 0 { Some(Guarded::new(channel.producer()?)) } else { None };
        let consumer = if flags & CONSUMER != 0 { Some(Guarded::new(channel.consumer()?)) } else { None };
        Ok(Box::into_raw(Box::new(Self { channel, producer, consumer, refusals_in_a_row: Cell::new(0) })))
    }

    #[inline]
    fn producer(&self) -> Result<&Guarded<LogProducer>, Failure> {
        self.producer.as_ref().ok_or_else(|| Failure::argument("expected a handle with RA_PRODUCER"))
    }

    #[inline]
    fn consumer(&self) -> Result<&Guarded<LogConsumer>, Failure> {
        self.consumer.as_ref().ok_or_else(|| Failure::argument("expected a handle with RA_CONSUMER"))
    }

    fn publish(&self, type_id: i32, payload: &[u8]) -> Result<c_int, Failure> {
        match self.producer()?.with(|one| one.try_write(type_id, payload))? {
            Ok(()) => {
                self.refusals_in_a_row.set(0);
                Ok(OK)
            }
            Err(Refusal::BackPressured) => self.back_pressured(),
            Err(refusal) => Err(refused(refusal)),
        }
    }

    /// The room may be waited for, unless its reader is dead. Asking the system costs more than a message: rarely, then.
    #[cold]
    fn back_pressured(&self) -> Result<c_int, Failure> {
        let refusals = self.refusals_in_a_row.get().wrapping_add(1);
        self.refusals_in_a_row.set(refusals);
        if refusals == LOOK_AT_REFUSAL || refusals.is_multiple_of(LOOK_EVERY) {
            refuse_gone("reader", self.channel.consumer_state())?;
        }
        Ok(BACK_PRESSURED)
    }
}

/// Fails where nobody is on the other side any more. Nobody *yet* may still come.
fn refuse_gone(who: &str, state: EndState) -> Result<(), Failure> {
    match state {
        EndState::Left => Err(Failure::new(CLOSED, "CLOSED", format!("the {who} has left; wait for another"))),
        EndState::Held(owner, Liveness::Dead) => {
            let text = format!("the {who}, process {}, is dead; wait for another", owner.pid());
            Err(Failure::new(CLOSED, "PEER_DEAD", text))
        }
        _ => Ok(()),
    }
}

fn refused(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::TooLong => too_long(),
        Refusal::BadType => Failure::argument("type_id: expected more than 0"),
        Refusal::Forked => forked(),
        Refusal::Corrupt => corrupt("the reader's position contradicts the writer's"),
        _ => Failure::new(CLOSED, "CLOSED", "the channel is full and its reader has left; wait for another"),
    }
}

fn too_long() -> Failure {
    let text = "payload: expected at most ra_ipc_payload_length_max() bytes; send it in parts, or use longer terms";
    Failure::new(BAD_ARGUMENT, "TOO_LONG", text)
}

fn forked() -> Failure {
    Failure::argument("this handle belongs to the parent process; open one of its own after a fork")
}

fn corrupt(what: &str) -> Failure {
    Failure::new(CLOSED, "CORRUPT_CHANNEL", format!("{what}; make the channel anew"))
}

fn segment_options(flags: u32) -> Result<SegmentOptions, Failure> {
    if flags & !FLAGS != 0 {
        return Err(Failure::argument(format!("flags: expected RA_... of the header, got {flags:#x}")));
    }
    Ok(SegmentOptions { pre_fault: flags & LAZY_PAGES == 0, huge_pages: flags & HUGE_PAGES != 0 })
}

/// Makes a channel.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_ipc_create(
    transport: *const Transport,
    name: *const c_char,
    term_length: usize,
    flags: u32,
) -> *mut Ipc {
    let inside = || {
        // SAFETY: the header asks for a live handle.
        let transport = unsafe { handle(transport, "transport") }?;
        // SAFETY: the header asks for a text that ends.
        let name = SegmentName::new(unsafe { text(name, "name") }?)?;
        let options = CreateOptions { segment: segment_options(flags)?, replace_stale: flags & REPLACE_STALE != 0 };
        Ipc::over(IpcChannel::create(&transport.directory, &name, term_length, options)?, flags)
    };
    enter(inside, |_| ptr::null_mut())
}

/// Opens a channel.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_ipc_open(transport: *const Transport, name: *const c_char, flags: u32) -> *mut Ipc {
    let inside = || {
        // SAFETY: the header asks for a live handle.
        let transport = unsafe { handle(transport, "transport") }?;
        // SAFETY: the header asks for a text that ends.
        let name = SegmentName::new(unsafe { text(name, "name") }?)?;
        let options = segment_options(flags)?;
        if flags & REPLACE_STALE != 0 {
            return Err(Failure::argument("flags: RA_REPLACE_STALE is for creating"));
        }
        Ipc::over(IpcChannel::open(&transport.directory, &name, options)?, flags)
    };
    enter(inside, |_| ptr::null_mut())
}

/// Gives the ends back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_ipc_destroy(ipc: *mut *mut Ipc) -> c_int {
    number(|| {
        check(ipc, "the address of the handle")?;
        // SAFETY: the header asks for a variable; null and misaligned addresses were refused.
        let pointer = unsafe { *ipc };
        if !pointer.is_null() {
            // SAFETY: the header asks for a live handle.
            let found = unsafe { handle(pointer, "ipc") }?;
            let is_used = found.producer.as_ref().is_some_and(|end| end.is_used.get())
                || found.consumer.as_ref().is_some_and(|end| end.is_used.get());
            if is_used {
                return Err(Failure::argument("a handler destroys the handle that called it; let it return first"));
            }
        }
        // SAFETY: as above; it came from `Ipc::over`.
        unsafe { retake(ipc, "ipc") }.map(|_| OK)
    })
}

/// Removes the name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_ipc_unlink(ipc: *const Ipc) -> c_int {
    // SAFETY: the header asks for a live handle.
    number(|| Ok(c_int::from(unsafe { handle(ipc, "ipc") }?.channel.unlink()?)))
}

/// Bytes of one term.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_ipc_term_length(ipc: *const Ipc) -> usize {
    // SAFETY: the header asks for a live handle.
    enter(|| Ok(unsafe { handle(ipc, "ipc") }?.channel.term_length()), |_| 0)
}

/// Longest payload.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_ipc_payload_length_max(ipc: *const Ipc) -> usize {
    // SAFETY: the header asks for a live handle.
    enter(|| Ok(PAYLOAD_LENGTH_MAX.min(unsafe { handle(ipc, "ipc") }?.channel.term_length() / 8)), |_| 0)
}

/// Writes one message.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_publish(
    ipc: *const Ipc,
    type_id: i32,
    payload: *const c_void,
    length: usize,
) -> c_int {
    number(|| {
        // SAFETY: the header asks for a live handle.
        let ipc = unsafe { handle(ipc, "ipc") }?;
        if length > PAYLOAD_LENGTH_MAX {
            return Err(too_long());
        }
        if payload.is_null() {
            return if length == 0 { ipc.publish(type_id, &[]) } else { Err(Failure::argument("payload: got NULL")) };
        }
        // SAFETY: the header asks for so many bytes, which the call only reads.
        ipc.publish(type_id, unsafe { slice::from_raw_parts(payload.cast(), length) })
    })
}

/// Hands messages over.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_poll(
    ipc: *const Ipc,
    handler: Option<Handler>,
    context: *mut c_void,
    limit: usize,
) -> i64 {
    let inside = || {
        // SAFETY: the header asks for a live handle.
        let ipc = unsafe { handle(ipc, "ipc") }?;
        let handler = handler.ok_or_else(|| Failure::argument("handler: got NULL"))?;
        let polled = ipc.consumer()?.with(|one| {
            one.poll(limit, |type_id, payload| {
                // SAFETY: the handler is the caller's, and the payload is private memory of this poll.
                unsafe { handler(context, type_id, payload.as_ptr().cast(), payload.len()) };
            })
        })?;
        match polled.stop {
            _ if polled.frames > 0 => Ok(polled.frames as i64),
            Stop::Closed => Err(Failure::new(CLOSED, "CLOSED", "all was read, and the writer has left")),
            Stop::Corrupt => Err(corrupt("the next header or the writer's position is impossible")),
            Stop::Forked => Err(forked()),
            Stop::Limit | Stop::Empty | Stop::InProgress => Ok(0),
        }
    };
    enter(inside, |failure| i64::from(failure.number))
}

/// Sleeps until there is something to read.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_wait(ipc: *const Ipc, timeout_ns: u64) -> c_int {
    number(|| {
        // SAFETY: the header asks for a live handle.
        let ipc = unsafe { handle(ipc, "ipc") }?;
        let limit = Duration::from_nanos(timeout_ns).min(SLEEP_MAX);
        let (is_ready, state) = ipc.consumer()?.with(|one| {
            let is_ready = one.wait_or_left(limit);
            // The last message comes before the leave: look once more behind it.
            let state = if is_ready { EndState::Vacant } else { one.producer_state() };
            (is_ready || one.is_ready(), state)
        })?;
        if !is_ready {
            refuse_gone("writer", state)?;
        }
        Ok(c_int::from(is_ready))
    })
}

/// Sleeps until there is room.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_wait_for_room(ipc: *const Ipc, length: usize, timeout_ns: u64) -> c_int {
    number(|| {
        // SAFETY: the header asks for a live handle.
        let ipc = unsafe { handle(ipc, "ipc") }?;
        let limit = Duration::from_nanos(timeout_ns).min(SLEEP_MAX);
        let has_room = ipc.producer()?.with(|one| one.wait_for_room_or_left(length, limit))?;
        if !has_room {
            refuse_gone("reader", ipc.channel.consumer_state())?;
        }
        Ok(c_int::from(has_room))
    })
}

/// Who holds an end.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_ipc_state(ipc: *const Ipc, end: u32, pid: *mut u32) -> c_int {
    number(|| {
        // SAFETY: the header asks for a live handle.
        let channel = &unsafe { handle(ipc, "ipc") }?.channel;
        let state = match end {
            PRODUCER => channel.producer_state(),
            CONSUMER => channel.consumer_state(),
            other => return Err(wrong_end(other)),
        };
        let (number, owner) = match state {
            EndState::Vacant => (0, 0),
            EndState::Left => (1, 0),
            EndState::Held(owner, Liveness::Alive) => (2, owner.pid()),
            EndState::Held(owner, Liveness::Dead) => (3, owner.pid()),
            EndState::Held(owner, Liveness::Unknown) => (4, owner.pid()),
        };
        if !pid.is_null() {
            check(pid, "pid")?;
            // SAFETY: the header asks for null or a number that can be written.
            unsafe { pid.write(owner) };
        }
        Ok(number)
    })
}

fn wrong_end(end: u32) -> Failure {
    Failure::argument(format!("end: expected RA_PRODUCER or RA_CONSUMER, got {end}"))
}

/// Says that an end of this handle is alive.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_ipc_beat(ipc: *const Ipc, end: u32, now_ns: u64) -> c_int {
    number(|| {
        // SAFETY: the header asks for a live handle.
        let ipc = unsafe { handle(ipc, "ipc") }?;
        match end {
            PRODUCER => ipc.producer()?.with(|one| one.beat(now_ns))?,
            CONSUMER => ipc.consumer()?.with(|one| one.beat(now_ns))?,
            other => return Err(wrong_end(other)),
        }
        Ok(OK)
    })
}

/// When an end last said so.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_ipc_last_beat(ipc: *const Ipc, end: u32, beat_ns: *mut u64) -> c_int {
    number(|| {
        // SAFETY: the header asks for a live handle.
        let beats = unsafe { handle(ipc, "ipc") }?.channel.beats_ns();
        check(beat_ns, "beat_ns")?;
        let found = match end {
            PRODUCER => beats.0,
            CONSUMER => beats.1,
            other => return Err(wrong_end(other)),
        };
        // SAFETY: the header asks for a number that can be written.
        unsafe { beat_ns.write(found) };
        Ok(OK)
    })
}
