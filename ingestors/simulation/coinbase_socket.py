"""Coinbase Exchange WebSocket feed: channels ``matches`` and ``heartbeat``; the side is the maker's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ingestors.simulation.coinbase import iso_microseconds
from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.plain_session import PlainSession
from ingestors.simulation.records import Trade
from ingestors.simulation.socket_values import Close, Moment, SocketLimits, ToSend
from ingestors.simulation.trade_texts import iso_texts, number_writer, order_id, sequence_of

__all__ = ["CoinbaseSession", "coinbase_feeds"]

_CHANNELS = ("matches", "heartbeat")
_MILLISECOND_NS = 10**6
_PRICE_PLACES, _SIZE_PLACES = 2, 8


def coinbase_feeds(feeds: Mapping[str, MarketFeed]) -> dict[str, MarketFeed]:
    """Return the feeds by product id."""
    return {symbol.replace("/", "-"): feed for symbol, feed in feeds.items()}


class CoinbaseSession(PlainSession):
    """One connection.

    Args:
        feeds: by product id.
        limits: bounds.
    """

    def __init__(self, feeds: Mapping[str, MarketFeed], *, limits: SocketLimits) -> None:
        super().__init__(feeds, limits=limits)
        self._products: dict[str, dict[str, None]] = {channel: {} for channel in _CHANNELS}
        self._opened_ns = 0
        self._beat_ns = 0
        self._has_subscribed = False

    def opened(self, moment: Moment) -> Sequence[ToSend]:
        """Say nothing: the client has five seconds to subscribe."""
        self._opened_ns = moment.wall_ns
        return ()

    def received(self, text: bytes, moment: Moment) -> Sequence[ToSend]:
        """Answer ``subscribe`` and ``unsubscribe`` with ``subscriptions``, all else with ``error``."""
        try:
            asked = msgspec.json.decode(text)
        except msgspec.DecodeError:
            asked = None
        kind = asked.get("type") if isinstance(asked, dict) else None
        if not isinstance(asked, dict) or kind not in ("subscribe", "unsubscribe"):
            return [_failure("Malformed JSON" if kind is None else "Invalid type", str(kind))]
        wanted = _wanted(asked)
        if not wanted:
            return [_failure("Failed to subscribe", "channels and product_ids must be given")]
        for channel, products in wanted.items():
            if channel not in _CHANNELS:
                return [_failure("Failed to subscribe", f"{channel} is not a valid channel")]
            for product in products:
                if product not in self._feeds or not self._feeds[product].is_listed(moment.now_ns):
                    return [_failure("Failed to subscribe", f"{product} is not a valid product")]
        if kind == "unsubscribe":
            self._unsubscribe(wanted)
            return [self._subscriptions()]
        return self._subscribe(wanted, moment)

    def turned(self, moment: Moment) -> Sequence[ToSend]:
        """Return a heartbeat of each product every second, or the end when nothing was subscribed in time."""
        if not self._has_subscribed:
            late = moment.wall_ns - self._opened_ns >= self._limits.subscribe_within_ms * _MILLISECOND_NS
            return [Close(1000, "subscribe timeout")] if late else ()
        if moment.wall_ns - self._beat_ns < self._limits.heartbeat_ms * _MILLISECOND_NS:
            return ()
        self._beat_ns = moment.wall_ns
        return [self._heartbeat(product, moment) for product in self._products["heartbeat"]]

    def traded(self, feed: MarketFeed, trades: Sequence[Trade], moment: Moment) -> Sequence[bytes]:  # noqa: ARG002
        """Return a ``match`` for each trade."""
        return _match_messages(feed, trades, "match")

    def snapshot(self, feed: MarketFeed, trades: Sequence[Trade], moment: Moment) -> Sequence[bytes]:  # noqa: ARG002
        """Return the newest trade as ``last_match``."""
        return _match_messages(feed, trades[-1:], "last_match")

    def _subscribe(self, wanted: Mapping[str, Sequence[str]], moment: Moment) -> Sequence[ToSend]:
        self._has_subscribed = True
        repeats: list[ToSend] = []
        for product in wanted.get("matches", ()):
            feed = self._feeds[product]
            feed.join(self, now_ns=moment.now_ns)
            repeats += self.snapshot(feed, feed.newest(1), moment)
        for channel, products in wanted.items():
            self._products[channel].update(dict.fromkeys(products))
        return [self._subscriptions(), *repeats]

    def _unsubscribe(self, wanted: Mapping[str, Sequence[str]]) -> None:
        for channel, products in wanted.items():
            for product in products:
                self._products[channel].pop(product, None)
                if channel == "matches":
                    self._feeds[product].leave(self)

    def _subscriptions(self) -> bytes:
        channels = [
            {"name": channel, "product_ids": list(products), "account_ids": None}
            for channel, products in self._products.items()
            if products
        ]
        return msgspec.json.encode({"type": "subscriptions", "channels": channels})

    def _heartbeat(self, product: str, moment: Moment) -> bytes:
        feed = self._feeds[product]
        if feed.sessions:
            newest = feed.newest(1)
        else:
            end = feed.source.position_at(moment.now_ns + 1)
            newest = feed.source.trades(max(end - 1, 0), end)
        last_id = newest[-1].trade_id if newest else 0
        return msgspec.json.encode(
            {
                "type": "heartbeat",
                "sequence": sequence_of(last_id),
                "last_trade_id": last_id,
                "product_id": product,
                "time": iso_microseconds(moment.now_ns),
            }
        )


def _wanted(asked: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the products by channel: of the message, or of a channel that names its own."""
    channels, everywhere = asked.get("channels"), _names(asked.get("product_ids"))
    wanted: dict[str, list[str]] = {}
    for channel in channels if isinstance(channels, list) else ():
        if isinstance(channel, str):
            wanted[channel] = everywhere
        elif isinstance(channel, dict) and isinstance(channel.get("name"), str):
            wanted[channel["name"]] = _names(channel.get("product_ids")) or everywhere
    return wanted if all(wanted.values()) else {}


def _names(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _match_messages(feed: MarketFeed, trades: Sequence[Trade], kind: str) -> list[bytes]:
    listing, product = feed.source.listing, feed.name
    price = number_writer(listing.price_decimals, _PRICE_PLACES)
    size = number_writer(listing.size_decimals, _SIZE_PLACES)
    texts = []
    for trade, time in zip(trades, iso_texts(trades), strict=True):
        number = trade.trade_id
        maker, taker = order_id(number, listing, role=0), order_id(number, listing, role=1)
        texts.append(
            f'{{"type":"{kind}","trade_id":{number},"maker_order_id":"{maker}","taker_order_id":"{taker}",'
            f'"side":"{"sell" if trade.taker_buy else "buy"}","size":"{size(trade.size_units)}",'
            f'"price":"{price(trade.price_units)}","product_id":"{product}",'
            f'"sequence":{sequence_of(number)},"time":"{time}"}}'.encode()
        )
    return texts


def _failure(message: str, reason: str) -> bytes:
    return msgspec.json.encode({"type": "error", "message": message, "reason": reason})
