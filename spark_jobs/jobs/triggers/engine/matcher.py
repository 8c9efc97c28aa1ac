"""All triggers of one part of the market: events and time marks in, firings out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from relay.engine.pattern_values import CompiledPattern, NOfM, Repeat, Source
from spark_jobs.jobs.triggers.engine.backlog import Backlog
from spark_jobs.jobs.triggers.engine.bar_source import BarSource, BarState
from spark_jobs.jobs.triggers.engine.run import RunState, TriggerRun
from spark_jobs.jobs.triggers.engine.state import MatcherState, compile_trigger, decode_state, encode_state
from spark_jobs.jobs.triggers.engine.tick_source import TickSource, TickState
from spark_jobs.jobs.triggers.engine.values import (
    Bar,
    Ended,
    EndReason,
    Event,
    MatcherRules,
    Outcome,
    Tick,
    TimeMark,
    Trigger,
)

__all__ = ["Matcher"]


class Matcher:
    """Matches triggers against events of any arrival order, cut into batches anyhow.

    Every call takes what the log holds next and returns what follows from it. A mark closes the time before it: what
    belongs there has to be handed in first, a bar too.

    Args:
        rules: bounds.

    Specified in proto/spec/0009. A tick that crosses nothing costs two binary searches, however many triggers there
    are.
    """

    def __init__(self, rules: MatcherRules | None = None) -> None:
        self.counts: Counter[str] = Counter()
        """What happened since the start of the process, by name."""
        self._rules = rules or MatcherRules()
        self._sources: dict[Source, TickSource | BarSource] = {}
        self._periods: dict[str, dict[int, TickSource | BarSource]] = {}
        self._users: dict[Source, set[str]] = {}
        self._runs: dict[str, TriggerRun] = {}
        self._ended: dict[str, EndReason] = {}
        self._backlog = Backlog(self._rules.held_max, "held_overflow", self.counts)
        self._begun = Backlog(self._rules.begun_max, "begun_overflow", self.counts)

    @property
    def triggers(self) -> Mapping[str, Trigger]:
        """Triggers that are matched, by id."""
        return {trigger_id: run.state.trigger for trigger_id, run in self._runs.items()}

    @property
    def ended(self) -> Mapping[str, EndReason]:
        """Triggers that are over and were not removed yet, oldest first."""
        return self._ended

    @property
    def sources(self) -> frozenset[Source]:
        """What the triggers look at; everything else is passed over."""
        return frozenset(self._sources)

    @property
    def held(self) -> int:
        """How many hits triggers of several sources hold back."""
        return self._backlog.held

    @property
    def begun(self) -> int:
        """How many matches are begun."""
        return self._begun.held

    def add(self, trigger: Trigger) -> bool:
        """Match a trigger from now on; one that is known stays as it is, unless its definition differs.

        Returns:
            Whether it is matched; False when it is over.

        Raises:
            PatternError: its pattern is wrong.
        """
        trigger_id = trigger.trigger_id
        if trigger_id in self._ended:
            return False
        known = self._runs.get(trigger_id)
        if known is not None and known.state.trigger._replace(since_ns=0) == trigger._replace(since_ns=0):
            return True
        pattern = compile_trigger(trigger)
        self.remove(trigger_id)
        sources = {source: self._source_of(source) for source in pattern.sources}
        start_ns = max(trigger.since_ns, *(source.frontier_ns for source in sources.values()))
        self._start(pattern, RunState.new(trigger, pattern, start_ns))
        return True

    def remove(self, trigger_id: str) -> bool:
        """Match a trigger no longer, and forget that it is over; return whether it was known."""
        was_ended = self._ended.pop(trigger_id, None) is not None
        run = self._runs.pop(trigger_id, None)
        if run is None:
            return was_ended
        for condition in run.pattern.conditions:
            if not isinstance(condition, NOfM | Repeat):
                self._sources[condition.source].remove(run, condition)
        self._backlog.remove(trigger_id)
        self._begun.remove(trigger_id)
        for source in run.pattern.sources:
            self._sources[source].trail.remove(run)
            self._users[source].discard(trigger_id)
            if not self._users[source]:
                del self._users[source], self._sources[source], self._periods[source.ticker][source.period_seconds]
                if not self._periods[source.ticker]:
                    del self._periods[source.ticker]
        return True

    def on_tick(self, tick: Tick) -> list[Outcome]:
        """Take a trade."""
        out: list[Outcome] = []
        source = self._sources.get(Source(tick.ticker, 0))
        if isinstance(source, TickSource):
            source.take(tick, out)
            if out:
                self._retire(out)
        return out

    def on_bar(self, bar: Bar) -> list[Outcome]:
        """Take a final bar."""
        out: list[Outcome] = []
        source = self._sources.get(Source(bar.ticker, bar.period_seconds))
        if isinstance(source, BarSource):
            source.take(bar, out)
            if out:
                self._retire(out)
        return out

    def on_mark(self, mark: TimeMark) -> list[Outcome]:
        """Take a time mark."""
        out: list[Outcome] = []
        for period_seconds, source in sorted(self._periods.get(mark.ticker, {}).items()):
            if mark.period_seconds is None or mark.period_seconds == period_seconds:
                source.mark(mark.reached_ns, out)
        if out:
            self._retire(out)
        return out

    def feed(self, events: Iterable[Event]) -> list[Outcome]:
        """Take events one after another."""
        out: list[Outcome] = []
        for event in events:
            if isinstance(event, Tick):
                out += self.on_tick(event)
            elif isinstance(event, Bar):
                out += self.on_bar(event)
            else:
                out += self.on_mark(event)
        return out

    def encode(self) -> bytes:
        """Return the state as bytes; see :mod:`spark_jobs.jobs.triggers.engine.state`."""
        sources = self._sources.values()
        return encode_state(
            MatcherState(
                ticks=[source.state for source in sources if isinstance(source, TickSource)],
                bars=[source.state for source in sources if isinstance(source, BarSource)],
                runs=[run.state for run in self._runs.values()],
                ended=list(self._ended.items()),
            )
        )

    @classmethod
    def decode(cls, data: bytes, rules: MatcherRules | None = None) -> Matcher:
        """Return a matcher that goes on where an encoded one was; its counters begin anew.

        Raises:
            StateError: the bytes are cut short, damaged, of another version, or do not hang together.
        """
        state, patterns = decode_state(data)
        matcher = cls(rules)
        for ticks in state.ticks:
            matcher._put(Source(ticks.ticker, 0), TickSource(ticks, matcher._rules, matcher.counts))
        for bars in state.bars:
            matcher._put(bars.source, BarSource(bars, matcher._rules, matcher.counts))
        for run, pattern in zip(state.runs, patterns, strict=True):
            matcher._start(pattern, run)
        for source in matcher._sources.values():
            source.resume()
        matcher._ended.update(state.ended)
        return matcher

    def _start(self, pattern: CompiledPattern, state: RunState) -> None:
        sources = {source: self._sources[source] for source in pattern.sources}
        run = TriggerRun(
            pattern, state, sources, rules=self._rules, backlog=self._backlog, begun=self._begun, counts=self.counts
        )
        self._runs[run.trigger_id] = run
        for signal, condition in enumerate(pattern.conditions):
            if not isinstance(condition, NOfM | Repeat):
                sources[condition.source].add(run, signal, condition)
        for source, driver in sources.items():
            self._users.setdefault(source, set()).add(run.trigger_id)
            driver.listeners.add(run, is_strict=pattern.is_strict and not run.is_waiting, is_timed=run.is_timed)
            if run.is_waiting and pattern.is_strict:
                driver.trail.add(run)
        if run.is_waiting:
            self._backlog.add(run.trigger_id, run)
        self._begun.add(run.trigger_id, run.partials)

    def _source_of(self, source: Source) -> TickSource | BarSource:
        known = self._sources.get(source)
        if known is not None:
            return known
        made: TickSource | BarSource
        if source.period_seconds:
            made = BarSource(BarState(source), self._rules, self.counts)
        else:
            made = TickSource(TickState(source.ticker), self._rules, self.counts)
        self._put(source, made)
        return made

    def _put(self, source: Source, driver: TickSource | BarSource) -> None:
        self._sources[source] = driver
        self._periods.setdefault(source.ticker, {})[source.period_seconds] = driver

    def _retire(self, out: list[Outcome]) -> None:
        """Match triggers that are over no longer, and remember them."""
        for outcome in out:
            if isinstance(outcome, Ended):
                self.remove(outcome.trigger_id)
                self._ended[outcome.trigger_id] = outcome.reason
        while len(self._ended) > self._rules.ended_max:
            del self._ended[next(iter(self._ended))]
