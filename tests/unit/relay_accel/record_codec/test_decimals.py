"""Decimal64 from Python: exact both ways, nulls kept, floats refused."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accelerator import accelerator

ra = accelerator()
np = pytest.importorskip("numpy")
from relay_accel import Decimal64, sbe  # noqa: E402

PRICE = Decimal64()
mantissas = st.integers(-(1 << 63), (1 << 63) - 1)
formats = st.integers(-18, 0).map(Decimal64)
ROUNDINGS = [name for name in dir(decimal) if name.startswith("ROUND_") and name != "ROUND_05UP"]
WIDE = decimal.Context(prec=200)


@given(formats, mantissas)
def test_every_mantissa_comes_back_from_decimal_text_and_scaled_integer(form, mantissa):
    if mantissa == form.NULL:
        assert form.decimal(mantissa) is form.text(mantissa) is form.scaled(mantissa) is None
        return
    number = form.decimal(mantissa)
    assert number == Decimal(mantissa).scaleb(form.exponent, WIDE)
    assert form.mantissa(number) == form.mantissa(form.text(mantissa)) == mantissa
    assert Decimal(form.text(mantissa)) == number
    assert form.from_scaled(*form.scaled(mantissa)) == mantissa


@given(
    formats,
    st.decimals(allow_nan=False, allow_infinity=False, places=9) | st.decimals(allow_nan=False, allow_infinity=False),
)
def test_a_decimal_is_exact_or_refused(form, number):
    exact = number.scaleb(-form.exponent, WIDE)
    fits = exact == exact.to_integral_value(context=WIDE) and -(1 << 63) <= exact < (1 << 63) - 1
    if fits:
        assert form.decimal(form.mantissa(number)) == number
    else:
        with pytest.raises(sbe.EncodeError):
            form.mantissa(number)


@given(st.decimals(-1_000, 1_000, places=12), st.sampled_from(ROUNDINGS))
def test_a_named_rounding_is_that_of_the_decimal_module(number, rounding):
    expected = number.quantize(Decimal("1E-7"), rounding, WIDE)
    assert PRICE.decimal(PRICE.mantissa(number, rounding=rounding)) == expected
    assert PRICE.decimal(PRICE.mantissas([str(number)], rounding=rounding)[0]) == expected
    units = int(number.scaleb(12))
    assert PRICE.decimal(PRICE.from_scaled(units, 12, rounding=rounding)) == expected


@given(formats, st.lists(mantissas, max_size=20))
def test_a_column_keeps_its_numbers_and_nulls(form, units):
    column = np.array([*units, form.NULL], np.int64)
    decimals, texts = form.decimals(column), form.texts(column)
    assert decimals == [form.decimal(unit) for unit in column]
    assert texts == [form.text(unit) for unit in column]
    for given_values in (decimals, texts):
        back = form.mantissas(given_values)
        assert back.dtype == np.int64
        assert back.tolist() == column.tolist()


def test_strided_and_big_endian_columns_are_the_same_numbers():
    column = PRICE.mantissas(["1", None, "-2.5", 3, Decimal("0.0000001"), np.int64(7)])
    column[0] += 1
    assert column.flags.writeable
    assert PRICE.texts(column[::-2]) == ["7", "3", None]
    assert PRICE.texts(column.astype(">i8")) == ["1.0000001", None, "-2.5", "3", "0.0000001", "7"]
    assert PRICE.texts(column[:0]) == []
    for other in (column.astype(float), column.astype(np.uint64), [1, 2]):
        with pytest.raises(TypeError, match="array of int64"):
            PRICE.decimals(other)


@pytest.mark.parametrize("number", [0.1, 1.0, float("nan"), np.float32(1), np.float64(2), np.longdouble(3)])
def test_a_binary_float_is_refused_with_the_reason(number):
    with pytest.raises(TypeError, match="digits are not exact"):
        PRICE.mantissa(number)
    with pytest.raises(TypeError, match=r"item 1: .*digits are not exact"):
        PRICE.mantissas(["1", number])


@pytest.mark.parametrize("number", [True, b"1", object(), [1], 1j])
def test_another_type_is_refused(number):
    with pytest.raises(TypeError, match=r"expected text, a decimal.Decimal, an int or None"):
        PRICE.mantissa(number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("0.00000001", "0.00000001 is not exact with 7 decimals; name a rounding"),
        ("1e30", "expected a number from -922337203685.4775808 to 922337203685.4775806, got 1e30"),
        ("922337203685.4775807", "expected a number from"),
        (Decimal("1E+999999"), "expected a number from"),
        (Decimal("1E-999999"), "not exact"),
        (10**30, "at most 64 bits"),
        ("1,5", 'expected a decimal number such as -12.5 or 1E-7, got "1,5"'),
        ("\ud800", "expected a decimal number"),
        ("1\x00", "expected a decimal number"),
        (Decimal("NaN"), "expected a decimal number"),
        (Decimal("-Infinity"), "expected a decimal number"),
    ],
)
def test_what_does_not_fit_is_told_and_never_rounded(number, text):
    with pytest.raises(sbe.EncodeError, match=text.replace(".", r"\.")):
        PRICE.mantissa(number)
    with pytest.raises(sbe.EncodeError, match="item 2: "):
        PRICE.mantissas(["1", None, number])


def test_formats_roundings_and_mantissas_that_are_none_are_refused():
    for exponent in (1, -19):
        with pytest.raises(ValueError, match="exponent from -18 to 0"):
            Decimal64(exponent)
    with pytest.raises(ValueError, match="expected a rounding"):
        PRICE.mantissa("1", rounding="ROUND_05UP")
    for call in (PRICE.decimal, PRICE.text, PRICE.scaled):
        with pytest.raises(ValueError, match="mantissa of 64 bits"):
            call(1 << 63)


def test_the_callers_context_rounds_nothing():
    with decimal.localcontext() as context:
        context.prec = 3
        assert PRICE.decimal(1_234_567_891_234_567) == Decimal("123456789.1234567")
        assert PRICE.mantissa(Decimal("123456789.1234567")) == 1_234_567_891_234_567
    assert Decimal64(-7) == PRICE
    assert PRICE.mantissa(None) == Decimal64.NULL == (1 << 63) - 1
