"""Finds a market's first bar at an exchange that answers by windows only: days first, then hours, then minutes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ingestors.engine.bars_reader import BarsWanted
from ingestors.engine.values import BarsPage
from relay.protocol.periods import NANOSECONDS, align_down_ns
from relay.protocol.ranges import Range

__all__ = ["find_first_bar_ns"]

_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60

Fetch = Callable[[BarsWanted], Awaitable[BarsPage]]


async def find_first_bar_ns(fetch: Fetch, *, before_ns: int, now_ns: int, window_rows_max: int) -> int | None:
    """Return the first bar's time after ``before_ns``, or that of an earlier one when there is any near before it.

    Args:
        fetch: asks for one window of bars.
        before_ns: where the empty stretch begins.
        now_ns: the exchange's clock.
        window_rows_max: buckets that one request may span.
    """
    day_ns = _DAY * NANOSECONDS
    today_ns = align_down_ns(before_ns, _DAY)
    earlier = await _first_ns(fetch, _DAY, Range(today_ns - window_rows_max * day_ns, today_ns))
    if earlier is not None:
        return earlier
    cursor_ns = today_ns
    while cursor_ns < now_ns:
        end_ns = cursor_ns + window_rows_max * day_ns
        first_ns = await _first_ns(fetch, _DAY, Range(cursor_ns, end_ns))
        if first_ns is not None:
            return await _refine(fetch, first_ns)
        cursor_ns = end_ns
    return None


async def _refine(fetch: Fetch, first_ns: int) -> int:
    for outer, inner in ((_DAY, _HOUR), (_HOUR, _MINUTE)):
        finer_ns = await _first_ns(fetch, inner, Range(first_ns, first_ns + outer * NANOSECONDS))
        first_ns = first_ns if finer_ns is None else finer_ns
    return first_ns


async def _first_ns(fetch: Fetch, period_seconds: int, window: Range) -> int | None:
    rows = (window.end_ns - window.start_ns) // (period_seconds * NANOSECONDS)
    for _ in range(2):
        # An empty answer is believed only when it comes twice.
        page = await fetch(BarsWanted(period_seconds, window, rows))
        inside = [row.start_ns for row in page.rows if window.start_ns <= row.start_ns < window.end_ns]
        if inside:
            return min(inside)
    return None
