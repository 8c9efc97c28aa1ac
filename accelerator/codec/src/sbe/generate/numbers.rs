//! Numbers as Rust writes them.

use super::super::layout::{ByteOrder, LengthField};
use super::super::primitive::{Primitive, Scalar};

/// The type of Rust; `char` is a byte.
pub(super) fn rust_type(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Char | Primitive::Uint8 => "u8",
        Primitive::Int8 => "i8",
        Primitive::Int16 => "i16",
        Primitive::Int32 => "i32",
        Primitive::Int64 => "i64",
        Primitive::Uint16 => "u16",
        Primitive::Uint32 => "u32",
        Primitive::Uint64 => "u64",
        Primitive::Float => "f32",
        Primitive::Double => "f64",
    }
}

/// An integer with a `_` before every three digits.
pub(super) fn grouped(value: i128) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = if value < 0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

/// A value as an expression of its type, fit for a `const`.
pub(super) fn literal(value: Scalar) -> String {
    match value {
        Scalar::Signed(value) => grouped(value.into()),
        Scalar::Unsigned(value) => grouped(value.into()),
        Scalar::Single(value) => format!("f32::from_bits({})", grouped(value.to_bits().into())),
        Scalar::Double(value) => format!("f64::from_bits({})", grouped(value.to_bits().into())),
    }
}

/// The condition under which `value` is not null.
pub(super) fn is_not(null: Scalar, value: &str) -> String {
    match null {
        Scalar::Single(null) if null.is_nan() => format!("!{value}.is_nan()"),
        Scalar::Double(null) if null.is_nan() => format!("!{value}.is_nan()"),
        Scalar::Single(null) => format!("{value}.to_bits() != {}", grouped(null.to_bits().into())),
        Scalar::Double(null) => format!("{value}.to_bits() != {}", grouped(null.to_bits().into())),
        _ => format!("{value} != {}", literal(null)),
    }
}

/// `le` or `be`.
pub(super) fn order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    }
}

/// Read a number at `offset` of `bytes`.
pub(super) fn read(primitive: Primitive, bytes: &str, offset: usize, byte_order: ByteOrder) -> String {
    format!("{}::from_{}_bytes(part({bytes}, {offset}))", rust_type(primitive), order(byte_order))
}

/// Read a count or length as `u64`; a negative one is one that no buffer can hold.
pub(super) fn read_length(field: LengthField, bytes: &str, byte_order: ByteOrder) -> String {
    let read = read(field.primitive, bytes, field.offset, byte_order);
    match field.primitive {
        Primitive::Uint64 => read,
        primitive if primitive.is_signed() => format!("u64::try_from({read}).unwrap_or(u64::MAX)"),
        _ => format!("u64::from({read})"),
    }
}

/// Write the `u64` expression `value`, which fits, as a count or length into `bytes`.
pub(super) fn put_length(field: LengthField, bytes: &str, byte_order: ByteOrder, value: &str) -> String {
    let (kind, order) = (rust_type(field.primitive), order(byte_order));
    let cast = if field.primitive == Primitive::Uint64 { value.to_owned() } else { format!("({value} as {kind})") };
    format!("put({bytes}, {}, {cast}.to_{order}_bytes());", field.offset)
}

/// Write a known number as a count or length into `bytes`.
pub(super) fn put_known(field: LengthField, bytes: &str, byte_order: ByteOrder, value: usize) -> String {
    let (kind, order, value) = (rust_type(field.primitive), order(byte_order), grouped(value as i128));
    format!("put({bytes}, {}, {value}_{kind}.to_{order}_bytes());", field.offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_threes() {
        assert_eq!(grouped(-1_234_567), "-1_234_567");
        assert_eq!(grouped(100), "100");
        assert_eq!(literal(Scalar::Signed(i64::MIN)), "-9_223_372_036_854_775_808");
    }
}
