//! Layout of messages and groups: offsets, block lengths, dimensions.

use std::collections::HashSet;
use std::sync::Arc;

use super::layout::{
    Block, Composite, Constant, Data, Dimension, Encoded, Field, Group, LengthField, Note, Presence, Type,
};
use super::primitive::Primitive;
use super::types::{BLOCK_LENGTH_MAX, Types};
use super::xml::Element;

const GROUP_DEPTH_MAX: usize = 16;

/// Layout of a message's or a group's inside; `limit` is what the header can say of its block length.
pub(super) fn compile(types: &mut Types<'_>, element: &Element, limit: u64, depth: usize, version: u32) -> Block {
    let mut block = Block { block_length: 0, fields: Vec::new(), groups: Vec::new(), data: Vec::new() };
    let mut names = HashSet::new();
    let mut ids = HashSet::new();
    // A group or data with faults is not kept, yet stands where it stands.
    let (mut group_seen, mut data_seen) = (false, false);
    let mut end = 0_usize;
    if depth > GROUP_DEPTH_MAX {
        types.findings.fault(element, format!("expected groups at most {GROUP_DEPTH_MAX} deep"));
        return block;
    }
    for child in &element.children {
        if !matches!(child.name.as_str(), "field" | "group" | "data") {
            continue;
        }
        let (name, id) = (types.findings.required(child, "name"), types.findings.required(child, "id"));
        let (Some(name), Some(_)) = (name, id) else { continue };
        let id = types.findings.number(child, "id").unwrap_or(0);
        types.findings.check_name(child, name);
        if !names.insert(name) {
            types.findings.fault(child, format!("another member here is named {name}"));
        }
        if !ids.insert(id) {
            types.findings.fault(child, format!("another member here has id {id}"));
        }
        let note = types.findings.note(child, version);
        match child.name.as_str() {
            "field" => {
                if group_seen || data_seen {
                    types.findings.fault(child, "a field stands behind a group or data: move it before them");
                }
                if let Some(field) = field(types, child, note, end) {
                    end = field.offset.saturating_add(if field.presence == Presence::Constant {
                        0
                    } else {
                        field.kind.length()
                    });
                    if end > BLOCK_LENGTH_MAX {
                        types.findings.fault(child, format!("expected a block of at most {BLOCK_LENGTH_MAX} bytes"));
                        return block;
                    }
                    block.fields.push(field);
                }
            }
            "group" => {
                group_seen = true;
                if data_seen {
                    types.findings.fault(child, "a group stands behind data: move it before them");
                }
                let dimension = dimension(types, child);
                // Faults inside are worth telling even where the dimensions are wrong.
                let limit = dimension.as_ref().map_or(u64::MAX, |found| found.block_length.max);
                let inner = compile(types, child, limit, depth + 1, version);
                if let Some(dimension) = dimension {
                    block.groups.push(Group { name: name.to_owned(), id, dimension, block: inner, note });
                }
            }
            _ => {
                data_seen = true;
                if let Some(data) = data(types, child, note) {
                    block.data.push(data);
                }
            }
        }
    }
    block.block_length = end;
    match types.findings.number(element, "blockLength").unwrap_or(0) as usize {
        0 => {}
        said if said < end => {
            types.findings.fault(element, format!("blockLength is {said}, but its fields need {end} bytes"));
        }
        said => block.block_length = said,
    }
    if block.block_length as u64 > limit {
        let reason = format!("a block of {} bytes, but the header can say {limit} at most", block.block_length);
        types.findings.fault(element, reason);
    }
    block
}

fn field(types: &mut Types<'_>, element: &Element, mut note: Note, end: usize) -> Option<Field> {
    let (name, id) = (element.attribute("name")?, element.attribute("id")?.parse().unwrap_or(0));
    let type_name = types.findings.required(element, "type")?;
    if !types.knows(type_name) {
        types.findings.fault(element, format!("there is no type {type_name}"));
    }
    let said = types.findings.presence(element);
    let kind = types.named(type_name)?;
    if let (Some(of_field), Some(of_type)) = (&note.semantic_type, &kind.note().semantic_type)
        && of_field != of_type
    {
        let reason = format!("semanticType is {of_field:?}, that of type {type_name} is {of_type:?}");
        types.findings.fault(element, reason);
    }
    note.since_version = note.since_version.max(kind.note().since_version);
    if is_variable(&kind) {
        let reason = format!("type {type_name} is of variable length: use a data element");
        types.findings.fault(element, reason);
        return None;
    }
    let reference = element.attribute("valueRef");
    let mut constant = None;
    let presence = match (said, &*kind) {
        (_, Type::Encoded(one)) if one.presence == Presence::Constant => Presence::Constant,
        (Some(Presence::Constant), Type::Encoded(one)) => {
            if let Some(reference) = reference {
                constant = Some(types.value_ref(element, reference, one.primitive, None)?);
            } else {
                types.findings.fault(element, "presence is constant: expected valueRef, or a type that is constant");
                return None;
            }
            Presence::Constant
        }
        (Some(Presence::Constant), Type::Enumeration(one)) => {
            let Some(reference) = reference else {
                types.findings.fault(element, "presence is constant: expected valueRef to name the value");
                return None;
            };
            constant = Some(types.value_ref(element, reference, one.encoding, Some(&one.name))?);
            Presence::Constant
        }
        (Some(Presence::Constant), _) => {
            types.findings.fault(element, "a set or a composite cannot be constant");
            return None;
        }
        (Some(Presence::Optional), _) => Presence::Optional,
        (_, Type::Encoded(one)) => one.presence,
        (_, Type::Enumeration(one)) => one.presence,
        _ => Presence::Required,
    };
    if reference.is_some() && constant.is_none() && presence != Presence::Constant {
        types.findings.warn(element, "valueRef without presence constant means nothing");
    }
    let offset = match types.findings.number(element, "offset").unwrap_or(0) as usize {
        0 => end,
        said if said < end => {
            types.findings.fault(element, format!("expected an offset of at least {end}, found {said}"));
            end
        }
        said => said,
    };
    Some(Field { name: name.to_owned(), id, offset, kind, presence, constant, note })
}

fn is_variable(kind: &Type) -> bool {
    match kind {
        Type::Encoded(one) => one.is_variable || one.count == 0 && one.presence != Presence::Constant,
        Type::Composite(one) => one.members.iter().any(|member| is_variable(&member.kind)),
        _ => false,
    }
}

fn composite<'t>(
    types: &mut Types<'_>,
    element: &Element,
    name: &str,
    held: &'t mut Option<Arc<Type>>,
) -> Option<&'t Composite> {
    if !types.knows(name) {
        types.findings.fault(element, format!("there is no type {name}"));
        return None;
    }
    *held = types.named(name);
    match held.as_deref() {
        Some(Type::Composite(one)) => Some(one),
        Some(_) => {
            types.findings.fault(element, format!("expected {name} to be a composite"));
            None
        }
        None => None,
    }
}

/// A number of a composite that counts something.
pub(super) fn length_field(
    types: &mut Types<'_>,
    element: &Element,
    composite: &Composite,
    name: &str,
) -> Option<LengthField> {
    let Some(member) = composite.named(name) else {
        types.findings.fault(element, format!("composite {} has no element {name}", composite.name));
        return None;
    };
    let found = match &*member.kind {
        Type::Encoded(one) if one.presence == Presence::Constant || one.count != 1 || one.is_variable => None,
        Type::Encoded(one) if one.primitive.is_unsigned() => Some((one, one.max.integer()?)),
        // Signed counts are allowed where a schema says that they are not negative.
        Type::Encoded(one) if one.primitive.is_signed() && one.min.integer().is_some_and(|min| min >= 0) => {
            Some((one, one.max.integer()?))
        }
        _ => None,
    };
    let Some((encoded, max)) = found else {
        let reason = format!("expected {name} of {} to be one unsigned number", composite.name);
        types.findings.fault(element, reason);
        return None;
    };
    if max < 0 || max > encoded.primitive.bounds().1 {
        types.findings.fault(element, format!("maxValue {max} of {name} is beyond its type"));
        return None;
    }
    Some(LengthField { offset: member.offset, primitive: encoded.primitive, max: max as u64 })
}

fn dimension(types: &mut Types<'_>, element: &Element) -> Option<Arc<Dimension>> {
    let name = element.attribute("dimensionType").unwrap_or("groupSizeEncoding");
    let mut held = None;
    let found = composite(types, element, name, &mut held)?;
    let block_length = length_field(types, element, found, "blockLength");
    let num_in_group = length_field(types, element, found, "numInGroup");
    let (block_length, num_in_group) = (block_length?, num_in_group?);
    if let Some(Type::Encoded(count)) = found.named("numInGroup").map(|member| &*member.kind) {
        if count.min.integer() > count.max.integer() {
            let reason = format!("minValue of numInGroup in {name} is greater than its maxValue");
            types.findings.fault(element, reason);
        }
        if count.primitive == Primitive::Uint32 && num_in_group.max > i32::MAX as u64 {
            let reason = format!("expected maxValue of numInGroup in {name}, at most {}", i32::MAX);
            types.findings.fault(element, reason);
        }
    }
    Some(Arc::new(Dimension { name: name.to_owned(), length: found.length, block_length, num_in_group }))
}

fn data(types: &mut Types<'_>, element: &Element, note: Note) -> Option<Data> {
    let (name, id) = (element.attribute("name")?, element.attribute("id")?.parse().unwrap_or(0));
    let type_name = types.findings.required(element, "type")?;
    if types.findings.presence(element) == Some(Presence::Optional) {
        types.findings.fault(element, "data cannot be optional: no bytes are an empty value");
    }
    let mut held = None;
    let found = composite(types, element, type_name, &mut held)?;
    let length = length_field(types, element, found, "length");
    let Some(variable) = found.named("varData") else {
        types.findings.fault(element, format!("composite {type_name} has no element varData"));
        return None;
    };
    let (Type::Encoded(bytes), Some(length)) = (&*variable.kind, length) else { return None };
    if bytes.primitive.size() != 1 || found.members.last().is_some_and(|last| last.name != "varData") {
        let reason = format!("expected varData of {type_name} to be its last element, of one byte an item");
        types.findings.fault(element, reason);
        return None;
    }
    if length.max > i32::MAX as u64 {
        let reason = format!("expected maxValue of length in {type_name}, at most {}", i32::MAX);
        types.findings.fault(element, reason);
        return None;
    }
    Some(Data {
        name: name.to_owned(),
        id,
        type_name: type_name.to_owned(),
        length,
        header_length: variable.offset,
        character_encoding: Encoded { is_variable: true, ..bytes.clone() }.text_encoding().map(str::to_owned),
        note,
    })
}

/// Bytes of a constant, for views.
pub(super) fn constant_of(field: &Field) -> Option<&Constant> {
    match (&field.constant, &*field.kind) {
        (Some(constant), _) => Some(constant),
        (None, Type::Encoded(one)) => one.constant.as_ref(),
        _ => None,
    }
}
