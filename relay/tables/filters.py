"""Row filters of the tables. Bounds are aware times, so that Iceberg can prune files by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce

from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    Or,
)

from relay.protocol.ranges import Range

__all__ = [
    "bars_filter",
    "bars_of_filter",
    "coverage_filter",
    "exchanges_filter",
    "jobs_filter",
    "markets_filter",
    "stored_time",
    "tickers_filter",
    "ticks_filter",
    "union",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stored_time(time_ns: int) -> datetime:
    """Return the stored (microsecond) time of nanoseconds; bar starts lie on whole seconds."""
    return _EPOCH + timedelta(microseconds=time_ns // 1000)


def bars_filter(ticker: str, period_seconds: int, within: Range) -> BooleanExpression:
    """Bars of a ticker and period that start in a range."""
    return And(_series(ticker, period_seconds), _starts_in(within))


def bars_of_filter(tickers: Iterable[str], period_seconds: int, within: Range) -> BooleanExpression:
    """Bars of some tickers and one period that start in a range."""
    return And(And(tickers_filter(tickers), EqualTo("period_seconds", period_seconds)), _starts_in(within))


def coverage_filter(ticker: str, period_seconds: int, within: Range) -> BooleanExpression:
    """Coverage rows of a ticker and period that touch a range."""
    return And(
        _series(ticker, period_seconds),
        And(LessThan("covered_from", _text(within.end_ns + 999)), GreaterThan("covered_to", _text(within.start_ns))),
    )


def jobs_filter(job_ids: Sequence[str]) -> BooleanExpression:
    """Coverage rows of some jobs."""
    return In("job_id", set(job_ids))


def markets_filter(ticker: str, exchange: str) -> BooleanExpression:
    """Markets of a ticker or an exchange; empty text matches all."""
    wanted: BooleanExpression = AlwaysTrue()
    if ticker:
        wanted = And(wanted, EqualTo("ticker", ticker))
    return And(wanted, EqualTo("exchange", exchange)) if exchange else wanted


def tickers_filter(tickers: Iterable[str]) -> BooleanExpression:
    """Rows of some tickers."""
    return In("ticker", set(tickers))


def exchanges_filter(exchanges: Iterable[str]) -> BooleanExpression:
    """Markets of some exchanges."""
    return In("exchange", set(exchanges))


def ticks_filter(tickers: Iterable[str], within: Range) -> BooleanExpression:
    """Ticks of some tickers with an exchange time in a range; the microsecond column prunes, the exact one decides."""
    exact = And(GreaterThanOrEqual("time_ns", within.start_ns), LessThan("time_ns", within.end_ns))
    coarse = And(GreaterThanOrEqual("time", _text(within.start_ns)), LessThan("time", _text(within.end_ns + 999)))
    return And(tickers_filter(tickers), And(coarse, exact))


def union(filters: Iterable[BooleanExpression]) -> BooleanExpression:
    """Rows that match any of the filters.

    Put together as a balanced tree: a chain of a thousand would be deeper than Python's stack.
    """
    level = list(filters)
    while len(level) > 1:
        level = [reduce(Or, level[i : i + 2]) for i in range(0, len(level), 2)]
    return level[0] if level else AlwaysFalse()


def _series(ticker: str, period_seconds: int) -> BooleanExpression:
    return And(EqualTo("ticker", ticker), EqualTo("period_seconds", period_seconds))


def _starts_in(within: Range) -> BooleanExpression:
    return And(GreaterThanOrEqual("start", _text(within.start_ns)), LessThan("start", _text(within.end_ns + 999)))


def _text(time_ns: int) -> str:
    return stored_time(time_ns).isoformat()
