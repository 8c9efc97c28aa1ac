//! `relay_accel._sbe`: schemas, and the classes that each message's layout makes. Its face is `relay_accel/sbe.py`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::create_exception;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple, PyType};
use relay_accel_codec::sbe::{self, Fault, NoIncludes, Schema as Layout, SchemaFaults, Sofh};

use crate::errors::AccelError;
use crate::sbe_plan::{BlockPlan, Plans};
use crate::sbe_unpack::Unpacker;
use crate::sbe_view::{BlockView, Codec, CompositeView, GroupIterator, GroupView, Held, SectionDescriptor, Seed};

create_exception!(relay_accel.sbe, SchemaError, AccelError);
create_exception!(relay_accel.sbe, DecodeError, AccelError);
create_exception!(relay_accel.sbe, EncodeError, AccelError);

/// Make the module, under a name of its own: `from relay_accel import _sbe`.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = parent.py();
    let module = PyModule::new(py, "relay_accel._sbe")?;
    for (name, class, code) in [
        ("SchemaError", py.get_type::<SchemaError>(), "INVALID_SCHEMA"),
        ("DecodeError", py.get_type::<DecodeError>(), "INVALID_MESSAGE"),
        ("EncodeError", py.get_type::<EncodeError>(), "INVALID_VALUE"),
    ] {
        class.setattr("code", code)?;
        module.add(name, class)?;
    }
    module.add_class::<Schema>()?;
    module.add_class::<BlockView>()?;
    module.add_class::<GroupView>()?;
    module.add_class::<GroupIterator>()?;
    module.add_class::<CompositeView>()?;
    module.add_class::<SectionDescriptor>()?;
    module.add_class::<Unpacker>()?;
    crate::sbe_unpack::register(py)?;
    py.import("sys")?.getattr("modules")?.set_item("relay_accel._sbe", &module)?;
    parent.add("_sbe", module)
}

pub(crate) fn decode_error(error: sbe::DecodeError) -> PyErr {
    DecodeError::new_err(error.to_string())
}

pub(crate) fn encode_error(error: sbe::EncodeError) -> PyErr {
    EncodeError::new_err(error.to_string())
}

fn fault_tuple(fault: &Fault) -> (String, u32, String, String) {
    (fault.file.clone(), fault.line, fault.element.clone(), fault.reason.clone())
}

fn schema_error(py: Python<'_>, faults: &SchemaFaults) -> PyErr {
    let error = SchemaError::new_err(faults.to_string());
    let rows: Vec<_> = faults.0.iter().map(fault_tuple).collect();
    // An exception without its list still has its text.
    let _ = PyTuple::new(py, rows).and_then(|rows| error.value(py).setattr("faults", rows));
    error
}

/// A compiled schema; classes of its messages are made when they are first asked for.
#[pyclass(frozen, module = "relay_accel._sbe")]
pub(crate) struct Schema {
    layout: Arc<Layout>,
    plans: Mutex<Plans>,
    codecs: Mutex<Vec<Option<Py<PyType>>>>,
}

impl Schema {
    fn of(py: Python<'_>, compiled: Result<Layout, SchemaFaults>) -> PyResult<Self> {
        let layout = Arc::new(compiled.map_err(|faults| schema_error(py, &faults))?);
        let codecs = layout.messages.iter().map(|_| None).collect();
        Ok(Self { layout, plans: Mutex::new(Plans::default()), codecs: Mutex::new(codecs) })
    }

    fn class_at(&self, py: Python<'_>, index: usize) -> PyResult<Py<PyType>> {
        if let Some(class) = &self.codecs.lock().unwrap_or_else(PoisonError::into_inner)[index] {
            return Ok(class.clone_ref(py));
        }
        // One at a time, so that a type of the schema is one class in all messages. Making classes runs Python: who waits
        // lets the interpreter go.
        let mut plans = self.plans.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        if let Some(class) = &self.codecs.lock().unwrap_or_else(PoisonError::into_inner)[index] {
            return Ok(class.clone_ref(py));
        }
        let made = BlockPlan::of_message(py, &self.layout, index, &mut plans)?;
        let class = crate::sbe_view::block_class(py, &made)?;
        self.codecs.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(class.clone_ref(py));
        Ok(class)
    }
}

#[pymethods]
impl Schema {
    /// Compile a file with what it includes.
    #[staticmethod]
    fn from_path(py: Python<'_>, path: &str) -> PyResult<Self> {
        Self::of(py, py.detach(|| Layout::from_path(Path::new(path))))
    }

    /// Compile bytes that include nothing.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, text: &Bound<'_, PyBytes>) -> PyResult<Self> {
        let bytes = text.as_bytes();
        Self::of(py, py.detach(|| Layout::compile("<schema>", bytes, &NoIncludes)))
    }

    /// Name of the package.
    #[getter]
    fn package(&self) -> &str {
        &self.layout.package
    }

    /// The schema's id.
    #[getter]
    fn id(&self) -> u32 {
        self.layout.id
    }

    /// The schema's version.
    #[getter]
    fn version(&self) -> u32 {
        self.layout.version
    }

    /// Version in words; None when the schema has none.
    #[getter]
    fn semantic_version(&self) -> Option<&str> {
        self.layout.semantic_version.as_deref()
    }

    /// What the schema says of itself, or None.
    #[getter]
    fn description(&self) -> Option<&str> {
        self.layout.description.as_deref()
    }

    /// `little` or `big`.
    #[getter]
    fn byte_order(&self) -> &'static str {
        match self.layout.byte_order {
            sbe::ByteOrder::Little => "little",
            sbe::ByteOrder::Big => "big",
        }
    }

    /// Bytes of a message's header.
    #[getter]
    fn header_length(&self) -> usize {
        self.layout.header.length
    }

    /// What is odd in the schema but does not hinder.
    #[getter]
    fn warnings(&self) -> Vec<(String, u32, String, String)> {
        self.layout.warnings.iter().map(fault_tuple).collect()
    }

    /// Names and template ids of the messages, in the order of the schema.
    #[getter]
    fn templates(&self) -> Vec<(String, u32)> {
        self.layout.messages.iter().map(|message| (message.name.clone(), message.id)).collect()
    }

    /// The class of the message at this position; the same one each time.
    fn message_class(&self, py: Python<'_>, index: usize) -> PyResult<Py<PyType>> {
        if index >= self.layout.messages.len() {
            return Err(pyo3::exceptions::PyIndexError::new_err(format!("there is no message {index}")));
        }
        self.class_at(py, index)
    }

    /// A view of the message at `offset`, by its template id; checked as a whole before where that is asked for.
    #[pyo3(signature = (buffer, offset=0, *, validate=false))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        buffer: &Bound<'py, PyAny>,
        offset: usize,
        validate: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let held = Held::of(buffer)?;
        let index = {
            let view = sbe::MessageView::wrap(&self.layout, held.from(offset)?).map_err(decode_error)?;
            self.layout.messages.iter().position(|message| message.id == view.message.id).unwrap_or(0)
        };
        let class = self.class_at(py, index)?;
        let codec = class.bind(py).getattr(pyo3::intern!(py, "_codec"))?;
        codec.cast::<Codec>()?.get().view(py, class.bind(py), held, offset, validate)
    }

    /// First byte and length of the framed message at `offset`.
    fn frame(&self, buffer: &Bound<'_, PyAny>, offset: usize) -> PyResult<(usize, usize)> {
        let held = Held::of(buffer)?;
        let frame = Sofh::frame(held.from(offset)?, self.layout.byte_order)
            .map_err(|error| DecodeError::new_err(error.to_string()))?;
        Ok((offset + Sofh::LENGTH, frame.len()))
    }

    /// The framing header of a message of so many bytes.
    fn framing_header<'py>(&self, py: Python<'py>, message_length: usize) -> PyResult<Bound<'py, PyBytes>> {
        let total = u32::try_from(message_length + Sofh::LENGTH)
            .map_err(|_| EncodeError::new_err("expected a message of less than 4 GiB"))?;
        let encoding_type = Sofh::encoding_type_of(self.layout.byte_order);
        Ok(PyBytes::new(py, &Sofh { message_length: total, encoding_type }.bytes()))
    }

    /// The text of a Rust module with a decoder and an encoder for each message.
    fn rust_module(&self) -> String {
        sbe::rust_module(&self.layout)
    }

    fn __str__(&self) -> String {
        self.layout.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<sbe.Schema {} id {} version {}>", self.layout.package, self.layout.id, self.layout.version)
    }
}

/// What Python needs to know of a note.
pub(crate) fn note_dict<'py>(py: Python<'py>, note: &sbe::Note) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("description", note.description.as_deref())?;
    dict.set_item("semantic_type", note.semantic_type.as_deref())?;
    dict.set_item("since_version", note.since_version)?;
    dict.set_item("deprecated", note.deprecated)?;
    let attributes = PyDict::new(py);
    for (name, value) in &note.attributes {
        attributes.set_item(name, value)?;
    }
    dict.set_item("attributes", attributes)?;
    Ok(dict)
}

pub(crate) fn list_of<'py, T>(
    py: Python<'py>,
    items: &[T],
    each: impl Fn(&T) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, items.iter().map(each).collect::<PyResult<Vec<_>>>()?)
}

pub(crate) fn name_of(key: &Py<PyString>, py: Python<'_>) -> String {
    key.bind(py).to_string()
}

/// Kept here so that both files of views make them one way.
pub(crate) fn seeded<'py>(py: Python<'py>, class: &Bound<'py, PyType>, seed: Seed) -> PyResult<Bound<'py, PyAny>> {
    class.call1((Bound::new(py, seed)?,))
}
