"""The seeded market model: trades of any time are a pure function of (seed, symbol, time); nothing is stored.

A restart serves the same data, and so does any past range. Ids are contiguous for each symbol from its listing on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ingestors.simulation.candle_making import candles_of_trades
from ingestors.simulation.grids import Grid
from ingestors.simulation.listings import MODEL_MARKETS, ModelMarket
from ingestors.simulation.minute_columns import MinuteColumns, grouped
from ingestors.simulation.records import Candle, Listing, Trade, Visible
from ingestors.simulation.week_pattern import (
    MINUTE_NS,
    WEEK_MINUTES,
    Integers,
    WeekPattern,
    draw,
    purpose_key,
    week_pattern,
)

__all__ = ["ModelledMarket", "modelled_markets"]

_MONDAY_MINUTES = 5_760
"""1970-01-05, the first Monday, in minutes."""
_DAY_MINUTES = 1_440
_PARTS = 1_000_000
_OCTAVES = ((7, 300), (60, 2_000), (480, 6_000), (4_320, 25_000), (43_200, 120_000))
"""Waves of the price path: distance of their knots in minutes, amplitude in parts per million."""


def modelled_markets(exchange: str, *, seed: int) -> dict[str, ModelledMarket]:
    """Return the model's markets that an exchange lists, by symbol."""
    return {
        market.listing.symbol: ModelledMarket(market, seed=seed)
        for market in MODEL_MARKETS
        if exchange in market.exchanges
    }


class ModelledMarket:
    """One market of the model; its tables are made at first use.

    Args:
        market: listing and character.
        seed: another seed is another market.
    """

    fills_empty = True

    def __init__(self, market: ModelMarket, *, seed: int) -> None:
        self._market = market
        self._seed = seed
        self._symbol = market.listing.alias_of or market.listing.symbol
        self._listed_minute = market.listing.listed_ns // MINUTE_NS

    @property
    def listing(self) -> Listing:
        """The market's facts."""
        return self._market.listing

    @cached_property
    def _week(self) -> WeekPattern:
        return week_pattern(self._market, seed=self._seed, symbol=self._symbol)

    @cached_property
    def _listed_count(self) -> int:
        return self._count_before(self._listed_minute)

    def candles(self, grid: Grid, *, start_ns: int, end_ns: int, visible: Visible) -> list[Candle]:
        """Return the candles with trades that start in [start_ns, end_ns), ascending.

        Whole minutes cost a few array operations and no trade is made; only a minute that is cut by the clock,
        and bars that do not begin on minutes, are counted from trades.
        """
        edges = grid.edges_ns(start_ns, end_ns)
        if not edges:
            return []
        until_ns = min(self._until_ns(visible.until_ns), edges[-1])
        if any(edge % MINUTE_NS for edge in edges):
            return candles_of_trades(self._between(edges[0], until_ns), edges)
        columns = self._minutes(edges[0] // MINUTE_NS, until_ns // MINUTE_NS)
        cut_ns = until_ns // MINUTE_NS * MINUTE_NS
        if cut_ns < until_ns and cut_ns >= edges[0]:
            running = candles_of_trades(self._between(cut_ns, until_ns), [cut_ns, cut_ns + MINUTE_NS])
            columns = columns.joined(running)
        return grouped(columns, edges)

    def position_at(self, time_ns: int) -> int:
        """Return how many trades lie before a time."""
        time_ns = self._until_ns(time_ns)
        if time_ns <= self.listing.listed_ns:
            return 0
        minute, offset_ns = divmod(time_ns, MINUTE_NS)
        place = (minute - _MONDAY_MINUTES) % WEEK_MINUTES
        start, end = int(self._week.first[place]), int(self._week.first[place + 1])
        inside = int(np.searchsorted(self._week.offset_ns[start:end], offset_ns, side="left"))
        return self._count_before(minute) - self._listed_count + inside

    def position_of(self, trade_id: int) -> int:
        """Return how many trades have a smaller id."""
        return max(trade_id - 1, 0)

    def trades(self, start: int, end: int) -> list[Trade]:
        """Return the trades at positions [start, end), ascending; ids are positions counted from 1."""
        start = max(start, 0)
        if self.listing.halted_ns is not None:
            end = min(end, self.position_at(self.listing.halted_ns))
        if end <= start:
            return []
        week = self._week
        numbers = np.arange(start, end, dtype=np.int64) + self._listed_count
        places = numbers % week.total
        minutes = numbers // week.total * WEEK_MINUTES + week.minute_of[places] + _MONDAY_MINUTES
        low = int(minutes[0])
        prices = self._anchors(low, int(minutes[-1]) + 1)[minutes - low] + week.price_offset[places]
        sizes = week.trade_size[places] * self._size_factors(minutes)
        times = minutes * MINUTE_NS + week.offset_ns[places]
        sides = week.taker_buy[places] == 1
        columns = (times.tolist(), prices.tolist(), sizes.tolist(), sides.tolist())
        return [Trade(start + 1 + n, *row) for n, row in enumerate(zip(*columns, strict=True))]

    def _between(self, start_ns: int, end_ns: int) -> Sequence[Trade]:
        return self.trades(self.position_at(start_ns), self.position_at(end_ns))

    def _until_ns(self, time_ns: int) -> int:
        return time_ns if self.listing.halted_ns is None else min(time_ns, self.listing.halted_ns)

    def _count_before(self, minute: int) -> int:
        weeks, place = divmod(minute - _MONDAY_MINUTES, WEEK_MINUTES)
        return weeks * self._week.total + int(self._week.first[place])

    def _minutes(self, start: int, end: int) -> MinuteColumns:
        start = max(start, self._listed_minute)
        minutes = np.arange(start, max(start, end), dtype=np.int64)
        places = (minutes - _MONDAY_MINUTES) % WEEK_MINUTES
        busy = self._week.count[places] > 0
        minutes, places = minutes[busy], places[busy]
        anchors = self._anchors(start, max(start, end))[minutes - start]
        factors = self._size_factors(minutes)
        week = self._week
        return MinuteColumns(
            start_ns=minutes * MINUTE_NS,
            open=anchors + week.open[places],
            high=anchors + week.high[places],
            low=anchors + week.low[places],
            close=anchors + week.close[places],
            volume=factors * week.size[places],
            quote=factors * (anchors * week.size[places] + week.size_offset[places]),
            trades=week.count[places],
            buy_volume=factors * week.buy_size[places],
            buy_quote=factors * (anchors * week.buy_size[places] + week.buy_size_offset[places]),
        )

    def _anchors(self, start: int, end: int) -> Integers:
        """Return the middle price of each minute in [start, end): waves between drawn knots, in whole numbers."""
        minutes = np.arange(start, end, dtype=np.int64)
        parts = np.full(len(minutes), _PARTS, np.int64)
        for distance, amplitude in _OCTAVES:
            low = start // distance
            knots = np.arange(low, max(start, end) // distance + 2, dtype=np.int64)
            key = purpose_key(self._seed, self._symbol, f"wave {distance}")
            heights = draw(key, knots, 2 * amplitude + 1) - amplitude
            left, inside = minutes // distance - low, minutes % distance
            parts += (heights[left] * (distance - inside) + heights[left + 1] * inside) // distance
        return self._market.price_units * parts // _PARTS

    def _size_factors(self, minutes: Integers) -> Integers:
        return 1 + draw(purpose_key(self._seed, self._symbol, "day"), minutes // _DAY_MINUTES, 4)
