//! Views of messages as Python objects. Each holds its buffer, so that what it shows cannot be freed or resized meanwhile.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyIndexError, PyKeyError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView, PySlice, PyString, PyTuple, PyType};
use relay_accel_codec::sbe::{self, Composite, MessageView};

use crate::batch::show;
use crate::sbe::{DecodeError, decode_error, seeded};
use crate::sbe_plan::{BlockPlan, CompositePlan, DataPlan, Kind, Part};

/// A buffer that was asked for; given back when the last view of it ends.
pub(crate) struct Held {
    buffer: PyUntypedBuffer,
}

impl Held {
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("expected a contiguous buffer"));
        }
        Ok(Arc::new(Self { buffer }))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        let length = self.buffer.len_bytes();
        if length == 0 {
            return &[];
        }
        // SAFETY: a contiguous buffer of so many bytes, which stays where it is as long as `buffer` is held; the slice is
        // used with the interpreter's lock held, so no Python code writes meanwhile.
        unsafe { std::slice::from_raw_parts(self.buffer.buf_ptr().cast::<u8>(), length) }
    }

    pub(crate) fn from(&self, offset: usize) -> PyResult<&[u8]> {
        let length = self.bytes().len();
        let text = || format!("expected a message from byte {offset} on, the buffer ends at {length}");
        self.bytes().get(offset..).ok_or_else(|| DecodeError::new_err(text()))
    }

    /// A read-only memoryview of a part.
    fn memory<'py>(self: &Arc<Self>, py: Python<'py>, start: usize, length: usize) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyMemoryView::from(&self.rows(py, start, length)?)?.into_any())
    }

    fn rows<'py>(self: &Arc<Self>, py: Python<'py>, start: usize, length: usize) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(py, Memory { held: self.clone(), start, length })?.into_any())
    }
}

/// A part of a buffer as a buffer of its own. `NumPy` keeps what a memoryview is of, not the memoryview: one of the
/// caller's bytearray would let it be resized below the array.
#[pyclass(frozen, module = "relay_accel._sbe")]
pub(crate) struct Memory {
    held: Arc<Held>,
    start: usize,
    length: usize,
}

#[pymethods]
impl Memory {
    /// # Safety
    /// Called by the interpreter with a view that it owns.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        // A constant has no bytes, and may stand behind the end of an older message.
        let bytes = this.held.bytes().get(this.start..this.start + this.length).unwrap_or_default();
        // SAFETY: the held buffer stays where it is as long as this object lives.
        unsafe { show(slf.as_any(), bytes, view, flags) }
    }
}

/// What a view is made of; no Python code can make one.
#[pyclass(frozen, module = "relay_accel._sbe")]
pub(crate) struct Seed(Mutex<Option<Parts>>);

enum Parts {
    Block(BlockView),
    Composite(CompositeView),
}

impl Seed {
    fn take(seed: &Bound<'_, PyAny>) -> PyResult<Parts> {
        let seed = seed.cast::<Self>().map_err(|_| PyTypeError::new_err("views are made by decode()"))?;
        let parts = seed.get().0.lock().unwrap_or_else(PoisonError::into_inner).take();
        parts.ok_or_else(|| PyTypeError::new_err("views are made by decode()"))
    }
}

#[derive(Clone, Copy)]
enum What {
    Field,
    Group,
    Data,
    Member,
}

/// An attribute of a view's class.
#[pyclass(frozen, module = "relay_accel._sbe", name = "Attribute")]
pub(crate) struct SectionDescriptor {
    /// Address of the plan of its class: with another class's view it would read wrong places.
    plan: usize,
    what: What,
    index: usize,
    #[pyo3(get, name = "__name__")]
    name: String,
}

#[pymethods]
impl SectionDescriptor {
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        view: Option<&Bound<'py, PyAny>>,
        owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = owner;
        let (py, this) = (slf.py(), slf.get());
        let Some(view) = view else { return Ok(slf.clone().into_any()) };
        if let (What::Member, Ok(view)) = (this.what, view.cast::<CompositeView>()) {
            if std::ptr::from_ref(view.get().plan.layout()).addr() == this.plan {
                return view.get().member(py, this.index);
            }
        } else if let Ok(view) = view.cast::<BlockView>()
            && Arc::as_ptr(&view.get().plan).addr() == this.plan
        {
            return view.get().section(py, this.what, this.index);
        }
        Err(PyTypeError::new_err(format!("attribute {} belongs to another class", this.name)))
    }

    fn __repr__(&self) -> String {
        format!("<sbe attribute {}>", self.name)
    }
}

/// Names of the views' own methods: a field of such a name is reached by `view["name"]`.
const OWN: [&str; 8] = ["decode", "encode", "from_dict", "to_dict", "to_tuple", "to_json", "to_numpy", "mro"];

/// The class of a message, or of a group's entries.
pub(crate) fn block_class(py: Python<'_>, plan: &Arc<BlockPlan>) -> PyResult<Py<PyType>> {
    let (names, annotations) = (PyDict::new(py), PyDict::new(py));
    let address = Arc::as_ptr(plan).addr();
    let add = |key: &Py<PyString>, what: What, index: usize, annotation: String| -> PyResult<()> {
        let name = key.bind(py).to_string();
        if OWN.contains(&name.as_str()) || name.starts_with("sbe_") || name.starts_with("__") || name == "_codec" {
            return Ok(());
        }
        names.set_item(&name, SectionDescriptor { plan: address, what, index, name: name.clone() })?;
        annotations.set_item(name, annotation)
    };
    for (index, part) in plan.fields.iter().enumerate() {
        add(&part.key, What::Field, index, part.annotation(py)?)?;
    }
    for (index, (key, group)) in plan.groups.iter().enumerate() {
        add(key, What::Group, index, format!("GroupView[{}]", group.name))?;
    }
    for (index, data) in plan.data.iter().enumerate() {
        let annotation = if data.text.is_some() { "str" } else { "memoryview" };
        add(&data.key, What::Data, index, annotation.into())?;
    }
    names.set_item("__annotations__", annotations)?;
    names.set_item("__slots__", PyTuple::empty(py))?;
    names.set_item("__module__", "relay_accel.sbe")?;
    if plan.is_root() {
        let message = &plan.schema.messages[plan.message];
        names.set_item("_codec", Codec { plan: plan.clone() })?;
        names.set_item("sbe_id", message.id)?;
        names.set_item("sbe_name", &message.name)?;
        names.set_item("__doc__", message.note.description.as_deref())?;
    }
    made_class(py, &plan.name, py.get_type::<BlockView>(), names)
}

/// The class of a composite.
pub(crate) fn composite_class(py: Python<'_>, layout: &Composite, parts: &[Part]) -> PyResult<Py<PyType>> {
    let (names, annotations) = (PyDict::new(py), PyDict::new(py));
    let plan = std::ptr::from_ref(layout).addr();
    for (index, part) in parts.iter().enumerate() {
        let name = part.key.bind(py).to_string();
        if !OWN.contains(&name.as_str()) && !name.starts_with("__") {
            names.set_item(&name, SectionDescriptor { plan, what: What::Member, index, name: name.clone() })?;
            annotations.set_item(name, part.annotation(py)?)?;
        }
    }
    names.set_item("__annotations__", annotations)?;
    names.set_item("__slots__", PyTuple::empty(py))?;
    names.set_item("__module__", "relay_accel.sbe")?;
    names.set_item("__doc__", layout.note.description.as_deref())?;
    made_class(py, &layout.name, py.get_type::<CompositeView>(), names)
}

fn made_class(py: Python<'_>, name: &str, base: Bound<'_, PyType>, names: Bound<'_, PyDict>) -> PyResult<Py<PyType>> {
    let made = py.get_type::<PyType>().call1((name, (base,), names))?;
    Ok(made.cast_into::<PyType>()?.unbind())
}

impl Part {
    fn annotation(&self, py: Python<'_>) -> PyResult<String> {
        let name = |class: &Py<PyAny>| class.bind(py).getattr("__name__")?.extract::<String>();
        let text = match &self.kind {
            Kind::Constant(value) => return value.bind(py).get_type().name().map(|name| name.to_string()),
            Kind::Number(one) if one.primitive.is_float() => "float".into(),
            Kind::Number(_) => "int".into(),
            Kind::Char(_) | Kind::Text(..) => "str".into(),
            Kind::Bytes(_) => "bytes".into(),
            Kind::Array(one) if one.primitive.is_float() => "tuple[float, ...]".into(),
            Kind::Array(_) => "tuple[int, ...]".into(),
            Kind::Enumeration(plan, _) => {
                format!("{} | {}", name(&plan.class)?, if plan.is_char { "str" } else { "int" })
            }
            Kind::Options(plan, _) => name(&plan.class)?,
            Kind::Composite(plan) => plan.layout().name.clone(),
        };
        Ok(if self.is_optional || matches!(self.kind, Kind::Enumeration(..)) { format!("{text} | None") } else { text })
    }
}

/// A message or one entry of a group; base of the classes that schemas make.
#[pyclass(frozen, subclass, module = "relay_accel._sbe")]
pub(crate) struct BlockView {
    pub(crate) held: Arc<Held>,
    pub(crate) plan: Arc<BlockPlan>,
    /// First byte of the block in the buffer, and its length as the message says it.
    start: usize,
    length: usize,
    version: u32,
}

impl BlockView {
    pub(crate) fn core(&self) -> PyResult<sbe::BlockView<'_>> {
        let (layout, bytes, order) = (self.plan.layout(), self.held.bytes(), self.plan.order());
        sbe::BlockView::at(layout, bytes, self.start, self.length, self.version, order).map_err(decode_error)
    }

    fn section<'py>(&self, py: Python<'py>, what: What, index: usize) -> PyResult<Bound<'py, PyAny>> {
        match what {
            What::Group => self.group(py, index),
            What::Data => {
                let (bytes, start) = self.core()?.data_at(index).map_err(decode_error)?;
                let data = &self.plan.data[index];
                match &data.text {
                    Some(text) => text.decoded(py, data.key.bind(py).to_str()?, bytes),
                    None => self.held.memory(py, start, bytes.len()),
                }
            }
            _ => self.field(py, index),
        }
    }

    fn field<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let core = self.core()?;
        let (part, field) = (&self.plan.fields[index], &core.layout().fields[index]);
        let Some(bytes) = core.field_bytes(field).map_err(decode_error)? else { return Ok(py.None().into_bound(py)) };
        if let Kind::Composite(plan) = &part.kind {
            let (held, plan, start) = (self.held.clone(), plan.clone(), self.start + field.offset);
            return CompositeView {
                held,
                plan,
                start,
                length: bytes.len(),
                version: self.version,
                order: self.plan.order(),
            }
            .object(py);
        }
        part.value(py, bytes, self.plan.order(), self.version, false)
    }

    fn group<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let core = self.core()?;
        let mut at = self.start + self.length;
        let mut tail = core.tail();
        for layout in &core.layout().groups[..index] {
            at = tail.group(layout).and_then(|group| group.end()).map_err(decode_error)?;
            tail.go_on(at);
        }
        let found = tail.group(&core.layout().groups[index]).map_err(decode_error)?;
        let view = GroupView {
            held: self.held.clone(),
            parent: self.plan.clone(),
            index,
            at,
            count: found.len(),
            version: self.version,
            starts: OnceLock::new(),
        };
        Ok(Bound::new(py, view)?.into_any())
    }

    fn position(&self, py: Python<'_>, name: &str) -> Option<(What, usize)> {
        let is = |key: &Py<PyString>| key.bind(py).to_str().is_ok_and(|key| key == name);
        let (fields, groups, data) = (&self.plan.fields, &self.plan.groups, &self.plan.data);
        fields
            .iter()
            .position(|part| is(&part.key))
            .map(|index| (What::Field, index))
            .or_else(|| groups.iter().position(|(key, _)| is(key)).map(|index| (What::Group, index)))
            .or_else(|| data.iter().position(|data| is(&data.key)).map(|index| (What::Data, index)))
    }

    pub(crate) fn object<'py>(self, py: Python<'py>, class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
        seeded(py, class, Seed(Mutex::new(Some(Parts::Block(self)))))
    }
}

/// A block as a dict or a tuple, and the byte behind it: one walk over the message.
fn block_value<'py>(
    py: Python<'py>,
    plan: &BlockPlan,
    view: sbe::BlockView<'_>,
    version: u32,
    as_tuple: bool,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let layout = view.layout();
    let mut values = Vec::with_capacity(plan.fields.len() + plan.groups.len() + plan.data.len());
    for (part, field) in plan.fields.iter().zip(&layout.fields) {
        values.push(match view.field_bytes(field).map_err(decode_error)? {
            Some(bytes) => part.value(py, bytes, plan.order(), version, as_tuple)?,
            None => py.None().into_bound(py),
        });
    }
    let mut tail = view.tail();
    for ((_, inner), layout) in plan.groups.iter().zip(&layout.groups) {
        let group = tail.group(layout).map_err(decode_error)?;
        let (list, end) = group_value(py, inner, &group, version, as_tuple)?;
        tail.go_on(end);
        values.push(list.into_any());
    }
    for (data, layout) in plan.data.iter().zip(&layout.data) {
        values.push(data_value(py, data, tail.data(layout).map_err(decode_error)?)?);
    }
    let value = if as_tuple {
        PyTuple::new(py, values)?.into_any()
    } else {
        let dict = PyDict::new(py);
        let (fields, groups) = (plan.fields.iter().map(|part| &part.key), plan.groups.iter().map(|(key, _)| key));
        for (key, value) in fields.chain(groups).chain(plan.data.iter().map(|data| &data.key)).zip(values) {
            dict.set_item(key.bind(py), value)?;
        }
        dict.into_any()
    };
    Ok((value, tail.position()))
}

fn group_value<'py>(
    py: Python<'py>,
    plan: &BlockPlan,
    group: &sbe::GroupView<'_>,
    version: u32,
    as_tuple: bool,
) -> PyResult<(Bound<'py, PyList>, usize)> {
    let (list, mut at) = (PyList::empty(py), group.span().0);
    for _ in 0..group.len() {
        let entry = group.entry_from(at).map_err(decode_error)?;
        let (value, end) = block_value(py, plan, entry, version, as_tuple)?;
        list.append(value)?;
        at = end;
    }
    Ok((list, at))
}

fn data_value<'py>(py: Python<'py>, data: &DataPlan, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match &data.text {
        Some(text) => text.decoded(py, data.key.bind(py).to_str()?, bytes),
        None => Ok(PyBytes::new(py, bytes).into_any()),
    }
}

pub(crate) fn codec<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, Codec>> {
    let found = class.getattr(intern!(class.py(), "_codec"));
    let found = found.map_err(|_| PyTypeError::new_err("expected the class of a message"))?;
    Ok(found.cast_into::<Codec>()?)
}

#[pymethods]
impl BlockView {
    #[new]
    fn new(seed: &Bound<'_, PyAny>) -> PyResult<Self> {
        match Seed::take(seed)? {
            Parts::Block(view) => Ok(view),
            Parts::Composite(_) => Err(PyTypeError::new_err("views are made by decode()")),
        }
    }

    /// Return a view of the message at `offset`; its header is checked, fields when they are read.
    ///
    /// Args: buffer: holds the message. offset: of its first byte. validate: look at the whole message first: that
    /// all of it is there, and that the schema knows every enum's value. Costs one walk over it.
    ///
    /// Raises DecodeError: of another schema or template, or header and root are cut off; with `validate` also an
    /// enum's value that is unknown, or null where it is required: the text has its path and byte.
    #[classmethod]
    #[pyo3(signature = (buffer, offset=0, *, validate=false))]
    fn decode<'py>(
        class: &Bound<'py, PyType>,
        buffer: &Bound<'py, PyAny>,
        offset: usize,
        validate: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        codec(class)?.get().view(class.py(), class, Held::of(buffer)?, offset, validate)
    }

    /// Write a message, header included; return its bytes, or its length where `into` is given.
    ///
    /// Args: values: fields by name, groups as sequences of mappings, data as str or bytes; or a view. Left out: null
    /// where that is allowed, empty for groups and data. into: writable buffer; it stays as it was when the message
    /// is refused. offset: where in it. fields: more values, over the first.
    ///
    /// Raises EncodeError: a required field is missing, a value does not fit, a name is unknown, or the buffer is too
    /// short.
    #[classmethod]
    #[pyo3(signature = (values=None, /, *, into=None, offset=0, **fields))]
    fn encode<'py>(
        class: &Bound<'py, PyType>,
        values: Option<&Bound<'py, PyAny>>,
        into: Option<&Bound<'py, PyAny>>,
        offset: usize,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        let codec = codec(class)?;
        let given = crate::sbe_encode::given(py, values, fields)?;
        if let Some(buffer) = into {
            let length = crate::sbe_encode::into_buffer(py, &codec.get().plan, &given, buffer, offset)?;
            return Ok(length.into_pyobject(py)?.into_any());
        }
        let bytes = crate::sbe_encode::to_vec(py, &codec.get().plan, &given)?;
        Ok(PyBytes::new(py, &bytes).into_any())
    }

    /// Return a view of a new message of these values.
    #[classmethod]
    fn from_dict<'py>(class: &Bound<'py, PyType>, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        let codec = codec(class)?;
        let given = crate::sbe_encode::given(py, Some(values), None)?;
        let bytes = PyBytes::new(py, &crate::sbe_encode::to_vec(py, &codec.get().plan, &given)?);
        codec.get().view(py, class, Held::of(bytes.as_any())?, 0, false)
    }

    /// Return all values by name, copied: composites as dicts, groups as lists of dicts, data as str or bytes.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(block_value(py, &self.plan, self.core()?, self.version, false)?.0)
    }

    /// Return all values in the order of the schema, copied.
    fn to_tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(block_value(py, &self.plan, self.core()?, self.version, true)?.0)
    }

    /// Return all values as JSON: enums and sets by name, bytes in base64.
    #[pyo3(signature = (*, indent=None))]
    fn to_json<'py>(slf: &Bound<'py, Self>, indent: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        let values = slf.get().to_dict(slf.py())?;
        slf.py().import("relay_accel.sbe_rows")?.call_method1("to_json", (values, indent))
    }

    /// Version of the schema that wrote the message.
    #[getter]
    fn sbe_version(&self) -> u32 {
        self.version
    }

    /// Bytes that the message says its block has.
    #[getter]
    fn sbe_block_length(&self) -> usize {
        self.length
    }

    /// Bytes of the message with its header, or of the entry, with groups and data.
    #[getter]
    fn sbe_length(&self) -> PyResult<usize> {
        let end = self.core()?.end().map_err(decode_error)?;
        let head = if self.plan.is_root() { self.plan.schema.header.length } else { 0 };
        Ok(end - self.start + head)
    }

    /// Bytes of a field as they are, without a copy; None where it is newer than the message.
    fn sbe_raw<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let core = self.core()?;
        let field = core.layout().fields.iter().find(|field| field.name == name);
        let field = field.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        match core.field_bytes(field).map_err(decode_error)? {
            Some(bytes) => self.held.memory(py, self.start + field.offset, bytes.len()).map(Some),
            None => Ok(None),
        }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let (what, index) = self.position(py, name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        self.section(py, what, index)
    }

    fn __repr__(&self) -> String {
        format!("<sbe {} at byte {}, version {}>", self.plan.name, self.start, self.version)
    }
}

/// Entries of a group.
#[pyclass(frozen, sequence, module = "relay_accel._sbe")]
pub(crate) struct GroupView {
    held: Arc<Held>,
    parent: Arc<BlockPlan>,
    index: usize,
    /// First byte of the dimensions in the buffer.
    at: usize,
    count: usize,
    version: u32,
    /// First bytes of the entries, where they lie at different distances.
    starts: OnceLock<Vec<usize>>,
}

impl GroupView {
    fn plan(&self) -> &Arc<BlockPlan> {
        &self.parent.groups[self.index].1
    }

    fn core(&self) -> PyResult<sbe::GroupView<'_>> {
        let (layout, bytes, order) = (self.parent.layout(), self.held.bytes(), self.parent.order());
        let before = sbe::BlockView::at(layout, bytes, self.at, 0, self.version, order).map_err(decode_error)?;
        let found = before.tail().group(&layout.groups[self.index]).map_err(decode_error)?;
        if found.len() != self.count {
            return Err(DecodeError::new_err("the buffer has changed: decode the message again"));
        }
        Ok(found)
    }

    fn start_of(&self, group: &sbe::GroupView<'_>, index: usize) -> PyResult<usize> {
        let (first, length) = group.span();
        if group.is_contiguous() {
            return Ok(first + index * length);
        }
        if let Some(starts) = self.starts.get() {
            return Ok(starts[index]);
        }
        let mut starts = Vec::with_capacity(self.count);
        let mut at = first;
        for _ in 0..self.count {
            starts.push(at);
            at = group.entry_from(at).and_then(|entry| entry.end()).map_err(decode_error)?;
        }
        Ok(self.starts.get_or_init(|| starts)[index])
    }

    fn entry<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let group = self.core()?;
        let (start, length, plan) = (self.start_of(&group, index)?, group.span().1, self.plan().clone());
        let class = plan.class.get().map(|class| class.clone_ref(py));
        let class = class.ok_or_else(|| PyTypeError::new_err("the class of the entries is not made yet"))?;
        BlockView { held: self.held.clone(), plan, start, length, version: self.version }.object(py, class.bind(py))
    }
}

#[pymethods]
impl GroupView {
    fn __len__(&self) -> usize {
        self.count
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let range = slice.indices(self.count as isize)?;
            let indices = (0..range.slicelength).map(|step| range.start + step as isize * range.step);
            let entries = indices.map(|index| self.entry(py, index as usize)).collect::<PyResult<Vec<_>>>()?;
            return Ok(PyList::new(py, entries)?.into_any());
        }
        let index: isize = index.extract()?;
        let wrapped = if index < 0 { index + self.count as isize } else { index };
        match usize::try_from(wrapped) {
            Ok(found) if found < self.count => self.entry(py, found),
            _ => Err(PyIndexError::new_err(format!("entry {index} of a group of {}", self.count))),
        }
    }

    fn __iter__(slf: Bound<'_, Self>) -> GroupIterator {
        GroupIterator { group: slf.unbind(), next: 0 }
    }

    /// Return the entries as dicts of Python values.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(group_value(py, self.plan(), &self.core()?, self.version, false)?.0)
    }

    /// Return the entries as tuples of Python values.
    fn to_tuples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Ok(group_value(py, self.plan(), &self.core()?, self.version, true)?.0)
    }

    /// Return the entries' blocks as a read-only structured array of shape `(len,)`.
    fn to_numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("relay_accel.sbe_rows")?.call_method1("of_group", (slf,))
    }

    /// What an array over the entries is: dtype, memory of the blocks, count, and bytes from one to the next.
    fn sbe_rows<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyAny>, usize, usize)> {
        let group = self.core()?;
        let (start, length) = group.span();
        let dtype = crate::sbe_dtype::of_block(py, &group.layout().block, self.parent.order(), self.version, length)?;
        if group.is_contiguous() {
            return Ok((dtype, self.held.rows(py, start, self.count * length)?, self.count, length));
        }
        let mut blocks = Vec::with_capacity(self.count * length);
        for entry in group.entries() {
            let (first, length) = entry.map_err(decode_error)?.span();
            blocks.extend_from_slice(&self.held.bytes()[first..first + length]);
        }
        Ok((dtype, PyBytes::new(py, &blocks).into_any(), self.count, length))
    }

    fn __repr__(&self) -> String {
        format!("<sbe group {} of {} entries>", self.plan().name, self.count)
    }
}

/// What `iter()` of a group is.
#[pyclass(module = "relay_accel._sbe")]
pub(crate) struct GroupIterator {
    group: Py<GroupView>,
    next: usize,
}

#[pymethods]
impl GroupIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let group = self.group.get();
        if self.next >= group.count {
            return Ok(None);
        }
        self.next += 1;
        group.entry(py, self.next - 1).map(Some)
    }
}

/// A composite in a buffer; base of the classes that schemas make.
#[pyclass(frozen, subclass, module = "relay_accel._sbe")]
pub(crate) struct CompositeView {
    held: Arc<Held>,
    plan: Arc<CompositePlan>,
    start: usize,
    length: usize,
    version: u32,
    order: sbe::ByteOrder,
}

impl CompositeView {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let class = self.plan.class.clone_ref(py);
        seeded(py, class.bind(py), Seed(Mutex::new(Some(Parts::Composite(self)))))
    }

    fn bytes(&self) -> &[u8] {
        // One of constants alone has no bytes, and may stand behind the end of an older message.
        self.held.bytes().get(self.start..self.start + self.length).unwrap_or_default()
    }

    fn member<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let (part, member) = (&self.plan.parts[index], &self.plan.layout().members[index]);
        let found = sbe::member_bytes(member, self.bytes(), self.version).map_err(decode_error)?;
        let Some(bytes) = found else { return Ok(py.None().into_bound(py)) };
        if let Kind::Composite(plan) = &part.kind {
            let (held, plan, start) = (self.held.clone(), plan.clone(), self.start + member.offset);
            return Self { held, plan, start, length: bytes.len(), version: self.version, order: self.order }
                .object(py);
        }
        part.value(py, bytes, self.order, self.version, false)
    }
}

#[pymethods]
impl CompositeView {
    #[new]
    fn new(seed: &Bound<'_, PyAny>) -> PyResult<Self> {
        match Seed::take(seed)? {
            Parts::Composite(view) => Ok(view),
            Parts::Block(_) => Err(PyTypeError::new_err("views are made by decode()")),
        }
    }

    /// Return the members as a dict of Python values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.plan.value(py, self.bytes(), self.order, self.version, false)
    }

    /// Return the members as a tuple of Python values.
    fn to_tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.plan.value(py, self.bytes(), self.order, self.version, true)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let index = self.plan.layout().members.iter().position(|member| member.name == name);
        self.member(py, index.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?)
    }

    fn __repr__(&self) -> String {
        format!("<sbe composite {} at byte {}>", self.plan.layout().name, self.start)
    }
}

/// What a message's class knows of its layout.
#[pyclass(frozen, module = "relay_accel._sbe")]
pub(crate) struct Codec {
    pub(crate) plan: Arc<BlockPlan>,
}

impl Codec {
    pub(crate) fn view<'py>(
        &self,
        py: Python<'py>,
        class: &Bound<'py, PyType>,
        held: Arc<Held>,
        offset: usize,
        validate: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (start, length, version) = {
            let view = self.wrapped(&held, offset)?;
            if validate {
                view.check().map_err(decode_error)?;
            }
            let (start, length) = view.root().span();
            (offset + start, length, view.version)
        };
        BlockView { held, plan: self.plan.clone(), start, length, version }.object(py, class)
    }

    fn wrapped<'h>(&'h self, held: &'h Held, offset: usize) -> PyResult<MessageView<'h>> {
        self.plan.wrapped(held.from(offset)?)
    }
}

#[pymethods]
impl Codec {
    /// Messages of this template back to back: what an array over them is, as of a group.
    #[pyo3(signature = (buffer, offset=0, count=None))]
    fn rows<'py>(
        &self,
        py: Python<'py>,
        buffer: &Bound<'py, PyAny>,
        offset: usize,
        count: Option<usize>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyAny>, usize, usize)> {
        let layout = self.plan.layout();
        if !layout.is_fixed() {
            return Err(PyTypeError::new_err(format!("{} has groups or data: it is no fixed record", self.plan.name)));
        }
        let held = Held::of(buffer)?;
        let head_length = self.plan.schema.header.length;
        let bytes = held.from(offset)?;
        let (version, length) = if bytes.is_empty() || count == Some(0) {
            (self.plan.schema.version, layout.block_length)
        } else {
            let view = self.wrapped(&held, offset)?;
            (view.version, view.root().span().1)
        };
        let stride = head_length + length;
        let head = bytes.get(..head_length);
        let rows = bytes.chunks_exact(stride).take(count.unwrap_or(usize::MAX));
        let found = rows.take_while(|row| Some(&row[..head_length]) == head).count();
        let wanted = count.unwrap_or(bytes.len().div_ceil(stride));
        if found != wanted {
            let at = offset + found * stride;
            return Err(DecodeError::new_err(format!(
                "expected {wanted} whole messages {} with the same header, the one at byte {at} is not",
                self.plan.name
            )));
        }
        let dtype = crate::sbe_dtype::of_block(py, layout, self.plan.order(), version, length)?;
        let first = (offset + head_length).min(offset + bytes.len());
        let memory = held.rows(py, first, (found * stride).saturating_sub(head_length))?;
        Ok((dtype, memory, found, stride))
    }

    /// The layout as plain values.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::sbe_dtype::describe(py, &self.plan, self.plan.layout())
    }
}
