"""Bars made from ticks, one log record each → rows of ``market.ohlc`` and of ``market.tick_bars``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from relay.errors import PeerError
from relay.protocol.v1 import market_pb2
from relay.tables.schema import OHLC_COLUMNS, STORED_TIME, TICK_BARS_COLUMNS
from spark_jobs.jobs.history.bar_columns import bars_table
from spark_jobs.jobs.records import Record

__all__ = ["WRONG_VALUE", "tick_bars_of", "tick_bars_table"]

WRONG_VALUE = (ValueError, ArithmeticError, TypeError, PeerError, pa.ArrowException)
"""What a record raises by a value that cannot be, or that does not fit its column."""

_Found = Sequence[tuple[market_pb2.OHLC, Record]]


def tick_bars_of(found: _Found) -> tuple[pa.Table, list[tuple[Record, Exception]]]:
    """Return the bars of records in the columns of ``market.ohlc``, and the records that are no good, each with why.

    Args:
        found: bars that have passed ``check_tick_bar``, and their records.

    Cost: all at once, by column. Only when one of them is no good each goes by itself, so that it costs itself only.
    """
    if not found:
        return OHLC_COLUMNS.empty_table(), []
    try:
        return _bars(found), []
    except WRONG_VALUE as error:
        if len(found) == 1:
            return OHLC_COLUMNS.empty_table(), [(found[0][1], error)]
    halves = [tick_bars_of(half) for half in (found[: len(found) // 2], found[len(found) // 2 :])]
    return pa.concat_tables([bars for bars, _ in halves]), [one for _, wrong in halves for one in wrong]


def tick_bars_table(bars: pa.Table) -> pa.Table:
    """Return bars made from ticks in the columns of ``market.tick_bars``."""
    named = bars.rename_columns(["made_at_ns" if name == "fetched_at_ns" else name for name in bars.column_names])
    return named.select(TICK_BARS_COLUMNS.names).cast(TICK_BARS_COLUMNS)


def _bars(found: _Found) -> pa.Table:
    rows = [bar for bar, _ in found]
    return bars_table(
        rows,
        ticker=[bar.ticker for bar in rows],
        period_seconds=[bar.period_seconds for bar in rows],
        start=pa.array([bar.timestamp // 1000 for bar in rows], pa.int64()).cast(STORED_TIME),
        fetched_at_ns=[bar.stamp.published_at for bar in rows],
        log_partition=[record.partition for _, record in found],
        log_offset=[record.offset for _, record in found],
        is_fetched=[False] * len(rows),
    )
