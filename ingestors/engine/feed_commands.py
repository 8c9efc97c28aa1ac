"""What a ticker's feed asks its driver to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from ingestors.engine.feed_holes import Hole
from ingestors.engine.feed_values import LiveTrade, LostCause

__all__ = ["Emit", "EmitGap", "FeedCommand", "FeedRules", "FeedState", "Fill", "GapState"]

_MS = 1_000_000


class FeedState(Enum):
    """State of a ticker's connection; the names are those of the wire."""

    UP = "UP"
    CONNECTING = "CONNECTING"
    MUTE = "MUTE"
    DOWN = "DOWN"


class GapState(Enum):
    """Life of a gap; the names are those of the wire."""

    OPEN = "OPEN"
    FILLED = "FILLED"
    UNFILLABLE = "UNFILLABLE"


@dataclass(frozen=True, slots=True)
class FeedRules:
    """Bounds of one feed; times in nanoseconds.

    Attributes:
        hold_ns: how long a hole in the ids may hold the later trades up.
        held_max: trades held at most; over it the hole is declared at once.
        fill_trades_max: a larger hole is not filled but said to be UNFILLABLE.
        fill_deadline_ns: after it a hole that could not be fetched is UNFILLABLE.
        retry_ns, retry_max_ns: wait after a failed fetch, doubled each time.
        look_ns: so long after a reconnect without a trade the exchange is asked for what was missed.
        quiet_ns: how far behind the newest frame of its connection a silent ticker's time is said to be.
    """

    hold_ns: int = 50 * _MS
    held_max: int = 10_000
    fill_trades_max: int = 500_000
    fill_deadline_ns: int = 600_000 * _MS
    retry_ns: int = 1_000 * _MS
    retry_max_ns: int = 30_000 * _MS
    look_ns: int = 2_000 * _MS
    quiet_ns: int = 5_000 * _MS


@dataclass(frozen=True, slots=True)
class Emit:
    """Publish and log trades, in this order; a backfilled one comes after its hole was declared."""

    trades: Sequence[LiveTrade]
    is_backfill: bool = False


@dataclass(frozen=True, slots=True)
class EmitGap:
    """Publish and log a gap.

    Attributes:
        first, last: trade ids, inclusive; None where they are not known. ``last`` below ``first`` says that
            nothing was missing after all.
        from_ns, to_ns: exchange times around it; 0 where the end is not known.
    """

    state: GapState
    cause: LostCause
    first: int | None
    last: int | None
    from_ns: int
    to_ns: int


@dataclass(frozen=True, slots=True)
class Fill:
    """Fetch trades by REST and hand them to ``on_filled``, then ``on_fill_done`` or ``on_fill_failed``.

    Attributes:
        first, last: ids, inclusive; ``last`` None for "as far as there are any".
        after_ns: exchange time of the trade before, for exchanges that page by time.
        hole: what is to be filled; None for a look at what was traded since.
    """

    first: int
    last: int | None
    after_ns: int
    hole: Hole | None = field(default=None, compare=False)


FeedCommand = Emit | EmitGap | Fill
