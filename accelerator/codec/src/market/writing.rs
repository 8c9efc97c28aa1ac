//! A record into protobuf's bytes, as protobuf itself writes them: in the order of numbers, what has its default left out.

use super::fault::{Problem, problem};
use super::forms::{Field, Kind};
use super::protobuf::{DELIMITED, VARINT, put_tag, put_varint};
use super::record::Record;

const ENUM_NULL: u8 = 255;

/// Append the protobuf message of a record.
pub(super) fn convert(record: &Record<'_>, ticker: &str, out: &mut Vec<u8>) -> Result<(), Problem> {
    for field in record.form.fields {
        if let Kind::Enum(at, _) = field.kind
            && record.u8(at) == ENUM_NULL
        {
            return Err(problem(field.name, at, "an enum's number of 0 to 254", ENUM_NULL.into()));
        }
    }
    let writer = Writer { record, ticker, bits: record.u16(record.form.bits_at) };
    writer.message(record.form.fields, out);
    Ok(())
}

struct Writer<'a> {
    record: &'a Record<'a>,
    ticker: &'a str,
    bits: u16,
}

impl Writer<'_> {
    fn message(&self, fields: &[Field], out: &mut Vec<u8>) {
        for field in fields {
            if field.has.is_none_or(|bit| self.is_set(bit)) {
                self.field(field, out);
            }
        }
    }

    fn field(&self, field: &Field, out: &mut Vec<u8>) {
        match field.kind {
            Kind::U64(at) => number(field, self.record.u64(at), out),
            Kind::U32(at) => number(field, self.record.u32(at).into(), out),
            Kind::Enum(at, _) => number(field, self.record.u8(at).into(), out),
            Kind::Bool(bit) => number(field, self.is_set(bit).into(), out),
            Kind::Id(_, at, bit) if self.is_set(bit) => text(field, &self.record.u64(at).to_string(), out),
            Kind::Text(index) | Kind::Id(index, ..) => text(field, self.record.texts[index], out),
            Kind::Ticker => text(field, self.ticker, out),
            Kind::Message(fields) => {
                put_tag(field.number, DELIMITED, out);
                let at = out.len();
                out.push(0);
                self.message(fields, out);
                // The longest one is a stamp of three numbers: its length is one byte.
                out[at] = (out.len() - at - 1) as u8;
            }
        }
    }

    fn is_set(&self, bit: u32) -> bool {
        self.bits >> bit & 1 == 1
    }
}

fn number(field: &Field, value: u64, out: &mut Vec<u8>) {
    if value != 0 || field.has.is_some() {
        put_tag(field.number, VARINT, out);
        put_varint(value, out);
    }
}

fn text(field: &Field, value: &str, out: &mut Vec<u8>) {
    if !value.is_empty() || field.has.is_some() {
        put_tag(field.number, DELIMITED, out);
        put_varint(value.len() as u64, out);
        out.extend_from_slice(value.as_bytes());
    }
}
