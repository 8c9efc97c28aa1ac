//! A Rust module for a schema: typed decoders over `&[u8]`, typed encoders over `&mut [u8]`.
//!
//! Every offset, length, null value and version is a constant of the module's text. A decoder checks the whole structure of
//! its message once, so that none of its getters can fail; an encoder has each block in its hands before it writes into it.

#![expect(clippy::format_push_string, reason = "text that is made once reads better this way")]

mod blocks;
mod fields;
mod names;
mod numbers;
mod text;
mod types;
mod versions;
mod writers;

use super::layout::{LengthField, Message, Schema};
use blocks::Named;
use names::{Unique, pascal};
use text::{fill, plain};
use types::Types;

const RUNTIME: &str = include_str!("runtime.rs");
const HEAD: &str = r#"//! Messages of schema `$package`, id $id, version $version, written by `relay sbe generate --language rust`.
//!
//! Decoders check a message's structure once and read its values without another check; encoders write groups and data in
//! the schema's order. Nothing panics, nothing is allocated, nothing but `core` is needed.

#![allow(
    dead_code,
    unreachable_pub,
    unused_variables,
    clippy::pedantic,
    clippy::enum_variant_names,
    clippy::large_enum_variant,
    clippy::len_without_is_empty,
    clippy::should_implement_trait,
    clippy::wrong_self_convention,
    reason = "names and sizes are the schema's, and not every schema uses every part"
)]

/// Id of the schema.
pub const SCHEMA_ID: u32 = $id;
/// Version of the schema that encoders write.
pub const SCHEMA_VERSION: u32 = $version;

$header
"#;
const HEADER: &str = r"/// What stands before every message.
struct Header<'a> {
    template_id: u64,
    version: u32,
    block_length: u64,
    bytes: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let (head, rest) = chunk::<$length>(bytes, $name)?;
        let schema_id = $schema_id;
        if schema_id != u64::from(SCHEMA_ID) {
            return Err(Error::WrongSchema { expected: SCHEMA_ID, actual: schema_id });
        }
        let version = u32::try_from($version).unwrap_or(u32::MAX);
        Ok(Self { template_id: $template_id, version, block_length: $block_length, bytes, rest })
    }
}
";
const MESSAGE: &str = r"/// Any message of the schema.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Message<'a> {
$variants}

impl<'a> Message<'a> {
    /// Look at the message that starts with `bytes`, by its template id; more bytes may follow it.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = Header::read(bytes)?;
        match header.template_id {
$arms            actual => Err(Error::UnknownTemplate { actual }),
        }
    }
}
";

/// The text of a Rust module (edition 2021 or later, Rust 1.83 or later) with decoders and encoders of all messages.
///
/// It needs nothing but `core`. Two schemas make two modules. The text depends on nothing but the schema.
pub fn rust_module(schema: &Schema) -> String {
    let mut types = Types::of(schema);
    let named: Vec<(&Message, String)> = schema
        .messages
        .iter()
        .map(|message| (message, types.unique.claim(&pascal(&message.name), &["Decoder", "Encoder"])))
        .collect();
    let mut bodies = String::new();
    for (message, name) in &named {
        let block = Named::of(&mut types, &message.block, name.clone());
        bodies += &blocks::message(&mut types, message, &block);
        bodies += &writers::message(&mut types, schema, message, &block);
    }
    let head = fill(
        HEAD,
        &[
            ("package", &plain(&schema.package)),
            ("id", &numbers::grouped(schema.id.into())),
            ("version", &numbers::grouped(schema.version.into())),
            ("header", &header(schema)),
        ],
    );
    [head, message_enum(&named), types.text, bodies, RUNTIME.to_owned()].join("")
}

fn header(schema: &Schema) -> String {
    let read = |field: LengthField| numbers::read_length(field, "head", schema.byte_order);
    let header = &schema.header;
    fill(
        HEADER,
        &[
            ("length", &header.length.to_string()),
            ("name", &format!("{:?}", header.name)),
            ("schema_id", &read(header.schema_id)),
            ("version", &read(header.version)),
            ("template_id", &read(header.template_id)),
            ("block_length", &read(header.block_length)),
        ],
    )
}

fn message_enum(named: &[(&Message, String)]) -> String {
    let mut unique = Unique::default();
    let (mut variants, mut arms) = (String::new(), String::new());
    for (message, name) in named {
        let variant = unique.claim(&pascal(&message.name), &[""]);
        let id = numbers::grouped(message.id.into());
        variants += &format!("    /// Template id {id}.\n    {variant}({name}Decoder<'a>),\n");
        arms += &format!("            {id} => Ok(Self::{variant}({name}Decoder::of(&header)?)),\n");
    }
    fill(MESSAGE, &[("variants", &variants), ("arms", &arms)])
}
