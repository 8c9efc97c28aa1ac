"""The begun matches of one trigger, and how an event moves them on.

::

    place k         waits for stage k; all in it see the same events, so they leave it together, the oldest first
    place n         (n stages) waits for the negations at the end

A match that begins never overtakes one that began before it, so every place is sorted by beginning and its windows end
in that order too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from relay.engine.pattern_values import CompiledPattern, Source, Stage, Tail
from spark_jobs.jobs.triggers.engine.values import Item, Matched, Outcome

__all__ = ["Complete", "Partial", "PartialBook", "PartialState"]

Complete = tuple[int, list[Matched]]
"""When a match was completed, and its events."""
Marked = Callable[[Source], int]
"""Before which time everything of a source has come."""


class Partial(msgspec.Struct, omit_defaults=True):
    """A begun match.

    Attributes:
        matched: its events.
        entered: how many events the trigger had seen when the last of them came.
    """

    matched: list[Matched]
    entered: int


class PartialState(msgspec.Struct, omit_defaults=True):
    """Begun matches by place, and how many events the trigger has seen."""

    places: list[list[Partial]]
    seen: int = 0


class PartialBook:
    """Moves begun matches.

    Args:
        pattern: what is looked for.
        state: of one trigger; taken over and changed.
        partials_max: over it the one that began first is dropped (counted).
        marked: how far sources are known.
        counts: takes counters.
    """

    def __init__(
        self,
        pattern: CompiledPattern,
        state: PartialState,
        *,
        partials_max: int,
        marked: Marked,
        counts: Counter[str],
    ) -> None:
        self.state = state
        self._stages, self._tail, self._pattern = pattern.stages, pattern.tail, pattern
        self._last = len(pattern.stages)
        self._partials_max, self._marked, self._counts = partials_max, marked, counts
        self._claims = self._tail is not None or any(stage.absent for stage in self._stages)
        self._is_blind = False

    def __len__(self) -> int:
        return sum(map(len, self.state.places))

    def step(self, item: Item, mask: int) -> list[Complete]:
        """Take an event; return the matches that it completes, those that began first in front."""
        self.state.seen += 1
        self._drop_overdue(item.time_ns)
        done: list[Complete] = []
        if self._tail is not None:
            self._guard_end(self._tail, item, mask, done)
        for place in range(self._last - 1, 0, -1):
            if self.state.places[place]:
                self._move(place, item, mask, done)
        if mask & self._stages[0].signals:
            self._enter(1, [Matched(self._stages[0].step, item)], done, item)
        return self._skipped(done)

    def pass_time(self, time_ns: int, *, before_ns: int = 0) -> list[Complete]:
        """Return the matches whose window at the end is over at a time, in order.

        Args:
            time_ns: everything before it is evaluated.
            before_ns: nothing that completes at or after this counts; 0 for no such bound.
        """
        tail = self._tail
        if tail is None or not tail.not_between:
            return []
        done: list[Complete] = []
        # Looked up each time: a match may end others of the same place.
        while waiting := self.state.places[self._last]:
            end_ns = self._end_ns(tail, waiting[0])
            if end_ns is None or end_ns > time_ns or (before_ns and end_ns >= before_ns):
                break
            partial = waiting.pop(0)
            if self._is_known(tail.absent, end_ns):
                done += self._skipped([(end_ns, partial.matched)])
        return done

    @property
    def held(self) -> int:
        """How many matches are begun."""
        return len(self)

    def halve(self, out: list[Outcome]) -> None:  # noqa: ARG002
        """Drop the older half."""
        for _ in range((len(self) + 1) // 2):
            self._drop_oldest()

    @contextmanager
    def blind(self) -> Iterator[None]:
        """While this lasts events are left out: nothing is known not to have happened, nor later of what began then."""
        self._is_blind = True
        yield
        self._is_blind = False
        if self._claims:
            self._counts["unsure"] += len(self)
            self.state.places[:] = [[] for _ in self.state.places]

    def _move(self, place: int, item: Item, mask: int, done: list[Complete]) -> None:
        places, stage = self.state.places, self._stages[place]
        moving, is_hit = places[place], bool(mask & stage.signals)
        if mask & stage.not_next:
            moving = places[place] = [p for p in moving if p.entered != self.state.seen - 1]
        if is_hit or stage.is_next or mask & stage.not_between:
            places[place] = []
        if is_hit and moving and self._is_known(stage.absent, item.time_ns + 1):
            for partial in moving:
                self._enter(place + 1, [*partial.matched, Matched(stage.step, item)], done, item)

    def _enter(self, place: int, matched: list[Matched], done: list[Complete], item: Item) -> None:
        if place == self._last and self._tail is None:
            done.append((item.time_ns, matched))
            return
        self.state.places[place].append(Partial(matched, self.state.seen))
        if len(self) > self._partials_max:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._counts["partials_overflow"] += 1
        next(waiting for waiting in reversed(self.state.places) if waiting).pop(0)

    def _guard_end(self, tail: Tail, item: Item, mask: int, done: list[Complete]) -> None:
        waiting = self.state.places[self._last]
        if mask & tail.not_next:
            waiting = [p for p in waiting if p.entered != self.state.seen - 1]
        if mask & tail.not_between:
            waiting = []
        if not tail.not_between:
            if waiting and self._is_known(tail.absent, item.time_ns + 1):
                done += [(item.time_ns, partial.matched) for partial in waiting]
            waiting = []
        self.state.places[self._last] = waiting

    def _drop_overdue(self, time_ns: int) -> None:
        for place in range(1, self._last):
            waiting, stage = self.state.places[place], self._stages[place]
            while waiting and self._is_overdue(stage, waiting[0], time_ns):
                waiting.pop(0)
        if self._tail is not None and not self._tail.not_between:
            waiting = self.state.places[self._last]
            while waiting and _reached(self._end_ns(self._tail, waiting[0]), time_ns):
                waiting.pop(0)

    def _is_overdue(self, stage: Stage, partial: Partial, time_ns: int) -> bool:
        return _reached(self._limit_ns(partial, stage.within_ns), time_ns)

    def _end_ns(self, tail: Tail, partial: Partial) -> int | None:
        return self._limit_ns(partial, tail.within_ns)

    def _limit_ns(self, partial: Partial, step_ns: int) -> int | None:
        """Return when the earlier of two windows ends: the pattern's and a step's."""
        limits = []
        if self._pattern.within_ns:
            limits.append(partial.matched[0].item.time_ns + self._pattern.within_ns)
        if step_ns:
            limits.append(partial.matched[-1].item.time_ns + step_ns)
        return min(limits, default=None)

    def _is_known(self, absent: tuple[Source, ...], time_ns: int) -> bool:
        """Return whether what did not come from sources before a time really did not happen, as far as marks say."""
        if not (absent and self._is_blind) and all(self._marked(source) >= time_ns for source in absent):
            return True
        self._counts["unsure"] += 1
        return False

    def _skipped(self, done: list[Complete]) -> list[Complete]:
        """Apply the rule of what a match ends."""
        if not self._pattern.skips_past_last or not done:
            return done
        kept: list[Complete] = []
        past: Item | None = None
        for complete in done:
            if past is None or complete[1][0].item > past:
                kept.append(complete)
                past = complete[1][-1].item
        if past is not None:
            places = self.state.places
            places[:] = [[p for p in waiting if p.matched[0].item > past] for waiting in places]
        return kept


def _reached(limit_ns: int | None, time_ns: int) -> bool:
    return limit_ns is not None and limit_ns <= time_ns
