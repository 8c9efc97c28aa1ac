//! From the tree of a schema to its layout; all faults are collected before the schema is refused.

use std::collections::{HashMap, HashSet};

use super::block::{self, length_field};
use super::fault::SchemaFaults;
use super::layout::{ByteOrder, Composite, Header, LengthField, Message, Schema, Type};
use super::types::Types;
use super::xml::Element;

/// The layout of a schema, or its faults.
pub(super) fn compile(root: &Element) -> Result<Schema, SchemaFaults> {
    if root.name != "messageSchema" {
        let reason = "expected messageSchema as the document's element".to_owned();
        return Err(SchemaFaults(vec![root.fault(reason)]));
    }
    let version = root.attribute("version").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut types = Types::of(root, version);
    let package = types.findings.required(root, "package").unwrap_or("").to_owned();
    let id = types.findings.required(root, "id").and_then(|_| types.findings.number(root, "id")).unwrap_or(0);
    types.findings.number(root, "version");
    let byte_order = match root.attribute("byteOrder") {
        None | Some("littleEndian") => ByteOrder::Little,
        Some("bigEndian") => ByteOrder::Big,
        Some(other) => {
            let reason = format!("expected byteOrder littleEndian or bigEndian, found {other:?}");
            types.findings.fault(root, reason);
            ByteOrder::Little
        }
    };
    let compiled = types.compile_all();
    let header_name = root.attribute("headerType").unwrap_or("messageHeader");
    let header = if let Some(Type::Composite(found)) = types.named(header_name).as_deref() {
        header(&mut types, root, found)
    } else {
        let reason = format!("expected a composite {header_name} to head every message, found none that is sound");
        types.findings.fault(root, reason);
        None
    };
    let messages = messages(&mut types, root, header.as_ref(), version);
    if messages.is_empty() {
        types.findings.warn(root, "the schema has no messages");
    }
    let by_template: HashMap<u32, usize> =
        messages.iter().enumerate().map(|(index, message)| (message.id, index)).collect();
    let findings = types.findings;
    match header {
        Some(header) if findings.faults.is_empty() => Ok(Schema {
            package,
            id,
            version,
            semantic_version: root.attribute("semanticVersion").map(str::to_owned),
            description: root.attribute("description").map(str::to_owned),
            byte_order,
            header,
            types: compiled,
            messages,
            warnings: findings.warnings,
            by_template,
        }),
        _ => Err(SchemaFaults(findings.faults)),
    }
}

fn messages(types: &mut Types<'_>, root: &Element, header: Option<&Header>, version: u32) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    let (mut ids, mut names) = (HashSet::new(), HashSet::new());
    for element in root.children.iter().filter(|child| child.name == "message") {
        let (name, id) = (types.findings.required(element, "name"), types.findings.required(element, "id"));
        let (Some(name), Some(_)) = (name, id) else { continue };
        let Some(id) = types.findings.number(element, "id") else { continue };
        types.findings.check_name(element, name);
        let note = types.findings.note(element, version);
        if !ids.insert(id) {
            types.findings.fault(element, format!("another message has id {id}"));
        }
        if !names.insert(name) {
            types.findings.fault(element, format!("another message is named {name}"));
        }
        if let Some(header) = header.filter(|header| u64::from(id) > header.template_id.max) {
            let reason = format!("id {id} is beyond the header's templateId, {}", header.template_id.max);
            types.findings.fault(element, reason);
        }
        let limit = header.map_or(u64::MAX, |header| header.block_length.max);
        let block = block::compile(types, element, limit, 0, version);
        messages.push(Message { name: name.to_owned(), id, block, note });
    }
    messages
}

fn header(types: &mut Types<'_>, root: &Element, composite: &Composite) -> Option<Header> {
    let block_length = length_field(types, root, composite, "blockLength");
    let template_id = length_field(types, root, composite, "templateId");
    let schema_id = length_field(types, root, composite, "schemaId");
    let version = length_field(types, root, composite, "version");
    let mut counted = |name: &str| -> Option<LengthField> {
        composite.named(name)?;
        length_field(types, root, composite, name)
    };
    let (group_count, data_count) = (counted("numGroups"), counted("numVarDataFields"));
    Some(Header {
        name: composite.name.clone(),
        length: composite.length,
        block_length: block_length?,
        template_id: template_id?,
        schema_id: schema_id?,
        version: version?,
        group_count,
        data_count,
    })
}
