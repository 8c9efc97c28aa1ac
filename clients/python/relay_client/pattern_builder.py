"""Builds patterns of triggers.

::

    from relay_client.pattern_builder import CLOSE, OPEN, VOLUME, n_of, when

    BTC, ETH = "BTC/USDT.BINANCE", "ETH/USDT.BINANCE"

    when(BTC).crosses_above("50000")
    when(BTC).crosses_above("50000").then(when(ETH).falls("2.5", in_last="10m")).within("5m")
    when(BTC).bar("1m", CLOSE.above(OPEN), VOLUME.at_least("100")).times(3, of_last=5)
    when(BTC).falls("5", in_last="1h").then_not(when(BTC).rises("1", in_last="5m"), within="15m")
    n_of(2, when(BTC).crosses("50000"), when(ETH).crosses("3000"), in_last="1m")

Everything is immutable: each call returns something new, so that a part can be used in several patterns.
Numbers are text, ``Decimal`` or whole numbers, never ``float``; times are text (``500ms``, ``30s``, ``5m``, ``1h``,
``1d``) or ``timedelta``. Specified in proto/spec/0009.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, SupportsIndex, TypeAlias

from relay.engine.patterns import PatternError, compile_pattern
from relay.errors import PeerError
from relay.protocol.periods import parse_period
from relay.protocol.scaled import plain_text
from relay.protocol.v1 import trigger_pb2

__all__ = [
    "CLOSE",
    "HIGH",
    "LOW",
    "OPEN",
    "TRADES",
    "VOLUME",
    "BarComparison",
    "BarField",
    "Duration",
    "Number",
    "PatternBuilder",
    "PatternError",
    "Subject",
    "milliseconds",
    "n_of",
    "when",
]

Number: TypeAlias = str | Decimal | int
"""An exact number: decimal text, Decimal or a whole number."""
Duration: TypeAlias = str | timedelta
"""A time span: text such as ``5m`` or a timedelta of whole milliseconds."""

_Step = trigger_pb2.PatternStep
_Bar = trigger_pb2.BarCondition
_Cross = trigger_pb2.ThresholdCondition
_Move = trigger_pb2.MoveCondition

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"([1-9][0-9]{0,8})(ms|s|m|h|d|w)", re.ASCII)
_SHOWN_MAX = 80
_DIGITS_MAX = 60
_WHOLE_MAX = 10**_DIGITS_MAX


@dataclass(frozen=True, slots=True)
class BarComparison:
    """A comparison on a bar's numbers, made by a :class:`BarField`."""

    message: trigger_pb2.BarCondition.Comparison


@dataclass(frozen=True, slots=True)
class BarField:
    """A number of a bar, to compare with a number or another field."""

    name: str
    number: trigger_pb2.BarCondition.Field

    def above(self, other: BarField | Number) -> BarComparison:
        """Return ``this > other``."""
        return self._compared(_Bar.GREATER, other)

    def at_least(self, other: BarField | Number) -> BarComparison:
        """Return ``this >= other``."""
        return self._compared(_Bar.GREATER_OR_EQUAL, other)

    def below(self, other: BarField | Number) -> BarComparison:
        """Return ``this < other``."""
        return self._compared(_Bar.LESS, other)

    def at_most(self, other: BarField | Number) -> BarComparison:
        """Return ``this <= other``."""
        return self._compared(_Bar.LESS_OR_EQUAL, other)

    def equals(self, other: BarField | Number) -> BarComparison:
        """Return ``this = other``, exactly."""
        return self._compared(_Bar.EQUAL, other)

    def differs_from(self, other: BarField | Number) -> BarComparison:
        """Return ``this != other``, exactly."""
        return self._compared(_Bar.NOT_EQUAL, other)

    def _compared(self, how: trigger_pb2.BarCondition.Operator, other: BarField | Number) -> BarComparison:
        if isinstance(other, BarField):
            return BarComparison(_Bar.Comparison(left=self.number, operator=how, field=other.number))
        number = _number(f"{self.name} compared with", other)
        return BarComparison(_Bar.Comparison(left=self.number, operator=how, number=number))


OPEN = BarField("OPEN", _Bar.OPEN)
HIGH = BarField("HIGH", _Bar.HIGH)
LOW = BarField("LOW", _Bar.LOW)
CLOSE = BarField("CLOSE", _Bar.CLOSE)
VOLUME = BarField("VOLUME", _Bar.VOLUME)
TRADES = BarField("TRADES", _Bar.TRADES)


@dataclass(frozen=True, slots=True)
class PatternBuilder:
    """One condition, or a sequence of them. Joining methods take single conditions, made by :func:`when` or n_of.

    Attributes:
        steps: serialised steps, so that nobody changes them.
        within_ms: window of the whole pattern; 0 for none.
        skips_past_last: whether a match ends everything that began before its last event.
    """

    steps: tuple[bytes, ...]
    within_ms: int = 0
    skips_past_last: bool = False

    def then(self, condition: PatternBuilder, *, within: Duration | None = None) -> PatternBuilder:
        """Add an event that comes later; whatever lies between is passed over (FOLLOWED_BY).

        Args:
            condition: the event.
            within: it comes less than this after the event before.
        """
        return self._joined("then", condition, _Step.FOLLOWED_BY, within)

    def then_next(self, condition: PatternBuilder, *, within: Duration | None = None) -> PatternBuilder:
        """Add an event that is the very next of all events the pattern looks at (NEXT); arguments as of ``then``."""
        return self._joined("then_next", condition, _Step.NEXT, within)

    def then_not(self, condition: PatternBuilder, *, within: Duration | None = None) -> PatternBuilder:
        """Add what must not come before the next step, or before a window ends when no step follows (NOT_FOLLOWED_BY).

        Args:
            condition: what must not come.
            within: window of a negation at the end, from the event before; else the pattern's own counts.
        """
        return self._joined("then_not", condition, _Step.NOT_FOLLOWED_BY, within)

    def then_not_next(self, condition: PatternBuilder, *, within: Duration | None = None) -> PatternBuilder:
        """Add what the very next event must not be (NOT_NEXT).

        Args:
            condition: what must not come.
            within: at the end of a pattern, the next event comes less than this after the event before.
        """
        return self._joined("then_not_next", condition, _Step.NOT_NEXT, within)

    def times(self, n: int, *, of_last: int | None = None, in_last: Duration | None = None) -> PatternBuilder:
        """Return a condition that holds when this one has matched n times.

        Args:
            n: how often.
            of_last: among so many last events of its ticker (or bars of its period).
            in_last: inside this time. At least one of the two is needed.
        """
        repeat = trigger_pb2.RepeatCondition(
            n=_count("n", n),
            condition=_leaf("times", self),
            of_events=0 if of_last is None else _count("of_last", of_last),
            window_ms=0 if in_last is None else milliseconds("in_last", in_last),
        )
        return _condition(_Step(repeat=repeat))

    def within(self, duration: Duration) -> PatternBuilder:
        """Return the pattern with a window: its last event comes less than this after its first."""
        return replace(self, within_ms=milliseconds("within", duration))

    def skip_past_last_event(self) -> PatternBuilder:
        """Return the pattern with the rule that a match ends everything that began at or before its last event."""
        return replace(self, skips_past_last=True)

    def build(self) -> trigger_pb2.Pattern:
        """Return the checked pattern.

        Raises:
            PatternError: INVALID_PATTERN, with the place (``steps[1].threshold.price``) and the reason.
        """
        after_match = trigger_pb2.Pattern.SKIP_PAST_LAST_EVENT if self.skips_past_last else trigger_pb2.Pattern.NO_SKIP
        steps = [_Step.FromString(step) for step in self.steps]
        pattern = trigger_pb2.Pattern(steps=steps, within_ms=self.within_ms, after_match=after_match)
        compile_pattern(pattern)
        return pattern

    def _joined(
        self, method: str, condition: PatternBuilder, how: trigger_pb2.PatternStep.Contiguity, within: Duration | None
    ) -> PatternBuilder:
        step = _single(method, condition)
        step.contiguity = how
        step.within_ms = 0 if within is None else milliseconds("within", within)
        return replace(self, steps=(*self.steps, step.SerializeToString(deterministic=True)))


@dataclass(frozen=True, slots=True)
class Subject:
    """A ticker, about which a condition is said."""

    ticker: str

    def crosses_above(self, price: Number) -> PatternBuilder:
        """Return: the price goes from below a level to above it; touching it is no crossing."""
        return self._crosses("crosses_above", price, _Cross.UP)

    def crosses_below(self, price: Number) -> PatternBuilder:
        """Return: the price goes from above a level to below it."""
        return self._crosses("crosses_below", price, _Cross.DOWN)

    def crosses(self, price: Number) -> PatternBuilder:
        """Return: the price goes from one side of a level to the other."""
        return self._crosses("crosses", price, _Cross.EITHER)

    def rises(self, percent: Number, *, in_last: Duration, from_first: bool = False) -> PatternBuilder:
        """Return: the price has come to be a percentage above the lowest one of a window.

        Args:
            percent: for example ``"2.5"``; at most 6 decimals.
            in_last: length of the window, up to a day.
            from_first: measure from the oldest price of the window instead.
        """
        return self._moves("rises", percent, in_last, _Cross.UP, from_first)

    def falls(self, percent: Number, *, in_last: Duration, from_first: bool = False) -> PatternBuilder:
        """Return: the price has come to be a percentage below the highest one of a window; arguments as ``rises``."""
        return self._moves("falls", percent, in_last, _Cross.DOWN, from_first)

    def moves(self, percent: Number, *, in_last: Duration, from_first: bool = False) -> PatternBuilder:
        """Return: it rises or falls by a percentage; arguments as of ``rises``."""
        return self._moves("moves", percent, in_last, _Cross.EITHER, from_first)

    def volume_above(
        self, multiple: Number, *, average_of: int, period: str | int | None = None, window: Duration | None = None
    ) -> PatternBuilder:
        """Return: the volume is above a multiple of its moving average.

        Args:
            multiple: for example ``"3"``; at most 6 decimals.
            average_of: how many bars, or windows, before it are averaged.
            period: compare final bars of this period.
            window: or compare the amount of the last ticks of this time with that of such times before it.
        """
        condition = trigger_pb2.VolumeCondition(
            ticker=self.ticker,
            multiple=_number("volume_above", multiple),
            period_seconds=0 if period is None else _period("volume_above", period),
            window_ms=0 if window is None else milliseconds("window", window),
            count=_count("average_of", average_of),
        )
        return _condition(_Step(volume=condition))

    def bar(self, period: str | int, *comparisons: BarComparison) -> PatternBuilder:
        """Return: a final bar of a period fulfils every comparison, for example ``CLOSE.above(OPEN)``."""
        for comparison in comparisons:
            if not isinstance(comparison, BarComparison):
                raise PatternError("bar", f"expected comparisons such as CLOSE.above(OPEN), got {_shown(comparison)}")
        condition = _Bar(
            ticker=self.ticker, period_seconds=_period("bar", period), comparisons=[c.message for c in comparisons]
        )
        return _condition(_Step(bar=condition))

    def silent_for(self, duration: Duration) -> PatternBuilder:
        """Return: nothing was traded for a time, by the ticker's own time mark."""
        condition = trigger_pb2.SilenceCondition(ticker=self.ticker, duration_ms=milliseconds("silent_for", duration))
        return _condition(_Step(silence=condition))

    def _crosses(
        self, method: str, price: Number, direction: trigger_pb2.ThresholdCondition.Direction
    ) -> PatternBuilder:
        return _condition(
            _Step(threshold=_Cross(ticker=self.ticker, price=_number(method, price), direction=direction))
        )

    def _moves(
        self,
        method: str,
        percent: Number,
        in_last: Duration,
        direction: trigger_pb2.ThresholdCondition.Direction,
        from_first: bool,
    ) -> PatternBuilder:
        condition = _Move(
            ticker=self.ticker,
            percent=_number(method, percent),
            window_ms=milliseconds("in_last", in_last),
            direction=direction,
            reference=_Move.FIRST if from_first else _Move.EXTREME,
        )
        return _condition(_Step(move=condition))


def when(ticker: str) -> Subject:
    """Return a ticker, to say a condition about: ``when("BTC/USDT.BINANCE").crosses_above("50000")``."""
    return Subject(_text("when", ticker))


def n_of(n: int, *conditions: PatternBuilder, in_last: Duration) -> PatternBuilder:
    """Return a condition that holds when n different ones of some conditions have matched inside a time."""
    message = trigger_pb2.NOfMCondition(
        n=_count("n", n),
        conditions=[_leaf("n_of", condition) for condition in conditions],
        window_ms=milliseconds("in_last", in_last),
    )
    return _condition(_Step(n_of_m=message))


def _condition(step: trigger_pb2.PatternStep) -> PatternBuilder:
    return PatternBuilder((step.SerializeToString(deterministic=True),))


def _single(method: str, condition: Any) -> trigger_pb2.PatternStep:
    is_builder = isinstance(condition, PatternBuilder)
    if not is_builder or len(condition.steps) != 1 or condition.within_ms or condition.skips_past_last:
        got = "a sequence or window; add its steps one by one" if is_builder else _shown(condition)
        raise PatternError(method, f"expected one condition such as when(TICKER).crosses_above(PRICE), got {got}")
    return _Step.FromString(condition.steps[0])


def _leaf(method: str, condition: Any) -> trigger_pb2.PatternCondition:
    step = _single(method, condition)
    kind = step.WhichOneof("condition")
    if kind in ("n_of_m", "repeat"):
        raise PatternError(method, "expected a condition on one ticker: n_of and times do not nest")
    leaf = trigger_pb2.PatternCondition()
    getattr(leaf, str(kind)).CopyFrom(getattr(step, str(kind)))
    return leaf


def _number(method: str, value: Any) -> str:
    """Return an exact number as text; what it may be is checked when the pattern is built."""
    if isinstance(value, str):
        return _text(method, value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) <= _DIGITS_MAX:
        return plain_text(value)
    if isinstance(value, SupportsIndex) and not isinstance(value, bool) and abs(operator.index(value)) < _WHOLE_MAX:
        return str(operator.index(value))
    advice = '; a float is not exact: write it as text, for example "0.1"' if isinstance(value, float) else ""
    raise PatternError(method, f"expected a number as text, Decimal or whole number, got {_shown(value)}{advice}")


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise PatternError(name, f"expected text in Unicode, got {_shown(value)}") from error
        return str(value)
    raise PatternError(name, f"expected text, got {_shown(value)}")


def _period(name: str, value: Any) -> int:
    if isinstance(value, str | int):
        try:
            return parse_period(value)
        except PeerError as error:
            raise PatternError(name, str(error)) from error
    raise PatternError(name, f"expected a period such as 1m or whole seconds, got {_shown(value)}")


def _count(name: str, value: Any) -> int:
    if isinstance(value, SupportsIndex) and not isinstance(value, bool) and 0 <= operator.index(value) < 1 << 32:
        return operator.index(value)
    raise PatternError(name, f"expected a whole number, got {_shown(value)}")


def milliseconds(name: str, value: Any) -> int:
    """Return a duration in whole milliseconds."""
    if isinstance(value, timedelta):
        whole, rest = divmod(value, timedelta(milliseconds=1))
        if whole > 0 and not rest:
            return whole
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        return int(match[1]) * _UNITS_MS[match[2]]
    raise PatternError(
        name, f"expected a time such as 500ms, 30s, 5m, 1h or a timedelta of whole milliseconds, got {_shown(value)}"
    )


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {ascii(value)[:_SHOWN_MAX]}"
