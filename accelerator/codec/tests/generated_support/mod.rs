//! What dynamic views say of a message, as lines that generated decoders can say, too.

use std::fs;
use std::path::{Path, PathBuf};

use relay_accel_codec::sbe::{
    BlockView, DecodeError, EncodeError, Encoder, MessageView, Presence, Scalar, Schema, Type, Value,
};

pub(crate) fn crate_path(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub(crate) fn schema(path: &str) -> Schema {
    Schema::from_path(&crate_path(path)).unwrap()
}

pub(crate) fn golden(path: &str) -> Vec<u8> {
    fs::read(crate_path("../../proto/golden").join(Path::new(path))).unwrap()
}

/// Values of all fields that are no constants, counts of groups and data, in the schema's order.
pub(crate) fn seen(schema: &Schema, bytes: &[u8]) -> Result<Seen, DecodeError> {
    let mut lines = Vec::new();
    let message = MessageView::wrap(schema, bytes)?;
    let end = block(message.root(), message.version, &mut lines)?;
    Ok((lines, end))
}

fn block(view: BlockView<'_>, version: u32, lines: &mut Vec<String>) -> Result<usize, DecodeError> {
    for field in view.layout().fields.iter().filter(|field| field.presence != Presence::Constant) {
        let is_optional = field.presence == Presence::Optional || field.note.since_version > version;
        value(&field.kind, is_optional, version, view.value_of(field)?, lines)?;
    }
    let mut tail = view.tail();
    for layout in &view.layout().groups {
        let group = tail.group(layout)?;
        lines.push(group.len().to_string());
        let mut at = group.span().0;
        for _ in 0..group.len() {
            at = block(group.entry_from(at)?, version, lines)?;
        }
        tail.go_on(at);
    }
    for layout in &view.layout().data {
        lines.push(format!("{:?}", tail.data(layout)?));
    }
    Ok(tail.position())
}

fn value(
    kind: &Type,
    is_optional: bool,
    version: u32,
    value: Value<'_>,
    lines: &mut Vec<String>,
) -> Result<(), DecodeError> {
    match (kind, value) {
        (Type::Composite(one), Value::Composite(..)) => {
            for member in &one.members {
                if !matches!(&*member.kind, Type::Encoded(inner) if inner.presence == Presence::Constant) {
                    let is_newer = member.note.since_version > version;
                    self::value(&member.kind, is_newer, version, value.member(&member.name)?, lines)?;
                }
            }
        }
        // Where a value is required, a generated decoder has no null: the number is one that the schema does not know.
        (Type::Enumeration(one), Value::Null) if !is_optional => lines.push(number(one.null)),
        (Type::Encoded(one), Value::Bytes(bytes)) => {
            let items: Vec<String> = bytes.iter().map(ToString::to_string).collect();
            lines.push(array(is_optional, one.null, &items));
        }
        (Type::Encoded(one), Value::Array(..)) => {
            let items: Vec<String> = value.items().map(number).collect();
            lines.push(array(is_optional, one.null, &items));
        }
        (_, other) => lines.push(other.scalar().map_or_else(|| "null".into(), number)),
    }
    Ok(())
}

fn array(is_optional: bool, null: Scalar, items: &[String]) -> String {
    let is_null = is_optional && items.iter().all(|item| *item == number(null));
    if is_null { "null".into() } else { items.join(",") }
}

fn number(value: Scalar) -> String {
    match value {
        Scalar::Single(value) => format!("f{}", value.to_bits()),
        Scalar::Double(value) => format!("f{}", value.to_bits()),
        other => other.text(),
    }
}

/// The message written again by the dynamic encoder.
pub(crate) fn written_again(schema: &Schema, bytes: &[u8], buffer: &mut [u8]) -> Result<usize, EncodeError> {
    let view = MessageView::wrap(schema, bytes).unwrap();
    let mut encoder = Encoder::begin(schema, view.message, buffer)?;
    copy(view.root(), &mut encoder)?;
    encoder.finish()
}

fn copy(from: BlockView<'_>, to: &mut Encoder<'_, '_>) -> Result<(), EncodeError> {
    for field in &from.layout().fields {
        to.put(&field.name, from.value_of(field).unwrap())?;
    }
    for group in &from.layout().groups {
        let found = from.group(&group.name).unwrap();
        to.begin_group(&group.name, found.len() as u64)?;
        for entry in found.entries() {
            to.next_entry()?;
            copy(entry.unwrap(), to)?;
        }
        to.end_group()?;
    }
    for data in &from.layout().data {
        to.put_data(&data.name, from.data(&data.name).unwrap())?;
    }
    Ok(())
}

/// How a generated decoder's value is said.
pub(crate) trait Say {
    fn say(self) -> String;
}

macro_rules! say_numbers {
    ($($kind:ty),*) => {$(impl Say for $kind { fn say(self) -> String { self.to_string() } })*};
}
say_numbers!(u8, i8, u16, i16, u32, i32, u64, i64);

impl Say for f32 {
    fn say(self) -> String {
        format!("f{}", self.to_bits())
    }
}

impl Say for f64 {
    fn say(self) -> String {
        format!("f{}", self.to_bits())
    }
}

impl<const N: usize> Say for &[u8; N] {
    fn say(self) -> String {
        self.map(|item| item.to_string()).join(",")
    }
}

impl<T: Say> Say for Option<T> {
    fn say(self) -> String {
        self.map_or_else(|| "null".into(), Say::say)
    }
}

pub(crate) fn said_items<T: Say>(items: impl Iterator<Item = T>) -> String {
    items.map(Say::say).collect::<Vec<_>>().join(",")
}

/// Lines and length of a message.
pub(crate) type Seen = (Vec<String>, usize);

/// One message of a generated module: what it says, and written again.
pub(crate) struct Generated {
    pub(crate) seen: fn(&[u8]) -> Option<Seen>,
    pub(crate) written_again: fn(&[u8], &mut [u8]) -> Option<usize>,
}

impl Generated {
    /// Both ways of reading say the same of these bytes, or both refuse them; and both ways of writing give the same bytes.
    pub(crate) fn agrees(&self, schema: &Schema, bytes: &[u8]) {
        let expected = seen(schema, bytes);
        let actual = (self.seen)(bytes);
        assert_eq!(actual, expected.as_ref().ok().cloned(), "{expected:?}\n{bytes:?}");
        // What is absent in an earlier version has no value to be written.
        if expected.is_ok() && MessageView::wrap(schema, bytes).unwrap().version >= schema.version {
            let (mut dynamic, mut generated) = (vec![0xcc; 2_048], vec![0xcc; 2_048]);
            let length = written_again(schema, bytes, &mut dynamic);
            assert_eq!((self.written_again)(bytes, &mut generated), length.clone().ok(), "{length:?}\n{bytes:?}");
            assert!(length.is_err() || dynamic == generated, "{bytes:?}");
        }
    }

    /// As they are, cut at every byte, and with every bit turned.
    pub(crate) fn agrees_on_all_like(&self, schema: &Schema, bytes: &[u8]) {
        self.agrees(schema, bytes);
        for length in 0..bytes.len() {
            self.agrees(schema, &bytes[..length]);
        }
        for bit in 0..bytes.len() * 8 {
            let mut turned = bytes.to_vec();
            turned[bit / 8] ^= 1 << (bit % 8);
            self.agrees(schema, &turned);
        }
        let mut buffer = vec![0; 2_048];
        let Some(length) = (self.written_again)(bytes, &mut buffer) else { return };
        for short in 0..length {
            assert_eq!((self.written_again)(bytes, &mut buffer[..short]), None, "a buffer of {short} bytes");
        }
    }
}
