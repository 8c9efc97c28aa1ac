//! Decoders of messages, groups and their entries.

use super::super::layout::{Block, Data, Group, Message};
use super::fields::{Place, Slot, getter};
use super::names::{Unique, pascal, snake};
use super::numbers::{grouped, read_length};
use super::text::{fill, plain};
use super::types::Types;
use super::versions::{needed, steps, tail_length_min};

/// Methods of the decoders and encoders themselves.
pub(super) const OWN: [&str; 9] =
    ["at", "begin", "complete", "decode", "finish", "of", "pass_to", "sbe_length", "sbe_version"];

const DECODER: &str = r"
/// $title, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct $nameDecoder<'a> {
    base: &'a [u8; $base],
    block: &'a [u8],
    version: u32,
$members}

impl<'a> $nameDecoder<'a> {
$root    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, $what)?;
        let base = base(block, $what)?;
$checks        Ok((Self { base, block, version, $inits}, rest))
    }

$getters}
";
const ROOT: &str = r"    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = $id;

    /// Look at the message that starts with `bytes`; more bytes may follow it. One walk over groups and data.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = Header::read(bytes)?;
        if header.template_id != u64::from(Self::TEMPLATE_ID) {
            return Err(Error::WrongTemplate { expected: Self::TEMPLATE_ID, actual: header.template_id });
        }
        Self::of(&header)
    }

    #[inline]
    fn of(header: &Header<'a>) -> Result<Self, Error> {
        let (mut found, rest) = Self::at(header.rest, header.block_length, header.version)?;
        found.length = header.bytes.len() - rest.len();
        Ok(found)
    }

    /// Bytes of the message, header included, as far as the schema knows it.
    #[inline]
    pub fn sbe_length(&self) -> usize {
        self.length
    }

    /// Version of the schema that wrote the message.
    #[inline]
    pub fn sbe_version(&self) -> u32 {
        self.version
    }

";
const GROUP: &str = r"
/// Entries of group `$title`.
#[derive(Clone, Debug)]
pub struct $nameGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> $nameGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
$absent        let (head, rest) = chunk::<$head>(rest, $what)?;
        let (entry_length, count) = ($entry_length, $count);
        let count = counted(rest, entry_length.saturating_add($tail_min), count, $what)?;
$walk        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for $nameGroup<'a> {
    type Item = $nameDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = $nameDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for $nameGroup<'_> {}
";
const FIXED_WALK: &str = r"        if count > 0 {
            $nameDecoder::at(rest, entry_length, version)?;
        }
        let (_, behind) = take(rest, entry_length.saturating_mul(count as u64), $what)?;
";
const WALK: &str = r"        let mut behind = rest;
        for _ in 0..count {
            behind = $nameDecoder::at(behind, entry_length, version)?.1;
        }
";

/// The decoder of a message, with those of its groups.
pub(super) fn message(types: &mut Types, message: &Message, named: &Named<'_>) -> String {
    let root = fill(ROOT, &[("id", &grouped(message.id.into()))]);
    let title = format!("Message `{}`", plain(&message.name));
    decoder(types, named, &message.name, &title, &root)
}

/// A block with the names of its decoder and encoder, and the same of its groups.
pub(super) struct Named<'s> {
    pub(super) block: &'s Block,
    pub(super) name: String,
    pub(super) groups: Vec<Named<'s>>,
}

impl<'s> Named<'s> {
    pub(super) fn of(types: &mut Types, block: &'s Block, name: String) -> Self {
        let mut inner = |group: &'s Group| {
            let wish = format!("{name}{}", pascal(&group.name));
            let claimed = types.unique.claim(&wish, &["Decoder", "Encoder", "Group"]);
            Self::of(types, &group.block, claimed)
        };
        let groups = block.groups.iter().map(&mut inner).collect();
        Self { block, name, groups }
    }
}

/// Methods of a block's groups and data, in their order; fields were named before.
pub(super) fn tail_methods(block: &Block, unique: &mut Unique) -> Vec<String> {
    let groups = block.groups.iter().map(|group| &group.name);
    groups.chain(block.data.iter().map(|data| &data.name)).map(|name| unique.claim(&snake(name), &[""])).collect()
}

fn decoder(types: &mut Types, named: &Named<'_>, schema_name: &str, title: &str, root: &str) -> String {
    let (block, name) = (named.block, &named.name);
    let mut unique = Unique::reserving(&OWN);
    let place = Place { fixed: "self.base", whole: "self.block" };
    let slots: Vec<Slot<'_>> = block.fields.iter().map(|field| Slot::of_field(field, &mut unique)).collect();
    let mut getters: String = slots.iter().map(|slot| getter(types, slot, &place)).collect();
    let methods = tail_methods(block, &mut unique);
    let what = format!("{schema_name:?}");
    let (mut members, mut checks, mut inits) = (String::new(), short_checks(block, &what), String::new());
    for (index, (group, inner)) in block.groups.iter().zip(&named.groups).enumerate() {
        let group_name = &inner.name;
        members += &format!("    group_{index}: {group_name}Group<'a>,\n");
        checks += &format!("        let (group_{index}, rest) = {group_name}Group::at(rest, version)?;\n");
        inits += &format!("group_{index}, ");
        let (method, title, id) = (&methods[index], plain(&group.name), group.id);
        getters += &format!(
            "    /// Entries of group `{title}`, id {id}.\n    #[inline]\n    pub fn {method}(&self) -> {group_name}Group<'a> \
             {{\n        self.group_{index}.clone()\n    }}\n\n"
        );
    }
    for (index, (data, method)) in block.data.iter().zip(&methods[block.groups.len()..]).enumerate() {
        members += &format!("    data_{index}: &'a [u8],\n");
        checks += &data_check(types, data, index);
        inits += &format!("data_{index}, ");
        let (title, id) = (plain(&data.name), data.id);
        getters += &format!(
            "    /// Data `{title}`, id {id}.\n    #[inline]\n    pub fn {method}(&self) -> &'a [u8] {{\n        \
             self.data_{index}\n    }}\n\n"
        );
    }
    if !root.is_empty() {
        members += "    length: usize,\n";
        inits += "length: 0, ";
    }
    let values = [
        ("title", title),
        ("name", name),
        ("base", &needed(block, 0).to_string()),
        ("members", &members),
        ("root", root),
        ("what", &what),
        ("checks", &checks),
        ("inits", &(inits.trim_end_matches(", ").to_owned() + " ")),
        ("getters", &getters),
    ];
    let groups = block.groups.iter().zip(&named.groups);
    fill(DECODER, &values) + &groups.map(|(layout, inner)| group(types, layout, inner)).collect::<String>()
}

fn short_checks(block: &Block, what: &str) -> String {
    let check = |(version, needed): (u32, usize)| {
        format!(
            "        if version >= {version} && block.len() < {needed} {{\n            return Err(Error::ShortBlock {{ \
             what: {what}, needed: {needed}, length: block.len() }});\n        }}\n"
        )
    };
    steps(block).into_iter().map(check).collect()
}

fn data_check(types: &Types, data: &Data, index: usize) -> String {
    let (what, head, since) = (format!("{:?}", data.name), data.header_length, data.note.since_version);
    let length = read_length(data.length, "head", types.order);
    if since == 0 {
        return format!(
            "        let (head, rest) = chunk::<{head}>(rest, {what})?;\n        let (data_{index}, rest) = take(rest, \
             {length}, {what})?;\n"
        );
    }
    format!(
        "        let (data_{index}, rest) = if version < {since} {{\n            (&[][..], rest)\n        }} else {{\n            \
         let (head, rest) = chunk::<{head}>(rest, {what})?;\n            take(rest, {length}, {what})?\n        }};\n"
    )
}

fn group(types: &mut Types, group: &Group, named: &Named<'_>) -> String {
    let name = &named.name;
    let what = format!("{:?}", group.name);
    let (dimension, since) = (&group.dimension, group.note.since_version);
    let absent = format!(
        "        if version < {since} {{\n            return Ok((Self {{ bytes: &[], count: 0, entry_length: 0, version }}, \
         rest));\n        }}\n"
    );
    let walk = if group.block.is_fixed() { FIXED_WALK } else { WALK };
    let text = fill(
        GROUP,
        &[
            ("title", &plain(&group.name)),
            ("name", name),
            ("absent", if since == 0 { "" } else { &absent }),
            ("head", &dimension.length.to_string()),
            ("what", &what),
            ("entry_length", &read_length(dimension.block_length, "head", types.order)),
            ("count", &read_length(dimension.num_in_group, "head", types.order)),
            ("tail_min", &tail_length_min(&group.block)),
            ("walk", &fill(walk, &[("name", name), ("what", &what)])),
        ],
    );
    let title = format!("An entry of group `{}`", plain(&group.name));
    text + &decoder(types, named, &group.name, &title, "")
}
