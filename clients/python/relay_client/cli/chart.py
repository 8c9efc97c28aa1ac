"""A small candle chart in text, by integers and decimals only.

Drawn here and not by a plotting library: those want floats and dates of their own, for eight rows of characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING

from relay.protocol.scaled import plain_text
from relay_client.rolling import are_traded

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Candle", "draw_candles", "draw_chart"]

_UP, _DOWN, _WICK = "█", "░", "│"
_COLUMNS_MIN = 10


@dataclass(frozen=True, slots=True)
class Candle:
    """One column: one bar, or several that share it."""

    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal


def draw_chart(bars: pa.Table, *, width: int, height: int) -> str:
    """Return a chart that fits a terminal: candles over a line with the first and the last time.

    Args:
        bars: as :meth:`relay_client.History.to_arrow` returns them, at least one row.
        width, height: in characters.
    """
    import pyarrow.compute as pc

    gutter = max(len(plain_text(price.as_py())) for price in (pc.max(bars["high"]), pc.min(bars["low"]))) + 1
    candles = _gathered(bars, max(_COLUMNS_MIN, width - gutter))
    labels = [plain_text(max(c.high for c in candles)), plain_text(min(c.low for c in candles))]
    lines = draw_candles(candles, height=height - 1)
    edge = {0: labels[0], len(lines) - 1: labels[1]}
    drawn = [f"{edge.get(i, ''):>{gutter - 1}} {line}" for i, line in enumerate(lines)]
    first, last = (f"{bars['start'][i].as_py():%Y-%m-%d %H:%M}" for i in (0, len(bars) - 1))
    space = len(candles) - len(first) - len(last)
    return "\n".join([*drawn, f"{'':>{gutter}}{first}" + (f"{'':>{space}}{last}" if space > 1 else "")])


def draw_candles(candles: Sequence[Candle], *, height: int) -> list[str]:
    """Return lines from the top; a filled body rose, a shaded one fell."""
    top, bottom = max(c.high for c in candles), min(c.low for c in candles)
    lines = [[" "] * len(candles) for _ in range(height)]
    for column, candle in enumerate(candles):
        for row in range(_row(candle.high, top, bottom, height), _row(candle.low, top, bottom, height) + 1):
            lines[row][column] = _WICK
        upper, lower = max(candle.open, candle.close), min(candle.open, candle.close)
        for row in range(_row(upper, top, bottom, height), _row(lower, top, bottom, height) + 1):
            lines[row][column] = _UP if candle.close >= candle.open else _DOWN
    return ["".join(line).rstrip() for line in lines]


def _row(price: Decimal, top: Decimal, bottom: Decimal, height: int) -> int:
    if top == bottom:
        return height // 2
    return int((top - price) * (height - 1) / (top - bottom) + Decimal("0.5"))


def _gathered(bars: pa.Table, columns: int) -> list[Candle]:
    """Put neighbouring bars into one candle where there are more bars than columns."""
    import pyarrow.compute as pc

    count = min(columns, len(bars))
    edges = [index * len(bars) // count for index in range(count + 1)]
    traded = are_traded(bars)
    candles = []
    for begin, end in pairwise(edges):
        part = bars.slice(begin, end - begin)
        told = part.filter(traded.slice(begin, end - begin))
        part = told if len(told) else part
        high, low = pc.max(part["high"]).as_py(), pc.min(part["low"]).as_py()
        candles.append(Candle(part["open"][0].as_py(), high, low, part["close"][len(part) - 1].as_py()))
    return candles
