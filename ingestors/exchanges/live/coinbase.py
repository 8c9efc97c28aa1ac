"""Coinbase Exchange feed: ``matches`` with the maker's side, ``heartbeat`` as proof that nothing is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ingestors.engine.feed_values import (
    BadTrade,
    FeedEvent,
    Leave,
    LiveLimits,
    LostCause,
    Proof,
    Refused,
    Subscribed,
    Trades,
)
from ingestors.engine.values import Listing
from ingestors.exchanges.live.exact import BAD, UNREADABLE, IsoTimes, Scale, excerpt, make_trade
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS

__all__ = ["LIMITS", "CoinbaseProtocol", "is_bought", "named_products"]

LIMITS = LiveLimits(
    tickers_max=100,
    messages_per_second_max=10,
    connects_max=100,
    connects_window_ns=60 * NANOSECONDS,
    # Every product has a heartbeat each second.
    silence_ns=10 * NANOSECONDS,
    subscribe_within_ns=5 * NANOSECONDS,
)
_CHANNELS = ("matches", "heartbeat")
_PRODUCT = re.compile(r"[A-Z0-9]+-[A-Z0-9]+", re.ASCII)
_ERROR_WAIT_NS = 5 * NANOSECONDS


class _Channel(msgspec.Struct):
    name: str = ""
    product_ids: list[str] = []


class _Message(msgspec.Struct):
    type: str = ""
    product_id: str = ""
    trade_id: int = -1
    side: str = ""
    size: str = ""
    price: str = ""
    time: str = ""
    sequence: int | None = None
    last_trade_id: int = 0
    message: str = ""
    reason: str = ""
    channels: list[_Channel] | None = None


class _Head(msgspec.Struct):
    type: str = ""
    product_id: str = ""


_MESSAGES = msgspec.json.Decoder(_Message)
_HEADS = msgspec.json.Decoder(_Head)


class CoinbaseProtocol:
    """See :class:`~ingestors.exchanges.live.port.LiveProtocol`."""

    def __init__(self) -> None:
        self._scales: dict[str, Scale] = {}
        self._pending: dict[str, Listing] = {}
        self._again: list[Listing] = []
        self._times = IsoTimes()

    @property
    def limits(self) -> LiveLimits:
        """See the port."""
        return LIMITS

    def endpoint(self, listings: Sequence[Listing]) -> str:  # noqa: ARG002 - the port's signature
        """See the port."""
        return ""

    def subscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        """See the port."""
        for listing in listings:
            self._scales[listing.native_symbol] = Scale.of(listing)
            self._pending[listing.native_symbol] = listing
        return [_request("subscribe", listings)]

    def unsubscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        """See the port."""
        for listing in listings:
            self._scales.pop(listing.native_symbol, None)
            self._pending.pop(listing.native_symbol, None)
        return [_request("unsubscribe", listings)]

    def on_message(self, data: bytes, received_ns: int) -> Sequence[FeedEvent]:
        """See the port."""
        try:
            message = _MESSAGES.decode(data)
        except UNREADABLE as error:
            return self._unreadable(data, error)
        kind = message.type
        if kind in ("match", "last_match"):
            return self._trade(message, received_ns)
        if kind == "heartbeat":
            return self._heartbeat(message)
        if kind == "subscriptions":
            return self._subscribed(message)
        return self._refused(message) if kind == "error" else ()

    def on_tick(self, now_ns: int) -> list[bytes]:  # noqa: ARG002 - the port's signature
        """Ask again for the products of a request that was refused because of others in it."""
        again, self._again = self._again, []
        return self.subscribe(again) if again else []

    def _trade(self, message: _Message, received_ns: int) -> Sequence[FeedEvent]:
        scale = self._scales.get(message.product_id)
        if scale is None:
            return ()
        try:
            trade = make_trade(
                scale,
                message.trade_id,
                self._times.ns(message.time),
                price=message.price,
                amount=message.size,
                taker_buy=is_bought(message.side),
                received_ns=received_ns,
                sequence=message.sequence,
            )
        except BAD as error:
            return (BadTrade(scale.ticker, f"{error}; trade {message.trade_id}"),)
        # The trade before the subscription comes once more.
        return (Trades(scale.ticker, (trade,), message.type == "last_match"),)

    def _heartbeat(self, message: _Message) -> Sequence[FeedEvent]:
        scale = self._scales.get(message.product_id)
        if scale is None or message.last_trade_id <= 0:
            return ()
        try:
            return (Proof(scale.ticker, message.last_trade_id, self._times.ns(message.time)),)
        except BAD as error:
            return (BadTrade("", f"unreadable heartbeat: {error}"),)

    def _subscribed(self, message: _Message) -> Sequence[FeedEvent]:
        names = [
            name for channel in message.channels or () if channel.name == "matches" for name in channel.product_ids
        ]
        confirmed = [listing for name in names if (listing := self._pending.pop(name, None)) is not None]
        return [Subscribed(str(listing.ticker)) for listing in confirmed]

    def _refused(self, message: _Message) -> Sequence[FeedEvent]:
        text = f"Coinbase refused the subscription: {message.message}: {message.reason}"
        named = named_products(text, self._pending)
        if not named:
            return (Leave(LostCause.DISCONNECT, text, wait_ns=_ERROR_WAIT_NS),)
        # The request is refused as a whole, so the others are still to be subscribed.
        self._again += self._pending.values()
        self._pending.clear()
        for listing in named:
            self._scales.pop(listing.native_symbol, None)
        return [Refused(str(listing.ticker), ErrorCode.UNKNOWN_SYMBOL, text) for listing in named]

    def _unreadable(self, data: bytes, error: Exception) -> Sequence[FeedEvent]:
        try:
            head = _HEADS.decode(data)
        except UNREADABLE:
            return (BadTrade("", f"unreadable message: {error}; {excerpt(data)}"),)
        scale = self._scales.get(head.product_id)
        is_trade = scale is not None and head.type in ("match", "last_match")
        return (BadTrade(scale.ticker if is_trade and scale else "", f"unreadable message: {error}; {excerpt(data)}"),)


def is_bought(maker_side: str) -> bool:
    """Return whether the taker bought, from the maker's side in any case.

    Raises:
        ValueError: it is neither side.
    """
    side = maker_side.lower()
    if side not in ("buy", "sell"):
        raise ValueError(f"expected side buy or sell, got {maker_side[:20]!r}")
    return side == "sell"


def named_products(text: str, pending: dict[str, Listing]) -> list[Listing]:
    """Take those of the pending products that a refusal names."""
    return [listing for name in _PRODUCT.findall(text) if (listing := pending.pop(name, None)) is not None]


def _request(kind: str, listings: Sequence[Listing]) -> bytes:
    products = [listing.native_symbol for listing in listings]
    return msgspec.json.encode({"type": kind, "product_ids": products, "channels": _CHANNELS})
