"""Checks a pattern and compiles it: what a manager refuses at registration, what a client builds, what a job matches.

Pure, and bounded before anything is made: a pattern that passes needs little memory, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from relay.engine.pattern_conditions import ConditionTable
from relay.engine.pattern_fields import PatternError, choice, duration_ns
from relay.engine.pattern_values import COOLDOWN_MS_MAX, STEPS_MAX, WINDOW_MS_MAX, CompiledPattern, Source, Stage, Tail
from relay.errors import PeerError
from relay.protocol.times import check_time_ns
from relay.protocol.v1 import trigger_pb2

__all__ = ["CompiledPattern", "PatternError", "check_registration", "compile_pattern"]


class _Contiguity(IntEnum):
    FOLLOWED_BY = 0
    NEXT = 1
    NOT_FOLLOWED_BY = 2
    NOT_NEXT = 3

    @property
    def is_negative(self) -> bool:
        return self >= _Contiguity.NOT_FOLLOWED_BY


class _AfterMatch(IntEnum):
    NO_SKIP = 0
    SKIP_PAST_LAST_EVENT = 1


@dataclass(frozen=True, slots=True)
class _Step:
    """A step as it was read: its number, how it is joined, the mask of its condition, its window."""

    index: int
    contiguity: _Contiguity
    mask: int
    within_ns: int

    @property
    def place(self) -> str:
        return f"steps[{self.index}]"


def check_registration(request: trigger_pb2.CEPTriggerRequest) -> CompiledPattern:
    """Check what a REGISTER says about its pattern, cooldown and expiry; ids are the caller's business.

    Raises:
        PatternError: INVALID_PATTERN, with the place and the reason.
    """
    duration_ns("cooldown_ms", request.cooldown_ms, max_ms=COOLDOWN_MS_MAX, is_optional=True)
    if request.expires_at:
        try:
            check_time_ns(request.expires_at, what="expires_at")
        except PeerError as error:
            raise PatternError("expires_at", str(error)) from error
    return compile_pattern(request.pattern)


def compile_pattern(pattern: trigger_pb2.Pattern) -> CompiledPattern:
    """Check a pattern and return it in the form that the matcher reads.

    Raises:
        PatternError: INVALID_PATTERN; ``place`` is as ``steps[1].threshold.price``.

    Specified in proto/spec/0009.
    """
    count = len(pattern.steps)
    if not 1 <= count <= STEPS_MAX:
        raise PatternError("steps", f"expected 1 to {STEPS_MAX} steps, got {count}")
    within_ns = duration_ns("within_ms", pattern.within_ms, max_ms=WINDOW_MS_MAX, is_optional=True)
    after_match = choice("after_match", _AfterMatch, pattern.after_match)
    table = ConditionTable()
    steps = [_read(index, step, table) for index, step in enumerate(pattern.steps)]
    stages, ending = _joined(steps, table)
    return CompiledPattern(
        conditions=table.conditions,
        stages=tuple(stages),
        tail=_tail(ending, table, within_ns) if ending else None,
        within_ns=within_ns,
        skips_past_last=after_match is _AfterMatch.SKIP_PAST_LAST_EVENT,
        sources=table.sources(),
    )


def _read(index: int, step: trigger_pb2.PatternStep, table: ConditionTable) -> _Step:
    place = f"steps[{index}]"
    contiguity = choice(f"{place}.contiguity", _Contiguity, step.contiguity)
    within_ns = duration_ns(f"{place}.within_ms", step.within_ms, max_ms=WINDOW_MS_MAX, is_optional=True)
    if index == 0 and contiguity is not _Contiguity.FOLLOWED_BY:
        raise PatternError(
            f"{place}.contiguity",
            f"expected FOLLOWED_BY at the first step, got {contiguity.name}: there is no event before it",
        )
    if index == 0 and within_ns:
        raise PatternError(
            f"{place}.within_ms",
            "expected 0 at the first step: there is no event before it; use the pattern's within_ms",
        )
    return _Step(index, contiguity, 1 << table.add_step(place, step), within_ns)


def _joined(steps: Sequence[_Step], table: ConditionTable) -> tuple[list[Stage], list[_Step]]:
    """Return the events of a match, and the negations after the last of them."""
    stages: list[Stage] = []
    waiting: list[_Step] = []
    for step in steps:
        if step.contiguity.is_negative:
            waiting.append(step)
            continue
        for negation in waiting:
            _check_inner(negation, step)
        is_next = step.contiguity is _Contiguity.NEXT
        not_next, not_between = _masks(waiting)
        stages.append(
            Stage(
                step=step.index,
                signals=step.mask,
                is_next=is_next,
                not_next=not_next,
                not_between=not_between,
                within_ns=step.within_ns,
                absent=_claimed(table, is_strict=is_next or not_next != 0, not_between=not_between),
            )
        )
        waiting = []
    return stages, waiting


def _check_inner(negation: _Step, following: _Step) -> None:
    if negation.within_ns:
        raise PatternError(
            f"{negation.place}.within_ms",
            f"expected 0: the negation ends where {following.place} matches; only one at the end has a window",
        )
    if negation.contiguity is _Contiguity.NOT_FOLLOWED_BY and following.contiguity is _Contiguity.NEXT:
        raise PatternError(
            f"{following.place}.contiguity",
            f"expected FOLLOWED_BY after the NOT_FOLLOWED_BY of {negation.place}, got NEXT: "
            "nothing can lie before the very next event",
        )


def _tail(ending: Sequence[_Step], table: ConditionTable, pattern_ns: int) -> Tail:
    windows = {step.within_ns for step in ending if step.within_ns}
    if len(windows) > 1:
        raise PatternError(
            f"{ending[-1].place}.within_ms", "expected one window for all negations at the end, got different ones"
        )
    within_ns = windows.pop() if windows else 0
    not_next, not_between = _masks(ending)
    if not_between and not (within_ns or pattern_ns):
        raise PatternError(
            f"{ending[-1].place}.within_ms",
            "expected a window: a pattern that ends with NOT_FOLLOWED_BY is matched when the window is over; "
            "set it here or as the pattern's within_ms",
        )
    absent = _claimed(table, is_strict=not_next != 0, not_between=not_between)
    return Tail(ending[-1].index, not_next, not_between, within_ns, absent)


def _masks(negations: Sequence[_Step]) -> tuple[int, int]:
    not_next = not_between = 0
    for step in negations:
        if step.contiguity is _Contiguity.NOT_NEXT:
            not_next |= step.mask
        else:
            not_between |= step.mask
    return not_next, not_between


def _claimed(table: ConditionTable, *, is_strict: bool, not_between: int) -> tuple[Source, ...]:
    """Return the sources of which a step claims that something did not happen."""
    return table.sources() if is_strict else table.sources(not_between)
