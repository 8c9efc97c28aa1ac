"""A model market that can be driven: from a set moment on its trades come at a set rate, with contiguous ids.

Driven trades are a pure function of (seed, symbol, position), made as columns when they are asked for. So nothing is
stored however many there are, and REST and sockets serve the same ones.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from ingestors.simulation.candle_making import candles_of_trades, rolled_up
from ingestors.simulation.grids import FixedGrid, Grid
from ingestors.simulation.records import Candle, Listing, MarketSource, Trade, Visible
from ingestors.simulation.week_pattern import MINUTE_NS, Integers, draw, purpose_key
from relay.errors import SettingsError

__all__ = ["DrivenMarket"]

_SECOND_NS = 10**9
_KNOT_TRADES = 4_096
_BLOCK_TRADES, _BLOCKS_MAX = 1_024, 4
_LIMB = 10**9
_MINUTE = FixedGrid(60)


@dataclass(frozen=True, slots=True)
class _Drive:
    """From ``start_ns`` on the trades at positions from ``first`` come ``per_second`` a second (0: none)."""

    start_ns: int
    first: int
    per_second: int

    def count_before(self, time_ns: int) -> int:
        """Trade k is at start + k s / rate, cut to nanoseconds: how many lie before a time."""
        return -(-(time_ns - self.start_ns) * self.per_second // _SECOND_NS)


class DrivenMarket:
    """A market in front of a modelled one.

    Args:
        base: serves everything before the first drive.
        seed: of the driven trades.
    """

    def __init__(self, base: MarketSource, *, seed: int) -> None:
        self._base = base
        symbol = base.listing.alias_of or base.listing.symbol
        self._keys = {name: purpose_key(seed, symbol, f"driven {name}") for name in ("knot", "price", "size", "side")}
        self._drives: list[_Drive] = []
        self._closed: dict[int, Candle | None] = {}
        self._blocks: dict[int, list[Trade]] = {}
        self._anchor_units = 0

    @property
    def listing(self) -> Listing:
        """The market's facts."""
        return self._base.listing

    @property
    def fills_empty(self) -> bool:
        """Whether bars without a row are known to be empty."""
        return self._base.fills_empty

    def drive(self, per_second: int, *, from_ns: int) -> None:
        """Set the rate from a moment on; 0 stops all trades.

        Args:
            per_second: trades a second.
            from_ns: must lie after everything that was already seen.

        Raises:
            SettingsError: the rate is negative, the market is not traded then, or an earlier drive begins later.
        """
        listing = self.listing
        if per_second < 0 or from_ns < listing.listed_ns or listing.halted_ns is not None:
            raise SettingsError(f"expected a traded market and a rate from 0, got {listing.symbol} at {per_second}/s")
        if self._drives and from_ns <= self._drives[-1].start_ns:
            raise SettingsError(f"expected a moment after the last change of rate of {listing.symbol}, got {from_ns}")
        first = self.position_at(from_ns)
        if not self._drives:
            newest = self._base.trades(first - 1, first)
            self._anchor_units = newest[0].price_units if newest else 10**listing.price_decimals
        self._drives.append(_Drive(from_ns, first, per_second))
        self._blocks.clear()

    def position_at(self, time_ns: int) -> int:
        """Return how many trades lie before a time."""
        place = bisect_right(self._drives, time_ns - 1, key=lambda drive: drive.start_ns) - 1
        if place < 0:
            return self._base.position_at(time_ns)
        drive = self._drives[place]
        return drive.first + drive.count_before(time_ns)

    def position_of(self, trade_id: int) -> int:
        """Return how many trades have a smaller id."""
        return max(trade_id - 1, 0)

    def trades(self, start: int, end: int) -> list[Trade]:
        """Return the trades at positions [start, end), ascending; ids are positions counted from 1."""
        if not self._drives:
            return self._base.trades(start, end)
        start, border = max(start, 0), self._drives[0].first
        trades = self._base.trades(start, min(end, border)) if start < border else []
        start = max(start, border)
        if end - start > _BLOCK_TRADES:
            return trades + self._made(start, end)
        for number in range(start // _BLOCK_TRADES, -(-end // _BLOCK_TRADES)):
            low = max(number * _BLOCK_TRADES, border)
            trades += self._block(number)[max(start - low, 0) : max(end - low, 0)]
        return trades

    def _block(self, number: int) -> list[Trade]:
        """Return an aligned run of trades, made ahead: a turn of the sockets needs a few of them at a time."""
        block = self._blocks.get(number)
        if block is None:
            if len(self._blocks) >= _BLOCKS_MAX:
                del self._blocks[next(iter(self._blocks))]
            low = max(number * _BLOCK_TRADES, self._drives[0].first)
            block = self._blocks[number] = self._made(low, (number + 1) * _BLOCK_TRADES)
        return block

    def _made(self, start: int, end: int) -> list[Trade]:
        times, prices, sizes, sides = self._columns(start, end)
        columns = (times.tolist(), prices.tolist(), sizes.tolist(), (sides == 1).tolist())
        ids = range(start + 1, start + 1 + len(times))
        return [Trade(*row) for row in zip(ids, *columns, strict=True)]

    def candles(self, grid: Grid, *, start_ns: int, end_ns: int, visible: Visible) -> list[Candle]:
        """Return the candles with trades that start in [start_ns, end_ns); driven ones by the minute, closed once."""
        if not self._drives or end_ns <= self._drives[0].start_ns:
            return self._base.candles(grid, start_ns=start_ns, end_ns=end_ns, visible=visible)
        edges = grid.edges_ns(start_ns, end_ns)
        if not edges:
            return []
        until_ns = min(visible.until_ns, edges[-1])
        if any(edge % MINUTE_NS for edge in edges):
            return candles_of_trades(self.trades(self.position_at(edges[0]), self.position_at(until_ns)), edges)
        border_ns = _MINUTE.floor_ns(self._drives[0].start_ns)
        whole_ns = min(grid.floor_ns(border_ns), edges[-1])
        before = self._base.candles(grid, start_ns=start_ns, end_ns=whole_ns, visible=visible)
        low_ns = max(whole_ns, edges[0])
        parts: list[Candle] = []
        if low_ns < border_ns:
            parts = self._base.candles(_MINUTE, start_ns=low_ns, end_ns=border_ns, visible=visible)
        for minute_ns in range(max(low_ns, border_ns), until_ns, MINUTE_NS):
            candle = self._minute(minute_ns, until_ns)
            parts += [candle] if candle is not None else []
        return before + rolled_up(parts, edges)

    def _minute(self, start_ns: int, until_ns: int) -> Candle | None:
        if start_ns in self._closed:
            return self._closed[start_ns]
        end_ns = min(start_ns + MINUTE_NS, until_ns)
        start, end = self.position_at(start_ns), self.position_at(end_ns)
        border = self._drives[0].first
        parts = candles_of_trades(self.trades(start, min(end, border)), [start_ns, start_ns + MINUTE_NS])
        if end > max(start, border):
            parts.append(self._driven_candle(start_ns, max(start, border), end))
        candle = rolled_up(parts, [start_ns, start_ns + MINUTE_NS])[0] if parts else None
        if end_ns == start_ns + MINUTE_NS and self._drives[-1].start_ns < start_ns:
            self._closed[start_ns] = candle
        return candle

    def _driven_candle(self, start_ns: int, start: int, end: int) -> Candle:
        _, prices, sizes, sides = self._columns(start, end)
        bought = sizes * sides
        return Candle(
            start_ns=start_ns,
            open_units=int(prices[0]),
            high_units=int(prices.max()),
            low_units=int(prices.min()),
            close_units=int(prices[-1]),
            volume_units=int(sizes.sum()),
            quote_units=_exact_sum(prices * sizes),
            trades=end - start,
            buy_volume_units=int(bought.sum()),
            buy_quote_units=_exact_sum(prices * bought),
        )

    def _columns(self, start: int, end: int) -> tuple[Integers, Integers, Integers, Integers]:
        """Return times, prices, sizes and sides; nothing beyond the last position of a stopped drive."""
        blocks = []
        ends = [drive.first for drive in self._drives[1:]] + [end]
        for drive, until in zip(self._drives, ends, strict=True):
            low, high = max(start, drive.first), min(end, until)
            if drive.per_second and low < high:
                ordinal = np.arange(low, high, dtype=np.int64) - drive.first
                seconds, rest = ordinal // drive.per_second, ordinal % drive.per_second
                blocks.append(drive.start_ns + seconds * _SECOND_NS + rest * _SECOND_NS // drive.per_second)
        times = np.concatenate(blocks) if blocks else np.zeros(0, np.int64)
        positions = np.arange(start, start + len(times), dtype=np.int64)
        step = max(1, self._anchor_units // 30_000)
        knots = positions // _KNOT_TRADES
        low = int(knots[0]) if len(knots) else 0
        heights = draw(self._keys["knot"], np.arange(low, low + len(np.unique(knots)) + 2, dtype=np.int64), 401) - 200
        inside = positions % _KNOT_TRADES
        left, right = heights[knots - low], heights[knots - low + 1]
        wave = (left * (_KNOT_TRADES - inside) + right * inside) // _KNOT_TRADES
        offsets = (wave + draw(self._keys["price"], positions, 7) - 3) * step
        prices = np.maximum(self._anchor_units + offsets, 1)
        sizes = 1 + draw(self._keys["size"], positions, 10 ** max(self.listing.size_decimals - 1, 2))
        return times, prices, sizes, draw(self._keys["side"], positions, 2)


def _exact_sum(values: Integers) -> int:
    """Return an exact sum: in two limbs, because a busy minute's quote volume passes 64 bits."""
    return int((values // _LIMB).sum()) * _LIMB + int((values % _LIMB).sum())
