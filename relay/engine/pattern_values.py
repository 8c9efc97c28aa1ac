"""A pattern as the matcher reads it: immutable, whole numbers only, every condition once.

A *signal* is one condition's number; sets of signals are bit masks. Leaves look at the events of one source, derived
conditions count what leaves say. Prices, amounts and counts of trades are compared in units of ``10^-EXACT_DECIMALS``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from relay.protocol.scaled import DECIMALS_MAX

__all__ = [
    "COMPARISONS_MAX",
    "CONDITIONS_MAX",
    "COOLDOWN_MS_MAX",
    "EXACT_DECIMALS",
    "LEVEL_DECIMALS",
    "LEVEL_DIGITS",
    "MEMBERS_MAX",
    "MULTIPLE_MAX",
    "NS_PER_MS",
    "PERCENT_MAX",
    "RATIO_DECIMALS",
    "REPEATS_MAX",
    "REPEAT_EVENTS_MAX",
    "SILENCE_MS_MAX",
    "SOURCES_MAX",
    "STEPS_MAX",
    "TICK_REACH_MS_MAX",
    "VOLUME_COUNT_MAX",
    "WINDOW_MS_MAX",
    "BarSurge",
    "BarTest",
    "Comparison",
    "CompiledPattern",
    "Condition",
    "Cross",
    "Derived",
    "Direction",
    "Field",
    "Leaf",
    "Move",
    "NOfM",
    "Operator",
    "Reference",
    "Repeat",
    "Silence",
    "Source",
    "Stage",
    "Tail",
    "TickSurge",
]

EXACT_DECIMALS = DECIMALS_MAX
"""Scale at which every price and amount of the wire is a whole number."""
RATIO_DECIMALS = 6
"""Decimals of a percentage and of a multiple."""
LEVEL_DECIMALS, LEVEL_DIGITS = 18, 20
"""Decimals and digits before the point of a level, as of stored numbers."""
NS_PER_MS = 1_000_000

_DAY_MS = 86_400_000
STEPS_MAX = 16
MEMBERS_MAX = 16
CONDITIONS_MAX = 48
COMPARISONS_MAX = 16
SOURCES_MAX = 8
WINDOW_MS_MAX = 31 * _DAY_MS
SILENCE_MS_MAX = 31 * _DAY_MS
TICK_REACH_MS_MAX = _DAY_MS
"""How far back ticks are kept for a window; longer ones are asked of bars."""
VOLUME_COUNT_MAX = 1_000
REPEATS_MAX = 1_000
REPEAT_EVENTS_MAX = 1_000_000
COOLDOWN_MS_MAX = 366 * _DAY_MS
PERCENT_MAX = 1_000_000
MULTIPLE_MAX = 1_000_000

assert LEVEL_DECIMALS <= EXACT_DECIMALS  # noqa: S101 - limits that hang together
assert TICK_REACH_MS_MAX <= WINDOW_MS_MAX  # noqa: S101
assert STEPS_MAX <= CONDITIONS_MAX  # noqa: S101


class Source(NamedTuple):
    """Where events come from: a ticker's ticks (period 0), or its final bars of a period in seconds."""

    ticker: str
    period_seconds: int


class Direction(IntEnum):
    """Which way a price goes; numbers of the wire."""

    UP = 0
    DOWN = 1
    EITHER = 2


class Reference(IntEnum):
    """What a move is measured from; numbers of the wire."""

    EXTREME = 0
    FIRST = 1


class Field(IntEnum):
    """A bar's number; numbers of the wire."""

    OPEN = 0
    HIGH = 1
    LOW = 2
    CLOSE = 3
    VOLUME = 4
    TRADES = 5


class Operator(IntEnum):
    """How two numbers are compared; numbers of the wire."""

    LESS = 0
    LESS_OR_EQUAL = 1
    EQUAL = 2
    NOT_EQUAL = 3
    GREATER_OR_EQUAL = 4
    GREATER = 5


@dataclass(frozen=True, slots=True)
class Cross:
    """The price goes through a level (units of ``10^-EXACT_DECIMALS``)."""

    source: Source
    level: int
    direction: Direction


@dataclass(frozen=True, slots=True)
class Move:
    """The price has come to have moved by a percentage (units of ``10^-RATIO_DECIMALS`` percent)."""

    source: Source
    percent: int
    window_ns: int
    direction: Direction
    reference: Reference


@dataclass(frozen=True, slots=True)
class TickSurge:
    """The amount of a window has come above a multiple (``10^-RATIO_DECIMALS``) of the windows before it."""

    source: Source
    multiple: int
    window_ns: int
    count: int


@dataclass(frozen=True, slots=True)
class BarSurge:
    """A bar's volume is above a multiple (``10^-RATIO_DECIMALS``) of the mean of the bars before it."""

    source: Source
    multiple: int
    count: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A bar's field against a number (units of ``10^-EXACT_DECIMALS``) or another field."""

    left: Field
    operator: Operator
    right: int | Field


@dataclass(frozen=True, slots=True)
class BarTest:
    """A bar fulfils every comparison."""

    source: Source
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class Silence:
    """No tick of the source for a time."""

    source: Source
    duration_ns: int


Leaf = Cross | Move | TickSurge | BarSurge | BarTest | Silence


@dataclass(frozen=True, slots=True)
class NOfM:
    """So many different ones of the member signals have matched inside a window."""

    n: int
    members: tuple[int, ...]
    window_ns: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """The member signal has matched so many times.

    Attributes:
        member: a leaf's signal.
        of_events: among so many last events of its source; 0 for any number.
        window_ns: inside a window; 0 for any time.
    """

    n: int
    member: int
    of_events: int
    window_ns: int


Derived = NOfM | Repeat
Condition = Leaf | Derived


@dataclass(frozen=True, slots=True)
class Stage:
    """An event that a match consists of, and what may not lie before it.

    Attributes:
        step: number of its step.
        signals: mask of what it waits for.
        is_next: only the very next event will do.
        not_next: mask of what the very next event must not be.
        not_between: mask of what must not come before it.
        within_ns: it comes less than this after the event before; 0 for no limit.
        absent: sources of which it is claimed that something did not happen.
    """

    step: int
    signals: int
    is_next: bool = False
    not_next: int = 0
    not_between: int = 0
    within_ns: int = 0
    absent: tuple[Source, ...] = ()

    @property
    def is_strict(self) -> bool:
        """Whether it matters which event is the very next."""
        return self.is_next or self.not_next != 0


@dataclass(frozen=True, slots=True)
class Tail:
    """What must not come after the last matched event.

    With ``not_between`` the match is complete when the window ends, else with the next event.
    """

    step: int
    not_next: int
    not_between: int
    within_ns: int
    absent: tuple[Source, ...]

    @property
    def is_strict(self) -> bool:
        """Whether it matters which event is the very next."""
        return self.not_next != 0


@dataclass(frozen=True, slots=True)
class CompiledPattern:
    """A checked pattern.

    Attributes:
        conditions: each once, the members of a derived one before it; a signal is the place in here.
        stages: events of a match, in order; at least one.
        tail: negation at the end, or None.
        within_ns: the last event comes less than this after the first; 0 for no limit.
        skips_past_last: a match ends everything that began at or before its last event.
        sources: all sources that the leaves look at, sorted.
    """

    conditions: tuple[Condition, ...]
    stages: tuple[Stage, ...]
    tail: Tail | None
    within_ns: int
    skips_past_last: bool
    sources: tuple[Source, ...]

    @property
    def is_strict(self) -> bool:
        """Whether it matters for any step which event is the very next."""
        return any(stage.is_strict for stage in self.stages) or (self.tail is not None and self.tail.is_strict)

    @property
    def tickers(self) -> tuple[str, ...]:
        """All tickers, sorted: what a manager has to keep running for it."""
        return tuple(sorted({source.ticker for source in self.sources}))
