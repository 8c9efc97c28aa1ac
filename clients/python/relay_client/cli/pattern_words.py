"""Patterns of triggers in words, on one line; also those that a newer version wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relay.protocol.periods import format_period
from relay.protocol.v1 import trigger_pb2

__all__ = ["pattern_words"]

_Step = trigger_pb2.PatternStep
_Bar = trigger_pb2.BarCondition
_Cross = trigger_pb2.ThresholdCondition

_JOINED: Mapping[int, str] = {
    _Step.FOLLOWED_BY: "then",
    _Step.NEXT: "then next",
    _Step.NOT_FOLLOWED_BY: "then not",
    _Step.NOT_NEXT: "then not next",
}
_CROSSES: Mapping[int, str] = {_Cross.UP: "crosses above", _Cross.DOWN: "crosses below", _Cross.EITHER: "crosses"}
_MOVES: Mapping[int, str] = {_Cross.UP: "rises", _Cross.DOWN: "falls", _Cross.EITHER: "moves"}
_SIGNS: Mapping[int, str] = {
    _Bar.LESS: "<",
    _Bar.LESS_OR_EQUAL: "<=",
    _Bar.EQUAL: "=",
    _Bar.NOT_EQUAL: "!=",
    _Bar.GREATER_OR_EQUAL: ">=",
    _Bar.GREATER: ">",
}
_FIELDS: Mapping[int, str] = {number: name.lower() for name, number in _Bar.Field.items()}


def pattern_words(pattern: trigger_pb2.Pattern) -> str:
    """Return a pattern in words, such as ``X crosses above 50, then Y falls 2.5 % in 10m within 5m``."""
    words = ""
    for index, step in enumerate(pattern.steps):
        joined = f", {_name(_JOINED, step.contiguity)} " if index else ""
        words += joined + _condition(step) + (f" within {_time(step.within_ms)}" if step.within_ms else "")
    if pattern.within_ms:
        words += f"; all within {_time(pattern.within_ms)}"
    if pattern.after_match == trigger_pb2.Pattern.SKIP_PAST_LAST_EVENT:
        words += "; a match ends those that run"
    return words


def _condition(step: trigger_pb2.PatternStep | trigger_pb2.PatternCondition) -> str:
    kind = str(step.WhichOneof("condition"))
    return _KINDS[kind](getattr(step, kind)) if kind in _KINDS else "a condition of a newer version"


def _threshold(threshold: trigger_pb2.ThresholdCondition) -> str:
    return f"{threshold.ticker} {_name(_CROSSES, threshold.direction)} {threshold.price}"


def _move(move: trigger_pb2.MoveCondition) -> str:
    first = " from its first price" if move.reference == trigger_pb2.MoveCondition.FIRST else ""
    return f"{move.ticker} {_name(_MOVES, move.direction)} {move.percent} % in {_time(move.window_ms)}{first}"


def _volume(volume: trigger_pb2.VolumeCondition) -> str:
    span = format_period(volume.period_seconds) if volume.period_seconds else _time(volume.window_ms)
    kind = "bars" if volume.period_seconds else "windows"
    return f"{volume.ticker} {span} volume above {volume.multiple} x the mean of {volume.count} {kind} before"


def _bar(bar: trigger_pb2.BarCondition) -> str:
    told = [
        f"{_name(_FIELDS, c.left)} {_name(_SIGNS, c.operator)} "
        f"{_name(_FIELDS, c.field) if c.WhichOneof('right') == 'field' else c.number}"
        for c in bar.comparisons
    ]
    return f"{bar.ticker} {format_period(bar.period_seconds)} bar with {' and '.join(told)}"


def _silence(silence: trigger_pb2.SilenceCondition) -> str:
    return f"{silence.ticker} silent for {_time(silence.duration_ms)}"


def _n_of(members: trigger_pb2.NOfMCondition) -> str:
    return f"{members.n} of ({'; '.join(map(_condition, members.conditions))}) in {_time(members.window_ms)}"


def _repeat(repeat: trigger_pb2.RepeatCondition) -> str:
    of_last = f" of the last {repeat.of_events}" if repeat.of_events else ""
    in_last = f" in {_time(repeat.window_ms)}" if repeat.window_ms else ""
    return f"{repeat.n} times ({_condition(repeat.condition)}){of_last}{in_last}"


def _name(names: Mapping[int, str], number: int) -> str:
    return names.get(number, f"?{number}")


def _time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1_000)
    return f"{milliseconds}ms" if rest else format_period(seconds)


_KINDS: Mapping[str, Callable[[Any], str]] = {
    "threshold": _threshold,
    "move": _move,
    "volume": _volume,
    "bar": _bar,
    "silence": _silence,
    "n_of_m": _n_of,
    "repeat": _repeat,
}
