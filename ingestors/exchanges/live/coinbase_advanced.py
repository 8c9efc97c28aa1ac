"""Coinbase Advanced Trade socket: ``market_trades`` newest first, one sequence a connection, ``heartbeats``."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ingestors.engine.feed_values import (
    BadTrade,
    FeedEvent,
    Leave,
    LiveLimits,
    LiveTrade,
    LostCause,
    Refused,
    Subscribed,
    Trades,
)
from ingestors.engine.values import Listing
from ingestors.exchanges.live.coinbase import is_bought, named_products
from ingestors.exchanges.live.exact import BAD, UNREADABLE, IsoTimes, Scale, decoded_each, excerpt, make_trade
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS

__all__ = ["LIMITS", "CoinbaseAdvancedProtocol"]

LIMITS = LiveLimits(
    tickers_max=100,
    messages_per_second_max=6,
    connects_max=100,
    connects_window_ns=60 * NANOSECONDS,
    silence_ns=10 * NANOSECONDS,
    subscribe_within_ns=5 * NANOSECONDS,
)
_TRADES = "market_trades"
_ERROR_WAIT_NS = 5 * NANOSECONDS


class _Row(msgspec.Struct, gc=False):
    product_id: str
    trade_id: str
    price: str
    size: str
    time: str
    side: str


class _Event(msgspec.Struct):
    type: str = ""
    trades: list[_Row] = []
    subscriptions: dict[str, list[str]] | None = None


class _Message(msgspec.Struct):
    channel: str = ""
    sequence_num: int | None = None
    events: list[_Event] = []
    type: str = ""
    message: str = ""


class _LooseEvent(msgspec.Struct):
    type: str = ""
    trades: list[msgspec.Raw] = []


class _LooseMessage(msgspec.Struct):
    channel: str = ""
    sequence_num: int | None = None
    events: list[_LooseEvent] = []


_MESSAGES = msgspec.json.Decoder(_Message)
_LOOSE = msgspec.json.Decoder(_LooseMessage)
_ROWS = msgspec.json.Decoder(_Row)


class CoinbaseAdvancedProtocol:
    """See :class:`~ingestors.exchanges.live.port.LiveProtocol`.

    Products that share one book (``BTC-USDC`` and ``BTC-USD``) may be answered under the other's name.
    """

    def __init__(self) -> None:
        self._scales: dict[str, dict[str, Scale]] = {}
        self._pending: dict[str, Listing] = {}
        self._again: list[Listing] = []
        self._sequence: int | None = None
        self._wants_beats = True
        self._times = IsoTimes()

    @property
    def limits(self) -> LiveLimits:
        """See the port."""
        return LIMITS

    def endpoint(self, listings: Sequence[Listing]) -> str:  # noqa: ARG002 - the port's signature
        """See the port."""
        return ""

    def subscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        """See the port; with the heartbeats, without which a quiet connection is closed."""
        for listing in listings:
            self._pending[listing.native_symbol] = listing
            for name in _names(listing):
                self._scales.setdefault(name, {})[listing.native_symbol] = Scale.of(listing)
        texts = [_request("subscribe", _TRADES, listings)]
        if self._wants_beats:
            self._wants_beats = False
            texts.append(_request("subscribe", "heartbeats", ()))
        return texts

    def unsubscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        """See the port."""
        for listing in listings:
            self._forget(listing)
        return [_request("unsubscribe", _TRADES, listings)]

    def on_message(self, data: bytes, received_ns: int) -> Sequence[FeedEvent]:
        """See the port; what comes out of turn backwards is ignored, a jump forwards ends the connection."""
        bad: list[BadTrade] = []
        try:
            message = _MESSAGES.decode(data)
        except UNREADABLE as error:
            loose = self._loose(data, bad)
            if loose is None:
                return (BadTrade("", f"unreadable message: {error}; {excerpt(data)}"),)
            message = loose
        if message.type == "error":
            return self._refused(message)
        lost = 0
        if message.sequence_num is not None:
            expected = message.sequence_num if self._sequence is None else self._sequence + 1
            if message.sequence_num < expected:
                return ()
            lost, self._sequence = message.sequence_num - expected, message.sequence_num
        events: list[FeedEvent] = []
        if message.channel == _TRADES:
            for event in message.events:
                self._trades(event, received_ns, events)
        elif message.channel == "subscriptions":
            events += self._subscribed(message)
        events += bad
        if lost:
            text = f"{lost} messages are missing before sequence {message.sequence_num}"
            events.append(Leave(LostCause.SEQUENCE, text))
        return events

    def on_tick(self, now_ns: int) -> list[bytes]:  # noqa: ARG002 - the port's signature
        """Ask again for the products of a request that was refused because of others in it."""
        again, self._again = self._again, []
        return self.subscribe(again) if again else []

    def _trades(self, event: _Event, received_ns: int, events: list[FeedEvent]) -> None:
        by_ticker: dict[str, list[LiveTrade]] = {}
        for row in reversed(event.trades):
            for scale in self._scales.get(row.product_id, {}).values():
                try:
                    trade = self._trade(row, scale, received_ns)
                except BAD as error:
                    events.append(BadTrade(scale.ticker, f"{error}; trade {row.trade_id[:20]}"))
                    continue
                trades = by_ticker.get(scale.ticker)
                if trades is None:
                    by_ticker[scale.ticker] = [trade]
                else:
                    trades.append(trade)
        is_snapshot = event.type == "snapshot"
        events += [Trades(ticker, trades, is_snapshot) for ticker, trades in by_ticker.items()]

    def _trade(self, row: _Row, scale: Scale, received_ns: int) -> LiveTrade:
        number = row.trade_id
        if not (number.isascii() and number.isdigit() and len(number) <= 19):
            raise ValueError(f"expected a trade id, got {number[:20]!r}")
        return make_trade(
            scale,
            int(number),
            self._times.ns(row.time),
            price=row.price,
            amount=row.size,
            taker_buy=is_bought(row.side),
            received_ns=received_ns,
        )

    def _subscribed(self, message: _Message) -> Sequence[FeedEvent]:
        named = {name for event in message.events for name in (event.subscriptions or {}).get(_TRADES, ())}
        confirmed = [listing for listing in self._pending.values() if named.intersection(_names(listing))]
        for listing in confirmed:
            del self._pending[listing.native_symbol]
        return [Subscribed(str(listing.ticker)) for listing in confirmed]

    def _refused(self, message: _Message) -> Sequence[FeedEvent]:
        text = f"Coinbase refused the subscription: {message.message}"
        named = named_products(text, self._pending)
        if not named:
            return (Leave(LostCause.DISCONNECT, text, wait_ns=_ERROR_WAIT_NS),)
        self._again += self._pending.values()
        self._pending.clear()
        for listing in named:
            self._forget(listing)
        return [Refused(str(listing.ticker), ErrorCode.UNKNOWN_SYMBOL, text) for listing in named]

    def _forget(self, listing: Listing) -> None:
        self._pending.pop(listing.native_symbol, None)
        for name in _names(listing):
            self._scales.get(name, {}).pop(listing.native_symbol, None)

    def _loose(self, data: bytes, bad: list[BadTrade]) -> _Message | None:
        """Read a message trade by trade, so that one bad trade costs no other and no turn of the sequence."""
        try:
            loose = _LOOSE.decode(data)
        except UNREADABLE:
            return None
        events = [_Event(event.type, decoded_each(event.trades, _ROWS, ticker="", bad=bad)) for event in loose.events]
        return _Message(loose.channel, loose.sequence_num, events)


def _names(listing: Listing) -> tuple[str, ...]:
    """Return the product ids under which a listing's trades may come."""
    if listing.alias_of is None:
        return (listing.native_symbol,)
    return listing.native_symbol, listing.alias_of.rpartition(".")[0].replace("/", "-")


def _request(kind: str, channel: str, listings: Sequence[Listing]) -> bytes:
    request: dict[str, object] = {"type": kind, "channel": channel}
    if listings:
        request["product_ids"] = [listing.native_symbol for listing in listings]
    return msgspec.json.encode(request)
