"""Seconds rolled up as an exchange sends them, empty ones filled with the close before: as if made of the trades."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from ingestors.engine.bars_reader import Settled
from ingestors.engine.rollup import Roller
from ingestors.engine.values import Bar
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range

seconds = st.lists(st.lists(st.integers(1, 50), max_size=3), min_size=1, max_size=60)


def candle(start_ns: int, prices: list[int], before: int) -> Bar:
    """The bar of trades of the amount 1; without any, one that repeats the close before."""
    told = [Decimal(price) for price in prices or [before]]
    count = len(prices)
    return Bar(start_ns, told[0], max(told), min(told), told[-1], Decimal(count), trades=count)


def folded(found: list[list[int]], size: int, before: int) -> list[Bar]:
    """Bars of some seconds each, from their trades."""
    bars = []
    for first in range(0, len(found) // size * size, size):
        prices = [price for second in found[first : first + size] for price in second]
        bars.append(candle(first * NANOSECONDS, prices, before))
        before = prices[-1] if prices else before
    return bars


def rolled(bars: list[Bar], size: int) -> tuple[Bar, ...]:
    span = Range(0, len(bars) * NANOSECONDS)
    settled = Roller(size, start_ns=0).add(Settled(span, tuple(bars), {}, (span,)))
    return settled.bars if settled is not None else ()


def prices_of(bar: Bar) -> tuple[Decimal, ...]:
    return (bar.open, bar.high, bar.low, bar.close, bar.volume)


def test_a_bucket_that_begins_without_trades_has_the_prices_of_its_trades_only() -> None:
    (bar,) = rolled(folded([[], [], [62], []], 1, before=66), 4)
    assert prices_of(bar) == (62, 62, 62, 62, 1)
    assert bar.trades == 1


def test_a_bucket_without_any_trade_repeats_the_close_before() -> None:
    (bar,) = rolled(folded([[], [], [], []], 1, before=66), 4)
    assert prices_of(bar) == (66, 66, 66, 66, 0)


def test_ids_and_close_are_those_of_the_last_second_with_a_trade() -> None:
    first, *rest = folded([[], [3], [4], []], 1, before=9)
    rest[0] = replace(rest[0], first_trade_id="7", last_trade_id="7")
    rest[1] = replace(rest[1], first_trade_id="8", last_trade_id="8")
    (bar,) = rolled([first, *rest], 4)
    assert (bar.close, bar.first_trade_id, bar.last_trade_id) == (4, "7", "8")


@given(found=seconds, size=st.integers(1, 10), before=st.integers(1, 50), is_counted=st.booleans())
def test_rolled_up_seconds_are_the_bars_of_the_trades(
    found: list[list[int]], size: int, before: int, *, is_counted: bool
) -> None:
    bars = folded(found, 1, before)
    if not is_counted:
        bars = [replace(bar, trades=None) for bar in bars]
    expected = [prices_of(bar) for bar in folded(found, size, before)]
    assert [prices_of(bar) for bar in rolled(bars, size)] == expected
