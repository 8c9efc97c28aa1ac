//! Enums, sets and composites: each is written once, where a field first needs it.

use std::sync::Arc;

use super::super::layout::{ByteOrder, Composite, Enumeration, Options, Schema, Type};
use super::fields::{Place, Slot, getter, setter};
use super::names::{Unique, pascal, snake};
use super::numbers::{grouped, literal, rust_type};
use super::text::{fill, plain};

/// Names of Rust and of the module's own parts, which no type of a schema takes.
const RESERVED: [&str; 22] = [
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Eq",
    "Err",
    "Error",
    "ExactSizeIterator",
    "Fn",
    "FnMut",
    "Header",
    "IntoIterator",
    "Iterator",
    "Message",
    "None",
    "Ok",
    "Option",
    "PartialEq",
    "Result",
    "Self",
    "Some",
    "Writer",
];

const ENUM: &str = r"
/// Enum `$title`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum $name {
$variants    /// A value that the schema does not know.
    $unknown($type),
}

impl $name {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: $type) -> Self {
        match raw {
$reads            other => Self::$unknown(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> $type {
        match self {
$writes            Self::$unknown(raw) => raw,
        }
    }
}
";
const SET: &str = r"
/// Set `$title`, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct $name(
    /// All bits, unknown ones included.
    pub $type,
);

impl $name {
$choices}
";
const CHOICE: &str = r"    /// Choice `$title`.
    #[inline]
    pub const fn $method(self) -> bool {
        self.0 & $bit != 0
    }

    /// The set with or without `$title`.
    #[inline]
    pub const fn with_$method(self, is_chosen: bool) -> Self {
        Self(if is_chosen { self.0 | $bit } else { self.0 & !$bit })
    }

";
const COMPOSITE: &str = r"
/// Composite `$title`, where it lies.
#[derive(Clone, Copy, Debug)]
pub struct $nameDecoder<'a> {
    bytes: &'a [u8],
    version: u32,
}

impl<'a> $nameDecoder<'a> {
$getters}

/// Composite `$title`, to be written where it lies.
#[derive(Debug)]
pub struct $nameEncoder<'b> {
    bytes: &'b mut [u8],
}

impl $nameEncoder<'_> {
$setters}
";

/// Types that were written, and names of the module that are taken.
pub(super) struct Types {
    pub(super) order: ByteOrder,
    pub(super) unique: Unique,
    pub(super) text: String,
    named: Vec<(Arc<Type>, String)>,
}

impl Types {
    pub(super) fn of(schema: &Schema) -> Self {
        let unique = Unique::reserving(&RESERVED);
        Self { order: schema.byte_order, unique, text: String::new(), named: Vec::new() }
    }

    /// The name of a type, which is written where it is new.
    pub(super) fn name(&mut self, kind: &Arc<Type>) -> String {
        if let Some((_, name)) = self.named.iter().find(|(known, _)| Arc::ptr_eq(known, kind)) {
            return name.clone();
        }
        let name = self.unique.claim(&pascal(kind.name()), &["", "Decoder", "Encoder"]);
        self.named.push((kind.clone(), name.clone()));
        let text = match &**kind {
            Type::Enumeration(one) => enumeration(one, &name),
            Type::Options(one) => options(one, &name),
            Type::Composite(one) => self.composite(one, &name),
            Type::Encoded(_) => String::new(),
        };
        self.text += &text;
        name
    }

    fn composite(&mut self, one: &Composite, name: &str) -> String {
        let mut unique = Unique::default();
        let place = Place { fixed: "self.bytes", whole: "self.bytes" };
        let (mut getters, mut setters) = (String::new(), String::new());
        for member in &one.members {
            let slot = Slot::of_member(member, &mut unique);
            getters += &getter(self, &slot, &place);
            setters += &setter(self, &slot, &place);
        }
        let title = plain(&one.name);
        fill(COMPOSITE, &[("title", &title), ("name", name), ("getters", &getters), ("setters", &setters)])
            .replace(&format!("impl {name}Encoder<'_> {{\n}}\n"), "")
    }
}

/// The variant of each value, by position.
fn variants(one: &Enumeration) -> (Vec<String>, String) {
    let mut unique = Unique::reserving(&["Self"]);
    let names = one.values.iter().map(|value| unique.claim(&pascal(&value.name), &[""])).collect();
    (names, unique.claim("Unknown", &[""]))
}

/// A value of an enum as an expression; `name` is the enum's.
pub(super) fn enum_value(one: &Enumeration, name: &str, value: super::super::primitive::Scalar) -> String {
    let (names, unknown) = variants(one);
    match one.values.iter().position(|known| known.value.same(value)) {
        Some(index) => format!("{name}::{}", names[index]),
        None => format!("{name}::{unknown}({})", literal(value)),
    }
}

fn enumeration(one: &Enumeration, name: &str) -> String {
    let (names, unknown) = variants(one);
    let (mut declared, mut reads, mut writes) = (String::new(), String::new(), String::new());
    for (index, (value, variant)) in one.values.iter().zip(&names).enumerate() {
        let raw = literal(value.value);
        declared += &format!("    /// Value `{}`.\n    {variant},\n", plain(&value.name));
        writes += &format!("            Self::{variant} => {raw},\n");
        if !one.values[..index].iter().any(|before| before.value.same(value.value)) {
            reads += &format!("            {raw} => Self::{variant},\n");
        }
    }
    fill(
        ENUM,
        &[
            ("title", &plain(&one.name)),
            ("name", name),
            ("variants", &declared),
            ("unknown", &unknown),
            ("type", rust_type(one.encoding)),
            ("reads", &reads),
            ("writes", &writes),
        ],
    )
}

fn options(one: &Options, name: &str) -> String {
    let mut unique = Unique::default();
    let choice = |choice: &super::super::layout::Choice| {
        let (method, bit) = (snake(&choice.name), grouped(1_i128 << choice.bit));
        let title = plain(&choice.name);
        (title, method, bit)
    };
    let mut choices = String::new();
    for (title, wish, bit) in one.choices.iter().map(choice) {
        let method = unique.claim(&wish, &[""]);
        let values = [("title", title.as_str()), ("method", &method), ("bit", &bit), ("type", rust_type(one.encoding))];
        choices += &fill(CHOICE, &values);
    }
    let values = [("title", plain(&one.name)), ("name", name.to_owned()), ("choices", choices)];
    let values: Vec<(&str, &str)> = values.iter().map(|(key, value)| (*key, value.as_str())).collect();
    fill(SET, &[values, vec![("type", rust_type(one.encoding))]].concat())
}
