//! The compiled schema: plain values that say where each byte is.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::compile;
use super::fault::{Fault, SchemaFaults};
use super::primitive::{Primitive, Scalar};
use super::xml::{self, Folder, NoIncludes, Source};

/// Byte order of all numbers of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ByteOrder {
    Little,
    Big,
}

/// Whether a value is on the wire, and whether it may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Presence {
    Required,
    Optional,
    Constant,
}

impl Presence {
    /// Name in a schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
            Self::Constant => "constant",
        }
    }
}

/// What a schema says about an element for people and other programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Attribute `description`.
    pub description: Option<String>,
    /// Attribute `semanticType`.
    pub semantic_type: Option<String>,
    /// First version of the schema that has it.
    pub since_version: u32,
    /// Version from which on it should not be used, 0 for none.
    pub deprecated: u32,
    /// Attributes of other namespaces, and `timeUnit`, `epoch`: name and value.
    pub attributes: Vec<(String, String)>,
}

/// A constant value.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Constant {
    Scalar(Scalar),
    Text(String),
}

/// A primitive, an array of primitives, or text of fixed length.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// Name of the type.
    pub name: String,
    /// Of each item.
    pub primitive: Primitive,
    /// Items; 1 for a single value.
    pub count: usize,
    /// Presence that the type itself says.
    pub presence: Presence,
    /// Value of a constant.
    pub constant: Option<Constant>,
    /// Least value.
    pub min: Scalar,
    /// Greatest value.
    pub max: Scalar,
    /// Value that means null where presence is optional.
    pub null: Scalar,
    /// Attribute `characterEncoding`.
    pub character_encoding: Option<String>,
    /// Whether it is the variable part of var-data.
    pub is_variable: bool,
    /// See [`Note`].
    pub note: Note,
}

impl Encoded {
    /// Whether the schema says a range narrower than that of the primitive.
    pub fn says_range(&self) -> bool {
        !self.min.same(self.primitive.min()) || !self.max.same(self.primitive.max())
    }

    /// Encoding of the text that it holds: a `char` array without one is ASCII. None: it holds numbers.
    pub fn text_encoding(&self) -> Option<&str> {
        match self.primitive {
            Primitive::Char => Some(self.character_encoding.as_deref().unwrap_or("US-ASCII")),
            Primitive::Uint8 if self.count != 1 || self.is_variable => self.character_encoding.as_deref(),
            _ => None,
        }
    }
}

/// One value of an enum.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidValue {
    /// Its name.
    pub name: String,
    /// Value on the wire.
    pub value: Scalar,
    /// See [`Note`].
    pub note: Note,
}

/// An enum.
#[derive(Clone, Debug, PartialEq)]
pub struct Enumeration {
    /// Name of the type.
    pub name: String,
    /// Type on the wire.
    pub encoding: Primitive,
    /// Value that means null.
    pub null: Scalar,
    /// Presence that the type itself says.
    pub presence: Presence,
    /// In the order of the schema.
    pub values: Vec<ValidValue>,
    /// See [`Note`].
    pub note: Note,
}

impl Enumeration {
    /// The value of this name.
    pub fn named(&self, name: &str) -> Option<&ValidValue> {
        self.values.iter().find(|one| one.name == name)
    }
}

/// One bit of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// 0 is the least significant.
    pub bit: u32,
    /// See [`Note`].
    pub note: Note,
}

/// A set of choices, a bit each.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Name of the type.
    pub name: String,
    /// Type on the wire.
    pub encoding: Primitive,
    /// In the order of the schema.
    pub choices: Vec<Choice>,
    /// See [`Note`].
    pub note: Note,
}

/// One element of a composite.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// From the start of the composite, in bytes.
    pub offset: usize,
    /// Its type.
    pub kind: Arc<Type>,
    /// See [`Note`].
    pub note: Note,
}

/// Elements that lie one behind the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    /// Name of the type.
    pub name: String,
    /// In the order of the schema.
    pub members: Vec<Member>,
    /// In bytes, padding included.
    pub length: usize,
    /// Primitive elements, nested ones included.
    pub leaf_count: usize,
    /// See [`Note`].
    pub note: Note,
}

impl Composite {
    /// The member of this name.
    pub fn named(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|one| one.name == name)
    }
}

/// Any type.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Type {
    Encoded(Encoded),
    Enumeration(Enumeration),
    Options(Options),
    Composite(Composite),
}

impl Type {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Encoded(one) => &one.name,
            Self::Enumeration(one) => &one.name,
            Self::Options(one) => &one.name,
            Self::Composite(one) => &one.name,
        }
    }

    /// Bytes on the wire; 0 for constants and for the variable part of var-data.
    pub fn length(&self) -> usize {
        match self {
            Self::Encoded(one) if one.presence == Presence::Constant || one.is_variable => 0,
            Self::Encoded(one) => one.primitive.size().saturating_mul(one.count),
            Self::Enumeration(one) => one.encoding.size(),
            Self::Options(one) => one.encoding.size(),
            Self::Composite(one) => one.length,
        }
    }

    /// See [`Note`].
    pub fn note(&self) -> &Note {
        match self {
            Self::Encoded(one) => &one.note,
            Self::Enumeration(one) => &one.note,
            Self::Options(one) => &one.note,
            Self::Composite(one) => &one.note,
        }
    }
}

/// A field of a message or a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: u32,
    /// From the start of the block, in bytes.
    pub offset: usize,
    /// Its type.
    pub kind: Arc<Type>,
    /// What field and type say together.
    pub presence: Presence,
    /// The value that `valueRef` names.
    pub constant: Option<Constant>,
    /// See [`Note`]; `since_version` is the later one of field and type.
    pub note: Note,
}

/// An unsigned number in a header, a group's dimensions or var-data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthField {
    /// From the start of its composite, in bytes.
    pub offset: usize,
    /// Type on the wire.
    pub primitive: Primitive,
    /// Greatest value.
    pub max: u64,
}

/// Layout of a group's dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Name of the composite.
    pub name: String,
    /// In bytes.
    pub length: usize,
    /// Bytes of an entry's block.
    pub block_length: LengthField,
    /// Number of entries.
    pub num_in_group: LengthField,
}

/// A repeating group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: u32,
    /// Its dimensions.
    pub dimension: Arc<Dimension>,
    /// Of one entry.
    pub block: Block,
    /// See [`Note`].
    pub note: Note,
}

/// Data of variable length.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: u32,
    /// Name of its composite.
    pub type_name: String,
    /// Its length's number.
    pub length: LengthField,
    /// Bytes from the start of the composite to the first of the data.
    pub header_length: usize,
    /// Encoding where it is text.
    pub character_encoding: Option<String>,
    /// See [`Note`].
    pub note: Note,
}

/// Fields of fixed place, then groups, then data.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// In bytes, as this version of the schema writes it.
    pub block_length: usize,
    /// In the order of the schema.
    pub fields: Vec<Field>,
    /// In the order of the schema.
    pub groups: Vec<Group>,
    /// In the order of the schema.
    pub data: Vec<Data>,
}

impl Block {
    /// Whether entries of this block, without groups and data, lie at equal distances.
    pub fn is_fixed(&self) -> bool {
        self.groups.is_empty() && self.data.is_empty()
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its name.
    pub name: String,
    /// Template id.
    pub id: u32,
    /// Root of the message.
    pub block: Block,
    /// See [`Note`].
    pub note: Note,
}

/// Layout of the message header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Name of the composite.
    pub name: String,
    /// In bytes.
    pub length: usize,
    /// Bytes of the root block.
    pub block_length: LengthField,
    /// Which message.
    pub template_id: LengthField,
    /// Which schema.
    pub schema_id: LengthField,
    /// Version of the schema that wrote the message.
    pub version: LengthField,
    /// Number of groups in the root, where the header has it.
    pub group_count: Option<LengthField>,
    /// Number of data in the root, where the header has it.
    pub data_count: Option<LengthField>,
}

/// A checked schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// Attribute `package`.
    pub package: String,
    /// Schema id.
    pub id: u32,
    /// Its version.
    pub version: u32,
    /// Attribute `semanticVersion`.
    pub semantic_version: Option<String>,
    /// Attribute `description`.
    pub description: Option<String>,
    /// Of all numbers.
    pub byte_order: ByteOrder,
    /// Of every message.
    pub header: Header,
    /// Types that stand by themselves, in the order of the schema.
    pub types: Vec<Arc<Type>>,
    /// In the order of the schema.
    pub messages: Vec<Message>,
    /// What is allowed but doubtful.
    pub warnings: Vec<Fault>,
    pub(super) by_template: HashMap<u32, usize>,
}

impl Schema {
    /// Compile a schema of one text; it includes nothing.
    ///
    /// # Errors
    /// All faults that were found, at most 100.
    pub fn from_text(text: &str) -> Result<Self, SchemaFaults> {
        Self::compile("<schema>", text.as_bytes(), &NoIncludes)
    }

    /// Compile a file; it may include files of its folder and below.
    ///
    /// # Errors
    /// All faults that were found, at most 100; an unreadable file is one.
    pub fn from_path(path: &Path) -> Result<Self, SchemaFaults> {
        let (folder, name) = Folder::around(path)?;
        let bytes = folder.bytes(&name)?;
        Self::compile(&name, &bytes, &folder)
    }

    /// Compile bytes that `name` names in faults, with a source for what they include.
    ///
    /// # Errors
    /// All faults that were found, at most 100.
    pub fn compile(name: &str, bytes: &[u8], source: &dyn Source) -> Result<Self, SchemaFaults> {
        compile::compile(&xml::read(name, bytes, source)?)
    }

    /// The message of this name.
    pub fn message(&self, name: &str) -> Option<&Message> {
        self.messages.iter().find(|one| one.name == name)
    }

    /// The message of this template id.
    pub fn by_template(&self, id: u32) -> Option<&Message> {
        self.by_template.get(&id).map(|index| &self.messages[*index])
    }
}
