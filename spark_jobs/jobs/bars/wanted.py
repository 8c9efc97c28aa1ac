"""Which periods a ticker's bars are made for: those of the settings, and those asked for, while they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

__all__ = ["WantedPeriods"]


class WantedPeriods:
    """Leases on periods by ticker.

    Args:
        always: periods of every ticker, seconds.
        clock: monotonic seconds.
    """

    def __init__(self, always: Iterable[int], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._always = frozenset(always)
        self._clock = clock
        self._until: dict[str, dict[int, float]] = {}
        self._changed: set[str] = set()

    def of(self, ticker: str) -> frozenset[int]:
        """Return the periods of a ticker."""
        return self._always | frozenset(self._until.get(ticker, ()))

    def tell(self, ticker: str, periods: Iterable[int], *, lease_ms: int) -> None:
        """Take all periods that are asked for now; one that is left out ends."""
        until = self._clock() + lease_ms / 1000
        before = self._until.get(ticker, {})
        after = dict.fromkeys(periods, until)
        if set(before) != set(after):
            self._changed.add(ticker)
        if after:
            self._until[ticker] = after
        else:
            self._until.pop(ticker, None)

    def changed(self) -> set[str]:
        """Return the tickers whose periods are others than at the last call."""
        now = self._clock()
        for ticker, leases in list(self._until.items()):
            kept = {period: until for period, until in leases.items() if until > now}
            if len(kept) != len(leases):
                self.tell(ticker, (), lease_ms=0)
                if kept:
                    self._until[ticker] = kept
                self._changed.add(ticker)
        changed, self._changed = self._changed, set()
        return changed
