//! Decimal text: read into digits, and written from a mantissa.

use super::rounding::Rest;

/// Digits that are kept; a u128 holds them, and twice a rest of them.
const KEPT_MAX: usize = 38;
/// Beyond it an exponent decides alone: no text of a gigabyte is read here.
const EXPONENT_MAX: i64 = 1_000_000_000_000;

/// A number: `kept` × 10^`exponent`, and `more` when digits behind were dropped that are not all zero.
#[derive(Debug)]
pub(super) struct Digits {
    pub(super) is_negative: bool,
    kept: u128,
    exponent: i64,
    more: bool,
}

impl Digits {
    /// Read `-?digits(.digits)?([eE][+-]?digits)?`, nothing before or behind.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, written_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, decimals) = match number.split_once('.') {
            Some((whole, decimals)) => (whole, digits_of(decimals)?),
            None => (number, &b""[..]),
        };
        let mut found = Self { is_negative, kept: 0, exponent, more: false };
        found.take(digits_of(whole)?, decimals);
        Some(found)
    }

    pub(super) fn scaled(units: i64, decimals: u32) -> Self {
        let kept = units.unsigned_abs().into();
        Self { is_negative: units < 0, kept, exponent: -i64::from(decimals), more: false }
    }

    fn take(&mut self, whole: &[u8], decimals: &[u8]) {
        let mut count = 0;
        for digit in whole.iter().chain(decimals).map(|byte| byte - b'0') {
            if count < KEPT_MAX {
                self.kept = self.kept * 10 + u128::from(digit);
                count += usize::from(self.kept != 0);
            } else {
                self.more |= digit != 0;
                self.exponent += 1;
            }
        }
        self.exponent -= decimals.len() as i64;
    }

    /// The magnitude in units of 10^`exponent`: whole ones (`i128::MAX` when there are too many), and what is left.
    pub(super) fn at(&self, exponent: i64) -> (i128, Rest) {
        let shift = self.exponent - exponent;
        let power = u32::try_from(shift.unsigned_abs()).ok().and_then(|shift| 10_u128.checked_pow(shift));
        match power {
            _ if self.kept == 0 => (0, Rest::Zero),
            Some(power) if shift >= 0 => (clamped(self.kept.checked_mul(power)), Rest::of(0, 2, self.more)),
            None if shift >= 0 => (i128::MAX, Rest::Zero),
            Some(unit) => (clamped(Some(self.kept / unit)), Rest::of(self.kept % unit, unit, self.more)),
            // The unit is ten times what can be kept, or more.
            None => (0, Rest::BelowHalf),
        }
    }
}

fn clamped(value: Option<u128>) -> i128 {
    value.and_then(|value| i128::try_from(value).ok()).unwrap_or(i128::MAX)
}

fn digits_of(text: &str) -> Option<&[u8]> {
    let bytes = text.as_bytes();
    (!bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)).then_some(bytes)
}

fn written_exponent(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let size = digits_of(unsigned)?.iter().fold(0, |size: i64, digit| {
        let next = size.saturating_mul(10).saturating_add((digit - b'0').into());
        next.min(EXPONENT_MAX)
    });
    Some(if text.starts_with('-') { -size } else { size })
}

/// The shortest plain text of `mantissa` × 10^-`decimals`.
pub(super) fn plain(mantissa: i64, decimals: u8) -> String {
    let (sign, digits) = (if mantissa < 0 { "-" } else { "" }, mantissa.unsigned_abs());
    let unit = 10_u64.pow(decimals.into());
    let (whole, rest) = (digits / unit, digits % unit);
    if rest == 0 {
        return format!("{sign}{whole}");
    }
    let padded = format!("{rest:0width$}", width = decimals.into());
    format!("{sign}{whole}.{}", padded.trim_end_matches('0'))
}
