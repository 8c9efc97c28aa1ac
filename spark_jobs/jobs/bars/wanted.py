"""Which periods a ticker's bars are made for: those of the settings, and those asked for, while they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from relay.protocol.periods import WANTED_PERIODS_MAX

__all__ = ["WantedPeriods"]


class WantedPeriods:
    """Leases on periods by ticker.

    Args:
        always: periods of every ticker, seconds.
        clock: monotonic seconds.
        asked_max: periods of one ticker that are asked for; of more those stay that were wanted before.
    """

    def __init__(
        self,
        always: Iterable[int],
        *,
        clock: Callable[[], float] = time.monotonic,
        asked_max: int = WANTED_PERIODS_MAX,
    ) -> None:
        self._always = frozenset(always)
        self._clock, self._asked_max = clock, asked_max
        self._refused: dict[str, int] = {}
        self._until: dict[str, dict[int, float]] = {}
        self._changed: set[str] = set()

    def of(self, ticker: str) -> frozenset[int]:
        """Return the periods of a ticker."""
        return self._always | frozenset(self._until.get(ticker, ()))

    @property
    def refused_count(self) -> int:
        """How many periods are asked for over the bound."""
        return sum(self._refused.values())

    def tell(self, ticker: str, periods: Iterable[int], *, lease_ms: int) -> None:
        """Take all periods that are asked for now; one that is left out ends."""
        until = self._clock() + lease_ms / 1000
        before = self._until.get(ticker, {})
        asked = dict.fromkeys(periods, until)
        kept = sorted(asked, key=lambda period: period not in before)[: self._asked_max]
        after = dict.fromkeys(kept, until)
        self._refused.pop(ticker, None)
        if len(after) < len(asked):
            self._refused[ticker] = len(asked) - len(after)
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
