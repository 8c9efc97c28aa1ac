"""Flows that read ticks at rest."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from relay.protocol.codes import ErrorCode
from relay.protocol.ranges import Range
from relay.protocol.times import TimeUnit
from relay_client.arguments import whole
from relay_client.engine.completeness import Completeness, KnownGap, fold_gaps, measure, past_of
from relay_client.flow import Flow, call
from relay_client.flows import checked_ticker
from relay_client.stored_ticks import StoredTicks
from relay_client.times import TimeLike, parse_range

if TYPE_CHECKING:
    import pyarrow as pa

    from relay.tables.reader import LakeTables
    from relay_client.flows import ClientFlows

__all__ = ["read_completeness", "read_ticks", "runs_of"]

_LIMIT_MAX = 2**40


def read_ticks(
    flows: ClientFlows,
    ticker: str,
    *,
    start: TimeLike | None,
    end: TimeLike | None,
    last: str | None,
    limit: int | None,
    unit: TimeUnit | None,
    timeout_s: float | None,
) -> Flow[StoredTicks]:
    """Read the ticks of a span, and how complete they are.

    Raises:
        SettingsError: an argument is wrong.
        RetryableError: relay, catalog or store are away.
    """
    flows.session.check_usable()
    parsed = checked_ticker(ticker)
    if limit is not None:
        limit = whole("limit", limit, low=1, high=_LIMIT_MAX, code=ErrorCode.INVALID_LIMIT)
    span = _span(start=start, end=end, last=last, unit=unit)
    reply = yield from flows.located(timeout_s=timeout_s)

    def read() -> StoredTicks:
        with flows.lake.reader(reply) as tables:
            gaps = _gaps(tables, parsed)
            rows = tables.read_ticks(parsed, within=span)
        report = measure(parsed, past_of(span, time.time_ns()), runs_of(rows["trade_number"]), gaps)
        return StoredTicks(parsed, span, report, rows if limit is None else rows.slice(0, limit))

    return (yield from call(read))


def read_completeness(
    flows: ClientFlows,
    ticker: str,
    *,
    start: TimeLike | None,
    end: TimeLike | None,
    last: str | None,
    unit: TimeUnit | None,
    timeout_s: float | None,
) -> Flow[Completeness]:
    """Read how complete the ticks of a span are: of the ticks nothing but their numbers.

    Where nothing is stored or known to be missing, the ticker is looked up: a misspelt one is no empty one.

    Raises:
        SettingsError: an argument is wrong.
        PeerError: UNKNOWN_SYMBOL, UNKNOWN_EXCHANGE: no exchange lists the ticker, and nothing is stored of it.
        RetryableError: relay, catalog or store are away.
    """
    flows.session.check_usable()
    parsed = checked_ticker(ticker)
    span = _span(start=start, end=end, last=last, unit=unit)
    reply = yield from flows.located(timeout_s=timeout_s)

    def read() -> tuple[Completeness, bool]:
        with flows.lake.reader(reply) as tables:
            gaps = _gaps(tables, parsed)
            numbers = tables.read_tick_numbers(parsed, within=span)
        past = past_of(span, time.time_ns())
        return measure(parsed, past, runs_of(numbers), gaps), bool(len(numbers) or gaps)

    report, is_known = yield from call(read)
    if not is_known:
        yield from flows.check_tickers([parsed], timeout_s=timeout_s)
    return report


def _span(*, start: TimeLike | None, end: TimeLike | None, last: str | None, unit: TimeUnit | None) -> Range:
    return Range(*parse_range(start=start, end=end, last=last, unit=unit, now_ns=time.time_ns()))


def _gaps(tables: LakeTables, ticker: str) -> list[KnownGap]:
    """Return the gaps as they stand.

    They are read before the ticks: a hole that is filled between the two reads is then told as open, never as
    unexplained.
    """
    return fold_gaps(_said(tables.read_gaps(ticker)))


def runs_of(numbers: pa.ChunkedArray) -> list[tuple[int, int]]:
    """Return first and last of each run of numbers without a hole, ascending."""
    import numpy as np

    ordered = np.sort(numbers.to_numpy())
    if not len(ordered):
        return []
    ends = np.flatnonzero(np.diff(ordered) != 1)
    firsts, lasts = ordered[np.append(0, ends + 1)], ordered[np.append(ends, len(ordered) - 1)]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def _said(gaps: pa.Table) -> Iterable[KnownGap]:
    names = ("state", "cause", "first_number", "last_number", "from_ns", "to_ns")
    for values in zip(*(gaps[name].to_pylist() for name in names), strict=True):
        yield KnownGap(*values)
