"""What a trigger has to fire on, found plainly: over the whole ordered list of events, each match from its beginning.

Written from the specification alone. It reads the message, not the compiled form; numbers are fractions; nothing is
kept between two questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from relay.protocol.v1 import trigger_pb2
from spark_jobs.jobs.triggers.engine.values import Bar, Tick

MS = 10**6
STEP = trigger_pb2.PatternStep
OPERATORS = {
    0: lambda a, b: a < b,
    1: lambda a, b: a <= b,
    2: lambda a, b: a == b,
    3: lambda a, b: a != b,
    4: lambda a, b: a >= b,
    5: lambda a, b: a > b,
}


class Seen(NamedTuple):
    """An event in the order of the trigger: silence 0, bar 1, tick 2."""

    time: int
    kind: int
    ticker: str
    number: int


@dataclass
class World:
    """Everything that was ever said, and before which time the marks say that nothing is missing."""

    ticks: Sequence[Tick]
    bars: Sequence[Bar]
    known: dict[tuple[str, int], int]


@dataclass
class Wanted:
    pattern: trigger_pb2.Pattern
    start: int
    cooldown: int = 0
    one_shot: bool = False
    expires: int = 0


def firings(world: World, wanted: Wanted) -> list[tuple[int, list[tuple[int, Seen]]]]:
    """Return when it fires and on which events of which steps."""
    search = _Search(world, wanted)
    fired: list[tuple[int, list[tuple[int, Seen]]]] = []
    past, last = -1, None
    for time, _, matched in sorted(search.matches()):
        if wanted.pattern.after_match == trigger_pb2.Pattern.SKIP_PAST_LAST_EVENT:
            if matched[0][1] <= past:
                continue
            past = matched[-1][1]
        if last is not None and time < last + wanted.cooldown:
            continue
        last = time
        fired.append((time, [(step, search.events[place]) for step, place in matched]))
        if wanted.one_shot:
            break
    return fired


class _Search:
    def __init__(self, world: World, wanted: Wanted) -> None:
        self.world, self.wanted, self.pattern = world, wanted, wanted.pattern
        leaves = [leaf for step in self.pattern.steps for leaf in leaves_of(step)]
        self.sources = {source_of(leaf) for leaf in leaves}
        self.ticks, self.bars = lru_cache(self.ticks_of), lru_cache(self.bars_of)
        self.horizon = min(world.known.get(source, 0) for source in self.sources)
        self.true: dict[Seen, set[str]] = {}
        for source in self.sources:
            for seen in self.source_events(source):
                self.true.setdefault(seen, set())
        for leaf in leaves:
            for seen in self.leaf_events(leaf):
                self.true.setdefault(seen, set()).add(str(leaf))
        end = min(self.horizon, wanted.expires or self.horizon)
        self.events = sorted(seen for seen in self.true if wanted.start <= seen.time < end)
        self.holds = {index: self.step_truth(step) for index, step in enumerate(self.pattern.steps)}

    # What happens on one source, from the start of the trigger on.

    def ticks_of(self, ticker: str) -> list[Tick]:
        known, start = self.world.known.get((ticker, 0), 0), self.wanted.start
        return sorted({t for t in self.world.ticks if t.ticker == ticker and start <= t.time_ns < known})

    def bars_of(self, ticker: str, period: int) -> list[Bar]:
        known, start = self.world.known.get((ticker, period), 0), self.wanted.start
        best: dict[int, Bar] = {}
        for bar in self.world.bars:
            is_meant = (bar.ticker, bar.period_seconds) == (ticker, period) and start <= bar.time_ns < known
            if is_meant and (bar.start_ns not in best or bar.revision > best[bar.start_ns].revision):
                best[bar.start_ns] = bar
        return [best[key] for key in sorted(best)]

    def source_events(self, source: tuple[str, int]) -> list[Seen]:
        ticker, period = source
        if period:
            return [Seen(b.time_ns, 1, ticker, period) for b in self.bars(ticker, period)]
        return [Seen(t.time_ns, 2, ticker, t.number) for t in self.ticks(ticker)]

    def leaf_events(self, leaf: object) -> list[Seen]:
        source = source_of(leaf)
        if isinstance(leaf, trigger_pb2.SilenceCondition):
            return self.silences(leaf)
        events = self.source_events(source)
        if source[1]:
            bars = self.bars(*source)
            holds = [self.bar_holds(leaf, bars, place) for place in range(len(bars))]
        elif isinstance(leaf, trigger_pb2.ThresholdCondition):
            ticks = self.ticks(source[0])
            holds = [crossed(leaf, [price(t) for t in ticks[: place + 1]]) for place in range(len(ticks))]
        else:
            ticks = self.ticks(source[0])
            levels = [self.level_holds(leaf, ticks[: place + 1]) for place in range(len(ticks))]
            holds = [now and not before for before, now in zip([False, *levels], levels, strict=False)]
        return [seen for seen, hold in zip(events, holds, strict=True) if hold]

    def silences(self, leaf: trigger_pb2.SilenceCondition) -> list[Seen]:
        times = [self.wanted.start, *(t.time_ns for t in self.ticks(leaf.ticker))]
        known, length = self.world.known.get((leaf.ticker, 0), 0), leaf.duration_ms * MS
        found = [a + length for a, b in pairwise(times) if b - a >= length]
        if times[-1] + length < known:
            found.append(times[-1] + length)
        return [Seen(time, 0, leaf.ticker, length) for time in found]

    def bar_holds(self, leaf: object, bars: list[Bar], place: int) -> bool:
        if isinstance(leaf, trigger_pb2.BarCondition):
            return all(compare(c, bars[place]) for c in leaf.comparisons)
        before = [volume(b) for b in bars[:place] if b.volume is not None]
        if bars[place].volume is None or len(before) < leaf.count:
            return False
        return volume(bars[place]) > Fraction(leaf.multiple) * sum(before[-leaf.count :]) / leaf.count

    def level_holds(self, leaf: object, ticks: list[Tick]) -> bool:
        now = ticks[-1].time_ns
        window = leaf.window_ms * MS
        if isinstance(leaf, trigger_pb2.MoveCondition):
            prices = [price(t) for t in ticks if t.time_ns > now - window]
            first = leaf.reference == trigger_pb2.MoveCondition.FIRST
            low, high = (prices[0], prices[0]) if first else (min(prices), max(prices))
            up = (prices[-1] - low) / low * 100 if low > 0 else None
            down = (high - prices[-1]) / high * 100 if high > 0 else None
            found = {0: [up], 1: [down], 2: [up, down]}[leaf.direction]
            return any(move is not None and move >= Fraction(leaf.percent) for move in found)
        first_ns = now - window * (leaf.count + 1)
        if first_ns + 1 < self.wanted.start:
            return False
        present = sum((amount(t) for t in ticks if t.time_ns > now - window), Fraction(0))
        before = sum((amount(t) for t in ticks if first_ns < t.time_ns <= now - window), Fraction(0))
        return present > Fraction(leaf.multiple) * before / leaf.count

    # What a step says of the trigger's events.

    def step_truth(self, step: trigger_pb2.PatternStep) -> list[bool]:
        kind = step.WhichOneof("condition")
        if kind == "n_of_m":
            return [self.n_of_m(step.n_of_m, place) for place in range(len(self.events))]
        if kind == "repeat":
            return [self.repeat(step.repeat, place) for place in range(len(self.events))]
        name = str(getattr(step, kind))
        return [name in self.true[seen] for seen in self.events]

    def n_of_m(self, condition: trigger_pb2.NOfMCondition, place: int) -> bool:
        now = self.events[place].time
        names = [str(getattr(c, c.WhichOneof("condition"))) for c in condition.conditions]

        def count(places: range) -> int:
            inside = [self.true[self.events[p]] for p in places if self.events[p].time > now - condition.window_ms * MS]
            return sum(any(name in true for true in inside) for name in names)

        is_hit = any(name in self.true[self.events[place]] for name in names)
        return is_hit and count(range(place)) < condition.n <= count(range(place + 1))

    def repeat(self, condition: trigger_pb2.RepeatCondition, place: int) -> bool:
        kind = condition.condition.WhichOneof("condition")
        leaf = getattr(condition.condition, kind)
        events, now = self.source_events(source_of(leaf)), self.events[place]
        if str(leaf) not in self.true[now]:
            return False
        inside = [e for e in self.events[:place] if str(leaf) in self.true[e]]
        if condition.window_ms:
            inside = [e for e in inside if e.time > now.time - condition.window_ms * MS]
        before = inside
        if condition.of_events:
            here = events.index(now)
            before = [e for e in inside if events.index(e) >= here - condition.of_events]
            inside = [e for e in inside if events.index(e) > here - condition.of_events]
        return len(before) < condition.n <= len(inside) + 1

    # Matches.

    def matches(self) -> list[tuple[int, tuple[int, int, int], list[tuple[int, int]]]]:
        """Return (time, order, matched); of one time the ends of windows come before events."""
        found = []
        for start, holds in enumerate(self.holds[0]):
            match = self.follow(start) if holds else None
            if match is not None:
                time, place, matched = match
                found.append((time, (place >= 0, place, start), matched))
        return found

    def follow(self, start: int) -> tuple[int, int, list[tuple[int, int]]] | None:
        matched, negatives = [(0, start)], []
        for index, step in enumerate(self.pattern.steps):
            if index == 0:
                continue
            if step.contiguity in (STEP.NOT_FOLLOWED_BY, STEP.NOT_NEXT):
                negatives.append(index)
                continue
            place = self.find(matched, index, negatives)
            if place is None:
                return None
            matched.append((index, place))
            negatives = []
        if negatives:
            return self.ending(matched, negatives)
        return self.events[matched[-1][1]].time, matched[-1][1], matched

    def find(self, matched: list[tuple[int, int]], index: int, negatives: list[int]) -> int | None:
        step, before = self.pattern.steps[index], matched[-1][1]
        for place in range(before + 1, len(self.events)):
            if self.is_out(matched, step.within_ms, self.events[place].time):
                return None
            is_very_next = place == before + 1
            if is_very_next and any(self.negated(n, place, STEP.NOT_NEXT) for n in negatives):
                return None
            if self.holds[index][place]:
                return place
            if step.contiguity == STEP.NEXT or any(self.negated(n, place, STEP.NOT_FOLLOWED_BY) for n in negatives):
                return None
        return None

    def ending(self, matched: list[tuple[int, int]], negatives: list[int]) -> tuple[int, int, list] | None:
        before = matched[-1][1]
        own_ms = max(self.pattern.steps[n].within_ms for n in negatives)
        waits = any(self.pattern.steps[n].contiguity == STEP.NOT_FOLLOWED_BY for n in negatives)
        for place in range(before + 1, len(self.events)):
            if self.is_out(matched, own_ms, self.events[place].time):
                break
            if place == before + 1 and any(self.negated(n, place, STEP.NOT_NEXT) for n in negatives):
                return None
            if any(self.negated(n, place, STEP.NOT_FOLLOWED_BY) for n in negatives):
                return None
            if not waits:
                return self.events[place].time, place, matched
        if not waits:
            return None
        limits = []
        if self.pattern.within_ms:
            limits.append(self.events[matched[0][1]].time + self.pattern.within_ms * MS)
        if own_ms:
            limits.append(self.events[before].time + own_ms * MS)
        end = min(limits)
        if end > self.horizon or (self.wanted.expires and end >= self.wanted.expires):
            return None
        return end, -1, matched

    def negated(self, index: int, place: int, contiguity: int) -> bool:
        return self.pattern.steps[index].contiguity == contiguity and self.holds[index][place]

    def is_out(self, matched: list[tuple[int, int]], step_ms: int, time: int) -> bool:
        first, before = self.events[matched[0][1]].time, self.events[matched[-1][1]].time
        whole_ms = self.pattern.within_ms
        return bool((whole_ms and time >= first + whole_ms * MS) or (step_ms and time >= before + step_ms * MS))


def leaves_of(step: trigger_pb2.PatternStep) -> list[object]:
    kind = step.WhichOneof("condition")
    if kind == "n_of_m":
        return [getattr(c, c.WhichOneof("condition")) for c in step.n_of_m.conditions]
    if kind == "repeat":
        return [getattr(step.repeat.condition, step.repeat.condition.WhichOneof("condition"))]
    return [getattr(step, kind)]


def source_of(leaf: object) -> tuple[str, int]:
    return leaf.ticker, getattr(leaf, "period_seconds", 0)


def crossed(leaf: trigger_pb2.ThresholdCondition, prices: list[Fraction]) -> bool:
    level, now = Fraction(leaf.price), prices[-1]
    sides = [p > level for p in prices[:-1] if p != level]
    if now == level or not sides or sides[-1] == (now > level):
        return False
    return leaf.direction == trigger_pb2.ThresholdCondition.EITHER or (leaf.direction == 0) == (now > level)


def compare(comparison: trigger_pb2.BarCondition.Comparison, bar: Bar) -> bool:
    left = field(bar, comparison.left)
    is_field = comparison.WhichOneof("right") == "field"
    right = field(bar, comparison.field) if is_field else Fraction(comparison.number)
    return left is not None and right is not None and OPERATORS[comparison.operator](left, right)


def field(bar: Bar, number: int) -> Fraction | None:
    if number < 4:
        return Fraction((bar.open, bar.high, bar.low, bar.close)[number], 10**bar.price_decimals)
    if number == 4:
        return None if bar.volume is None else volume(bar)
    return None if bar.trades is None else Fraction(bar.trades)


def price(tick: Tick) -> Fraction:
    return Fraction(tick.price, 10**tick.price_decimals)


def amount(tick: Tick) -> Fraction:
    return Fraction(tick.amount, 10**tick.amount_decimals)


def volume(bar: Bar) -> Fraction:
    return Fraction(bar.volume or 0, 10**bar.volume_decimals)
