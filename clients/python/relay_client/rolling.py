"""Bars of a longer period out of shorter ones, on any origin: by time, and only where every short one is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from relay.errors import PeerError, SettingsError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS, format_period, origin_seconds, parse_period
from relay.protocol.ranges import Range, intersect, subtract, union
from relay_client.outcome import RequestStatus

if TYPE_CHECKING:
    import pyarrow as pa

    from relay_client.history import History

__all__ = ["Origin", "are_traded", "roll_up"]

Origin = str | int | timedelta


def roll_up(history: History, period: str | int, origin: Origin | None) -> History:
    """Return the bars of a longer period that the bars of a history cover whole.

    Args:
        history: short bars with what is known of them.
        period: a multiple of the history's period.
        origin: how far its grid is from the usual one, less than the period and a multiple of the history's period.

    Raises:
        SettingsError: INVALID_PERIOD: period or origin are not allowed.
    """
    period_seconds = _period(period)
    child_seconds = history.query.period_seconds
    if period_seconds % child_seconds or period_seconds == child_seconds:
        raise SettingsError(
            f"expected a period that is a multiple of {format_period(child_seconds)}, got {period!r}; "
            "fetch bars of a period that divides it",
            code=ErrorCode.INVALID_PERIOD,
        )
    grid_ns = (origin_seconds(period_seconds) + _offset(origin, period_seconds, child_seconds)) * NANOSECONDS
    period_ns = period_seconds * NANOSECONDS
    wanted = _grid(history.query.start_ns, history.query.end_ns, grid_ns, period_ns)
    whole = [_grid(r.start_ns, r.end_ns, grid_ns, period_ns) for r in intersect(wanted, union(history.coverage))]
    whole = [r for r in whole if r]
    bars = _rolled(history.to_arrow(), whole, grid_ns, period_seconds)
    missing = tuple(subtract(wanted, whole)) if wanted else history.missing
    status = RequestStatus.OK if len(bars) else RequestStatus.NOT_FOUND
    return replace(
        history,
        query=replace(history.query, period_seconds=period_seconds, limit=None),
        status=RequestStatus.PARTIAL if missing else status,
        coverage=tuple(whole),
        missing=missing,
        _bars=bars,
    )


def are_traded(bars: pa.Table) -> pa.ChunkedArray:
    """Return which bars have prices of trades; the rest repeat the close before, as exchanges fill empty buckets.

    Args:
        bars: with the columns ``trades`` and ``volume``; where either says that something was traded, it was.
    """
    import pyarrow.compute as pc

    counted = pc.fill_null(pc.greater(bars["trades"], 0), False)
    return pc.or_(counted, pc.fill_null(pc.greater(bars["volume"], 0), False))


def _period(period: str | int) -> int:
    try:
        return parse_period(period)
    except PeerError as error:
        raise SettingsError(str(error), code=error.code) from error


def _offset(origin: Origin | None, period_seconds: int, child_seconds: int) -> int:
    """Return the origin in seconds."""
    if origin is None or origin == 0:
        return 0
    offset: float = origin.total_seconds() if isinstance(origin, timedelta) else _period(origin)
    if not (0 <= offset < period_seconds) or offset % child_seconds:
        raise SettingsError(
            f"expected an origin below {format_period(period_seconds)} and a multiple of "
            f"{format_period(child_seconds)}, got {origin!r}",
            code=ErrorCode.INVALID_PERIOD,
        )
    return int(offset)


def _grid(start_ns: int, end_ns: int, grid_ns: int, period_ns: int) -> Range:
    """Return the whole buckets inside a range; an empty range for none."""
    first = -((grid_ns - start_ns) // period_ns) * period_ns + grid_ns
    last = (end_ns - grid_ns) // period_ns * period_ns + grid_ns
    return Range(first, max(first, last))


def _rolled(bars: pa.Table, whole: Sequence[Range], grid_ns: int, period_seconds: int) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    schema, starts_us = bars.schema, bars["start"].cast(pa.int64())
    inside = _inside(starts_us, whole)
    bars, starts_us = bars.filter(inside), starts_us.filter(inside)
    period_us, grid_us = period_seconds * 1_000_000, grid_ns // 1_000
    # Nothing lies before 1970 minus the grid, so truncation is the floor.
    bucket = pc.add(pc.multiply(pc.divide(pc.subtract(starts_us, grid_us), period_us), period_us), grid_us)
    telling = _telling(bars, bucket)
    prices = {
        "row": pa.array(range(bars.num_rows), pa.int64()),
        "told_high": bars["high"],
        "told_low": bars["low"],
    }
    for name, values in prices.items():
        bars = bars.append_column(name, pc.if_else(telling, values, None))
    strict = pc.ScalarAggregateOptions(skip_nulls=False, min_count=0)
    grouped = (
        bars.append_column("bucket", bucket)
        .group_by("bucket", use_threads=False)
        .aggregate(
            [
                ("row", "min"),
                ("row", "max"),
                ("told_high", "max"),
                ("told_low", "min"),
                *((name, "sum", strict) for name in ("volume", "quote_volume", "buy_volume", "sell_volume", "trades")),
                ("incomplete", "any"),
            ]
        )
    )
    first, last = bars.take(grouped["row_min"]), bars.take(grouped["row_max"])
    found = {name.rpartition("_")[0]: grouped[name] for name in grouped.column_names if "_" in name}
    count = grouped.num_rows
    columns = {
        **found,
        "open": first["open"],
        "high": grouped["told_high_max"],
        "low": grouped["told_low_min"],
        "close": last["close"],
        "first_trade_id": first["first_trade_id"],
        "last_trade_id": last["last_trade_id"],
        "ticker": pa.repeat(bars["ticker"][0] if count else "", count),
        "period_seconds": pa.repeat(period_seconds, count),
        "start": grouped["bucket"],
        "source": pa.repeat("ROLLUP", count),
        "is_final": pa.repeat(pa.scalar(True), count),
        "revision": pa.repeat(0, count),
    }
    return pa.table({field.name: columns[field.name] for field in schema}).cast(schema)


def _telling(bars: pa.Table, bucket: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which bars make the prices of their bucket: those with trades, or all where none has any."""
    import pyarrow.compute as pc

    traded = are_traded(bars)
    return pc.or_(traded, pc.invert(pc.is_in(bucket, value_set=bucket.filter(traded))))


def _inside(starts_us: pa.ChunkedArray, whole: Iterable[Range]) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pa.chunked_array([pa.repeat(pa.scalar(False), len(starts_us))])
    for part in whole:
        within = pc.and_(pc.greater_equal(starts_us, part.start_ns // 1_000), pc.less(starts_us, part.end_ns // 1_000))
        found = pc.or_(found, within)
    return found
