//! `relay_accel.sbe.Unpacker`: fields of a message's root as a tuple, without a view between.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use relay_accel_codec::sbe::{Encoder, Presence, Primitive, Scalar};

use crate::fast::bytes_of;
use crate::sbe::{decode_error, encode_error};
use crate::sbe_plan::{BlockPlan, Kind};
use crate::sbe_view::{Held, codec};

/// A field that is asked for.
struct Pick {
    index: usize,
    /// Of its bytes in the root; a constant has none.
    place: Range<usize>,
    /// How a plain number is read, and what of it is null; None for every other kind.
    number: Option<(Primitive, Option<Scalar>)>,
}

impl Pick {
    fn of(plan: &BlockPlan, index: usize) -> Self {
        let (part, field) = (&plan.fields[index], &plan.layout().fields[index]);
        let number = match &part.kind {
            Kind::Number(one) => {
                let is_optional = part.is_optional || one.presence == Presence::Optional;
                Some((one.primitive, is_optional.then_some(one.null)))
            }
            _ => None,
        };
        let length = if field.presence == Presence::Constant { 0 } else { field.kind.length() };
        Self { index, place: field.offset..field.offset + length, number }
    }
}

/// Reads the same fields of one message after the other.
#[pyclass(frozen, module = "relay_accel.sbe")]
pub(crate) struct Unpacker {
    plan: Arc<BlockPlan>,
    picks: Vec<Pick>,
    /// The header of this message as this version of the schema writes it.
    head: Vec<u8>,
}

impl Unpacker {
    /// Of a message with the very header that the schema writes: every field is where the layout says.
    fn plain<'py>(&self, py: Python<'py>, message: &[u8]) -> Option<PyResult<Bound<'py, PyTuple>>> {
        let block = message.strip_prefix(&self.head[..])?.get(..self.plan.layout().block_length)?;
        let (order, version) = (self.plan.order(), self.plan.schema.version);
        Some(tuple(py, &self.picks, |pick| {
            let bytes = &block[pick.place.clone()];
            let Some((primitive, null)) = pick.number else {
                return self.plan.fields[pick.index].value(py, bytes, order, version, true).map(Bound::into_ptr);
            };
            let value = primitive.read(bytes, order);
            match null {
                Some(null) if value.same(null) => Ok(py.None().into_ptr()),
                _ => number(py, value),
            }
        }))
    }

    fn any<'py>(&self, py: Python<'py>, message: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(found) = self.plain(py, message) {
            return found;
        }
        let view = self.plan.wrapped(message)?;
        let (root, fields) = (view.root(), &self.plan.layout().fields);
        tuple(py, &self.picks, |pick| match root.field_bytes(&fields[pick.index]).map_err(decode_error)? {
            Some(bytes) => {
                let part = &self.plan.fields[pick.index];
                part.value(py, bytes, self.plan.order(), view.version, true).map(Bound::into_ptr)
            }
            None => Ok(py.None().into_ptr()),
        })
    }
}

/// A number as a Python object, a new reference, by the calls that `struct` makes, too.
#[inline]
fn number(py: Python<'_>, value: Scalar) -> PyResult<*mut ffi::PyObject> {
    let made = match value {
        // SAFETY: the interpreter's lock is held.
        Scalar::Signed(value) => unsafe { ffi::PyLong_FromLongLong(value) },
        Scalar::Unsigned(value) => match i64::try_from(value) {
            // SAFETY: as above. This one is quicker, where it can hold the value.
            Ok(value) => unsafe { ffi::PyLong_FromLongLong(value) },
            // SAFETY: as above.
            Err(_) => unsafe { ffi::PyLong_FromUnsignedLongLong(value) },
        },
        // SAFETY: as above.
        Scalar::Single(value) => unsafe { ffi::PyFloat_FromDouble(value.into()) },
        // SAFETY: as above.
        Scalar::Double(value) => unsafe { ffi::PyFloat_FromDouble(value) },
    };
    if made.is_null() { Err(PyErr::fetch(py)) } else { Ok(made) }
}

/// A new tuple with a value for each pick; values are new references.
fn tuple<'py>(
    py: Python<'py>,
    picks: &[Pick],
    value: impl Fn(&Pick) -> PyResult<*mut ffi::PyObject>,
) -> PyResult<Bound<'py, PyTuple>> {
    // SAFETY: the interpreter's lock is held. What is not set yet is null, which a tuple that is given up may hold.
    let made = unsafe { ffi::PyTuple_New(picks.len() as ffi::Py_ssize_t) };
    // SAFETY: a new reference, or null with an exception set.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, made) }?;
    for (index, pick) in picks.iter().enumerate() {
        let item = value(pick)?;
        // SAFETY: nobody else has the tuple yet, the place is one of its own, and it takes over the reference.
        if unsafe { ffi::PyTuple_SetItem(made.as_ptr(), index as ffi::Py_ssize_t, item) } != 0 {
            return Err(PyErr::fetch(py));
        }
    }
    Ok(made.cast_into()?)
}

const UNPACK_DOC: &CStr = c"unpack_from($self, buffer, offset=0)
--

Return the fields of the message at `offset`, in the order they were asked for: as the view's attributes, but
composites are tuples; None for what is null or newer than the message.

Raises DecodeError: of another schema or template, or header and root are cut off.";

/// Puts the quick call in its place, as in [`crate::fast`].
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    let call = ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: unpack_from };
    let keywords = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
    crate::fast::replace(&py.get_type::<Unpacker>(), c"unpack_from", call, keywords, UNPACK_DOC)
}

/// # Safety
/// Called by the interpreter, with an unpacker, its arguments, and the names of the last ones or null.
unsafe extern "C" fn unpack_from(
    unpacker: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // An error is found again, and raised, by the general way.
    let plain = |py: Python<'_>, object: Borrowed<'_, '_, Unpacker>, message: &[u8]| {
        object.get().plain(py, message)?.ok().map(Bound::into_ptr)
    };
    // SAFETY: as the interpreter gave them, with an object of this class.
    if let Some(found) = unsafe { crate::fast::of_bytes(unpacker, arguments, count, names, plain) } {
        return found;
    }
    // SAFETY: as the interpreter gave them.
    unsafe { crate::fast::general(unpacker, "_unpack_from", arguments, count, names) }
}

#[pymethods]
impl Unpacker {
    #[new]
    #[pyo3(signature = (message, fields=None))]
    fn new(message: &Bound<'_, PyType>, fields: Option<Vec<String>>) -> PyResult<Self> {
        let plan = codec(message)?.get().plan.clone();
        let known = &plan.layout().fields;
        let index_of = |name: &String| {
            let text = || format!("expected a field of {}'s root, there is no {name}", plan.name);
            known.iter().position(|field| field.name == *name).ok_or_else(|| PyKeyError::new_err(text()))
        };
        let picks = match &fields {
            Some(names) => names.iter().map(index_of).collect::<PyResult<Vec<_>>>()?,
            None => (0..known.len()).collect(),
        };
        let picks = picks.into_iter().map(|index| Pick::of(&plan, index)).collect();
        let schema = &plan.schema;
        let message = &schema.messages[plan.message];
        let mut head = vec![0; schema.header.length + message.block.block_length];
        drop(Encoder::begin(schema, message, &mut head).map_err(encode_error)?);
        head.truncate(schema.header.length);
        Ok(Self { plan, picks, head })
    }

    /// `unpack_from` for whatever it does not do itself.
    #[pyo3(name = "_unpack_from")]
    #[pyo3(signature = (buffer, offset=0))]
    fn any_buffer<'py>(
        &self,
        py: Python<'py>,
        buffer: &Bound<'py, PyAny>,
        offset: usize,
    ) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(message) = bytes_of(buffer.as_borrowed()).and_then(|bytes| bytes.get(offset..)) {
            return self.any(py, message);
        }
        let held = Held::of(buffer)?;
        self.any(py, held.from(offset)?)
    }

    /// Names of the fields, in the order of the tuple.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.picks.iter().map(|pick| self.plan.fields[pick.index].key.clone_ref(py)))
    }

    fn __repr__(&self) -> String {
        format!("<sbe.Unpacker of {} fields of {}>", self.picks.len(), self.plan.name)
    }
}
