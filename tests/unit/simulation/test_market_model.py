"""The market model: pure in seed, symbol and time; ids contiguous; candles exactly those of the trades."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestors.simulation.candle_making import candles_of_trades, flat_candle, rolled_up
from ingestors.simulation.candle_pages import newest_candles, oldest_candles
from ingestors.simulation.grids import FixedGrid, MonthGrid
from ingestors.simulation.listings import BINANCE, COINBASE, EXCHANGES, MODEL_MARKETS
from ingestors.simulation.market import ModelledMarket, modelled_markets
from ingestors.simulation.records import Candle, Visible
from relay.protocol.times import parse_iso_ns

SECOND_NS = 10**9
MINUTE_NS = 60 * SECOND_NS
DAY_NS = 86_400 * SECOND_NS
FOREVER = Visible(parse_iso_ns("2090-01-01T00:00:00Z"))
MARKETS = {market.listing.symbol: ModelledMarket(market, seed=7) for market in MODEL_MARKETS}

symbols = st.sampled_from(sorted(MARKETS))
times_ns = st.integers(parse_iso_ns("2015-01-01T00:00:00Z"), parse_iso_ns("2027-01-01T00:00:00Z"))
spans_ns = st.integers(1, 3 * 3_600 * SECOND_NS)
minutes = st.integers(
    parse_iso_ns("2015-01-01T00:00:00Z") // MINUTE_NS, parse_iso_ns("2027-01-01T00:00:00Z") // MINUTE_NS
)


def trades_between(market: ModelledMarket, start_ns: int, end_ns: int) -> list[object]:
    return list(market.trades(market.position_at(start_ns), market.position_at(end_ns)))


@settings(max_examples=60, deadline=None)
@given(symbol=symbols, start_ns=times_ns, span_ns=spans_ns)
def test_trades_of_a_range_lie_inside_it_with_contiguous_ids_in_order(symbol: str, start_ns: int, span_ns: int) -> None:
    market = MARKETS[symbol]
    first, end = market.position_at(start_ns), market.position_at(start_ns + span_ns)
    trades = market.trades(first, end)
    assert [trade.trade_id for trade in trades] == list(range(first + 1, end + 1))
    assert all(start_ns <= trade.time_ns < start_ns + span_ns for trade in trades)
    assert all(one.time_ns <= other.time_ns for one, other in pairwise(trades))
    assert all(trade.price_units > 0 and trade.size_units > 0 for trade in trades)


@settings(max_examples=60, deadline=None)
@given(symbol=symbols, start_ns=times_ns, spans=st.tuples(spans_ns, spans_ns))
def test_pages_join_to_the_trades_of_the_whole_range(symbol: str, start_ns: int, spans: tuple[int, int]) -> None:
    market = MARKETS[symbol]
    middle_ns, end_ns = start_ns + spans[0], start_ns + sum(spans)
    parts = trades_between(market, start_ns, middle_ns) + trades_between(market, middle_ns, end_ns)
    assert parts == trades_between(market, start_ns, end_ns)


@settings(max_examples=60, deadline=None)
@given(symbol=symbols, minute=minutes, count=st.integers(1, 40), cut_ns=st.integers(0, 40 * MINUTE_NS))
def test_candles_are_exactly_those_of_the_trades(symbol: str, minute: int, count: int, cut_ns: int) -> None:
    """Case 14: open and close follow (time, id), also for trades of the same millisecond."""
    market, grid = MARKETS[symbol], FixedGrid(60)
    start_ns, visible = minute * MINUTE_NS, Visible(minute * MINUTE_NS + cut_ns)
    end_ns = start_ns + count * MINUTE_NS
    trades = market.trades(market.position_at(start_ns), market.position_at(min(end_ns, visible.until_ns)))
    edges = grid.edges_ns(start_ns, end_ns)
    assert market.candles(grid, start_ns=start_ns, end_ns=end_ns, visible=visible) == candles_of_trades(trades, edges)


@settings(max_examples=40, deadline=None)
@given(symbol=symbols, minute=minutes, period=st.sampled_from([300, 900, 3_600, 86_400, 604_800]))
def test_longer_candles_are_the_roll_up_of_one_minute_candles(symbol: str, minute: int, period: int) -> None:
    """Case 7: merged by time, not by count of rows."""
    market = MARKETS[symbol]
    grid = FixedGrid(period, 345_600 if period == 604_800 else 0)
    start_ns = grid.floor_ns(minute * MINUTE_NS)
    end_ns = grid.step_ns(start_ns, 2)
    ones = market.candles(FixedGrid(60), start_ns=start_ns, end_ns=end_ns, visible=FOREVER)
    longer = market.candles(grid, start_ns=start_ns, end_ns=end_ns, visible=FOREVER)
    assert longer == rolled_up(ones, grid.edges_ns(start_ns, end_ns))


def test_second_candles_roll_up_to_minute_candles() -> None:
    market, start_ns = MARKETS["BTC/USDT"], parse_iso_ns("2025-02-03T04:05:00Z")
    end_ns = start_ns + 10 * MINUTE_NS
    seconds = market.candles(FixedGrid(1), start_ns=start_ns, end_ns=end_ns, visible=FOREVER)
    ones = market.candles(FixedGrid(60), start_ns=start_ns, end_ns=end_ns, visible=FOREVER)
    assert len(seconds) > len(ones) > 5
    assert rolled_up(seconds, FixedGrid(60).edges_ns(start_ns, end_ns)) == ones


def test_filled_minutes_do_not_make_the_prices_of_a_longer_candle_that_has_trades() -> None:
    ones = [flat_candle(0, 66), Candle(MINUTE_NS, 62, 63, 61, 62, 5, trades=2), flat_candle(2 * MINUTE_NS, 62)]
    (longer,) = rolled_up(ones, [0, 3 * MINUTE_NS])
    assert (longer.open_units, longer.high_units, longer.low_units, longer.close_units) == (62, 63, 61, 62)
    (idle,) = rolled_up(ones[:1], [0, 3 * MINUTE_NS])
    assert (idle.open_units, idle.close_units, idle.volume_units) == (66, 66, 0)


def test_the_same_seed_is_the_same_market_and_another_seed_is_another() -> None:
    start_ns = parse_iso_ns("2025-02-03T04:05:00Z")

    def made(seed: int) -> list[object]:
        return trades_between(modelled_markets(BINANCE, seed=seed)["ETH/USDT"], start_ns, start_ns + 3_600 * SECOND_NS)

    assert made(1) == made(1)
    assert made(1) != made(2)


@pytest.mark.parametrize("symbol", sorted(MARKETS))
def test_history_starts_with_id_1_at_the_listing_and_nothing_lies_before(symbol: str) -> None:
    market = MARKETS[symbol]
    listed_ns = market.listing.listed_ns
    assert trades_between(market, listed_ns - 30 * DAY_NS, listed_ns) == []
    first = market.trades(0, 1)[0]
    assert first.trade_id == 1
    assert listed_ns <= first.time_ns < listed_ns + DAY_NS
    grid = FixedGrid(86_400)
    assert market.candles(grid, start_ns=listed_ns - 9 * DAY_NS, end_ns=grid.floor_ns(listed_ns), visible=FOREVER) == []


def test_a_halted_market_has_no_row_after_its_halt() -> None:
    """Case 69: MATIC stops where it stopped, POL starts by itself."""
    market = MARKETS["MATIC/USDT"]
    halted_ns = market.listing.halted_ns
    assert halted_ns is not None
    assert trades_between(market, halted_ns, halted_ns + DAY_NS) == []
    last = market.trades(market.position_at(halted_ns) - 1, market.position_at(halted_ns) + 100)
    assert len(last) == 1
    rows = oldest_candles(
        market,
        FixedGrid(60),
        start_ns=halted_ns - 10 * MINUTE_NS,
        end_ns=halted_ns + DAY_NS,
        limit=1_000,
        visible=FOREVER,
        flat=True,
    )
    assert [row.start_ns for row in rows] == [halted_ns - n * MINUTE_NS for n in range(10, 0, -1)]


def test_markets_hold_empty_minutes_ties_by_millisecond_and_trades_on_the_edge_of_a_minute() -> None:
    market, start_ns = MARKETS["BTC/USDT"], parse_iso_ns("2025-06-02T00:00:00Z")
    trades = market.trades(market.position_at(start_ns), market.position_at(start_ns + DAY_NS))
    by_millisecond = [trade.time_ns // 10**6 for trade in trades]
    assert any(one == other for one, other in pairwise(by_millisecond))
    assert any(trade.time_ns % MINUTE_NS == 0 for trade in trades)
    rows = market.candles(FixedGrid(60), start_ns=start_ns, end_ns=start_ns + DAY_NS, visible=FOREVER)
    assert 1_000 < len(rows) < 1_440


def test_the_tiny_price_market_trades_at_a_ten_millionth() -> None:
    """Case 70: 0.0000001 exists to be carried from end to end."""
    market, start_ns = MARKETS["BTTC/USDT"], parse_iso_ns("2025-06-02T00:00:00Z")
    assert market.listing.price_decimals == 8
    trades = market.trades(market.position_at(start_ns), market.position_at(start_ns + 30 * DAY_NS))
    assert any(trade.price_units == 10 for trade in trades)


@settings(max_examples=30, deadline=None)
@given(symbol=symbols, minute=minutes, limits=st.tuples(st.integers(1, 50), st.integers(1, 50)))
def test_pages_of_candles_join_without_overlap_or_hole(symbol: str, minute: int, limits: tuple[int, int]) -> None:
    market, grid, start_ns = MARKETS[symbol], FixedGrid(300), minute * MINUTE_NS
    span = {"end_ns": FOREVER.until_ns, "visible": Visible(start_ns + 30 * DAY_NS), "flat": False}
    whole = oldest_candles(market, grid, start_ns=start_ns, limit=sum(limits), **span)  # type: ignore[arg-type]
    first = oldest_candles(market, grid, start_ns=start_ns, limit=limits[0], **span)  # type: ignore[arg-type]
    following_ns = first[-1].start_ns + 1 if first else start_ns
    second = oldest_candles(market, grid, start_ns=following_ns, limit=limits[1], **span)  # type: ignore[arg-type]
    assert first + second == whole
    assert len(whole) in (0, sum(limits)) or market.listing.halted_ns or market.listing.listed_ns > start_ns


def test_flat_rows_repeat_the_close_before_them() -> None:
    market, start_ns = MARKETS["XRP/ETH"], parse_iso_ns("2025-06-02T00:00:00Z")
    rows = newest_candles(
        market,
        FixedGrid(60),
        start_ns=0,
        end_ns=start_ns,
        limit=300,
        visible=Visible(start_ns),
        flat=True,
    )
    assert [row.start_ns for row in rows] == [start_ns - n * MINUTE_NS for n in range(300, 0, -1)]
    flat = [(before, row) for before, row in pairwise(rows) if row.trades == 0]
    assert flat
    assert all(row.open_units == row.high_units == row.low_units == before.close_units for before, row in flat)
    assert all(row.volume_units == 0 for _, row in flat)


def test_an_alias_shares_its_book() -> None:
    markets = modelled_markets(COINBASE, seed=1)
    start_ns = parse_iso_ns("2025-06-02T00:00:00Z")
    assert trades_between(markets["BTC/USDC"], start_ns, start_ns + DAY_NS) == trades_between(
        markets["BTC/USD"], start_ns, start_ns + DAY_NS
    )


def test_every_exchange_lists_several_markets() -> None:
    assert all(len(modelled_markets(name, seed=1)) >= 6 for name in EXCHANGES)


def test_months_begin_on_their_first_day_in_the_zone() -> None:
    grid = MonthGrid(3_600)
    assert grid.floor_ns(parse_iso_ns("2024-02-29T23:30:00Z")) == parse_iso_ns("2024-02-29T23:00:00Z")
    assert grid.edges_ns(parse_iso_ns("2024-11-15T00:00:00Z"), parse_iso_ns("2025-01-15T00:00:00Z")) == [
        parse_iso_ns("2024-11-30T23:00:00Z"),
        parse_iso_ns("2024-12-31T23:00:00Z"),
        parse_iso_ns("2025-01-31T23:00:00Z"),
    ]
