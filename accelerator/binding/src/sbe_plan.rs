//! What a layout needs in Python: keys, enum and flag classes, text encodings, made once for each message.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use relay_accel_codec::sbe::{
    Block, ByteOrder, Composite, Constant, DecodeError as WireError, Encoded, Enumeration, Field, MessageView, Options,
    Presence, Primitive, Scalar, Schema, Type, ValidValue,
};

use crate::sbe::{DecodeError, decode_error};

/// Flag values that are kept as objects, for each set.
const FLAGS_KEPT_MAX: usize = 1_024;

/// Values of an enum that a message names.
const CHOICES_SHOWN_MAX: usize = 12;

/// How bytes become text.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    Ascii,
    Utf8,
    Latin1,
    /// By Python, and how many bytes its units have.
    Other(String, usize),
}

impl Text {
    fn named(py: Python<'_>, name: &str) -> Option<Self> {
        let known = match name.to_ascii_uppercase().replace('_', "-").as_str() {
            "" | "ASCII" | "US-ASCII" => Some(Self::Ascii),
            "UTF-8" | "UTF8" => Some(Self::Utf8),
            "ISO-8859-1" | "ISO8859-1" | "LATIN-1" | "LATIN1" => Some(Self::Latin1),
            _ => None,
        };
        known.or_else(|| {
            let found = py.import("codecs").ok()?.call_method1("lookup", (name,)).ok()?;
            let python_name = found.getattr("name").ok()?.extract::<String>().ok()?;
            let unit = if python_name.starts_with("utf-16") {
                2
            } else if python_name.starts_with("utf-32") {
                4
            } else {
                1
            };
            Some(Self::Other(name.into(), unit))
        })
    }

    /// The bytes before the first zero, which ends a text in an array.
    pub(crate) fn before_end<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let unit = if let Self::Other(_, unit) = self { *unit } else { 1 };
        let units = bytes.chunks_exact(unit).take_while(|unit| unit.iter().any(|byte| *byte != 0)).count();
        &bytes[..units * unit]
    }

    pub(crate) fn decoded<'py>(&self, py: Python<'py>, name: &str, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let wrong = |encoding: &str| DecodeError::new_err(format!("{name}: the bytes are no text in {encoding}"));
        match self {
            Self::Ascii if bytes.is_ascii() => {}
            Self::Ascii => return Err(wrong("ASCII")),
            Self::Utf8 => {}
            Self::Latin1 => {
                let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
                return Ok(PyString::new(py, &text).into_any());
            }
            Self::Other(encoding, _) => {
                return PyBytes::new(py, bytes)
                    .call_method1(intern!(py, "decode"), (encoding,))
                    .map_err(|_| wrong(encoding));
            }
        }
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("UTF-8"))?;
        Ok(PyString::new(py, text).into_any())
    }

    pub(crate) fn encoded(&self, py: Python<'_>, name: &str, text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
        let encoding = match self {
            Self::Ascii => "ascii",
            Self::Utf8 => "utf-8",
            Self::Latin1 => "latin-1",
            Self::Other(encoding, _) => encoding,
        };
        let bytes = text.call_method1(intern!(py, "encode"), (encoding,)).map_err(|_| {
            crate::sbe::EncodeError::new_err(format!("{name}: expected text that {encoding} can hold, got {text:?}"))
        })?;
        Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
    }
}

/// An enum's members by their value on the wire.
pub(crate) struct EnumPlan {
    pub(crate) class: Py<PyAny>,
    pub(crate) is_char: bool,
    pub(crate) null: Scalar,
    /// Names and values, for messages.
    pub(crate) choices: String,
    by_raw: HashMap<i128, Py<PyAny>>,
    by_name: HashMap<String, Scalar>,
}

impl EnumPlan {
    /// The member; for a value that the schema does not know the value itself, for null None.
    pub(crate) fn member<'py>(&self, py: Python<'py>, raw: Scalar) -> PyResult<Bound<'py, PyAny>> {
        let value = raw.integer().unwrap_or(0);
        match self.by_raw.get(&value) {
            Some(member) => Ok(member.bind(py).clone()),
            None if raw.same(self.null) => Ok(py.None().into_bound(py)),
            None if self.is_char => Ok(char_text(py, value as u8).into_any()),
            None => Ok(value.into_pyobject(py)?.into_any()),
        }
    }

    pub(crate) fn named(&self, name: &str) -> Option<Scalar> {
        self.by_name.get(name).copied()
    }
}

/// The first valid values in words, such as `BUY 'B', SELL 'S'`.
fn choices(values: &[ValidValue], is_char: bool) -> String {
    let shown = values.iter().take(CHOICES_SHOWN_MAX).map(|valid| {
        let value = valid.value.integer().unwrap_or(0);
        match u8::try_from(value) {
            Ok(byte) if is_char => format!("{} {:?}", valid.name, char::from(byte)),
            _ => format!("{} {value}", valid.name),
        }
    });
    let rest = values.len().saturating_sub(CHOICES_SHOWN_MAX);
    let more = (rest > 0).then(|| format!("{rest} more"));
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

/// A set's flag class, and values that were met.
pub(crate) struct SetPlan {
    pub(crate) class: Py<PyAny>,
    pub(crate) by_name: HashMap<String, u64>,
    met: Mutex<HashMap<u64, Py<PyAny>>>,
}

impl SetPlan {
    pub(crate) fn flags<'py>(&self, py: Python<'py>, bits: u64) -> PyResult<Bound<'py, PyAny>> {
        if self.by_name.is_empty() {
            // Python has no flags without a name.
            return Ok(bits.into_pyobject(py)?.into_any());
        }
        if let Some(known) = self.met.lock().unwrap_or_else(PoisonError::into_inner).get(&bits) {
            return Ok(known.bind(py).clone());
        }
        let made = self.class.bind(py).call1((bits,))?;
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        if met.len() < FLAGS_KEPT_MAX {
            met.insert(bits, made.clone().unbind());
        }
        Ok(made)
    }
}

/// How the bytes of a type become a Python value.
pub(crate) enum Kind {
    Constant(Py<PyAny>),
    Number(Encoded),
    Char(Encoded),
    Text(Encoded, Text),
    Bytes(Encoded),
    Array(Encoded),
    Enumeration(Arc<EnumPlan>, Primitive),
    Options(Arc<SetPlan>, Primitive),
    Composite(Arc<CompositePlan>),
}

/// A field of a block, or a member of a composite.
pub(crate) struct Part {
    pub(crate) key: Py<PyString>,
    pub(crate) kind: Kind,
    pub(crate) is_optional: bool,
}

/// A composite's members.
pub(crate) struct CompositePlan {
    pub(crate) kind: Arc<Type>,
    pub(crate) parts: Vec<Part>,
    pub(crate) class: Py<PyType>,
}

impl CompositePlan {
    pub(crate) fn layout(&self) -> &Composite {
        match &*self.kind {
            Type::Composite(one) => one,
            _ => unreachable!("made of composites alone"),
        }
    }
}

/// Data of a block.
pub(crate) struct DataPlan {
    pub(crate) key: Py<PyString>,
    pub(crate) text: Option<Text>,
}

/// A message's root, or the entries of one of its groups.
pub(crate) struct BlockPlan {
    pub(crate) schema: Arc<Schema>,
    pub(crate) message: usize,
    path: Vec<usize>,
    pub(crate) name: String,
    pub(crate) fields: Vec<Part>,
    pub(crate) groups: Vec<(Py<PyString>, Arc<BlockPlan>)>,
    pub(crate) data: Vec<DataPlan>,
    /// Class of a group's entries; a message's own is made behind its plan.
    pub(crate) class: std::sync::OnceLock<Py<PyType>>,
}

/// Classes of types, by the type's address: the schema keeps its types as long as it lives.
#[derive(Default)]
pub(crate) struct Plans {
    enums: HashMap<usize, Arc<EnumPlan>>,
    sets: HashMap<usize, Arc<SetPlan>>,
    composites: HashMap<usize, Arc<CompositePlan>>,
}

impl BlockPlan {
    pub(crate) fn of_message(
        py: Python<'_>,
        schema: &Arc<Schema>,
        index: usize,
        plans: &mut Plans,
    ) -> PyResult<Arc<Self>> {
        let message = &schema.messages[index];
        Self::of(py, schema, index, Vec::new(), &message.name, &message.block, plans)
    }

    fn of(
        py: Python<'_>,
        schema: &Arc<Schema>,
        message: usize,
        path: Vec<usize>,
        name: &str,
        block: &Block,
        plans: &mut Plans,
    ) -> PyResult<Arc<Self>> {
        let fields = block.fields.iter().map(|field| plans.field(py, field)).collect::<PyResult<_>>()?;
        let mut groups = Vec::new();
        for (index, group) in block.groups.iter().enumerate() {
            let inside: Vec<usize> = path.iter().copied().chain([index]).collect();
            let plan = Self::of(py, schema, message, inside, &group.name, &group.block, plans)?;
            let class = crate::sbe_view::block_class(py, &plan)?;
            let _ = plan.class.set(class);
            groups.push((PyString::intern(py, &group.name).unbind(), plan));
        }
        let data = block.data.iter().map(|data| DataPlan {
            key: PyString::intern(py, &data.name).unbind(),
            text: data.character_encoding.as_deref().and_then(|encoding| Text::named(py, encoding)),
        });
        let data = data.collect();
        let (schema, name) = (schema.clone(), name.to_owned());
        Ok(Arc::new(Self { schema, message, path, name, fields, groups, data, class: std::sync::OnceLock::new() }))
    }

    pub(crate) fn layout(&self) -> &Block {
        self.path.iter().fold(&self.schema.messages[self.message].block, |block, index| &block.groups[*index].block)
    }

    /// A view of a message of this plan's template, header first.
    pub(crate) fn wrapped<'a>(&'a self, bytes: &'a [u8]) -> PyResult<MessageView<'a>> {
        let view = MessageView::wrap(&self.schema, bytes).map_err(decode_error)?;
        let message = &self.schema.messages[self.message];
        if view.message.id == message.id {
            return Ok(view);
        }
        let (expected, actual) = (message.name.clone(), view.message.name.clone());
        Err(decode_error(WireError::WrongTemplate { expected, actual }))
    }

    pub(crate) fn is_root(&self) -> bool {
        self.path.is_empty()
    }

    pub(crate) fn order(&self) -> ByteOrder {
        self.schema.byte_order
    }
}

impl Plans {
    fn field(&mut self, py: Python<'_>, field: &Field) -> PyResult<Part> {
        let kind = match &field.constant {
            Some(constant) => Kind::Constant(self.constant(py, &field.kind, constant)?),
            None => self.kind(py, &field.kind)?,
        };
        let is_optional = field.presence == Presence::Optional;
        Ok(Part { key: PyString::intern(py, &field.name).unbind(), kind, is_optional })
    }

    fn kind(&mut self, py: Python<'_>, kind: &Arc<Type>) -> PyResult<Kind> {
        Ok(match &**kind {
            Type::Encoded(one) => match (&one.constant, one.primitive, one.count) {
                (Some(constant), ..) => Kind::Constant(self.constant(py, kind, constant)?),
                (None, Primitive::Char, 1) => Kind::Char(one.clone()),
                (None, _, 1) => Kind::Number(one.clone()),
                (None, Primitive::Char | Primitive::Uint8, _) => {
                    match one.text_encoding().and_then(|encoding| Text::named(py, encoding)) {
                        Some(text) => Kind::Text(one.clone(), text),
                        None => Kind::Bytes(one.clone()),
                    }
                }
                _ => Kind::Array(one.clone()),
            },
            Type::Enumeration(one) => Kind::Enumeration(self.enumeration(py, kind, one)?, one.encoding),
            Type::Options(one) => Kind::Options(self.options(py, kind, one)?, one.encoding),
            Type::Composite(one) => Kind::Composite(self.composite(py, kind, one)?),
        })
    }

    fn constant(&mut self, py: Python<'_>, kind: &Arc<Type>, constant: &Constant) -> PyResult<Py<PyAny>> {
        let value = match (constant, &**kind) {
            (Constant::Scalar(value), Type::Enumeration(one)) => self.enumeration(py, kind, one)?.member(py, *value)?,
            (Constant::Scalar(value), Type::Encoded(one)) if one.primitive == Primitive::Char => {
                char_text(py, value.integer().unwrap_or(0) as u8).into_any()
            }
            (Constant::Scalar(value), _) => scalar(py, *value)?,
            (Constant::Text(text), _) => PyString::new(py, text).into_any(),
        };
        Ok(value.unbind())
    }

    fn enumeration(&mut self, py: Python<'_>, kind: &Arc<Type>, one: &Enumeration) -> PyResult<Arc<EnumPlan>> {
        let address = Arc::as_ptr(kind).addr();
        if let Some(known) = self.enums.get(&address) {
            return Ok(known.clone());
        }
        let is_char = one.encoding == Primitive::Char;
        let names = safe_names(one.values.iter().map(|valid| valid.name.as_str()));
        let rows = names.iter().zip(&one.values).map(|(name, valid)| {
            let raw = valid.value.integer().unwrap_or(0);
            let value = if is_char { char_text(py, raw as u8).into_any() } else { raw.into_pyobject(py)?.into_any() };
            Ok((name, value))
        });
        let rows = rows.collect::<PyResult<Vec<_>>>()?;
        let class =
            py.import("enum")?.getattr(if is_char { "StrEnum" } else { "IntEnum" })?.call1((&one.name, rows))?;
        class.setattr("__module__", "relay_accel.sbe")?;
        let mut plan = EnumPlan {
            class: class.clone().unbind(),
            is_char,
            null: one.null,
            choices: choices(&one.values, is_char),
            by_raw: HashMap::new(),
            by_name: HashMap::new(),
        };
        for (name, valid) in names.into_iter().zip(&one.values) {
            let member = class.get_item(&name)?;
            plan.by_raw.insert(valid.value.integer().unwrap_or(0), member.unbind());
            plan.by_name.insert(name, valid.value);
        }
        for valid in &one.values {
            plan.by_name.insert(valid.name.clone(), valid.value);
        }
        let plan = Arc::new(plan);
        self.enums.insert(address, plan.clone());
        Ok(plan)
    }

    fn options(&mut self, py: Python<'_>, kind: &Arc<Type>, one: &Options) -> PyResult<Arc<SetPlan>> {
        let address = Arc::as_ptr(kind).addr();
        if let Some(known) = self.sets.get(&address) {
            return Ok(known.clone());
        }
        let names = safe_names(one.choices.iter().map(|choice| choice.name.as_str()));
        let rows: Vec<(String, u64)> =
            names.into_iter().zip(&one.choices).map(|(name, choice)| (name, 1_u64 << choice.bit)).collect();
        let of_rows = rows.clone();
        let module = py.import("enum")?;
        let options = PyDict::new(py);
        // Bits that the schema does not know are kept: a later version may have named them.
        options.set_item("boundary", module.getattr("KEEP")?)?;
        let class = module.getattr("IntFlag")?.call((&one.name, rows), Some(&options))?;
        class.setattr("__module__", "relay_accel.sbe")?;
        let of_schema = one.choices.iter().map(|choice| (choice.name.clone(), 1_u64 << choice.bit));
        let by_name = of_rows.into_iter().chain(of_schema).collect();
        let plan = Arc::new(SetPlan { class: class.unbind(), by_name, met: Mutex::default() });
        self.sets.insert(address, plan.clone());
        Ok(plan)
    }

    fn composite(&mut self, py: Python<'_>, kind: &Arc<Type>, one: &Composite) -> PyResult<Arc<CompositePlan>> {
        let address = Arc::as_ptr(kind).addr();
        if let Some(known) = self.composites.get(&address) {
            return Ok(known.clone());
        }
        let mut parts = Vec::new();
        for member in &one.members {
            let key = PyString::intern(py, &member.name).unbind();
            parts.push(Part { key, kind: self.kind(py, &member.kind)?, is_optional: false });
        }
        let class = crate::sbe_view::composite_class(py, one, &parts)?;
        let plan = Arc::new(CompositePlan { kind: kind.clone(), parts, class });
        self.composites.insert(address, plan.clone());
        Ok(plan)
    }
}

/// Names for the members of an enum class, each another: those that it cannot have get a `_` behind and none before.
fn safe_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let is_free = |name: &str| !name.starts_with('_') && !matches!(name, "mro" | "name" | "value");
    let mut taken: HashSet<String> = names.clone().filter(|name| is_free(name)).map(Into::into).collect();
    let mut safe = |name: &str| {
        if is_free(name) {
            return name.to_owned();
        }
        let bare = name.trim_start_matches('_');
        let mut found = format!("{}_", if bare.is_empty() { "unnamed" } else { bare });
        while !taken.insert(found.clone()) {
            found.push('_');
        }
        found
    };
    names.map(&mut safe).collect()
}

/// One byte as text of one character, whatever byte it is.
pub(crate) fn char_text(py: Python<'_>, byte: u8) -> Bound<'_, PyString> {
    let mut room = [0; 2];
    PyString::new(py, char::from(byte).encode_utf8(&mut room))
}

pub(crate) fn scalar(py: Python<'_>, value: Scalar) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Scalar::Signed(value) => value.into_pyobject(py)?.into_any(),
        Scalar::Unsigned(value) => value.into_pyobject(py)?.into_any(),
        Scalar::Single(value) => f64::from(value).into_pyobject(py)?.into_any(),
        Scalar::Double(value) => value.into_pyobject(py)?.into_any(),
    })
}

impl Part {
    /// The Python value of these bytes; a composite's is a dict, or a tuple of its members.
    pub(crate) fn value<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
        order: ByteOrder,
        version: u32,
        as_tuple: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let null = |one: &Encoded, value: Scalar| {
            (self.is_optional || one.presence == Presence::Optional) && value.same(one.null)
        };
        match &self.kind {
            Kind::Constant(value) => Ok(value.bind(py).clone()),
            Kind::Number(one) => {
                let value = one.primitive.read(bytes, order);
                if null(one, value) { Ok(py.None().into_bound(py)) } else { scalar(py, value) }
            }
            Kind::Char(one) => {
                let value = one.primitive.read(bytes, order);
                if null(one, value) { Ok(py.None().into_bound(py)) } else { Ok(char_text(py, bytes[0]).into_any()) }
            }
            Kind::Text(one, text) => {
                let found = text.before_end(bytes);
                let is_optional = self.is_optional || one.presence == Presence::Optional;
                let is_null = |byte: &u8| one.null.integer() == Some(i128::from(*byte));
                if is_optional && (found.is_empty() || bytes.iter().all(is_null)) {
                    return Ok(py.None().into_bound(py));
                }
                text.decoded(py, self.key.bind(py).to_str()?, found)
            }
            Kind::Bytes(one) => {
                let all_null = || bytes.iter().all(|byte| null(one, Scalar::Unsigned(u64::from(*byte))));
                if all_null() { Ok(py.None().into_bound(py)) } else { Ok(PyBytes::new(py, bytes).into_any()) }
            }
            Kind::Array(one) => {
                let items = bytes.chunks_exact(one.primitive.size()).map(|item| one.primitive.read(item, order));
                if items.clone().all(|item| null(one, item)) {
                    return Ok(py.None().into_bound(py));
                }
                Ok(PyTuple::new(py, items.map(|item| scalar(py, item)).collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
            Kind::Enumeration(plan, primitive) => plan.member(py, primitive.read(bytes, order)),
            Kind::Options(plan, primitive) => {
                plan.flags(py, primitive.read(bytes, order).integer().map_or(0, |bits| bits as u64))
            }
            Kind::Composite(plan) => plan.value(py, bytes, order, version, as_tuple),
        }
    }
}

impl CompositePlan {
    pub(crate) fn value<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
        order: ByteOrder,
        version: u32,
        as_tuple: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let members = &self.layout().members;
        let values = self.parts.iter().zip(members).map(|(part, member)| {
            match relay_accel_codec::sbe::member_bytes(member, bytes, version).map_err(decode_error)? {
                Some(found) => part.value(py, found, order, version, as_tuple),
                None => Ok(py.None().into_bound(py)),
            }
        });
        if as_tuple {
            return Ok(PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any());
        }
        let dict = PyDict::new(py);
        for (part, value) in self.parts.iter().zip(values) {
            dict.set_item(part.key.bind(py), value?)?;
        }
        Ok(dict.into_any())
    }
}
