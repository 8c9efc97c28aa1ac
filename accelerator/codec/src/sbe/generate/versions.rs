//! How long a block must be in each version that wrote it.

use std::collections::BTreeSet;

use super::super::layout::{Block, Composite, Presence, Type};

/// Bytes of a block that messages of this version have at least, and of version 0 for what is read without a look at the
/// version.
pub(super) fn needed(block: &Block, version: u32) -> usize {
    let present = block.fields.iter().filter(|field| {
        field.note.since_version <= version && field.presence != Presence::Constant && field.kind.length() > 0
    });
    // Of a composite, at least the first byte is there.
    let end = |kind: &Type| match kind {
        Type::Composite(one) => end_of(one, version).max(1),
        other => other.length(),
    };
    present.map(|field| field.offset + end(&field.kind)).max().unwrap_or(0)
}

/// Versions, later than 0, in which a block became longer, and its length then.
pub(super) fn steps(block: &Block) -> Vec<(u32, usize)> {
    let mut versions = BTreeSet::new();
    for field in &block.fields {
        versions.insert(field.note.since_version);
        collect(&field.kind, &mut versions);
    }
    let mut known = needed(block, 0);
    let mut found = Vec::new();
    for version in versions.into_iter().filter(|version| *version > 0) {
        let length = needed(block, version);
        if length > known {
            found.push((version, length));
            known = length;
        }
    }
    found
}

fn end_of(composite: &Composite, version: u32) -> usize {
    let present = composite.members.iter().filter(|member| member.note.since_version <= version);
    let end = |kind: &Type| match kind {
        Type::Composite(one) => end_of(one, version),
        other => other.length(),
    };
    present.map(|member| member.offset + end(&member.kind)).max().unwrap_or(0)
}

fn collect(kind: &Type, versions: &mut BTreeSet<u32>) {
    if let Type::Composite(one) = kind {
        for member in &one.members {
            versions.insert(member.note.since_version);
            collect(&member.kind, versions);
        }
    }
}

/// Fewest bytes of groups and data behind a block, as an expression of `version`.
pub(super) fn tail_length_min(block: &Block) -> String {
    let groups = block.groups.iter().map(|group| (group.note.since_version, group.dimension.length));
    let data = block.data.iter().map(|data| (data.note.since_version, data.header_length));
    let (later, always): (Vec<_>, Vec<_>) = groups.chain(data).partition(|(since, _)| *since > 0);
    let mut terms: Vec<String> =
        later.iter().map(|(since, length)| format!("if version < {since} {{ 0 }} else {{ {length} }}")).collect();
    let always: usize = always.iter().map(|(_, length)| length).sum();
    if always > 0 || terms.is_empty() {
        terms.insert(0, always.to_string());
    }
    terms.join(" + ")
}
