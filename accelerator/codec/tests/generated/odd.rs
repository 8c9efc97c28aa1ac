//! Messages of schema `odd`, id 70_000, version 3, written by `relay sbe generate --language rust`.
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
pub const SCHEMA_ID: u32 = 70_000;
/// Version of the schema that encoders write.
pub const SCHEMA_VERSION: u32 = 3;

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
        let (head, rest) = chunk::<22>(bytes, "head")?;
        let schema_id = u64::from_le_bytes(part(head, 7));
        if schema_id != u64::from(SCHEMA_ID) {
            return Err(Error::WrongSchema { expected: SCHEMA_ID, actual: schema_id });
        }
        let version = u32::try_from(u64::from(u8::from_le_bytes(part(head, 0)))).unwrap_or(u32::MAX);
        Ok(Self { template_id: u64::from(u32::from_le_bytes(part(head, 18))), version, block_length: u64::from(u32::from_le_bytes(part(head, 3))), bytes, rest })
    }
}

/// Any message of the schema.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Message<'a> {
    /// Template id 1_234_567.
    Everything(EverythingDecoder<'a>),
    /// Template id 2.
    Empty(EmptyDecoder<'a>),
    /// Template id 3.
    Result(ResultDecoder<'a>),
}

impl<'a> Message<'a> {
    /// Look at the message that starts with `bytes`, by its template id; more bytes may follow it.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = Header::read(bytes)?;
        match header.template_id {
            1_234_567 => Ok(Self::Everything(EverythingDecoder::of(&header)?)),
            2 => Ok(Self::Empty(EmptyDecoder::of(&header)?)),
            3 => Ok(Self::Result(ResultDecoder::of(&header)?)),
            actual => Err(Error::UnknownTemplate { actual }),
        }
    }
}

/// Enum `Result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Result2 {
    /// Value `self`.
    Self2,
    /// Value `Unknown`.
    Unknown,
    /// Value `XMLThing`.
    XmlThing,
    /// A value that the schema does not know.
    Unknown2(i8),
}

impl Result2 {
    /// The value of this number.
    #[inline]
    pub const fn from_raw(raw: i8) -> Self {
        match raw {
            -1 => Self::Self2,
            0 => Self::Unknown,
            5 => Self::XmlThing,
            other => Self::Unknown2(other),
        }
    }

    /// Its number.
    #[inline]
    pub const fn raw(self) -> i8 {
        match self {
            Self::Self2 => -1,
            Self::Unknown => 0,
            Self::XmlThing => 5,
            Self::Unknown2(raw) => raw,
        }
    }
}

/// Set `Wide`, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wide(
    /// All bits, unknown ones included.
    pub u64,
);

impl Wide {
    /// Choice `first`.
    #[inline]
    pub const fn first(self) -> bool {
        self.0 & 1 != 0
    }

    /// The set with or without `first`.
    #[inline]
    pub const fn with_first(self, is_chosen: bool) -> Self {
        Self(if is_chosen { self.0 | 1 } else { self.0 & !1 })
    }

    /// Choice `type`.
    #[inline]
    pub const fn type_(self) -> bool {
        self.0 & 2_147_483_648 != 0
    }

    /// The set with or without `type`.
    #[inline]
    pub const fn with_type_(self, is_chosen: bool) -> Self {
        Self(if is_chosen { self.0 | 2_147_483_648 } else { self.0 & !2_147_483_648 })
    }

    /// Choice `last`.
    #[inline]
    pub const fn last(self) -> bool {
        self.0 & 9_223_372_036_854_775_808 != 0
    }

    /// The set with or without `last`.
    #[inline]
    pub const fn with_last(self, is_chosen: bool) -> Self {
        Self(if is_chosen { self.0 | 9_223_372_036_854_775_808 } else { self.0 & !9_223_372_036_854_775_808 })
    }

}

/// Composite `Inner`, where it lies.
#[derive(Clone, Copy, Debug)]
pub struct InnerDecoder<'a> {
    bytes: &'a [u8],
    version: u32,
}

impl<'a> InnerDecoder<'a> {
    /// Member `a`.
    #[inline]
    pub fn a(&self) -> u8 {
        u8::from_le_bytes(part(self.bytes, 0))
    }

    /// Member `result`.
    #[inline]
    pub fn result(&self) -> Result2 {
        Result2::from_raw(i8::from_le_bytes(part(self.bytes, 1)))
    }

    /// Member `later`.
    #[inline]
    pub fn later(&self) -> Option<u16> {
        (self.version >= 2).then(|| u16::from_le_bytes(part(self.bytes, 2)))
    }

}

/// Composite `Inner`, to be written where it lies.
#[derive(Debug)]
pub struct InnerEncoder<'b> {
    bytes: &'b mut [u8],
}

impl InnerEncoder<'_> {
    /// Member `a`.
    #[inline]
    pub fn a(&mut self, value: u8) -> &mut Self {
        put(self.bytes, 0, value.to_le_bytes());
        self
    }

    /// Member `result`.
    #[inline]
    pub fn result(&mut self, value: Result2) -> &mut Self {
        put(self.bytes, 1, value.raw().to_le_bytes());
        self
    }

    /// Member `later`.
    #[inline]
    pub fn later(&mut self, value: u16) -> &mut Self {
        put(self.bytes, 2, value.to_le_bytes());
        self
    }

}

/// Composite `Outer`, where it lies.
#[derive(Clone, Copy, Debug)]
pub struct OuterDecoder<'a> {
    bytes: &'a [u8],
    version: u32,
}

impl<'a> OuterDecoder<'a> {
    /// Member `kept`.
    #[inline]
    pub fn kept(&self) -> Option<i64> {
        let value = i64::from_le_bytes(part(self.bytes, 0));
        (value != -9_223_372_036_854_775_808).then_some(value)
    }

    /// Member `inner`.
    #[inline]
    pub fn inner(&self) -> InnerDecoder<'a> {
        InnerDecoder { bytes: window(self.bytes, 10, 14), version: self.version }
    }

    /// Member `greeting`, which is always the same.
    pub const GREETING: &'static str = "he\"lo";

}

/// Composite `Outer`, to be written where it lies.
#[derive(Debug)]
pub struct OuterEncoder<'b> {
    bytes: &'b mut [u8],
}

impl OuterEncoder<'_> {
    /// Member `kept`.
    #[inline]
    pub fn kept(&mut self, value: Option<i64>) -> &mut Self {
        let value = value.unwrap_or(-9_223_372_036_854_775_808);
        put(self.bytes, 0, value.to_le_bytes());
        self
    }

    /// Member `inner`, to be written member by member.
    #[inline]
    pub fn inner(&mut self) -> InnerEncoder<'_> {
        InnerEncoder { bytes: window_mut(self.bytes, 10, 14) }
    }

}

/// Message `Everything`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct EverythingDecoder<'a> {
    base: &'a [u8; 103],
    block: &'a [u8],
    version: u32,
    group_0: EverythingPlainGroup<'a>,
    group_1: EverythingNestedGroup<'a>,
    group_2: EverythingFreshGroup<'a>,
    data_0: &'a [u8],
    data_1: &'a [u8],
    length: usize,
}

impl<'a> EverythingDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 1_234_567;

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
        let (block, rest) = take(bytes, block_length, "Everything")?;
        let base = base(block, "Everything")?;
        if version >= 1 && block.len() < 107 {
            return Err(Error::ShortBlock { what: "Everything", needed: 107, length: block.len() });
        }
        if version >= 2 && block.len() < 123 {
            return Err(Error::ShortBlock { what: "Everything", needed: 123, length: block.len() });
        }
        if version >= 3 && block.len() < 124 {
            return Err(Error::ShortBlock { what: "Everything", needed: 124, length: block.len() });
        }
        let (group_0, rest) = EverythingPlainGroup::at(rest, version)?;
        let (group_1, rest) = EverythingNestedGroup::at(rest, version)?;
        let (group_2, rest) = EverythingFreshGroup::at(rest, version)?;
        let (head, rest) = chunk::<1>(rest, "first")?;
        let (data_0, rest) = take(rest, u64::from(u8::from_le_bytes(part(head, 0))), "first")?;
        let (data_1, rest) = if version < 2 {
            (&[][..], rest)
        } else {
            let (head, rest) = chunk::<10>(rest, "second")?;
            take(rest, u64::from_le_bytes(part(head, 0)), "second")?
        };
        Ok((Self { base, block, version, group_0, group_1, group_2, data_0, data_1, length: 0 }, rest))
    }

    /// Field `type`, id 1.
    #[inline]
    pub fn type_(&self) -> u8 {
        u8::from_le_bytes(part(self.base, 0))
    }

    /// Field `Type`, id 2.
    #[inline]
    pub fn type_2(&self) -> u8 {
        u8::from_le_bytes(part(self.base, 1))
    }

    /// Field `decode`, id 3.
    #[inline]
    pub fn decode2(&self) -> i16 {
        i16::from_le_bytes(part(self.base, 4))
    }

    /// Field `i32`, id 4.
    #[inline]
    pub fn i32(&self) -> i32 {
        i32::from_le_bytes(part(self.base, 6))
    }

    /// Field `i64`, id 5.
    #[inline]
    pub fn i64(&self) -> i64 {
        i64::from_le_bytes(part(self.base, 10))
    }

    /// Field `u64`, id 6.
    #[inline]
    pub fn u64(&self) -> u64 {
        u64::from_le_bytes(part(self.base, 18))
    }

    /// Field `f32`, id 7.
    #[inline]
    pub fn f32(&self) -> f32 {
        f32::from_le_bytes(part(self.base, 26))
    }

    /// Field `f64`, id 8.
    #[inline]
    pub fn f64(&self) -> f64 {
        f64::from_le_bytes(part(self.base, 30))
    }

    /// Field `optFloat`, id 9.
    #[inline]
    pub fn opt_float(&self) -> Option<f32> {
        let value = f32::from_le_bytes(part(self.base, 38));
        (!value.is_nan()).then_some(value)
    }

    /// Field `optDouble`, id 10.
    #[inline]
    pub fn opt_double(&self) -> Option<f64> {
        let value = f64::from_le_bytes(part(self.base, 42));
        (value.to_bits() != 13_832_806_255_468_478_464).then_some(value)
    }

    /// Field `percent`, id 11.
    #[inline]
    pub fn percent(&self) -> i32 {
        i32::from_le_bytes(part(self.base, 50))
    }

    /// Field `optPercent`, id 12.
    #[inline]
    pub fn opt_percent(&self) -> Option<u16> {
        let value = u16::from_le_bytes(part(self.base, 54));
        (value != 65_535).then_some(value)
    }

    /// Field `atLeast`, id 13.
    #[inline]
    pub fn at_least(&self) -> f64 {
        f64::from_le_bytes(part(self.base, 56))
    }

    /// Field `triple`, id 14.
    #[inline]
    pub fn triple(&self) -> impl ExactSizeIterator<Item = i16> + Clone + use<'a> {
        items::<2>(self.base, 64, 3).map(i16::from_le_bytes)
    }

    /// Field `optTriple`, id 15.
    #[inline]
    pub fn opt_triple(&self) -> Option<impl ExactSizeIterator<Item = u32> + Clone + use<'a>> {
        let value = items::<4>(self.base, 70, 3).map(u32::from_le_bytes);
        (value.clone().any(|item| item != 4_294_967_295)).then_some(value)
    }

    /// Field `ranged`, id 16.
    #[inline]
    pub fn ranged(&self) -> impl ExactSizeIterator<Item = i8> + Clone + use<'a> {
        items::<1>(self.base, 82, 2).map(i8::from_le_bytes)
    }

    /// Field `raw`, id 17.
    #[inline]
    pub fn raw(&self) -> &'a [u8; 4] {
        array(self.base, 84)
    }

    /// Field `optText`, id 18.
    #[inline]
    pub fn opt_text(&self) -> Option<&'a [u8; 3]> {
        let value = array(self.base, 88);
        (value.iter().any(|item| *item != 0)).then_some(value)
    }

    /// Field `seven`, id 19, which is always the same.
    pub const SEVEN: i64 = -7;

    /// Field `half`, id 20, which is always the same.
    pub const HALF: f64 = f64::from_bits(4_602_678_819_172_646_912);

    /// Field `greeting`, id 21, which is always the same.
    pub const GREETING: &'static str = "he\"lo";

    /// Field `result`, id 22.
    #[inline]
    pub fn result(&self) -> Result2 {
        Result2::from_raw(i8::from_le_bytes(part(self.base, 91)))
    }

    /// Field `optResult`, id 23.
    #[inline]
    pub fn opt_result(&self) -> Option<Result2> {
        let value = i8::from_le_bytes(part(self.base, 92));
        (value != -128).then_some(Result2::from_raw(value))
    }

    /// Field `fixedResult`, id 24, which is always the same.
    pub const FIXED_RESULT: Result2 = Result2::XmlThing;

    /// Field `wide`, id 25.
    #[inline]
    pub fn wide(&self) -> Wide {
        Wide(u64::from_le_bytes(part(self.base, 93)))
    }

    /// Field `inner`, id 26.
    #[inline]
    pub fn inner(&self) -> InnerDecoder<'a> {
        InnerDecoder { bytes: window(self.block, 101, 105), version: self.version }
    }

    /// Field `added`, id 27.
    #[inline]
    pub fn added(&self) -> Option<u16> {
        (self.version >= 1).then(|| u16::from_le_bytes(part(self.block, 105)))
    }

    /// Field `optAdded`, id 28.
    #[inline]
    pub fn opt_added(&self) -> Option<u16> {
        if self.version < 2 {
            return None;
        }
        let value = u16::from_le_bytes(part(self.block, 107));
        (value != 65_535).then_some(value)
    }

    /// Field `outer`, id 29.
    #[inline]
    pub fn outer(&self) -> Option<OuterDecoder<'a>> {
        (self.version >= 2).then(|| OuterDecoder { bytes: window(self.block, 109, 123), version: self.version })
    }

    /// Field `resultAdded`, id 30.
    #[inline]
    pub fn result_added(&self) -> Option<Result2> {
        (self.version >= 3).then(|| Result2::from_raw(i8::from_le_bytes(part(self.block, 123))))
    }

    /// Entries of group `plain`, id 40.
    #[inline]
    pub fn plain(&self) -> EverythingPlainGroup<'a> {
        self.group_0.clone()
    }

    /// Entries of group `nested`, id 43.
    #[inline]
    pub fn nested(&self) -> EverythingNestedGroup<'a> {
        self.group_1.clone()
    }

    /// Entries of group `fresh`, id 50.
    #[inline]
    pub fn fresh(&self) -> EverythingFreshGroup<'a> {
        self.group_2.clone()
    }

    /// Data `first`, id 60.
    #[inline]
    pub fn first(&self) -> &'a [u8] {
        self.data_0
    }

    /// Data `second`, id 61.
    #[inline]
    pub fn second(&self) -> &'a [u8] {
        self.data_1
    }

}

/// Entries of group `plain`.
#[derive(Clone, Debug)]
pub struct EverythingPlainGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> EverythingPlainGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (head, rest) = chunk::<8>(rest, "plain")?;
        let (entry_length, count) = (u64::from(u32::from_le_bytes(part(head, 4))), u64::try_from(i16::from_le_bytes(part(head, 0))).unwrap_or(u64::MAX));
        let count = counted(rest, entry_length.saturating_add(0), count, "plain")?;
        if count > 0 {
            EverythingPlainDecoder::at(rest, entry_length, version)?;
        }
        let (_, behind) = take(rest, entry_length.saturating_mul(count as u64), "plain")?;
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for EverythingPlainGroup<'a> {
    type Item = EverythingPlainDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = EverythingPlainDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for EverythingPlainGroup<'_> {}

/// An entry of group `plain`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct EverythingPlainDecoder<'a> {
    base: &'a [u8; 2],
    block: &'a [u8],
    version: u32,
}

impl<'a> EverythingPlainDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "plain")?;
        let base = base(block, "plain")?;
        if version >= 1 && block.len() < 4 {
            return Err(Error::ShortBlock { what: "plain", needed: 4, length: block.len() });
        }
        Ok((Self { base, block, version,  }, rest))
    }

    /// Field `value`, id 41.
    #[inline]
    pub fn value(&self) -> u16 {
        u16::from_le_bytes(part(self.base, 0))
    }

    /// Field `newer`, id 42.
    #[inline]
    pub fn newer(&self) -> Option<u16> {
        (self.version >= 1).then(|| u16::from_le_bytes(part(self.block, 2)))
    }

}

/// Entries of group `nested`.
#[derive(Clone, Debug)]
pub struct EverythingNestedGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> EverythingNestedGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (head, rest) = chunk::<2>(rest, "nested")?;
        let (entry_length, count) = (u64::from(u8::from_le_bytes(part(head, 0))), u64::from(u8::from_le_bytes(part(head, 1))));
        let count = counted(rest, entry_length.saturating_add(18), count, "nested")?;
        let mut behind = rest;
        for _ in 0..count {
            behind = EverythingNestedDecoder::at(behind, entry_length, version)?.1;
        }
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for EverythingNestedGroup<'a> {
    type Item = EverythingNestedDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = EverythingNestedDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for EverythingNestedGroup<'_> {}

/// An entry of group `nested`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct EverythingNestedDecoder<'a> {
    base: &'a [u8; 4],
    block: &'a [u8],
    version: u32,
    group_0: EverythingNestedDeepGroup<'a>,
    data_0: &'a [u8],
}

impl<'a> EverythingNestedDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "nested")?;
        let base = base(block, "nested")?;
        let (group_0, rest) = EverythingNestedDeepGroup::at(rest, version)?;
        let (head, rest) = chunk::<10>(rest, "text")?;
        let (data_0, rest) = take(rest, u64::from_le_bytes(part(head, 0)), "text")?;
        Ok((Self { base, block, version, group_0, data_0 }, rest))
    }

    /// Field `value`, id 44.
    #[inline]
    pub fn value(&self) -> Option<f32> {
        let value = f32::from_le_bytes(part(self.base, 0));
        (!value.is_nan()).then_some(value)
    }

    /// Entries of group `deep`, id 45.
    #[inline]
    pub fn deep(&self) -> EverythingNestedDeepGroup<'a> {
        self.group_0.clone()
    }

    /// Data `text`, id 49.
    #[inline]
    pub fn text(&self) -> &'a [u8] {
        self.data_0
    }

}

/// Entries of group `deep`.
#[derive(Clone, Debug)]
pub struct EverythingNestedDeepGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> EverythingNestedDeepGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (head, rest) = chunk::<8>(rest, "deep")?;
        let (entry_length, count) = (u64::from(u32::from_le_bytes(part(head, 4))), u64::try_from(i16::from_le_bytes(part(head, 0))).unwrap_or(u64::MAX));
        let count = counted(rest, entry_length.saturating_add(if version < 2 { 0 } else { 2 } + if version < 1 { 0 } else { 1 }), count, "deep")?;
        let mut behind = rest;
        for _ in 0..count {
            behind = EverythingNestedDeepDecoder::at(behind, entry_length, version)?.1;
        }
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for EverythingNestedDeepGroup<'a> {
    type Item = EverythingNestedDeepDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = EverythingNestedDeepDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for EverythingNestedDeepGroup<'_> {}

/// An entry of group `deep`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct EverythingNestedDeepDecoder<'a> {
    base: &'a [u8; 0],
    block: &'a [u8],
    version: u32,
    group_0: EverythingNestedDeepDeeperGroup<'a>,
    data_0: &'a [u8],
}

impl<'a> EverythingNestedDeepDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "deep")?;
        let base = base(block, "deep")?;
        let (group_0, rest) = EverythingNestedDeepDeeperGroup::at(rest, version)?;
        let (data_0, rest) = if version < 1 {
            (&[][..], rest)
        } else {
            let (head, rest) = chunk::<1>(rest, "note")?;
            take(rest, u64::from(u8::from_le_bytes(part(head, 0))), "note")?
        };
        Ok((Self { base, block, version, group_0, data_0 }, rest))
    }

    /// Entries of group `deeper`, id 46.
    #[inline]
    pub fn deeper(&self) -> EverythingNestedDeepDeeperGroup<'a> {
        self.group_0.clone()
    }

    /// Data `note`, id 48.
    #[inline]
    pub fn note(&self) -> &'a [u8] {
        self.data_0
    }

}

/// Entries of group `deeper`.
#[derive(Clone, Debug)]
pub struct EverythingNestedDeepDeeperGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> EverythingNestedDeepDeeperGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        if version < 2 {
            return Ok((Self { bytes: &[], count: 0, entry_length: 0, version }, rest));
        }
        let (head, rest) = chunk::<2>(rest, "deeper")?;
        let (entry_length, count) = (u64::from(u8::from_le_bytes(part(head, 0))), u64::from(u8::from_le_bytes(part(head, 1))));
        let count = counted(rest, entry_length.saturating_add(0), count, "deeper")?;
        if count > 0 {
            EverythingNestedDeepDeeperDecoder::at(rest, entry_length, version)?;
        }
        let (_, behind) = take(rest, entry_length.saturating_mul(count as u64), "deeper")?;
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for EverythingNestedDeepDeeperGroup<'a> {
    type Item = EverythingNestedDeepDeeperDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = EverythingNestedDeepDeeperDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for EverythingNestedDeepDeeperGroup<'_> {}

/// An entry of group `deeper`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct EverythingNestedDeepDeeperDecoder<'a> {
    base: &'a [u8; 2],
    block: &'a [u8],
    version: u32,
}

impl<'a> EverythingNestedDeepDeeperDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "deeper")?;
        let base = base(block, "deeper")?;
        if version >= 2 && block.len() < 4 {
            return Err(Error::ShortBlock { what: "deeper", needed: 4, length: block.len() });
        }
        Ok((Self { base, block, version,  }, rest))
    }

    /// Field `leaf`, id 47.
    #[inline]
    pub fn leaf(&self) -> InnerDecoder<'a> {
        InnerDecoder { bytes: window(self.block, 0, 4), version: self.version }
    }

}

/// Entries of group `fresh`.
#[derive(Clone, Debug)]
pub struct EverythingFreshGroup<'a> {
    bytes: &'a [u8],
    count: usize,
    entry_length: u64,
    version: u32,
}

impl<'a> EverythingFreshGroup<'a> {
    #[inline]
    fn at(rest: &'a [u8], version: u32) -> Result<(Self, &'a [u8]), Error> {
        if version < 3 {
            return Ok((Self { bytes: &[], count: 0, entry_length: 0, version }, rest));
        }
        let (head, rest) = chunk::<2>(rest, "fresh")?;
        let (entry_length, count) = (u64::from(u8::from_le_bytes(part(head, 0))), u64::from(u8::from_le_bytes(part(head, 1))));
        let count = counted(rest, entry_length.saturating_add(0), count, "fresh")?;
        if count > 0 {
            EverythingFreshDecoder::at(rest, entry_length, version)?;
        }
        let (_, behind) = take(rest, entry_length.saturating_mul(count as u64), "fresh")?;
        Ok((Self { bytes: rest, count, entry_length, version }, behind))
    }
}

impl<'a> Iterator for EverythingFreshGroup<'a> {
    type Item = EverythingFreshDecoder<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (entry, rest) = EverythingFreshDecoder::at(self.bytes, self.entry_length, self.version).ok()?;
        self.bytes = rest;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for EverythingFreshGroup<'_> {}

/// An entry of group `fresh`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct EverythingFreshDecoder<'a> {
    base: &'a [u8; 1],
    block: &'a [u8],
    version: u32,
}

impl<'a> EverythingFreshDecoder<'a> {
    #[inline]
    fn at(bytes: &'a [u8], block_length: u64, version: u32) -> Result<(Self, &'a [u8]), Error> {
        let (block, rest) = take(bytes, block_length, "fresh")?;
        let base = base(block, "fresh")?;
        Ok((Self { base, block, version,  }, rest))
    }

    /// Field `value`, id 51.
    #[inline]
    pub fn value(&self) -> u8 {
        u8::from_le_bytes(part(self.base, 0))
    }

}

/// Message `Everything`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct EverythingEncoder<'b> {
    block: &'b mut [u8; 200],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> EverythingEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("Everything")? = [3, 3, 2, 200, 0, 0, 0, 112, 17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 135, 214, 18, 0];
        let block = writer.claim("Everything")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 200]) {
        block.fill(0);
        put_items(block, 38, core::iter::repeat_n(f32::from_bits(2_143_289_344).to_le_bytes(), 1));
        put_items(block, 42, core::iter::repeat_n(f64::from_bits(13_832_806_255_468_478_464).to_le_bytes(), 1));
        put_items(block, 54, core::iter::repeat_n((65_535_u16).to_le_bytes(), 1));
        put_items(block, 70, core::iter::repeat_n((4_294_967_295_u32).to_le_bytes(), 3));
        put(block, 92, (-128_i8).to_le_bytes());
        put_items(block, 107, core::iter::repeat_n((65_535_u16).to_le_bytes(), 1));
        put_items(block, 109, core::iter::repeat_n((-9_223_372_036_854_775_808_i64).to_le_bytes(), 1));
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            let head = self.writer.claim::<8>("plain")?;
            head.fill(0);
            put(head, 4, 4_u32.to_le_bytes());
        }
        if (self.next..ordinal).contains(&1) {
            let head = self.writer.claim::<2>("nested")?;
            head.fill(0);
            put(head, 0, 4_u8.to_le_bytes());
        }
        if (self.next..ordinal).contains(&2) {
            let head = self.writer.claim::<2>("fresh")?;
            head.fill(0);
            put(head, 0, 1_u8.to_le_bytes());
        }
        if (self.next..ordinal).contains(&3) {
            self.writer.claim::<1>("first")?.fill(0);
        }
        if (self.next..ordinal).contains(&4) {
            self.writer.claim::<10>("second")?.fill(0);
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `type`, id 1.
    #[inline]
    pub fn type_(&mut self, value: u8) -> &mut Self {
        put(self.block, 0, value.to_le_bytes());
        self
    }

    /// Field `Type`, id 2.
    #[inline]
    pub fn type_2(&mut self, value: u8) -> &mut Self {
        put(self.block, 1, value.to_le_bytes());
        self
    }

    /// Field `decode`, id 3.
    #[inline]
    pub fn decode2(&mut self, value: i16) -> &mut Self {
        put(self.block, 4, value.to_le_bytes());
        self
    }

    /// Field `i32`, id 4.
    #[inline]
    pub fn i32(&mut self, value: i32) -> &mut Self {
        put(self.block, 6, value.to_le_bytes());
        self
    }

    /// Field `i64`, id 5.
    #[inline]
    pub fn i64(&mut self, value: i64) -> &mut Self {
        put(self.block, 10, value.to_le_bytes());
        self
    }

    /// Field `u64`, id 6.
    #[inline]
    pub fn u64(&mut self, value: u64) -> &mut Self {
        put(self.block, 18, value.to_le_bytes());
        self
    }

    /// Field `f32`, id 7.
    #[inline]
    pub fn f32(&mut self, value: f32) -> &mut Self {
        put(self.block, 26, value.to_le_bytes());
        self
    }

    /// Field `f64`, id 8.
    #[inline]
    pub fn f64(&mut self, value: f64) -> &mut Self {
        put(self.block, 30, value.to_le_bytes());
        self
    }

    /// Field `optFloat`, id 9.
    #[inline]
    pub fn opt_float(&mut self, value: Option<f32>) -> &mut Self {
        let value = value.unwrap_or(f32::from_bits(2_143_289_344));
        put(self.block, 38, value.to_le_bytes());
        self
    }

    /// Field `optDouble`, id 10.
    #[inline]
    pub fn opt_double(&mut self, value: Option<f64>) -> &mut Self {
        let value = value.unwrap_or(f64::from_bits(13_832_806_255_468_478_464));
        put(self.block, 42, value.to_le_bytes());
        self
    }

    /// Field `percent`, id 11.
    #[inline]
    pub fn percent(&mut self, value: i32) -> Result<&mut Self, Error> {
        if !(-10..=100).contains(&value) {
            return Err(Error::OutOfRange { what: "percent" });
        }
        put(self.block, 50, value.to_le_bytes());
        Ok(self)
    }

    /// Field `optPercent`, id 12.
    #[inline]
    pub fn opt_percent(&mut self, value: Option<u16>) -> Result<&mut Self, Error> {
        let value = value.unwrap_or(65_535);
        if !(..=100).contains(&value) && value != 65_535 {
            return Err(Error::OutOfRange { what: "optPercent" });
        }
        put(self.block, 54, value.to_le_bytes());
        Ok(self)
    }

    /// Field `atLeast`, id 13.
    #[inline]
    pub fn at_least(&mut self, value: f64) -> Result<&mut Self, Error> {
        if !(f64::from_bits(4_602_678_819_172_646_912)..).contains(&value) {
            return Err(Error::OutOfRange { what: "atLeast" });
        }
        put(self.block, 56, value.to_le_bytes());
        Ok(self)
    }

    /// Field `triple`, id 14.
    #[inline]
    pub fn triple(&mut self, value: &[i16; 3]) -> &mut Self {
        put_items(self.block, 64, value.iter().map(|item| item.to_le_bytes()));
        self
    }

    /// Field `optTriple`, id 15.
    #[inline]
    pub fn opt_triple(&mut self, value: Option<&[u32; 3]>) -> &mut Self {
        match value {
            Some(value) => put_items(self.block, 70, value.iter().map(|item| item.to_le_bytes())),
            None => put_items(self.block, 70, core::iter::repeat_n((4_294_967_295_u32).to_le_bytes(), 3)),
        }
        self
    }

    /// Field `ranged`, id 16.
    #[inline]
    pub fn ranged(&mut self, value: &[i8; 2]) -> Result<&mut Self, Error> {
        for item in value {
            let item = *item;
            if !(..=7).contains(&item) {
                return Err(Error::OutOfRange { what: "ranged" });
            }
        }
        put_items(self.block, 82, value.iter().map(|item| item.to_le_bytes()));
        Ok(self)
    }

    /// Field `raw`, id 17.
    #[inline]
    pub fn raw(&mut self, value: &[u8]) -> Result<&mut Self, Error> {
        put_padded::<4>(self.block, 84, value, "raw")?;
        Ok(self)
    }

    /// Field `optText`, id 18.
    #[inline]
    pub fn opt_text(&mut self, value: Option<&[u8]>) -> Result<&mut Self, Error> {
        match value {
            Some(value) => put_padded::<3>(self.block, 88, value, "optText")?,
            None => put_items(self.block, 88, core::iter::repeat_n((0_u8).to_le_bytes(), 3)),
        }
        Ok(self)
    }

    /// Field `result`, id 22.
    #[inline]
    pub fn result(&mut self, value: Result2) -> &mut Self {
        put(self.block, 91, value.raw().to_le_bytes());
        self
    }

    /// Field `optResult`, id 23.
    #[inline]
    pub fn opt_result(&mut self, value: Option<Result2>) -> &mut Self {
        put(self.block, 92, value.map_or(-128, Result2::raw).to_le_bytes());
        self
    }

    /// Field `wide`, id 25.
    #[inline]
    pub fn wide(&mut self, value: Wide) -> &mut Self {
        put(self.block, 93, value.0.to_le_bytes());
        self
    }

    /// Field `inner`, id 26, to be written member by member.
    #[inline]
    pub fn inner(&mut self) -> InnerEncoder<'_> {
        InnerEncoder { bytes: window_mut(self.block, 101, 105) }
    }

    /// Field `added`, id 27.
    #[inline]
    pub fn added(&mut self, value: u16) -> &mut Self {
        put(self.block, 105, value.to_le_bytes());
        self
    }

    /// Field `optAdded`, id 28.
    #[inline]
    pub fn opt_added(&mut self, value: Option<u16>) -> Result<&mut Self, Error> {
        let value = value.unwrap_or(65_535);
        if !(..=100).contains(&value) && value != 65_535 {
            return Err(Error::OutOfRange { what: "optAdded" });
        }
        put(self.block, 107, value.to_le_bytes());
        Ok(self)
    }

    /// Field `outer`, id 29, to be written member by member.
    #[inline]
    pub fn outer(&mut self) -> OuterEncoder<'_> {
        OuterEncoder { bytes: window_mut(self.block, 109, 123) }
    }

    /// Field `resultAdded`, id 30.
    #[inline]
    pub fn result_added(&mut self, value: Result2) -> &mut Self {
        put(self.block, 123, value.raw().to_le_bytes());
        self
    }

    /// Group `plain`, id 40: an entry for each item, which `each` writes.
    #[inline]
    pub fn plain<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut EverythingPlainEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(0, "plain")?;
        let head = self.writer.claim::<8>("plain")?;
        head.fill(0);
        put(head, 4, 4_u32.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 300 {
                return Err(Error::TooMany { what: "plain", max: 300 });
            }
            let mut entry = EverythingPlainEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        put(head, 0, (count as i16).to_le_bytes());
        Ok(self)
    }

    /// Group `nested`, id 43: an entry for each item, which `each` writes.
    #[inline]
    pub fn nested<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut EverythingNestedEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(1, "nested")?;
        let head = self.writer.claim::<2>("nested")?;
        head.fill(0);
        put(head, 0, 4_u8.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 254 {
                return Err(Error::TooMany { what: "nested", max: 254 });
            }
            let mut entry = EverythingNestedEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        put(head, 1, (count as u8).to_le_bytes());
        Ok(self)
    }

    /// Group `fresh`, id 50: an entry for each item, which `each` writes.
    #[inline]
    pub fn fresh<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut EverythingFreshEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(2, "fresh")?;
        let head = self.writer.claim::<2>("fresh")?;
        head.fill(0);
        put(head, 0, 1_u8.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 254 {
                return Err(Error::TooMany { what: "fresh", max: 254 });
            }
            let mut entry = EverythingFreshEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        put(head, 1, (count as u8).to_le_bytes());
        Ok(self)
    }

    /// Data `first`, id 60.
    #[inline]
    pub fn first(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to(3, "first")?;
        let length = limited(bytes.len(), 20, "first")?;
        let head = self.writer.claim::<1>("first")?;
        head.fill(0);
        put(head, 0, (length as u8).to_le_bytes());
        self.writer.bytes(bytes, "first")?;
        Ok(self)
    }

    /// Data `second`, id 61.
    #[inline]
    pub fn second(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to(4, "second")?;
        let length = limited(bytes.len(), 1_000_000, "second")?;
        let head = self.writer.claim::<10>("second")?;
        head.fill(0);
        put(head, 0, length.to_le_bytes());
        self.writer.bytes(bytes, "second")?;
        Ok(self)
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(5, "end of message")?;
        Ok(self.writer.written)
    }
}

/// An entry of group `plain`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct EverythingPlainEncoder<'e, 'b> {
    block: &'b mut [u8; 4],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> EverythingPlainEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("plain")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 4]) {
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

    /// Field `value`, id 41.
    #[inline]
    pub fn value(&mut self, value: u16) -> &mut Self {
        put(self.block, 0, value.to_le_bytes());
        self
    }

    /// Field `newer`, id 42.
    #[inline]
    pub fn newer(&mut self, value: u16) -> &mut Self {
        put(self.block, 2, value.to_le_bytes());
        self
    }

    #[inline]
    fn complete(mut self) -> Result<(), Error> {
        self.pass_to(0, "end of entry")
    }
}

/// An entry of group `nested`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct EverythingNestedEncoder<'e, 'b> {
    block: &'b mut [u8; 4],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> EverythingNestedEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("nested")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 4]) {
        block.fill(0);
        put_items(block, 0, core::iter::repeat_n(f32::from_bits(2_143_289_344).to_le_bytes(), 1));
    }

    /// Write what lies before a group or data empty.
    #[inline]
    fn pass_to(&mut self, ordinal: usize, what: &'static str) -> Result<(), Error> {
        if self.next > ordinal {
            return Err(Error::Order { what });
        }
        if (self.next..ordinal).contains(&0) {
            let head = self.writer.claim::<8>("deep")?;
            head.fill(0);
            put(head, 4, 0_u32.to_le_bytes());
        }
        if (self.next..ordinal).contains(&1) {
            self.writer.claim::<10>("text")?.fill(0);
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `value`, id 44.
    #[inline]
    pub fn value(&mut self, value: Option<f32>) -> &mut Self {
        let value = value.unwrap_or(f32::from_bits(2_143_289_344));
        put(self.block, 0, value.to_le_bytes());
        self
    }

    /// Group `deep`, id 45: an entry for each item, which `each` writes.
    #[inline]
    pub fn deep<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut EverythingNestedDeepEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(0, "deep")?;
        let head = self.writer.claim::<8>("deep")?;
        head.fill(0);
        put(head, 4, 0_u32.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 300 {
                return Err(Error::TooMany { what: "deep", max: 300 });
            }
            let mut entry = EverythingNestedDeepEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        put(head, 0, (count as i16).to_le_bytes());
        Ok(self)
    }

    /// Data `text`, id 49.
    #[inline]
    pub fn text(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to(1, "text")?;
        let length = limited(bytes.len(), 1_000_000, "text")?;
        let head = self.writer.claim::<10>("text")?;
        head.fill(0);
        put(head, 0, length.to_le_bytes());
        self.writer.bytes(bytes, "text")?;
        Ok(self)
    }

    #[inline]
    fn complete(mut self) -> Result<(), Error> {
        self.pass_to(2, "end of entry")
    }
}

/// An entry of group `deep`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct EverythingNestedDeepEncoder<'e, 'b> {
    block: &'b mut [u8; 0],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> EverythingNestedDeepEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("deep")?;
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
            let head = self.writer.claim::<2>("deeper")?;
            head.fill(0);
            put(head, 0, 4_u8.to_le_bytes());
        }
        if (self.next..ordinal).contains(&1) {
            self.writer.claim::<1>("note")?.fill(0);
        }
        self.next = ordinal + 1;
        Ok(())
    }

    /// Group `deeper`, id 46: an entry for each item, which `each` writes.
    #[inline]
    pub fn deeper<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut EverythingNestedDeepDeeperEncoder<'_, 'b>, T) -> Result<(), Error>,
    ) -> Result<&mut Self, Error> {
        self.pass_to(0, "deeper")?;
        let head = self.writer.claim::<2>("deeper")?;
        head.fill(0);
        put(head, 0, 4_u8.to_le_bytes());
        let mut count = 0_u64;
        for item in items {
            if count == 254 {
                return Err(Error::TooMany { what: "deeper", max: 254 });
            }
            let mut entry = EverythingNestedDeepDeeperEncoder::begin(self.writer.again())?;
            each(&mut entry, item)?;
            entry.complete()?;
            count += 1;
        }
        put(head, 1, (count as u8).to_le_bytes());
        Ok(self)
    }

    /// Data `note`, id 48.
    #[inline]
    pub fn note(&mut self, bytes: &[u8]) -> Result<&mut Self, Error> {
        self.pass_to(1, "note")?;
        let length = limited(bytes.len(), 20, "note")?;
        let head = self.writer.claim::<1>("note")?;
        head.fill(0);
        put(head, 0, (length as u8).to_le_bytes());
        self.writer.bytes(bytes, "note")?;
        Ok(self)
    }

    #[inline]
    fn complete(mut self) -> Result<(), Error> {
        self.pass_to(2, "end of entry")
    }
}

/// An entry of group `deeper`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct EverythingNestedDeepDeeperEncoder<'e, 'b> {
    block: &'b mut [u8; 4],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> EverythingNestedDeepDeeperEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("deeper")?;
        Self::clear(block);
        Ok(Self { block, writer, next: 0 })
    }

    /// Optional fields are null, all others zero.
    #[inline]
    fn clear(block: &mut [u8; 4]) {
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

    /// Field `leaf`, id 47, to be written member by member.
    #[inline]
    pub fn leaf(&mut self) -> InnerEncoder<'_> {
        InnerEncoder { bytes: window_mut(self.block, 0, 4) }
    }

    #[inline]
    fn complete(mut self) -> Result<(), Error> {
        self.pass_to(0, "end of entry")
    }
}

/// An entry of group `fresh`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct EverythingFreshEncoder<'e, 'b> {
    block: &'b mut [u8; 1],
    writer: &'e mut Writer<'b>,
    next: usize,
}

impl<'e, 'b> EverythingFreshEncoder<'e, 'b> {
    #[inline]
    fn begin(writer: &'e mut Writer<'b>) -> Result<Self, Error> {
        let block = writer.claim("fresh")?;
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
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `value`, id 51.
    #[inline]
    pub fn value(&mut self, value: u8) -> &mut Self {
        put(self.block, 0, value.to_le_bytes());
        self
    }

    #[inline]
    fn complete(mut self) -> Result<(), Error> {
        self.pass_to(0, "end of entry")
    }
}

/// Message `Empty`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct EmptyDecoder<'a> {
    base: &'a [u8; 0],
    block: &'a [u8],
    version: u32,
    length: usize,
}

impl<'a> EmptyDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 2;

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
        let (block, rest) = take(bytes, block_length, "Empty")?;
        let base = base(block, "Empty")?;
        Ok((Self { base, block, version, length: 0 }, rest))
    }

}

/// Message `Empty`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct EmptyEncoder<'b> {
    block: &'b mut [u8; 0],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> EmptyEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("Empty")? = [3, 0, 0, 0, 0, 0, 0, 112, 17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0];
        let block = writer.claim("Empty")?;
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
        self.next = ordinal + 1;
        Ok(())
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(0, "end of message")?;
        Ok(self.writer.written)
    }
}

/// Message `Result`, where it lies; its structure is checked.
#[derive(Clone, Debug)]
pub struct ResultDecoder<'a> {
    base: &'a [u8; 1],
    block: &'a [u8],
    version: u32,
    length: usize,
}

impl<'a> ResultDecoder<'a> {
    /// Template id of the message.
    pub const TEMPLATE_ID: u32 = 3;

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
        let (block, rest) = take(bytes, block_length, "Result")?;
        let base = base(block, "Result")?;
        Ok((Self { base, block, version, length: 0 }, rest))
    }

    /// Field `result`, id 1.
    #[inline]
    pub fn result(&self) -> Result2 {
        Result2::from_raw(i8::from_le_bytes(part(self.base, 0)))
    }

}

/// Message `Result`, to be written into a caller's buffer: fields in any order, then groups and data in that of the schema.
///
/// Optional fields that are not written are null, all others zero; groups and data that are not written are empty.
#[derive(Debug)]
pub struct ResultEncoder<'b> {
    block: &'b mut [u8; 1],
    writer: Writer<'b>,
    next: usize,
}

impl<'b> ResultEncoder<'b> {
    /// Write the header and an empty root block.
    #[inline]
    pub fn begin(buffer: &'b mut [u8]) -> Result<Self, Error> {
        let mut writer = Writer { rest: buffer, written: 0 };
        *writer.claim("Result")? = [3, 0, 0, 1, 0, 0, 0, 112, 17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0];
        let block = writer.claim("Result")?;
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
        self.next = ordinal + 1;
        Ok(())
    }

    /// Field `result`, id 1.
    #[inline]
    pub fn result(&mut self, value: Result2) -> &mut Self {
        put(self.block, 0, value.raw().to_le_bytes());
        self
    }

    /// Write what is left empty, and return the message's length in bytes.
    #[inline]
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pass_to(0, "end of message")?;
        Ok(self.writer.written)
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
