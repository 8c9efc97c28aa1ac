"""Binance spot streams: ``@trade``, or ``@aggTrade`` with the ids of aggregates, combined, times in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ingestors.engine.feed_values import (
    BadTrade,
    FeedEvent,
    Leave,
    LiveLimits,
    LostCause,
    Refused,
    Subscribed,
    Trades,
)
from ingestors.engine.values import Listing
from ingestors.exchanges.live.exact import BAD, UNREADABLE, Scale, excerpt, make_trade, ticks_ns
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS

__all__ = ["LIMITS", "BinanceProtocol", "BinanceStream"]

BinanceStream = Literal["trade", "aggTrade"]

LIMITS = LiveLimits(
    tickers_max=1_024,
    # Five are allowed, and answers to the exchange's pings count as well.
    messages_per_second_max=3,
    connects_max=300,
    connects_window_ns=300 * NANOSECONDS,
    # The exchange pings every twenty seconds.
    silence_ns=50 * NANOSECONDS,
    lifetime_ns=24 * 3_600 * NANOSECONDS,
)
_STREAMS_PER_MESSAGE = 100


class _Event(msgspec.Struct, gc=False):
    e: str = ""
    s: str = ""
    t: int = -1
    a: int = -1
    p: str = ""
    q: str = ""
    T: int = 0
    m: bool = False


class _Error(msgspec.Struct, gc=False):
    code: int = 0
    msg: str = ""


class _Message(msgspec.Struct):
    data: _Event | None = None
    id: int | None = None
    error: _Error | None = None
    e: str = ""


class _Head(msgspec.Struct):
    stream: str = ""


_MESSAGES = msgspec.json.Decoder(_Message)
_HEADS = msgspec.json.Decoder(_Head)


class BinanceProtocol:
    """See :class:`~ingestors.exchanges.live.port.LiveProtocol`.

    Args:
        stream: ``trade``, or ``aggTrade`` where single trades are not to be had.
    """

    def __init__(self, *, stream: BinanceStream = "trade") -> None:
        self._stream = stream
        self._is_single = stream == "trade"
        self._scales: dict[str, Scale] = {}
        self._asked: dict[int, tuple[Listing, ...]] = {}
        self._again: list[Listing] = []
        self._number = 0

    @property
    def limits(self) -> LiveLimits:
        """See the port."""
        return LIMITS

    def endpoint(self, listings: Sequence[Listing]) -> str:  # noqa: ARG002 - the port's signature
        """See the port; streams are subscribed by messages, because only those are confirmed."""
        return "/stream?timeUnit=MICROSECOND"

    def subscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        """See the port."""
        for listing in listings:
            self._scales[listing.native_symbol] = Scale.of(listing)
        return self._requests("SUBSCRIBE", listings)

    def unsubscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        """See the port."""
        for listing in listings:
            self._scales.pop(listing.native_symbol, None)
        return self._requests("UNSUBSCRIBE", listings)

    def on_message(self, data: bytes, received_ns: int) -> Sequence[FeedEvent]:
        """See the port."""
        try:
            message = _MESSAGES.decode(data)
        except UNREADABLE as error:
            return self._unreadable(data, error)
        event = message.data
        if event is None:
            return self._control(message)
        if event.e != self._stream:
            return _shutdown() if event.e == "serverShutdown" else ()
        scale = self._scales.get(event.s)
        if scale is None:
            return ()
        try:
            trade = make_trade(
                scale,
                event.t if self._is_single else event.a,
                ticks_ns(event.T),
                price=event.p,
                amount=event.q,
                # m says that the buyer was the maker, so the taker sold.
                taker_buy=not event.m,
                received_ns=received_ns,
            )
        except BAD as error:
            return (BadTrade(scale.ticker, f"{error}; {excerpt(data)}"),)
        return (Trades(scale.ticker, (trade,)),)

    def on_tick(self, now_ns: int) -> list[bytes]:  # noqa: ARG002 - the port's signature
        """Ask again, one by one, for the streams of a request that was refused as a whole."""
        again, self._again = self._again, []
        return [text for listing in again for text in self._requests("SUBSCRIBE", (listing,))]

    def _requests(self, method: str, listings: Sequence[Listing]) -> list[bytes]:
        texts = []
        for begin in range(0, len(listings), _STREAMS_PER_MESSAGE):
            part = tuple(listings[begin : begin + _STREAMS_PER_MESSAGE])
            self._number += 1
            if method == "SUBSCRIBE":
                self._asked[self._number] = part
            streams = [f"{listing.native_symbol.lower()}@{self._stream}" for listing in part]
            texts.append(msgspec.json.encode({"method": method, "params": streams, "id": self._number}))
        return texts

    def _control(self, message: _Message) -> Sequence[FeedEvent]:
        if message.e == "serverShutdown":
            return _shutdown()
        listings = self._asked.pop(message.id, ()) if message.id is not None else ()
        if message.error is None:
            return [Subscribed(str(listing.ticker)) for listing in listings]
        if len(listings) > 1:
            # The answer does not say which stream was wrong.
            self._again += listings
            return ()
        text = f"Binance refused the stream: {message.error.code} {message.error.msg}"
        return [Refused(str(listing.ticker), ErrorCode.UNKNOWN_SYMBOL, text) for listing in listings]

    def _unreadable(self, data: bytes, error: Exception) -> Sequence[FeedEvent]:
        try:
            stream = _HEADS.decode(data).stream
        except UNREADABLE:
            return (BadTrade("", f"unreadable message: {error}; {excerpt(data)}"),)
        symbol, _, kind = stream.partition("@")
        scale = self._scales.get(symbol.upper())
        if stream and kind != self._stream:
            return ()
        return (BadTrade("" if scale is None else scale.ticker, f"unreadable trade: {error}; {excerpt(data)}"),)


def _shutdown() -> Sequence[FeedEvent]:
    return (Leave(LostCause.DISCONNECT, "the exchange announced a planned stop", is_planned=True),)
