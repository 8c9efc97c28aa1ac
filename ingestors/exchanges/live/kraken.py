"""Kraken WebSocket v2, channel ``trade``: JSON numbers read by their digits, a snapshot after every subscription."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from ingestors.exchanges.live.exact import BAD, UNREADABLE, IsoTimes, Scale, decoded_each, excerpt, make_trade
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS

__all__ = ["LIMITS", "KrakenProtocol"]

LIMITS = LiveLimits(
    tickers_max=200,
    messages_per_second_max=10,
    connects_max=150,
    connects_window_ns=600 * NANOSECONDS,
    # A heartbeat comes every second when nothing else does.
    silence_ns=10 * NANOSECONDS,
)
_SYMBOLS_PER_MESSAGE = 50
_PING_NS = 30 * NANOSECONDS
_TRADES_HEAD = b'{"channel":"trade"'
_UNKNOWN = ("not supported", "not found", "unknown", "invalid", "malformed", "delisted")


class _Row(msgspec.Struct, gc=False):
    symbol: str
    side: str
    price: msgspec.Raw
    qty: msgspec.Raw
    trade_id: int
    timestamp: str


class _TradeMessage(msgspec.Struct):
    type: str
    data: list[_Row]


class _LooseMessage(msgspec.Struct):
    type: str
    data: list[msgspec.Raw]


class _Result(msgspec.Struct):
    channel: str = ""
    symbol: str = ""


class _Message(msgspec.Struct):
    channel: str = ""
    data: msgspec.Raw = msgspec.Raw()
    method: str = ""
    success: bool = False
    error: str = ""
    symbol: str = ""
    result: _Result | None = None


class _System(msgspec.Struct):
    system: str = ""


_TRADES = msgspec.json.Decoder(_TradeMessage)
_LOOSE = msgspec.json.Decoder(_LooseMessage)
_ROWS = msgspec.json.Decoder(_Row)
_MESSAGES = msgspec.json.Decoder(_Message)
_SYSTEMS = msgspec.json.Decoder(list[_System])


class KrakenProtocol:
    """See :class:`~ingestors.exchanges.live.port.LiveProtocol`.

    Args:
        maintenance_wait_ns: how long to stay away after the exchange said that it is in maintenance.
    """

    def __init__(self, *, maintenance_wait_ns: int = 30 * NANOSECONDS) -> None:
        self._maintenance_wait_ns = maintenance_wait_ns
        self._scales: dict[str, Scale] = {}
        self._times = IsoTimes()
        self._number = 0
        self._pinged_ns: int | None = None

    @property
    def limits(self) -> LiveLimits:
        """See the port."""
        return LIMITS

    def endpoint(self, listings: Sequence[Listing]) -> str:  # noqa: ARG002 - the port's signature
        """See the port."""
        return ""

    def subscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        """See the port."""
        self._scales.update((listing.ticker.symbol, Scale.of(listing)) for listing in listings)
        return self._requests("subscribe", listings, {"snapshot": True})

    def unsubscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        """See the port."""
        for listing in listings:
            self._scales.pop(listing.ticker.symbol, None)
        return self._requests("unsubscribe", listings, {})

    def on_message(self, data: bytes, received_ns: int) -> Sequence[FeedEvent]:
        """See the port."""
        if data.startswith(_TRADES_HEAD):
            return self._trades(data, received_ns)
        try:
            message = _MESSAGES.decode(data)
            if message.channel == "trade":
                return self._trades(data, received_ns)
            systems = _SYSTEMS.decode(message.data) if message.channel == "status" else ()
        except UNREADABLE as error:
            return (BadTrade("", f"unreadable message: {error}; {excerpt(data)}"),)
        if any(entry.system == "maintenance" for entry in systems):
            text = "the exchange is in maintenance"
            return (Leave(LostCause.DISCONNECT, text, wait_ns=self._maintenance_wait_ns),)
        return self._acknowledged(message) if message.method == "subscribe" else ()

    def on_tick(self, now_ns: int) -> list[bytes]:
        """Ask for a sign of life now and then, which also keeps the connection."""
        if self._pinged_ns is None:
            self._pinged_ns = now_ns
        if now_ns - self._pinged_ns < _PING_NS:
            return []
        self._pinged_ns = now_ns
        return [b'{"method":"ping"}']

    def _requests(self, method: str, listings: Sequence[Listing], more: dict[str, object]) -> list[bytes]:
        texts = []
        for begin in range(0, len(listings), _SYMBOLS_PER_MESSAGE):
            symbols = [listing.ticker.symbol for listing in listings[begin : begin + _SYMBOLS_PER_MESSAGE]]
            self._number += 1
            params = {"channel": "trade", "symbol": symbols, **more}
            texts.append(msgspec.json.encode({"method": method, "params": params, "req_id": self._number}))
        return texts

    def _acknowledged(self, message: _Message) -> Sequence[FeedEvent]:
        symbol = message.symbol or (message.result.symbol if message.result is not None else "")
        scale = self._scales.get(symbol)
        error = message.error.lower()
        if message.success or "already subscribed" in error:
            return () if scale is None else (Subscribed(scale.ticker),)
        text = f"Kraken refused the subscription: {message.error}"
        if scale is not None and any(word in error for word in _UNKNOWN):
            return (Refused(scale.ticker, ErrorCode.UNKNOWN_SYMBOL, text),)
        return (Leave(LostCause.DISCONNECT, text, wait_ns=NANOSECONDS),)

    def _trades(self, data: bytes, received_ns: int) -> Sequence[FeedEvent]:
        bad: list[BadTrade] = []
        rows: Iterable[_Row]
        try:
            message = _TRADES.decode(data)
            kind, rows = message.type, message.data
        except UNREADABLE as error:
            try:
                loose = _LOOSE.decode(data)
            except UNREADABLE:
                return (BadTrade("", f"unreadable message: {error}; {excerpt(data)}"),)
            kind, rows = loose.type, decoded_each(loose.data, _ROWS, ticker="", bad=bad)
        by_ticker: dict[str, list[LiveTrade]] = {}
        for row in rows:
            scale = self._scales.get(row.symbol)
            if scale is None:
                continue
            try:
                trade = self._trade(row, scale, received_ns)
            except BAD as error:
                bad.append(BadTrade(scale.ticker, f"{error}; trade {row.trade_id}"))
                continue
            trades = by_ticker.get(scale.ticker)
            if trades is None:
                by_ticker[scale.ticker] = [trade]
            else:
                trades.append(trade)
        is_snapshot = kind == "snapshot"
        return [*(Trades(ticker, trades, is_snapshot) for ticker, trades in by_ticker.items()), *bad]

    def _trade(self, row: _Row, scale: Scale, received_ns: int) -> LiveTrade:
        if row.side not in ("buy", "sell"):
            raise ValueError(f"expected side buy or sell, got {row.side[:20]!r}")
        return make_trade(
            scale,
            row.trade_id,
            self._times.ns(row.timestamp),
            price=str(row.price, "ascii"),
            amount=str(row.qty, "ascii"),
            taker_buy=row.side == "buy",
            received_ns=received_ns,
        )
