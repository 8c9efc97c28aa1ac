//! A message looked at as a whole before anybody reads it: every block, group and data is there, every enum's value is one
//! that the schema knows, every number lies in the range that the schema says.
//!
//! Views look at nothing before it is asked for. Where a value decides what is done (the side of an order), the answer has
//! to come before the first read instead.

use super::encode::{expected, in_range};
use super::layout::{Encoded, Enumeration, Field, Presence, Type};
use super::primitive::{Primitive, Scalar};
use super::view::{BlockView, DecodeError, MessageView, member_bytes};

impl MessageView<'_> {
    /// Check the whole message; return its length in bytes, header included. One walk over it, nothing is allocated.
    ///
    /// # Errors
    /// An enum's value is unknown, or null where it is required; a number lies outside of the range that its type says; a
    /// block is too short for its version; or the buffer ends before the message.
    pub fn check(&self) -> Result<usize, DecodeError> {
        check_block(self.root(), self.version)
    }
}

fn check_block(block: BlockView<'_>, version: u32) -> Result<usize, DecodeError> {
    for field in &block.layout().fields {
        check_field(block, field, version)?;
    }
    let mut tail = block.tail();
    for layout in &block.layout().groups {
        let group = tail.group(layout)?;
        let mut at = group.span().0;
        for index in 0..group.len() {
            let end = group.entry_from(at).and_then(|entry| check_block(entry, version));
            at = end.map_err(|error| inside(error, || format!("{}[{index}]", layout.name)))?;
        }
        tail.go_on(at);
    }
    for layout in &block.layout().data {
        tail.data(layout)?;
    }
    Ok(tail.position())
}

fn check_field(block: BlockView<'_>, field: &Field, version: u32) -> Result<(), DecodeError> {
    if field.presence == Presence::Constant {
        return Ok(());
    }
    let Some(bytes) = block.field_bytes(field)? else { return Ok(()) };
    let place = Place { at: block.span().0 + field.offset, order: block.byte_order(), version };
    check_value(&field.kind, field.presence, bytes, place).map_err(|error| inside(error, || field.name.clone()))
}

#[derive(Clone, Copy)]
struct Place {
    at: usize,
    order: super::layout::ByteOrder,
    version: u32,
}

fn check_value(kind: &Type, presence: Presence, bytes: &[u8], place: Place) -> Result<(), DecodeError> {
    match kind {
        Type::Encoded(one) => check_numbers(one, presence, bytes, place),
        Type::Enumeration(one) => check_enum(one, presence, one.encoding.read(bytes, place.order), place.at),
        Type::Composite(one) => {
            for member in &one.members {
                let Some(inner) = member_bytes(member, bytes, place.version)? else { continue };
                check_value(&member.kind, Presence::Required, inner, Place { at: place.at + member.offset, ..place })
                    .map_err(|error| inside(error, || member.name.clone()))?;
            }
            Ok(())
        }
        Type::Options(_) => Ok(()),
    }
}

/// Ranges that a schema says, of single numbers and of each item of an array; null is allowed where the field is optional.
fn check_numbers(one: &Encoded, presence: Presence, bytes: &[u8], place: Place) -> Result<(), DecodeError> {
    if one.presence == Presence::Constant || !one.says_range() {
        return Ok(());
    }
    let size = one.primitive.size();
    for (index, item) in bytes.chunks_exact(size).enumerate() {
        let value = one.primitive.read(item, place.order);
        let is_null = presence == Presence::Optional && value.same(one.null);
        if !is_null && !in_range(one, value) {
            let at = place.at + index * size;
            return Err(DecodeError::OutOfRange {
                path: String::new(),
                at,
                expected: expected(one),
                value: value.text(),
            });
        }
    }
    Ok(())
}

fn check_enum(one: &Enumeration, presence: Presence, value: Scalar, at: usize) -> Result<(), DecodeError> {
    let optional = presence == Presence::Optional || one.presence == Presence::Optional;
    if (optional && value.same(one.null)) || one.values.iter().any(|valid| valid.value.same(value)) {
        return Ok(());
    }
    Err(DecodeError::UnknownValue { path: String::new(), at, type_name: one.name.clone(), value: shown(one, value) })
}

fn shown(one: &Enumeration, value: Scalar) -> String {
    let letter = value.integer().and_then(|code| u8::try_from(code).ok()).filter(u8::is_ascii_graphic);
    match letter {
        Some(letter) if one.encoding == Primitive::Char => format!("'{}'", char::from(letter)),
        _ => value.text(),
    }
}

/// Put the name of what is around before the path: paths are made on the way out of an error only.
fn inside(mut error: DecodeError, name: impl FnOnce() -> String) -> DecodeError {
    if let DecodeError::UnknownValue { path, .. } | DecodeError::OutOfRange { path, .. } = &mut error {
        *path = if path.is_empty() { name() } else { format!("{}.{path}", name()) };
    }
    error
}
