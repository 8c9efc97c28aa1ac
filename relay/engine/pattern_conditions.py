"""Reads the conditions of a pattern into a table, each once."""

from __future__ import annotations

from relay.engine.pattern_fields import PatternError, choice, duration_ns, period, ticker, units, whole
from relay.engine.pattern_values import (
    COMPARISONS_MAX,
    CONDITIONS_MAX,
    EXACT_DECIMALS,
    MEMBERS_MAX,
    MULTIPLE_MAX,
    PERCENT_MAX,
    RATIO_DECIMALS,
    REPEAT_EVENTS_MAX,
    REPEATS_MAX,
    SILENCE_MS_MAX,
    SOURCES_MAX,
    TICK_REACH_MS_MAX,
    VOLUME_COUNT_MAX,
    WINDOW_MS_MAX,
    BarSurge,
    BarTest,
    Comparison,
    Condition,
    Cross,
    Direction,
    Field,
    Leaf,
    Move,
    NOfM,
    Operator,
    Reference,
    Repeat,
    Silence,
    Source,
    TickSurge,
)
from relay.protocol.v1 import trigger_pb2

__all__ = ["ConditionTable"]

_HOLDERS = trigger_pb2.PatternStep | trigger_pb2.PatternCondition
_FALL_PERCENT_MAX = 100


class ConditionTable:
    """Conditions by signal, in the order in which they were met."""

    def __init__(self) -> None:
        self._signals: dict[Condition, int] = {}

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions; a signal is the place in here."""
        return tuple(self._signals)

    def sources(self, mask: int = -1) -> tuple[Source, ...]:
        """Return the sources that the signals of a mask look at, sorted."""
        found: set[Source] = set()
        conditions = self.conditions
        for signal, condition in enumerate(conditions):
            if mask >> signal & 1:
                match condition:
                    case NOfM(members=members):
                        found.update(self.sources(sum(1 << member for member in members)))
                    case Repeat(member=member):
                        found.update(self.sources(1 << member))
                    case _:
                        found.add(condition.source)
        return tuple(sorted(found))

    def add_step(self, place: str, step: trigger_pb2.PatternStep) -> int:
        """Read a step's condition; return its signal.

        Raises:
            PatternError: it is wrong, or one too many.
        """
        kind = step.WhichOneof("condition")
        if kind == "n_of_m":
            return self._add(f"{place}.n_of_m", self._n_of_m(f"{place}.n_of_m", step.n_of_m))
        if kind == "repeat":
            return self._add(f"{place}.repeat", self._repeat(f"{place}.repeat", step.repeat))
        return self._add(place, _leaf(place, step))

    def _add(self, place: str, condition: Condition) -> int:
        signal = self._signals.setdefault(condition, len(self._signals))
        if len(self._signals) > CONDITIONS_MAX:
            raise PatternError(place, f"expected at most {CONDITIONS_MAX} different conditions; make several triggers")
        if signal == len(self._signals) - 1 and len(self.sources()) > SOURCES_MAX:
            raise PatternError(
                place, f"expected at most {SOURCES_MAX} sources (ticks of a ticker, or its bars of a period) together"
            )
        return signal

    def _n_of_m(self, place: str, condition: trigger_pb2.NOfMCondition) -> NOfM:
        count = whole(f"{place}.conditions", len(condition.conditions), low=1, high=MEMBERS_MAX)
        n = whole(f"{place}.n", condition.n, low=1, high=count)
        window_ns = duration_ns(f"{place}.window_ms", condition.window_ms, max_ms=WINDOW_MS_MAX)
        members: list[int] = []
        for index, member in enumerate(condition.conditions):
            where = f"{place}.conditions[{index}]"
            signal = self._add(where, _leaf(where, member))
            if signal in members:
                raise PatternError(where, f"expected different conditions, got that of {place}.conditions twice")
            members.append(signal)
        return NOfM(n, tuple(members), window_ns)

    def _repeat(self, place: str, condition: trigger_pb2.RepeatCondition) -> Repeat:
        n = whole(f"{place}.n", condition.n, low=1, high=REPEATS_MAX)
        of_events = whole(f"{place}.of_events", condition.of_events, low=0, high=REPEAT_EVENTS_MAX)
        window_ns = duration_ns(f"{place}.window_ms", condition.window_ms, max_ms=WINDOW_MS_MAX, is_optional=True)
        leaf = _leaf(f"{place}.condition", condition.condition)
        if not (of_events or window_ns):
            raise PatternError(place, "expected of_events or window_ms (or both): else it counts for ever")
        if of_events and of_events < n:
            raise PatternError(f"{place}.of_events", f"expected at least n = {n}, got {of_events}")
        if of_events and isinstance(leaf, Silence):
            raise PatternError(f"{place}.of_events", "expected 0: a silence is no event of its ticker; use window_ms")
        return Repeat(n, self._add(f"{place}.condition", leaf), of_events, window_ns)


def _leaf(place: str, holder: _HOLDERS) -> Leaf:
    match holder.WhichOneof("condition"):
        case "threshold":
            return _cross(f"{place}.threshold", holder.threshold)
        case "move":
            return _move(f"{place}.move", holder.move)
        case "volume":
            return _volume(f"{place}.volume", holder.volume)
        case "bar":
            return _bar(f"{place}.bar", holder.bar)
        case "silence":
            duration = duration_ns(f"{place}.silence.duration_ms", holder.silence.duration_ms, max_ms=SILENCE_MS_MAX)
            return Silence(Source(ticker(f"{place}.silence.ticker", holder.silence.ticker), 0), duration)
        case _:
            raise PatternError(
                place, "expected a condition: threshold, move, volume, bar or silence (of a step also n_of_m, repeat)"
            )


def _cross(place: str, condition: trigger_pb2.ThresholdCondition) -> Cross:
    source = Source(ticker(f"{place}.ticker", condition.ticker), 0)
    level = units(f"{place}.price", condition.price, scale=EXACT_DECIMALS)
    return Cross(source, level, choice(f"{place}.direction", Direction, condition.direction))


def _move(place: str, condition: trigger_pb2.MoveCondition) -> Move:
    source = Source(ticker(f"{place}.ticker", condition.ticker), 0)
    direction = choice(f"{place}.direction", Direction, condition.direction)
    percent = units(
        f"{place}.percent",
        condition.percent,
        decimals=RATIO_DECIMALS,
        scale=RATIO_DECIMALS,
        positive_max=_FALL_PERCENT_MAX if direction is Direction.DOWN else PERCENT_MAX,
    )
    window_ns = duration_ns(f"{place}.window_ms", condition.window_ms, max_ms=TICK_REACH_MS_MAX)
    reference = choice(f"{place}.reference", Reference, condition.reference)
    return Move(source, percent, window_ns, direction, reference)


def _volume(place: str, condition: trigger_pb2.VolumeCondition) -> BarSurge | TickSurge:
    name = ticker(f"{place}.ticker", condition.ticker)
    multiple = units(
        f"{place}.multiple",
        condition.multiple,
        decimals=RATIO_DECIMALS,
        scale=RATIO_DECIMALS,
        positive_max=MULTIPLE_MAX,
    )
    count = whole(f"{place}.count", condition.count, low=1, high=VOLUME_COUNT_MAX)
    if bool(condition.period_seconds) == bool(condition.window_ms):
        raise PatternError(place, "expected one of period_seconds (bars) and window_ms (ticks), got both or neither")
    if condition.period_seconds:
        return BarSurge(Source(name, period(f"{place}.period_seconds", condition.period_seconds)), multiple, count)
    window_ns = duration_ns(f"{place}.window_ms", condition.window_ms, max_ms=TICK_REACH_MS_MAX)
    if condition.window_ms * (count + 1) > TICK_REACH_MS_MAX:
        raise PatternError(
            f"{place}.count",
            f"expected (count + 1) x window_ms up to {TICK_REACH_MS_MAX}, got {condition.window_ms * (count + 1)}; "
            "compare bars for longer averages",
        )
    return TickSurge(Source(name, 0), multiple, window_ns, count)


def _bar(place: str, condition: trigger_pb2.BarCondition) -> BarTest:
    source = Source(
        ticker(f"{place}.ticker", condition.ticker), period(f"{place}.period_seconds", condition.period_seconds)
    )
    whole(f"{place}.comparisons", len(condition.comparisons), low=1, high=COMPARISONS_MAX)
    comparisons = [_comparison(f"{place}.comparisons[{i}]", c) for i, c in enumerate(condition.comparisons)]
    return BarTest(source, tuple(comparisons))


def _comparison(place: str, comparison: trigger_pb2.BarCondition.Comparison) -> Comparison:
    left = choice(f"{place}.left", Field, comparison.left)
    operator = choice(f"{place}.operator", Operator, comparison.operator)
    right: int | Field
    match comparison.WhichOneof("right"):
        case "number":
            right = units(f"{place}.number", comparison.number, scale=EXACT_DECIMALS)
        case "field":
            right = choice(f"{place}.field", Field, comparison.field)
            if right is left:
                raise PatternError(
                    f"{place}.field", f"expected another field than {left.name}: it always equals itself"
                )
        case _:
            raise PatternError(place, "expected a number or a field to compare with, got neither")
    return Comparison(left, operator, right)
