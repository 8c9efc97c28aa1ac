"""The live side of the client's thread: messages to the feeds of the subscriptions, their replays to the session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from google.protobuf.message import DecodeError, Message

from relay.errors import PeerError, RelayError, SettingsError
from relay.protocol.envelope import SBE_VERSION_FRAME, VERSION, VERSION_FRAME
from relay.protocol.registry import MessageType
from relay.protocol.topics import MarketTopic, StatisticsTopic, TriggerTopic, has_sbe_form, is_broadcast_topic
from relay.protocol.v1 import market_pb2, request_pb2, trigger_pb2
from relay_client.buffer import ItemBuffer
from relay_client.engine.live_values import ReplayQuestion

if TYPE_CHECKING:
    from relay_client.sbe_reading import SbeReader

__all__ = ["LiveFeed", "LiveFeeds", "Topic"]

_PARSERS: dict[int, Callable[[bytes], Any]] = {
    MessageType.TICK: market_pb2.Tick.FromString,
    MessageType.OHLC: market_pb2.OHLC.FromString,
    MessageType.GAP: market_pb2.Gap.FromString,
    MessageType.MARKET: market_pb2.Market.FromString,
    MessageType.HEARTBEAT: market_pb2.Heartbeat.FromString,
    MessageType.CEP_TRIGGER_EVENT: trigger_pb2.CEPTriggerEvent.FromString,
    MessageType.TICKER_24H: market_pb2.Ticker24h.FromString,
}
_TYPE_OF = {
    b"tick": MessageType.TICK,
    b"ohlc": MessageType.OHLC,
    b"gap": MessageType.GAP,
    b"market": MessageType.MARKET,
    b"heartbeat": MessageType.HEARTBEAT,
    b"CEP": MessageType.CEP_TRIGGER_EVENT,
    b"ticker24h": MessageType.TICKER_24H,
}
_NONSENSE = (DecodeError, ValueError, ArithmeticError, LookupError)
"""What bytes that decode badly, or decode to nonsense (an unknown state, a volume that is no number), raise."""
_TICK_NS = 20_000_000
_TICK_SHARE = 20
"""Ticks take at most one part in so many of the thread's time, however many topics there are."""
_REPLAYS_MAX = 16
_DOUBLES_MAX = 100_000
"""What is not remembered comes twice, and is dropped and counted by the feeds."""
_NEVER_NS = 2**62
Ask = Callable[[Message], Future[Message]]
Topic = MarketTopic | StatisticsTopic | TriggerTopic


class Feed(Protocol):
    """What asks for replays."""

    def on_records(self, question: ReplayQuestion, messages: Sequence[Any], next_from: int, now_ns: int) -> None:
        """Take the answer to a replay."""

    def on_failed(self, question: ReplayQuestion, text: str, now_ns: int, *, is_final: bool) -> None:
        """A replay was refused for good, or not answered in time."""


class Group(Protocol):
    """The engine of one subscription: a :class:`~relay_client.engine.feed_group.FeedGroup` or its like."""

    out: list[Any]
    handlers: dict[bytes, Callable[[Any, int], None]]

    def add(self, topic: Any, *, start_ns: int | None, now_ns: int) -> list[bytes]:
        """Begin a topic; return the wire topics to subscribe."""

    def remove(self, topic: Any) -> list[bytes]:
        """End a topic; return the wire topics to unsubscribe."""

    def on_in_force(self, now_ns: int, *, was_cut: bool) -> None:
        """The subscriptions are in force."""

    def on_relay_away(self) -> None:
        """The relay is silent."""

    def on_tick(self, now_ns: int) -> None:
        """Do what is due."""

    def questions(self, now_ns: int) -> Iterable[tuple[Feed, ReplayQuestion]]:
        """Return the replays to ask for now."""


@dataclass(slots=True, eq=False)
class LiveFeed:
    """One subscription as the client's thread sees it.

    Attributes:
        laps: how often the relay's broadcast has overtaken its client since it began.
    """

    group: Group
    buffer: ItemBuffer
    laps: int = 0

    def flush(self) -> None:
        """Hand over what has come."""
        if self.group.out:
            self.buffer.push(self.group.out)
            self.group.out.clear()

    def end(self, error: RelayError | None) -> None:
        """The client has ended, well or with an error."""
        self.flush()
        self.buffer.close(error)


@dataclass(slots=True)
class _Route:
    """Where messages of one wire topic go."""

    type_id: int
    parse: Callable[[bytes], Any]
    handlers: list[tuple[LiveFeed, Callable[[Any, int], None]]]
    head: bytes
    """Version and type id, as they lie in a record."""
    is_sbe: bool
    """Whether its records are those of version 0x02; others of the topic are for other clients."""


class LiveFeeds:
    """All subscriptions of one client; every method is called in the client's thread.

    Args:
        ask: puts a question and returns the future of its answer.
        count: called with a counter's name.
    """

    def __init__(self, ask: Ask, count: Callable[[str], None]) -> None:
        self._ask, self._count = ask, count
        self._sbe: SbeReader | None = None
        self._feeds: list[LiveFeed] = []
        self._routes: dict[bytes, _Route] = {}
        self._tick_due_ns = _NEVER_NS
        self._replays = 0
        self._doubles: set[bytes] | None = None

    def due_ns(self) -> int:
        """Return when the next tick matters."""
        return self._tick_due_ns

    def add(self, feed: LiveFeed, topic: Topic, start_ns: int | None, now_ns: int) -> list[bytes]:
        """Begin a topic of a subscription; return the wire topics that the client must subscribe now."""
        if feed not in self._feeds:
            self._feeds.append(feed)
        self._tick_due_ns = min(self._tick_due_ns, now_ns + _TICK_NS)
        return [name for name in feed.group.add(topic, start_ns=start_ns, now_ns=now_ns) if self._route(name, feed)]

    def remove(self, feed: LiveFeed, topics: Sequence[Topic]) -> list[bytes]:
        """End topics of a subscription; return the wire topics that nobody of this client needs any more."""
        gone = [name for topic in topics for name in feed.group.remove(topic) if self._unroute(name, feed)]
        if not feed.group.handlers and feed in self._feeds:
            self._feeds.remove(feed)
        return gone

    def take(self, frames: Sequence[bytes], now_ns: int) -> bool:
        """Take a published message; return whether it was of a live topic (which is matched exactly)."""
        route = self._routes.get(frames[0])
        if route is None:
            return False
        if len(frames) != 3 or frames[1] != VERSION_FRAME or frames[2][:1] != bytes((route.type_id,)):
            self._count("rejected.wrong_type")
            return True
        try:
            message = route.parse(frames[2][1:])
            for _, handle in route.handlers:
                handle(message, now_ns)
        except _NONSENSE:
            self._count("rejected.undecodable")
            message = None
        if self._doubles is not None and len(self._doubles) < _DOUBLES_MAX:
            reader = self._sbe if route.is_sbe and message is not None else None
            self._doubles.add(b"".join(frames) if reader is None else reader.key(frames[0], message))
        return True

    def use_sbe(self, reader: SbeReader | None) -> None:
        """From now on take records of topics that have a form in SBE in that, by a reader; or in protobuf again."""
        self._sbe = reader
        for name, route in self._routes.items():
            route.is_sbe = reader is not None and has_sbe_form(name)

    def expect_doubles(self, *, on: bool) -> None:
        """From now on messages of the socket will come by the broadcast again, once that is read; or no longer."""
        self._doubles = set() if on else None

    def take_records(self, records: Iterable[bytes], now_ns: int) -> None:
        """Take records of the relay's broadcast (proto/spec/0013), in which other clients' topics are, too."""
        routes = self._routes
        if self._doubles is not None:
            records = self._without_doubles(records)
        for record in records:
            body_at = 2 + int.from_bytes(record[:2], "little")
            route = routes.get(record[2:body_at])
            if route is None:
                continue
            try:
                if route.is_sbe or record[body_at : body_at + 2] != route.head:
                    message = self._reshaped(route, record, body_at)
                    if message is None:
                        continue
                else:
                    message = route.parse(record[body_at + 2 :])
                for _, handle in route.handlers:
                    handle(message, now_ns)
            except _NONSENSE:
                self._count("rejected.undecodable")

    def on_lapped(self) -> None:
        """Records of the broadcast were overwritten before they were read."""
        for feed in self._feeds:
            feed.laps += 1

    def end(self, error: RelayError) -> None:
        """End all subscriptions of market data with an error."""
        for feed in self._feeds:
            if any(map(is_broadcast_topic, feed.group.handlers)):
                feed.end(error)

    def flush(self) -> None:
        """Hand over to the subscriptions' users what has come."""
        for feed in self._feeds:
            feed.flush()

    def on_in_force(self, now_ns: int, *, was_cut: bool) -> None:
        """The subscriptions are in force at the relay; after a cut, frames may have been lost."""
        for feed in self._feeds:
            feed.group.on_in_force(now_ns, was_cut=was_cut)
        self._tick_due_ns = now_ns if self._feeds else _NEVER_NS

    def on_relay_away(self) -> None:
        """The relay is silent."""
        for feed in self._feeds:
            feed.group.on_relay_away()

    def on_tick(self, now_ns: int) -> None:
        """Do what is due, and ask for replays."""
        if now_ns < self._tick_due_ns:
            return
        for feed in self._feeds:
            feed.group.on_tick(now_ns)
            if self._replays < _REPLAYS_MAX:
                for asking, question in list(feed.group.questions(now_ns)):
                    self._replay(asking, question)
        self.flush()
        taken_ns = time.monotonic_ns() - now_ns
        self._tick_due_ns = now_ns + max(_TICK_NS, _TICK_SHARE * taken_ns) if self._feeds else _NEVER_NS

    def on_replayed(self, feed: Feed, question: ReplayQuestion, answer: Future[Message], now_ns: int) -> None:
        """Take the answer to a replay."""
        self._replays -= 1
        self._tick_due_ns = now_ns
        try:
            response = answer.result()
            if not isinstance(response, request_pb2.ReplayResponse):
                raise PeerError(f"expected a ReplayResponse, got a {type(response).__name__}")
            if response.status == request_pb2.ReplayResponse.INVALID:
                raise PeerError(response.error_message, code=response.error_code)
            is_more = response.status == request_pb2.ReplayResponse.PARTIAL
            if is_more and question.by == "time" and 0 < response.next_from <= question.cursor:
                raise PeerError(
                    f"expected the next page of a replay to begin after {question.cursor}, got {response.next_from}"
                )
        except RelayError as error:
            is_final = isinstance(error, PeerError | SettingsError)
            feed.on_failed(question, str(error), now_ns, is_final=is_final)
            return
        self._count("replays.answered")
        feed.on_records(question, self._records(question, response), response.next_from if is_more else 0, now_ns)

    def _replay(self, feed: Feed, question: ReplayQuestion) -> None:
        self._replays += 1
        self._count("replays.asked")
        self._ask(question.to_wire()).add_done_callback(
            lambda answer: self.on_replayed(feed, question, answer, time.monotonic_ns())
        )

    def _records(self, question: ReplayQuestion, response: request_pb2.ReplayResponse) -> list[Any]:
        type_id = _type_of(question.topic.encode())
        found = []
        for record in response.records:
            if len(record) < 2 or record[0] != VERSION or record[1] != type_id:
                self._count("rejected.wrong_type")
                continue
            try:
                found.append(_PARSERS[type_id](record[2:]))
            except _NONSENSE:
                self._count("rejected.undecodable")
        return found

    def _reshaped(self, route: _Route, record: bytes, body_at: int) -> Any:
        """Read a record of version 0x02; None for what is no message, or for clients that take another form."""
        version = record[body_at : body_at + 1]
        if route.is_sbe and self._sbe is not None and version == SBE_VERSION_FRAME:
            return self._sbe.read(record[body_at:], route.type_id)
        if version != (VERSION_FRAME if route.is_sbe else SBE_VERSION_FRAME):
            self._count("rejected.wrong_type")
        return None

    def _key(self, record: bytes) -> bytes | None:
        """By which a record is known as a double; None for one that is no message of this client's."""
        body_at = 2 + int.from_bytes(record[:2], "little")
        topic, version = record[2:body_at], record[body_at : body_at + 1]
        route = self._routes.get(topic)
        if route is None or version != (SBE_VERSION_FRAME if route.is_sbe else VERSION_FRAME):
            return None
        if not route.is_sbe or self._sbe is None:
            return record[2:]
        message = self._sbe.read(record[body_at:], route.type_id)
        return None if message is None else self._sbe.key(topic, message)

    def _without_doubles(self, records: Iterable[bytes]) -> list[bytes]:
        """Both ways have one order, so from the first message on that is no double there is none any more."""
        kept, doubles = [], self._doubles
        for record in records:
            if doubles is not None and (key := self._key(record)) is not None:
                if key in doubles:
                    continue
                doubles = None
            kept.append(record)
        self._doubles = doubles
        return kept

    def _route(self, name: bytes, feed: LiveFeed) -> bool:
        is_new = name not in self._routes
        if is_new:
            type_id = _type_of(name)
            is_sbe = self._sbe is not None and has_sbe_form(name)
            self._routes[name] = _Route(type_id, _PARSERS[type_id], [], VERSION_FRAME + bytes((type_id,)), is_sbe)
        self._routes[name].handlers.append((feed, feed.group.handlers[name]))
        return is_new

    def _unroute(self, name: bytes, feed: LiveFeed) -> bool:
        route = self._routes[name]
        route.handlers[:] = [handler for handler in route.handlers if handler[0] is not feed]
        if route.handlers:
            return False
        del self._routes[name]
        return True


def _type_of(topic: bytes) -> MessageType:
    return _TYPE_OF[topic.rpartition(b"|")[2].partition(b":")[0]]
