"""Times as users write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.errors import SettingsError
from relay.protocol.times import TIME_NS_MAX, TIME_NS_MIN, format_ns
from relay_client.times import from_ns, parse_range, parse_span_ns, parse_time_ns

NOW_NS = 1_800_000_000 * 10**9
EXPECTED_NS = 1_769_860_800 * 10**9


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        ("2026-01-31T12:00:00Z", None),
        ("2026-01-31T13:00:00+01:00", None),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), None),
        (datetime(2026, 1, 31, 7, tzinfo=timezone(timedelta(hours=-5))), None),
        (pd.Timestamp("2026-01-31T12:00:00Z"), None),
        (1_769_860_800, "s"),
        (1_769_860_800_000, "ms"),
        (1_769_860_800_000_000, "us"),
        (1_769_860_800_000_000_000, "ns"),
        (np.int64(1_769_860_800), "s"),
    ],
)
def test_every_accepted_form_means_the_same_instant(value, unit):
    assert parse_time_ns(value, unit=unit) == EXPECTED_NS


def test_a_date_alone_is_midnight_utc():
    assert parse_time_ns("2026-01-31") == parse_time_ns(date(2026, 1, 31)) == EXPECTED_NS - 12 * 3600 * 10**9


def test_a_pandas_timestamp_keeps_its_nanosecond():
    assert parse_time_ns(pd.Timestamp(EXPECTED_NS + 7, unit="ns", tz="UTC")) == EXPECTED_NS + 7


@pytest.mark.parametrize(
    ("value", "unit", "advice"),
    [
        (datetime(2026, 1, 31, 12), None, "make it aware"),  # noqa: DTZ001
        (pd.Timestamp("2026-01-31T12:00:00"), None, "make it aware"),
        (pd.NaT, None, "NaT"),
        (np.datetime64("2026-01-31T12:00:00"), None, "aware datetime"),
        ("2026-01-31T12:00:00", None, "add Z"),
        ("1769860800", None, "does not say its unit"),
        ("31.01.2026", None, "expected a time such as"),
        ("now", None, "expected a time such as"),
        (1_769_860_800, None, "add unit="),
        (1_769_860_800, "minutes", "expected unit"),
        (1_769_860_800_000, "s", "check the unit"),
        (1_769_860_800, "ms", "check the unit"),
        (1_769_860_800.5, "s", "expected an aware datetime"),
        (True, "s", "expected an aware datetime"),
        (None, None, "expected an aware datetime"),
    ],
)
def test_what_is_naive_or_ambiguous_is_refused_with_what_to_do_case_45(value, unit, advice):
    with pytest.raises(SettingsError, match=advice) as raised:
        parse_time_ns(value, unit=unit, what="start")
    assert raised.value.code == "INVALID_TIME"
    assert "start" in str(raised.value) or "unit" in str(raised.value)


@settings(deadline=None)
@given(st.integers(TIME_NS_MIN // 1000, TIME_NS_MAX // 1000 - 1))
def test_a_datetime_and_its_text_come_back_as_the_same_microsecond(time_us):
    time_ns = time_us * 1000
    assert parse_time_ns(from_ns(time_ns)) == time_ns
    assert parse_time_ns(format_ns(time_ns)) == time_ns


@settings(deadline=None)
@given(
    st.datetimes(
        datetime(1990, 1, 1),  # noqa: DTZ001
        datetime(2090, 1, 1),  # noqa: DTZ001
        timezones=st.timezones(),
        allow_imaginary=False,
    )
)
def test_the_zone_of_a_datetime_does_not_matter(moment):
    assert parse_time_ns(moment) == parse_time_ns(moment.astimezone(UTC))


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_a_time_or_a_refusal(text):
    try:
        assert TIME_NS_MIN <= parse_time_ns(text) <= TIME_NS_MAX
    except SettingsError as error:
        assert error.code == "INVALID_TIME"


def test_a_range_is_start_or_last_and_its_end_may_be_left_out():
    hour_ns = 3600 * 10**9
    assert parse_span_ns("1h") == hour_ns
    assert parse_range(start=None, end=None, last="1h", unit=None, now_ns=NOW_NS) == (NOW_NS - hour_ns, NOW_NS)
    assert parse_range(start=NOW_NS - 5, end=None, last=None, unit="ns", now_ns=NOW_NS) == (NOW_NS - 5, NOW_NS)


@pytest.mark.parametrize(
    ("given_times", "advice"),
    [
        ({"start": None, "last": None}, "neither"),
        ({"start": "2026-01-01", "last": "1h"}, "both"),
        ({"start": "2026-01-02", "end": "2026-01-01"}, "end after start"),
        ({"start": "2026-01-02", "end": "2026-01-02"}, "end after start"),
        ({"last": "yesterday"}, "15m, 1h, 7d"),
        ({"last": "1mo"}, "15m, 1h, 7d"),
    ],
)
def test_a_range_that_is_none_is_refused(given_times, advice):
    times = {"start": None, "end": None, "last": None, **given_times}
    with pytest.raises(SettingsError, match=advice):
        parse_range(**times, unit=None, now_ns=NOW_NS)


@pytest.mark.parametrize("last", ["0m", "36526d", "999999999w", "", "1M", "1.5h"])
def test_a_span_out_of_bounds_is_told_with_the_bounds(last):
    with pytest.raises(SettingsError, match="of 1s to 36525d") as told:
        parse_range(start=None, end=None, last=last, unit=None, now_ns=NOW_NS)
    assert told.value.code == "INVALID_TIME"


def test_a_long_span_is_taken_and_one_before_the_first_exchange_is_told():
    day_ns = 86_400 * 10**9
    assert parse_span_ns("1000d") == 1000 * day_ns
    with pytest.raises(SettingsError, match="before 1985"):
        parse_range(start=None, end=None, last="36000d", unit=None, now_ns=NOW_NS)


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("1795840000", 1795840000, "s"),
        ("1795840000.5", 1795840000500, "ms"),
        ("1795840000.000001", 1795840000000001, "us"),
        ("1795840000.123456789", 1795840000123456789, "ns"),
    ],
)
def test_the_advice_for_a_number_without_a_unit_can_be_followed(text, number, unit):
    with pytest.raises(SettingsError, match=f"pass {number} as an integer with unit='{unit}'"):
        parse_time_ns(text)
    assert parse_time_ns(number, unit=unit)


def test_a_range_that_ends_before_it_starts_is_told_in_readable_times():
    with pytest.raises(SettingsError, match="start 2026-01-02T00:00:00Z and end 2026-01-01T00:00:00Z"):
        parse_range(start="2026-01-02", end="2026-01-01", last=None, unit=None, now_ns=NOW_NS)
    with pytest.raises(SettingsError, match="must lie in the past"):
        parse_range(start=NOW_NS + 1, end=None, last=None, unit="ns", now_ns=NOW_NS)
