"""Kraken WebSocket v2: channel ``trade`` with snapshots, acknowledgements, heartbeats and the system's status.

Prices and sizes are bare JSON numbers with all their digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

import msgspec

from ingestors.simulation.coinbase import iso_microseconds
from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.plain_session import PlainSession
from ingestors.simulation.records import Trade
from ingestors.simulation.socket_values import Moment, SocketLimits, ToSend
from ingestors.simulation.trade_texts import iso_texts, number_writer

__all__ = ["KrakenSession"]

_LOT_PLACES = 8
_MESSAGE_TRADES_MAX = 50
_HEARTBEAT = b'{"channel":"heartbeat"}'
_CONNECTIONS = count(1)


class KrakenSession(PlainSession):
    """One connection.

    Args:
        feeds: by unified symbol.
        limits: bounds.
    """

    def __init__(self, feeds: Mapping[str, MarketFeed], *, limits: SocketLimits) -> None:
        super().__init__(feeds, limits=limits)
        self._number = next(_CONNECTIONS)
        self._sent_ns = 0
        self._has_subscribed = False
        self._system = "online"

    def opened(self, moment: Moment) -> Sequence[ToSend]:
        """Return the status message."""
        self._sent_ns = moment.wall_ns
        return [self._status()]

    def received(self, text: bytes, moment: Moment) -> Sequence[ToSend]:
        """Answer a method."""
        asked = _asked(text)
        method, number = asked.get("method"), asked.get("req_id")
        if method == "ping":
            return [_acknowledged({"method": "pong"}, moment, number)]
        parameters = asked.get("params")
        symbols = parameters.get("symbol") if isinstance(parameters, dict) else None
        error = None
        if method not in ("subscribe", "unsubscribe"):
            error = "Unsupported method" if asked else "Malformed request"
        elif not isinstance(parameters, dict) or parameters.get("channel") != "trade":
            error = "Unsupported channel"
        elif not isinstance(symbols, list) or not symbols or not all(isinstance(name, str) for name in symbols):
            error = "Symbol(s) not found"
        if error is not None or not isinstance(parameters, dict) or not isinstance(symbols, list):
            return [_refusal(moment, error=error or "Malformed request", method=method, number=number)]
        self._sent_ns = moment.wall_ns
        wants_snapshot = parameters.get("snapshot", False) is True
        answers: list[ToSend] = []
        for name in symbols:
            answers += self._one(str(method), name, number, wants_snapshot, moment)
        return answers

    def turned(self, moment: Moment) -> Sequence[ToSend]:
        """Return a heartbeat when nothing else was sent for a second and something is subscribed."""
        idle_ns = moment.wall_ns - self._sent_ns
        if not self._has_subscribed or idle_ns < self._limits.heartbeat_ms * 10**6:
            return ()
        self._sent_ns = moment.wall_ns
        return [_HEARTBEAT]

    def traded(self, feed: MarketFeed, trades: Sequence[Trade], moment: Moment) -> Sequence[bytes]:
        """Return updates of at most fifty trades each."""
        self._sent_ns = moment.wall_ns
        pages = (trades[n : n + _MESSAGE_TRADES_MAX] for n in range(0, len(trades), _MESSAGE_TRADES_MAX))
        return [_trade_message(feed, page, "update") for page in pages]

    def snapshot(self, feed: MarketFeed, trades: Sequence[Trade], moment: Moment) -> Sequence[bytes]:
        """Return one snapshot message."""
        self._sent_ns = moment.wall_ns
        return [_trade_message(feed, trades, "snapshot")]

    def notice(self, kind: str, moment: Moment) -> Sequence[bytes]:
        """Return a status message for ``maintenance`` and ``online``."""
        self._sent_ns = moment.wall_ns
        if kind not in ("maintenance", "online"):
            return ()
        self._system = kind
        return [self._status()]

    def _status(self) -> bytes:
        data = {"version": "2.0.10", "system": self._system, "api_version": "v2", "connection_id": self._number}
        return msgspec.json.encode({"channel": "status", "type": "update", "data": [data]})

    def _one(self, method: str, name: str, number: object, wants_snapshot: bool, moment: Moment) -> list[ToSend]:
        feed = self._feeds.get(name)
        if feed is None or not feed.is_listed(moment.now_ns):
            text = f"Currency pair not supported {name}"
            return [_refusal(moment, error=text, method=method, number=number, symbol=name)]
        result: dict[str, object] = {"channel": "trade", "symbol": name}
        if method == "unsubscribe":
            feed.leave(self)
            return [_acknowledged({"method": method, "result": result, "success": True}, moment, number)]
        self._has_subscribed = True
        feed.join(self, now_ns=moment.now_ns)
        result["snapshot"] = wants_snapshot
        answers: list[ToSend] = [_acknowledged({"method": method, "result": result, "success": True}, moment, number)]
        if wants_snapshot:
            answers += self.snapshot(feed, feed.newest(self._limits.snapshot_trades), moment)
        return answers


def _asked(text: bytes) -> dict[str, object]:
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _trade_message(feed: MarketFeed, trades: Sequence[Trade], kind: str) -> bytes:
    listing = feed.source.listing
    price, size = number_writer(listing.price_decimals), number_writer(listing.size_decimals, _LOT_PLACES)
    rows = [
        f'{{"symbol":"{feed.name}","side":"{"buy" if trade.taker_buy else "sell"}",'
        f'"price":{price(trade.price_units)},"qty":{size(trade.size_units)},'
        f'"ord_type":"{"market" if trade.trade_id % 3 else "limit"}","trade_id":{trade.trade_id},"timestamp":"{time}"}}'
        for trade, time in zip(trades, iso_texts(trades), strict=True)
    ]
    return f'{{"channel":"trade","type":"{kind}","data":[{",".join(rows)}]}}'.encode()


def _acknowledged(answer: dict[str, object], moment: Moment, number: object) -> bytes:
    if number is not None:
        answer["req_id"] = number
    answer["time_in"] = answer["time_out"] = iso_microseconds(moment.now_ns)
    return msgspec.json.encode(answer)


def _refusal(moment: Moment, *, error: str, method: object, number: object, symbol: str | None = None) -> bytes:
    answer: dict[str, object] = {"error": error, "success": False}
    if method is not None:
        answer["method"] = method
    if symbol is not None:
        answer["symbol"] = symbol
    return _acknowledged(answer, moment, number)
