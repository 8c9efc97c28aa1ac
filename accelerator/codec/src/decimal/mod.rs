//! Decimal64: a decimal number as an i64 mantissa with an exponent that the schema says once.
//!
//! ```text
//!  0                               8
//! +-------------------------------+
//! | mantissa, i64                 |     number = mantissa × 10^exponent;  i64::MAX is null
//! +-------------------------------+
//! ```
//!
//! Conversions are exact or refused; only who names a [`Rounding`] gets a rounded number. There is no arithmetic.
//!
//! ```
//! use relay_accel_codec::decimal::Decimal64;
//!
//! let price = Decimal64::default();
//! assert_eq!(price.parse("67000.25", None)?, 670_002_500_000);
//! assert_eq!(price.text(670_002_500_000).as_deref(), Some("67000.25"));
//! assert!(price.parse("0.00000001", None).is_err());
//! # Ok::<(), relay_accel_codec::decimal::DecimalError>(())
//! ```
//! Layout: `proto/spec/0015-fixed-records-and-decimals.md`.

mod rounding;
mod text;

use thiserror::Error as ThisError;

pub use rounding::Rounding;
use text::Digits;

/// Of `i64::MIN`.
const MAGNITUDE_MAX: i128 = 1 << 63;

/// Why a number is no mantissa, or a format not possible.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum DecimalError {
    #[error("expected an exponent from -18 to 0, got {0}")]
    Exponent(i32),
    #[error("expected a decimal number such as -12.5 or 1E-7, got {0:?}")]
    Text(String),
    #[error("{number} is not exact with {decimals} decimals; name a rounding, or take a smaller exponent")]
    Inexact { number: String, decimals: u8 },
    #[error("expected a number from {least} to {greatest}, got {number}")]
    Range { number: String, least: String, greatest: String },
}

/// A format: the exponent that all mantissas of a field have. It holds no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal64 {
    decimals: u8,
}

impl Default for Decimal64 {
    /// Exponent -7.
    fn default() -> Self {
        Self { decimals: 7 }
    }
}

impl Decimal64 {
    /// The mantissa that is no number.
    pub const NULL: i64 = i64::MAX;
    /// Most digits behind the point.
    pub const DECIMALS_MAX: u8 = 18;

    /// A format with this exponent.
    ///
    /// # Errors
    /// [`DecimalError::Exponent`] unless it is -18 … 0.
    pub const fn new(exponent: i32) -> Result<Self, DecimalError> {
        if exponent > 0 || exponent < -(Self::DECIMALS_MAX as i32) {
            return Err(DecimalError::Exponent(exponent));
        }
        Ok(Self { decimals: exponent.unsigned_abs() as u8 })
    }

    /// The exponent, -18 … 0.
    pub const fn exponent(self) -> i32 {
        -(self.decimals as i32)
    }

    /// The mantissa of a number in text: digits, perhaps a sign, a point between digits, and an exponent.
    ///
    /// # Errors
    /// [`DecimalError`] when it is no number, does not fit, or is not exact and no rounding is named.
    pub fn parse(self, text: &str, rounding: Option<Rounding>) -> Result<i64, DecimalError> {
        let digits = Digits::parse(text).ok_or_else(|| DecimalError::Text(shortened(text)))?;
        self.mantissa(&digits, rounding, || shortened(text))
    }

    /// The mantissa of `units` × 10^-`decimals`, a scaled integer.
    ///
    /// # Errors
    /// As [`Decimal64::parse`].
    pub fn from_scaled(self, units: i64, decimals: u32, rounding: Option<Rounding>) -> Result<i64, DecimalError> {
        let digits = Digits::scaled(units, decimals);
        self.mantissa(&digits, rounding, || format!("{units}E-{decimals}"))
    }

    /// Mantissa and number of decimals; none for null.
    pub fn to_scaled(self, mantissa: i64) -> Option<(i64, u32)> {
        (mantissa != Self::NULL).then_some((mantissa, self.decimals.into()))
    }

    /// The number as the shortest plain text: no exponent, no zeros at the end, no point without digits; none for null.
    pub fn text(self, mantissa: i64) -> Option<String> {
        (mantissa != Self::NULL).then(|| text::plain(mantissa, self.decimals))
    }

    fn mantissa(
        self,
        digits: &Digits,
        rounding: Option<Rounding>,
        number: impl Fn() -> String,
    ) -> Result<i64, DecimalError> {
        let (whole, rest) = digits.at(self.exponent().into());
        if whole > MAGNITUDE_MAX {
            return Err(self.out_of_range(number()));
        }
        let rounded = match rounding {
            _ if rest.is_zero() => whole,
            Some(rounding) => rounding.apply(whole, rest, digits.is_negative),
            None => return Err(DecimalError::Inexact { number: number(), decimals: self.decimals }),
        };
        i64::try_from(if digits.is_negative { -rounded } else { rounded })
            .ok()
            .filter(|value| *value != Self::NULL)
            .ok_or_else(|| self.out_of_range(number()))
    }

    fn out_of_range(self, number: String) -> DecimalError {
        let shown = |mantissa| text::plain(mantissa, self.decimals);
        DecimalError::Range { number, least: shown(i64::MIN), greatest: shown(Self::NULL - 1) }
    }
}

/// What an error shows of a text.
fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
