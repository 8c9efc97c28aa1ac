//! Views of messages: nothing is copied, every place is checked before it is read.
//!
//! The message's own block lengths and version decide what is there: fields, groups and data that are newer than its version
//! are absent, bytes behind the known fields of a block are skipped. A count is compared with the bytes that are left before
//! anything is done for each of its entries.

use thiserror::Error as ThisError;

use super::block::constant_of;
use super::layout::{
    Block, ByteOrder, Composite, Constant, Data, Field, Group, LengthField, Member, Message, Presence, Schema, Type,
};
use super::primitive::{Primitive, Scalar};

/// Entries of a group that has no bytes for any of them: a count of four bytes could else ask for billions.
pub const ZERO_LENGTH_ENTRIES_MAX: u64 = 255;

/// Why bytes are no message of the schema.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the texts say it")]
pub enum DecodeError {
    #[error("{what}: expected {needed} bytes from byte {at} on, the buffer ends at {end}")]
    Truncated { what: String, at: usize, needed: u64, end: usize },
    #[error("field {field} ends at byte {needed} of its block, but the message's block has {length} bytes")]
    ShortBlock { field: String, needed: usize, length: usize },
    #[error("expected schema id {expected}, the message has {actual}: choose the schema by this id")]
    WrongSchema { expected: u32, actual: u64 },
    #[error("schema {schema} has no message of template id {id}")]
    UnknownTemplate { schema: u32, id: u64 },
    #[error("expected a message {expected}, the template id is that of {actual}")]
    WrongTemplate { expected: String, actual: String },
    #[error("group {group}: {count} entries without bytes, expected at most {max}", max = ZERO_LENGTH_ENTRIES_MAX)]
    EmptyEntries { group: String, count: u64 },
    #[error("group {group} has {count} entries, there is no entry {index}")]
    NoEntry { group: String, count: usize, index: usize },
    #[error("{path} at byte {at} of the message: expected a value of enum {type_name}, got {value}")]
    UnknownValue { path: String, at: usize, type_name: String, value: String },
    #[error("{path} at byte {at} of the message: expected {expected}, got {value}")]
    OutOfRange { path: String, at: usize, expected: String, value: String },
    #[error("there is no field, group or data {name} here")]
    NoMember { name: String },
}

/// A value of a field, in the buffer where it is not a number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Null, or newer than the message.
    Null,
    /// `int8` … `int64`.
    Signed(i64),
    /// `uint8` … `uint64`, and a single `char`.
    Unsigned(u64),
    /// `float`.
    Single(f32),
    /// `double`.
    Double(f64),
    /// An array of `char` or `uint8`, padding included.
    Bytes(&'a [u8]),
    /// A constant text.
    Text(&'a str),
    /// An array of other numbers: [`Value::items`].
    Array(Primitive, ByteOrder, &'a [u8]),
    /// A value of an enum, and its name where it has one.
    Enum(Scalar, Option<&'a str>),
    /// Bits of a set.
    Set(u64),
    /// A composite's own values: [`Value::member`].
    Composite(&'a Composite, ByteOrder, u32, &'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn of(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Signed(value) => Self::Signed(value),
            Scalar::Unsigned(value) => Self::Unsigned(value),
            Scalar::Single(value) => Self::Single(value),
            Scalar::Double(value) => Self::Double(value),
        }
    }

    /// The value as a number, where it is one.
    pub fn scalar(self) -> Option<Scalar> {
        match self {
            Self::Signed(value) => Some(Scalar::Signed(value)),
            Self::Unsigned(value) | Self::Set(value) => Some(Scalar::Unsigned(value)),
            Self::Single(value) => Some(Scalar::Single(value)),
            Self::Double(value) => Some(Scalar::Double(value)),
            Self::Enum(value, _) => Some(value),
            _ => None,
        }
    }

    /// Items of an array of numbers; empty for anything else.
    pub fn items(self) -> impl Iterator<Item = Scalar> + use<'a> {
        let (primitive, order, bytes) = match self {
            Self::Array(primitive, order, bytes) => (primitive, order, bytes),
            _ => (Primitive::Uint8, ByteOrder::Little, &[][..]),
        };
        bytes.chunks_exact(primitive.size()).map(move |item| primitive.read(item, order))
    }

    /// A member of a composite.
    ///
    /// # Errors
    /// It is no composite, has no such member, or its block ended before it.
    pub fn member(self, name: &str) -> Result<Value<'a>, DecodeError> {
        let missing = || DecodeError::NoMember { name: name.to_owned() };
        let Self::Composite(composite, order, version, bytes) = self else { return Err(missing()) };
        let member = composite.named(name).ok_or_else(missing)?;
        match member_bytes(member, bytes, version)? {
            Some(bytes) => Ok(value_of(&member.kind, Presence::Required, None, bytes, order, version)),
            None => Ok(Value::Null),
        }
    }
}

/// Bytes of a composite's member; None where it is newer than the message.
///
/// # Errors
/// The composite's bytes end before it.
pub fn member_bytes<'a>(member: &Member, bytes: &'a [u8], version: u32) -> Result<Option<&'a [u8]>, DecodeError> {
    if member.note.since_version > version {
        return Ok(None);
    }
    let needed = member.offset + member.kind.length();
    if needed == member.offset {
        // A constant has no bytes: it is there however short an older message is.
        return Ok(Some(&[]));
    }
    match bytes.get(member.offset..needed) {
        Some(found) => Ok(Some(found)),
        // What is newer inside of a nested composite may be missing with it.
        None if matches!(&*member.kind, Type::Composite(_)) && member.offset <= bytes.len() => {
            Ok(Some(&bytes[member.offset..]))
        }
        None => Err(DecodeError::ShortBlock { field: member.name.clone(), needed, length: bytes.len() }),
    }
}

fn value_of<'a>(
    kind: &'a Type,
    presence: Presence,
    constant: Option<&'a Constant>,
    bytes: &'a [u8],
    order: ByteOrder,
    version: u32,
) -> Value<'a> {
    match (constant, kind) {
        (Some(Constant::Scalar(value)), Type::Enumeration(one)) => Value::Enum(*value, name_of(one, *value)),
        (Some(Constant::Scalar(value)), _) => Value::of(*value),
        (Some(Constant::Text(text)), _) => Value::Text(text),
        (None, Type::Encoded(one)) => match (&one.constant, one.count) {
            (Some(constant), _) => value_of(kind, presence, Some(constant), bytes, order, version),
            (None, 1) => {
                let value = one.primitive.read(bytes, order);
                let optional = presence == Presence::Optional || one.presence == Presence::Optional;
                if optional && value.same(one.null) { Value::Null } else { Value::of(value) }
            }
            (None, _) if one.primitive.size() == 1 && one.primitive != Primitive::Int8 => Value::Bytes(bytes),
            (None, _) => Value::Array(one.primitive, order, bytes),
        },
        (None, Type::Enumeration(one)) => {
            let value = one.encoding.read(bytes, order);
            if value.same(one.null) { Value::Null } else { Value::Enum(value, name_of(one, value)) }
        }
        (None, Type::Options(one)) => {
            Value::Set(one.encoding.read(bytes, order).integer().map_or(0, |bits| bits as u64))
        }
        (None, Type::Composite(one)) => Value::Composite(one, order, version, bytes),
    }
}

fn name_of(one: &super::layout::Enumeration, value: Scalar) -> Option<&str> {
    one.values.iter().find(|valid| valid.value.same(value)).map(|valid| valid.name.as_str())
}

impl LengthField {
    /// Read the number at its place in `composite`.
    ///
    /// # Panics
    /// When `composite` is shorter than its layout says.
    #[inline]
    pub fn read(self, composite: &[u8], order: ByteOrder) -> u64 {
        match self.primitive.read(&composite[self.offset..], order) {
            Scalar::Unsigned(value) => value,
            // A count that is negative is one that no buffer can hold.
            Scalar::Signed(value) => u64::try_from(value).unwrap_or(u64::MAX),
            _ => u64::MAX,
        }
    }
}

/// What every part of one message shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    bytes: &'a [u8],
    version: u32,
    order: ByteOrder,
}

impl<'a> Context<'a> {
    fn slice(&self, what: &str, at: usize, length: u64) -> Result<&'a [u8], DecodeError> {
        let end = usize::try_from(length).ok().and_then(|length| at.checked_add(length));
        end.and_then(|end| self.bytes.get(at..end)).ok_or_else(|| DecodeError::Truncated {
            what: what.to_owned(),
            at,
            needed: length,
            end: self.bytes.len(),
        })
    }
}

/// A message in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'a> {
    /// Its layout.
    pub message: &'a Message,
    /// Version of the schema that wrote it.
    pub version: u32,
    root: BlockView<'a>,
}

impl<'a> MessageView<'a> {
    /// Look at the message that starts with `bytes`; more bytes may follow it.
    ///
    /// # Errors
    /// Another schema, an unknown template, or fewer bytes than header and root block need.
    pub fn wrap(schema: &'a Schema, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let header = &schema.header;
        let context = Context { bytes, version: 0, order: schema.byte_order };
        let head = context.slice("message header", 0, header.length as u64)?;
        let schema_id = header.schema_id.read(head, schema.byte_order);
        if schema_id != u64::from(schema.id) {
            return Err(DecodeError::WrongSchema { expected: schema.id, actual: schema_id });
        }
        let id = header.template_id.read(head, schema.byte_order);
        let message = u32::try_from(id)
            .ok()
            .and_then(|id| schema.by_template(id))
            .ok_or(DecodeError::UnknownTemplate { schema: schema.id, id })?;
        let version = u32::try_from(header.version.read(head, schema.byte_order)).unwrap_or(u32::MAX);
        let length = header.block_length.read(head, schema.byte_order);
        let root = context.slice(&message.name, header.length, length)?;
        Ok(Self {
            message,
            version,
            root: BlockView {
                context: Context { version, ..context },
                block: &message.block,
                start: header.length,
                length: root.len(),
            },
        })
    }

    /// Its root block.
    pub fn root(&self) -> BlockView<'a> {
        self.root
    }

    /// Bytes of the message, header included, as far as the schema knows it.
    ///
    /// # Errors
    /// The buffer ends before the message.
    pub fn encoded_length(&self) -> Result<usize, DecodeError> {
        self.root.end()
    }
}

/// A message's root or one entry of a group.
#[derive(Clone, Copy, Debug)]
pub struct BlockView<'a> {
    context: Context<'a>,
    block: &'a Block,
    start: usize,
    length: usize,
}

impl<'a> BlockView<'a> {
    /// A block whose place was checked before; `length` as the message says it.
    ///
    /// # Errors
    /// It lies outside of `bytes`.
    pub fn at(
        block: &'a Block,
        bytes: &'a [u8],
        start: usize,
        length: usize,
        version: u32,
        order: ByteOrder,
    ) -> Result<Self, DecodeError> {
        let context = Context { bytes, version, order };
        context.slice("block", start, length as u64)?;
        Ok(Self { context, block, start, length })
    }

    /// Its layout.
    pub fn layout(&self) -> &'a Block {
        self.block
    }

    /// First byte in the buffer, and length in bytes.
    pub fn span(&self) -> (usize, usize) {
        (self.start, self.length)
    }

    /// Byte order of its numbers.
    pub fn byte_order(&self) -> ByteOrder {
        self.context.order
    }

    /// Bytes of a field; None where it is constant or newer than the message.
    ///
    /// # Errors
    /// The message's block ends before it.
    #[inline]
    pub fn field_bytes(&self, field: &Field) -> Result<Option<&'a [u8]>, DecodeError> {
        if field.note.since_version > self.context.version {
            return Ok(None);
        }
        let needed = field.offset + field.kind.length();
        if field.presence == Presence::Constant || needed == field.offset {
            return Ok(Some(&[]));
        }
        if needed <= self.length {
            return Ok(Some(&self.context.bytes[self.start + field.offset..self.start + needed]));
        }
        // A composite that grew in a later version is shorter in older messages.
        if matches!(&*field.kind, Type::Composite(_)) && field.offset < self.length {
            return Ok(Some(&self.context.bytes[self.start + field.offset..self.start + self.length]));
        }
        Err(DecodeError::ShortBlock { field: field.name.clone(), needed, length: self.length })
    }

    /// The value of a field.
    ///
    /// # Errors
    /// There is no such field, or the message's block ends before it.
    pub fn value(&self, name: &str) -> Result<Value<'a>, DecodeError> {
        let field = self.block.fields.iter().find(|field| field.name == name);
        let field = field.ok_or_else(|| DecodeError::NoMember { name: name.to_owned() })?;
        self.value_of(field)
    }

    /// The value of a field of this block's layout.
    ///
    /// # Errors
    /// The message's block ends before it.
    pub fn value_of(&self, field: &'a Field) -> Result<Value<'a>, DecodeError> {
        let (order, version) = (self.context.order, self.context.version);
        Ok(match self.field_bytes(field)? {
            Some(bytes) => value_of(&field.kind, field.presence, constant_of(field), bytes, order, version),
            None => Value::Null,
        })
    }

    /// A walk over its groups and data, in their order.
    pub fn tail(&self) -> Tail<'a> {
        Tail { context: self.context, at: self.start + self.length }
    }

    /// The group of this position in the layout; groups before it are walked over.
    ///
    /// # Errors
    /// The buffer ends before it.
    pub fn group_at(&self, index: usize) -> Result<GroupView<'a>, DecodeError> {
        let mut at = self.start + self.length;
        for layout in &self.block.groups[..index] {
            at = GroupView::read(self.context, layout, at)?.end()?;
        }
        GroupView::read(self.context, &self.block.groups[index], at)
    }

    /// The group of this name.
    ///
    /// # Errors
    /// There is none, or the buffer ends before it.
    pub fn group(&self, name: &str) -> Result<GroupView<'a>, DecodeError> {
        let index = self.block.groups.iter().position(|group| group.name == name);
        self.group_at(index.ok_or_else(|| DecodeError::NoMember { name: name.to_owned() })?)
    }

    /// The data of this position in the layout; empty where it is newer than the message. And its first byte.
    ///
    /// # Errors
    /// The buffer ends before it.
    pub fn data_at(&self, index: usize) -> Result<(&'a [u8], usize), DecodeError> {
        let mut at = self.start + self.length;
        for layout in &self.block.groups {
            at = GroupView::read(self.context, layout, at)?.end()?;
        }
        for layout in &self.block.data[..index] {
            at = read_data(self.context, layout, at)?.1;
        }
        let (bytes, end) = read_data(self.context, &self.block.data[index], at)?;
        Ok((bytes, end - bytes.len()))
    }

    /// The data of this name.
    ///
    /// # Errors
    /// There is none, or the buffer ends before it.
    pub fn data(&self, name: &str) -> Result<&'a [u8], DecodeError> {
        let index = self.block.data.iter().position(|data| data.name == name);
        Ok(self.data_at(index.ok_or_else(|| DecodeError::NoMember { name: name.to_owned() })?)?.0)
    }

    /// The byte behind the last group and data.
    ///
    /// # Errors
    /// The buffer ends before it.
    pub fn end(&self) -> Result<usize, DecodeError> {
        let mut at = self.start + self.length;
        for layout in &self.block.groups {
            at = GroupView::read(self.context, layout, at)?.end()?;
        }
        for layout in &self.block.data {
            at = read_data(self.context, layout, at)?.1;
        }
        Ok(at)
    }
}

/// A walk over the groups and data of one block, each of which is passed once.
#[derive(Clone, Copy, Debug)]
pub struct Tail<'a> {
    context: Context<'a>,
    at: usize,
}

impl<'a> Tail<'a> {
    /// The next group; tell where its last entry ended by [`Tail::go_on`].
    ///
    /// # Errors
    /// The buffer ends before its entries.
    pub fn group(&self, layout: &'a Group) -> Result<GroupView<'a>, DecodeError> {
        GroupView::read(self.context, layout, self.at)
    }

    /// Go on behind a group.
    pub fn go_on(&mut self, at: usize) {
        self.at = at;
    }

    /// The next data.
    ///
    /// # Errors
    /// The buffer ends before it.
    pub fn data(&mut self, layout: &Data) -> Result<&'a [u8], DecodeError> {
        let (bytes, end) = read_data(self.context, layout, self.at)?;
        self.at = end;
        Ok(bytes)
    }

    /// The byte behind what was walked over.
    pub fn position(&self) -> usize {
        self.at
    }
}

fn read_data<'a>(context: Context<'a>, layout: &Data, at: usize) -> Result<(&'a [u8], usize), DecodeError> {
    if layout.note.since_version > context.version {
        return Ok((&[], at));
    }
    let head = context.slice(&layout.name, at, layout.header_length as u64)?;
    let length = layout.length.read(head, context.order);
    let bytes = context.slice(&layout.name, at + layout.header_length, length)?;
    Ok((bytes, at + layout.header_length + bytes.len()))
}

/// Entries of a repeating group.
#[derive(Clone, Copy, Debug)]
pub struct GroupView<'a> {
    context: Context<'a>,
    group: &'a Group,
    start: usize,
    count: usize,
    entry_length: usize,
}

impl<'a> GroupView<'a> {
    fn read(context: Context<'a>, group: &'a Group, at: usize) -> Result<Self, DecodeError> {
        if group.note.since_version > context.version {
            return Ok(Self { context, group, start: at, count: 0, entry_length: 0 });
        }
        let dimension = &group.dimension;
        let head = context.slice(&group.name, at, dimension.length as u64)?;
        let entry_length = dimension.block_length.read(head, context.order);
        let count = dimension.num_in_group.read(head, context.order);
        let start = at + dimension.length;
        let least = entry_length.saturating_add(tail_length_min(&group.block, context.version));
        if least == 0 && count > ZERO_LENGTH_ENTRIES_MAX {
            return Err(DecodeError::EmptyEntries { group: group.name.clone(), count });
        }
        // Now the count is no greater than the bytes that are there.
        context.slice(&group.name, start, least.saturating_mul(count))?;
        Ok(Self { context, group, start, count: count as usize, entry_length: entry_length as usize })
    }

    /// Its layout.
    pub fn layout(&self) -> &'a Group {
        self.group
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// First byte of the first entry in the buffer, and bytes of an entry's block.
    pub fn span(&self) -> (usize, usize) {
        (self.start, self.entry_length)
    }

    /// Whether entries lie at equal distances: none has groups or data in this message's version.
    pub fn is_contiguous(&self) -> bool {
        tail_length_min(&self.group.block, self.context.version) == 0
    }

    /// Entries in their order.
    pub fn entries(&self) -> Entries<'a> {
        Entries { group: *self, at: self.start, left: self.count }
    }

    /// One entry; those before it are walked over, unless they lie at equal distances.
    ///
    /// # Errors
    /// There is no such entry, or the buffer ends before it.
    pub fn entry(&self, index: usize) -> Result<BlockView<'a>, DecodeError> {
        if index >= self.count {
            return Err(DecodeError::NoEntry { group: self.group.name.clone(), count: self.count, index });
        }
        if self.is_contiguous() {
            return Ok(self.block(self.start + index * self.entry_length));
        }
        match self.entries().nth(index) {
            Some(entry) => entry,
            None => Err(DecodeError::NoEntry { group: self.group.name.clone(), count: self.count, index }),
        }
    }

    /// The entry whose block starts at this byte: for a walk that knows where the entry before ended.
    ///
    /// # Errors
    /// The buffer ends before its block does.
    pub fn entry_from(&self, at: usize) -> Result<BlockView<'a>, DecodeError> {
        self.checked(at)
    }

    /// The byte behind the last entry.
    ///
    /// # Errors
    /// The buffer ends before it.
    pub fn end(&self) -> Result<usize, DecodeError> {
        if self.is_contiguous() {
            return Ok(self.start + self.count * self.entry_length);
        }
        let mut at = self.start;
        for _ in 0..self.count {
            at = self.checked(at)?.end()?;
        }
        Ok(at)
    }

    fn block(&self, start: usize) -> BlockView<'a> {
        BlockView { context: self.context, block: &self.group.block, start, length: self.entry_length }
    }

    fn checked(&self, at: usize) -> Result<BlockView<'a>, DecodeError> {
        self.context.slice(&self.group.name, at, self.entry_length as u64)?;
        Ok(self.block(at))
    }
}

/// Fewest bytes of groups and data behind a block.
fn tail_length_min(block: &Block, version: u32) -> u64 {
    let groups = block.groups.iter().filter(|group| group.note.since_version <= version);
    let data = block.data.iter().filter(|data| data.note.since_version <= version);
    groups.map(|group| group.dimension.length as u64).sum::<u64>()
        + data.map(|data| data.header_length as u64).sum::<u64>()
}

/// Entries of a group, one walk.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    group: GroupView<'a>,
    at: usize,
    left: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<BlockView<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let entry = self.group.checked(self.at).and_then(|entry| {
            self.at = entry.end()?;
            Ok(entry)
        });
        if entry.is_err() {
            self.left = 0;
        }
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}
