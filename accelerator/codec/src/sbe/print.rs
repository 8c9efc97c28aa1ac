//! The layout as text: one line an element, places in bytes.

use std::fmt::{self, Write as _};

use super::layout::{Block, ByteOrder, Constant, Field, Presence, Schema, Type};

impl fmt::Display for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.byte_order == ByteOrder::Little { "little-endian" } else { "big-endian" };
        writeln!(out, "schema {} id {} version {} {order}", self.package, self.id, self.version)?;
        let header = &self.header;
        writeln!(out, "header {} {} bytes", header.name, header.length)?;
        for kind in &self.types {
            type_lines(out, kind)?;
        }
        for message in &self.messages {
            let since = since(message.note.since_version, message.note.deprecated);
            writeln!(out, "message {} id {} block {}{since}", message.name, message.id, message.block.block_length)?;
            block_lines(out, &message.block, 1)?;
        }
        Ok(())
    }
}

fn since(version: u32, deprecated: u32) -> String {
    let mut text = String::new();
    if version > 0 {
        let _ = write!(text, " since {version}");
    }
    if deprecated > 0 {
        let _ = write!(text, " deprecated {deprecated}");
    }
    text
}

fn type_lines(out: &mut fmt::Formatter<'_>, kind: &Type) -> fmt::Result {
    match kind {
        Type::Enumeration(one) => {
            writeln!(out, "enum {} {} null {}", one.name, one.encoding.name(), one.null.text())?;
            for value in &one.values {
                writeln!(out, "  {} = {}", value.name, value.value.text())?;
            }
        }
        Type::Options(one) => {
            writeln!(out, "set {} {}", one.name, one.encoding.name())?;
            for choice in &one.choices {
                writeln!(out, "  {} = bit {}", choice.name, choice.bit)?;
            }
        }
        Type::Composite(one) => {
            writeln!(out, "composite {} {} bytes", one.name, one.length)?;
            for member in &one.members {
                writeln!(
                    out,
                    "  {:>5} {} {}",
                    member.offset,
                    member.name,
                    described(&member.kind, Presence::Required)
                )?;
            }
        }
        Type::Encoded(one) => writeln!(out, "type {} {}", one.name, described(kind, one.presence))?,
    }
    Ok(())
}

fn described(kind: &Type, presence: Presence) -> String {
    let mut text = match kind {
        Type::Encoded(one) if one.count == 1 => one.primitive.name().to_owned(),
        Type::Encoded(one) => format!("{}[{}]", one.primitive.name(), one.count),
        Type::Enumeration(one) => format!("enum {}", one.name),
        Type::Options(one) => format!("set {}", one.name),
        Type::Composite(one) => format!("composite {}", one.name),
    };
    if let Type::Encoded(one) = kind {
        if let Some(encoding) = &one.character_encoding {
            let _ = write!(text, " {encoding}");
        }
        if let Some(constant) = &one.constant {
            let _ = write!(text, " = {}", constant_text(constant));
        }
        if (presence == Presence::Optional || one.presence == Presence::Optional) && one.count == 1 {
            let _ = write!(text, " null {}", one.null.text());
        }
    } else if presence == Presence::Optional {
        text.push_str(" optional");
    }
    text
}

fn constant_text(constant: &Constant) -> String {
    match constant {
        Constant::Scalar(value) => value.text(),
        Constant::Text(text) => format!("{text:?}"),
    }
}

fn block_lines(out: &mut fmt::Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
    let indent = "  ".repeat(depth);
    for field in &block.fields {
        field_line(out, field, &indent)?;
    }
    for group in &block.groups {
        let (dimension, since) = (&group.dimension, since(group.note.since_version, group.note.deprecated));
        let length = group.block.block_length;
        writeln!(out, "{indent}group {} id {} {} block {length}{since}", group.name, group.id, dimension.name)?;
        block_lines(out, &group.block, depth + 1)?;
    }
    for data in &block.data {
        let encoding = data.character_encoding.as_ref().map_or(String::new(), |encoding| format!(" {encoding}"));
        let since = since(data.note.since_version, data.note.deprecated);
        let (name, length) = (&data.name, data.length.primitive.name());
        writeln!(out, "{indent}data {name} id {} {} length {length}{encoding}{since}", data.id, data.type_name)?;
    }
    Ok(())
}

fn field_line(out: &mut fmt::Formatter<'_>, field: &Field, indent: &str) -> fmt::Result {
    let since = since(field.note.since_version, field.note.deprecated);
    let kind = described(&field.kind, field.presence);
    if field.presence == Presence::Constant {
        let constant = field.constant.as_ref().map_or(String::new(), |value| format!(" = {}", constant_text(value)));
        return writeln!(out, "{indent}    - {} id {} {kind}{constant}{since}", field.name, field.id);
    }
    writeln!(out, "{indent}{:>5} {} id {} {kind}{since}", field.offset, field.name, field.id)
}
