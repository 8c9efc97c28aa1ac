//! Messages of schema `cars`, id 7, version 2, written by `relay sbe generate --language rust`.
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
pub const SCHEMA_ID: u32 = 7;
/// Version of the schema that encoders write.
pub const SCHEMA_VERSION: u32 = 2;

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
    /// Template id 1.
    Car(CarDecoder<'a>),
}

impl<'a> Message<'a> {
    /// Look at the message that starts with `bytes`, by its template id; more bytes may follow it.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = Header::read(bytes)?;
        match header.template_id {
            1 => Ok(Self::Car(CarDecoder::of(&header)?)),
            actual => Err(Error::UnknownTemplate { actual }),
        }
    }
}

/// Enum `Model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Model {
    /// Value `A`.
    A,
    /// Value `B`.
    B,
    /// A value that the schema does not know.
    Unknown(u8),
}

impl Model {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: u8) -> Self {
        match raw {
            65 => Self::A,
            66 => Self::B,
            other => Self::Unknown(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> u8 {
        match self {
            Self::A => 65,
            Self::B => 66,
            Self::Unknown(raw) => raw,
        }
    }
}

/// Set `Extras`, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras(
    /// All bits, unknown ones included.
    pub u8,
);

impl Extras {
    /// Choice `roof`.
    #[inline]
    pub const fn roof(self) -> bool {
        self.0 & 1 != 0
    }

    /// The set with or without `roof`.
    #[inline]
    pub const fn with_roof(self, is_chosen: bool) -> Self {
        Self(if is_chosen { self.0 | 1 } else { self.0 & !1 })
    }

    /// Choice `sport`.
    #[inline]
    pub const fn sport(self) -> bool {
        self.0 & 2 != 0
    }

    /// The set with or without `sport`.
    #[inline]
    pub const fn with_sport(self, is_chosen: bool) -> Self {
        Self(if is_chosen { self.0 | 2 } else { self.0 & !2 })
    }

    /// Choice `cruise`.
    #[inline]
    pub const fn cruise(self) -> bool {
        self.0 & 4 != 0
    }

    /// The set with or without `cruise`.
    #[inline]
    pub const fn with_cruise(self, is_chosen: bool) -> Self {
        Self(if is_chosen { self.0 | 4 } else { self.0 & !4 })
    }

}

/// Composite `Engine`, where it lies.
#[derive(Clone, Copy, Debug)]
pub struct EngineDecoder<'a> {
    bytes: &'a [u8],
    version: u32,
}

impl<'a> EngineDecoder<'a> {
    /// Member `capacity`.
    #[inline]
    pub fn capacity(&self) -> u16 {
        u16::from_le_bytes(part(self.bytes, 0))
    }

    /// Member `fuel`, which is always the same.
    pub const FUEL: &'static str = "Petrol";

    /// Member `extras`.
    #[inline]
    pub fn extras(&self) -> Extras {
        Extras(u8::from_le_bytes(part(self.bytes, 4)))
    }

}

/// Composite `Engine`, to be written where it lies.
#[derive(Debug)]
pub struct EngineEncoder<'b> {
    bytes: &'b mut [u8],
}

impl EngineEncoder<'_> {
    /// Member `capacity`.
    #[inline]
    pub fn capacity(&mut self, value: u16) -> &mut Self {
        put(self.bytes, 0, value.to_le_bytes());
        self
    }

    /// Member `extras`.
    #[inline]
    pub fn extras(&mut self, value: Extras) -> &mut Self {
        put(self.bytes, 4, value.0.to_le_bytes());
        self
    }

}

/// Message `Car`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct CarDecoder<'a> {
    base: &'a [u8; 23],
    block: &'a [u8],
    version: u32,
    group_0: CarFuelGroup<'a>,
    group_1: CarPerformanceGroup<'a>,
    data_0: &'a [u8],
    data_1: &'a [u8],
    length: usize,
}

impl<'a> CarDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 1;

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
        let (block, rest) = take(bytes, block_length, "Car")?;
        let base = base(block, "Car")?;
        let (group_0, rest) = CarFuelGroup::at(rest, version)?;
        let (group_1, rest) = CarPerformanceGroup::at(rest, version)?;
        let (head, rest) = chunk::<2>(rest, "manufacturer")?;
        let (data_0, rest) = take(rest, u64::from(u16::from_le_bytes(part(head, 0))), "manufacturer")?;
        let (head, rest) = chunk::<2>(rest, "model_name")?;
        let (data_1, rest) = take(rest, u64::from(u16::from_le_bytes(part(head, 0))), "model_name")?;
        Ok((Self { base, block, version, group_0, group_1, data_0, data_1, length: 0 }, rest))
    }

    /// Field `serial`, id 1.
    #[inline]
    pub fn serial(&self) -> u64 {
        u64::from_le_bytes(part(self.base, 0))
    }

    /// Field `year`, id 2.
    #[inline]
    pub fn year(&self) -> Option<u16> {
        let value = u16::from_le_bytes(part(self.base, 8));
        (value != 65_535).then_some(value)
    }

    /// Field `model`, id 3.
    #[inline]
    pub fn model(&self) -> Model {
        Model::from_raw(u8::from_le_bytes(part(self.base, 10)))
    }

    /// Field `code`, id 4.
    #[inline]
    pub fn code(&self) -> &'a [u8; 6] {
        array(self.base, 11)
    }

    /// Field `extras`, id 5.
    #[inline]
    pub fn extras(&self) -> Extras {
        Extras(u8::from_le_bytes(part(self.base, 17)))
    }

    /// Field `discounted`, id 6, which is always the same.
    pub const DISCOUNTED: Model = Model::A;

    /// Field `engine`, id 7.
    #[inline]
    pub fn engine(&self) -> EngineDecoder<'a> {
        EngineDecoder { bytes: window(self.block, 18, 23), version: self.version }
    }

    /// Entries of group `fuel`, id 8.
    #[inline]
    pub fn fuel(&self) -> CarFuelGroup<'a> {
        self.group_0.clone()
    }

    /// Entries of group `performance`, id 11.
    #[inline]
    pub fn performance(&self) -> CarPerformanceGroup<'a> {
        self.group_1.clone()
    }

    /// Data `manufacturer`, id 16.
    #[inline]
    pub fn manufacturer(&self) -> &'a [u8] {
        self.data_0
    }

    /// Data `model_name`, id 17.
    #[inline]
    pub fn model_name(&self) -> &'a [u8] {
        self.data_1
    }

}

/// Entries of group `fuel`.
#[derive(Clone, Debug)]
pub struct CarFuelGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> CarFuelGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (head, rest) = chunk::<4>(rest, "fuel")?;
        let (entry_length, count) = (u64::from(u16::from_le_bytes(part(head, 0))), u64::from(u16::from_le_bytes(part(head, 2))));
        let count = counted(rest, entry_length.saturating_add(2), count, "fuel")?;
        let mut behind = rest;
        for _ in 0..count {
            behind = CarFuelDecoder::at(behind, entry_length, version)?.1;
        }
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for CarFuelGroup<'a> {
    type Item = CarFuelDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = CarFuelDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for CarFuelGroup<'_> {}

/// An entry of group `fuel`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct CarFuelDecoder<'a> {
    base: &'a [u8; 2],
    block: &'a [u8],
    version: u32,
    data_0: &'a [u8],
}

impl<'a> CarFuelDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "fuel")?;
        let base = base(block, "fuel")?;
        let (head, rest) = chunk::<2>(rest, "usage")?;
        let (data_0, rest) = take(rest, u64::from(u16::from_le_bytes(part(head, 0))), "usage")?;
        Ok((Self { base, block, version, data_0 }, rest))
    }

    /// Field `speed`, id 9.
    #[inline]
    pub fn speed(&self) -> u16 {
        u16::from_le_bytes(part(self.base, 0))
    }

    /// Data `usage`, id 10.
    #[inline]
    pub fn usage(&self) -> &'a [u8] {
        self.data_0
    }

}

/// Entries of group `performance`.
#[derive(Clone, Debug)]
pub struct CarPerformanceGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> CarPerformanceGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (head, rest) = chunk::<4>(rest, "performance")?;
        let (entry_length, count) = (u64::from(u16::from_le_bytes(part(head, 0))), u64::from(u16::from_le_bytes(part(head, 2))));
        let count = counted(rest, entry_length.saturating_add(4), count, "performance")?;
        let mut behind = rest;
        for _ in 0..count {
            behind = CarPerformanceDecoder::at(behind, entry_length, version)?.1;
        }
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for CarPerformanceGroup<'a> {
    type Item = CarPerformanceDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = CarPerformanceDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for CarPerformanceGroup<'_> {}

/// An entry of group `performance`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct CarPerformanceDecoder<'a> {
    base: &'a [u8; 1],
    block: &'a [u8],
    version: u32,
    group_0: CarPerformanceAccelerationGroup<'a>,
}

impl<'a> CarPerformanceDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "performance")?;
        let base = base(block, "performance")?;
        let (group_0, rest) = CarPerformanceAccelerationGroup::at(rest, version)?;
        Ok((Self { base, block, version, group_0 }, rest))
    }

    /// Field `octane`, id 12.
    #[inline]
    pub fn octane(&self) -> u8 {
        u8::from_le_bytes(part(self.base, 0))
    }

    /// Entries of group `acceleration`, id 13.
    #[inline]
    pub fn acceleration(&self) -> CarPerformanceAccelerationGroup<'a> {
        self.group_0.clone()
    }

}

/// Entries of group `acceleration`.
#[derive(Clone, Debug)]
pub struct CarPerformanceAccelerationGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> CarPerformanceAccelerationGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (head, rest) = chunk::<4>(rest, "acceleration")?;
        let (entry_length, count) = (u64::from(u16::from_le_bytes(part(head, 0))), u64::from(u16::from_le_bytes(part(head, 2))));
        let count = counted(rest, entry_length.saturating_add(0), count, "acceleration")?;
        if count > 0 {
            CarPerformanceAccelerationDecoder::at(rest, entry_length, version)?;
        }
        let (_, behind) = take(rest, entry_length.saturating_mul(count as u64), "acceleration")?;
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for CarPerformanceAccelerationGroup<'a> {
    type Item = CarPerformanceAccelerationDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = CarPerformanceAccelerationDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for CarPerformanceAccelerationGroup<'_> {}

/// An entry of group `acceleration`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct CarPerformanceAccelerationDecoder<'a> {
    base: &'a [u8; 6],
    block: &'a [u8],
    version: u32,
}

impl<'a> CarPerformanceAccelerationDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "acceleration")?;
        let base = base(block, "acceleration")?;
        Ok((Self { base, block, version,  }, rest))
    }

    /// Field `mph`, id 14.
    #[inline]
    pub fn mph(&self) -> u16 {
        u16::from_le_bytes(part(self.base, 0))
    }

    /// Field `seconds`, id 15.
    #[inline]
    pub fn seconds(&self) -> f32 {
        f32::from_le_bytes(part(self.base, 2))
    }

}

/// Message `Car`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct CarEncoder<'b> {
    block: &'b mut [u8; 23],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> CarEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("Car")? = [23, 0, 1, 0, 7, 0, 2, 0];
        let block = writer.claim("Car")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 23]) {
        block.fill(0);
        put_items(block, 8, core::iter::repeat_n((65_535_u16).to_le_bytes(), 1));
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            let head = self.writer.claim::<4>("fuel")?;
            head.fill(0);
            put(head, 0, 2_u16.to_le_bytes());
        }
        if (self.next..ordinal).contains(&1) {
            let head = self.writer.claim::<4>("performance")?;
            head.fill(0);
            put(head, 0, 1_u16.to_le_bytes());
        }
        if (self.next..ordinal).contains(&2) {
            self.writer.claim::<2>("manufacturer")?.fill(0);
        }
        if (self.next..ordinal).contains(&3) {
            self.writer.claim::<2>("model_name")?.fill(0);
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `serial`, id 1.
    #[inline]
    pub fn serial(&mut self, value: u64) -> &mut Self {
        put(self.block, 0, value.to_le_bytes());
        self
    }

    /// Field `year`, id 2.
    #[inline]
    pub fn year(&mut self, value: Option<u16>) -> &mut Self {
        let value = value.unwrap_or(65_535);
        put(self.block, 8, value.to_le_bytes());
        self
    }

    /// Field `model`, id 3.
    #[inline]
    pub fn model(&mut self, value: Model) -> &mut Self {
        put(self.block, 10, value.raw().to_le_bytes());
        self
    }

    /// Field `code`, id 4.
    #[inline]
    pub fn code(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<6>(self.block, 11, value, "code")?;
        Ok(self)
    }

    /// Field `extras`, id 5.
    #[inline]
    pub fn extras(&mut self, value: Extras) -> &mut Self {
        put(self.block, 17, value.0.to_le_bytes());
        self
    }

    /// Field `engine`, id 7, to be written member by member.
    #[inline]
    pub fn engine(&mut self) -> EngineEncoder<'_> {
        EngineEncoder { bytes: window_mut(self.block, 18, 23) }
    }

    /// Group `fuel`, id 8: an entry for each item, which `each` writes.
    #[inline]
    pub fn fuel<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut CarFuelEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(0, "fuel")?;
        let head = self.writer.claim::<4>("fuel")?;
        head.fill(0);
        put(head, 0, 2_u16.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 65_534 {
                return Err(Error::TooMany { what: "fuel", max: 65_534 });
            }
            let mut entry = CarFuelEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        put(head, 2, (count as u16).to_le_bytes());
        Ok(self)
    }

    /// Group `performance`, id 11: an entry for each item, which `each` writes.
    #[inline]
    pub fn performance<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut CarPerformanceEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(1, "performance")?;
        let head = self.writer.claim::<4>("performance")?;
        head.fill(0);
        put(head, 0, 1_u16.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 65_534 {
                return Err(Error::TooMany { what: "performance", max: 65_534 });
            }
            let mut entry = CarPerformanceEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        put(head, 2, (count as u16).to_le_bytes());
        Ok(self)
    }

    /// Data `manufacturer`, id 16.
    #[inline]
    pub fn manufacturer(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to(2, "manufacturer")?;
        let length = limited(bytes.len(), 65_534, "manufacturer")?;
        let head = self.writer.claim::<2>("manufacturer")?;
        head.fill(0);
        put(head, 0, (length as u16).to_le_bytes());
        self.writer.bytes(bytes, "manufacturer")?;
        Ok(self)
    }

    /// Data `model_name`, id 17.
    #[inline]
    pub fn model_name(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to(3, "model_name")?;
        let length = limited(bytes.len(), 65_534, "model_name")?;
        let head = self.writer.claim::<2>("model_name")?;
        head.fill(0);
        put(head, 0, (length as u16).to_le_bytes());
        self.writer.bytes(bytes, "model_name")?;
        Ok(self)
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(4, "end of message")?;
        Ok(self.writer.written)
    }
}

/// An entry of group `fuel`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct CarFuelEncoder<'e, 'b> {
    block: &'b mut [u8; 2],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> CarFuelEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("fuel")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 2]) {
        block.fill(0);
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            self.writer.claim::<2>("usage")?.fill(0);
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `speed`, id 9.
    #[inline]
    pub fn speed(&mut self, value: u16) -> &mut Self {
        put(self.block, 0, value.to_le_bytes());
        self
    }

    /// Data `usage`, id 10.
    #[inline]
    pub fn usage(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to(0, "usage")?;
        let length = limited(bytes.len(), 65_534, "usage")?;
        let head = self.writer.claim::<2>("usage")?;
        head.fill(0);
        put(head, 0, (length as u16).to_le_bytes());
        self.writer.bytes(bytes, "usage")?;
        Ok(self)
    }

    #[inline]
    fn complete(mut self) -> Result<(), Error> {
        self.pass_to(1, "end of entry")
    }
}

/// An entry of group `performance`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct CarPerformanceEncoder<'e, 'b> {
    block: &'b mut [u8; 1],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> CarPerformanceEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("performance")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 1]) {
        block.fill(0);
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            let head = self.writer.claim::<4>("acceleration")?;
            head.fill(0);
            put(head, 0, 6_u16.to_le_bytes());
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `octane`, id 12.
    #[inline]
    pub fn octane(&mut self, value: u8) -> &mut Self {
        put(self.block, 0, value.to_le_bytes());
        self
    }

    /// Group `acceleration`, id 13: an entry for each item, which `each` writes.
    #[inline]
    pub fn acceleration<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut CarPerformanceAccelerationEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(0, "acceleration")?;
        let head = self.writer.claim::<4>("acceleration")?;
        head.fill(0);
        put(head, 0, 6_u16.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 65_534 {
                return Err(Error::TooMany { what: "acceleration", max: 65_534 });
            }
            let mut entry = CarPerformanceAccelerationEncoder::begin(self.writer.again())?;
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

/// An entry of group `acceleration`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct CarPerformanceAccelerationEncoder<'e, 'b> {
    block: &'b mut [u8; 6],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> CarPerformanceAccelerationEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("acceleration")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 6]) {
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

    /// Field `mph`, id 14.
    #[inline]
    pub fn mph(&mut self, value: u16) -> &mut Self {
        put(self.block, 0, value.to_le_bytes());
        self
    }

    /// Field `seconds`, id 15.
    #[inline]
    pub fn seconds(&mut self, value: f32) -> &mut Self {
        put(self.block, 2, value.to_le_bytes());
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
