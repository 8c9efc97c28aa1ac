"""The sockets of all exchanges, each with its paths, over the markets that REST serves."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from ingestors.simulation.binance_sbe_socket import KEY_HEADER, SIMULATED_KEY, BinanceSbeSession
from ingestors.simulation.binance_socket import BinanceSession, binance_feeds
from ingestors.simulation.coinbase_advanced_socket import CoinbaseAdvancedSession
from ingestors.simulation.coinbase_socket import CoinbaseSession, coinbase_feeds
from ingestors.simulation.http_side import Clock
from ingestors.simulation.kraken_socket import KrakenSession
from ingestors.simulation.listings import BINANCE, BINANCE_SBE, COINBASE, COINBASE_ADVANCED, KRAKEN
from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.records import MarketSource
from ingestors.simulation.request_log import RequestLog
from ingestors.simulation.socket_faults import SocketFaultBook
from ingestors.simulation.socket_hub import SocketHub
from ingestors.simulation.socket_side import MakeSession, SocketSide
from ingestors.simulation.socket_values import SocketLimits, SocketSession

__all__ = ["SOCKET_PATHS", "socket_side"]

SOCKET_PATHS: Mapping[str, str] = {
    BINANCE: "/binance-ws",
    BINANCE_SBE: "/binance-sbe-ws",
    KRAKEN: "/kraken-ws/v2",
    COINBASE: "/coinbase-ws",
    COINBASE_ADVANCED: "/coinbase-advanced-ws",
}
"""Base path by exchange; below Binance's come ``/ws/<stream>…`` and ``/stream?streams=…``."""

_SERVED_BY = {BINANCE: (BINANCE, BINANCE_SBE)}
_TAILS = dict.fromkeys(_SERVED_BY[BINANCE], ("/ws", "/ws/{streams:.+}", "/stream"))
_MICROSECOND_NS, _MILLISECOND_NS = 10**3, 10**6


def socket_side(
    exchange: str,
    markets: Mapping[str, MarketSource],
    *,
    root: web.Application,
    limits: SocketLimits,
    faults: SocketFaultBook,
    clock: Clock,
    wall_clock: Clock,
    requests: RequestLog,
) -> SocketSide:
    """Return an exchange's sockets, with their paths added to the root application.

    Args:
        exchange: its name.
        markets: by unified symbol, the very ones that REST serves.
        root: gets the paths.
        limits: bounds.
        faults: asked at every turn.
        clock: the exchange's time.
        wall_clock: real time.
        requests: told of each handshake.
    """
    feeds = {symbol: MarketFeed(_own_name(exchange, symbol), source) for symbol, source in markets.items()}
    if exchange == BINANCE:
        feeds = binance_feeds(feeds)
    elif exchange != KRAKEN:
        feeds = coinbase_feeds(feeds)
    hub = SocketHub(exchange, feeds, limits=limits, faults=faults)
    make = _maker(exchange, feeds, limits)
    side = SocketSide(hub, make, clock=clock, wall_clock=wall_clock, requests=requests)
    for name in _SERVED_BY.get(exchange, (exchange,)):
        base = SOCKET_PATHS[name]
        for tail in _TAILS.get(name, ("", "/")):
            root.router.add_get(base + tail, side.handler(base))
    return side


def _own_name(exchange: str, symbol: str) -> str:
    if exchange == KRAKEN:
        return symbol
    return symbol.replace("/", "" if exchange == BINANCE else "-")


def _maker(exchange: str, feeds: Mapping[str, MarketFeed], limits: SocketLimits) -> MakeSession:
    def binance(request: web.Request) -> SocketSession | web.Response:
        is_wrapped = "streams" not in request.match_info and request.path.endswith("/stream")
        streams = request.query.get("streams", "") if is_wrapped else request.match_info.get("streams", "")
        unit = request.query.get("timeUnit", "MILLISECOND").upper()
        if unit not in ("MILLISECOND", "MICROSECOND"):
            return web.json_response({"code": -1194, "msg": "Invalid time unit."}, status=400)
        is_binary = request.path.startswith(SOCKET_PATHS[BINANCE_SBE])
        if is_binary and request.headers.get(KEY_HEADER) != SIMULATED_KEY:
            return web.json_response({"code": -2015, "msg": "Invalid API-key."}, status=401)
        return (BinanceSbeSession if is_binary else BinanceSession)(
            feeds,
            limits=limits,
            streams=[name for name in streams.split("/") if name],
            is_wrapped=is_wrapped,
            unit_ns=_MICROSECOND_NS if unit == "MICROSECOND" else _MILLISECOND_NS,
        )

    def other(_: web.Request) -> SocketSession:
        if exchange == KRAKEN:
            return KrakenSession(feeds, limits=limits)
        if exchange == COINBASE:
            return CoinbaseSession(feeds, limits=limits)
        return CoinbaseAdvancedSession(feeds, limits=limits)

    return binance if exchange == BINANCE else other
