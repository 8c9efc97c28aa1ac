"""What the matcher takes and gives. Times are nanoseconds since the epoch; numbers are scaled integers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple

from relay.engine.pattern_values import NS_PER_MS
from relay.protocol.periods import NANOSECONDS
from relay.protocol.v1 import trigger_pb2

__all__ = [
    "Bar",
    "EndReason",
    "Ended",
    "Event",
    "Firing",
    "Item",
    "Kind",
    "Matched",
    "MatcherRules",
    "Outcome",
    "Tick",
    "TimeMark",
    "Trigger",
    "match_id",
]


class Tick(NamedTuple):
    """A trade. Of one ticker ticks sort by (time, trade number, log offset).

    Attributes:
        number: the exchange's trade id.
        price, amount: in units of ``10^-price_decimals`` and ``10^-amount_decimals``.
        offset: place in its log partition.
    """

    ticker: str
    time_ns: int
    number: int
    price: int
    price_decimals: int
    amount: int
    amount_decimals: int
    offset: int


class Bar(NamedTuple):
    """A final bar. It counts at its end.

    Attributes:
        open, high, low, close: in units of ``10^-price_decimals``.
        volume: in units of ``10^-volume_decimals``; None when it is not known.
        trades: None when it is not known.
        revision: before the bar is evaluated the highest one that has come counts, later ones do not.
    """

    ticker: str
    period_seconds: int
    start_ns: int
    open: int
    high: int
    low: int
    close: int
    price_decimals: int
    volume: int | None
    volume_decimals: int
    trades: int | None
    revision: int

    @property
    def time_ns(self) -> int:
        """End of the bar."""
        return self.start_ns + self.period_seconds * NANOSECONDS


class TimeMark(NamedTuple):
    """Everything of a ticker with a time before ``reached_ns`` has come, or is declared missing.

    Attributes:
        period_seconds: None for all the ticker's events, 0 for its ticks only, else for its bars of that period.
    """

    ticker: str
    reached_ns: int
    period_seconds: int | None = None


Event = Tick | Bar | TimeMark


class Kind(IntEnum):
    """What happened; of one time silences come first, then bars, then ticks."""

    SILENCE = 0
    BAR = 1
    TICK = 2


class Item(NamedTuple):
    """Something that happened, as one trigger sees it. Items sort in the order in which they count.

    Attributes:
        number: a tick's trade number, a bar's period in seconds, a silence's duration in ns.
        price, volume: of a bar its close and volume.
        ordinal: how many events of its source came up to and with it.
    """

    time_ns: int
    kind: int
    ticker: str
    number: int
    price: int | None = None
    price_decimals: int = 0
    volume: int | None = None
    volume_decimals: int = 0
    ordinal: int = 0

    @property
    def identity(self) -> str:
        """What stays the same when it comes again."""
        if self.kind == Kind.TICK:
            return f"{self.ticker}|tick|{self.number}"
        return f"{self.ticker}|{'bar' if self.kind == Kind.BAR else 'silence'}|{self.number}|{self.time_ns}"


class Matched(NamedTuple):
    """An event of a match and the number of its step."""

    step: int
    item: Item


class Firing(NamedTuple):
    """A trigger has fired.

    Attributes:
        fired_at_ns: time of the event, or of the end of the window, that completed the match.
        matched: the events, in order.
        match_id: the same for the same trigger and events, so that a repeat can be dropped.
    """

    trigger_id: str
    fired_at_ns: int
    matched: tuple[Matched, ...]
    match_id: str


class EndReason(StrEnum):
    """Why a trigger is over."""

    ONE_SHOT = "one_shot"
    EXPIRED = "expired"


class Ended(NamedTuple):
    """A trigger is over and is matched no longer."""

    trigger_id: str
    reason: EndReason


Outcome = Firing | Ended


class Trigger(NamedTuple):
    """A registered trigger.

    Attributes:
        pattern: serialised ``Pattern``.
        since_ns: events before it do not exist for the trigger.
        cooldown_ns: a match less than this after a firing does not fire; 0 for none.
        expires_ns: events from here on do not exist for the trigger; 0 for never.
    """

    trigger_id: str
    pattern: bytes
    since_ns: int
    cooldown_ns: int = 0
    one_shot: bool = False
    expires_ns: int = 0

    @classmethod
    def of(cls, request: trigger_pb2.CEPTriggerRequest, *, since_ns: int) -> Trigger:
        """Return the trigger of a registration."""
        return cls(
            request.trigger_id,
            request.pattern.SerializeToString(deterministic=True),
            since_ns,
            request.cooldown_ms * NS_PER_MS,
            request.one_shot,
            request.expires_at,
        )


class MatcherRules(NamedTuple):
    """Bounds.

    Attributes:
        lateness_ns: an event counts once its source's mark is past it by this.
        hold_ns: a source whose mark is this far behind another of the same trigger holds the trigger no longer.
        waiting_max: events of one source that wait for its mark; over it the oldest are evaluated without.
        queue_max: hits that one trigger of several sources holds back; over it likewise.
        held_max: hits that all of them hold back; over it those that hold most go on without.
        trail_max: events of one source whose times are kept for triggers that ask which event was next; likewise.
        partials_max: begun matches of one trigger; over it the one that began first is dropped.
        begun_max: begun matches of all triggers; over it the older half is dropped of those that have most.
        window_ticks_max: ticks that one ticker's windows reach back to; over it the oldest leave early.
        spans_max: spans of trade numbers that are remembered against repeats.
        ended_max: triggers that are remembered as over.
    """

    lateness_ns: int = 2 * NANOSECONDS
    hold_ns: int = 300 * NANOSECONDS
    waiting_max: int = 200_000
    queue_max: int = 20_000
    held_max: int = 500_000
    trail_max: int = 200_000
    partials_max: int = 256
    begun_max: int = 1_000_000
    window_ticks_max: int = 200_000
    spans_max: int = 1_000
    ended_max: int = 100_000


def match_id(trigger_id: str, matched: Sequence[Matched]) -> str:
    """Return 32 hexadecimal digits that say which events a trigger fired on."""
    parts = [trigger_id, *(f"{step}|{item.identity}" for step, item in matched)]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
