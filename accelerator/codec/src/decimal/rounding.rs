//! What becomes of digits that a mantissa cannot hold, when a caller says so.

/// Direction of rounding; the names are those of Python's `decimal` without `ROUND_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Away from zero.
    Up,
    /// Towards zero.
    Down,
    /// Towards the greater number.
    Ceiling,
    /// Towards the lesser number.
    Floor,
    /// To the nearest, halves away from zero.
    HalfUp,
    /// To the nearest, halves towards zero.
    HalfDown,
    /// To the nearest, halves to the even digit.
    HalfEven,
}

/// What stands behind the last digit that is kept, against half of that digit's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rest {
    Zero,
    BelowHalf,
    Half,
    AboveHalf,
}

impl Rest {
    pub(super) fn is_zero(self) -> bool {
        self == Self::Zero
    }

    /// The rest `part` of `unit`, `more` when digits behind it were not all zero.
    pub(super) fn of(part: u128, unit: u128, more: bool) -> Self {
        match (part * 2).cmp(&unit) {
            _ if part == 0 && !more => Self::Zero,
            std::cmp::Ordering::Less => Self::BelowHalf,
            std::cmp::Ordering::Equal if !more => Self::Half,
            _ => Self::AboveHalf,
        }
    }
}

impl Rounding {
    /// The direction of this name, such as `HALF_EVEN`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "UP" => Self::Up,
            "DOWN" => Self::Down,
            "CEILING" => Self::Ceiling,
            "FLOOR" => Self::Floor,
            "HALF_UP" => Self::HalfUp,
            "HALF_DOWN" => Self::HalfDown,
            "HALF_EVEN" => Self::HalfEven,
            _ => return None,
        })
    }

    /// The magnitude `whole`, or one more.
    pub(super) fn apply(self, whole: i128, rest: Rest, is_negative: bool) -> i128 {
        let is_away = match self {
            Self::Up => true,
            Self::Down => false,
            Self::Ceiling => !is_negative,
            Self::Floor => is_negative,
            Self::HalfUp => rest >= Rest::Half,
            Self::HalfDown => rest > Rest::Half,
            Self::HalfEven => rest > Rest::Half || (rest == Rest::Half && whole % 2 == 1),
        };
        whole + i128::from(is_away)
    }
}
