"""Numbers and times of sockets: exact, or refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestors.exchanges.live.exact import IsoTimes, rescaled, scaled, ticks_ns
from relay.errors import PeerError
from relay.protocol.scaled import INT64_MAX, from_scaled
from relay.protocol.times import format_ns, parse_iso_ns


@pytest.mark.parametrize(
    ("text", "least", "expected"),
    [
        ("37000.12000000", 2, (3_700_012, 2)),
        ("37000.12345000", 2, (3_700_012_345, 5)),
        ("100", 2, (10_000, 2)),
        ("100.00", 0, (100, 0)),
        ("0.10", 0, (1, 1)),
        ("0.0000001", 2, (1, 7)),
        ("1e-7", 2, (1, 7)),
        ("1E-7", 8, (10, 8)),
        ("1.50e3", 0, (1_500, 0)),
        ("12e2", 1, (12_000, 1)),
        ("0.123456789012345678", 8, (123_456_789_012_345_678, 18)),
        ("9223372036854775807", 0, (INT64_MAX, 0)),
        ("0.00000000000000000100", 0, (1, 18)),
    ],
)
def test_a_number_keeps_every_digit_case_70(text: str, least: int, expected: tuple[int, int]) -> None:
    """Case 70: the text 0.0000001 survives, plain or as 1e-7."""
    assert scaled(text, least) == expected


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "0.000",
        "0e5",
        "-1",
        "+1",
        "",
        ".5",
        "5.",
        "1_000",
        " 1",
        "1 ",
        "1,5",
        "NaN",
        "Infinity",
        "1e",
        "e5",
        "1e99",
        "0x10",
        "9223372036854775808",
        "0.0000000000000000001",
        "1e-19",
        "92233720368547758.08",
        "１２",
        "1" * 65,
        "1.2.3",
    ],
)
def test_what_is_no_positive_number_of_64_bits_and_18_decimals_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        scaled(text, 3)


@given(st.integers(1, INT64_MAX // 100), st.integers(0, 17), st.integers(0, 2))
def test_reading_and_writing_agree_with_decimal(units: int, decimals: int, least: int) -> None:
    text = format(Decimal(units).scaleb(-decimals), "f")
    read_units, read_decimals = scaled(text, least)
    assert from_scaled(read_units, read_decimals) == Decimal(text)
    assert read_decimals >= least
    assert read_decimals == least or read_units % 10


@given(st.text(max_size=80), st.integers(0, 18))
def test_any_text_is_a_number_or_a_value_error(text: str, least: int) -> None:
    try:
        units, decimals = scaled(text, least)
    except ValueError:
        return
    assert 0 < units <= INT64_MAX
    assert least <= decimals <= 18


@pytest.mark.parametrize(
    "text",
    [
        "2023-09-25T07:49:37.708706Z",
        "2023-09-25T07:49:37Z",
        "2023-09-25T07:49:37.39625135Z",
        "2023-09-25T07:49:37.123456789Z",
        "2023-09-25T09:49:37.5+02:00",
        "2023-09-25T07:49:38.1Z",
    ],
)
def test_times_are_read_to_the_nanosecond(text: str) -> None:
    times = IsoTimes()
    assert times.ns("2023-09-25T07:49:37.000001Z") == parse_iso_ns("2023-09-25T07:49:37.000001Z")
    assert times.ns(text) == parse_iso_ns(text)


@given(st.integers(500_000_000 * 10**9, 4_102_444_799 * 10**9))
def test_a_written_time_reads_back(time_ns: int) -> None:
    assert IsoTimes().ns(format_ns(time_ns)) == time_ns


@pytest.mark.parametrize(
    "text", ["", "now", "2023-13-01T00:00:00Z", "1970-01-01T00:00:00Z", "2023-09-25T07:49:37.1234567890Z"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(PeerError):
        IsoTimes().ns(text)


def test_the_unit_of_a_whole_time_is_told_by_its_magnitude() -> None:
    assert ticks_ns(1_700_000_000_123) == 1_700_000_000_123_000_000
    assert ticks_ns(1_700_000_000_123_456) == 1_700_000_000_123_456_000
    for wrong in (0, -5, 1_700_000_000, 1_700_000_000_123_456_789):
        with pytest.raises(ValueError, match="out of range"):
            ticks_ns(wrong)


@given(
    units=st.integers(-5, INT64_MAX) | st.integers(1, 9).map(lambda n: n * 10**18) | st.integers(0, 10**6),
    exponent=st.integers(-128, 127) | st.integers(-20, 5),
    least=st.integers(0, 18),
)
def test_a_number_of_mantissa_and_exponent_is_that_of_its_text(units: int, exponent: int, least: int) -> None:
    try:
        expected = scaled(format(Decimal(units).scaleb(exponent), "f"), least)
    except ValueError:
        # A text of more than 64 characters is refused unread; no such number fits either.
        with pytest.raises(ValueError, match="above zero in 64 bits and 18 decimals"):
            rescaled(units, -exponent, least)
    else:
        assert rescaled(units, -exponent, least) == expected
