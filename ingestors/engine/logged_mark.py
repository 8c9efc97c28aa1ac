"""How far a ticker's trades are safe: every id up to the mark is acknowledged by the log or given up for good."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import NamedTuple

__all__ = ["NOT_LOGGED", "Logged", "LoggedMark"]

_TIMES_MAX = 65_536


class Logged(NamedTuple):
    """The mark as the next attempt is told of it.

    Attributes:
        trade_id: everything up to it is in the log or given up; empty while nothing is known.
        time_ns: exchange time of that trade, or of one before it; 0 where it is not known.
    """

    trade_id: str = ""
    time_ns: int = 0


NOT_LOGGED = Logged()


class LoggedMark:
    """The highest id below which nothing is open; the next attempt resumes after it.

    Args:
        base: everything up to here is settled already; None until the first trade says where it begins.
        time_ns: exchange time of that trade; 0 where it is not known.
    """

    def __init__(self, base: int | None = None, time_ns: int = 0) -> None:
        self._base, self._time_ns = base, time_ns
        self._times: deque[tuple[int, int]] = deque(maxlen=_TIMES_MAX)
        self._spans: list[list[int]] = []

    @property
    def number(self) -> int | None:
        """The mark; None while nothing is known."""
        return self._base

    @property
    def logged(self) -> Logged:
        """The mark and its time."""
        if self._base is None:
            return NOT_LOGGED
        while self._times and self._times[0][0] <= self._base:
            self._time_ns = max(self._time_ns, self._times.popleft()[1])
        return Logged(str(self._base), self._time_ns)

    def saw(self, number: int, time_ns: int) -> None:
        """Remember the time of a trade; ascending."""
        self._times.append((number, time_ns))

    def begin(self, base: int) -> None:
        """Say where the ids begin; only the first call counts."""
        if self._base is None:
            self._base = base
            self._absorb()

    def settle(self, first: int, last: int) -> None:
        """Ids first to last, inclusive, are acknowledged or given up; any order, also repeatedly."""
        if self._base is not None:
            if first == self._base + 1 and not self._spans:
                self._base = max(self._base, last)
                return
            first = max(first, self._base + 1)
        if last < first:
            return
        spans = self._spans
        if spans and spans[-1][0] <= first <= spans[-1][1] + 1:
            # The usual case: acknowledgements come in the order of the ids.
            spans[-1][1] = max(spans[-1][1], last)
        else:
            self._insert(first, last)
        self._absorb()

    def _insert(self, first: int, last: int) -> None:
        spans = self._spans
        low = bisect_left(spans, first - 1, key=lambda span: span[1])
        high = low
        while high < len(spans) and spans[high][0] <= last + 1:
            first, last = min(first, spans[high][0]), max(last, spans[high][1])
            high += 1
        spans[low:high] = [[first, last]]

    def _absorb(self) -> None:
        if self._base is not None:
            while self._spans and self._spans[0][0] <= self._base + 1:
                self._base = max(self._base, self._spans.pop(0)[1])
