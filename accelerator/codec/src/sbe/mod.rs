//! Simple Binary Encoding: a schema is compiled once into a layout; messages are read by views that copy nothing and written
//! by an encoder that keeps the order.
//!
//! ```
//! use relay_accel_codec::sbe::{Encoder, MessageView, Schema, Value};
//!
//! let schema = Schema::from_text(r#"<messageSchema package="p" id="9" version="0">
//!   <types><composite name="messageHeader">
//!     <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
//!     <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
//!   </composite></types>
//!   <message name="Quote" id="1"><field name="price" id="1" type="int64"/></message>
//! </messageSchema>"#)?;
//! let quote = schema.message("Quote").unwrap();
//! let mut buffer = [0; 64];
//! let mut encoder = Encoder::begin(&schema, quote, &mut buffer)?;
//! encoder.put("price", Value::Signed(-5))?;
//! let length = encoder.finish()?;
//! let view = MessageView::wrap(&schema, &buffer[..length])?;
//! assert_eq!(view.root().value("price")?, Value::Signed(-5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod check;
mod compile;
mod encode;
mod fault;
mod framing;
mod generate;
mod layout;
mod primitive;
mod print;
mod types;
mod view;
mod xml;

pub use encode::{EncodeError, Encoder, member_slot, write_value};
pub use fault::{Fault, SchemaFaults};
pub use framing::{FramingError, Sofh};
pub use generate::rust_module;
pub use layout::{
    Block, ByteOrder, Choice, Composite, Constant, Data, Dimension, Encoded, Enumeration, Field, Group, Header,
    LengthField, Member, Message, Note, Options, Presence, Schema, Type, ValidValue,
};
pub use primitive::{Primitive, Scalar};
pub use view::{
    BlockView, DecodeError, Entries, GroupView, MessageView, Tail, Value, ZERO_LENGTH_ENTRIES_MAX, member_bytes,
};
pub use xml::{Folder, NoIncludes, Source};
