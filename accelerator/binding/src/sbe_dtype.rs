//! Layouts as plain Python values: what `numpy.dtype` takes, and what the stub generator reads.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use relay_accel_codec::sbe::{
    Block, ByteOrder, Composite, Constant, DecodeError as WireError, Encoded, Field, Note, Presence, Primitive, Type,
};

use crate::sbe::{decode_error, list_of, note_dict};
use crate::sbe_plan::{BlockPlan, Kind, Part};

/// Names, formats and offsets of the fields that are on the wire in `version`, for rows of `length` bytes.
pub(crate) fn of_block<'py>(
    py: Python<'py>,
    block: &Block,
    order: ByteOrder,
    version: u32,
    length: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let fields = block.fields.iter().filter(|field| {
        field.presence != Presence::Constant && field.kind.length() > 0 && field.note.since_version <= version
    });
    let rows = fields.map(|field| {
        let room = room(&field.name, &field.kind, field.offset, length)?;
        Ok((field.name.as_str(), format(py, &field.kind, order, version, room)?, field.offset))
    });
    record(py, rows.collect::<PyResult<Vec<_>>>()?, length)
}

/// Bytes that the message has from a place on: as many as the type has, or fewer of a composite that has grown since.
fn room(name: &str, kind: &Type, offset: usize, length: usize) -> PyResult<usize> {
    let (needed, room) = (kind.length(), length.saturating_sub(offset));
    if room >= needed || (room > 0 && matches!(kind, Type::Composite(_))) {
        return Ok(room.min(needed));
    }
    Err(decode_error(WireError::ShortBlock { field: name.to_owned(), needed: offset + needed, length }))
}

fn record<'py>(
    py: Python<'py>,
    rows: Vec<(&str, Bound<'py, PyAny>, usize)>,
    length: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (names, formats, offsets) = (PyList::empty(py), PyList::empty(py), PyList::empty(py));
    for (name, format, offset) in rows {
        names.append(name)?;
        formats.append(format)?;
        offsets.append(offset)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("names", names)?;
    dict.set_item("formats", formats)?;
    dict.set_item("offsets", offsets)?;
    dict.set_item("itemsize", length)?;
    Ok(dict)
}

fn format<'py>(
    py: Python<'py>,
    kind: &Type,
    order: ByteOrder,
    version: u32,
    room: usize,
) -> PyResult<Bound<'py, PyAny>> {
    match kind {
        Type::Encoded(one) if one.primitive == Primitive::Char => text(py, &format!("S{}", one.count)),
        Type::Encoded(one) if one.count == 1 => text(py, &number(one.primitive, order)),
        Type::Encoded(one) => Ok(PyTuple::new(
            py,
            [text(py, &number(one.primitive, order))?, (one.count,).into_pyobject(py)?.into_any()],
        )?
        .into_any()),
        Type::Enumeration(one) if one.encoding == Primitive::Char => text(py, "S1"),
        Type::Enumeration(one) => text(py, &number(one.encoding, order)),
        Type::Options(one) => text(py, &number(one.encoding, order)),
        Type::Composite(one) => Ok(composite(py, one, order, version, room)?.into_any()),
    }
}

fn composite<'py>(
    py: Python<'py>,
    one: &Composite,
    order: ByteOrder,
    version: u32,
    length: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let members = one.members.iter().filter(|member| {
        let is_constant = matches!(&*member.kind, Type::Encoded(inner) if inner.presence == Presence::Constant);
        !is_constant && member.kind.length() > 0 && member.note.since_version <= version
    });
    let rows = members.map(|member| {
        let room = room(&member.name, &member.kind, member.offset, length)?;
        Ok((member.name.as_str(), format(py, &member.kind, order, version, room)?, member.offset))
    });
    record(py, rows.collect::<PyResult<Vec<_>>>()?, length)
}

fn text<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    Ok(text.into_pyobject(py)?.into_any())
}

fn number(primitive: Primitive, order: ByteOrder) -> String {
    let letter = match primitive {
        _ if primitive.is_float() => 'f',
        _ if primitive.is_signed() => 'i',
        _ => 'u',
    };
    let order = if order == ByteOrder::Little { '<' } else { '>' };
    format!("{order}{letter}{}", primitive.size())
}

/// A block's fields, groups and data with their places, kinds and notes.
pub(crate) fn describe<'py>(py: Python<'py>, plan: &BlockPlan, block: &Block) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &plan.name)?;
    dict.set_item("block_length", block.block_length)?;
    let pairs: Vec<(&Part, &Field)> = plan.fields.iter().zip(&block.fields).collect();
    let fields = list_of(py, &pairs, |(part, field)| {
        let row = part_row(py, part, &field.name, &field.kind, field.offset, &field.note)?;
        row.set_item("id", field.id)?;
        row.set_item("presence", field.presence.name())?;
        if let Some(Constant::Scalar(value)) = &field.constant {
            row.set_item("constant", value.text())?;
        }
        Ok(row.into_any())
    })?;
    dict.set_item("fields", fields)?;
    let pairs: Vec<_> = plan.groups.iter().map(|(_, inner)| inner).zip(&block.groups).collect();
    let groups = list_of(py, &pairs, |(inner, group)| {
        let row = describe(py, inner, &group.block)?;
        row.set_item("id", group.id)?;
        row.set_item("note", note_dict(py, &group.note)?)?;
        Ok(row.into_any())
    })?;
    dict.set_item("groups", groups)?;
    let pairs: Vec<_> = plan.data.iter().zip(&block.data).collect();
    let data = list_of(py, &pairs, |(plan, data)| {
        let row = PyDict::new(py);
        row.set_item("name", &data.name)?;
        row.set_item("id", data.id)?;
        row.set_item("kind", if plan.text.is_some() { "text" } else { "bytes" })?;
        row.set_item("note", note_dict(py, &data.note)?)?;
        Ok(row.into_any())
    })?;
    dict.set_item("data", data)?;
    Ok(dict)
}

fn part_row<'py>(
    py: Python<'py>,
    part: &Part,
    name: &str,
    kind: &Type,
    offset: usize,
    note: &Note,
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("name", name)?;
    row.set_item("type", kind.name())?;
    row.set_item("offset", offset)?;
    row.set_item("length", kind.length())?;
    row.set_item("note", note_dict(py, note)?)?;
    row.set_item("is_optional", part.is_optional || is_optional(kind))?;
    let encoded = |word: &str, one: &Encoded| -> PyResult<()> {
        row.set_item("kind", word)?;
        row.set_item("primitive", one.primitive.name())?;
        row.set_item("count", one.count)
    };
    match &part.kind {
        Kind::Constant(value) => {
            row.set_item("kind", "constant")?;
            row.set_item("value", value)?;
        }
        Kind::Number(one) => encoded(if one.primitive.is_float() { "float" } else { "int" }, one)?,
        Kind::Char(one) | Kind::Text(one, _) => encoded("text", one)?,
        Kind::Bytes(one) => encoded("bytes", one)?,
        Kind::Array(one) => encoded(if one.primitive.is_float() { "floats" } else { "ints" }, one)?,
        Kind::Enumeration(plan, primitive) => {
            row.set_item("kind", "enum")?;
            row.set_item("primitive", primitive.name())?;
            row.set_item("class", &plan.class)?;
        }
        Kind::Options(plan, primitive) => {
            row.set_item("kind", "set")?;
            row.set_item("primitive", primitive.name())?;
            row.set_item("class", &plan.class)?;
        }
        Kind::Composite(plan) => {
            row.set_item("kind", "composite")?;
            row.set_item("class", &plan.class)?;
            let pairs: Vec<_> = plan.parts.iter().zip(&plan.layout().members).collect();
            let members = list_of(py, &pairs, |(part, member)| {
                Ok(part_row(py, part, &member.name, &member.kind, member.offset, &member.note)?.into_any())
            })?;
            row.set_item("members", members)?;
        }
    }
    Ok(row)
}

fn is_optional(kind: &Type) -> bool {
    match kind {
        Type::Encoded(one) => one.presence == Presence::Optional,
        Type::Enumeration(_) => true,
        _ => false,
    }
}
