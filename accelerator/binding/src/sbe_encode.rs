//! Python values into messages: dicts, sequences of dicts, views, enum members, names.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyIterator, PyMapping, PyString};
use relay_accel_codec::sbe::{
    Block, ByteOrder, Encoded, Encoder, Member, Presence, Primitive, Scalar, Type, Value, member_slot, write_value,
};

use crate::producer::with_bytes;
use crate::sbe::{EncodeError, encode_error, name_of};
use crate::sbe_plan::{BlockPlan, CompositePlan, EnumPlan, Kind, Part, SetPlan};
use crate::sbe_view::{BlockView, CompositeView};

/// Of a message without a given buffer.
const LENGTH_MAX: usize = 1 << 31;

/// Values as a dict: a dict itself, a view, any mapping, with keywords over them.
pub(crate) fn given<'py>(
    py: Python<'py>,
    values: Option<&Bound<'py, PyAny>>,
    fields: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    match (values, fields) {
        (None, None) => Ok(PyDict::new(py)),
        (None, Some(fields)) => Ok(fields.clone()),
        (Some(values), None) => dict_of(values, "values"),
        (Some(values), Some(fields)) => {
            let all = dict_of(values, "values")?.copy()?;
            all.update(fields.as_mapping())?;
            Ok(all)
        }
    }
}

fn dict_of<'py>(values: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    let py = values.py();
    if let Ok(dict) = values.cast::<PyDict>() {
        return Ok(dict.clone());
    }
    let found = if values.is_instance_of::<BlockView>() || values.is_instance_of::<CompositeView>() {
        values.call_method0(intern!(py, "to_dict"))?
    } else if values.is_instance_of::<PyMapping>() {
        py.get_type::<PyDict>().call1((values,))?
    } else {
        let kind = values.get_type().name()?;
        return Err(EncodeError::new_err(format!("{name}: expected a mapping of names to values, got {kind}")));
    };
    Ok(found.cast_into::<PyDict>()?)
}

pub(crate) fn into_buffer(
    py: Python<'_>,
    plan: &BlockPlan,
    values: &Bound<'_, PyDict>,
    buffer: &Bound<'_, PyAny>,
    offset: usize,
) -> PyResult<usize> {
    let target = PyUntypedBuffer::get(buffer)?;
    if target.readonly() || !target.is_c_contiguous() {
        return Err(PyBufferError::new_err("expected a contiguous buffer that can be written"));
    }
    let length = target.len_bytes();
    if offset > length {
        let text = format!("expected an offset within the buffer of {length} bytes, got {offset}");
        return Err(EncodeError::new_err(text));
    }
    // Values are Python objects whose conversion may run Python code, which may write to the same buffer: the message is
    // made beside it and copied when it is whole, so that a refused one leaves the buffer as it was, too.
    let message = to_vec(py, plan, values)?;
    if message.len() > length - offset {
        let text =
            format!("expected room for {} bytes from byte {offset} on, the buffer ends at {length}", message.len());
        return Err(EncodeError::new_err(text));
    }
    if !message.is_empty() {
        // SAFETY: the offset lies within the buffer.
        let place = unsafe { target.buf_ptr().cast::<u8>().add(offset) };
        // SAFETY: the buffer is contiguous, writable, held and long enough; the source is a vector of ours.
        unsafe { std::ptr::copy_nonoverlapping(message.as_ptr(), place, message.len()) };
    }
    Ok(message.len())
}

pub(crate) fn to_vec(py: Python<'_>, plan: &BlockPlan, values: &Bound<'_, PyDict>) -> PyResult<Vec<u8>> {
    let message = &plan.schema.messages[plan.message];
    // Into memory that grows: a second attempt with more would find iterators at their end.
    let mut encoder = Encoder::begin_growing(&plan.schema, message, LENGTH_MAX).map_err(encode_error)?;
    block(py, plan, &message.block, values, &mut encoder)?;
    encoder.finish_grown().map_err(encode_error)
}

fn block(
    py: Python<'_>,
    plan: &BlockPlan,
    layout: &Block,
    values: &Bound<'_, PyDict>,
    encoder: &mut Encoder<'_, '_>,
) -> PyResult<()> {
    let order = plan.order();
    let mut used = 0;
    for (part, field) in plan.fields.iter().zip(&layout.fields) {
        let value = values.get_item(part.key.bind(py))?;
        used += usize::from(value.is_some());
        let slot = encoder.slot(field).map_err(encode_error)?;
        part_value(py, part, &field.kind, field.presence, value.as_ref(), slot, order)?;
    }
    for (index, (key, inner)) in plan.groups.iter().enumerate() {
        let Some(value) = values.get_item(key.bind(py))? else { continue };
        used += 1;
        if value.is_none() {
            continue;
        }
        let name = name_of(key, py);
        let entries = iterated(&value, &name, "entries")?;
        let entries = entries.collect::<PyResult<Vec<_>>>()?;
        encoder.begin_group_at(index, entries.len() as u64).map_err(encode_error)?;
        for entry in entries {
            encoder.next_entry().map_err(encode_error)?;
            block(py, inner, inner.layout(), &dict_of(&entry, &name)?, encoder)?;
        }
        encoder.end_group().map_err(encode_error)?;
    }
    for (index, data) in plan.data.iter().enumerate() {
        let Some(value) = values.get_item(data.key.bind(py))? else { continue };
        used += 1;
        if value.is_none() {
            continue;
        }
        let name = name_of(&data.key, py);
        match (value.cast::<PyString>(), &data.text) {
            (Ok(text), Some(encoding)) => {
                encoder.put_data_at(index, &encoding.encoded(py, &name, text)?).map_err(encode_error)?;
            }
            (Ok(_), None) => return Err(wrong(&name, "bytes", &value)),
            (Err(_), _) => {
                let result = with_bytes(&value, |bytes| encoder.put_data_at(index, bytes));
                result.map_err(|_| wrong(&name, "text or bytes", &value))?.map_err(encode_error)?;
            }
        }
    }
    if used < values.len() {
        return Err(unknown(py, plan, values)?);
    }
    Ok(())
}

/// An iterator; what an object's own code raises is passed on.
fn iterated<'py>(value: &Bound<'py, PyAny>, name: &str, expected: &str) -> PyResult<Bound<'py, PyIterator>> {
    value.try_iter().map_err(|error| {
        if error.is_instance_of::<PyTypeError>(value.py()) { wrong(name, expected, value) } else { error }
    })
}

fn unknown(py: Python<'_>, plan: &BlockPlan, values: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    let keys = plan.fields.iter().map(|part| &part.key).chain(plan.groups.iter().map(|(key, _)| key));
    let names: Vec<String> = keys.chain(plan.data.iter().map(|data| &data.key)).map(|key| name_of(key, py)).collect();
    for (key, _) in values.iter() {
        if !key.extract::<String>().is_ok_and(|key| names.contains(&key)) {
            return Ok(EncodeError::new_err(format!("{} has no {}", plan.name, key.repr()?)));
        }
    }
    Ok(EncodeError::new_err(format!("{}: unknown names", plan.name)))
}

fn wrong(name: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let shown = value.repr().map_or_else(|_| "a value without text".into(), |text| text.to_string());
    EncodeError::new_err(format!("{name}: expected {expected}, got {shown:.80}"))
}

/// Write one value; left out means null where that is allowed.
fn part_value(
    py: Python<'_>,
    part: &Part,
    kind: &Type,
    presence: Presence,
    value: Option<&Bound<'_, PyAny>>,
    slot: &mut [u8],
    order: ByteOrder,
) -> PyResult<()> {
    let name = part.key.bind(py).to_str()?;
    if let Kind::Constant(constant) = &part.kind {
        return match value {
            Some(value) if !value.is_none() && !value.eq(constant.bind(py))? => {
                Err(wrong(name, &format!("the constant {}", constant.bind(py).repr()?), value))
            }
            _ => Ok(()),
        };
    }
    if let (Kind::Enumeration(plan, _), None, Type::Enumeration(one)) = (&part.kind, value, kind)
        && !part.is_optional
        && one.presence != Presence::Optional
    {
        // An explicit None writes null, as views give it; what is forgotten must not become null by itself.
        let text = format!("{name}: expected a value of enum {}, which is required: {}", one.name, plan.choices);
        return Err(EncodeError::new_err(text));
    }
    let value = value.filter(|value| !value.is_none());
    let put =
        |slot: &mut [u8], value: Value<'_>| write_value(name, kind, presence, slot, order, value).map_err(encode_error);
    let Some(value) = value else {
        return match &part.kind {
            Kind::Composite(plan) => composite(py, plan, &PyDict::new(py), slot, order, name),
            Kind::Options(..) => put(slot, Value::Set(0)),
            _ => put(slot, Value::Null),
        };
    };
    match &part.kind {
        Kind::Number(one) => put(slot, value_of(number(name, one, value)?)),
        Kind::Char(_) => put(slot, Value::Unsigned(u64::from(char_of(name, value)?))),
        Kind::Text(_, encoding) => match value.cast::<PyString>() {
            Ok(text) => {
                let bytes = encoding.encoded(py, name, text)?;
                if encoding.before_end(&bytes).len() < bytes.len() {
                    return Err(wrong(name, "text without a zero, which would end it", value));
                }
                put(slot, Value::Bytes(&bytes))
            }
            Err(_) => raw(name, value, |bytes| put(slot, Value::Bytes(bytes))),
        },
        Kind::Bytes(_) => raw(name, value, |bytes| put(slot, Value::Bytes(bytes))),
        Kind::Array(one) => put(slot, Value::Array(one.primitive, order, &array(name, one, value, order)?)),
        Kind::Enumeration(plan, primitive) => {
            let raw = enum_value(name, plan, *primitive, value)?;
            put(slot, Value::Enum(raw, None))
        }
        Kind::Options(plan, _) => put(slot, Value::Set(set_bits(name, plan, value)?)),
        Kind::Composite(plan) => composite(py, plan, &dict_of(value, name)?, slot, order, name),
        Kind::Constant(_) => Ok(()),
    }
}

fn composite(
    py: Python<'_>,
    plan: &CompositePlan,
    values: &Bound<'_, PyDict>,
    slot: &mut [u8],
    order: ByteOrder,
    name: &str,
) -> PyResult<()> {
    let mut used = 0;
    let members: &[Member] = &plan.layout().members;
    for (part, member) in plan.parts.iter().zip(members) {
        let value = values.get_item(part.key.bind(py))?;
        used += usize::from(value.is_some());
        let place = member_slot(member, slot);
        part_value(py, part, &member.kind, Presence::Required, value.as_ref(), place, order)
            .map_err(|error| inside(py, name, error))?;
    }
    if used < values.len() {
        return Err(EncodeError::new_err(format!("{name}: composite {} has no such member", plan.layout().name)));
    }
    Ok(())
}

/// An error of a member, with the composite's name before it.
fn inside(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    if error.is_instance_of::<EncodeError>(py) {
        return EncodeError::new_err(format!("{name}.{}", error.value(py)));
    }
    error
}

fn value_of<'a>(scalar: Scalar) -> Value<'a> {
    match scalar {
        Scalar::Signed(value) => Value::Signed(value),
        Scalar::Unsigned(value) => Value::Unsigned(value),
        Scalar::Single(value) => Value::Single(value),
        Scalar::Double(value) => Value::Double(value),
    }
}

fn number(name: &str, one: &Encoded, value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if one.primitive.is_float() {
        let found = value.extract::<f64>().map_err(|_| wrong(name, "a number", value))?;
        return Ok(Scalar::Double(found));
    }
    if value.is_instance_of::<PyFloat>() {
        return Err(wrong(name, "a whole number", value));
    }
    integer(name, value)
}

fn integer(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if let Ok(found) = value.extract::<i64>() {
        return Ok(Scalar::Signed(found));
    }
    value.extract::<u64>().map(Scalar::Unsigned).map_err(|_| wrong(name, "a whole number of 64 bits", value))
}

fn char_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u8> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_str()?;
        let mut letters = text.chars();
        if let (Some(letter), None) = (letters.next(), letters.next())
            && let Ok(byte) = u8::try_from(u32::from(letter))
        {
            return Ok(byte);
        }
    } else if let Ok(bytes) = value.cast::<PyBytes>()
        && let [byte] = bytes.as_bytes()
    {
        return Ok(*byte);
    }
    Err(wrong(name, "one character of one byte", value))
}

fn raw<T>(name: &str, value: &Bound<'_, PyAny>, each: impl FnOnce(&[u8]) -> PyResult<T>) -> PyResult<T> {
    with_bytes(value, each).map_err(|_| wrong(name, "bytes", value))?
}

fn array(name: &str, one: &Encoded, value: &Bound<'_, PyAny>, order: ByteOrder) -> PyResult<Vec<u8>> {
    let size = one.primitive.size();
    let mut bytes = Vec::with_capacity(one.count * size);
    for item in iterated(value, name, &format!("{} items", one.count))? {
        let item = item?;
        let mut room = [0; 8];
        let scalar = if item.is_none() { one.null } else { number(name, one, &item)? };
        if !one.primitive.write(&mut room[..size], order, scalar) {
            return Err(wrong(name, &format!("items of {}", one.primitive.name()), &item));
        }
        bytes.extend_from_slice(&room[..size]);
        if bytes.len() > one.count * size {
            break;
        }
    }
    Ok(bytes)
}

fn enum_value(name: &str, plan: &EnumPlan, primitive: Primitive, value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    let expected = || format!("a member of {}, its name or its value: {}", plan.class, plan.choices);
    // A member of a character enum is text, too: its value goes before names.
    let is_member = value.is_instance(plan.class.bind(value.py()))?;
    if let Ok(text) = value.cast::<PyString>() {
        let text_value = text.to_str()?;
        if !is_member && let Some(found) = plan.named(text_value) {
            return Ok(found);
        }
        if plan.is_char {
            let byte = char_of(name, value).map_err(|_| wrong(name, &expected(), value))?;
            return Ok(Scalar::Unsigned(u64::from(byte)));
        }
        return Err(wrong(name, &expected(), value));
    }
    if value.is_instance_of::<PyInt>() {
        let found = integer(name, value)?.integer().and_then(|found| primitive.of_integer(found));
        return found.ok_or_else(|| wrong(name, &expected(), value));
    }
    Err(wrong(name, &expected(), value))
}

fn set_bits(name: &str, plan: &SetPlan, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    if value.is_instance_of::<PyInt>() {
        return value.extract::<u64>().map_err(|_| wrong(name, "flags", value));
    }
    if value.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!("{name}: expected flags or a list of their names, got text")));
    }
    let mut bits = 0;
    for item in iterated(value, name, "flags or their names")? {
        let item = item?;
        let known = item.extract::<String>().ok().and_then(|choice| plan.by_name.get(&choice).copied());
        bits |= known.ok_or_else(|| wrong(name, "a choice of the set", &item))?;
    }
    Ok(bits)
}
