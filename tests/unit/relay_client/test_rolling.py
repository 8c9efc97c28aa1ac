"""Long bars out of short ones on any origin: exact, by time, only where all is known."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.errors import SettingsError
from relay.protocol.ranges import Range
from relay_client import Bar, History, RequestStatus
from tests.unit.relay_client.bars import history

MINUTE, DAY, WEEK = 60 * 10**9, 86_400 * 10**9, 7 * 86_400 * 10**9
MONDAY = 345_600 * 10**9 + 2_800 * WEEK


def hours(
    count: int, *, start_ns: int = MONDAY, skip: tuple[int, ...] = (), covered: tuple[Range, ...] = ()
) -> History:
    """Hourly bars whose close is their number; those that are skipped had no trade."""
    made = history([str(n + 1) for n in range(count)])
    table = made.to_arrow()
    starts = pa.array([(start_ns + n * 3_600 * 10**9) // 1000 for n in range(count)], pa.int64())
    table = table.set_column(table.schema.get_field_index("start"), "start", starts.cast(table["start"].type))
    table = table.set_column(table.schema.get_field_index("trades"), "trades", pa.array(range(count), pa.int64()))
    keep = pa.array([n not in skip for n in range(count)])
    span = Range(start_ns, start_ns + count * 3_600 * 10**9)
    query = replace(made.query, period_seconds=3_600, start_ns=span.start_ns, end_ns=span.end_ns)
    return replace(made, query=query, coverage=covered or (span,), _bars=table.filter(keep))


def days_of(bars: History) -> list[tuple[str, int, int]]:
    """Start, open and close of each bar."""
    return [(bar.start.strftime("%a %H:%M"), int(bar.open), int(bar.close)) for bar in bars]


def test_days_are_made_of_their_hours_with_exact_sums():
    (first, second) = hours(48).rolled_up("1d")
    assert (first.open, first.close, first.high, first.low) == (1, 24, 25, 0)
    assert (second.open, second.close, second.trades) == (24, 48, sum(range(24, 48)))
    assert first.volume == 24 * Decimal("0.0000001")
    assert (first.quote_volume, first.source, first.period_seconds) == (None, "ROLLUP", 86_400)


def test_a_day_may_begin_at_five_and_the_hours_before_and_after_are_missing_case_11():
    rolled = hours(48).rolled_up("1d", origin="5h")
    assert days_of(rolled) == [("Mon 05:00", 5, 29)]
    assert rolled.status is RequestStatus.OK
    assert rolled.coverage == (Range(MONDAY + 5 * 3_600 * 10**9, MONDAY + 29 * 3_600 * 10**9),)
    assert days_of(hours(48).rolled_up("1d", origin=timedelta(hours=5))) == days_of(rolled)


def test_weeks_begin_on_monday_unless_an_origin_says_otherwise_case_10():
    assert days_of(hours(14 * 24).rolled_up("1w")) == [("Mon 00:00", 1, 168), ("Mon 00:00", 168, 336)]
    assert days_of(hours(14 * 24).rolled_up("1w", origin="6d")) == [("Sun 00:00", 144, 312)]


def test_a_bucket_is_made_by_time_not_by_counting_bars_case_7():
    rolled = hours(60, skip=tuple(range(2, 59))).rolled_up("2h")
    assert days_of(rolled) == [("Mon 00:00", 1, 2), ("Wed 10:00", 59, 60)]


def test_a_bucket_whose_children_are_not_all_known_is_missing_not_made():
    known = (Range(MONDAY, MONDAY + 30 * 3_600 * 10**9), Range(MONDAY + 2 * DAY, MONDAY + 3 * DAY))
    rolled = hours(72, covered=known).rolled_up("1d")
    assert days_of(rolled) == [("Mon 00:00", 1, 24), ("Wed 00:00", 48, 72)]
    assert rolled.missing == (Range(MONDAY + DAY, MONDAY + 2 * DAY),)
    assert rolled.status is RequestStatus.PARTIAL


def test_an_incomplete_child_makes_an_incomplete_bar():
    bars = hours(48)
    table = bars.to_arrow()
    flags = pa.array([n == 30 for n in range(48)])
    marked = table.set_column(table.schema.get_field_index("incomplete"), "incomplete", flags)
    assert [bar.incomplete for bar in replace(bars, _bars=marked).rolled_up("1d")] == [False, True]


def filled(found: list[list[int]], before: int, *, is_counted: bool) -> History:
    """Hourly bars of trades of the amount 1; an hour without any repeats the close before, as exchanges send it."""
    made = hours(len(found))
    columns: dict[str, list[object]] = {name: [] for name in ("open", "high", "low", "close", "volume", "trades")}
    for prices in found:
        told = [Decimal(price) for price in prices or [before]]
        before = int(told[-1])
        numbers = (told[0], max(told), min(told), told[-1], Decimal(len(prices)), len(prices) if is_counted else None)
        for values, number in zip(columns.values(), numbers, strict=True):
            values.append(number)
    table = made.to_arrow()
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array(values, table.schema.field(name).type))
    return replace(made, _bars=table)


def test_hours_that_an_exchange_fills_do_not_make_the_prices_of_a_day_that_has_trades():
    (day,) = filled([[], [62], *[[] for _ in range(22)]], 66, is_counted=True).rolled_up("1d")
    assert (day.open, day.high, day.low, day.close, day.trades) == (62, 62, 62, 62, 1)
    (idle,) = filled([[] for _ in range(24)], 66, is_counted=True).rolled_up("1d")
    assert (idle.open, idle.high, idle.low, idle.close, idle.trades) == (66, 66, 66, 66, 0)


@given(
    found=st.lists(st.lists(st.integers(1, 50), max_size=3), min_size=2, max_size=60), factor=st.integers(2, 12),
    is_counted=st.booleans(),
)  # fmt: skip
def test_filled_hours_roll_up_to_the_bars_of_the_trades(
    found: list[list[int]], factor: int, *, is_counted: bool
) -> None:
    expected, close = [], 9
    for first in range(0, len(found) // factor * factor, factor):
        prices = [price for hour in found[first : first + factor] for price in hour]
        told = prices or [close]
        close = told[-1]
        expected.append((told[0], max(told), min(told), close, len(prices)))
    origin = MONDAY // 10**9 % (factor * 3_600)
    rolled = filled(found, 9, is_counted=is_counted).rolled_up(factor * 3_600, origin=origin or None)
    assert [(b.open, b.high, b.low, b.close, b.volume) for b in rolled] == expected


def test_nothing_in_nothing_out():
    rolled = hours(48, skip=tuple(range(48))).rolled_up("1d")
    assert (len(rolled), rolled.status, rolled.missing) == (0, RequestStatus.NOT_FOUND, ())
    assert len(hours(3).rolled_up("1d")) == 0


@pytest.mark.parametrize(("period", "origin"), [
    ("90m", None), ("1h", None), ("30m", None), ("1M", None), ("1d", "1d"), ("1d", "25h"), ("1d", "30m"),
    ("1d", timedelta(hours=-1)), ("1d", timedelta(minutes=90)),
])  # fmt: skip
def test_a_period_or_origin_that_fits_no_grid_is_refused_with_what_is_expected_case_12(period, origin):
    with pytest.raises(SettingsError) as refused:
        hours(48).rolled_up(period, origin=origin)
    assert refused.value.code == "INVALID_PERIOD"


@given(
    first=st.integers(0, 200), count=st.integers(1, 120), factor=st.integers(2, 30), shift=st.integers(0, 29),
    skip=st.sets(st.integers(0, 119)),
)  # fmt: skip
def test_it_equals_the_bars_counted_by_hand(first: int, count: int, factor: int, shift: int, skip: set[int]) -> None:
    bars = hours(count, start_ns=MONDAY + first * 3_600 * 10**9, skip=tuple(skip))
    origin = shift % factor
    buckets: defaultdict[int, list[Bar]] = defaultdict(list)
    for bar in bars:
        hour = int(bar.start.timestamp()) // 3_600
        grid = (96 if factor % 168 == 0 else 0) + origin
        buckets[(hour - grid) // factor * factor + grid].append(bar)
    low, high = MONDAY // (3_600 * 10**9) + first, MONDAY // (3_600 * 10**9) + first + count
    expected = [
        (hour * 3_600, found[0].open, max(b.high for b in found), found[-1].close, sum(b.volume for b in found))
        for hour, found in sorted(buckets.items())
        if hour >= low and hour + factor <= high
    ]
    rolled = bars.rolled_up(factor * 3_600, origin=origin * 3_600 or None)
    assert [(int(b.start.timestamp()), b.open, b.high, b.close, b.volume) for b in rolled] == expected
