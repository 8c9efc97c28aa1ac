"""Coinbase Advanced Trade WebSocket: ``market_trades`` newest first with the maker's side, ``heartbeats``.

``sequence_num`` counts the messages of the connection, whatever they carry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.plain_session import PlainSession
from ingestors.simulation.records import Trade
from ingestors.simulation.socket_values import Close, Moment, SocketLimits, ToSend
from ingestors.simulation.trade_texts import iso_texts, number_writer
from relay.protocol.periods import NANOSECONDS
from relay.protocol.times import format_ns

__all__ = ["CoinbaseAdvancedSession"]

_TRADES, _BEATS = "market_trades", "heartbeats"
_MILLISECOND_NS = 10**6
_MESSAGE_TRADES_MAX = 100


class CoinbaseAdvancedSession(PlainSession):
    """One connection.

    Args:
        feeds: by product id.
        limits: bounds.
    """

    def __init__(self, feeds: Mapping[str, MarketFeed], *, limits: SocketLimits) -> None:
        super().__init__(feeds, limits=limits)
        self._products: dict[str, None] = {}
        self._beats = 0
        self._wants_beats = False
        self._has_subscribed = False
        self._opened_ns = self._sent_ns = self._beat_ns = 0
        self._sequence = 0

    def opened(self, moment: Moment) -> Sequence[ToSend]:
        """Say nothing: the client has five seconds to subscribe."""
        self._opened_ns = self._sent_ns = moment.wall_ns
        return ()

    def received(self, text: bytes, moment: Moment) -> Sequence[ToSend]:
        """Answer with snapshots and ``subscriptions``, or with ``error``."""
        try:
            asked = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return [_failure("failure to parse message")]
        if not isinstance(asked, dict) or asked.get("type") not in ("subscribe", "unsubscribe"):
            return [_failure("type is required and must be subscribe or unsubscribe")]
        channel, products = asked.get("channel"), asked.get("product_ids") or []
        if channel not in (_TRADES, _BEATS) or not isinstance(products, list):
            return [_failure(f"channel {channel} is not supported")]
        unknown = [name for name in products if not self._is_known(name, moment)]
        if unknown or (channel == _TRADES and not products):
            return [
                _failure(f"{', '.join(map(str, unknown))} is not a valid product_id" if unknown else "no product_ids")
            ]
        if asked["type"] == "unsubscribe":
            return self._unsubscribe(channel, products, moment)
        self._has_subscribed = True
        self._sent_ns = moment.wall_ns
        return self._subscribe(channel, products, moment)

    def turned(self, moment: Moment) -> Sequence[ToSend]:
        """Return a heartbeat every second, or the end of a connection without a subscription or anything to send."""
        wall_ns = moment.wall_ns
        if not self._has_subscribed:
            late = wall_ns - self._opened_ns >= self._limits.subscribe_within_ms * _MILLISECOND_NS
            return [Close(1000, "subscribe timeout")] if late else ()
        if not self._wants_beats:
            idle = wall_ns - self._sent_ns >= self._limits.idle_ms * _MILLISECOND_NS
            return [Close(1000, "idle")] if idle else ()
        if wall_ns - self._beat_ns < self._limits.heartbeat_ms * _MILLISECOND_NS:
            return ()
        self._beat_ns = wall_ns
        self._beats += 1
        event = {"current_time": _go_time(moment.now_ns), "heartbeat_counter": str(self._beats)}
        return [self._message(_BEATS, [event], moment)]

    def traded(self, feed: MarketFeed, trades: Sequence[Trade], moment: Moment) -> Sequence[bytes]:
        """Return updates of at most a hundred trades each, newest first inside a message."""
        pages = (trades[n : n + _MESSAGE_TRADES_MAX] for n in range(0, len(trades), _MESSAGE_TRADES_MAX))
        return [self._message(_TRADES, [_event(feed, page, "update")], moment) for page in pages]

    def snapshot(self, feed: MarketFeed, trades: Sequence[Trade], moment: Moment) -> Sequence[bytes]:
        """Return one snapshot message."""
        return [self._message(_TRADES, [_event(feed, trades, "snapshot")], moment)]

    def _is_known(self, name: object, moment: Moment) -> bool:
        return isinstance(name, str) and name in self._feeds and self._feeds[name].is_listed(moment.now_ns)

    def _subscribe(self, channel: str, products: Sequence[str], moment: Moment) -> list[ToSend]:
        if channel == _BEATS:
            self._wants_beats = True
            return [self._subscriptions(moment)]
        answers: list[ToSend] = []
        for name in products:
            feed = self._feeds[name]
            feed.join(self, now_ns=moment.now_ns)
            self._products[name] = None
            answers += self.snapshot(feed, feed.newest(self._limits.snapshot_trades), moment)
        return [*answers, self._subscriptions(moment)]

    def _unsubscribe(self, channel: str, products: Sequence[str], moment: Moment) -> list[ToSend]:
        if channel == _BEATS:
            self._wants_beats = False
        for name in products if channel == _TRADES else ():
            self._products.pop(name, None)
            self._feeds[name].leave(self)
        return [self._subscriptions(moment)]

    def _subscriptions(self, moment: Moment) -> bytes:
        channels: dict[str, object] = {_TRADES: list(self._products)} if self._products else {}
        if self._wants_beats:
            channels[_BEATS] = [_BEATS]
        return self._message("subscriptions", [{"subscriptions": channels}], moment)

    def _message(self, channel: str, events: Sequence[object], moment: Moment) -> bytes:
        message = {
            "channel": channel,
            "client_id": "",
            "timestamp": _iso_nanoseconds(moment.now_ns),
            "sequence_num": self._sequence,
            "events": events,
        }
        self._sequence += 1
        self._sent_ns = moment.wall_ns
        return msgspec.json.encode(message)


def _event(feed: MarketFeed, trades: Sequence[Trade], kind: str) -> msgspec.Raw:
    listing = feed.source.listing
    product = (listing.alias_of or listing.symbol).replace("/", "-")  # one feed answers for both names
    price = number_writer(listing.price_decimals, is_shortest=True)
    size = number_writer(listing.size_decimals, is_shortest=True)
    rows = [
        f'{{"product_id":"{product}","trade_id":"{trade.trade_id}","price":"{price(trade.price_units)}",'
        f'"size":"{size(trade.size_units)}","time":"{time}","side":"{"SELL" if trade.taker_buy else "BUY"}"}}'
        for trade, time in zip(trades, iso_texts(trades), strict=True)
    ]
    return msgspec.Raw(f'{{"type":"{kind}","trades":[{",".join(reversed(rows))}]}}'.encode())


def _iso_nanoseconds(time_ns: int) -> str:
    seconds, rest = divmod(time_ns, NANOSECONDS)
    return f"{format_ns(seconds * NANOSECONDS)[:-1]}.{rest:09d}Z"


def _go_time(time_ns: int) -> str:
    text = _iso_nanoseconds(time_ns)
    return f"{text[:10]} {text[11:-1]} +0000 UTC m=+{time_ns // NANOSECONDS % 10**6}.{time_ns % NANOSECONDS:09d}"


def _failure(message: str) -> bytes:
    return msgspec.json.encode({"type": "error", "message": message})
