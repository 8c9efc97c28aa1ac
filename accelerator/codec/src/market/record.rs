//! The record: version byte, header of SBE, block, texts; their places checked once, then read.

use super::fault::{MarketError, Problem, problem};
use super::forms::{self, DEFINITION, DEFINITION_ID, Form, TEXTS_MAX};
use super::protobuf::utf8;
use super::writing;

/// Before each record.
pub(super) const VERSION: u8 = 2;
/// Of the texts, each.
pub(super) const TEXT_LENGTH_MAX: usize = 65_534;
const SCHEMA_ID: u16 = 2;
const BLOCK_AT: usize = 9;

/// What a record is, before its ticker is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head<'a> {
    /// A message.
    Message {
        /// 4, 5, 13 or 30.
        type_id: u8,
        /// Of a definition before; 0 for the empty ticker.
        symbol_id: u64,
    },
    /// From here on a number means a ticker.
    Definition {
        /// The number.
        symbol_id: u64,
        /// The publisher's.
        epoch: u64,
        /// The ticker.
        ticker: &'a str,
    },
}

/// A record whose lengths and texts are right.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub(super) form: &'static Form,
    pub(super) texts: [&'a str; TEXTS_MAX],
    block: &'a [u8],
}

impl<'a> Record<'a> {
    /// Look at a record; bytes behind it, and at the end of a longer block, are passed over.
    ///
    /// # Errors
    /// [`MarketError::Record`].
    pub fn new(record: &'a [u8]) -> Result<Self, MarketError> {
        Self::checked(record).map_err(MarketError::Record)
    }

    /// What it is.
    pub fn head(&self) -> Head<'a> {
        let (symbol_id, template_id) = (self.u64(0), self.form.template_id);
        if template_id == DEFINITION_ID {
            return Head::Definition { symbol_id, epoch: self.u64(8), ticker: self.texts[0] };
        }
        Head::Message { type_id: template_id as u8, symbol_id }
    }

    /// Append its message in protobuf, the very bytes that protobuf writes for an equal message.
    ///
    /// # Errors
    /// [`MarketError::Record`]: a definition, or an enum that is null; `out` is as it was then.
    pub fn write_protobuf(&self, ticker: &str, out: &mut Vec<u8>) -> Result<(), MarketError> {
        if self.form.template_id == DEFINITION_ID {
            let definition = problem("template_id", 3, "4, 5, 13 or 30", DEFINITION_ID.into());
            return Err(MarketError::Record(definition));
        }
        writing::convert(self, ticker, out).map_err(MarketError::Record)
    }

    fn checked(record: &'a [u8]) -> Result<Self, Problem> {
        let (form, block_length) = header(record)?;
        if block_length < form.block_length {
            return Err(problem("block_length", 1, "the length of the message's fields, or more", block_length));
        }
        let block = record.get(BLOCK_AT..BLOCK_AT + block_length);
        let short = || problem(form.name, BLOCK_AT, "as many bytes as block_length says", record.len() - BLOCK_AT);
        let block = block.ok_or_else(short)?;
        let (mut texts, mut at) = ([""; TEXTS_MAX], BLOCK_AT + block_length);
        for (text, name) in texts.iter_mut().zip(form.texts) {
            *text = text_at(record, name, &mut at)?;
        }
        Ok(Self { form, texts, block })
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    pub(super) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    pub(super) fn u8(&self, at: usize) -> u8 {
        self.block[at]
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.block[at..at + N]);
        bytes
    }
}

fn header(record: &[u8]) -> Result<(&'static Form, usize), Problem> {
    let Some((&[version, l0, l1, t0, t1, s0, s1, _, _], _)) = record.split_first_chunk::<BLOCK_AT>() else {
        return Err(problem("header", 0, "9 bytes", record.len()));
    };
    if version != VERSION {
        return Err(problem("version", 0, "2", version.into()));
    }
    let schema_id = u16::from_le_bytes([s0, s1]);
    if schema_id != SCHEMA_ID {
        return Err(problem("schema_id", 5, "2", schema_id.into()));
    }
    let template_id = u16::from_le_bytes([t0, t1]);
    let form = if template_id == DEFINITION_ID { Some(&DEFINITION) } else { forms::of_message(template_id.into()) };
    let form = form.ok_or_else(|| problem("template_id", 3, "4, 5, 13, 30 or 256", template_id.into()))?;
    Ok((form, u16::from_le_bytes([l0, l1]).into()))
}

fn text_at<'a>(record: &'a [u8], name: &'static str, at: &mut usize) -> Result<&'a str, Problem> {
    let rest = &record[*at..];
    let short = || problem(name, *at, "a length of 2 bytes and as many bytes as it says", record.len() - *at);
    let (length, rest) = rest.split_first_chunk().ok_or_else(short)?;
    let bytes = rest.get(..u16::from_le_bytes(*length).into()).ok_or_else(short)?;
    let begin = *at + length.len();
    *at = begin + bytes.len();
    utf8(name, bytes, begin)
}

/// Append a record.
///
/// # Errors
/// A text is too long; nothing was written then.
pub(super) fn put(form: &Form, block: &[u8], texts: &[&str], out: &mut Vec<u8>) -> Result<(), MarketError> {
    let mut at = BLOCK_AT + block.len();
    for (text, name) in texts.iter().zip(form.texts) {
        if text.len() > TEXT_LENGTH_MAX {
            let too_long = problem(name, at, "at most 65,534 bytes", text.len());
            return Err(MarketError::Unfit(form.name, too_long));
        }
        at += 2 + text.len();
    }
    out.reserve(at);
    out.push(VERSION);
    for number in [block.len() as u16, form.template_id, SCHEMA_ID, 0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(block);
    for text in &texts[..form.texts.len()] {
        out.extend_from_slice(&(text.len() as u16).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    Ok(())
}
