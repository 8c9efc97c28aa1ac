//! Writing a message into a caller's buffer: never past its end, and in the only order that there is.
//!
//! Root first, then groups with their entries, then data. What is left out is written empty when something behind it is
//! written; what was passed cannot be written any more.

use thiserror::Error as ThisError;

use super::layout::{
    Block, ByteOrder, Composite, Data, Encoded, Field, Group, LengthField, Member, Message, Presence, Schema, Type,
};
use super::primitive::Scalar;
use super::view::{Value, ZERO_LENGTH_ENTRIES_MAX};

/// Why a value or a message cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the texts say it")]
pub enum EncodeError {
    #[error("{what} needs {needed} bytes from byte {at} on, the buffer ends at {end}: give a longer buffer")]
    Overflow { what: String, at: usize, needed: usize, end: usize },
    #[error("{name}: expected {expected}, got {actual}")]
    Value { name: String, expected: String, actual: String },
    #[error("{name} cannot be written now: {reason}")]
    Order { name: String, reason: &'static str },
    #[error("there is no {name} here")]
    NoMember { name: String },
}

/// Bytes that a growing message begins with.
const FIRST_LENGTH: usize = 512;

enum Frame<'s> {
    Block { block: &'s Block, start: usize, next: usize },
    Group { group: &'s Group, left: u64 },
}

/// Where a message is written.
enum Room<'b> {
    Given(&'b mut [u8]),
    Growing { bytes: Vec<u8>, length_max: usize },
}

impl Room<'_> {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Given(bytes) => bytes,
            Self::Growing { bytes, .. } => bytes,
        }
    }

    /// Have at least so many bytes, where that is possible; return how many there are.
    fn reach(&mut self, length: usize) -> usize {
        if let Self::Growing { bytes, length_max } = self {
            let grown = length.max(bytes.len().saturating_mul(2)).min(*length_max);
            let missing = grown.saturating_sub(bytes.len());
            if length > bytes.len() && length <= grown && bytes.try_reserve_exact(missing).is_ok() {
                bytes.resize(grown, 0);
            }
        }
        self.bytes().len()
    }
}

/// Writes one message.
pub struct Encoder<'s, 'b> {
    buffer: Room<'b>,
    order: ByteOrder,
    at: usize,
    stack: Vec<Frame<'s>>,
}

impl<'s, 'b> Encoder<'s, 'b> {
    /// Write the header and an empty root: optional fields null, all others zero.
    ///
    /// # Errors
    /// The buffer is too short.
    pub fn begin(schema: &'s Schema, message: &'s Message, buffer: &'b mut [u8]) -> Result<Self, EncodeError> {
        Self::begin_in(schema, message, Room::Given(buffer))
    }

    /// As [`Encoder::begin`], into memory that grows with the message: end it by [`Encoder::finish_grown`].
    ///
    /// # Errors
    /// The root is longer than `length_max`.
    pub fn begin_growing(schema: &'s Schema, message: &'s Message, length_max: usize) -> Result<Self, EncodeError> {
        Self::begin_in(schema, message, Room::Growing { bytes: vec![0; FIRST_LENGTH.min(length_max)], length_max })
    }

    fn begin_in(schema: &'s Schema, message: &'s Message, buffer: Room<'b>) -> Result<Self, EncodeError> {
        let mut encoder = Self { buffer, order: schema.byte_order, at: 0, stack: Vec::new() };
        let (header, order) = (&schema.header, schema.byte_order);
        let head = encoder.claim(&message.name, header.length)?;
        let numbers = [
            (Some(header.block_length), message.block.block_length as u64),
            (Some(header.template_id), u64::from(message.id)),
            (Some(header.schema_id), u64::from(schema.id)),
            (Some(header.version), u64::from(schema.version)),
            (header.group_count, message.block.groups.len() as u64),
            (header.data_count, message.block.data.len() as u64),
        ];
        for (field, value) in numbers.into_iter().filter_map(|(field, value)| Some((field?, value))) {
            write_length(field, head, order, value, "message header")?;
        }
        encoder.open_block(&message.block, &message.name)?;
        Ok(encoder)
    }

    /// Bytes written so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Write a field of the present block by name.
    ///
    /// # Errors
    /// No such field here, or the value does not fit it.
    pub fn put(&mut self, name: &str, value: Value<'_>) -> Result<(), EncodeError> {
        let field = self.block()?.fields.iter().find(|field| field.name == name);
        let field = field.ok_or_else(|| EncodeError::NoMember { name: format!("field {name}") })?;
        let order = self.order;
        write_value(name, &field.kind, field.presence, self.slot(field)?, order, value)
    }

    /// The bytes of a field of the present block, to be filled by [`write_value`]; none of a constant.
    ///
    /// # Errors
    /// No block is open.
    pub fn slot(&mut self, field: &Field) -> Result<&mut [u8], EncodeError> {
        let Some(Frame::Block { start, .. }) = self.stack.last() else {
            return Err(order_error(&field.name, "begin an entry of the group first"));
        };
        if field.presence == Presence::Constant {
            return Ok(&mut []);
        }
        let first = start + field.offset;
        Ok(&mut self.buffer.bytes()[first..first + field.kind.length()])
    }

    /// Begin a group of `count` entries.
    ///
    /// # Errors
    /// It was passed already, the count is too great, or the buffer too short.
    pub fn begin_group(&mut self, name: &str, count: u64) -> Result<(), EncodeError> {
        let index = self.block()?.groups.iter().position(|group| group.name == name);
        let index = index.ok_or_else(|| EncodeError::NoMember { name: format!("group {name}") })?;
        self.begin_group_at(index, count)
    }

    /// As [`Encoder::begin_group`], by position in the layout.
    ///
    /// # Errors
    /// As there.
    pub fn begin_group_at(&mut self, index: usize, count: u64) -> Result<(), EncodeError> {
        let block = self.block()?;
        let group = &block.groups[index];
        if count > ZERO_LENGTH_ENTRIES_MAX && group.block.block_length == 0 && group.block.is_fixed() {
            let expected = format!("at most {ZERO_LENGTH_ENTRIES_MAX} entries, which have no bytes");
            return Err(EncodeError::Value { name: group.name.clone(), expected, actual: count.to_string() });
        }
        self.pass_to(index, &group.name)?;
        self.write_dimension(group, count)?;
        self.stack.push(Frame::Group { group, left: count });
        Ok(())
    }

    /// Begin the next entry of the group that is open; the one before is finished.
    ///
    /// # Errors
    /// No group is open, it has all its entries, or the buffer is too short.
    pub fn next_entry(&mut self) -> Result<(), EncodeError> {
        self.close_entry()?;
        let group = match self.stack.last_mut() {
            Some(Frame::Group { group, left }) if *left > 0 => {
                *left -= 1;
                *group
            }
            Some(Frame::Group { group, .. }) => return Err(order_error(&group.name, "it has all its entries")),
            _ => return Err(order_error("entry", "no group is open")),
        };
        self.open_block(&group.block, &group.name)
    }

    /// End the group that is open.
    ///
    /// # Errors
    /// No group is open, or entries are missing.
    pub fn end_group(&mut self) -> Result<(), EncodeError> {
        self.close_entry()?;
        match self.stack.last() {
            Some(Frame::Group { left: 0, .. }) => {
                self.stack.pop();
                Ok(())
            }
            Some(Frame::Group { group, .. }) => Err(order_error(&group.name, "entries are missing")),
            _ => Err(order_error("end of group", "no group is open")),
        }
    }

    /// Write data of the present block by name.
    ///
    /// # Errors
    /// It was passed already, is too long, or the buffer too short.
    pub fn put_data(&mut self, name: &str, bytes: &[u8]) -> Result<(), EncodeError> {
        let index = self.block()?.data.iter().position(|data| data.name == name);
        let index = index.ok_or_else(|| EncodeError::NoMember { name: format!("data {name}") })?;
        self.put_data_at(index, bytes)
    }

    /// As [`Encoder::put_data`], by position in the layout.
    ///
    /// # Errors
    /// As there.
    pub fn put_data_at(&mut self, index: usize, bytes: &[u8]) -> Result<(), EncodeError> {
        let block = self.block()?;
        let data = &block.data[index];
        self.pass_to(block.groups.len() + index, &data.name)?;
        self.write_data(data, bytes)
    }

    /// Write what is left empty, and return the message's length in bytes.
    ///
    /// # Errors
    /// A group is open, or the buffer is too short.
    pub fn finish(mut self) -> Result<usize, EncodeError> {
        self.end()?;
        Ok(self.at)
    }

    /// As [`Encoder::finish`], of a message in memory that grew: return it; nothing where the buffer was the caller's.
    ///
    /// # Errors
    /// As there.
    pub fn finish_grown(mut self) -> Result<Vec<u8>, EncodeError> {
        self.end()?;
        match self.buffer {
            Room::Growing { mut bytes, .. } => {
                bytes.truncate(self.at);
                Ok(bytes)
            }
            Room::Given(_) => Ok(Vec::new()),
        }
    }

    fn end(&mut self) -> Result<(), EncodeError> {
        if self.stack.len() != 1 {
            return Err(order_error("end of message", "a group is open"));
        }
        self.complete()
    }

    fn block(&self) -> Result<&'s Block, EncodeError> {
        match self.stack.last() {
            Some(Frame::Block { block, .. }) => Ok(block),
            _ => Err(order_error("entry", "begin an entry of the group first")),
        }
    }

    /// Claim bytes, all zero.
    fn claim(&mut self, what: &str, length: usize) -> Result<&mut [u8], EncodeError> {
        let next = self.at.saturating_add(length);
        let end = self.buffer.reach(next);
        if next > end {
            return Err(EncodeError::Overflow { what: what.to_owned(), at: self.at, needed: length, end });
        }
        let claimed = &mut self.buffer.bytes()[self.at..next];
        claimed.fill(0);
        self.at = next;
        Ok(claimed)
    }

    fn open_block(&mut self, block: &'s Block, what: &str) -> Result<(), EncodeError> {
        let (start, order) = (self.at, self.order);
        let bytes = self.claim(what, block.block_length)?;
        for field in &block.fields {
            if field.presence != Presence::Constant {
                write_null(&field.kind, field.presence, &mut bytes[field.offset..], order);
            }
        }
        self.stack.push(Frame::Block { block, start, next: 0 });
        Ok(())
    }

    fn close_entry(&mut self) -> Result<(), EncodeError> {
        if self.stack.len() > 1 && matches!(self.stack.last(), Some(Frame::Block { .. })) {
            self.complete()?;
            self.stack.pop();
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), EncodeError> {
        let block = self.block()?;
        self.pass_to(block.groups.len() + block.data.len(), "")
    }

    /// Write what lies before `ordinal` empty, and note that it is next.
    fn pass_to(&mut self, ordinal: usize, name: &str) -> Result<(), EncodeError> {
        let Some(Frame::Block { block, next, .. }) = self.stack.last_mut() else {
            return Err(order_error(name, "begin an entry of the group first"));
        };
        let (block, first) = (*block, *next);
        let total = block.groups.len() + block.data.len();
        if first > ordinal {
            return Err(order_error(name, "it was written or passed already"));
        }
        *next = if ordinal == total { total } else { ordinal + 1 };
        for skipped in first..ordinal {
            match block.groups.get(skipped) {
                Some(group) => self.write_dimension(group, 0)?,
                None => self.write_data(&block.data[skipped - block.groups.len()], &[])?,
            }
        }
        Ok(())
    }

    fn write_dimension(&mut self, group: &Group, count: u64) -> Result<(), EncodeError> {
        let (dimension, order) = (&group.dimension, self.order);
        let head = self.claim(&group.name, dimension.length)?;
        write_length(dimension.block_length, head, order, group.block.block_length as u64, &group.name)?;
        write_length(dimension.num_in_group, head, order, count, &group.name)
    }

    fn write_data(&mut self, data: &Data, bytes: &[u8]) -> Result<(), EncodeError> {
        let order = self.order;
        let head = self.claim(&data.name, data.header_length)?;
        write_length(data.length, head, order, bytes.len() as u64, &data.name)?;
        self.claim(&data.name, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }
}

fn order_error(name: &str, reason: &'static str) -> EncodeError {
    EncodeError::Order { name: name.to_owned(), reason }
}

fn write_length(
    field: LengthField,
    bytes: &mut [u8],
    order: ByteOrder,
    value: u64,
    name: &str,
) -> Result<(), EncodeError> {
    if value > field.max || !field.primitive.write(&mut bytes[field.offset..], order, Scalar::Unsigned(value)) {
        let expected = format!("a count or length of at most {}", field.max);
        return Err(EncodeError::Value { name: name.to_owned(), expected, actual: value.to_string() });
    }
    Ok(())
}

/// Write null where the type may be null; `bytes` begins with the field and is zero.
fn write_null(kind: &Type, presence: Presence, bytes: &mut [u8], order: ByteOrder) {
    match kind {
        Type::Encoded(one)
            if one.presence != Presence::Constant
                && (presence == Presence::Optional || one.presence == Presence::Optional) =>
        {
            for item in bytes[..kind.length()].chunks_exact_mut(one.primitive.size()) {
                let _ = one.primitive.write(item, order, one.null);
            }
        }
        Type::Enumeration(one) if presence == Presence::Optional || one.presence == Presence::Optional => {
            let _ = one.encoding.write(bytes, order, one.null);
        }
        Type::Composite(one) => {
            for member in &one.members {
                write_null(&member.kind, Presence::Required, &mut bytes[member.offset..], order);
            }
        }
        _ => {}
    }
}

/// Write a value into the bytes of its field or member; composites are written member by member.
///
/// # Errors
/// The value is of another kind, outside of the range that the schema says, or too long.
pub fn write_value(
    name: &str,
    kind: &Type,
    presence: Presence,
    bytes: &mut [u8],
    order: ByteOrder,
    value: Value<'_>,
) -> Result<(), EncodeError> {
    let wrong = |expected: String| EncodeError::Value { name: name.to_owned(), expected, actual: shown(value) };
    match (kind, value) {
        _ if presence == Presence::Constant => Ok(()),
        (Type::Encoded(one), _) if one.presence == Presence::Constant => Ok(()),
        (Type::Encoded(one), Value::Null) => {
            if presence != Presence::Optional && one.presence != Presence::Optional {
                return Err(wrong(format!("a value of {}, which is required", one.primitive.name())));
            }
            write_null(kind, Presence::Optional, bytes, order);
            Ok(())
        }
        (Type::Encoded(one), _) if one.count == 1 => {
            let scalar = value.scalar().filter(|scalar| in_range(one, *scalar));
            match scalar {
                Some(scalar) if one.primitive.write(bytes, order, scalar) => Ok(()),
                _ => Err(wrong(expected(one))),
            }
        }
        (Type::Encoded(one), Value::Bytes(given)) if one.primitive.size() == 1 => {
            if given.len() > bytes.len() {
                return Err(wrong(format!("at most {} bytes", bytes.len())));
            }
            bytes[..given.len()].copy_from_slice(given);
            bytes[given.len()..].fill(0);
            Ok(())
        }
        (Type::Encoded(one), Value::Array(primitive, given_order, given)) => {
            let items = given.chunks_exact(primitive.size()).map(|item| primitive.read(item, given_order));
            if items.len() != one.count {
                return Err(wrong(format!("{} items", one.count)));
            }
            for (slot, item) in bytes.chunks_exact_mut(one.primitive.size()).zip(items) {
                if !in_range(one, item) || !one.primitive.write(slot, order, item) {
                    return Err(wrong(expected(one)));
                }
            }
            Ok(())
        }
        (Type::Enumeration(one), Value::Null) => {
            let _ = one.encoding.write(bytes, order, one.null);
            Ok(())
        }
        (Type::Enumeration(one), _) => match value.scalar() {
            Some(scalar) if one.encoding.write(bytes, order, scalar) => Ok(()),
            _ => Err(wrong(format!("a value of enum {}", one.name))),
        },
        (Type::Options(one), Value::Set(bits) | Value::Unsigned(bits)) => {
            if one.encoding.write(bytes, order, Scalar::Unsigned(bits)) {
                Ok(())
            } else {
                Err(wrong(format!("bits of {}", one.encoding.name())))
            }
        }
        (Type::Composite(one), Value::Composite(from, from_order, version, given)) => {
            copy_composite(one, bytes, order, Value::Composite(from, from_order, version, given))
        }
        (Type::Encoded(one), _) => Err(wrong(expected(one))),
        _ => Err(wrong(format!("a value of {}", kind.name()))),
    }
}

fn copy_composite(to: &Composite, bytes: &mut [u8], order: ByteOrder, from: Value<'_>) -> Result<(), EncodeError> {
    for member in &to.members {
        let missing = |error: super::view::DecodeError| EncodeError::Value {
            name: member.name.clone(),
            expected: "a member".into(),
            actual: error.to_string(),
        };
        let slot = member_slot(member, bytes);
        write_value(
            &member.name,
            &member.kind,
            Presence::Required,
            slot,
            order,
            from.member(&member.name).map_err(missing)?,
        )?;
    }
    Ok(())
}

/// The bytes of a composite's member.
pub fn member_slot<'b>(member: &Member, composite: &'b mut [u8]) -> &'b mut [u8] {
    &mut composite[member.offset..member.offset + member.kind.length()]
}

/// Ranges that a schema says are held; those that every primitive has follow from its bytes.
pub(super) fn in_range(one: &Encoded, value: Scalar) -> bool {
    if one.presence == Presence::Optional && value.same(one.null) {
        return true;
    }
    let said = |bound: Scalar, default: Scalar| if bound.same(default) { None } else { Some(bound) };
    let (least, greatest) = (said(one.min, one.primitive.min()), said(one.max, one.primitive.max()));
    #[expect(clippy::cast_precision_loss, reason = "only where one of both is a float")]
    let number = |scalar: Scalar| match scalar {
        Scalar::Single(value) => f64::from(value),
        Scalar::Double(value) => value,
        Scalar::Signed(value) => value as f64,
        Scalar::Unsigned(value) => value as f64,
    };
    let holds = |bound: Option<Scalar>, above: bool| match bound {
        None => true,
        Some(bound) => match (value.integer(), bound.integer()) {
            (Some(value), Some(bound)) => {
                if above {
                    value >= bound
                } else {
                    value <= bound
                }
            }
            _ => {
                if above {
                    number(value) >= number(bound)
                } else {
                    number(value) <= number(bound)
                }
            }
        },
    };
    holds(least, true) && holds(greatest, false)
}

pub(super) fn expected(one: &Encoded) -> String {
    let items = if one.count == 1 { String::new() } else { format!(" of {} items", one.count) };
    if one.primitive.is_float() {
        return format!("a value of {}{items}", one.primitive.name());
    }
    let (mut least, mut greatest) = one.primitive.bounds();
    if !one.min.same(one.primitive.min()) {
        least = one.min.integer().unwrap_or(least);
    }
    if !one.max.same(one.primitive.max()) {
        greatest = one.max.integer().unwrap_or(greatest);
    }
    format!("a value of {}{items} from {least} to {greatest}", one.primitive.name())
}

fn shown(value: Value<'_>) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Value::Array(primitive, _, bytes) => format!("{} items", bytes.len() / primitive.size()),
        Value::Composite(composite, ..) => format!("composite {}", composite.name),
        Value::Text(text) => format!("{text:?}"),
        other => other.scalar().map_or_else(|| "another value".into(), Scalar::text),
    }
}
