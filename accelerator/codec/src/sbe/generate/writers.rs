//! Encoders of messages and entries of groups.

use super::super::layout::{Data, Group, Header, LengthField, Message, Presence, Schema};
use super::super::primitive::Scalar;
use super::blocks::{Named, OWN, tail_methods};
use super::fields::{Place, Slot, null_lines, setter};
use super::names::Unique;
use super::numbers::{grouped, order, put_known, put_length};
use super::text::{fill, plain};
use super::types::Types;

const ENCODER: &str = r"
/// $title, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct $nameEncoder<$lifetimes> {
    block: &'b mut [u8; $length],
    writer: $writer,
    next: usize,
}

impl<$lifetimes> $nameEncoder<$lifetimes> {
$begin        let block = writer.claim($what)?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; $length]) {
        block.fill(0);
$nulls    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
$passes        self.next = ordinal + 1;
        Ok(())
    }

$setters$finish}
";
const BEGIN: &str = r"    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim($what)? = [$header];
";
const BEGIN_ENTRY: &str = r"    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
";
const FINISH: &str = r#"    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to($total, "end of message")?;
        Ok(self.writer.written)
    }
"#;
const COMPLETE: &str = r#"    #[inline]
    fn complete(mut self) -> Result<(), Error> {
        self.pass_to($total, "end of entry")
    }
"#;
const GROUP: &str = r"    /// Group `$title`, id $id: an entry for each item, which `each` writes.
    #[inline]
    pub fn $method<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut $nameEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to($index, $what)?;
        let head = self.writer.claim::<$head>($what)?;
        head.fill(0);
        $block_length
        let mut count = 0_u64;
        for item in items {
            if count == $max {
                return Err(Error::TooMany { what: $what, max: $max });
            }
            let mut entry = $nameEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        $count
        Ok(self)
    }

";
const DATA: &str = r"    /// Data `$title`, id $id.
    #[inline]
    pub fn $method(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to($index, $what)?;
        let length = limited(bytes.len(), $max, $what)?;
        let head = self.writer.claim::<$head>($what)?;
        head.fill(0);
        $length
        self.writer.bytes(bytes, $what)?;
        Ok(self)
    }

";

/// The encoder of a message, with those of its entries.
pub(super) fn message(types: &mut Types, schema: &Schema, message: &Message, named: &Named<'_>) -> String {
    let header = header_bytes(schema, message).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let begin = fill(BEGIN, &[("what", &format!("{:?}", message.name)), ("header", &header)]);
    let title = format!("Message `{}`", plain(&message.name));
    encoder(types, named, &message.name, &title, Some(&begin))
}

fn header_bytes(schema: &Schema, message: &Message) -> Vec<u8> {
    let header: &Header = &schema.header;
    let mut bytes = vec![0; header.length];
    let mut write = |field: Option<LengthField>, value: u64| {
        if let Some(field) = field {
            let _ = field.primitive.write(&mut bytes[field.offset..], schema.byte_order, Scalar::Unsigned(value));
        }
    };
    write(Some(header.block_length), message.block.block_length as u64);
    write(Some(header.template_id), message.id.into());
    write(Some(header.schema_id), schema.id.into());
    write(Some(header.version), schema.version.into());
    write(header.group_count, message.block.groups.len() as u64);
    write(header.data_count, message.block.data.len() as u64);
    bytes
}

fn encoder(types: &mut Types, named: &Named<'_>, schema_name: &str, title: &str, begin: Option<&str>) -> String {
    let (block, name) = (named.block, &named.name);
    let mut unique = Unique::reserving(&OWN);
    unique.claim("clear", &[""]);
    let place = Place { fixed: "self.block", whole: "self.block" };
    let slots: Vec<Slot<'_>> = block.fields.iter().map(|field| Slot::of_field(field, &mut unique)).collect();
    let mut setters: String = slots.iter().map(|slot| setter(types, slot, &place)).collect();
    let methods = tail_methods(block, &mut unique);
    let mut passes = String::new();
    for (index, (layout, inner)) in block.groups.iter().zip(&named.groups).enumerate() {
        let group = GroupMethod { index, layout, name: &inner.name };
        passes += &pass(index, &skipped_group(types, layout));
        setters += &group.method(types, &methods[index]);
    }
    for (index, data) in block.data.iter().enumerate() {
        let index = block.groups.len() + index;
        passes += &pass(index, &format!("self.writer.claim::<{}>({:?})?.fill(0);", data.header_length, data.name));
        setters += &data_method(types, data, index, &methods[index]);
    }
    let nulls: String = block
        .fields
        .iter()
        .filter(|field| field.presence != Presence::Constant)
        .map(|field| null_lines(&field.kind, field.presence, "block", field.offset, order(types.order)))
        .collect();
    let (lifetimes, writer) = if begin.is_some() { ("'b", "Writer<'b>") } else { ("'e, 'b", "&'e mut Writer<'b>") };
    let finish = if begin.is_some() { FINISH } else { COMPLETE };
    let values = [
        ("title", title),
        ("name", name),
        ("lifetimes", lifetimes),
        ("length", &block.block_length.to_string()),
        ("writer", writer),
        ("begin", begin.unwrap_or(BEGIN_ENTRY)),
        ("what", &format!("{schema_name:?}")),
        ("nulls", &nulls),
        ("passes", &passes),
        ("setters", &setters),
        ("finish", &fill(finish, &[("total", &methods.len().to_string())])),
    ];
    let mut text = fill(ENCODER, &values);
    for (layout, inner) in block.groups.iter().zip(&named.groups) {
        text += &encoder(types, inner, &layout.name, &format!("An entry of group `{}`", plain(&layout.name)), None);
    }
    text
}

fn pass(index: usize, write: &str) -> String {
    format!("        if (self.next..ordinal).contains(&{index}) {{\n            {write}\n        }}\n")
}

fn skipped_group(types: &Types, group: &Group) -> String {
    let (head, what) = (group.dimension.length, format!("{:?}", group.name));
    let block_length = put_known(group.dimension.block_length, "head", types.order, group.block.block_length);
    format!("let head = self.writer.claim::<{head}>({what})?;\n            head.fill(0);\n            {block_length}")
}

/// A group in the encoder of what holds it.
struct GroupMethod<'s> {
    index: usize,
    layout: &'s Group,
    name: &'s str,
}

impl GroupMethod<'_> {
    fn method(&self, types: &Types, method: &str) -> String {
        let dimension = &self.layout.dimension;
        let block_length = self.layout.block.block_length;
        fill(
            GROUP,
            &[
                ("title", &plain(&self.layout.name)),
                ("id", &self.layout.id.to_string()),
                ("method", method),
                ("name", self.name),
                ("index", &self.index.to_string()),
                ("what", &format!("{:?}", self.layout.name)),
                ("head", &dimension.length.to_string()),
                ("block_length", &put_known(dimension.block_length, "head", types.order, block_length)),
                ("max", &grouped(dimension.num_in_group.max.into())),
                ("count", &put_length(dimension.num_in_group, "head", types.order, "count")),
            ],
        )
    }
}

fn data_method(types: &Types, data: &Data, index: usize, method: &str) -> String {
    fill(
        DATA,
        &[
            ("title", &plain(&data.name)),
            ("id", &data.id.to_string()),
            ("method", method),
            ("index", &index.to_string()),
            ("what", &format!("{:?}", data.name)),
            ("max", &grouped(data.length.max.into())),
            ("head", &data.header_length.to_string()),
            ("length", &put_length(data.length, "head", types.order, "length")),
        ],
    )
}
