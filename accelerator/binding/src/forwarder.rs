//! Published messages from one `ZeroMQ` socket to another without the interpreter, as long as their topics are known.
//!
//! The library is the very one that the caller's own binding has loaded: sockets are handed over by address. A message of three
//! frames (topic, version, body) goes on as it came when its topic is in the table with the type in its body's first byte;
//! every other one is handed to the caller, who judges it and may put its topic into the table.
//!
//! A topic may be marked for a broadcast, too: its messages are written there as one record each before they are sent on.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;

use libloading::Library;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relay_accel_core::broadcast::Transmitter as CoreTransmitter;

use crate::broadcast::Transmitter;
use crate::consumer::Consumer;

/// `zmq_msg_t`: 64 opaque bytes, part of the library's stable interface.
#[repr(C, align(8))]
struct Message([u8; 64]);

type Plain = unsafe extern "C" fn(*mut Message) -> c_int;
type Transfer = unsafe extern "C" fn(*mut Message, *mut c_void, c_int) -> c_int;

const DONT_WAIT: c_int = 1;
const SEND_MORE: c_int = 2;
const AGAIN: c_int = 11;
const INTERRUPTED: c_int = 4;
/// Frames of one message that are kept for the caller; a message of more is nothing that he would pass on.
const FRAMES_MAX: usize = 8;

struct Functions {
    init: Plain,
    close: Plain,
    more: Plain,
    receive: Transfer,
    send: Transfer,
    send_bytes: unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int) -> c_int,
    data: unsafe extern "C" fn(*mut Message) -> *mut c_void,
    size: unsafe extern "C" fn(*const Message) -> usize,
    errno: unsafe extern "C" fn() -> c_int,
    // Keeps the functions loaded.
    _library: Library,
}

impl Functions {
    fn load(path: &str) -> PyResult<Self> {
        // SAFETY: the caller's binding has loaded this library already, so its initialisers have run.
        let library = unsafe { Library::new(path) }
            .map_err(|error| PyOSError::new_err(format!("{path} is no usable libzmq: {error}")))?;
        Ok(Self {
            init: function(&library, path, b"zmq_msg_init\0")?,
            close: function(&library, path, b"zmq_msg_close\0")?,
            more: function(&library, path, b"zmq_msg_more\0")?,
            receive: function(&library, path, b"zmq_msg_recv\0")?,
            send: function(&library, path, b"zmq_msg_send\0")?,
            send_bytes: function(&library, path, b"zmq_send\0")?,
            data: function(&library, path, b"zmq_msg_data\0")?,
            size: function(&library, path, b"zmq_msg_size\0")?,
            errno: function(&library, path, b"zmq_errno\0")?,
            _library: library,
        })
    }
}

/// One function of libzmq's stable interface, whose signature is that of the field it goes to.
fn function<T: Copy>(library: &Library, path: &str, name: &'static [u8]) -> PyResult<T> {
    // SAFETY: names and signatures are those of libzmq's interface since 4.0.
    let found = unsafe { library.get::<T>(name) };
    found.map(|symbol| *symbol).map_err(|error| PyOSError::new_err(format!("{path} is no usable libzmq: {error}")))
}

/// One frame: initialised when it is made, closed when it is dropped.
struct Frame<'a> {
    message: Message,
    functions: &'a Functions,
}

impl<'a> Frame<'a> {
    fn new(functions: &'a Functions) -> Self {
        let mut message = Message([0; 64]);
        // SAFETY: initialising an owned message cannot fail.
        unsafe { (functions.init)(&raw mut message) };
        Self { message, functions }
    }

    /// Receives into it; the error is libzmq's number.
    fn receive(&mut self, socket: *mut c_void) -> Result<(), c_int> {
        // SAFETY: the message is initialised; the caller of `forward` vouches for the socket.
        let received = unsafe { (self.functions.receive)(&raw mut self.message, socket, DONT_WAIT) };
        // SAFETY: reads this thread's error number.
        if received < 0 { Err(unsafe { (self.functions.errno)() }) } else { Ok(()) }
    }

    fn send(&mut self, socket: *mut c_void, flags: c_int) -> Result<(), c_int> {
        // SAFETY: as above; after a success the message is empty and may be closed.
        let sent = unsafe { (self.functions.send)(&raw mut self.message, socket, flags) };
        // SAFETY: as above.
        if sent < 0 { Err(unsafe { (self.functions.errno)() }) } else { Ok(()) }
    }

    fn has_more(&mut self) -> bool {
        // SAFETY: the message is initialised.
        unsafe { (self.functions.more)(&raw mut self.message) != 0 }
    }

    fn bytes(&mut self) -> &[u8] {
        // SAFETY: the message is initialised.
        let length = unsafe { (self.functions.size)(&raw const self.message) };
        if length == 0 {
            return &[];
        }
        // SAFETY: as above.
        let data = unsafe { (self.functions.data)(&raw mut self.message) }.cast::<u8>();
        // SAFETY: the data are there, of that length, and belong to the message.
        unsafe { std::slice::from_raw_parts(data, length) }
    }
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        // SAFETY: initialised once, closed once.
        unsafe { (self.functions.close)(&raw mut self.message) };
    }
}

/// How many were sent on, whether there may be more, and a message that was not sent.
type Forwarded<'py> = (usize, bool, Option<Vec<Bound<'py, PyBytes>>>);

/// Types that may pass, one bit each.
#[derive(Clone, Copy, Default)]
struct Types([u64; 4]);

impl Types {
    fn of(type_ids: &[u8]) -> Self {
        let mut types = Self::default();
        for id in type_ids {
            types.0[usize::from(id / 64)] |= 1 << (id % 64);
        }
        types
    }

    fn has(self, type_id: u8) -> bool {
        self.0[usize::from(type_id / 64)] >> (type_id % 64) & 1 == 1
    }
}

/// What is known of a topic.
#[derive(Clone, Copy)]
struct Pass {
    types: Types,
    /// Whether its messages go into the broadcast, too.
    is_broadcast: bool,
}

/// A broadcast beside the socket; a record is put together in `record`.
struct Beside<'a> {
    end: &'a mut CoreTransmitter,
    record: Vec<u8>,
}

impl Beside<'_> {
    fn write(&mut self, topic: &[u8], version: &[u8], body: &[u8]) {
        let Ok(length) = u16::try_from(topic.len()) else { return };
        self.record.clear();
        for part in [&length.to_le_bytes()[..], topic, version, body] {
            self.record.extend_from_slice(part);
        }
        // Refused only where it is longer than the caller lets messages be: receivers miss its stamp then.
        let _ = self.end.transmit(RECORD_TYPE, &self.record);
    }
}

/// Of records in a broadcast; it says nothing.
const RECORD_TYPE: i32 = 1;

/// Passes published messages from one ZeroMQ socket to another, as long as their topics are known.
///
/// Args: libzmq: path of the very library that the caller's binding has loaded. version: what the second of three
/// frames must be. topics_max: topics that are remembered; beyond it all are forgotten, and asked about again.
///
/// Raises OSError: the path is no usable libzmq.
#[pyclass(module = "relay_accel")]
pub(crate) struct Forwarder {
    functions: Functions,
    version: Vec<u8>,
    topics: HashMap<Box<[u8]>, Pass>,
    topics_max: usize,
}

enum End {
    Empty,
    Limit,
    Unknown(Vec<Vec<u8>>),
    Failed(c_int),
}

impl Forwarder {
    /// What is known of a topic whose messages of this body's type may pass.
    fn pass(&self, topic: &[u8], body: &[u8]) -> Option<Pass> {
        let pass = self.topics.get(topic)?;
        body.first().is_some_and(|id| pass.types.has(*id)).then_some(*pass)
    }

    fn run(
        &self,
        source: *mut c_void,
        target: *mut c_void,
        limit: usize,
        mut beside: Option<Beside<'_>>,
    ) -> (usize, End) {
        for sent in 0..limit {
            let mut topic = Frame::new(&self.functions);
            match topic.receive(source) {
                Ok(()) => {}
                Err(AGAIN | INTERRUPTED) => return (sent, End::Empty),
                Err(error) => return (sent, End::Failed(error)),
            }
            let mut version = Frame::new(&self.functions);
            let mut body = Frame::new(&self.functions);
            // The rest of a message is there as soon as its first frame is.
            let mut rest = 0;
            if topic.has_more() {
                rest += usize::from(version.receive(source).is_ok());
                if rest == 1 && version.has_more() {
                    rest += usize::from(body.receive(source).is_ok());
                }
            }
            let whole = rest == 2 && !body.has_more();
            let is_sound = whole && version.bytes() == self.version;
            let Some(pass) = is_sound.then(|| self.pass(topic.bytes(), body.bytes())).flatten() else {
                let mut frames = vec![topic.bytes().to_vec()];
                if rest > 0 {
                    frames.push(version.bytes().to_vec());
                }
                if rest > 1 {
                    frames.push(body.bytes().to_vec());
                }
                if rest == 2 && !whole {
                    self.read_on(source, &mut frames);
                }
                return (sent, End::Unknown(frames));
            };
            if let (true, Some(beside)) = (pass.is_broadcast, &mut beside) {
                beside.write(topic.bytes(), version.bytes(), body.bytes());
            }
            let sending = topic
                .send(target, DONT_WAIT | SEND_MORE)
                .and_then(|()| version.send(target, DONT_WAIT | SEND_MORE))
                .and_then(|()| body.send(target, DONT_WAIT));
            if let Err(error) = sending {
                return (sent, End::Failed(error));
            }
        }
        (limit, End::Limit)
    }

    /// Sends a record's three frames if its topic and type are known; false where they are not, or it is no record.
    fn send_record(
        &self,
        target: *mut c_void,
        record: &[u8],
        beside: Option<&mut CoreTransmitter>,
    ) -> Result<bool, c_int> {
        let Some((topic, rest)) = split_record(record) else { return Ok(false) };
        let Some((version, body)) = rest.split_at_checked(self.version.len()) else { return Ok(false) };
        let is_sound = version == self.version;
        let Some(pass) = is_sound.then(|| self.pass(topic, body)).flatten() else { return Ok(false) };
        if let (true, Some(end)) = (pass.is_broadcast, beside) {
            // As in `Beside`.
            let _ = end.transmit(RECORD_TYPE, record);
        }
        for (bytes, flags) in [(topic, DONT_WAIT | SEND_MORE), (version, DONT_WAIT | SEND_MORE), (body, DONT_WAIT)] {
            // SAFETY: the bytes are copied before the call returns; the caller of `forward_records` vouches for the socket.
            let sent = unsafe { (self.functions.send_bytes)(target, bytes.as_ptr().cast(), bytes.len(), flags) };
            if sent < 0 {
                // SAFETY: reads this thread's error number.
                return Err(unsafe { (self.functions.errno)() });
            }
        }
        Ok(true)
    }

    /// Reads a message of too many frames to its end, so that the next one begins where it begins.
    fn read_on(&self, source: *mut c_void, frames: &mut Vec<Vec<u8>>) {
        loop {
            let mut frame = Frame::new(&self.functions);
            if frame.receive(source).is_err() {
                return;
            }
            if frames.len() < FRAMES_MAX {
                frames.push(frame.bytes().to_vec());
            }
            if !frame.has_more() {
                return;
            }
        }
    }
}

#[pymethods]
impl Forwarder {
    #[new]
    #[pyo3(signature = (libzmq, *, version, topics_max=100_000))]
    fn new(libzmq: &str, version: &[u8], topics_max: usize) -> PyResult<Self> {
        let functions = Functions::load(libzmq)?;
        Ok(Self { functions, version: version.to_vec(), topics: HashMap::new(), topics_max: topics_max.max(1) })
    }

    /// Let messages of a topic pass whose body begins with one of these bytes.
    ///
    /// Args: topic: exact. type_ids: first bytes of bodies. broadcast: write them into the broadcast, too, where a
    /// call names one.
    #[pyo3(signature = (topic, type_ids, *, broadcast=false))]
    fn pass_topic(&mut self, topic: &[u8], type_ids: &[u8], broadcast: bool) {
        if self.topics.len() >= self.topics_max && !self.topics.contains_key(topic) {
            self.topics.clear();
        }
        self.topics.insert(topic.into(), Pass { types: Types::of(type_ids), is_broadcast: broadcast });
    }

    /// Let messages of a topic pass no longer.
    fn forget_topic(&mut self, topic: &[u8]) {
        self.topics.remove(topic);
    }

    fn __len__(&self) -> usize {
        self.topics.len()
    }

    /// Send on what records in a ring hold, each as three frames.
    ///
    /// Args: consumer: of a ring of records. target: address of an open publisher of this thread. limit: records at
    /// most. broadcast: as of `forward`; records are written there as they came.
    ///
    /// Returns How many records were read, how many were sent on, and those that may not pass by what is known, in
    /// their order: they were sent nowhere.
    ///
    /// Raises OSError: the socket refused, with libzmq's error number.
    #[pyo3(signature = (consumer, target, limit, *, broadcast=None))]
    fn forward_records<'py>(
        &self,
        py: Python<'py>,
        consumer: &Bound<'py, Consumer>,
        target: usize,
        limit: usize,
        broadcast: Option<&Bound<'py, Transmitter>>,
    ) -> PyResult<(usize, usize, Vec<Bound<'py, PyBytes>>)> {
        if target == 0 {
            return Err(PyValueError::new_err("expected the address of an open socket, got 0"));
        }
        let mut held = broadcast.map(Bound::borrow_mut);
        let mut beside = held.as_mut().map(|transmitter| transmitter.open()).transpose()?;
        let batch = consumer.borrow_mut().poll(limit)?;
        let target = Address(target);
        let mut unknown = Vec::new();
        let mut sent = 0;
        for (_, record) in batch.iter() {
            match self.send_record(target.pointer(), record, beside.as_deref_mut()) {
                Ok(true) => sent += 1,
                Ok(false) => unknown.push(PyBytes::new(py, record)),
                Err(error) => {
                    let text = format!("forwarding failed after {sent} messages, libzmq error {error}");
                    return Err(PyOSError::new_err((error, text)));
                }
            }
        }
        Ok((batch.len(), sent, unknown))
    }

    /// Receive without blocking and send on what may pass, untouched.
    ///
    /// Args: source, target: addresses of open sockets of this thread (`pyzmq`: `socket.underlying`); the target is a
    /// publisher, whose sends never block. limit: messages at most. broadcast: what passes on topics that are marked
    /// for it is written there first, as a record of the form of `forward_records`.
    ///
    /// Returns How many were sent on, whether there may be more, and the frames of a message that may not pass by
    /// what is known: it was received and sent nowhere. Of a message of many frames the first eight.
    ///
    /// Raises OSError: a socket refused, with libzmq's error number.
    #[pyo3(signature = (source, target, limit, *, broadcast=None))]
    fn forward<'py>(
        &self,
        py: Python<'py>,
        source: usize,
        target: usize,
        limit: usize,
        broadcast: Option<&Bound<'py, Transmitter>>,
    ) -> PyResult<Forwarded<'py>> {
        if source == 0 || target == 0 {
            return Err(PyValueError::new_err("expected the addresses of two open sockets, got 0"));
        }
        let (source, target) = (Address(source), Address(target));
        let mut held = broadcast.map(Bound::borrow_mut);
        let end = held.as_mut().map(|transmitter| transmitter.open()).transpose()?;
        let beside = end.map(|end| Beside { end, record: Vec::new() });
        let (sent, end) = py.detach(|| self.run(source.pointer(), target.pointer(), limit, beside));
        match end {
            End::Empty => Ok((sent, false, None)),
            End::Limit => Ok((sent, true, None)),
            End::Unknown(frames) => {
                Ok((sent, true, Some(frames.iter().map(|frame| PyBytes::new(py, frame)).collect())))
            }
            End::Failed(error) => Err(PyOSError::new_err((
                error,
                format!("forwarding failed after {sent} messages, libzmq error {error}"),
            ))),
        }
    }
}

/// A record's topic and what follows it: `u16 topic length (little-endian), topic, version, body`.
fn split_record(record: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = record.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))
}

/// An address that may cross the closure that runs without the interpreter's lock: the thread is the same.
#[derive(Clone, Copy)]
struct Address(usize);

impl Address {
    fn pointer(self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.0)
    }
}
