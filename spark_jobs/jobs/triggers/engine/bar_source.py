"""One ticker's final bars of one period: put in order and judged by the conditions on them."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from relay.engine.pattern_values import (
    EXACT_DECIMALS,
    RATIO_DECIMALS,
    BarSurge,
    BarTest,
    Condition,
    Field,
    Operator,
    Source,
)
from spark_jobs.jobs.triggers.engine.intake import Intake
from spark_jobs.jobs.triggers.engine.listeners import Hits, Listener, Listeners
from spark_jobs.jobs.triggers.engine.trail import Trail
from spark_jobs.jobs.triggers.engine.values import Bar, Item, Kind, MatcherRules, Outcome

__all__ = ["BarSource", "BarState"]

_MULTIPLE: int = 10**RATIO_DECIMALS
_POWERS = tuple(10 ** (EXACT_DECIMALS - decimals) for decimals in range(EXACT_DECIMALS + 1))
_COMPARE: Mapping[Operator, Callable[[int, int], bool]] = MappingProxyType(
    {
        Operator.LESS: operator.lt,
        Operator.LESS_OR_EQUAL: operator.le,
        Operator.EQUAL: operator.eq,
        Operator.NOT_EQUAL: operator.ne,
        Operator.GREATER_OR_EQUAL: operator.ge,
        Operator.GREATER: operator.gt,
    }
)


class BarState(msgspec.Struct, omit_defaults=True):
    """What has to be known of a ticker's bars to go on.

    Attributes:
        source: whose, of which period.
        intake: order of the bars, by start.
        count: how many were evaluated.
        volumes: ends and volumes of the last ones that had a volume, in units of 10^-EXACT_DECIMALS.
        trail: ends of the last ones, as far as triggers of several sources have not come yet.
    """

    source: Source
    intake: Intake[Bar] = msgspec.field(default_factory=Intake)
    count: int = 0
    volumes: list[tuple[int, int]] = msgspec.field(default_factory=list)
    trail: list[int] = msgspec.field(default_factory=list)


class BarSource:
    """Drives all conditions on one ticker's bars of one period.

    Args:
        state: of the bars; taken over and changed.
        rules: bounds.
        counts: takes counters.
    """

    def __init__(self, state: BarState, rules: MatcherRules, counts: Counter[str]) -> None:
        self.state = state
        self.listeners = Listeners()
        key = (Kind.BAR, *state.source)
        self.trail = Trail(state.trail, key, times_max=rules.trail_max, counts=counts)
        self._rules, self._counts = rules, counts
        self._conditions: list[tuple[Listener, int, BarTest | BarSurge]] = []
        self._average_max = 0

    @property
    def marked_ns(self) -> int:
        """Before it everything has come."""
        return self.state.intake.marked_ns

    @property
    def frontier_ns(self) -> int:
        """Before it everything is evaluated."""
        return self.state.intake.frontier_ns

    def first_between(self, after: Item | int, before: Item | int) -> int | None:
        """Return when the first bar ended between two events or times; None when none did."""
        return self.trail.first_between(after, before, self.state.count)

    def add(self, listener: Listener, signal: int, leaf: Condition) -> None:
        """Judge a condition from now on."""
        if not isinstance(leaf, BarTest | BarSurge):
            raise ValueError(f"expected a condition on bars, got {leaf}")
        listener.fresh.pop(signal, None)
        self._conditions.append((listener, 1 << signal, leaf))
        if isinstance(leaf, BarSurge):
            self._average_max = max(self._average_max, leaf.count)

    def remove(self, listener: Listener, leaf: Condition) -> None:
        """Judge a condition no longer."""
        self._conditions = [entry for entry in self._conditions if entry[0] is not listener or entry[2] != leaf]
        self._average_max = max(
            (leaf.count for _, _, leaf in self._conditions if isinstance(leaf, BarSurge)), default=0
        )
        if not self._average_max:
            self.state.volumes.clear()
        self.listeners.remove(listener)

    def take(self, bar: Bar, out: list[Outcome]) -> None:
        """Let a bar wait for the mark."""
        if not (0 <= bar.price_decimals <= EXACT_DECIMALS and 0 <= bar.volume_decimals <= EXACT_DECIMALS):
            self._counts["unreadable"] += 1
            return
        intake = self.state.intake
        number = bar.start_ns // (bar.period_seconds * 10**9)
        if intake.take(number, bar, _newer, self._counts) > self._rules.waiting_max:
            self._counts["forced"] += 1
            intake.force()
            self._go_on(out)

    def mark(self, reached_ns: int, out: list[Outcome]) -> None:
        """Take a time mark; evaluate what it lets through."""
        if self.state.intake.mark(reached_ns, self._rules.lateness_ns):
            self._go_on(out)

    def resume(self) -> None:
        """All conditions of a restored state are there; nothing is derived from them."""

    def _go_on(self, out: list[Outcome]) -> None:
        for bar in self.state.intake.release(self._rules):
            self._evaluate(bar, out)
        self.listeners.settle(out)
        self.trail.trim()

    def _evaluate(self, bar: Bar, out: list[Outcome]) -> None:
        self.state.count += 1
        values = _values(bar)
        hits: Hits = {}
        for listener, mask, leaf in self._conditions:
            if isinstance(leaf, BarTest):
                holds = all(_holds(values, c.left, c.operator, c.right) for c in leaf.comparisons)
            else:
                holds = self._is_surge(values[Field.VOLUME], leaf, listener.start_ns)
            if holds:
                hits[listener] = hits.get(listener, 0) | mask
        volume = values[Field.VOLUME]
        if volume is not None and self._average_max:
            volumes = self.state.volumes
            volumes.append((bar.time_ns, volume))
            del volumes[: -self._average_max]
        self.trail.note(bar.time_ns, out)
        if hits or self.listeners.is_watched():
            item = Item(
                bar.time_ns,
                Kind.BAR,
                bar.ticker,
                bar.period_seconds,
                bar.close,
                bar.price_decimals,
                bar.volume,
                bar.volume_decimals,
                self.state.count,
            )
            self.listeners.hand(item, hits, out)
            self.listeners.show(item, hits, out)

    def _is_surge(self, volume: int | None, leaf: BarSurge, start_ns: int) -> bool:
        """Return whether a volume is above the multiple of the mean of the bars before, of which there are enough."""
        volumes = self.state.volumes
        if volume is None or len(volumes) < leaf.count or volumes[-leaf.count][0] < start_ns:
            return False
        return volume * leaf.count * _MULTIPLE > leaf.multiple * sum(v for _, v in volumes[-leaf.count :])


def _values(bar: Bar) -> tuple[int | None, ...]:
    """Return a bar's numbers by field, in units of 10^-EXACT_DECIMALS."""
    power = _POWERS[bar.price_decimals]
    return (
        bar.open * power,
        bar.high * power,
        bar.low * power,
        bar.close * power,
        None if bar.volume is None else bar.volume * _POWERS[bar.volume_decimals],
        None if bar.trades is None else bar.trades * _POWERS[0],
    )


def _holds(values: tuple[int | None, ...], left: Field, how: Operator, right: int | Field) -> bool:
    first = values[left]
    second = values[right] if isinstance(right, Field) else right
    return first is not None and second is not None and bool(_COMPARE[how](first, second))


def _newer(held: Bar, bar: Bar) -> Bar:
    return bar if bar.revision > held.revision else held
