//! The four messages as tables: which protobuf field stands where in the record (`proto/market.xml`).

use Kind::{Bool, Enum, Id, Message, Text, Ticker, U32, U64};

/// Bytes of the longest block.
pub(super) const BLOCK_LENGTH_MAX: usize = 102;
/// Texts of the message that has the most.
pub(super) const TEXTS_MAX: usize = 6;
/// Enums of the message that has the most.
pub(super) const ENUMS_MAX: usize = 2;
/// The definition's template id; the others' are their type ids.
pub(super) const DEFINITION_ID: u16 = 256;

/// What a field is in protobuf, and its place in the record: an offset in the block, a bit, or the number of a text.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// `uint64`, `int64`.
    U64(usize),
    /// `uint32`.
    U32(usize),
    /// An enum: its byte, and which of the message's enums it is.
    Enum(usize, usize),
    /// `bool`: the bit that is its value.
    Bool(u32),
    /// `string`.
    Text(usize),
    /// `string` that travels as a number where it is one: the text, the number's offset, the bit that says so.
    Id(usize, usize, u32),
    /// The `string` that travels as `symbol_id`.
    Ticker,
    /// A message inside of the message.
    Message(&'static [Field]),
}

/// One protobuf field.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The bit that says that it is there; none where its default value says that it is not.
    pub(super) has: Option<u32>,
}

/// One message.
pub(super) struct Form {
    pub(super) name: &'static str,
    pub(super) template_id: u16,
    pub(super) block_length: usize,
    /// Where the u16 of bits stands; it is the block's end where there is none.
    pub(super) bits_at: usize,
    /// Names of the texts behind the block, in their order.
    pub(super) texts: &'static [&'static str],
    /// In the order of their numbers, in which protobuf writes them.
    pub(super) fields: &'static [Field],
}

const fn field(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, has: None }
}

const fn optional(bit: u32, number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, has: Some(bit) }
}

const fn stamp(at: usize) -> [Field; 3] {
    [
        field(1, "stamp.publisher_epoch", U64(at)),
        field(2, "stamp.topic_sequence", U64(at + 8)),
        field(3, "stamp.published_at", U64(at + 16)),
    ]
}

const FLAGS: &[Field] = &[
    field(1, "flags.is_liquidation", Bool(3)),
    field(2, "flags.is_block_trade", Bool(4)),
    field(3, "flags.maker_post_only", Bool(5)),
    field(4, "flags.is_auction", Bool(6)),
];

static TICK: Form = Form {
    name: "Tick",
    template_id: 4,
    block_length: 102,
    bits_at: 100,
    texts: &["trade_id"],
    fields: &[
        field(1, "trade_id", Id(0, 40, 13)),
        field(2, "ticker", Ticker),
        field(3, "timestamp", U64(8)),
        field(4, "price", U64(16)),
        field(5, "amount", U64(24)),
        optional(9, 6, "quote_amount", U64(56)),
        field(7, "taker_buy", Bool(0)),
        optional(7, 8, "to_close", Bool(1)),
        optional(11, 9, "sequence", U64(48)),
        optional(8, 10, "flags", Message(FLAGS)),
        field(11, "received_at", U64(32)),
        field(12, "price_decimals", U32(88)),
        field(13, "amount_decimals", U32(92)),
        field(14, "backfill", Bool(2)),
        optional(12, 15, "stamp", Message(&stamp(64))),
        optional(10, 16, "quote_decimals", U32(96)),
    ],
};

static BAR: Form = Form {
    name: "OHLC",
    template_id: 5,
    block_length: 95,
    bits_at: 92,
    texts: &["volume", "quote_volume", "buy_volume", "sell_volume", "first_trade_id", "last_trade_id"],
    fields: &[
        field(1, "ticker", Ticker),
        field(2, "timestamp", U64(8)),
        field(3, "period_seconds", U32(80)),
        field(4, "open", U64(16)),
        field(5, "high", U64(24)),
        field(6, "low", U64(32)),
        field(7, "close", U64(40)),
        field(8, "volume", Text(0)),
        optional(2, 9, "quote_volume", Text(1)),
        optional(3, 10, "buy_volume", Text(2)),
        optional(4, 11, "sell_volume", Text(3)),
        optional(5, 12, "trades", U64(48)),
        field(13, "is_final", Bool(0)),
        field(14, "revision", U32(84)),
        optional(8, 15, "stamp", Message(&stamp(56))),
        field(16, "source", Enum(94, 0)),
        optional(6, 17, "first_trade_id", Text(4)),
        optional(7, 18, "last_trade_id", Text(5)),
        field(19, "price_decimals", U32(88)),
        field(20, "incomplete", Bool(1)),
    ],
};

static GAP: Form = Form {
    name: "Gap",
    template_id: 13,
    block_length: 52,
    bits_at: 48,
    texts: &["from_trade_id", "to_trade_id"],
    fields: &[
        field(1, "ticker", Ticker),
        field(2, "from_time", U64(8)),
        field(3, "to_time", U64(16)),
        field(4, "from_trade_id", Text(0)),
        field(5, "to_trade_id", Text(1)),
        field(6, "cause", Enum(50, 0)),
        field(7, "state", Enum(51, 1)),
        optional(0, 15, "stamp", Message(&stamp(24))),
    ],
};

static BEAT: Form = Form {
    name: "Heartbeat",
    template_id: 30,
    block_length: 64,
    bits_at: 60,
    texts: &["source_id", "last_trade_id"],
    fields: &[
        field(1, "source", Enum(62, 0)),
        field(2, "source_id", Text(0)),
        field(3, "epoch", U64(8)),
        field(4, "sent_at", U64(16)),
        optional(0, 5, "ticker", Ticker),
        optional(1, 6, "exchange_time_reached", U64(24)),
        optional(2, 7, "last_trade_id", Text(1)),
        field(8, "state", Enum(63, 1)),
        field(9, "attempt", U32(56)),
        optional(3, 15, "stamp", Message(&stamp(32))),
    ],
};

/// What says a ticker's number: it has no form in protobuf.
pub(super) static DEFINITION: Form = Form {
    name: "SymbolDefinition",
    template_id: DEFINITION_ID,
    block_length: 16,
    bits_at: 16,
    texts: &["ticker"],
    fields: &[],
};

/// The form of a type id or template id that is a message.
pub(super) fn of_message(id: u32) -> Option<&'static Form> {
    match id {
        4 => Some(&TICK),
        5 => Some(&BAR),
        13 => Some(&GAP),
        30 => Some(&BEAT),
        _ => None,
    }
}
