"""Finds a market's first bar at an exchange that answers by windows only: days first, then hours, then minutes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ingestors.engine.bars_reader import BarsWanted
from ingestors.engine.values import BarsPage
from relay.protocol.periods import NANOSECONDS, align_down_ns
from relay.protocol.ranges import Range

__all__ = ["ListingSearch"]

_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60

Fetch = Callable[[BarsWanted], Awaitable[BarsPage]]


class ListingSearch:
    """Remembers of each market when it was first seen, so that it is searched for once.

    Args:
        window_rows_max: buckets that one request may span.
    """

    def __init__(self, *, window_rows_max: int) -> None:
        self._window_rows_max = window_rows_max
        self._listed_ns: dict[str, int] = {}
        self._seen_ns: dict[str, int] = {}

    def known_ns(self, symbol: str) -> int | None:
        """Return a market's first bar when it has been found, else None."""
        return self._listed_ns.get(symbol)

    async def find(self, symbol: str, fetch: Fetch, *, before_ns: int, now: Callable[[], Awaitable[int]]) -> int | None:
        """Return the first bar's time after ``before_ns``, or that of an earlier one when there is any near before it.

        Args:
            symbol: native symbol.
            fetch: asks for one window of bars.
            before_ns: where the empty stretch begins.
            now: asks the exchange's clock.
        """
        listed_ns, seen_ns = self._listed_ns.get(symbol), self._seen_ns.get(symbol)
        if listed_ns is not None:
            return listed_ns
        if seen_ns is not None and seen_ns <= before_ns:
            return seen_ns
        window_ns = self._window_rows_max * _DAY * NANOSECONDS
        cursor_ns = align_down_ns(before_ns, _DAY)
        earlier_ns = await _first_ns(fetch, _DAY, Range(cursor_ns - window_ns, cursor_ns))
        if earlier_ns is not None:
            self._seen_ns[symbol] = earlier_ns
            return earlier_ns
        now_ns = await now()
        while cursor_ns < now_ns:
            first_ns = await _first_ns(fetch, _DAY, Range(cursor_ns, cursor_ns + window_ns))
            if first_ns is not None:
                self._listed_ns[symbol] = await _refine(fetch, first_ns)
                return self._listed_ns[symbol]
            cursor_ns += window_ns
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
