//! One field of a block or member of a composite: its getter and its setter.

use std::sync::Arc;

use super::super::block::constant_of;
use super::super::layout::{Constant, Encoded, Enumeration, Field, Member, Presence, Type};
use super::super::primitive::{Primitive, Scalar};
use super::names::{Unique, snake, upper};
use super::numbers::{grouped, is_not, literal, order, read, rust_type};
use super::text::{fill, plain};
use super::types::{Types, enum_value};

/// Expressions of the bytes that every version has, and of all bytes.
pub(super) struct Place {
    pub(super) fixed: &'static str,
    pub(super) whole: &'static str,
}

/// What field and member have in common.
pub(super) struct Slot<'s> {
    method: String,
    constant_name: String,
    title: String,
    what: String,
    offset: usize,
    kind: &'s Arc<Type>,
    is_optional: bool,
    is_constant: bool,
    constant: Option<&'s Constant>,
    since: u32,
}

impl<'s> Slot<'s> {
    pub(super) fn of_field(field: &'s Field, unique: &mut Unique) -> Self {
        let title = format!("Field `{}`, id {}", plain(&field.name), field.id);
        let (constant, is_constant) = (constant_of(field), field.presence == Presence::Constant);
        let of_field = field.presence == Presence::Optional;
        Self::new(&field.name, title, field.offset, &field.kind, field.note.since_version, unique).with(
            constant,
            is_constant,
            of_field,
        )
    }

    pub(super) fn of_member(member: &'s Member, unique: &mut Unique) -> Self {
        let title = format!("Member `{}`", plain(&member.name));
        let constant = match &*member.kind {
            Type::Encoded(one) => one.constant.as_ref(),
            _ => None,
        };
        Self::new(&member.name, title, member.offset, &member.kind, member.note.since_version, unique).with(
            constant,
            constant.is_some(),
            false,
        )
    }

    fn new(name: &str, title: String, offset: usize, kind: &'s Arc<Type>, since: u32, unique: &mut Unique) -> Self {
        let (method, constant_name) = (unique.claim(&snake(name), &[""]), upper(name));
        let what = format!("{name:?}");
        let is_optional = match &**kind {
            Type::Encoded(one) => one.presence == Presence::Optional,
            Type::Enumeration(one) => one.presence == Presence::Optional,
            _ => false,
        };
        let (is_constant, constant) = (false, None);
        Self { method, constant_name, title, what, offset, kind, is_optional, is_constant, constant, since }
    }

    fn with(mut self, constant: Option<&'s Constant>, is_constant: bool, is_optional: bool) -> Self {
        self.constant = constant.filter(|_| is_constant);
        self.is_constant = is_constant;
        self.is_optional |= is_optional && matches!(&**self.kind, Type::Encoded(_) | Type::Enumeration(_));
        // Names of methods are unique; a constant is named like its method.
        self.constant_name =
            if self.method == snake(&self.constant_name) { self.constant_name } else { upper(&self.method) };
        self
    }

    fn bytes(&self, place: &Place) -> &'static str {
        let is_composite = matches!(&**self.kind, Type::Composite(_));
        if self.since == 0 && !is_composite { place.fixed } else { place.whole }
    }
}

/// How a value is read: its type, its bytes as `value`, whether that is not null, what `value` becomes.
struct Reading {
    kind: String,
    raw: String,
    is_there: String,
    becomes: String,
}

/// The getter of a slot; of a constant, the constant.
pub(super) fn getter(types: &mut Types, slot: &Slot<'_>, place: &Place) -> String {
    if slot.is_constant {
        return constant(types, slot);
    }
    let reading = reading(types, slot, slot.bytes(place));
    let is_option = slot.is_optional || slot.since > 0;
    let body = match (slot.is_optional, slot.since) {
        (false, 0) => format!("        {}\n", as_one(&reading)),
        (false, since) => format!("        (self.version >= {since}).then(|| {})\n", as_one(&reading)),
        (true, since) => {
            let absent = format!("        if self.version < {since} {{\n            return None;\n        }}\n");
            let Reading { raw, is_there, becomes, .. } = &reading;
            let value = format!("        let value = {raw};\n        ({is_there}).then_some({becomes})\n");
            if since == 0 { value } else { absent + &value }
        }
    };
    let kind = if is_option { format!("Option<{}>", reading.kind) } else { reading.kind };
    fill(
        "    /// $title.\n    #[inline]\n    pub fn $method(&self) -> $kind {\n$body    }\n\n",
        &[("title", &slot.title), ("method", &slot.method), ("kind", &kind), ("body", &body)],
    )
}

fn as_one(reading: &Reading) -> String {
    if reading.becomes == "value" {
        return reading.raw.clone();
    }
    reading.becomes.replace("value", &reading.raw)
}

fn reading(types: &mut Types, slot: &Slot<'_>, bytes: &str) -> Reading {
    let (offset, byte_order) = (slot.offset, types.order);
    match &**slot.kind {
        Type::Encoded(one) if one.count == 1 => Reading {
            kind: rust_type(one.primitive).to_owned(),
            raw: read(one.primitive, bytes, offset, byte_order),
            is_there: is_not(one.null, "value"),
            becomes: "value".to_owned(),
        },
        Type::Encoded(one) if is_bytes(one.primitive) => Reading {
            kind: format!("&'a [u8; {}]", one.count),
            raw: format!("array({bytes}, {offset})"),
            is_there: format!("value.iter().any(|item| *item != {})", literal(one.null)),
            becomes: "value".to_owned(),
        },
        Type::Encoded(one) => {
            let (kind, size, count) = (rust_type(one.primitive), one.primitive.size(), one.count);
            Reading {
                kind: format!("impl ExactSizeIterator<Item = {kind}> + Clone + use<'a>"),
                raw: format!(
                    "items::<{size}>({bytes}, {offset}, {count}).map({kind}::from_{}_bytes)",
                    order(byte_order)
                ),
                is_there: format!("value.clone().any(|item| {})", is_not(one.null, "item")),
                becomes: "value".to_owned(),
            }
        }
        Type::Enumeration(one) => Reading {
            kind: types.name(slot.kind),
            raw: read(one.encoding, bytes, offset, byte_order),
            is_there: is_not(one.null, "value"),
            becomes: format!("{}::from_raw(value)", types.name(slot.kind)),
        },
        Type::Options(one) => Reading {
            kind: types.name(slot.kind),
            raw: read(one.encoding, bytes, offset, byte_order),
            is_there: String::new(),
            becomes: format!("{}(value)", types.name(slot.kind)),
        },
        Type::Composite(one) => {
            let (name, end) = (types.name(slot.kind), offset + one.length);
            let raw = format!("{name}Decoder {{ bytes: window({bytes}, {offset}, {end}), version: self.version }}");
            Reading { kind: format!("{name}Decoder<'a>"), raw, is_there: String::new(), becomes: "value".to_owned() }
        }
    }
}

fn constant(types: &mut Types, slot: &Slot<'_>) -> String {
    let (kind, value) = match (slot.constant, &**slot.kind) {
        (Some(Constant::Text(text)), _) => ("&'static str".to_owned(), format!("{text:?}")),
        (Some(Constant::Scalar(value)), Type::Enumeration(one)) => {
            let name = types.name(slot.kind);
            (name.clone(), enum_value(one, &name, *value))
        }
        (Some(Constant::Scalar(value)), Type::Encoded(one)) => (rust_type(one.primitive).to_owned(), literal(*value)),
        _ => return String::new(),
    };
    let (title, name) = (&slot.title, &slot.constant_name);
    format!("    /// {title}, which is always the same.\n    pub const {name}: {kind} = {value};\n\n")
}

/// The setter of a slot; none of a constant.
pub(super) fn setter(types: &mut Types, slot: &Slot<'_>, place: &Place) -> String {
    if slot.is_constant {
        return String::new();
    }
    let bytes = place.fixed;
    if let Type::Composite(one) = &**slot.kind {
        let (name, from, to) = (types.name(slot.kind), slot.offset, slot.offset + one.length);
        return format!(
            "    /// {}, to be written member by member.\n    #[inline]\n    pub fn {}(&mut self) -> {name}Encoder<'_> \
             {{\n        {name}Encoder {{ bytes: window_mut({bytes}, {from}, {to}) }}\n    }}\n\n",
            slot.title, slot.method
        );
    }
    let (kind, body, can_fail) = writing(types, slot, bytes);
    let kind = if slot.is_optional { format!("Option<{kind}>") } else { kind };
    let (result, last) = if can_fail { ("Result<&mut Self, Error>", "Ok(self)") } else { ("&mut Self", "self") };
    fill(
        "    /// $title.\n    #[inline]\n    pub fn $method(&mut self, value: $kind) -> $result {\n$body        $last\n    \
         }\n\n",
        &[
            ("title", &slot.title),
            ("method", &slot.method),
            ("kind", &kind),
            ("result", result),
            ("body", &body),
            ("last", last),
        ],
    )
}

/// Type, statements, and whether they can fail.
fn writing(types: &mut Types, slot: &Slot<'_>, bytes: &str) -> (String, String, bool) {
    let (at, order) = (slot.offset, order(types.order));
    let put = |value: &str| format!("        put({bytes}, {at}, {value}.to_{order}_bytes());\n");
    match &**slot.kind {
        Type::Encoded(one) if one.count == 1 => {
            let null = literal(one.null);
            let default = if slot.is_optional {
                format!("        let value = value.unwrap_or({null});\n")
            } else {
                String::new()
            };
            let check = range_check(one, slot, "value", "        ");
            let can_fail = !check.is_empty();
            (rust_type(one.primitive).to_owned(), default + &check + &put("value"), can_fail)
        }
        Type::Encoded(one) if is_bytes(one.primitive) => {
            let (count, what) = (one.count, &slot.what);
            let write = format!("put_padded::<{count}>({bytes}, {at}, value, {what})?;\n");
            let body = if slot.is_optional {
                let null = nulls(one, bytes, at, order);
                format!(
                    "        match value {{\n            Some(value) => {}            None => {null},\n        }}\n",
                    write.replace(";\n", ",\n")
                )
            } else {
                format!("        {write}")
            };
            ("&[u8]".to_owned(), body, true)
        }
        Type::Encoded(one) => {
            let write = format!("put_items({bytes}, {at}, value.iter().map(|item| item.to_{order}_bytes()))");
            let check = range_check(one, slot, "item", "            ");
            let can_fail = !check.is_empty();
            let checks = format!(
                "        for item in {} {{\n            let item = *item;\n{check}        }}\n",
                if slot.is_optional { "value.into_iter().flatten()" } else { "value" }
            );
            let body = if slot.is_optional {
                let null = nulls(one, bytes, at, order);
                format!(
                    "        match value {{\n            Some(value) => {write},\n            None => {null},\n        }}\n"
                )
            } else {
                format!("        {write};\n")
            };
            let body = if can_fail { checks + &body } else { body };
            (format!("&[{}; {}]", rust_type(one.primitive), one.count), body, can_fail)
        }
        Type::Enumeration(one) if slot.is_optional => {
            let name = types.name(slot.kind);
            let value = format!("value.map_or({}, {name}::raw)", literal(one.null));
            (name, put(&value), false)
        }
        Type::Enumeration(_) => (types.name(slot.kind), put("value.raw()"), false),
        _ => (types.name(slot.kind), put("value.0"), false),
    }
}

fn is_bytes(primitive: Primitive) -> bool {
    matches!(primitive, Primitive::Char | Primitive::Uint8)
}

fn nulls(one: &Encoded, bytes: &str, at: usize, order: &str) -> String {
    let (null, kind) = (literal(one.null), rust_type(one.primitive));
    let typed = if one.primitive.is_float() { null } else { format!("({null}_{kind})") };
    format!("put_items({bytes}, {at}, core::iter::repeat_n({typed}.to_{order}_bytes(), {}))", one.count)
}

/// Refuse a value outside of what the schema says, if it says less than the bytes can hold.
fn range_check(one: &Encoded, slot: &Slot<'_>, value: &str, indent: &str) -> String {
    let least = bound(one.min, one.primitive.min(), one.primitive.bounds().0);
    let greatest = bound(one.max, one.primitive.max(), one.primitive.bounds().1);
    let range = match (least, greatest) {
        (None, None) => return String::new(),
        (Some(least), None) => format!("({least}..)"),
        (None, Some(greatest)) => format!("(..={greatest})"),
        (Some(least), Some(greatest)) => format!("({least}..={greatest})"),
    };
    let or_null = if slot.is_optional { format!(" && {}", is_not(one.null, value)) } else { String::new() };
    let what = &slot.what;
    format!(
        "{indent}if !{range}.contains(&{value}){or_null} {{\n{indent}    return Err(Error::OutOfRange {{ what: {what} \
         }});\n{indent}}}\n"
    )
}

fn bound(said: Scalar, default: Scalar, limit: i128) -> Option<String> {
    let is_said = !said.same(default) && said.integer() != Some(limit);
    is_said.then(|| literal(said))
}

/// Statements that write null wherever a block of zeros would say a value instead.
pub(super) fn null_lines(kind: &Type, presence: Presence, bytes: &str, at: usize, order: &str) -> String {
    let is_optional = |of_type: Presence| presence == Presence::Optional || of_type == Presence::Optional;
    match kind {
        Type::Encoded(one) if one.presence != Presence::Constant && is_optional(one.presence) && !is_zero(one.null) => {
            format!("        {};\n", nulls(one, bytes, at, order))
        }
        Type::Enumeration(one) if is_optional(one.presence) && !is_zero(one.null) => {
            format!("        put({bytes}, {at}, {}.to_{order}_bytes());\n", typed_null(one))
        }
        Type::Composite(one) => one
            .members
            .iter()
            .map(|member| null_lines(&member.kind, Presence::Required, bytes, at + member.offset, order))
            .collect(),
        _ => String::new(),
    }
}

fn typed_null(one: &Enumeration) -> String {
    format!("({}_{})", one.null.integer().map_or_else(String::new, grouped), rust_type(one.encoding))
}

fn is_zero(null: Scalar) -> bool {
    match null {
        Scalar::Single(null) => null.to_bits() == 0,
        Scalar::Double(null) => null.to_bits() == 0,
        other => other.integer() == Some(0),
    }
}
