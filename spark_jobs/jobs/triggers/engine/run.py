"""One trigger at work: its sources' events in one order, its begun matches, when it fires and when it is over."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

import msgspec

from relay.engine.pattern_values import CompiledPattern, NOfM, Repeat, Source
from spark_jobs.jobs.triggers.engine.backlog import Backlog
from spark_jobs.jobs.triggers.engine.derived import NOfMState, RepeatState
from spark_jobs.jobs.triggers.engine.partials import Complete, PartialBook, PartialState
from spark_jobs.jobs.triggers.engine.values import (
    Ended,
    EndReason,
    Firing,
    Item,
    Kind,
    MatcherRules,
    Outcome,
    Trigger,
    match_id,
)

__all__ = ["RunState", "TriggerRun"]


class RunState(msgspec.Struct, omit_defaults=True):
    """What has to be known of a trigger to go on.

    Attributes:
        trigger: as it was registered.
        start_ns: events before it do not exist for the trigger.
        fresh: signals that their source judges for this trigger alone, and whether they held at the last tick.
        partials: begun matches.
        derived: of derived conditions, in their order.
        queue: hits of several sources that wait for the slowest; a heap.
        frontier_ns: before it everything of the trigger is evaluated; kept for several sources only.
        fired_ns: when it fired last; None before.
    """

    trigger: Trigger
    start_ns: int
    fresh: dict[int, bool]
    partials: PartialState
    derived: list[NOfMState | RepeatState]
    queue: list[tuple[Item, int]] = msgspec.field(default_factory=list)
    frontier_ns: int = 0
    fired_ns: int | None = None

    @classmethod
    def new(cls, trigger: Trigger, pattern: CompiledPattern, start_ns: int) -> RunState:
        """Return the state of a trigger that begins."""
        derived: list[NOfMState | RepeatState] = []
        fresh: dict[int, bool] = {}
        for signal, condition in enumerate(pattern.conditions):
            if isinstance(condition, NOfM):
                derived.append(NOfMState([None] * len(condition.members)))
            elif isinstance(condition, Repeat):
                derived.append(RepeatState())
            else:
                fresh[signal] = False
        return cls(trigger, start_ns, fresh, PartialState([[] for _ in range(len(pattern.stages) + 1)]), derived)


class Progress(Protocol):
    """How far a source has come."""

    @property
    def marked_ns(self) -> int:
        """Before it everything has come."""

    @property
    def frontier_ns(self) -> int:
        """Before it everything is evaluated."""

    def first_between(self, after: Item | int, before: Item | int) -> int | None:
        """Return when its first event was between two events or times; None when there was none."""


class TriggerRun:
    """Drives one trigger.

    Args:
        pattern: the trigger's.
        state: of the trigger; taken over and changed.
        sources: all that the pattern looks at.
        rules: bounds.
        backlog: counts what is held back.
        begun: counts begun matches.
        counts: takes counters.
    """

    def __init__(
        self,
        pattern: CompiledPattern,
        state: RunState,
        sources: Mapping[Source, Progress],
        *,
        rules: MatcherRules,
        backlog: Backlog,
        begun: Backlog,
        counts: Counter[str],
    ) -> None:
        self.pattern, self.state = pattern, state
        self.trigger_id, self.start_ns, self.fresh = state.trigger.trigger_id, state.start_ns, state.fresh
        self.is_over = False
        self._sources, self._rules, self._counts = sources, rules, counts
        self._backlog, self._begun = backlog, begun
        self._only = next(iter(sources.values())) if len(sources) == 1 else None
        self._derived = [
            (signal, condition)
            for signal, condition in enumerate(pattern.conditions)
            if isinstance(condition, NOfM | Repeat)
        ]
        self.partials = PartialBook(
            pattern, state.partials, partials_max=rules.partials_max, marked=self._marked, counts=counts
        )
        self.is_watching = False
        self._watch()

    @property
    def is_waiting(self) -> bool:
        """Whether it has several sources, so that its hits wait for the slowest."""
        return self._only is None

    @property
    def held(self) -> int:
        """How many hits wait."""
        return len(self.state.queue)

    @property
    def frontier_ns(self) -> int:
        """Before it everything of the trigger is evaluated; kept for several sources only."""
        return self.state.frontier_ns

    @property
    def is_timed(self) -> bool:
        """Whether it has to be told of time."""
        return self._only is None or self.pattern.tail is not None or self.state.trigger.expires_ns != 0

    def take(self, item: Item, mask: int, out: list[Outcome]) -> None:
        """Take what happened at a source; with several sources it waits for the slowest."""
        if self.is_over or item.time_ns < self.start_ns:
            return
        if self._only is not None:
            self._step(item, mask, out)
        elif item.time_ns < self.state.frontier_ns:
            self._counts["left_behind"] += 1
        else:
            heapq.heappush(self.state.queue, (item, mask))
            self._backlog.note(self.trigger_id, out)
            if len(self.state.queue) > self._rules.queue_max:
                self._counts["forced"] += 1
                self.force(self.state.queue[0][0].time_ns + 1, out)

    def settle(self, out: list[Outcome]) -> None:
        """A source has gone on in time: do what was waiting for that."""
        if self.is_over:
            return
        if self._only is not None:
            self._pass_time(self._only.frontier_ns, out)
            return
        reached = [source.frontier_ns for source in self._sources.values()]
        self._go_on(max(min(reached), max(reached) - self._rules.hold_ns), out)

    def force(self, frontier_ns: int, out: list[Outcome]) -> None:
        """Go on up to a time without the sources that have not come so far."""
        if not self.is_over:
            self._go_on(frontier_ns, out)

    def halve(self, out: list[Outcome]) -> None:
        """Go on past the older half of what waits, however far the sources are: what did not happen is not known."""
        times = sorted(item.time_ns for item, _ in self.state.queue)
        with self.partials.blind():
            self.force(times[len(times) // 2] + 1, out)
        self._begun.note(self.trigger_id, out)
        self._watch()

    def _go_on(self, frontier_ns: int, out: list[Outcome]) -> None:
        state = self.state
        before: Item | int = state.frontier_ns
        state.frontier_ns = max(state.frontier_ns, frontier_ns)
        while state.queue and state.queue[0][0].time_ns < state.frontier_ns and not self.is_over:
            item, mask = heapq.heappop(state.queue)
            self._pass_over(before, item, out)
            if not self.is_over:
                self._step(item, mask, out)
            before = item
        self._backlog.note(self.trigger_id, out)
        self._pass_over(before, state.frontier_ns, out)
        if not self.is_over:
            self._pass_time(state.frontier_ns, out)

    def _pass_over(self, after: Item | int, before: Item | int, out: list[Outcome]) -> None:
        """Take the first of the events between two hits; those behind it, being no hits either, change nothing."""
        if not self.is_watching or self.is_over:
            return
        times = [source.first_between(after, before) for source in self._sources.values()]
        first_ns = min((time_ns for time_ns in times if time_ns is not None), default=None)
        if first_ns is not None:
            self._step(Item(first_ns, Kind.TICK, "", 0), 0, out)

    def _step(self, item: Item, mask: int, out: list[Outcome]) -> None:
        self._pass_time(item.time_ns, out)
        expires_ns = self.state.trigger.expires_ns
        if self.is_over or (expires_ns and item.time_ns >= expires_ns):
            self._end(EndReason.EXPIRED, out)
            return
        for (signal, condition), judge in zip(self._derived, self.state.derived, strict=True):
            if judge.judge(condition, item, mask):  # type: ignore[arg-type]  # made for this condition
                mask |= 1 << signal
        self._fire(self.partials.step(item, mask), out)
        self._begun.note(self.trigger_id, out)
        self._watch()

    def _pass_time(self, time_ns: int, out: list[Outcome]) -> None:
        """Everything before a time is evaluated: windows at the end of a pattern are over, the trigger may be too."""
        expires_ns = self.state.trigger.expires_ns
        if self.pattern.tail is not None:
            self._fire(self.partials.pass_time(time_ns, before_ns=expires_ns), out)
            self._begun.note(self.trigger_id, out)
            self._watch()
        if expires_ns and time_ns >= expires_ns:
            self._end(EndReason.EXPIRED, out)

    def _fire(self, done: list[Complete], out: list[Outcome]) -> None:
        trigger = self.state.trigger
        for time_ns, matched in done:
            if self.is_over:
                return
            if self.state.fired_ns is not None and time_ns < self.state.fired_ns + trigger.cooldown_ns:
                self._counts["cooled_down"] += 1
                continue
            self.state.fired_ns = time_ns
            events = tuple(matched)
            out.append(Firing(trigger.trigger_id, time_ns, events, match_id(trigger.trigger_id, events)))
            if trigger.one_shot:
                self._end(EndReason.ONE_SHOT, out)

    def _end(self, reason: EndReason, out: list[Outcome]) -> None:
        if not self.is_over:
            self.is_over = True
            out.append(Ended(self.trigger_id, reason))

    def _watch(self) -> None:
        """Say whether an event on which nothing holds matters now."""
        self.is_watching = self.pattern.is_strict and len(self.partials) > 0

    def _marked(self, source: Source) -> int:
        return self._sources[source].marked_ns
