"""Firings of triggers as they come: repeats dropped, and what was lost on the way asked for again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from relay.protocol.topics import TriggerTopic
from relay.protocol.v1 import trigger_pb2
from relay_client.engine.live_values import ReplayQuestion
from relay_client.engine.time_replay import TimeReplay
from relay_client.times import from_ns

__all__ = ["MatchedEvent", "TriggerEvent", "TriggerFeed", "TriggerGroup", "TriggerLoss"]

_SEEN_MAX = 10_000
"""Firings remembered of each trigger, against repeats."""
_SPAN_NS = 120_000_000_000
"""Firings of one trigger come in the order of their times, but clocks differ by less than this."""


@dataclass(frozen=True, slots=True)
class MatchedEvent:
    """One event of a match. What it is: a tick has ``trade_id``, a bar ``period_seconds``, a silence neither.

    Attributes:
        step: number of the step that it matched, from 0.
        time_ns: exchange time; of a bar its end.
        price: of a bar its close; None where there is none.
        volume: of a tick its amount; None where it is not known.
    """

    step: int
    ticker: str
    time_ns: int
    price: Decimal | None
    volume: Decimal | None
    trade_id: str | None
    period_seconds: int | None

    @property
    def time(self) -> datetime:
        """Exchange time, at microsecond resolution."""
        return from_ns(self.time_ns)


@dataclass(frozen=True, slots=True)
class TriggerEvent:
    """A trigger has fired.

    Attributes:
        match_id: the same for the same trigger and matched events, also after a restart of whatever made it.
        fired_at_ns: exchange time of what completed the match.
        ticker: of the last matched event.
        matched: the events, in order.
        is_replayed: it came out of the log, not at once.
    """

    trigger_id: str
    match_id: str
    fired_at_ns: int
    ticker: str
    matched: tuple[MatchedEvent, ...]
    is_replayed: bool = False

    @property
    def fired_at(self) -> datetime:
        """Exchange time of what completed the match, at microsecond resolution."""
        return from_ns(self.fired_at_ns)

    @classmethod
    def of(cls, message: trigger_pb2.CEPTriggerEvent, *, is_replayed: bool) -> TriggerEvent:
        """Return the value of a message.

        Raises:
            ArithmeticError: a number is none.
        """
        return cls(
            trigger_id=message.trigger_id,
            match_id=message.match_id,
            fired_at_ns=message.fired_at,
            ticker=message.ticker,
            matched=tuple(map(_matched, message.matched)),
            is_replayed=is_replayed,
        )


@dataclass(frozen=True, slots=True)
class TriggerLoss:
    """Firings of a trigger since a time may be missing: the log could not be asked for them; ``text`` says why."""

    trigger_id: str
    since_ns: int
    text: str


class TriggerFeed:
    """State of one trigger of one subscription.

    Args:
        trigger_id: of the trigger.
        since_ns: firings from this time on are wanted (exchange time).
        is_history: those that are in the log already, too.
        out: events are appended.
    """

    def __init__(self, trigger_id: str, *, since_ns: int, is_history: bool, out: list[Any]) -> None:
        self._trigger_id, self._since_ns, self._out = trigger_id, since_ns, out
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._epoch = self._sequence = 0
        self._replay = TimeReplay(str(TriggerTopic(trigger_id)), since_ns=since_ns if is_history else None)
        self.repeated = 0

    @property
    def is_busy(self) -> bool:
        """Whether a replay is to be asked for."""
        return self._replay.is_busy

    def take(self, message: trigger_pb2.CEPTriggerEvent, now_ns: int) -> None:
        """Take a published firing. A jump of its stamp, or another publisher, means that some may be lost."""
        epoch, sequence = message.stamp.publisher_epoch, message.stamp.topic_sequence
        is_next = not self._epoch or (epoch == self._epoch and sequence <= self._sequence + 1)
        if epoch and not is_next:
            self._replay.ask_from(self._since_ns, now_ns)
        if epoch:
            self._sequence = max(self._sequence, sequence) if epoch == self._epoch else sequence
            self._epoch = epoch
        self.deliver(TriggerEvent.of(message, is_replayed=False))

    def deliver(self, event: TriggerEvent) -> None:
        """Take a firing, wherever it comes from; one that was taken before is dropped."""
        if event.trigger_id != self._trigger_id or event.match_id in self._seen:
            self.repeated += 1
            return
        self._seen[event.match_id] = None
        if len(self._seen) > _SEEN_MAX:
            self._seen.popitem(last=False)
        self._since_ns = max(self._since_ns, event.fired_at_ns - _SPAN_NS)
        self._out.append(event)

    def on_in_force(self, now_ns: int, *, was_cut: bool) -> None:
        """The subscription is in force (again); after a cut, look for what was published meanwhile."""
        self._replay.on_in_force()
        if was_cut:
            self._replay.ask_from(self._since_ns, now_ns)

    def on_relay_away(self) -> None:
        """The relay is silent."""
        self._replay.on_relay_away()

    def next_question(self, now_ns: int) -> ReplayQuestion | None:
        """Return the replay to ask for now."""
        return self._replay.next_question(now_ns)

    def on_records(self, question: ReplayQuestion, messages: Sequence[Any], next_from: int, now_ns: int) -> None:
        """Take the answer to a replay."""
        for message in messages:
            self.deliver(TriggerEvent.of(message, is_replayed=True))
        self._replay.on_answer(question, next_from, now_ns)

    def on_failed(self, question: ReplayQuestion, text: str, now_ns: int, *, is_final: bool) -> None:
        """A replay was refused for good, or not answered in time: then it is asked for again."""
        if self._replay.on_failed(question, now_ns, is_final=is_final):
            self._out.append(TriggerLoss(self._trigger_id, question.first, text))


class TriggerGroup:
    """The triggers of one subscription; called by one thread.

    Args:
        began_ns: wall time of its begin.
        heirs: what earlier subscriptions of these triggers have and nobody has read, by trigger id.

    Attributes:
        out: firings and losses, in order; whoever takes them clears the list.
        handlers: what to call with a message of a wire topic, and the time.
    """

    def __init__(self, *, began_ns: int, heirs: dict[str, Callable[[], Iterable[Any]]] | None = None) -> None:
        self._began_ns, self._heirs = began_ns, heirs or {}
        self._feeds: dict[bytes, TriggerFeed] = {}
        self.out: list[Any] = []
        self.handlers: dict[bytes, Callable[[Any, int], None]] = {}

    def add(self, topic: TriggerTopic, *, start_ns: int | None, now_ns: int) -> list[bytes]:
        """Begin a trigger; return the wire topics to subscribe."""
        del now_ns
        name = str(topic).encode()
        since_ns = self._began_ns - _SPAN_NS if start_ns is None else start_ns
        feed = TriggerFeed(topic.trigger_id, since_ns=since_ns, is_history=start_ns is not None, out=self.out)
        self._feeds[name], self.handlers[name] = feed, feed.take
        for item in self._heirs.pop(topic.trigger_id, tuple)():
            if isinstance(item, TriggerEvent):
                feed.deliver(item)
            else:
                self.out.append(item)
        return [name]

    def remove(self, topic: TriggerTopic) -> list[bytes]:
        """End a trigger; return the wire topics to unsubscribe."""
        name = str(topic).encode()
        self.handlers.pop(name, None)
        return [name] if self._feeds.pop(name, None) is not None else []

    def on_in_force(self, now_ns: int, *, was_cut: bool) -> None:
        """The subscriptions are in force."""
        for feed in self._feeds.values():
            feed.on_in_force(now_ns, was_cut=was_cut)

    def on_relay_away(self) -> None:
        """The relay is silent."""
        for feed in self._feeds.values():
            feed.on_relay_away()

    def on_tick(self, now_ns: int) -> None:
        """Nothing is due by the clock but replays."""

    def questions(self, now_ns: int) -> Iterable[tuple[TriggerFeed, ReplayQuestion]]:
        """Return the replays to ask for now."""
        for feed in self._feeds.values():
            if feed.is_busy and (question := feed.next_question(now_ns)) is not None:
                yield feed, question


def _matched(event: trigger_pb2.MatchedEvent) -> MatchedEvent:
    return MatchedEvent(
        step=event.step,
        ticker=event.ticker,
        time_ns=event.timestamp,
        price=Decimal(event.price) if event.HasField("price") else None,
        volume=Decimal(event.volume) if event.HasField("volume") else None,
        trade_id=event.trade_id if event.HasField("trade_id") else None,
        period_seconds=event.period_seconds if event.HasField("period_seconds") else None,
    )
