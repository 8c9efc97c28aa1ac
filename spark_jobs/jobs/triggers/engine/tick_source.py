"""One ticker's ticks: put in order, judged by all conditions together, handed to the triggers they matter to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import msgspec

from relay.engine.pattern_values import EXACT_DECIMALS, Condition, Cross, Direction, Move, Reference, Silence, TickSurge
from spark_jobs.jobs.triggers.engine.intake import Intake
from spark_jobs.jobs.triggers.engine.levels import CrossIndex, RatioSeries, series_of
from spark_jobs.jobs.triggers.engine.listeners import Hits, Listener, Listeners
from spark_jobs.jobs.triggers.engine.silences import SilenceBook
from spark_jobs.jobs.triggers.engine.trail import Trail
from spark_jobs.jobs.triggers.engine.values import Item, Kind, MatcherRules, Outcome, Tick
from spark_jobs.jobs.triggers.engine.windows import Reach, TickWindow

__all__ = ["TickSource", "TickState"]

_POWERS = tuple(10 ** (EXACT_DECIMALS - decimals) for decimals in range(EXACT_DECIMALS + 1))


class TickState(msgspec.Struct, omit_defaults=True):
    """What has to be known of a ticker to go on.

    Attributes:
        intake: order of its ticks.
        count: how many were evaluated.
        last_ns: time of the last one.
        price, price_before: the last price and the last that differed from it, in units of 10^-EXACT_DECIMALS.
        window: what conditions look back to.
        trail: times of the last ones, as far as triggers of several sources have not come yet.
    """

    ticker: str
    intake: Intake[Tick] = msgspec.field(default_factory=Intake)
    count: int = 0
    last_ns: int = 0
    price: int | None = None
    price_before: int | None = None
    window: TickWindow = msgspec.field(default_factory=TickWindow)
    trail: list[int] = msgspec.field(default_factory=list)


class TickSource:
    """Drives all conditions on one ticker's ticks.

    Args:
        state: of the ticker; taken over and changed.
        rules: bounds.
        counts: takes counters.
    """

    def __init__(self, state: TickState, rules: MatcherRules, counts: Counter[str]) -> None:
        self.state = state
        self.listeners = Listeners()
        self.trail = Trail(state.trail, (Kind.TICK, state.ticker), times_max=rules.trail_max, counts=counts)
        self._rules, self._counts = rules, counts
        self._crosses = CrossIndex()
        self._new_crosses: list[tuple[Listener, int, Cross]] = []
        self._series: dict[Move | TickSurge, RatioSeries] = {}
        self._new_ratios: list[tuple[Listener, int, int, RatioSeries]] = []
        self._silences = SilenceBook()
        self._reach = Reach()

    @property
    def marked_ns(self) -> int:
        """Before it everything has come."""
        return self.state.intake.marked_ns

    @property
    def frontier_ns(self) -> int:
        """Before it everything is evaluated."""
        return self.state.intake.frontier_ns

    def first_between(self, after: Item | int, before: Item | int) -> int | None:
        """Return when the first tick was between two events or times; None when there was none."""
        return self.trail.first_between(after, before, self.state.count)

    def add(self, listener: Listener, signal: int, leaf: Condition) -> None:
        """Judge a condition from now on. It is judged alone while the listener has the signal among its fresh ones."""
        mask = 1 << signal
        is_fresh = signal in listener.fresh
        match leaf:
            case Cross():
                if is_fresh:
                    self._new_crosses.append((listener, signal, leaf))
                else:
                    self._crosses.add(leaf.level, (listener, mask, leaf.direction))
            case Silence():
                self._silences.add(listener, mask, leaf.duration_ns)
            case Move() | TickSurge():
                series = self._series_for(leaf)
                level = _level(leaf)
                if is_fresh:
                    self._new_ratios.append((listener, signal, level, series))
                else:
                    series.add(level, (listener, mask, Direction.EITHER))
            case _:
                raise ValueError(f"expected a condition on ticks, got {leaf}")

    def remove(self, listener: Listener, leaf: Condition) -> None:
        """Judge a condition no longer."""
        match leaf:
            case Cross():
                self._crosses.remove(leaf.level, listener)
                self._new_crosses = [new for new in self._new_crosses if new[0] is not listener]
            case Silence():
                self._silences.remove(listener)
            case Move() | TickSurge():
                series = self._series_for(leaf)
                series.remove(_level(leaf), listener)
                self._new_ratios = [new for new in self._new_ratios if new[0] is not listener]
                self._drop_idle()
            case _:
                raise ValueError(f"expected a condition on ticks, got {leaf}")
        self.listeners.remove(listener)

    def take(self, tick: Tick, out: list[Outcome]) -> None:
        """Let a tick wait for the mark."""
        if not (0 <= tick.price_decimals <= EXACT_DECIMALS and 0 <= tick.amount_decimals <= EXACT_DECIMALS):
            self._counts["unreadable"] += 1
            return
        intake = self.state.intake
        if intake.take(tick.number, tick, min, self._counts) > self._rules.waiting_max:
            self._counts["forced"] += 1
            checked_ns = intake.frontier_ns
            intake.force()
            self._go_on(checked_ns, out)

    def mark(self, reached_ns: int, out: list[Outcome]) -> None:
        """Take a time mark; evaluate what it lets through."""
        intake = self.state.intake
        checked_ns = intake.frontier_ns
        if intake.mark(reached_ns, self._rules.lateness_ns):
            self._go_on(checked_ns, out)

    def resume(self) -> None:
        """All conditions of a restored state are there: bring their numbers to where they were."""
        state = self.state
        if state.price is not None:
            for series in self._series.values():
                series.value = series.at(state.window, state.last_ns, state.price, 0)

    def _go_on(self, checked_ns: int, out: list[Outcome]) -> None:
        """Evaluate up to the frontier; silences that ended before ``checked_ns`` were told already."""
        for tick in self.state.intake.release(self._rules):
            if self._silences:
                self._tell_silences(checked_ns, tick.time_ns, out)
            self._evaluate(tick, out)
        if self._silences:
            self._tell_silences(checked_ns, self.frontier_ns - 1, out)
        self.listeners.settle(out)
        self.trail.trim()

    def _tell_silences(self, checked_ns: int, until_ns: int, out: list[Outcome]) -> None:
        state = self.state
        for due_ns, duration_ns, hits in self._silences.ended(state.last_ns, checked_ns, until_ns):
            if due_ns >= state.intake.marked_ns:
                self._counts["unsure"] += len(hits)  # evaluated without the mark: nobody knows that it was silent
            else:
                self.listeners.hand(Item(due_ns, Kind.SILENCE, state.ticker, duration_ns), hits, out)

    def _evaluate(self, tick: Tick, out: list[Outcome]) -> None:
        state = self.state
        price = tick.price * _POWERS[tick.price_decimals]
        hits: Hits = {}
        state.count += 1
        if state.price is None:
            state.price = price
        elif price != state.price:
            if self._crosses:
                self._crosses.cross(state.price_before, state.price, price, hits)
            state.price_before, state.price = state.price, price
        if self._new_crosses:
            self._enter_crosses(tick.time_ns, price)
        if self._series:
            self._judge_ratios(tick, price, hits)
        state.last_ns = tick.time_ns
        self.trail.note(tick.time_ns, out)
        if hits or self.listeners.is_watched():
            item = Item(
                tick.time_ns,
                Kind.TICK,
                tick.ticker,
                tick.number,
                tick.price,
                tick.price_decimals,
                tick.amount,
                tick.amount_decimals,
                state.count,
            )
            self.listeners.hand(item, hits, out)
            self.listeners.show(item, hits, out)

    def _enter_crosses(self, time_ns: int, price: int) -> None:
        """A threshold can be crossed once a price has been seen on one side of it."""
        kept = []
        for new in self._new_crosses:
            listener, signal, leaf = new
            if time_ns < listener.start_ns or price == leaf.level:
                kept.append(new)
            else:
                listener.fresh.pop(signal, None)
                self._crosses.add(leaf.level, (listener, 1 << signal, leaf.direction))
        self._new_crosses = kept

    def _judge_ratios(self, tick: Tick, price: int, hits: Hits) -> None:
        window, time_ns = self.state.window, tick.time_ns
        amount = tick.amount * _POWERS[tick.amount_decimals]
        over = window.push(time_ns, price, amount, self._reach, self._rules.window_ticks_max)
        if over:
            self._counts["window_overflow"] += over
        for series in self._series.values():
            series.move(series.at(window, time_ns, price, 0), hits)
        if self._new_ratios:
            self._judge_alone(time_ns, price, hits)

    def _judge_alone(self, time_ns: int, price: int, hits: Hits) -> None:
        """A condition whose reach goes back before its trigger's start looks at less than the others."""
        kept = []
        is_positive = self.state.window.is_positive()
        for new in self._new_ratios:
            listener, signal, level, series = new
            if time_ns < listener.start_ns:
                kept.append(new)
                continue
            holds = False
            if series.may_reach(level, time_ns, listener.start_ns, is_positive=is_positive):
                value = series.at(self.state.window, time_ns, price, listener.start_ns)
                holds = value is not None and value >= level
            if holds and not listener.fresh.get(signal, False):
                hits[listener] = hits.get(listener, 0) | 1 << signal
            if time_ns - series.reach_ns + 1 >= listener.start_ns:
                listener.fresh.pop(signal, None)
                series.add(level, (listener, 1 << signal, Direction.EITHER))
            else:
                listener.fresh[signal] = holds
                kept.append(new)
        self._new_ratios = kept

    def _series_for(self, leaf: Move | TickSurge) -> RatioSeries:
        key = _without_level(leaf)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = series_of(leaf)
            self._reach = self._needed()
            self.state.window.grow(self._reach)
        return series

    def _drop_idle(self) -> None:
        used = {id(new[3]) for new in self._new_ratios}
        self._series = {key: s for key, s in self._series.items() if s or id(s) in used}
        self._reach = self._needed()
        self.state.window.shrink(self._reach)

    def _needed(self) -> Reach:
        extremes_ns = history_ns = 0
        for leaf, series in self._series.items():
            if isinstance(leaf, Move) and leaf.reference is Reference.EXTREME:
                extremes_ns = max(extremes_ns, series.reach_ns)
            else:
                history_ns = max(history_ns, series.reach_ns)
        return Reach(extremes_ns, history_ns)


def _level(leaf: Move | TickSurge) -> int:
    return leaf.percent if isinstance(leaf, Move) else leaf.multiple


def _without_level(leaf: Move | TickSurge) -> Move | TickSurge:
    return replace(leaf, percent=0) if isinstance(leaf, Move) else replace(leaf, multiple=0)
