"""What a well-formed batch, or bar made from ticks, must say to be believed: its own market, real times, bars that can
be bars.

Everything raises ValueError (or PeerError) with what was expected and what it was; the record goes to quarantine whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from relay.protocol.envelope import LOG_RECORD_ROWS_MAX
from relay.protocol.periods import NANOSECONDS, align_down_ns, check_period, origin_seconds
from relay.protocol.ranges import Range, from_wire
from relay.protocol.tickers import parse_ticker
from relay.protocol.times import TIME_NS_MAX, TIME_NS_MIN, format_ns
from relay.protocol.v1 import market_pb2

__all__ = ["check_batch", "check_market", "check_prices", "check_tick_bar", "check_volumes", "checked_starts_ns"]

_REVISION_MAX = 2**31 - 1
_CLOCK_SLACK_NS = 300 * NANOSECONDS
"""Clocks of exchange, ingestor and this job may differ by so much."""


def check_batch(batch: market_pb2.OHLCBatch, key: bytes | None, *, seen_at_us: int) -> None:
    """Check all but the rows' numbers.

    Args:
        batch: as decoded.
        key: of its log record; the ticker, so that one market stays in order.
        seen_at_us: the job's clock, microseconds since the epoch.
    """
    if not batch.job_id:
        raise ValueError("expected a job_id, got none")
    _check_series(batch.ticker, batch.period_seconds, key)
    if len(batch.rows) > LOG_RECORD_ROWS_MAX:
        raise ValueError(f"expected at most {LOG_RECORD_ROWS_MAX} bars in a batch, got {len(batch.rows)}")
    named = {(row.ticker, row.period_seconds) for row in batch.rows}
    others = {ticker for ticker, _ in named} - {"", batch.ticker}
    other_periods = {period_seconds for _, period_seconds in named} - {0, batch.period_seconds}
    if others or other_periods:
        raise ValueError(f"bars of {others or batch.ticker}, {other_periods} s lie in a batch of {batch.ticker}")
    _check_times(batch, seen_at_us=seen_at_us)


def check_tick_bar(bar: market_pb2.OHLC, key: bytes | None, *, seen_at_us: int) -> None:
    """Check all but prices and volumes of a bar that lies in the log by itself, which only bars made from ticks do.

    Args:
        bar: as decoded.
        key: of its log record; the ticker.
        seen_at_us: the job's clock, microseconds since the epoch.
    """
    _check_series(bar.ticker, bar.period_seconds, key)
    if bar.source not in (market_pb2.OHLC.TICKS, market_pb2.OHLC.ROLLUP):
        raise ValueError(f"expected source TICKS or ROLLUP, got {bar.source}: what was fetched comes in a batch")
    if not bar.is_final:
        raise ValueError("expected a final bar, got a running one: those are published, never stored")
    if bar.revision > _REVISION_MAX:
        raise ValueError(f"expected a revision of at most {_REVISION_MAX}, got {bar.revision}")
    made_ns, end_ns = bar.stamp.published_at, bar.timestamp + bar.period_seconds * NANOSECONDS
    if not TIME_NS_MIN <= made_ns <= seen_at_us * 1000 + _CLOCK_SLACK_NS:
        raise ValueError(f"expected published_at between 1985 and the present, got {made_ns}; check the maker's clock")
    if not TIME_NS_MIN <= bar.timestamp < end_ns <= TIME_NS_MAX:
        raise ValueError(f"expected a bar start between 1985 and 2100, got {bar.timestamp}")
    if align_down_ns(bar.timestamp, bar.period_seconds) != bar.timestamp:
        raise ValueError(f"bar start {bar.timestamp} is not on the grid of {bar.period_seconds} s")
    if end_ns > made_ns + _CLOCK_SLACK_NS:
        raise ValueError(f"the bar ends at {format_ns(end_ns)}, later than it was made ({format_ns(made_ns)})")


def check_market(market: market_pb2.Market, *, seen_at_us: int) -> None:
    """Check that a market is one of its exchange, and that it was not listed in the future.

    A row stamped far ahead would stand before every later one of its market until then.

    Args:
        market: as decoded.
        seen_at_us: the job's clock, microseconds since the epoch.
    """
    if parse_ticker(market.market_id).exchange != market.exchange_id:
        raise ValueError(f"expected the exchange of {market.market_id}, got {market.exchange_id[:80]!r}")
    if market.updated_at > seen_at_us * 1000 + _CLOCK_SLACK_NS:
        raise ValueError(f"expected updated_at up to the present, got {market.updated_at}; check the ingestor's clock")


def _check_series(ticker: str, period_seconds: int, key: bytes | None) -> None:
    if str(parse_ticker(ticker)) != ticker:
        raise ValueError(f"expected a normal ticker, got {ticker[:80]!r}")
    if key != ticker.encode():
        raise ValueError(f"expected the record's key to be {ticker}, got {(key or b'')[:80]!r}")
    check_period(period_seconds)


def _check_times(batch: market_pb2.OHLCBatch, *, seen_at_us: int) -> None:
    latest_ns = seen_at_us * 1000 + _CLOCK_SLACK_NS
    if not TIME_NS_MIN <= batch.fetched_at <= latest_ns:
        raise ValueError(
            f"expected fetched_at between 1985 and the present, got {batch.fetched_at}; check the ingestor's clock"
        )
    for covered in batch.covered:
        if not TIME_NS_MIN <= covered.start < covered.end <= TIME_NS_MAX:
            raise ValueError(f"expected a covered range between 1985 and 2100, got [{covered.start}, {covered.end})")
        if covered.end > batch.fetched_at + _CLOCK_SLACK_NS:
            raise ValueError(
                f"covered ends at {format_ns(covered.end)}, later than it was fetched ({format_ns(batch.fetched_at)}): "
                "nobody knows the future"
            )


def checked_starts_ns(batch: market_pb2.OHLCBatch, rows: Sequence[market_pb2.OHLC]) -> npt.NDArray[np.int64]:
    """Return the bars' starts, each on the grid and in what the batch covers."""
    wanted = [row.timestamp for row in rows]
    if min(wanted) < TIME_NS_MIN or max(wanted) > TIME_NS_MAX:
        raise ValueError(f"expected bar starts between 1985 and 2100, got {min(wanted)} and {max(wanted)}")
    starts = np.array(wanted, dtype=np.int64)
    period_ns = batch.period_seconds * NANOSECONDS
    steps = (starts - origin_seconds(batch.period_seconds) * NANOSECONDS) % period_ns
    if steps.any():
        raise ValueError(f"bar start {wanted[int(steps.argmax())]} is not on the grid of {batch.period_seconds} s")
    # Without covered ranges the batch proves nothing, but its bars must still be those that it was asked for.
    inside = from_wire(batch.covered) or [Range(batch.start_time, batch.end_time)]
    begins = np.array([r.start_ns for r in inside], dtype=np.int64)
    ends = np.array([r.end_ns for r in inside], dtype=np.int64)
    index = np.maximum(np.searchsorted(begins, starts, side="right") - 1, 0)
    is_outside = (starts < begins[index]) | (starts + period_ns > ends[index])
    if is_outside.any():
        raise ValueError(f"bar start {wanted[int(is_outside.argmax())]} lies outside of what its batch covers")
    return starts


def check_prices(rows: Sequence[market_pb2.OHLC], *units: Sequence[int]) -> None:
    """Check open, high, low and close, each row by itself: its four prices share one scale."""
    opens, highs, lows, closes = (np.array(column, dtype=np.int64) for column in units)
    is_wrong = (lows <= 0) | (lows > np.minimum(opens, closes)) | (highs < np.maximum(opens, closes))
    if is_wrong.any():
        row = rows[int(is_wrong.argmax())]
        raise ValueError(
            "expected 0 < low <= open, close <= high; got "
            f"open {row.open}, high {row.high}, low {row.low}, close {row.close} (units) at {row.timestamp}"
        )


def check_volumes(volume: pa.Array, *others: pa.Array) -> None:
    """Check that every bar has a volume, and that none is negative."""
    if volume.null_count:
        raise ValueError("expected a volume in every bar, got an empty text")
    for column in (volume, *others):
        least = pc.min(column).as_py()
        if least is not None and least < 0:
            raise ValueError(f"expected volumes of zero and more, got {least}")
