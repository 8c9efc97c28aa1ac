"""Markets driven at a set rate: pure, contiguous, the same by id and by time, candles equal to their trades."""

from __future__ import annotations

import pytest

from ingestors.simulation.candle_making import candles_of_trades
from ingestors.simulation.driven_market import DrivenMarket
from ingestors.simulation.grids import FixedGrid
from ingestors.simulation.market import modelled_markets
from ingestors.simulation.records import Visible
from relay.errors import SettingsError
from relay.protocol.times import parse_iso_ns
from tests.unit.simulation.calls import NOW_NS

SECOND_NS = 10**9


def market(seed: int = 1, symbol: str = "BTC/USDT") -> DrivenMarket:
    return DrivenMarket(modelled_markets("binance", seed=seed)[symbol], seed=seed)


@pytest.mark.parametrize("per_second", [1, 7, 5_000, 50_000])
def test_ids_go_on_without_a_hole_and_times_follow_the_rate(per_second: int) -> None:
    driven = market()
    first = driven.position_at(NOW_NS)
    driven.drive(per_second, from_ns=NOW_NS)
    assert driven.position_at(NOW_NS) == first
    assert driven.position_at(NOW_NS + 3 * SECOND_NS) == first + 3 * per_second
    trades = driven.trades(first - 5, first + 3 * per_second)
    assert [trade.trade_id for trade in trades] == list(range(first - 4, first + 3 * per_second + 1))
    times = [trade.time_ns for trade in trades]
    assert times == sorted(times)
    assert times[4] < NOW_NS == times[5]
    for n in (5, 6, len(trades) - 1):
        assert driven.position_at(times[n]) == first - 5 + n
        assert driven.position_at(times[n] + 1) == first - 4 + n
    assert all(trade.price_units > 0 and trade.size_units > 0 for trade in trades)


def test_pages_of_any_size_hold_the_same_trades_and_so_does_another_run() -> None:
    one, two, other = market(), market(), market(seed=2)
    for each in (one, two, other):
        each.drive(5_000, from_ns=NOW_NS)
    first = one.position_at(NOW_NS)
    whole = one.trades(first - 10, first + 5_000)
    paged = [
        trade for n in range(first - 10, first + 5_000, 167) for trade in two.trades(n, min(n + 167, first + 5_000))
    ]
    assert paged == whole
    start = other.position_at(NOW_NS)
    assert [t.price_units for t in other.trades(start, start + 100)] != [t.price_units for t in whole[10:110]]


def test_the_rate_changes_and_stops() -> None:
    driven = market()
    driven.drive(100, from_ns=NOW_NS)
    first = driven.position_at(NOW_NS)
    assert len(driven.trades(first, first + 900)) == 900  # made ahead at the old rate, and forgotten
    driven.drive(1_000, from_ns=NOW_NS + SECOND_NS)
    driven.drive(0, from_ns=NOW_NS + 2 * SECOND_NS)
    assert driven.position_at(NOW_NS + 3_600 * SECOND_NS) == first + 1_100
    trades = driven.trades(first, first + 5_000)
    assert [trade.trade_id for trade in trades] == list(range(first + 1, first + 1_101))
    assert trades[100].time_ns == NOW_NS + SECOND_NS
    assert trades[101].time_ns == NOW_NS + SECOND_NS + 10**6


@pytest.mark.parametrize("period_seconds", [1, 60, 300, 3_600])
def test_candles_equal_their_trades_also_where_the_drive_begins(period_seconds: int) -> None:
    driven = market()
    start_ns = parse_iso_ns("2026-03-04T12:00:00Z")
    driven.drive(50, from_ns=start_ns + 90 * SECOND_NS + 123_456_789)
    until_ns = start_ns + 400 * SECOND_NS
    grid = FixedGrid(period_seconds)
    end_ns = start_ns + 600 * SECOND_NS
    low_ns = start_ns - 600 * SECOND_NS
    for _ in range(2):  # the second time from closed minutes
        candles = driven.candles(grid, start_ns=low_ns, end_ns=end_ns, visible=Visible(until_ns))
        edges = grid.edges_ns(low_ns, end_ns)
        trades = driven.trades(driven.position_at(edges[0]), driven.position_at(min(until_ns, edges[-1])))
        assert candles == candles_of_trades(trades, edges)
    assert sum(candle.trades or 0 for candle in candles) > 10_000


def test_a_busy_minutes_quote_volume_is_exact_beyond_64_bits() -> None:
    driven = DrivenMarket(modelled_markets("coinbase", seed=1)["BTC/USD"], seed=1)
    minute_ns = NOW_NS // (60 * SECOND_NS) * 60 * SECOND_NS
    driven.drive(6_000, from_ns=minute_ns)
    end_ns = minute_ns + 60 * SECOND_NS
    candle = driven.candles(FixedGrid(60), start_ns=minute_ns, end_ns=end_ns, visible=Visible(end_ns))[0]
    trades = driven.trades(driven.position_at(minute_ns), driven.position_at(end_ns))
    assert len(trades) == 360_000
    assert candle.quote_units == sum(trade.price_units * trade.size_units for trade in trades)
    assert candle.quote_units > 2**63


def test_a_drive_may_not_begin_before_the_last_one_or_on_a_halted_market() -> None:
    driven = market()
    driven.drive(5, from_ns=NOW_NS)
    with pytest.raises(SettingsError, match="after the last change"):
        driven.drive(5, from_ns=NOW_NS)
    with pytest.raises(SettingsError, match="expected a traded market"):
        market(symbol="MATIC/USDT").drive(5, from_ns=NOW_NS)
