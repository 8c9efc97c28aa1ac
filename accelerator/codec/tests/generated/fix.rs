//! Messages of schema `relay.fix`, id 1, version 1, written by `relay sbe generate --language rust`.
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
pub const SCHEMA_ID: u32 = 1;
/// Version of the schema that encoders write.
pub const SCHEMA_VERSION: u32 = 1;

/// What stands before every message.
struct Header<'a> {
    template_id: u64,
    version: u32,
    block_length: u64,
    bytes: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let (head, rest) = chunk::<8>(bytes, "messageHeader")?;
        let schema_id = u64::from(u16::from_le_bytes(part(head, 4)));
        if schema_id != u64::from(SCHEMA_ID) {
            return Err(Error::WrongSchema { expected: SCHEMA_ID, actual: schema_id });
        }
        let version = u32::try_from(u64::from(u16::from_le_bytes(part(head, 6)))).unwrap_or(u32::MAX);
        Ok(Self { template_id: u64::from(u16::from_le_bytes(part(head, 2))), version, block_length: u64::from(u16::from_le_bytes(part(head, 0))), bytes, rest })
    }
}

/// Any message of the schema.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Message<'a> {
    /// Template id 68.
    NewOrderSingle(NewOrderSingleDecoder<'a>),
    /// Template id 70.
    OrderCancelRequest(OrderCancelRequestDecoder<'a>),
    /// Template id 71.
    OrderCancelReplaceRequest(OrderCancelReplaceRequestDecoder<'a>),
    /// Template id 56.
    ExecutionReport(ExecutionReportDecoder<'a>),
    /// Template id 48.
    Heartbeat(HeartbeatDecoder<'a>),
    /// Template id 65.
    Logon(LogonDecoder<'a>),
    /// Template id 53.
    Logout(LogoutDecoder<'a>),
    /// Template id 88.
    MarketDataIncrementalRefresh(MarketDataIncrementalRefreshDecoder<'a>),
    /// Template id 87.
    MarketDataSnapshotFullRefresh(MarketDataSnapshotFullRefreshDecoder<'a>),
    /// Template id 105.
    MassQuote(MassQuoteDecoder<'a>),
}

impl<'a> Message<'a> {
    /// Look at the message that starts with `bytes`, by its template id; more bytes may follow it.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = Header::read(bytes)?;
        match header.template_id {
            68 => Ok(Self::NewOrderSingle(NewOrderSingleDecoder::of(&header)?)),
            70 => Ok(Self::OrderCancelRequest(OrderCancelRequestDecoder::of(&header)?)),
            71 => Ok(Self::OrderCancelReplaceRequest(OrderCancelReplaceRequestDecoder::of(&header)?)),
            56 => Ok(Self::ExecutionReport(ExecutionReportDecoder::of(&header)?)),
            48 => Ok(Self::Heartbeat(HeartbeatDecoder::of(&header)?)),
            65 => Ok(Self::Logon(LogonDecoder::of(&header)?)),
            53 => Ok(Self::Logout(LogoutDecoder::of(&header)?)),
            88 => Ok(Self::MarketDataIncrementalRefresh(MarketDataIncrementalRefreshDecoder::of(&header)?)),
            87 => Ok(Self::MarketDataSnapshotFullRefresh(MarketDataSnapshotFullRefreshDecoder::of(&header)?)),
            105 => Ok(Self::MassQuote(MassQuoteDecoder::of(&header)?)),
            actual => Err(Error::UnknownTemplate { actual }),
        }
    }
}

/// Enum `Side`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Side {
    /// Value `Buy`.
    Buy,
    /// Value `Sell`.
    Sell,
    /// Value `BuyMinus`.
    BuyMinus,
    /// Value `SellPlus`.
    SellPlus,
    /// Value `SellShort`.
    SellShort,
    /// Value `SellShortExempt`.
    SellShortExempt,
    /// Value `Undisclosed`.
    Undisclosed,
    /// Value `Cross`.
    Cross,
    /// Value `CrossShort`.
    CrossShort,
    /// A value that the schema does not know.
    Unknown(u8),
}

impl Side {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: u8) -> Self {
        match raw {
            49 => Self::Buy,
            50 => Self::Sell,
            51 => Self::BuyMinus,
            52 => Self::SellPlus,
            53 => Self::SellShort,
            54 => Self::SellShortExempt,
            55 => Self::Undisclosed,
            56 => Self::Cross,
            57 => Self::CrossShort,
            other => Self::Unknown(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> u8 {
        match self {
            Self::Buy => 49,
            Self::Sell => 50,
            Self::BuyMinus => 51,
            Self::SellPlus => 52,
            Self::SellShort => 53,
            Self::SellShortExempt => 54,
            Self::Undisclosed => 55,
            Self::Cross => 56,
            Self::CrossShort => 57,
            Self::Unknown(raw) => raw,
        }
    }
}

/// Enum `OrdType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrdType {
    /// Value `Market`.
    Market,
    /// Value `Limit`.
    Limit,
    /// Value `Stop`.
    Stop,
    /// Value `StopLimit`.
    StopLimit,
    /// A value that the schema does not know.
    Unknown(u8),
}

impl OrdType {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: u8) -> Self {
        match raw {
            49 => Self::Market,
            50 => Self::Limit,
            51 => Self::Stop,
            52 => Self::StopLimit,
            other => Self::Unknown(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> u8 {
        match self {
            Self::Market => 49,
            Self::Limit => 50,
            Self::Stop => 51,
            Self::StopLimit => 52,
            Self::Unknown(raw) => raw,
        }
    }
}

/// Enum `TimeInForce`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeInForce {
    /// Value `Day`.
    Day,
    /// Value `GoodTillCancel`.
    GoodTillCancel,
    /// Value `AtTheOpening`.
    AtTheOpening,
    /// Value `ImmediateOrCancel`.
    ImmediateOrCancel,
    /// Value `FillOrKill`.
    FillOrKill,
    /// Value `GoodTillCrossing`.
    GoodTillCrossing,
    /// Value `GoodTillDate`.
    GoodTillDate,
    /// Value `AtTheClose`.
    AtTheClose,
    /// A value that the schema does not know.
    Unknown(u8),
}

impl TimeInForce {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: u8) -> Self {
        match raw {
            48 => Self::Day,
            49 => Self::GoodTillCancel,
            50 => Self::AtTheOpening,
            51 => Self::ImmediateOrCancel,
            52 => Self::FillOrKill,
            53 => Self::GoodTillCrossing,
            54 => Self::GoodTillDate,
            55 => Self::AtTheClose,
            other => Self::Unknown(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> u8 {
        match self {
            Self::Day => 48,
            Self::GoodTillCancel => 49,
            Self::AtTheOpening => 50,
            Self::ImmediateOrCancel => 51,
            Self::FillOrKill => 52,
            Self::GoodTillCrossing => 53,
            Self::GoodTillDate => 54,
            Self::AtTheClose => 55,
            Self::Unknown(raw) => raw,
        }
    }
}

/// Composite `Quantity64`, where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Quantity64Decoder<'a> {
    bytes: &'a [u8],
    version: u32,
}

impl<'a> Quantity64Decoder<'a> {
    /// Member `mantissa`.
    #[inline]
    pub fn mantissa(&self) -> i64 {
        i64::from_le_bytes(part(self.bytes, 0))
    }

    /// Member `exponent`, which is always the same.
    pub const EXPONENT: i8 = -7;

}

/// Composite `Quantity64`, to be written where it lies.
#[derive(Debug)]
pub struct Quantity64Encoder<'b> {
    bytes: &'b mut [u8],
}

impl Quantity64Encoder<'_> {
    /// Member `mantissa`.
    #[inline]
    pub fn mantissa(&mut self, value: i64) -> Result<&mut Self, Error> {
        if !(0..=9_223_372_036_854_775_806).contains(&value) {
            return Err(Error::OutOfRange { what: "mantissa" });
        }
        put(self.bytes, 0, value.to_le_bytes());
        Ok(self)
    }

}

/// Composite `Decimal64`, where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Decimal64Decoder<'a> {
    bytes: &'a [u8],
    version: u32,
}

impl<'a> Decimal64Decoder<'a> {
    /// Member `mantissa`.
    #[inline]
    pub fn mantissa(&self) -> Option<i64> {
        let value = i64::from_le_bytes(part(self.bytes, 0));
        (value != 9_223_372_036_854_775_807).then_some(value)
    }

    /// Member `exponent`, which is always the same.
    pub const EXPONENT: i8 = -7;

}

/// Composite `Decimal64`, to be written where it lies.
#[derive(Debug)]
pub struct Decimal64Encoder<'b> {
    bytes: &'b mut [u8],
}

impl Decimal64Encoder<'_> {
    /// Member `mantissa`.
    #[inline]
    pub fn mantissa(&mut self, value: Option<i64>) -> &mut Self {
        let value = value.unwrap_or(9_223_372_036_854_775_807);
        put(self.bytes, 0, value.to_le_bytes());
        self
    }

}

/// Enum `ExecType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecType {
    /// Value `New`.
    New,
    /// Value `PartialFill`.
    PartialFill,
    /// Value `Fill`.
    Fill,
    /// Value `DoneForDay`.
    DoneForDay,
    /// Value `Canceled`.
    Canceled,
    /// Value `Replaced`.
    Replaced,
    /// Value `PendingCancel`.
    PendingCancel,
    /// Value `Stopped`.
    Stopped,
    /// Value `Rejected`.
    Rejected,
    /// Value `Suspended`.
    Suspended,
    /// Value `PendingNew`.
    PendingNew,
    /// Value `Calculated`.
    Calculated,
    /// Value `Expired`.
    Expired,
    /// Value `Restated`.
    Restated,
    /// Value `PendingReplace`.
    PendingReplace,
    /// Value `Trade`.
    Trade,
    /// Value `TradeCorrect`.
    TradeCorrect,
    /// Value `TradeCancel`.
    TradeCancel,
    /// Value `OrderStatus`.
    OrderStatus,
    /// A value that the schema does not know.
    Unknown(u8),
}

impl ExecType {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: u8) -> Self {
        match raw {
            48 => Self::New,
            49 => Self::PartialFill,
            50 => Self::Fill,
            51 => Self::DoneForDay,
            52 => Self::Canceled,
            53 => Self::Replaced,
            54 => Self::PendingCancel,
            55 => Self::Stopped,
            56 => Self::Rejected,
            57 => Self::Suspended,
            65 => Self::PendingNew,
            66 => Self::Calculated,
            67 => Self::Expired,
            68 => Self::Restated,
            69 => Self::PendingReplace,
            70 => Self::Trade,
            71 => Self::TradeCorrect,
            72 => Self::TradeCancel,
            73 => Self::OrderStatus,
            other => Self::Unknown(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> u8 {
        match self {
            Self::New => 48,
            Self::PartialFill => 49,
            Self::Fill => 50,
            Self::DoneForDay => 51,
            Self::Canceled => 52,
            Self::Replaced => 53,
            Self::PendingCancel => 54,
            Self::Stopped => 55,
            Self::Rejected => 56,
            Self::Suspended => 57,
            Self::PendingNew => 65,
            Self::Calculated => 66,
            Self::Expired => 67,
            Self::Restated => 68,
            Self::PendingReplace => 69,
            Self::Trade => 70,
            Self::TradeCorrect => 71,
            Self::TradeCancel => 72,
            Self::OrderStatus => 73,
            Self::Unknown(raw) => raw,
        }
    }
}

/// Enum `OrdStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrdStatus {
    /// Value `New`.
    New,
    /// Value `PartiallyFilled`.
    PartiallyFilled,
    /// Value `Filled`.
    Filled,
    /// Value `DoneForDay`.
    DoneForDay,
    /// Value `Canceled`.
    Canceled,
    /// Value `Replaced`.
    Replaced,
    /// Value `PendingCancel`.
    PendingCancel,
    /// Value `Stopped`.
    Stopped,
    /// Value `Rejected`.
    Rejected,
    /// Value `Suspended`.
    Suspended,
    /// Value `PendingNew`.
    PendingNew,
    /// Value `Calculated`.
    Calculated,
    /// Value `Expired`.
    Expired,
    /// Value `AcceptedForBidding`.
    AcceptedForBidding,
    /// Value `PendingReplace`.
    PendingReplace,
    /// A value that the schema does not know.
    Unknown(u8),
}

impl OrdStatus {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: u8) -> Self {
        match raw {
            48 => Self::New,
            49 => Self::PartiallyFilled,
            50 => Self::Filled,
            51 => Self::DoneForDay,
            52 => Self::Canceled,
            53 => Self::Replaced,
            54 => Self::PendingCancel,
            55 => Self::Stopped,
            56 => Self::Rejected,
            57 => Self::Suspended,
            65 => Self::PendingNew,
            66 => Self::Calculated,
            67 => Self::Expired,
            68 => Self::AcceptedForBidding,
            69 => Self::PendingReplace,
            other => Self::Unknown(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> u8 {
        match self {
            Self::New => 48,
            Self::PartiallyFilled => 49,
            Self::Filled => 50,
            Self::DoneForDay => 51,
            Self::Canceled => 52,
            Self::Replaced => 53,
            Self::PendingCancel => 54,
            Self::Stopped => 55,
            Self::Rejected => 56,
            Self::Suspended => 57,
            Self::PendingNew => 65,
            Self::Calculated => 66,
            Self::Expired => 67,
            Self::AcceptedForBidding => 68,
            Self::PendingReplace => 69,
            Self::Unknown(raw) => raw,
        }
    }
}

/// Enum `EncryptMethod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncryptMethod {
    /// Value `NoEncryption`.
    NoEncryption,
    /// A value that the schema does not know.
    Unknown(u8),
}

impl EncryptMethod {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: u8) -> Self {
        match raw {
            48 => Self::NoEncryption,
            other => Self::Unknown(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> u8 {
        match self {
            Self::NoEncryption => 48,
            Self::Unknown(raw) => raw,
        }
    }
}

/// Enum `Boolean`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Boolean {
    /// Value `No`.
    No,
    /// Value `Yes`.
    Yes,
    /// A value that the schema does not know.
    Unknown(u8),
}

impl Boolean {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: u8) -> Self {
        match raw {
            78 => Self::No,
            89 => Self::Yes,
            other => Self::Unknown(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> u8 {
        match self {
            Self::No => 78,
            Self::Yes => 89,
            Self::Unknown(raw) => raw,
        }
    }
}

/// Enum `MDUpdateAction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MdUpdateAction {
    /// Value `New`.
    New,
    /// Value `Change`.
    Change,
    /// Value `Delete`.
    Delete,
    /// Value `Overlay`.
    Overlay,
    /// A value that the schema does not know.
    Unknown(u8),
}

impl MdUpdateAction {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: u8) -> Self {
        match raw {
            48 => Self::New,
            49 => Self::Change,
            50 => Self::Delete,
            53 => Self::Overlay,
            other => Self::Unknown(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> u8 {
        match self {
            Self::New => 48,
            Self::Change => 49,
            Self::Delete => 50,
            Self::Overlay => 53,
            Self::Unknown(raw) => raw,
        }
    }
}

/// Enum `MDEntryType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MdEntryType {
    /// Value `Bid`.
    Bid,
    /// Value `Offer`.
    Offer,
    /// Value `Trade`.
    Trade,
    /// Value `IndexValue`.
    IndexValue,
    /// Value `OpeningPrice`.
    OpeningPrice,
    /// Value `ClosingPrice`.
    ClosingPrice,
    /// Value `SettlementPrice`.
    SettlementPrice,
    /// Value `SessionHighPrice`.
    SessionHighPrice,
    /// Value `SessionLowPrice`.
    SessionLowPrice,
    /// Value `SessionVWAPPrice`.
    SessionVwapPrice,
    /// A value that the schema does not know.
    Unknown(u8),
}

impl MdEntryType {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: u8) -> Self {
        match raw {
            48 => Self::Bid,
            49 => Self::Offer,
            50 => Self::Trade,
            51 => Self::IndexValue,
            52 => Self::OpeningPrice,
            53 => Self::ClosingPrice,
            54 => Self::SettlementPrice,
            55 => Self::SessionHighPrice,
            56 => Self::SessionLowPrice,
            57 => Self::SessionVwapPrice,
            other => Self::Unknown(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> u8 {
        match self {
            Self::Bid => 48,
            Self::Offer => 49,
            Self::Trade => 50,
            Self::IndexValue => 51,
            Self::OpeningPrice => 52,
            Self::ClosingPrice => 53,
            Self::SettlementPrice => 54,
            Self::SessionHighPrice => 55,
            Self::SessionLowPrice => 56,
            Self::SessionVwapPrice => 57,
            Self::Unknown(raw) => raw,
        }
    }
}

/// Message `NewOrderSingle`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct NewOrderSingleDecoder<'a> {
    base: &'a [u8; 81],
    block: &'a [u8],
    version: u32,
    length: usize,
}

impl<'a> NewOrderSingleDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 68;

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

    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "NewOrderSingle")?;
        let base = base(block, "NewOrderSingle")?;
        Ok((Self { base, block, version, length: 0 }, rest))
    }

    /// Field `ClOrdID`, id 11.
    #[inline]
    pub fn cl_ord_id(&self) -> &'a [u8; 20] {
        array(self.base, 0)
    }

    /// Field `Account`, id 1.
    #[inline]
    pub fn account(&self) -> Option<&'a [u8; 12]> {
        let value = array(self.base, 20);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&self) -> &'a [u8; 6] {
        array(self.base, 32)
    }

    /// Field `Side`, id 54.
    #[inline]
    pub fn side(&self) -> Side {
        Side::from_raw(u8::from_le_bytes(part(self.base, 38)))
    }

    /// Field `OrdType`, id 40.
    #[inline]
    pub fn ord_type(&self) -> OrdType {
        OrdType::from_raw(u8::from_le_bytes(part(self.base, 39)))
    }

    /// Field `TimeInForce`, id 59.
    #[inline]
    pub fn time_in_force(&self) -> Option<TimeInForce> {
        let value = u8::from_le_bytes(part(self.base, 40));
        (value != 0).then_some(TimeInForce::from_raw(value))
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&self) -> u64 {
        u64::from_le_bytes(part(self.base, 41))
    }

    /// Field `OrderQty`, id 38.
    #[inline]
    pub fn order_qty(&self) -> Quantity64Decoder<'a> {
        Quantity64Decoder { bytes: window(self.block, 49, 57), version: self.version }
    }

    /// Field `Price`, id 44.
    #[inline]
    pub fn price(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 57, 65), version: self.version }
    }

    /// Field `StopPx`, id 99.
    #[inline]
    pub fn stop_px(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 65, 73), version: self.version }
    }

    /// Field `ExpireTime`, id 126.
    #[inline]
    pub fn expire_time(&self) -> Option<u64> {
        let value = u64::from_le_bytes(part(self.base, 73));
        (value != 18_446_744_073_709_551_615).then_some(value)
    }

}

/// Message `NewOrderSingle`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct NewOrderSingleEncoder<'b> {
    block: &'b mut [u8; 81],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> NewOrderSingleEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("NewOrderSingle")? = [81, 0, 68, 0, 1, 0, 1, 0];
        let block = writer.claim("NewOrderSingle")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 81]) {
        block.fill(0);
        put_items(block, 57, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 65, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 73, core::iter::repeat_n((18_446_744_073_709_551_615_u64).to_le_bytes(), 1));
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `ClOrdID`, id 11.
    #[inline]
    pub fn cl_ord_id(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<20>(self.block, 0, value, "ClOrdID")?;
        Ok(self)
    }

    /// Field `Account`, id 1.
    #[inline]
    pub fn account(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<12>(self.block, 20, value, "Account")?,
            None => put_items(self.block, 20, core::iter::repeat_n((0_u8).to_le_bytes(), 12)),
        }
        Ok(self)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<6>(self.block, 32, value, "Symbol")?;
        Ok(self)
    }

    /// Field `Side`, id 54.
    #[inline]
    pub fn side(&mut self, value: Side) -> &mut Self {
        put(self.block, 38, value.raw().to_le_bytes());
        self
    }

    /// Field `OrdType`, id 40.
    #[inline]
    pub fn ord_type(&mut self, value: OrdType) -> &mut Self {
        put(self.block, 39, value.raw().to_le_bytes());
        self
    }

    /// Field `TimeInForce`, id 59.
    #[inline]
    pub fn time_in_force(&mut self, value: Option<TimeInForce>) -> &mut Self {
        put(self.block, 40, value.map_or(0, TimeInForce::raw).to_le_bytes());
        self
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&mut self, value: u64) -> &mut Self {
        put(self.block, 41, value.to_le_bytes());
        self
    }

    /// Field `OrderQty`, id 38, to be written member by member.
    #[inline]
    pub fn order_qty(&mut self) -> Quantity64Encoder<'_> {
        Quantity64Encoder { bytes: window_mut(self.block, 49, 57) }
    }

    /// Field `Price`, id 44, to be written member by member.
    #[inline]
    pub fn price(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 57, 65) }
    }

    /// Field `StopPx`, id 99, to be written member by member.
    #[inline]
    pub fn stop_px(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 65, 73) }
    }

    /// Field `ExpireTime`, id 126.
    #[inline]
    pub fn expire_time(&mut self, value: Option<u64>) -> &mut Self {
        let value = value.unwrap_or(18_446_744_073_709_551_615);
        put(self.block, 73, value.to_le_bytes());
        self
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(0, "end of message")?;
        Ok(self.writer.written)
    }
}

/// Message `OrderCancelRequest`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct OrderCancelRequestDecoder<'a> {
    base: &'a [u8; 95],
    block: &'a [u8],
    version: u32,
    length: usize,
}

impl<'a> OrderCancelRequestDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 70;

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

    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "OrderCancelRequest")?;
        let base = base(block, "OrderCancelRequest")?;
        Ok((Self { base, block, version, length: 0 }, rest))
    }

    /// Field `ClOrdID`, id 11.
    #[inline]
    pub fn cl_ord_id(&self) -> &'a [u8; 20] {
        array(self.base, 0)
    }

    /// Field `OrigClOrdID`, id 41.
    #[inline]
    pub fn orig_cl_ord_id(&self) -> &'a [u8; 20] {
        array(self.base, 20)
    }

    /// Field `OrderID`, id 37.
    #[inline]
    pub fn order_id(&self) -> Option<&'a [u8; 20]> {
        let value = array(self.base, 40);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `Account`, id 1.
    #[inline]
    pub fn account(&self) -> Option<&'a [u8; 12]> {
        let value = array(self.base, 60);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&self) -> &'a [u8; 6] {
        array(self.base, 72)
    }

    /// Field `Side`, id 54.
    #[inline]
    pub fn side(&self) -> Side {
        Side::from_raw(u8::from_le_bytes(part(self.base, 78)))
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&self) -> u64 {
        u64::from_le_bytes(part(self.base, 79))
    }

    /// Field `OrderQty`, id 38.
    #[inline]
    pub fn order_qty(&self) -> Quantity64Decoder<'a> {
        Quantity64Decoder { bytes: window(self.block, 87, 95), version: self.version }
    }

}

/// Message `OrderCancelRequest`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct OrderCancelRequestEncoder<'b> {
    block: &'b mut [u8; 95],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> OrderCancelRequestEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("OrderCancelRequest")? = [95, 0, 70, 0, 1, 0, 1, 0];
        let block = writer.claim("OrderCancelRequest")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 95]) {
        block.fill(0);
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `ClOrdID`, id 11.
    #[inline]
    pub fn cl_ord_id(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<20>(self.block, 0, value, "ClOrdID")?;
        Ok(self)
    }

    /// Field `OrigClOrdID`, id 41.
    #[inline]
    pub fn orig_cl_ord_id(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<20>(self.block, 20, value, "OrigClOrdID")?;
        Ok(self)
    }

    /// Field `OrderID`, id 37.
    #[inline]
    pub fn order_id(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<20>(self.block, 40, value, "OrderID")?,
            None => put_items(self.block, 40, core::iter::repeat_n((0_u8).to_le_bytes(), 20)),
        }
        Ok(self)
    }

    /// Field `Account`, id 1.
    #[inline]
    pub fn account(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<12>(self.block, 60, value, "Account")?,
            None => put_items(self.block, 60, core::iter::repeat_n((0_u8).to_le_bytes(), 12)),
        }
        Ok(self)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<6>(self.block, 72, value, "Symbol")?;
        Ok(self)
    }

    /// Field `Side`, id 54.
    #[inline]
    pub fn side(&mut self, value: Side) -> &mut Self {
        put(self.block, 78, value.raw().to_le_bytes());
        self
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&mut self, value: u64) -> &mut Self {
        put(self.block, 79, value.to_le_bytes());
        self
    }

    /// Field `OrderQty`, id 38, to be written member by member.
    #[inline]
    pub fn order_qty(&mut self) -> Quantity64Encoder<'_> {
        Quantity64Encoder { bytes: window_mut(self.block, 87, 95) }
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(0, "end of message")?;
        Ok(self.writer.written)
    }
}

/// Message `OrderCancelReplaceRequest`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct OrderCancelReplaceRequestDecoder<'a> {
    base: &'a [u8; 121],
    block: &'a [u8],
    version: u32,
    length: usize,
}

impl<'a> OrderCancelReplaceRequestDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 71;

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

    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "OrderCancelReplaceRequest")?;
        let base = base(block, "OrderCancelReplaceRequest")?;
        Ok((Self { base, block, version, length: 0 }, rest))
    }

    /// Field `ClOrdID`, id 11.
    #[inline]
    pub fn cl_ord_id(&self) -> &'a [u8; 20] {
        array(self.base, 0)
    }

    /// Field `OrigClOrdID`, id 41.
    #[inline]
    pub fn orig_cl_ord_id(&self) -> &'a [u8; 20] {
        array(self.base, 20)
    }

    /// Field `OrderID`, id 37.
    #[inline]
    pub fn order_id(&self) -> Option<&'a [u8; 20]> {
        let value = array(self.base, 40);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `Account`, id 1.
    #[inline]
    pub fn account(&self) -> Option<&'a [u8; 12]> {
        let value = array(self.base, 60);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&self) -> &'a [u8; 6] {
        array(self.base, 72)
    }

    /// Field `Side`, id 54.
    #[inline]
    pub fn side(&self) -> Side {
        Side::from_raw(u8::from_le_bytes(part(self.base, 78)))
    }

    /// Field `OrdType`, id 40.
    #[inline]
    pub fn ord_type(&self) -> OrdType {
        OrdType::from_raw(u8::from_le_bytes(part(self.base, 79)))
    }

    /// Field `TimeInForce`, id 59.
    #[inline]
    pub fn time_in_force(&self) -> Option<TimeInForce> {
        let value = u8::from_le_bytes(part(self.base, 80));
        (value != 0).then_some(TimeInForce::from_raw(value))
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&self) -> u64 {
        u64::from_le_bytes(part(self.base, 81))
    }

    /// Field `OrderQty`, id 38.
    #[inline]
    pub fn order_qty(&self) -> Quantity64Decoder<'a> {
        Quantity64Decoder { bytes: window(self.block, 89, 97), version: self.version }
    }

    /// Field `Price`, id 44.
    #[inline]
    pub fn price(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 97, 105), version: self.version }
    }

    /// Field `StopPx`, id 99.
    #[inline]
    pub fn stop_px(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 105, 113), version: self.version }
    }

    /// Field `ExpireTime`, id 126.
    #[inline]
    pub fn expire_time(&self) -> Option<u64> {
        let value = u64::from_le_bytes(part(self.base, 113));
        (value != 18_446_744_073_709_551_615).then_some(value)
    }

}

/// Message `OrderCancelReplaceRequest`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct OrderCancelReplaceRequestEncoder<'b> {
    block: &'b mut [u8; 121],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> OrderCancelReplaceRequestEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("OrderCancelReplaceRequest")? = [121, 0, 71, 0, 1, 0, 1, 0];
        let block = writer.claim("OrderCancelReplaceRequest")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 121]) {
        block.fill(0);
        put_items(block, 97, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 105, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 113, core::iter::repeat_n((18_446_744_073_709_551_615_u64).to_le_bytes(), 1));
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `ClOrdID`, id 11.
    #[inline]
    pub fn cl_ord_id(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<20>(self.block, 0, value, "ClOrdID")?;
        Ok(self)
    }

    /// Field `OrigClOrdID`, id 41.
    #[inline]
    pub fn orig_cl_ord_id(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<20>(self.block, 20, value, "OrigClOrdID")?;
        Ok(self)
    }

    /// Field `OrderID`, id 37.
    #[inline]
    pub fn order_id(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<20>(self.block, 40, value, "OrderID")?,
            None => put_items(self.block, 40, core::iter::repeat_n((0_u8).to_le_bytes(), 20)),
        }
        Ok(self)
    }

    /// Field `Account`, id 1.
    #[inline]
    pub fn account(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<12>(self.block, 60, value, "Account")?,
            None => put_items(self.block, 60, core::iter::repeat_n((0_u8).to_le_bytes(), 12)),
        }
        Ok(self)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<6>(self.block, 72, value, "Symbol")?;
        Ok(self)
    }

    /// Field `Side`, id 54.
    #[inline]
    pub fn side(&mut self, value: Side) -> &mut Self {
        put(self.block, 78, value.raw().to_le_bytes());
        self
    }

    /// Field `OrdType`, id 40.
    #[inline]
    pub fn ord_type(&mut self, value: OrdType) -> &mut Self {
        put(self.block, 79, value.raw().to_le_bytes());
        self
    }

    /// Field `TimeInForce`, id 59.
    #[inline]
    pub fn time_in_force(&mut self, value: Option<TimeInForce>) -> &mut Self {
        put(self.block, 80, value.map_or(0, TimeInForce::raw).to_le_bytes());
        self
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&mut self, value: u64) -> &mut Self {
        put(self.block, 81, value.to_le_bytes());
        self
    }

    /// Field `OrderQty`, id 38, to be written member by member.
    #[inline]
    pub fn order_qty(&mut self) -> Quantity64Encoder<'_> {
        Quantity64Encoder { bytes: window_mut(self.block, 89, 97) }
    }

    /// Field `Price`, id 44, to be written member by member.
    #[inline]
    pub fn price(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 97, 105) }
    }

    /// Field `StopPx`, id 99, to be written member by member.
    #[inline]
    pub fn stop_px(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 105, 113) }
    }

    /// Field `ExpireTime`, id 126.
    #[inline]
    pub fn expire_time(&mut self, value: Option<u64>) -> &mut Self {
        let value = value.unwrap_or(18_446_744_073_709_551_615);
        put(self.block, 113, value.to_le_bytes());
        self
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(0, "end of message")?;
        Ok(self.writer.written)
    }
}

/// Message `ExecutionReport`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct ExecutionReportDecoder<'a> {
    base: &'a [u8; 167],
    block: &'a [u8],
    version: u32,
    data_0: &'a [u8],
    length: usize,
}

impl<'a> ExecutionReportDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 56;

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

    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "ExecutionReport")?;
        let base = base(block, "ExecutionReport")?;
        let (head, rest) = chunk::<4>(rest, "Text")?;
        let (data_0, rest) = take(rest, u64::from(u32::from_le_bytes(part(head, 0))), "Text")?;
        Ok((Self { base, block, version, data_0, length: 0 }, rest))
    }

    /// Field `OrderID`, id 37.
    #[inline]
    pub fn order_id(&self) -> &'a [u8; 20] {
        array(self.base, 0)
    }

    /// Field `ExecID`, id 17.
    #[inline]
    pub fn exec_id(&self) -> &'a [u8; 20] {
        array(self.base, 20)
    }

    /// Field `ClOrdID`, id 11.
    #[inline]
    pub fn cl_ord_id(&self) -> Option<&'a [u8; 20]> {
        let value = array(self.base, 40);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `OrigClOrdID`, id 41.
    #[inline]
    pub fn orig_cl_ord_id(&self) -> Option<&'a [u8; 20]> {
        let value = array(self.base, 60);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `Account`, id 1.
    #[inline]
    pub fn account(&self) -> Option<&'a [u8; 12]> {
        let value = array(self.base, 80);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&self) -> &'a [u8; 6] {
        array(self.base, 92)
    }

    /// Field `ExecType`, id 150.
    #[inline]
    pub fn exec_type(&self) -> ExecType {
        ExecType::from_raw(u8::from_le_bytes(part(self.base, 98)))
    }

    /// Field `OrdStatus`, id 39.
    #[inline]
    pub fn ord_status(&self) -> OrdStatus {
        OrdStatus::from_raw(u8::from_le_bytes(part(self.base, 99)))
    }

    /// Field `Side`, id 54.
    #[inline]
    pub fn side(&self) -> Side {
        Side::from_raw(u8::from_le_bytes(part(self.base, 100)))
    }

    /// Field `OrdType`, id 40.
    #[inline]
    pub fn ord_type(&self) -> Option<OrdType> {
        let value = u8::from_le_bytes(part(self.base, 101));
        (value != 0).then_some(OrdType::from_raw(value))
    }

    /// Field `TimeInForce`, id 59.
    #[inline]
    pub fn time_in_force(&self) -> Option<TimeInForce> {
        let value = u8::from_le_bytes(part(self.base, 102));
        (value != 0).then_some(TimeInForce::from_raw(value))
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&self) -> u64 {
        u64::from_le_bytes(part(self.base, 103))
    }

    /// Field `OrderQty`, id 38.
    #[inline]
    pub fn order_qty(&self) -> Quantity64Decoder<'a> {
        Quantity64Decoder { bytes: window(self.block, 111, 119), version: self.version }
    }

    /// Field `Price`, id 44.
    #[inline]
    pub fn price(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 119, 127), version: self.version }
    }

    /// Field `LastQty`, id 32.
    #[inline]
    pub fn last_qty(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 127, 135), version: self.version }
    }

    /// Field `LastPx`, id 31.
    #[inline]
    pub fn last_px(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 135, 143), version: self.version }
    }

    /// Field `LeavesQty`, id 151.
    #[inline]
    pub fn leaves_qty(&self) -> Quantity64Decoder<'a> {
        Quantity64Decoder { bytes: window(self.block, 143, 151), version: self.version }
    }

    /// Field `CumQty`, id 14.
    #[inline]
    pub fn cum_qty(&self) -> Quantity64Decoder<'a> {
        Quantity64Decoder { bytes: window(self.block, 151, 159), version: self.version }
    }

    /// Field `AvgPx`, id 6.
    #[inline]
    pub fn avg_px(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 159, 167), version: self.version }
    }

    /// Data `Text`, id 58.
    #[inline]
    pub fn text(&self) -> &'a [u8] {
        self.data_0
    }

}

/// Message `ExecutionReport`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct ExecutionReportEncoder<'b> {
    block: &'b mut [u8; 167],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> ExecutionReportEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("ExecutionReport")? = [167, 0, 56, 0, 1, 0, 1, 0];
        let block = writer.claim("ExecutionReport")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 167]) {
        block.fill(0);
        put_items(block, 119, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 127, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 135, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 159, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            self.writer.claim::<4>("Text")?.fill(0);
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `OrderID`, id 37.
    #[inline]
    pub fn order_id(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<20>(self.block, 0, value, "OrderID")?;
        Ok(self)
    }

    /// Field `ExecID`, id 17.
    #[inline]
    pub fn exec_id(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<20>(self.block, 20, value, "ExecID")?;
        Ok(self)
    }

    /// Field `ClOrdID`, id 11.
    #[inline]
    pub fn cl_ord_id(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<20>(self.block, 40, value, "ClOrdID")?,
            None => put_items(self.block, 40, core::iter::repeat_n((0_u8).to_le_bytes(), 20)),
        }
        Ok(self)
    }

    /// Field `OrigClOrdID`, id 41.
    #[inline]
    pub fn orig_cl_ord_id(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<20>(self.block, 60, value, "OrigClOrdID")?,
            None => put_items(self.block, 60, core::iter::repeat_n((0_u8).to_le_bytes(), 20)),
        }
        Ok(self)
    }

    /// Field `Account`, id 1.
    #[inline]
    pub fn account(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<12>(self.block, 80, value, "Account")?,
            None => put_items(self.block, 80, core::iter::repeat_n((0_u8).to_le_bytes(), 12)),
        }
        Ok(self)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<6>(self.block, 92, value, "Symbol")?;
        Ok(self)
    }

    /// Field `ExecType`, id 150.
    #[inline]
    pub fn exec_type(&mut self, value: ExecType) -> &mut Self {
        put(self.block, 98, value.raw().to_le_bytes());
        self
    }

    /// Field `OrdStatus`, id 39.
    #[inline]
    pub fn ord_status(&mut self, value: OrdStatus) -> &mut Self {
        put(self.block, 99, value.raw().to_le_bytes());
        self
    }

    /// Field `Side`, id 54.
    #[inline]
    pub fn side(&mut self, value: Side) -> &mut Self {
        put(self.block, 100, value.raw().to_le_bytes());
        self
    }

    /// Field `OrdType`, id 40.
    #[inline]
    pub fn ord_type(&mut self, value: Option<OrdType>) -> &mut Self {
        put(self.block, 101, value.map_or(0, OrdType::raw).to_le_bytes());
        self
    }

    /// Field `TimeInForce`, id 59.
    #[inline]
    pub fn time_in_force(&mut self, value: Option<TimeInForce>) -> &mut Self {
        put(self.block, 102, value.map_or(0, TimeInForce::raw).to_le_bytes());
        self
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&mut self, value: u64) -> &mut Self {
        put(self.block, 103, value.to_le_bytes());
        self
    }

    /// Field `OrderQty`, id 38, to be written member by member.
    #[inline]
    pub fn order_qty(&mut self) -> Quantity64Encoder<'_> {
        Quantity64Encoder { bytes: window_mut(self.block, 111, 119) }
    }

    /// Field `Price`, id 44, to be written member by member.
    #[inline]
    pub fn price(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 119, 127) }
    }

    /// Field `LastQty`, id 32, to be written member by member.
    #[inline]
    pub fn last_qty(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 127, 135) }
    }

    /// Field `LastPx`, id 31, to be written member by member.
    #[inline]
    pub fn last_px(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 135, 143) }
    }

    /// Field `LeavesQty`, id 151, to be written member by member.
    #[inline]
    pub fn leaves_qty(&mut self) -> Quantity64Encoder<'_> {
        Quantity64Encoder { bytes: window_mut(self.block, 143, 151) }
    }

    /// Field `CumQty`, id 14, to be written member by member.
    #[inline]
    pub fn cum_qty(&mut self) -> Quantity64Encoder<'_> {
        Quantity64Encoder { bytes: window_mut(self.block, 151, 159) }
    }

    /// Field `AvgPx`, id 6, to be written member by member.
    #[inline]
    pub fn avg_px(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 159, 167) }
    }

    /// Data `Text`, id 58.
    #[inline]
    pub fn text(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to(0, "Text")?;
        let length = limited(bytes.len(), 1_073_741_824, "Text")?;
        let head = self.writer.claim::<4>("Text")?;
        head.fill(0);
        put(head, 0, (length as u32).to_le_bytes());
        self.writer.bytes(bytes, "Text")?;
        Ok(self)
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(1, "end of message")?;
        Ok(self.writer.written)
    }
}

/// Message `Heartbeat`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct HeartbeatDecoder<'a> {
    base: &'a [u8; 20],
    block: &'a [u8],
    version: u32,
    length: usize,
}

impl<'a> HeartbeatDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 48;

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

    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "Heartbeat")?;
        let base = base(block, "Heartbeat")?;
        Ok((Self { base, block, version, length: 0 }, rest))
    }

    /// Field `TestReqID`, id 112.
    #[inline]
    pub fn test_req_id(&self) -> Option<&'a [u8; 20]> {
        let value = array(self.base, 0);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

}

/// Message `Heartbeat`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct HeartbeatEncoder<'b> {
    block: &'b mut [u8; 20],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> HeartbeatEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("Heartbeat")? = [20, 0, 48, 0, 1, 0, 1, 0];
        let block = writer.claim("Heartbeat")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 20]) {
        block.fill(0);
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `TestReqID`, id 112.
    #[inline]
    pub fn test_req_id(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<20>(self.block, 0, value, "TestReqID")?,
            None => put_items(self.block, 0, core::iter::repeat_n((0_u8).to_le_bytes(), 20)),
        }
        Ok(self)
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(0, "end of message")?;
        Ok(self.writer.written)
    }
}

/// Message `Logon`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct LogonDecoder<'a> {
    base: &'a [u8; 10],
    block: &'a [u8],
    version: u32,
    data_0: &'a [u8],
    data_1: &'a [u8],
    length: usize,
}

impl<'a> LogonDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 65;

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

    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "Logon")?;
        let base = base(block, "Logon")?;
        let (head, rest) = chunk::<4>(rest, "Username")?;
        let (data_0, rest) = take(rest, u64::from(u32::from_le_bytes(part(head, 0))), "Username")?;
        let (head, rest) = chunk::<4>(rest, "RawData")?;
        let (data_1, rest) = take(rest, u64::from(u32::from_le_bytes(part(head, 0))), "RawData")?;
        Ok((Self { base, block, version, data_0, data_1, length: 0 }, rest))
    }

    /// Field `EncryptMethod`, id 98.
    #[inline]
    pub fn encrypt_method(&self) -> EncryptMethod {
        EncryptMethod::from_raw(u8::from_le_bytes(part(self.base, 0)))
    }

    /// Field `ResetSeqNumFlag`, id 141.
    #[inline]
    pub fn reset_seq_num_flag(&self) -> Option<Boolean> {
        let value = u8::from_le_bytes(part(self.base, 1));
        (value != 0).then_some(Boolean::from_raw(value))
    }

    /// Field `HeartBtInt`, id 108.
    #[inline]
    pub fn heart_bt_int(&self) -> u32 {
        u32::from_le_bytes(part(self.base, 2))
    }

    /// Field `NextExpectedMsgSeqNum`, id 789.
    #[inline]
    pub fn next_expected_msg_seq_num(&self) -> Option<u32> {
        let value = u32::from_le_bytes(part(self.base, 6));
        (value != 4_294_967_295).then_some(value)
    }

    /// Data `Username`, id 553.
    #[inline]
    pub fn username(&self) -> &'a [u8] {
        self.data_0
    }

    /// Data `RawData`, id 96.
    #[inline]
    pub fn raw_data(&self) -> &'a [u8] {
        self.data_1
    }

}

/// Message `Logon`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct LogonEncoder<'b> {
    block: &'b mut [u8; 10],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> LogonEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("Logon")? = [10, 0, 65, 0, 1, 0, 1, 0];
        let block = writer.claim("Logon")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 10]) {
        block.fill(0);
        put_items(block, 6, core::iter::repeat_n((4_294_967_295_u32).to_le_bytes(), 1));
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            self.writer.claim::<4>("Username")?.fill(0);
        }
        if (self.next..ordinal).contains(&1) {
            self.writer.claim::<4>("RawData")?.fill(0);
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `EncryptMethod`, id 98.
    #[inline]
    pub fn encrypt_method(&mut self, value: EncryptMethod) -> &mut Self {
        put(self.block, 0, value.raw().to_le_bytes());
        self
    }

    /// Field `ResetSeqNumFlag`, id 141.
    #[inline]
    pub fn reset_seq_num_flag(&mut self, value: Option<Boolean>) -> &mut Self {
        put(self.block, 1, value.map_or(0, Boolean::raw).to_le_bytes());
        self
    }

    /// Field `HeartBtInt`, id 108.
    #[inline]
    pub fn heart_bt_int(&mut self, value: u32) -> &mut Self {
        put(self.block, 2, value.to_le_bytes());
        self
    }

    /// Field `NextExpectedMsgSeqNum`, id 789.
    #[inline]
    pub fn next_expected_msg_seq_num(&mut self, value: Option<u32>) -> &mut Self {
        let value = value.unwrap_or(4_294_967_295);
        put(self.block, 6, value.to_le_bytes());
        self
    }

    /// Data `Username`, id 553.
    #[inline]
    pub fn username(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to(0, "Username")?;
        let length = limited(bytes.len(), 1_073_741_824, "Username")?;
        let head = self.writer.claim::<4>("Username")?;
        head.fill(0);
        put(head, 0, (length as u32).to_le_bytes());
        self.writer.bytes(bytes, "Username")?;
        Ok(self)
    }

    /// Data `RawData`, id 96.
    #[inline]
    pub fn raw_data(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to(1, "RawData")?;
        let length = limited(bytes.len(), 1_073_741_824, "RawData")?;
        let head = self.writer.claim::<4>("RawData")?;
        head.fill(0);
        put(head, 0, (length as u32).to_le_bytes());
        self.writer.bytes(bytes, "RawData")?;
        Ok(self)
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(2, "end of message")?;
        Ok(self.writer.written)
    }
}

/// Message `Logout`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct LogoutDecoder<'a> {
    base: &'a [u8; 0],
    block: &'a [u8],
    version: u32,
    data_0: &'a [u8],
    length: usize,
}

impl<'a> LogoutDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 53;

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

    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "Logout")?;
        let base = base(block, "Logout")?;
        let (head, rest) = chunk::<4>(rest, "Text")?;
        let (data_0, rest) = take(rest, u64::from(u32::from_le_bytes(part(head, 0))), "Text")?;
        Ok((Self { base, block, version, data_0, length: 0 }, rest))
    }

    /// Data `Text`, id 58.
    #[inline]
    pub fn text(&self) -> &'a [u8] {
        self.data_0
    }

}

/// Message `Logout`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct LogoutEncoder<'b> {
    block: &'b mut [u8; 0],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> LogoutEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("Logout")? = [0, 0, 53, 0, 1, 0, 1, 0];
        let block = writer.claim("Logout")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 0]) {
        block.fill(0);
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            self.writer.claim::<4>("Text")?.fill(0);
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Data `Text`, id 58.
    #[inline]
    pub fn text(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to(0, "Text")?;
        let length = limited(bytes.len(), 1_073_741_824, "Text")?;
        let head = self.writer.claim::<4>("Text")?;
        head.fill(0);
        put(head, 0, (length as u32).to_le_bytes());
        self.writer.bytes(bytes, "Text")?;
        Ok(self)
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(1, "end of message")?;
        Ok(self.writer.written)
    }
}

/// Message `MarketDataIncrementalRefresh`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct MarketDataIncrementalRefreshDecoder<'a> {
    base: &'a [u8; 28],
    block: &'a [u8],
    version: u32,
    group_0: MarketDataIncrementalRefreshNoMdEntriesGroup<'a>,
    length: usize,
}

impl<'a> MarketDataIncrementalRefreshDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 88;

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

    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "MarketDataIncrementalRefresh")?;
        let base = base(block, "MarketDataIncrementalRefresh")?;
        let (group_0, rest) = MarketDataIncrementalRefreshNoMdEntriesGroup::at(rest, version)?;
        Ok((Self { base, block, version, group_0, length: 0 }, rest))
    }

    /// Field `MDReqID`, id 262.
    #[inline]
    pub fn md_req_id(&self) -> Option<&'a [u8; 20]> {
        let value = array(self.base, 0);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&self) -> u64 {
        u64::from_le_bytes(part(self.base, 20))
    }

    /// Entries of group `NoMDEntries`, id 268.
    #[inline]
    pub fn no_md_entries(&self) -> MarketDataIncrementalRefreshNoMdEntriesGroup<'a> {
        self.group_0.clone()
    }

}

/// Entries of group `NoMDEntries`.
#[derive(Clone, Debug)]
pub struct MarketDataIncrementalRefreshNoMdEntriesGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> MarketDataIncrementalRefreshNoMdEntriesGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (head, rest) = chunk::<4>(rest, "NoMDEntries")?;
        let (entry_length, count) = (u64::from(u16::from_le_bytes(part(head, 0))), u64::from(u16::from_le_bytes(part(head, 2))));
        let count = counted(rest, entry_length.saturating_add(0), count, "NoMDEntries")?;
        if count > 0 {
            MarketDataIncrementalRefreshNoMdEntriesDecoder::at(rest, entry_length, version)?;
        }
        let (_, behind) = take(rest, entry_length.saturating_mul(count as u64), "NoMDEntries")?;
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for MarketDataIncrementalRefreshNoMdEntriesGroup<'a> {
    type Item = MarketDataIncrementalRefreshNoMdEntriesDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = MarketDataIncrementalRefreshNoMdEntriesDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for MarketDataIncrementalRefreshNoMdEntriesGroup<'_> {}

/// An entry of group `NoMDEntries`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct MarketDataIncrementalRefreshNoMdEntriesDecoder<'a> {
    base: &'a [u8; 33],
    block: &'a [u8],
    version: u32,
}

impl<'a> MarketDataIncrementalRefreshNoMdEntriesDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "NoMDEntries")?;
        let base = base(block, "NoMDEntries")?;
        Ok((Self { base, block, version,  }, rest))
    }

    /// Field `MDUpdateAction`, id 279.
    #[inline]
    pub fn md_update_action(&self) -> MdUpdateAction {
        MdUpdateAction::from_raw(u8::from_le_bytes(part(self.base, 0)))
    }

    /// Field `MDEntryType`, id 269.
    #[inline]
    pub fn md_entry_type(&self) -> MdEntryType {
        MdEntryType::from_raw(u8::from_le_bytes(part(self.base, 1)))
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&self) -> &'a [u8; 6] {
        array(self.base, 2)
    }

    /// Field `MDEntryPx`, id 270.
    #[inline]
    pub fn md_entry_px(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 8, 16), version: self.version }
    }

    /// Field `MDEntrySize`, id 271.
    #[inline]
    pub fn md_entry_size(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 16, 24), version: self.version }
    }

    /// Field `RptSeq`, id 83.
    #[inline]
    pub fn rpt_seq(&self) -> Option<u32> {
        let value = u32::from_le_bytes(part(self.base, 24));
        (value != 4_294_967_295).then_some(value)
    }

    /// Field `NumberOfOrders`, id 346.
    #[inline]
    pub fn number_of_orders(&self) -> Option<u32> {
        let value = u32::from_le_bytes(part(self.base, 28));
        (value != 4_294_967_295).then_some(value)
    }

    /// Field `MDPriceLevel`, id 1023.
    #[inline]
    pub fn md_price_level(&self) -> Option<u8> {
        let value = u8::from_le_bytes(part(self.base, 32));
        (value != 255).then_some(value)
    }

}

/// Message `MarketDataIncrementalRefresh`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct MarketDataIncrementalRefreshEncoder<'b> {
    block: &'b mut [u8; 28],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> MarketDataIncrementalRefreshEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("MarketDataIncrementalRefresh")? = [28, 0, 88, 0, 1, 0, 1, 0];
        let block = writer.claim("MarketDataIncrementalRefresh")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 28]) {
        block.fill(0);
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            let head = self.writer.claim::<4>("NoMDEntries")?;
            head.fill(0);
            put(head, 0, 33_u16.to_le_bytes());
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `MDReqID`, id 262.
    #[inline]
    pub fn md_req_id(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<20>(self.block, 0, value, "MDReqID")?,
            None => put_items(self.block, 0, core::iter::repeat_n((0_u8).to_le_bytes(), 20)),
        }
        Ok(self)
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&mut self, value: u64) -> &mut Self {
        put(self.block, 20, value.to_le_bytes());
        self
    }

    /// Group `NoMDEntries`, id 268: an entry for each item, which `each` writes.
    #[inline]
    pub fn no_md_entries<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut MarketDataIncrementalRefreshNoMdEntriesEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(0, "NoMDEntries")?;
        let head = self.writer.claim::<4>("NoMDEntries")?;
        head.fill(0);
        put(head, 0, 33_u16.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 65_534 {
                return Err(Error::TooMany { what: "NoMDEntries", max: 65_534 });
            }
            let mut entry = MarketDataIncrementalRefreshNoMdEntriesEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        put(head, 2, (count as u16).to_le_bytes());
        Ok(self)
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(1, "end of message")?;
        Ok(self.writer.written)
    }
}

/// An entry of group `NoMDEntries`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct MarketDataIncrementalRefreshNoMdEntriesEncoder<'e, 'b> {
    block: &'b mut [u8; 33],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> MarketDataIncrementalRefreshNoMdEntriesEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("NoMDEntries")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 33]) {
        block.fill(0);
        put_items(block, 8, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 16, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 24, core::iter::repeat_n((4_294_967_295_u32).to_le_bytes(), 1));
        put_items(block, 28, core::iter::repeat_n((4_294_967_295_u32).to_le_bytes(), 1));
        put_items(block, 32, core::iter::repeat_n((255_u8).to_le_bytes(), 1));
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `MDUpdateAction`, id 279.
    #[inline]
    pub fn md_update_action(&mut self, value: MdUpdateAction) -> &mut Self {
        put(self.block, 0, value.raw().to_le_bytes());
        self
    }

    /// Field `MDEntryType`, id 269.
    #[inline]
    pub fn md_entry_type(&mut self, value: MdEntryType) -> &mut Self {
        put(self.block, 1, value.raw().to_le_bytes());
        self
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<6>(self.block, 2, value, "Symbol")?;
        Ok(self)
    }

    /// Field `MDEntryPx`, id 270, to be written member by member.
    #[inline]
    pub fn md_entry_px(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 8, 16) }
    }

    /// Field `MDEntrySize`, id 271, to be written member by member.
    #[inline]
    pub fn md_entry_size(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 16, 24) }
    }

    /// Field `RptSeq`, id 83.
    #[inline]
    pub fn rpt_seq(&mut self, value: Option<u32>) -> &mut Self {
        let value = value.unwrap_or(4_294_967_295);
        put(self.block, 24, value.to_le_bytes());
        self
    }

    /// Field `NumberOfOrders`, id 346.
    #[inline]
    pub fn number_of_orders(&mut self, value: Option<u32>) -> &mut Self {
        let value = value.unwrap_or(4_294_967_295);
        put(self.block, 28, value.to_le_bytes());
        self
    }

    /// Field `MDPriceLevel`, id 1023.
    #[inline]
    pub fn md_price_level(&mut self, value: Option<u8>) -> &mut Self {
        let value = value.unwrap_or(255);
        put(self.block, 32, value.to_le_bytes());
        self
    }

    #[inline]
    fn complete(mut self) -> Result<(), Error> {
        self.pass_to(0, "end of entry")
    }
}

/// Message `MarketDataSnapshotFullRefresh`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct MarketDataSnapshotFullRefreshDecoder<'a> {
    base: &'a [u8; 38],
    block: &'a [u8],
    version: u32,
    group_0: MarketDataSnapshotFullRefreshNoMdEntriesGroup<'a>,
    length: usize,
}

impl<'a> MarketDataSnapshotFullRefreshDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 87;

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

    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "MarketDataSnapshotFullRefresh")?;
        let base = base(block, "MarketDataSnapshotFullRefresh")?;
        let (group_0, rest) = MarketDataSnapshotFullRefreshNoMdEntriesGroup::at(rest, version)?;
        Ok((Self { base, block, version, group_0, length: 0 }, rest))
    }

    /// Field `MDReqID`, id 262.
    #[inline]
    pub fn md_req_id(&self) -> Option<&'a [u8; 20]> {
        let value = array(self.base, 0);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&self) -> &'a [u8; 6] {
        array(self.base, 20)
    }

    /// Field `LastMsgSeqNumProcessed`, id 369.
    #[inline]
    pub fn last_msg_seq_num_processed(&self) -> Option<u32> {
        let value = u32::from_le_bytes(part(self.base, 26));
        (value != 4_294_967_295).then_some(value)
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&self) -> u64 {
        u64::from_le_bytes(part(self.base, 30))
    }

    /// Entries of group `NoMDEntries`, id 268.
    #[inline]
    pub fn no_md_entries(&self) -> MarketDataSnapshotFullRefreshNoMdEntriesGroup<'a> {
        self.group_0.clone()
    }

}

/// Entries of group `NoMDEntries`.
#[derive(Clone, Debug)]
pub struct MarketDataSnapshotFullRefreshNoMdEntriesGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> MarketDataSnapshotFullRefreshNoMdEntriesGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (head, rest) = chunk::<4>(rest, "NoMDEntries")?;
        let (entry_length, count) = (u64::from(u16::from_le_bytes(part(head, 0))), u64::from(u16::from_le_bytes(part(head, 2))));
        let count = counted(rest, entry_length.saturating_add(0), count, "NoMDEntries")?;
        if count > 0 {
            MarketDataSnapshotFullRefreshNoMdEntriesDecoder::at(rest, entry_length, version)?;
        }
        let (_, behind) = take(rest, entry_length.saturating_mul(count as u64), "NoMDEntries")?;
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for MarketDataSnapshotFullRefreshNoMdEntriesGroup<'a> {
    type Item = MarketDataSnapshotFullRefreshNoMdEntriesDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = MarketDataSnapshotFullRefreshNoMdEntriesDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for MarketDataSnapshotFullRefreshNoMdEntriesGroup<'_> {}

/// An entry of group `NoMDEntries`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct MarketDataSnapshotFullRefreshNoMdEntriesDecoder<'a> {
    base: &'a [u8; 22],
    block: &'a [u8],
    version: u32,
}

impl<'a> MarketDataSnapshotFullRefreshNoMdEntriesDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "NoMDEntries")?;
        let base = base(block, "NoMDEntries")?;
        Ok((Self { base, block, version,  }, rest))
    }

    /// Field `MDEntryType`, id 269.
    #[inline]
    pub fn md_entry_type(&self) -> MdEntryType {
        MdEntryType::from_raw(u8::from_le_bytes(part(self.base, 0)))
    }

    /// Field `MDEntryPx`, id 270.
    #[inline]
    pub fn md_entry_px(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 1, 9), version: self.version }
    }

    /// Field `MDEntrySize`, id 271.
    #[inline]
    pub fn md_entry_size(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 9, 17), version: self.version }
    }

    /// Field `NumberOfOrders`, id 346.
    #[inline]
    pub fn number_of_orders(&self) -> Option<u32> {
        let value = u32::from_le_bytes(part(self.base, 17));
        (value != 4_294_967_295).then_some(value)
    }

    /// Field `MDPriceLevel`, id 1023.
    #[inline]
    pub fn md_price_level(&self) -> Option<u8> {
        let value = u8::from_le_bytes(part(self.base, 21));
        (value != 255).then_some(value)
    }

}

/// Message `MarketDataSnapshotFullRefresh`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct MarketDataSnapshotFullRefreshEncoder<'b> {
    block: &'b mut [u8; 38],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> MarketDataSnapshotFullRefreshEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("MarketDataSnapshotFullRefresh")? = [38, 0, 87, 0, 1, 0, 1, 0];
        let block = writer.claim("MarketDataSnapshotFullRefresh")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 38]) {
        block.fill(0);
        put_items(block, 26, core::iter::repeat_n((4_294_967_295_u32).to_le_bytes(), 1));
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            let head = self.writer.claim::<4>("NoMDEntries")?;
            head.fill(0);
            put(head, 0, 22_u16.to_le_bytes());
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `MDReqID`, id 262.
    #[inline]
    pub fn md_req_id(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<20>(self.block, 0, value, "MDReqID")?,
            None => put_items(self.block, 0, core::iter::repeat_n((0_u8).to_le_bytes(), 20)),
        }
        Ok(self)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<6>(self.block, 20, value, "Symbol")?;
        Ok(self)
    }

    /// Field `LastMsgSeqNumProcessed`, id 369.
    #[inline]
    pub fn last_msg_seq_num_processed(&mut self, value: Option<u32>) -> &mut Self {
        let value = value.unwrap_or(4_294_967_295);
        put(self.block, 26, value.to_le_bytes());
        self
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&mut self, value: u64) -> &mut Self {
        put(self.block, 30, value.to_le_bytes());
        self
    }

    /// Group `NoMDEntries`, id 268: an entry for each item, which `each` writes.
    #[inline]
    pub fn no_md_entries<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut MarketDataSnapshotFullRefreshNoMdEntriesEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(0, "NoMDEntries")?;
        let head = self.writer.claim::<4>("NoMDEntries")?;
        head.fill(0);
        put(head, 0, 22_u16.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 65_534 {
                return Err(Error::TooMany { what: "NoMDEntries", max: 65_534 });
            }
            let mut entry = MarketDataSnapshotFullRefreshNoMdEntriesEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        put(head, 2, (count as u16).to_le_bytes());
        Ok(self)
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(1, "end of message")?;
        Ok(self.writer.written)
    }
}

/// An entry of group `NoMDEntries`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct MarketDataSnapshotFullRefreshNoMdEntriesEncoder<'e, 'b> {
    block: &'b mut [u8; 22],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> MarketDataSnapshotFullRefreshNoMdEntriesEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("NoMDEntries")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 22]) {
        block.fill(0);
        put_items(block, 1, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 9, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 17, core::iter::repeat_n((4_294_967_295_u32).to_le_bytes(), 1));
        put_items(block, 21, core::iter::repeat_n((255_u8).to_le_bytes(), 1));
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `MDEntryType`, id 269.
    #[inline]
    pub fn md_entry_type(&mut self, value: MdEntryType) -> &mut Self {
        put(self.block, 0, value.raw().to_le_bytes());
        self
    }

    /// Field `MDEntryPx`, id 270, to be written member by member.
    #[inline]
    pub fn md_entry_px(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 1, 9) }
    }

    /// Field `MDEntrySize`, id 271, to be written member by member.
    #[inline]
    pub fn md_entry_size(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 9, 17) }
    }

    /// Field `NumberOfOrders`, id 346.
    #[inline]
    pub fn number_of_orders(&mut self, value: Option<u32>) -> &mut Self {
        let value = value.unwrap_or(4_294_967_295);
        put(self.block, 17, value.to_le_bytes());
        self
    }

    /// Field `MDPriceLevel`, id 1023.
    #[inline]
    pub fn md_price_level(&mut self, value: Option<u8>) -> &mut Self {
        let value = value.unwrap_or(255);
        put(self.block, 21, value.to_le_bytes());
        self
    }

    #[inline]
    fn complete(mut self) -> Result<(), Error> {
        self.pass_to(0, "end of entry")
    }
}

/// Message `MassQuote`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct MassQuoteDecoder<'a> {
    base: &'a [u8; 52],
    block: &'a [u8],
    version: u32,
    group_0: MassQuoteNoQuoteSetsGroup<'a>,
    length: usize,
}

impl<'a> MassQuoteDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 105;

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

    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "MassQuote")?;
        let base = base(block, "MassQuote")?;
        let (group_0, rest) = MassQuoteNoQuoteSetsGroup::at(rest, version)?;
        Ok((Self { base, block, version, group_0, length: 0 }, rest))
    }

    /// Field `QuoteReqID`, id 131.
    #[inline]
    pub fn quote_req_id(&self) -> Option<&'a [u8; 20]> {
        let value = array(self.base, 0);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `QuoteID`, id 117.
    #[inline]
    pub fn quote_id(&self) -> &'a [u8; 20] {
        array(self.base, 20)
    }

    /// Field `Account`, id 1.
    #[inline]
    pub fn account(&self) -> Option<&'a [u8; 12]> {
        let value = array(self.base, 40);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Entries of group `NoQuoteSets`, id 296.
    #[inline]
    pub fn no_quote_sets(&self) -> MassQuoteNoQuoteSetsGroup<'a> {
        self.group_0.clone()
    }

}

/// Entries of group `NoQuoteSets`.
#[derive(Clone, Debug)]
pub struct MassQuoteNoQuoteSetsGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> MassQuoteNoQuoteSetsGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (head, rest) = chunk::<4>(rest, "NoQuoteSets")?;
        let (entry_length, count) = (u64::from(u16::from_le_bytes(part(head, 0))), u64::from(u16::from_le_bytes(part(head, 2))));
        let count = counted(rest, entry_length.saturating_add(4), count, "NoQuoteSets")?;
        let mut behind = rest;
        for _ in 0..count {
            behind = MassQuoteNoQuoteSetsDecoder::at(behind, entry_length, version)?.1;
        }
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for MassQuoteNoQuoteSetsGroup<'a> {
    type Item = MassQuoteNoQuoteSetsDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = MassQuoteNoQuoteSetsDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for MassQuoteNoQuoteSetsGroup<'_> {}

/// An entry of group `NoQuoteSets`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct MassQuoteNoQuoteSetsDecoder<'a> {
    base: &'a [u8; 30],
    block: &'a [u8],
    version: u32,
    group_0: MassQuoteNoQuoteSetsNoQuoteEntriesGroup<'a>,
}

impl<'a> MassQuoteNoQuoteSetsDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "NoQuoteSets")?;
        let base = base(block, "NoQuoteSets")?;
        let (group_0, rest) = MassQuoteNoQuoteSetsNoQuoteEntriesGroup::at(rest, version)?;
        Ok((Self { base, block, version, group_0 }, rest))
    }

    /// Field `QuoteSetID`, id 302.
    #[inline]
    pub fn quote_set_id(&self) -> &'a [u8; 20] {
        array(self.base, 0)
    }

    /// Field `UnderlyingSymbol`, id 311.
    #[inline]
    pub fn underlying_symbol(&self) -> Option<&'a [u8; 6]> {
        let value = array(self.base, 20);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `TotNoQuoteEntries`, id 304.
    #[inline]
    pub fn tot_no_quote_entries(&self) -> u32 {
        u32::from_le_bytes(part(self.base, 26))
    }

    /// Entries of group `NoQuoteEntries`, id 295.
    #[inline]
    pub fn no_quote_entries(&self) -> MassQuoteNoQuoteSetsNoQuoteEntriesGroup<'a> {
        self.group_0.clone()
    }

}

/// Entries of group `NoQuoteEntries`.
#[derive(Clone, Debug)]
pub struct MassQuoteNoQuoteSetsNoQuoteEntriesGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> MassQuoteNoQuoteSetsNoQuoteEntriesGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (head, rest) = chunk::<4>(rest, "NoQuoteEntries")?;
        let (entry_length, count) = (u64::from(u16::from_le_bytes(part(head, 0))), u64::from(u16::from_le_bytes(part(head, 2))));
        let count = counted(rest, entry_length.saturating_add(0), count, "NoQuoteEntries")?;
        if count > 0 {
            MassQuoteNoQuoteSetsNoQuoteEntriesDecoder::at(rest, entry_length, version)?;
        }
        let (_, behind) = take(rest, entry_length.saturating_mul(count as u64), "NoQuoteEntries")?;
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for MassQuoteNoQuoteSetsNoQuoteEntriesGroup<'a> {
    type Item = MassQuoteNoQuoteSetsNoQuoteEntriesDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = MassQuoteNoQuoteSetsNoQuoteEntriesDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for MassQuoteNoQuoteSetsNoQuoteEntriesGroup<'_> {}

/// An entry of group `NoQuoteEntries`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct MassQuoteNoQuoteSetsNoQuoteEntriesDecoder<'a> {
    base: &'a [u8; 66],
    block: &'a [u8],
    version: u32,
}

impl<'a> MassQuoteNoQuoteSetsNoQuoteEntriesDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "NoQuoteEntries")?;
        let base = base(block, "NoQuoteEntries")?;
        Ok((Self { base, block, version,  }, rest))
    }

    /// Field `QuoteEntryID`, id 299.
    #[inline]
    pub fn quote_entry_id(&self) -> &'a [u8; 20] {
        array(self.base, 0)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&self) -> &'a [u8; 6] {
        array(self.base, 20)
    }

    /// Field `BidPx`, id 132.
    #[inline]
    pub fn bid_px(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 26, 34), version: self.version }
    }

    /// Field `OfferPx`, id 133.
    #[inline]
    pub fn offer_px(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 34, 42), version: self.version }
    }

    /// Field `BidSize`, id 134.
    #[inline]
    pub fn bid_size(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 42, 50), version: self.version }
    }

    /// Field `OfferSize`, id 135.
    #[inline]
    pub fn offer_size(&self) -> Decimal64Decoder<'a> {
        Decimal64Decoder { bytes: window(self.block, 50, 58), version: self.version }
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&self) -> Option<u64> {
        let value = u64::from_le_bytes(part(self.base, 58));
        (value != 18_446_744_073_709_551_615).then_some(value)
    }

}

/// Message `MassQuote`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct MassQuoteEncoder<'b> {
    block: &'b mut [u8; 52],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> MassQuoteEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("MassQuote")? = [52, 0, 105, 0, 1, 0, 1, 0];
        let block = writer.claim("MassQuote")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 52]) {
        block.fill(0);
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            let head = self.writer.claim::<4>("NoQuoteSets")?;
            head.fill(0);
            put(head, 0, 30_u16.to_le_bytes());
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `QuoteReqID`, id 131.
    #[inline]
    pub fn quote_req_id(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<20>(self.block, 0, value, "QuoteReqID")?,
            None => put_items(self.block, 0, core::iter::repeat_n((0_u8).to_le_bytes(), 20)),
        }
        Ok(self)
    }

    /// Field `QuoteID`, id 117.
    #[inline]
    pub fn quote_id(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<20>(self.block, 20, value, "QuoteID")?;
        Ok(self)
    }

    /// Field `Account`, id 1.
    #[inline]
    pub fn account(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<12>(self.block, 40, value, "Account")?,
            None => put_items(self.block, 40, core::iter::repeat_n((0_u8).to_le_bytes(), 12)),
        }
        Ok(self)
    }

    /// Group `NoQuoteSets`, id 296: an entry for each item, which `each` writes.
    #[inline]
    pub fn no_quote_sets<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut MassQuoteNoQuoteSetsEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(0, "NoQuoteSets")?;
        let head = self.writer.claim::<4>("NoQuoteSets")?;
        head.fill(0);
        put(head, 0, 30_u16.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 65_534 {
                return Err(Error::TooMany { what: "NoQuoteSets", max: 65_534 });
            }
            let mut entry = MassQuoteNoQuoteSetsEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        put(head, 2, (count as u16).to_le_bytes());
        Ok(self)
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(1, "end of message")?;
        Ok(self.writer.written)
    }
}

/// An entry of group `NoQuoteSets`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct MassQuoteNoQuoteSetsEncoder<'e, 'b> {
    block: &'b mut [u8; 30],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> MassQuoteNoQuoteSetsEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("NoQuoteSets")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 30]) {
        block.fill(0);
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            let head = self.writer.claim::<4>("NoQuoteEntries")?;
            head.fill(0);
            put(head, 0, 66_u16.to_le_bytes());
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `QuoteSetID`, id 302.
    #[inline]
    pub fn quote_set_id(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<20>(self.block, 0, value, "QuoteSetID")?;
        Ok(self)
    }

    /// Field `UnderlyingSymbol`, id 311.
    #[inline]
    pub fn underlying_symbol(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<6>(self.block, 20, value, "UnderlyingSymbol")?,
            None => put_items(self.block, 20, core::iter::repeat_n((0_u8).to_le_bytes(), 6)),
        }
        Ok(self)
    }

    /// Field `TotNoQuoteEntries`, id 304.
    #[inline]
    pub fn tot_no_quote_entries(&mut self, value: u32) -> &mut Self {
        put(self.block, 26, value.to_le_bytes());
        self
    }

    /// Group `NoQuoteEntries`, id 295: an entry for each item, which `each` writes.
    #[inline]
    pub fn no_quote_entries<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut MassQuoteNoQuoteSetsNoQuoteEntriesEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(0, "NoQuoteEntries")?;
        let head = self.writer.claim::<4>("NoQuoteEntries")?;
        head.fill(0);
        put(head, 0, 66_u16.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 65_534 {
                return Err(Error::TooMany { what: "NoQuoteEntries", max: 65_534 });
            }
            let mut entry = MassQuoteNoQuoteSetsNoQuoteEntriesEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        put(head, 2, (count as u16).to_le_bytes());
        Ok(self)
    }

    #[inline]
    fn complete(mut self) -> Result<(), Error> {
        self.pass_to(1, "end of entry")
    }
}

/// An entry of group `NoQuoteEntries`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct MassQuoteNoQuoteSetsNoQuoteEntriesEncoder<'e, 'b> {
    block: &'b mut [u8; 66],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> MassQuoteNoQuoteSetsNoQuoteEntriesEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("NoQuoteEntries")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 66]) {
        block.fill(0);
        put_items(block, 26, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 34, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 42, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 50, core::iter::repeat_n((9_223_372_036_854_775_807_i64).to_le_bytes(), 1));
        put_items(block, 58, core::iter::repeat_n((18_446_744_073_709_551_615_u64).to_le_bytes(), 1));
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `QuoteEntryID`, id 299.
    #[inline]
    pub fn quote_entry_id(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<20>(self.block, 0, value, "QuoteEntryID")?;
        Ok(self)
    }

    /// Field `Symbol`, id 55.
    #[inline]
    pub fn symbol(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<6>(self.block, 20, value, "Symbol")?;
        Ok(self)
    }

    /// Field `BidPx`, id 132, to be written member by member.
    #[inline]
    pub fn bid_px(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 26, 34) }
    }

    /// Field `OfferPx`, id 133, to be written member by member.
    #[inline]
    pub fn offer_px(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 34, 42) }
    }

    /// Field `BidSize`, id 134, to be written member by member.
    #[inline]
    pub fn bid_size(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 42, 50) }
    }

    /// Field `OfferSize`, id 135, to be written member by member.
    #[inline]
    pub fn offer_size(&mut self) -> Decimal64Encoder<'_> {
        Decimal64Encoder { bytes: window_mut(self.block, 50, 58) }
    }

    /// Field `TransactTime`, id 60.
    #[inline]
    pub fn transact_time(&mut self, value: Option<u64>) -> &mut Self {
        let value = value.unwrap_or(18_446_744_073_709_551_615);
        put(self.block, 58, value.to_le_bytes());
        self
    }

    #[inline]
    fn complete(mut self) -> Result<(), Error> {
        self.pass_to(0, "end of entry")
    }
}

/// Why bytes are no message, or a message cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The buffer ends before the message does.
    Truncated {
        /// Name of what is cut off.
        what: &'static str,
        /// Bytes that it has.
        needed: u64,
        /// Bytes that are left.
        left: usize,
    },
    /// A block is shorter than the message's version has it.
    ShortBlock {
        /// Name of the block.
        what: &'static str,
        /// Bytes that its version has.
        needed: usize,
        /// Bytes that it has.
        length: usize,
    },
    /// A message of another schema.
    WrongSchema {
        /// Id of this schema.
        expected: u32,
        /// Id in the message.
        actual: u64,
    },
    /// Another message.
    WrongTemplate {
        /// Template id of the message that was asked for.
        expected: u32,
        /// Template id in the message.
        actual: u64,
    },
    /// The schema has no such message.
    UnknownTemplate {
        /// Template id in the message.
        actual: u64,
    },
    /// More than 255 entries that have no bytes.
    EmptyEntries {
        /// Name of the group.
        what: &'static str,
        /// Entries that it says.
        count: u64,
    },
    /// The buffer is too short: give a longer one.
    Overflow {
        /// Name of what does not fit.
        what: &'static str,
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// More entries or bytes than the schema allows.
    TooMany {
        /// Name of the group, field or data.
        what: &'static str,
        /// Most that are allowed.
        max: u64,
    },
    /// A value outside of the range that the schema says.
    OutOfRange {
        /// Name of the field.
        what: &'static str,
    },
    /// A group or data was written or passed already.
    Order {
        /// Its name.
        what: &'static str,
    },
}

impl core::fmt::Display for Error {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Truncated { what, needed, left } => {
                write!(out, "{what}: expected {needed} bytes, {left} are left")
            }
            Self::ShortBlock { what, needed, length } => {
                write!(out, "{what}: expected a block of {needed} bytes or more in this version, it has {length}")
            }
            Self::WrongSchema { expected, actual } => {
                write!(out, "expected schema id {expected}, the message has {actual}")
            }
            Self::WrongTemplate { expected, actual } => {
                write!(out, "expected template id {expected}, the message has {actual}")
            }
            Self::UnknownTemplate { actual } => write!(out, "the schema has no message of template id {actual}"),
            Self::EmptyEntries { what, count } => {
                write!(out, "{what}: {count} entries without bytes, expected at most 255")
            }
            Self::Overflow { what, needed, left } => {
                write!(out, "{what} needs {needed} bytes, the buffer has {left} left: give a longer buffer")
            }
            Self::TooMany { what, max } => write!(out, "{what}: expected at most {max} entries or bytes"),
            Self::OutOfRange { what } => write!(out, "{what}: expected a value of the range that the schema says"),
            Self::Order { what } => write!(out, "{what} cannot be written now: it was written or passed already"),
        }
    }
}

impl core::error::Error for Error {}

/// Text of a field or data: what stands before the first zero byte.
pub fn text(bytes: &[u8]) -> Result<&str, core::str::Utf8Error> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    core::str::from_utf8(bytes.get(..end).unwrap_or(bytes))
}

/// Cut bytes off the front.
#[inline]
fn take<'a>(bytes: &'a [u8], length: u64, what: &'static str) -> Result<(&'a [u8], &'a [u8]), Error> {
    let cut = usize::try_from(length).ok().and_then(|length| bytes.split_at_checked(length));
    cut.ok_or(Error::Truncated { what, needed: length, left: bytes.len() })
}

/// Cut a known number of bytes off the front.
#[inline]
fn chunk<'a, const N: usize>(bytes: &'a [u8], what: &'static str) -> Result<(&'a [u8; N], &'a [u8]), Error> {
    bytes.split_first_chunk().ok_or(Error::Truncated { what, needed: N as u64, left: bytes.len() })
}

/// What every version has of a block.
#[inline]
fn base<'a, const N: usize>(block: &'a [u8], what: &'static str) -> Result<&'a [u8; N], Error> {
    block.first_chunk().ok_or(Error::ShortBlock { what, needed: N, length: block.len() })
}

/// Check a group's count against the bytes that are left, before anything is done for its entries.
#[inline]
fn counted(rest: &[u8], least: u64, count: u64, what: &'static str) -> Result<usize, Error> {
    if least == 0 && count > 255 {
        return Err(Error::EmptyEntries { what, count });
    }
    take(rest, least.saturating_mul(count), what)?;
    Ok(count as usize)
}

/// Bytes of a number. They are there: the block was checked before, and zero would be read otherwise.
#[inline]
fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *array(bytes, at)
}

/// Bytes of an array, as those of a number.
#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> &[u8; N] {
    bytes.get(at..).and_then(<[u8]>::first_chunk).unwrap_or(const { &[0; N] })
}

/// Bytes of each item of an array.
#[inline]
fn items<const N: usize>(
    bytes: &[u8],
    at: usize,
    count: usize,
) -> impl ExactSizeIterator<Item = [u8; N]> + Clone + use<'_, N> {
    window(bytes, at, at + count * N).chunks_exact(N).map(|item| part(item, 0))
}

/// Bytes of a composite, as far as they are there.
#[inline]
fn window(bytes: &[u8], from: usize, to: usize) -> &[u8] {
    bytes.get(from..to.min(bytes.len())).unwrap_or(&[])
}

/// Bytes of a composite to write into.
#[inline]
fn window_mut(bytes: &mut [u8], from: usize, to: usize) -> &mut [u8] {
    bytes.get_mut(from..to).unwrap_or_default()
}

/// Write the bytes of a number.
#[inline]
fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(slot) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *slot = value;
    }
}

/// Write the bytes of the items of an array.
#[inline]
fn put_items<const N: usize>(bytes: &mut [u8], at: usize, items: impl Iterator<Item = [u8; N]>) {
    for (index, item) in items.enumerate() {
        put(bytes, at + index * N, item);
    }
}

/// Write bytes into an array of at least as many, and zero behind them.
#[inline]
fn put_padded<const N: usize>(bytes: &mut [u8], at: usize, value: &[u8], what: &'static str) -> Result<(), Error> {
    let slot = window_mut(bytes, at, at + N);
    let Some((front, behind)) = slot.split_at_mut_checked(value.len()) else {
        return Err(Error::TooMany { what, max: N as u64 });
    };
    front.copy_from_slice(value);
    behind.fill(0);
    Ok(())
}

/// What is left of a caller's buffer.
#[derive(Debug)]
struct Writer<'b> {
    rest: &'b mut [u8],
    written: usize,
}

impl<'b> Writer<'b> {
    /// The same writer, whether it is owned or borrowed.
    #[inline]
    fn again(&mut self) -> &mut Self {
        self
    }

    /// Cut a known number of bytes off the front.
    #[inline]
    fn claim<const N: usize>(&mut self, what: &'static str) -> Result<&'b mut [u8; N], Error> {
        let overflow = Error::Overflow { what, needed: N, left: self.rest.len() };
        if self.rest.len() < N {
            return Err(overflow);
        }
        let (claimed, rest) = core::mem::take(&mut self.rest).split_first_chunk_mut().ok_or(overflow)?;
        self.rest = rest;
        self.written += N;
        Ok(claimed)
    }

    /// Write bytes of any number.
    #[inline]
    fn bytes(&mut self, given: &[u8], what: &'static str) -> Result<(), Error> {
        let overflow = Error::Overflow { what, needed: given.len(), left: self.rest.len() };
        if self.rest.len() < given.len() {
            return Err(overflow);
        }
        let cut = core::mem::take(&mut self.rest).split_at_mut_checked(given.len());
        let (claimed, rest) = cut.ok_or(overflow)?;
        claimed.copy_from_slice(given);
        self.rest = rest;
        self.written += given.len();
        Ok(())
    }
}

/// A count or length that the schema allows.
#[inline]
fn limited(count: usize, max: u64, what: &'static str) -> Result<u64, Error> {
    let count = count as u64;
    if count > max { Err(Error::TooMany { what, max }) } else { Ok(count) }
}
