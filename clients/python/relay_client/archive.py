"""Flows that read ticks at rest."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from relay.protocol.codes import ErrorCode
from relay.protocol.ranges import Range
from relay.protocol.times import TimeUnit
from relay.protocol.v1 import request_pb2
from relay_client.arguments import whole
from relay_client.engine.completeness import KnownGap, fold_gaps, measure
from relay_client.flow import Flow, call
from relay_client.flows import checked_ticker
from relay_client.stored_ticks import StoredTicks
from relay_client.times import TimeLike, parse_range

if TYPE_CHECKING:
    import pyarrow as pa

    from relay_client.flows import ClientFlows

__all__ = ["read_ticks"]

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
    start_ns, end_ns = parse_range(start=start, end=end, last=last, unit=unit, now_ns=time.time_ns())
    span = Range(start_ns, end_ns)
    reply = yield from flows.located(timeout_s=timeout_s)
    return (yield from call(lambda: _read(flows, reply, parsed, span, limit)))


def _read(
    flows: ClientFlows, reply: request_pb2.ProbeReply, ticker: str, span: Range, limit: int | None
) -> StoredTicks:
    with flows.lake.reader(reply) as tables:
        # Gaps first: a hole that is filled between the two reads is then told as open, never as unexplained.
        gaps = fold_gaps(_said(tables.read_gaps(ticker)))
        rows = tables.read_ticks(ticker, within=span)
    numbers = sorted(rows["trade_number"].to_pylist())
    shown = rows if limit is None else rows.slice(0, limit)
    return StoredTicks(ticker, span, measure(ticker, span, numbers, gaps), shown)


def _said(gaps: pa.Table) -> Iterable[KnownGap]:
    names = ("state", "cause", "first_number", "last_number", "from_ns", "to_ns")
    for values in zip(*(gaps[name].to_pylist() for name in names), strict=True):
        yield KnownGap(*values)
