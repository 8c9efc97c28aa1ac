"""What a live feed tells beside its data, what it asks for, and the bounds it goes by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from relay.protocol.v1 import market_pb2, request_pb2

__all__ = [
    "CallbackFailed",
    "FeedEvent",
    "FeedRules",
    "FeedState",
    "Gap",
    "HistoryJoined",
    "Loss",
    "Overrun",
    "Repaired",
    "ReplayQuestion",
    "Skipped",
    "StateChanged",
]

_MS = 1_000_000


class FeedState(StrEnum):
    """State of a ticker's feed.

    CONNECTING, UP, MUTE and DOWN are the ingestor's word (DOWN also the manager's, while no ingestor serves the
    ticker); NO_BEATS: neither speaks; RELAY_AWAY: the relay itself is silent. A quiet market is UP.
    """

    CONNECTING = "CONNECTING"
    UP = "UP"
    MUTE = "MUTE"
    DOWN = "DOWN"
    NO_BEATS = "NO_BEATS"
    RELAY_AWAY = "RELAY_AWAY"


@dataclass(frozen=True, slots=True)
class Loss:
    """Messages of a topic that were published and could not be had.

    Attributes:
        count: how many; 0 for bars behind a cut, or behind another publisher, of which nobody can tell.
        publisher_epoch, from_sequence, to_sequence: where, by stamp; zero when found by trade ids only.
        from_trade_id, to_trade_id: between which trades, inclusive; empty when unknown.
        reason: why they could not be repaired.
    """

    topic: str
    count: int
    publisher_epoch: int
    from_sequence: int
    to_sequence: int
    from_trade_id: str
    to_trade_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Repaired:
    """So many lost messages of a topic have come, all by replay or late; its ticks are flagged ``repaired``."""

    topic: str
    count: int


@dataclass(frozen=True, slots=True)
class Gap:
    """What the ingestor says about trades it has missed.

    Attributes:
        state: OPEN (being fetched), FILLED (came, flagged ``backfill``), UNFILLABLE (will never come).
        cause: DISCONNECT, SEQUENCE, SILENCE, DROPPED.
        from_trade_id, to_trade_id: inclusive; an empty end is not known yet, an empty start is "from the beginning".
        from_ns, to_ns: exchange times around it.
    """

    ticker: str
    state: str
    cause: str
    from_trade_id: str
    to_trade_id: str
    from_ns: int
    to_ns: int

    @classmethod
    def of(cls, message: market_pb2.Gap) -> Gap:
        """Return the value of a message."""
        return cls(
            ticker=message.ticker,
            state=market_pb2.Gap.State.Name(message.state),
            cause=market_pb2.Gap.Cause.Name(message.cause),
            from_trade_id=message.from_trade_id,
            to_trade_id=message.to_trade_id,
            from_ns=message.from_time,
            to_ns=message.to_time,
        )


@dataclass(frozen=True, slots=True)
class StateChanged:
    """A ticker's feed changed its state; ``text`` says why."""

    ticker: str
    state: FeedState
    before: FeedState
    text: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """``order="strict"`` waited in vain for trades and went on; should they come later, they are dropped."""

    topic: str
    count: int
    from_trade_id: str
    to_trade_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Overrun:
    """The subscription's own buffer was full: so many items were dropped, because the user is slower than the feed."""

    count: int


@dataclass(frozen=True, slots=True)
class HistoryJoined:
    """History is over and the live ticks follow.

    Attributes:
        count: ticks of history.
        is_complete: whether the log could be read from the start to the live ticks.
        text: what was wrong, else empty.
    """

    topic: str
    count: int
    is_complete: bool
    text: str


@dataclass(frozen=True, slots=True)
class CallbackFailed:
    """A callback raised; the subscription goes on."""

    text: str


FeedEvent = Loss | Repaired | Gap | StateChanged | Skipped | Overrun | HistoryJoined | CallbackFailed
"""What a subscription tells beside its data."""


@dataclass(frozen=True, slots=True)
class ReplayQuestion:
    """One replay to ask for; numbers are inclusive.

    Attributes:
        by: ``sequence``, ``trade_id`` or ``time``.
        first, last: sequences or trade ids; for time the start in nanoseconds, and zero.
        epoch: of sequences.
        cursor: of a replay by time, where the last answer ended.
    """

    topic: str
    by: str
    first: int
    last: int
    epoch: int = 0
    cursor: int = 0
    limit: int = 5_000

    def to_wire(self) -> request_pb2.ReplayRequest:
        """Return the message."""
        asked = request_pb2.ReplayRequest(topic=self.topic, limit=self.limit)
        if self.by == "sequence":
            asked.publisher_epoch, asked.from_sequence, asked.to_sequence = self.epoch, self.first, self.last
        elif self.by == "trade_id":
            asked.from_trade_id, asked.to_trade_id = str(self.first), str(self.last)
        else:
            asked.start, asked.from_sequence = self.first, self.cursor
        return asked


@dataclass(frozen=True, slots=True)
class FeedRules:
    """Bounds of a live feed; times in nanoseconds.

    Attributes:
        settle_ns: wait before the first replay of a loss; the log is a moment behind.
        backoff_ns, backoff_max_ns: wait after a replay that brought nothing, doubled each time.
        repair_ns: so long after its discovery a loss is reported.
        repair_max: a bigger loss is reported at once, not repaired.
        tail_ns: so long may a beat name a newer trade than the newest received.
        silence_ns: without a beat for so long a feed is NO_BEATS.
        order_wait_ns, order_max: what ``order="strict"`` holds back, at most.
        hold_max: live ticks held while history is read; more are dropped and read as history.
        join_wait_ns: after the end of history, how long a first beat or tick is awaited.
        spans_max: islands of trade ids remembered against repeats.
        is_repairing: else losses are only reported.
    """

    settle_ns: int = 50 * _MS
    backoff_ns: int = 100 * _MS
    backoff_max_ns: int = 2_000 * _MS
    repair_ns: int = 15_000 * _MS
    repair_max: int = 1_000_000
    tail_ns: int = 500 * _MS
    silence_ns: int = 3_000 * _MS
    order_wait_ns: int = 60_000 * _MS
    order_max: int = 100_000
    hold_max: int = 100_000
    join_wait_ns: int = 3_000 * _MS
    spans_max: int = 4_096
    is_repairing: bool = True
