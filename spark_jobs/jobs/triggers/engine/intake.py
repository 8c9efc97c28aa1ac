"""Where a source's events wait for its time mark: sorted, each once, late ones refused."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from spark_jobs.jobs.bars.engine.trade_numbers import TradeNumbers
from spark_jobs.jobs.triggers.engine.values import Bar, MatcherRules, Tick

__all__ = ["Intake"]

E = TypeVar("E", Tick, Bar)


class Intake(msgspec.Struct, Generic[E], omit_defaults=True):
    """State of one source's order.

    Attributes:
        waiting: events that are not evaluated yet, by number.
        evaluated: numbers of those that are.
        marked_ns: before it, by the source's own mark less the lateness, everything has come.
        frontier_ns: before it everything is evaluated; ahead of ``marked_ns`` only when too much waited.
    """

    waiting: dict[int, E] = msgspec.field(default_factory=dict)
    evaluated: TradeNumbers = msgspec.field(default_factory=TradeNumbers)
    marked_ns: int = 0
    frontier_ns: int = 0

    def take(self, number: int, event: E, prefer: Callable[[E, E], E], counts: Counter[str]) -> int:
        """Let an event wait, unless it is late or a repeat (counted); return how many wait."""
        waiting = self.waiting
        if event.time_ns < self.frontier_ns:
            counts["repeats" if self._is_evaluated(number) else "late"] += 1
        elif number in waiting:
            waiting[number] = prefer(waiting[number], event)
            counts["repeats"] += 1
        elif self._is_evaluated(number):
            counts["repeats"] += 1
        else:
            waiting[number] = event
        return len(waiting)

    def mark(self, reached_ns: int, lateness_ns: int) -> bool:
        """Take a mark; return whether anything has become evaluable by it."""
        marked_ns = reached_ns - lateness_ns
        if marked_ns <= self.marked_ns:
            return False
        self.marked_ns = marked_ns
        if marked_ns <= self.frontier_ns:
            return False
        self.frontier_ns = marked_ns
        return True

    def force(self) -> None:
        """Go on without a mark: about the older quarter of what waits is evaluated now."""
        times = sorted(event.time_ns for event in self.waiting.values())
        self.frontier_ns = max(self.frontier_ns, times[len(times) // 4] + 1)

    def release(self, rules: MatcherRules) -> list[E]:
        """Return what is before the frontier, in order."""
        waiting, frontier_ns = self.waiting, self.frontier_ns
        ready = [(event, number) for number, event in waiting.items() if event.time_ns < frontier_ns]
        ready.sort()
        for _, number in ready:
            del waiting[number]
            self.evaluated.take(number, spans_max=rules.spans_max)
        return [event for event, _ in ready]

    def _is_evaluated(self, number: int) -> bool:
        firsts, lasts = self.evaluated.firsts, self.evaluated.lasts
        if not lasts or number > lasts[-1]:
            return False
        place = bisect_right(firsts, number)
        return place > 0 and number <= lasts[place - 1]
