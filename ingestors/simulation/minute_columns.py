"""One-minute candles as columns, and their roll-up into longer bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from ingestors.simulation.records import Candle
from ingestors.simulation.week_pattern import Integers

__all__ = ["MinuteColumns", "grouped"]

_LIMB = 10**9


@dataclass(frozen=True, slots=True)
class MinuteColumns:
    """Ascending minutes that hold trades, one column for each number of a candle."""

    start_ns: Integers
    open: Integers
    high: Integers
    low: Integers
    close: Integers
    volume: Integers
    quote: Integers
    trades: Integers
    buy_volume: Integers
    buy_quote: Integers

    def joined(self, candles: Sequence[Candle]) -> MinuteColumns:
        """Return these minutes and later ones that are already candles."""
        if not candles:
            return self
        rows = np.array([astuple(candle)[:10] for candle in candles], dtype=np.int64)
        own = (self.start_ns, self.open, self.high, self.low, self.close)
        sums = (self.volume, self.quote, self.trades, self.buy_volume, self.buy_quote)
        return MinuteColumns(*(np.concatenate([column, rows[:, n]]) for n, column in enumerate(own + sums)))


def grouped(columns: MinuteColumns, edges_ns: Sequence[int]) -> list[Candle]:
    """Return a candle for each bar that holds a minute.

    Args:
        columns: minutes inside the edges.
        edges_ns: starts of the bars and the end of the last one.
    """
    if not len(columns.start_ns):
        return []
    starts = np.array(edges_ns, dtype=np.int64)
    bars = np.searchsorted(starts, columns.start_ns, side="right") - 1
    first = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(np.diff(bars)) + 1])
    last = np.concatenate([first[1:] - 1, np.array([len(bars) - 1], np.int64)])
    rows = zip(
        starts[bars[first]].tolist(),
        columns.open[first].tolist(),
        np.maximum.reduceat(columns.high, first).tolist(),
        np.minimum.reduceat(columns.low, first).tolist(),
        columns.close[last].tolist(),
        _sums(columns.volume, first),
        _sums(columns.quote, first),
        _sums(columns.trades, first),
        _sums(columns.buy_volume, first),
        _sums(columns.buy_quote, first),
        strict=True,
    )
    return [Candle(*row) for row in rows]


def _sums(values: Integers, first: Integers) -> list[int]:
    """Return exact sums: in two limbs, because the quote volume of a week passes 64 bits."""
    high = np.add.reduceat(values // _LIMB, first).tolist()
    low = np.add.reduceat(values % _LIMB, first).tolist()
    return [int(h) * _LIMB + int(lo) for h, lo in zip(high, low, strict=True)]
