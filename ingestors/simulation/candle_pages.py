"""Pages of candles: the oldest from a start, the newest up to an end, with or without flat rows for empty bars."""

from __future__ import annotations

from collections.abc import Sequence

from ingestors.simulation.candle_making import flat_candle
from ingestors.simulation.grids import Grid
from ingestors.simulation.records import Candle, MarketSource, Visible

__all__ = ["newest_candles", "oldest_candles", "span_of"]


def span_of(source: MarketSource, grid: Grid, visible: Visible) -> tuple[int, int]:
    """Return the time in which the market can have rows: [first bar's start, end), nanoseconds."""
    listing = source.listing
    end_ns = visible.until_ns if listing.halted_ns is None else min(visible.until_ns, listing.halted_ns)
    return grid.floor_ns(listing.listed_ns), end_ns


def oldest_candles(
    source: MarketSource, grid: Grid, *, start_ns: int, end_ns: int, limit: int, visible: Visible, flat: bool
) -> list[Candle]:
    """Return the first ``limit`` candles that start in [start_ns, end_ns), ascending.

    Args:
        source: the market.
        grid: where bars start.
        start_ns: first start wanted.
        end_ns: starts before it.
        limit: rows at most.
        visible: the instant looked from.
        flat: add rows for bars without trades, where the source knows them to be empty.
    """
    low_ns, high_ns = span_of(source, grid, visible)
    cursor_ns, stop_ns = max(grid.ceil_ns(start_ns), low_ns), min(end_ns, high_ns)
    rows: list[Candle] = []
    while cursor_ns < stop_ns and len(rows) < limit:
        next_ns = grid.step_ns(cursor_ns, limit)
        rows += _rows(source, grid, cursor_ns, min(next_ns, stop_ns), visible, flat)
        cursor_ns = next_ns
    return rows[:limit]


def newest_candles(
    source: MarketSource, grid: Grid, *, start_ns: int, end_ns: int, limit: int, visible: Visible, flat: bool
) -> list[Candle]:
    """Return the last ``limit`` candles that start in [start_ns, end_ns), ascending; arguments as the oldest ones."""
    low_ns, high_ns = span_of(source, grid, visible)
    floor_ns, stop_ns = max(grid.ceil_ns(start_ns), low_ns), min(end_ns, high_ns)
    rows: list[Candle] = []
    while stop_ns > floor_ns and len(rows) < limit:
        cursor_ns = max(grid.step_ns(grid.floor_ns(stop_ns - 1), 1 - limit), floor_ns)
        rows = _rows(source, grid, cursor_ns, stop_ns, visible, flat) + rows
        stop_ns = cursor_ns
    return rows[-limit:]


def _rows(source: MarketSource, grid: Grid, start_ns: int, end_ns: int, visible: Visible, flat: bool) -> list[Candle]:
    rows = source.candles(grid, start_ns=start_ns, end_ns=end_ns, visible=visible)
    if not (flat and source.fills_empty):
        return rows
    return _filled(source, rows, grid.edges_ns(start_ns, end_ns)[:-1])


def _filled(source: MarketSource, rows: Sequence[Candle], starts_ns: Sequence[int]) -> list[Candle]:
    if len(rows) == len(starts_ns):
        return list(rows)
    by_start = {row.start_ns: row for row in rows}
    filled: list[Candle] = []
    price_units = _price_before(source, starts_ns[0])
    for start_ns in starts_ns:
        row = by_start.get(start_ns)
        if row is None and price_units is not None:
            row = flat_candle(start_ns, price_units)
        if row is not None:
            filled.append(row)
            price_units = row.close_units
    return filled


def _price_before(source: MarketSource, time_ns: int) -> int | None:
    position = source.position_at(time_ns)
    return source.trades(position - 1, position)[0].price_units if position else None
