//! The eleven primitive types: sizes, ranges, null values, bytes.

use super::layout::ByteOrder;

/// A primitive type of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Primitive {
    Char,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float,
    Double,
}

/// One value of a primitive type, widened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `int8` … `int64`.
    Signed(i64),
    /// `uint8` … `uint64`, and `char`.
    Unsigned(u64),
    /// `float`.
    Single(f32),
    /// `double`.
    Double(f64),
}

impl Scalar {
    /// Whether both are the same value; any NaN is the same as any other.
    pub fn same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Single(one), Self::Single(two)) => one.to_bits() == two.to_bits() || one.is_nan() && two.is_nan(),
            (Self::Double(one), Self::Double(two)) => one.to_bits() == two.to_bits() || one.is_nan() && two.is_nan(),
            (one, two) => one == two,
        }
    }

    /// The value where it is an integer.
    pub fn integer(self) -> Option<i128> {
        match self {
            Self::Signed(value) => Some(i128::from(value)),
            Self::Unsigned(value) => Some(i128::from(value)),
            Self::Single(_) | Self::Double(_) => None,
        }
    }

    /// The value as text, as a schema would write it.
    pub fn text(self) -> String {
        match self {
            Self::Signed(value) => value.to_string(),
            Self::Unsigned(value) => value.to_string(),
            Self::Single(value) => value.to_string(),
            Self::Double(value) => value.to_string(),
        }
    }
}

impl Primitive {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Char,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Float,
        Self::Double,
    ];

    /// Name in a schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Char => "char",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float => "float",
            Self::Double => "double",
        }
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Length in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Char | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
        }
    }

    /// Whether it is `uint8` … `uint64`.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64)
    }

    /// Whether it is `int8` … `int64`.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64)
    }

    /// Whether it is `float` or `double`.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }

    /// Null value of the standard: 0 for `char`, the least signed, the greatest unsigned, NaN.
    pub fn null(self) -> Scalar {
        match self {
            Self::Char => Scalar::Unsigned(0),
            Self::Float => Scalar::Single(f32::NAN),
            Self::Double => Scalar::Double(f64::NAN),
            _ if self.is_signed() => Scalar::Signed(self.bounds().0 as i64),
            _ => Scalar::Unsigned(self.bounds().1 as u64),
        }
    }

    /// Least value of the standard, which is not null.
    pub fn min(self) -> Scalar {
        match self {
            Self::Char => Scalar::Unsigned(0x20),
            Self::Float => Scalar::Single(f32::MIN),
            Self::Double => Scalar::Double(f64::MIN),
            _ if self.is_signed() => Scalar::Signed(self.bounds().0 as i64 + 1),
            _ => Scalar::Unsigned(0),
        }
    }

    /// Greatest value of the standard, which is not null.
    pub fn max(self) -> Scalar {
        match self {
            Self::Char => Scalar::Unsigned(0x7e),
            Self::Float => Scalar::Single(f32::MAX),
            Self::Double => Scalar::Double(f64::MAX),
            _ if self.is_signed() => Scalar::Signed(self.bounds().1 as i64),
            _ => Scalar::Unsigned(self.bounds().1 as u64 - 1),
        }
    }

    /// Least and greatest value that the bytes of an integer can hold.
    pub fn bounds(self) -> (i128, i128) {
        let bits = 8 * self.size() as u32;
        if self.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    }

    /// The value that a schema's text says, as the bytes can hold it.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(self, text: &str) -> Result<Scalar, String> {
        let wrong = || format!("expected a value of {}, found {text:?}", self.name());
        match self {
            Self::Char => match text.as_bytes() {
                [one] => Ok(Scalar::Unsigned(u64::from(*one))),
                _ => Err(format!("expected one character of one byte, found {text:?}")),
            },
            Self::Float => text.parse().map(Scalar::Single).map_err(|_| wrong()),
            Self::Double => text.parse().map(Scalar::Double).map_err(|_| wrong()),
            _ => self.of_integer(text.parse::<i128>().map_err(|_| wrong())?).ok_or_else(wrong),
        }
    }

    /// The integer as a value, if the bytes can hold it.
    pub fn of_integer(self, value: i128) -> Option<Scalar> {
        let (least, greatest) = self.bounds();
        if self.is_float() || value < least || value > greatest {
            return None;
        }
        Some(if self.is_signed() { Scalar::Signed(value as i64) } else { Scalar::Unsigned(value as u64) })
    }

    /// Read a value; `bytes` has at least [`Primitive::size`] bytes.
    ///
    /// # Panics
    /// When `bytes` is shorter.
    #[inline]
    pub fn read(self, bytes: &[u8], order: ByteOrder) -> Scalar {
        let little = order == ByteOrder::Little;
        macro_rules! number {
            ($type:ty) => {{
                let mut raw = [0; size_of::<$type>()];
                raw.copy_from_slice(&bytes[..size_of::<$type>()]);
                if little { <$type>::from_le_bytes(raw) } else { <$type>::from_be_bytes(raw) }
            }};
        }
        match self {
            Self::Char | Self::Uint8 => Scalar::Unsigned(u64::from(bytes[0])),
            Self::Int8 => Scalar::Signed(i64::from(bytes[0] as i8)),
            Self::Int16 => Scalar::Signed(i64::from(number!(i16))),
            Self::Int32 => Scalar::Signed(i64::from(number!(i32))),
            Self::Int64 => Scalar::Signed(number!(i64)),
            Self::Uint16 => Scalar::Unsigned(u64::from(number!(u16))),
            Self::Uint32 => Scalar::Unsigned(u64::from(number!(u32))),
            Self::Uint64 => Scalar::Unsigned(number!(u64)),
            Self::Float => Scalar::Single(number!(f32)),
            Self::Double => Scalar::Double(number!(f64)),
        }
    }

    /// Write a value that the bytes can hold; false where it is of another kind or too great.
    ///
    /// # Panics
    /// When `bytes` is shorter than [`Primitive::size`].
    #[must_use]
    pub fn write(self, bytes: &mut [u8], order: ByteOrder, value: Scalar) -> bool {
        let raw: [u8; 8] = match (self, value) {
            (Self::Float, Scalar::Single(value)) => u64::from(value.to_bits()).to_le_bytes(),
            (Self::Float, Scalar::Double(value)) => {
                let narrow = value as f32;
                if narrow.is_infinite() && value.is_finite() {
                    return false;
                }
                u64::from(narrow.to_bits()).to_le_bytes()
            }
            (Self::Double, Scalar::Double(value)) => value.to_bits().to_le_bytes(),
            (Self::Double, Scalar::Single(value)) => f64::from(value).to_bits().to_le_bytes(),
            (Self::Float | Self::Double, _) => return false,
            _ => match value.integer().and_then(|value| self.of_integer(value)) {
                Some(Scalar::Signed(value)) => value.to_le_bytes(),
                Some(Scalar::Unsigned(value)) => value.to_le_bytes(),
                _ => return false,
            },
        };
        let size = self.size();
        bytes[..size].copy_from_slice(&raw[..size]);
        if order == ByteOrder::Big {
            bytes[..size].reverse();
        }
        true
    }
}
