//! Decimal64: exact both ways, or refused with what was expected.
#![allow(missing_docs)]

use proptest::prelude::*;
use relay_accel_codec::decimal::{Decimal64, DecimalError, Rounding};

const ROUNDINGS: [&str; 7] = ["UP", "DOWN", "CEILING", "FLOOR", "HALF_UP", "HALF_DOWN", "HALF_EVEN"];

fn format(exponent: i32) -> Decimal64 {
    Decimal64::new(exponent).unwrap()
}

proptest! {
    #[test]
    fn text_of_a_mantissa_gives_the_mantissa(mantissa: i64, exponent in -18..=0_i32) {
        let format = format(exponent);
        match format.text(mantissa) {
            None => prop_assert_eq!(mantissa, Decimal64::NULL),
            Some(text) => {
                prop_assert_eq!(format.parse(&text, None), Ok(mantissa));
                prop_assert_eq!(format.parse(&format!("{text}E0"), None), Ok(mantissa));
                prop_assert!(!text.contains('.') || !text.ends_with(['0', '.']));
                let (units, decimals) = format.to_scaled(mantissa).unwrap();
                prop_assert_eq!(format.from_scaled(units, decimals, None), Ok(mantissa));
            }
        }
    }

    #[test]
    fn a_scaled_integer_is_exact_or_refused(units in -1_000_000..1_000_000_i64, decimals in 0..12_u32) {
        let found = format(-7).from_scaled(units, decimals, None);
        let unit = 10_i64.pow(decimals.saturating_sub(7));
        if units % unit == 0 {
            prop_assert_eq!(found, Ok(units / unit * 10_i64.pow(7_u32.saturating_sub(decimals))));
        } else {
            let refused = matches!(found, Err(DecimalError::Inexact { decimals: 7, .. }));
            prop_assert!(refused);
        }
    }

    #[test]
    fn a_rounded_number_is_one_of_its_two_neighbours(units: i64, more in 1..9_u32) {
        let format = format(0);
        let unit = 10_i64.pow(more);
        for name in ROUNDINGS {
            let rounding = Rounding::named(name);
            let rounded = format.from_scaled(units, more, rounding).unwrap();
            prop_assert!(i128::from(rounded) * i128::from(unit) - i128::from(units) < unit.into());
            prop_assert!(i128::from(units) - i128::from(rounded) * i128::from(unit) < unit.into());
        }
        prop_assert_eq!(format.from_scaled(units, more, Some(Rounding::Floor)), Ok(units.div_euclid(unit)));
        prop_assert_eq!(format.from_scaled(units, more, Some(Rounding::Down)), Ok(units / unit));
    }

    #[test]
    fn any_text_is_a_number_or_refused(text in "[-+0-9.eE]{0,60}|.{0,12}", exponent in -18..=0_i32) {
        let format = format(exponent);
        if let Ok(mantissa) = format.parse(&text, None) {
            prop_assert_eq!(format.parse(&format.text(mantissa).unwrap(), None), Ok(mantissa));
        }
        let _ = format.parse(&text, Some(Rounding::HalfEven));
    }
}

#[test]
fn halves_go_where_their_rounding_says() {
    for (text, expected) in [
        ("0.5", [1, 0, 1, 0, 1, 0, 0]),
        ("1.5", [2, 1, 2, 1, 2, 1, 2]),
        ("-2.5", [-3, -2, -2, -3, -3, -2, -2]),
        ("2.50000000000000000000000000000000000000000001", [3, 2, 3, 2, 3, 3, 3]),
        ("1E-400", [1, 0, 1, 0, 0, 0, 0]),
        ("-0.49", [-1, 0, 0, -1, 0, 0, 0]),
    ] {
        for (name, expected) in ROUNDINGS.iter().zip(expected) {
            assert_eq!(format(0).parse(text, Rounding::named(name)), Ok(expected), "{text} {name}");
        }
    }
    assert_eq!(Rounding::named("05UP"), None);
}

#[test]
fn the_greatest_mantissa_is_null_and_no_number() {
    let price = Decimal64::default();
    assert_eq!(price.exponent(), -7);
    assert_eq!(price.text(Decimal64::NULL), None);
    assert_eq!(price.to_scaled(Decimal64::NULL), None);
    assert_eq!(price.parse("922337203685.4775806", None), Ok(Decimal64::NULL - 1));
    assert_eq!(price.parse("-922337203685.4775808", None), Ok(i64::MIN));
    for text in ["922337203685.4775807", "922337203685.47758061", "-922337203685.4775809", "1E30", "1E999999999999999"]
    {
        let rounded = price.parse(text, Some(Rounding::Up));
        assert!(matches!(rounded, Err(DecimalError::Range { .. })), "{text}: {rounded:?}");
    }
}

#[test]
fn what_is_no_number_is_refused_with_what_was_expected() {
    for text in
        ["", "-", ".5", "5.", "1.2.3", "+1", " 1", "1 ", "1_000", "1,5", "0x10", "NaN", "Infinity", "1E", "1E+", "１"]
    {
        assert_eq!(Decimal64::default().parse(text, None), Err(DecimalError::Text(text.into())));
    }
    let long = "9".repeat(1_000) + "x";
    assert!(Decimal64::default().parse(&long, None).unwrap_err().to_string().len() < 300);
    for exponent in [1, -19, i32::MIN, i32::MAX] {
        assert_eq!(Decimal64::new(exponent), Err(DecimalError::Exponent(exponent)));
    }
}

#[test]
fn zeros_before_and_behind_cost_no_digits() {
    let zeros = "0".repeat(500);
    assert_eq!(format(-2).parse(&format!("{zeros}1.25{zeros}"), None), Ok(125));
    assert_eq!(format(-2).parse(&format!("125{zeros}E-502"), None), Ok(125));
    assert_eq!(format(-2).parse(&format!("0.{zeros}125E501"), None), Ok(125));
    assert_eq!(format(-2).parse("0E999999999999999999999", None), Ok(0));
    assert_eq!(format(-2).parse("-0.000", None), Ok(0));
}
