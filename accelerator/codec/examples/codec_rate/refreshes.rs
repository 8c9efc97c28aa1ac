//! A market-data refresh with ten entries.

use std::hint::black_box;
use std::path::Path;

use relay_accel_codec::sbe::{BlockView, DecodeError, EncodeError, Encoder, MessageView, Scalar, Schema, Value};

use crate::fix::{
    Error, MarketDataIncrementalRefreshDecoder, MarketDataIncrementalRefreshEncoder, MdEntryType, MdUpdateAction,
};
use crate::{Figures, time};

const ENTRIES: usize = 10;
const ENTRY_LENGTH: usize = 33;
const LENGTH: usize = 8 + 28 + 4 + ENTRIES * ENTRY_LENGTH;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Entry {
    action: u8,
    kind: u8,
    symbol: [u8; 6],
    price: Option<i64>,
    size: Option<i64>,
    sequence: Option<u32>,
    orders: Option<u32>,
    level: Option<u8>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Refresh {
    request: [u8; 20],
    time: u64,
    entries: [Entry; ENTRIES],
}

fn sample() -> Refresh {
    let entry = |index: usize| Entry {
        action: b'1',
        kind: b'0' + (index % 2) as u8,
        symbol: *b"BTCUSD",
        price: Some(645_001_000_000 + index as i64),
        size: Some(12_500_000),
        sequence: Some(1_000 + index as u32),
        orders: if index.is_multiple_of(3) { None } else { Some(3) },
        level: Some(index as u8),
    };
    let mut request = [0; 20];
    request[..7].copy_from_slice(b"BOOK-17");
    Refresh { request, time: 1_700_000_000_000_000_000, entries: std::array::from_fn(entry) }
}

fn generated(bytes: &[u8]) -> Result<Refresh, Error> {
    let from = MarketDataIncrementalRefreshDecoder::decode(bytes)?;
    let mut to = Refresh {
        request: from.md_req_id().copied().unwrap_or_default(),
        time: from.transact_time(),
        ..Refresh::default()
    };
    for (to, from) in to.entries.iter_mut().zip(from.no_md_entries()) {
        *to = Entry {
            action: from.md_update_action().raw(),
            kind: from.md_entry_type().raw(),
            symbol: *from.symbol(),
            price: from.md_entry_px().mantissa(),
            size: from.md_entry_size().mantissa(),
            sequence: from.rpt_seq(),
            orders: from.number_of_orders(),
            level: from.md_price_level(),
        };
    }
    Ok(to)
}

fn generated_into(from: &Refresh, buffer: &mut [u8]) -> Result<usize, Error> {
    let mut to = MarketDataIncrementalRefreshEncoder::begin(buffer)?;
    to.transact_time(from.time).md_req_id(Some(&from.request))?;
    to.no_md_entries(&from.entries, |to, from| {
        to.md_update_action(MdUpdateAction::from_raw(from.action)).md_entry_type(MdEntryType::from_raw(from.kind));
        to.symbol(&from.symbol)?;
        to.md_entry_px().mantissa(from.price);
        to.md_entry_size().mantissa(from.size);
        to.rpt_seq(from.sequence).number_of_orders(from.orders).md_price_level(from.level);
        Ok(())
    })?;
    to.finish()
}

fn number(value: Value<'_>) -> Option<i64> {
    match value.scalar()? {
        Scalar::Signed(value) => Some(value),
        Scalar::Unsigned(value) => Some(value as i64),
        _ => None,
    }
}

fn text<const N: usize>(value: Value<'_>) -> [u8; N] {
    match value {
        Value::Bytes(bytes) => bytes.try_into().unwrap_or([0; N]),
        _ => [0; N],
    }
}

fn dynamic_entry(from: BlockView<'_>) -> Result<Entry, DecodeError> {
    let read = |name: &str| Ok::<_, DecodeError>(number(from.value(name)?));
    Ok(Entry {
        action: read("MDUpdateAction")?.unwrap_or(0) as u8,
        kind: read("MDEntryType")?.unwrap_or(0) as u8,
        symbol: text(from.value("Symbol")?),
        price: number(from.value("MDEntryPx")?.member("mantissa")?),
        size: number(from.value("MDEntrySize")?.member("mantissa")?),
        sequence: read("RptSeq")?.map(|value| value as u32),
        orders: read("NumberOfOrders")?.map(|value| value as u32),
        level: read("MDPriceLevel")?.map(|value| value as u8),
    })
}

fn dynamic(schema: &Schema, bytes: &[u8]) -> Result<Refresh, DecodeError> {
    let root = MessageView::wrap(schema, bytes)?.root();
    let mut to = Refresh {
        request: text(root.value("MDReqID")?),
        time: number(root.value("TransactTime")?).unwrap_or(0) as u64,
        ..Refresh::default()
    };
    for (to, from) in to.entries.iter_mut().zip(root.group("NoMDEntries")?.entries()) {
        *to = dynamic_entry(from?)?;
    }
    Ok(to)
}

fn dynamic_into(schema: &Schema, from: &Refresh, buffer: &mut [u8]) -> Result<usize, EncodeError> {
    fn or_null(value: Option<u32>) -> Value<'static> {
        value.map_or(Value::Null, |value| Value::Unsigned(value.into()))
    }
    let message = schema.message("MarketDataIncrementalRefresh").expect("it is in the schema");
    let composite = |name: &str| message.block.groups[0].block.fields.iter().find(|field| field.name == name);
    let price = composite("MDEntryPx").expect("it is in the schema");
    let size = composite("MDEntrySize").expect("it is in the schema");
    let mut to = Encoder::begin(schema, message, buffer)?;
    to.put("MDReqID", Value::Bytes(&from.request))?;
    to.put("TransactTime", Value::Unsigned(from.time))?;
    to.begin_group("NoMDEntries", ENTRIES as u64)?;
    for from in &from.entries {
        to.next_entry()?;
        to.put("MDUpdateAction", Value::Unsigned(from.action.into()))?;
        to.put("MDEntryType", Value::Unsigned(from.kind.into()))?;
        to.put("Symbol", Value::Bytes(&from.symbol))?;
        to.slot(price)?.copy_from_slice(&from.price.unwrap_or(i64::MAX).to_le_bytes());
        to.slot(size)?.copy_from_slice(&from.size.unwrap_or(i64::MAX).to_le_bytes());
        to.put("RptSeq", or_null(from.sequence))?;
        to.put("NumberOfOrders", or_null(from.orders))?;
        to.put("MDPriceLevel", or_null(from.level.map(u32::from)))?;
    }
    to.end_group()?;
    to.finish()
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("as long as it is")
}

fn by_hand(bytes: &[u8; LENGTH]) -> Refresh {
    let mut to = Refresh { request: part(bytes, 8), time: u64::from_le_bytes(part(bytes, 28)), ..Refresh::default() };
    for (to, from) in to.entries.iter_mut().zip(bytes[40..].as_chunks::<ENTRY_LENGTH>().0) {
        let price = i64::from_le_bytes(part(from, 8));
        let size = i64::from_le_bytes(part(from, 16));
        let sequence = u32::from_le_bytes(part(from, 24));
        let orders = u32::from_le_bytes(part(from, 28));
        *to = Entry {
            action: from[0],
            kind: from[1],
            symbol: part(from, 2),
            price: (price != i64::MAX).then_some(price),
            size: (size != i64::MAX).then_some(size),
            sequence: (sequence != u32::MAX).then_some(sequence),
            orders: (orders != u32::MAX).then_some(orders),
            level: (from[32] != u8::MAX).then_some(from[32]),
        };
    }
    to
}

fn by_hand_into(from: &Refresh, buffer: &mut [u8; LENGTH]) -> usize {
    buffer[..8].copy_from_slice(&[28, 0, 88, 0, 1, 0, 1, 0]);
    buffer[8..28].copy_from_slice(&from.request);
    buffer[28..36].copy_from_slice(&from.time.to_le_bytes());
    buffer[36..40].copy_from_slice(&[ENTRY_LENGTH as u8, 0, ENTRIES as u8, 0]);
    for (to, from) in buffer[40..].chunks_exact_mut(ENTRY_LENGTH).zip(&from.entries) {
        to[0] = from.action;
        to[1] = from.kind;
        to[2..8].copy_from_slice(&from.symbol);
        to[8..16].copy_from_slice(&from.price.unwrap_or(i64::MAX).to_le_bytes());
        to[16..24].copy_from_slice(&from.size.unwrap_or(i64::MAX).to_le_bytes());
        to[24..28].copy_from_slice(&from.sequence.unwrap_or(u32::MAX).to_le_bytes());
        to[28..32].copy_from_slice(&from.orders.unwrap_or(u32::MAX).to_le_bytes());
        to[32] = from.level.unwrap_or(u8::MAX);
    }
    LENGTH
}

/// The message, and what all ways start from.
pub(crate) struct Works {
    schema: Schema,
    bytes: [u8; LENGTH],
    value: Refresh,
}

impl Works {
    /// Check that all ways give the same.
    pub(crate) fn new() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/fix.xml");
        let schema = Schema::from_path(&path).expect("the platform's own schema");
        let (value, mut bytes, mut other) = (sample(), [0; LENGTH], [0; LENGTH]);
        assert_eq!(generated_into(&value, &mut bytes), Ok(LENGTH));
        assert_eq!(dynamic_into(&schema, &value, &mut other), Ok(LENGTH));
        assert_eq!(bytes, other);
        by_hand_into(&value, &mut other);
        assert_eq!(bytes, other);
        assert_eq!(generated(&bytes).as_ref(), Ok(&value));
        assert_eq!(dynamic(&schema, &bytes).as_ref(), Ok(&value));
        assert_eq!(by_hand(&bytes), value);
        Self { schema, bytes, value }
    }

    /// One round of all ways.
    pub(crate) fn round(&self, figures: &mut Figures, messages: u32) {
        let (schema, bytes, value, mut to) = (&self.schema, &self.bytes, &self.value, [0; LENGTH]);
        time(figures, "refresh decode by hand", messages, || by_hand(black_box(bytes)));
        time(figures, "refresh decode generated", messages, || generated(black_box(&bytes[..])));
        time(figures, "refresh decode dynamic", messages, || dynamic(schema, black_box(&bytes[..])));
        time(figures, "refresh encode by hand", messages, || by_hand_into(black_box(value), black_box(&mut to)));
        time(figures, "refresh encode generated", messages, || generated_into(black_box(value), black_box(&mut to)));
        time(figures, "refresh encode dynamic", messages, || {
            dynamic_into(schema, black_box(value), black_box(&mut to))
        });
    }
}
