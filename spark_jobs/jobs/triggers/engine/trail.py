"""When a source's events were, kept once for all triggers of several sources that have to know which event was next."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Protocol

from spark_jobs.jobs.triggers.engine.values import Item, Outcome

__all__ = ["Follower", "Trail"]


class Follower(Protocol):
    """A trigger that follows a trail.

    Attributes:
        trigger_id: of the trigger.
    """

    trigger_id: str

    @property
    def frontier_ns(self) -> int:
        """Before it nothing is looked up any more."""

    def force(self, frontier_ns: int, out: list[Outcome]) -> None:
        """Go on up to a time without the sources that have not come so far."""


class Trail:
    """Times of one source's evaluated events, ascending: from where its slowest follower is, up to now.

    A trigger of several sources waits for the slowest with its hits alone; what lies between two of them it looks up.
    So an event costs the same however many triggers it may break.

    Args:
        times: of the state; taken over and changed.
        key: kind, ticker and, of bars, period: where the source's events sort among others of their time.
        times_max: over it the followers go on past the oldest quarter.
        counts: takes counters.
    """

    def __init__(self, times: list[int], key: tuple[int | str, ...], *, times_max: int, counts: Counter[str]) -> None:
        self._times, self._key = times, key
        self._times_max, self._counts = times_max, counts
        self._followers: dict[str, Follower] = {}

    def add(self, follower: Follower) -> None:
        """Keep from now on what a trigger may look up."""
        self._followers[follower.trigger_id] = follower

    def remove(self, follower: Follower) -> None:
        """Keep no longer what only this trigger may look up."""
        if self._followers.pop(follower.trigger_id, None) is not None:
            self.trim()

    def note(self, time_ns: int, out: list[Outcome]) -> None:
        """Take an event; times do not fall."""
        if not self._followers:
            return
        self._times.append(time_ns)
        if len(self._times) > self._times_max:
            # No further than this event: others of its time may not have come yet.
            limit_ns = min(self._times[len(self._times) // 4] + 1, time_ns)
            for follower in [f for f in self._followers.values() if f.frontier_ns < limit_ns]:
                self._counts["forced"] += 1
                follower.force(limit_ns, out)
            self.trim()

    def trim(self) -> None:
        """Forget what no follower looks up any more."""
        slowest_ns = min((follower.frontier_ns for follower in self._followers.values()), default=None)
        place = len(self._times) if slowest_ns is None else bisect_left(self._times, slowest_ns)
        del self._times[:place]

    def first_between(self, after: Item | int, before: Item | int, count: int) -> int | None:
        """Return the time of the first event after one event and before another; None when there is none.

        Args:
            after: an event, or a time from which on events count.
            before: an event, or a time from which on they do not.
            count: how many events of the source were evaluated; the last of them is the trail's last.
        """
        place = self._place(after, count, is_behind=True)
        return self._times[place] if place < self._place(before, count, is_behind=False) else None

    def _place(self, limit: Item | int, count: int, *, is_behind: bool) -> int:
        """Return where the first event is that is not before a limit, or that is behind it."""
        times = self._times
        if isinstance(limit, int):
            return bisect_left(times, limit)
        theirs = limit[1 : 1 + len(self._key)]
        if theirs == self._key:
            return min(max(len(times) - 1 - (count - limit.ordinal) + is_behind, 0), len(times))
        return bisect_left(times, limit.time_ns) if self._key > theirs else bisect_right(times, limit.time_ns)
