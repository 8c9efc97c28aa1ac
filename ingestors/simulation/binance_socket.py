"""Binance spot WebSocket streams: ``@trade`` and ``@aggTrade``, raw or wrapped, with their control messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import msgspec

from ingestors.simulation.binance_shapes import PLACES
from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.records import Trade
from ingestors.simulation.socket_values import Close, Moment, Ping, SocketLimits, SocketSession, ToSend
from ingestors.simulation.trade_texts import number_writer

__all__ = ["BinanceSession", "binance_feeds"]

_KINDS = ("trade", "aggTrade")
_SECOND_NS, _MILLISECOND_NS = 10**9, 10**6
_METHODS = "SUBSCRIBE, UNSUBSCRIBE, LIST_SUBSCRIPTIONS, SET_PROPERTY, GET_PROPERTY"
_POLICY, _GOING_AWAY = 1008, 1001


def binance_feeds(feeds: Mapping[str, MarketFeed]) -> dict[str, MarketFeed]:
    """Return the feeds by the names that streams use."""
    return {symbol.replace("/", "").lower(): feed for symbol, feed in feeds.items()}


class BinanceSession(SocketSession):
    """One connection.

    A stream of an unknown symbol is accepted and stays silent, as at the real exchange.

    Args:
        feeds: by lower-case symbol.
        limits: bounds.
        streams: subscribed by the address.
        is_wrapped: ``{stream, data}`` around every event.
        unit_ns: of times; microseconds when asked for.
    """

    def __init__(
        self,
        feeds: Mapping[str, MarketFeed],
        *,
        limits: SocketLimits,
        streams: Sequence[str] = (),
        is_wrapped: bool = False,
        unit_ns: int = _MILLISECOND_NS,
    ) -> None:
        self._feeds = feeds
        self._limits = limits
        self._asked = streams
        self._is_wrapped = is_wrapped
        self._unit_ns = unit_ns
        self._streams: dict[str, None] = {}
        self._arrivals: deque[int] = deque()
        self._opened_ns = 0
        self._pinged_ns = 0
        self._waits_since_ns: int | None = None
        self._ping = b""

    def opened(self, moment: Moment) -> Sequence[ToSend]:
        """Subscribe to the streams of the address."""
        self._opened_ns = self._pinged_ns = moment.wall_ns
        if len(self._asked) > self._limits.binance_streams_max:
            return [Close(_POLICY, "Too many streams")]
        self._subscribe(self._asked, moment)
        return []

    def received(self, text: bytes, moment: Moment) -> Sequence[ToSend]:
        """Answer a control message."""
        return self._too_many(moment) or [self._answer(text, moment)]

    def ponged(self, payload: bytes, moment: Moment) -> Sequence[ToSend]:
        """Accept a pong when it repeats the last ping; unasked ones count as messages too."""
        if payload == self._ping:
            self._waits_since_ns = None
        return self._too_many(moment)

    def pinged(self, moment: Moment) -> Sequence[ToSend]:
        """Count a ping."""
        return self._too_many(moment)

    def turned(self, moment: Moment) -> Sequence[ToSend]:
        """Return the next ping, or the end of an old or unanswering connection."""
        limits, wall_ns = self._limits, moment.wall_ns
        if wall_ns - self._opened_ns >= limits.life_ms * _MILLISECOND_NS:
            return [Close(_GOING_AWAY, "24 hours are over")]
        waits = self._waits_since_ns
        if waits is not None and wall_ns - waits >= limits.pong_within_ms * _MILLISECOND_NS:
            return [Close(_POLICY, "Pong timeout")]
        if wall_ns - self._pinged_ns < limits.ping_ms * _MILLISECOND_NS:
            return []
        self._pinged_ns = wall_ns
        self._ping = str(wall_ns // _MILLISECOND_NS).encode()
        if waits is None:
            self._waits_since_ns = wall_ns
        return [Ping(self._ping)]

    def traded(self, feed: MarketFeed, trades: Sequence[Trade], moment: Moment) -> Sequence[bytes]:
        """Return an event for each trade and subscribed stream."""
        low = feed.name.lower()
        texts: list[bytes] = []
        for kind in _KINDS:
            stream = f"{low}@{kind}"
            if stream in self._streams:
                texts += self._events(feed, trades, stream, moment)
        return texts

    def snapshot(self, feed: MarketFeed, trades: Sequence[Trade], moment: Moment) -> Sequence[bytes]:
        """Return the trades again as events: there is no snapshot here."""
        return self.traded(feed, trades, moment)

    def notice(self, kind: str, moment: Moment) -> Sequence[bytes]:
        """Return ``serverShutdown``."""
        if kind != "shutdown":
            return []
        event = {"e": "serverShutdown", "E": moment.now_ns // self._unit_ns}
        return [msgspec.json.encode({"stream": "!serverShutdown", "data": event} if self._is_wrapped else event)]

    def has_stream(self, name: str) -> bool:
        """Return whether a stream is subscribed."""
        return name in self._streams

    def left(self) -> None:
        """Leave every market."""
        for feed in self._feeds.values():
            feed.leave(self)

    def _events(self, feed: MarketFeed, trades: Sequence[Trade], stream: str, moment: Moment) -> list[bytes]:
        listing, unit_ns = feed.source.listing, self._unit_ns
        price, size = number_writer(listing.price_decimals, PLACES), number_writer(listing.size_decimals, PLACES)
        is_trade = stream.endswith("@trade")
        head = f'{{"e":"{"trade" if is_trade else "aggTrade"}","E":{moment.now_ns // unit_ns},"s":"{feed.name}",'
        head += '"t":' if is_trade else '"a":'
        tail = '"M":true}'
        if self._is_wrapped:
            head, tail = f'{{"stream":"{stream}","data":{head}', f"{tail}}}"
        texts = []
        for trade in trades:
            number = trade.trade_id
            own = "" if is_trade else f'"f":{number},"l":{number},'
            maker = "false" if trade.taker_buy else "true"
            texts.append(
                f'{head}{number},"p":"{price(trade.price_units)}","q":"{size(trade.size_units)}",'
                f'{own}"T":{trade.time_ns // unit_ns},"m":{maker},{tail}'.encode()
            )
        return texts

    def _too_many(self, moment: Moment) -> list[ToSend]:
        arrivals = self._arrivals
        arrivals.append(moment.wall_ns)
        while arrivals[0] <= moment.wall_ns - _SECOND_NS:
            arrivals.popleft()
        return [Close(_POLICY, "Too many requests")] if len(arrivals) > self._limits.binance_messages_per_second else []

    def _answer(self, text: bytes, moment: Moment) -> ToSend:
        try:
            asked = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return _failure(3, "Invalid JSON: expected value at line 1 column 1", None)
        wrong = _wrong_part(asked)
        if wrong is not None:
            return _failure(*wrong)
        number, method, streams = asked.get("id"), asked["method"], asked.get("params")
        if method == "LIST_SUBSCRIPTIONS":
            return msgspec.json.encode({"result": list(self._streams), "id": number})
        if method == "UNSUBSCRIBE":
            self._unsubscribe(streams)
        elif len({*self._streams, *streams}) > self._limits.binance_streams_max:
            return Close(_POLICY, "Too many streams")
        else:
            self._subscribe(streams, moment)
        return msgspec.json.encode({"result": None, "id": number})

    def _subscribe(self, streams: Sequence[str], moment: Moment) -> None:
        for name in streams:
            self._streams[name] = None
            feed = self._feeds.get(name.partition("@")[0])
            if feed is not None and name.partition("@")[2] in _KINDS:
                feed.join(self, now_ns=moment.now_ns)

    def _unsubscribe(self, streams: Sequence[str]) -> None:
        for name in streams:
            self._streams.pop(name, None)
            symbol = name.partition("@")[0]
            feed = self._feeds.get(symbol)
            if feed is not None and not any(f"{symbol}@{kind}" in self._streams for kind in _KINDS):
                feed.leave(self)


def _wrong_part(asked: object) -> tuple[int, str, int | None] | None:
    """Return code and text for what is wrong with a control message."""
    if not isinstance(asked, dict):
        return 2, "Invalid request: property name must be a string", None
    number, method, streams = asked.get("id"), asked.get("method"), asked.get("params")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
        return 2, "Invalid request: request ID must be an unsigned integer", None
    if method not in ("SUBSCRIBE", "UNSUBSCRIBE", "LIST_SUBSCRIPTIONS"):
        return 2, f"Invalid request: unknown variant {method}, expected one of {_METHODS}", number
    if method != "LIST_SUBSCRIPTIONS":
        if not isinstance(streams, list) or not all(isinstance(name, str) for name in streams):
            return 1, "Invalid value type: expected a list of stream names", number
        if not all("@" in name and " " not in name for name in streams):
            return 2, "Invalid request: invalid stream", number
    return None


def _failure(code: int, text: str, number: int | None) -> bytes:
    return msgspec.json.encode({"error": {"code": code, "msg": text}, "id": number})
