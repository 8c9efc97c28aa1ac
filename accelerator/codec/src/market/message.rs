//! Protobuf's bytes into the values of a record, field by field: the last one wins, messages inside are merged.

use super::fault::{MarketError, Problem, problem};
use super::forms::{self, BLOCK_LENGTH_MAX, ENUMS_MAX, Field, Form, Kind, TEXTS_MAX};
use super::protobuf::{DELIMITED, Reader, VARINT};
use super::record;

const ENUM_MAX: i32 = 254;

/// A message that was read from protobuf.
#[derive(Clone)]
pub struct Message<'a> {
    form: &'static Form,
    block: [u8; BLOCK_LENGTH_MAX],
    bits: u16,
    texts: [&'a str; TEXTS_MAX],
    ticker: &'a str,
    /// Numbers that may not fit their byte, where a later one replaces them.
    enums: [i32; ENUMS_MAX],
}

impl Kind {
    fn wire(self) -> u32 {
        match self {
            Self::U64(_) | Self::U32(_) | Self::Enum(..) | Self::Bool(_) => VARINT,
            Self::Text(_) | Self::Id(..) | Self::Ticker | Self::Message(_) => DELIMITED,
        }
    }
}

/// The field of a number. Writers keep their order: the search begins behind the one before.
fn field_of(fields: &'static [Field], number: u32, next: &mut usize) -> Option<&'static Field> {
    let (before, behind) = fields.split_at(*next);
    let at = behind
        .iter()
        .position(|field| field.number == number)
        .map(|at| at + *next)
        .or_else(|| before.iter().position(|field| field.number == number))?;
    *next = at + 1;
    Some(&fields[at])
}

impl<'a> Message<'a> {
    /// Read a message; its type id is not among the bytes.
    ///
    /// # Errors
    /// [`MarketError::NoForm`], [`MarketError::Protobuf`].
    pub fn new(type_id: u32, protobuf: &'a [u8]) -> Result<Self, MarketError> {
        let form = forms::of_message(type_id).ok_or(MarketError::NoForm(type_id))?;
        let (block, texts, enums) = ([0; BLOCK_LENGTH_MAX], [""; TEXTS_MAX], [0; ENUMS_MAX]);
        let mut message = Self { form, block, bits: 0, texts, ticker: "", enums };
        let read = message.fields(form.fields, &mut Reader::new(protobuf));
        read.map_err(|problem| MarketError::Protobuf(form.name, problem))?;
        Ok(message)
    }

    /// Its ticker; empty where it has none.
    pub fn ticker(&self) -> &'a str {
        self.ticker
    }

    /// Append its record; fields that are unknown are left out.
    ///
    /// # Errors
    /// [`MarketError::Unfit`]; `out` is as it was then.
    pub fn write_sbe(mut self, symbol_id: u64, out: &mut Vec<u8>) -> Result<(), MarketError> {
        let form = self.form;
        self.number(0, symbol_id);
        self.settle().map_err(|problem| MarketError::Unfit(form.name, problem))?;
        self.block[form.bits_at..form.bits_at + 2].copy_from_slice(&self.bits.to_le_bytes());
        record::put(form, &self.block[..form.block_length], &self.texts, out)
    }

    fn fields(&mut self, fields: &'static [Field], reader: &mut Reader<'a>) -> Result<(), Problem> {
        let mut next = 0;
        while !reader.is_done() {
            let tag = reader.tag()?;
            match field_of(fields, tag.number(), &mut next) {
                Some(field) if field.kind.wire() == tag.wire() => self.value(field, reader)?,
                _ => reader.skip(tag)?,
            }
        }
        Ok(())
    }

    fn value(&mut self, field: &'static Field, reader: &mut Reader<'a>) -> Result<(), Problem> {
        if let Some(bit) = field.has {
            self.bit(bit, true);
        }
        match field.kind {
            Kind::U64(at) => self.number(at, reader.varint()?),
            Kind::U32(at) => self.block[at..at + 4].copy_from_slice(&(reader.varint()? as u32).to_le_bytes()),
            Kind::Enum(_, index) => self.enums[index] = reader.varint()? as i32,
            Kind::Bool(bit) => self.bit(bit, reader.varint()? != 0),
            Kind::Text(index) | Kind::Id(index, ..) => self.texts[index] = reader.text(field.name)?,
            Kind::Ticker => self.ticker = reader.text(field.name)?,
            Kind::Message(fields) => self.fields(fields, &mut reader.nested()?)?,
        }
        Ok(())
    }

    fn number(&mut self, at: usize, value: u64) {
        self.block[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn bit(&mut self, bit: u32, is_set: bool) {
        self.bits = self.bits & !(1 << bit) | u16::from(is_set) << bit;
    }

    /// What depends on the last one of a field: enums that fit their byte, ids that are numbers.
    fn settle(&mut self) -> Result<(), Problem> {
        for field in self.form.fields {
            match field.kind {
                Kind::Enum(at, index) => self.block[at] = enum_byte(field.name, at, self.enums[index])?,
                Kind::Id(index, at, bit) => {
                    if let Some(number) = whole_number(self.texts[index]) {
                        self.number(at, number);
                        self.bit(bit, true);
                        self.texts[index] = "";
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn enum_byte(name: &'static str, at: usize, number: i32) -> Result<u8, Problem> {
    if (0..=ENUM_MAX).contains(&number) {
        return Ok(number as u8);
    }
    Err(Problem { got: number.into(), ..problem(name, at, "an enum's number of 0 to 254", 0) })
}

/// The number that a text is, where the number gives the same text again.
fn whole_number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    // Empty text is no number; one that is too great is none of 64 bits.
    if is_plain { text.parse().ok() } else { None }
}
