"""Live sides of the exchanges by name: protocol, sockets and filler put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ingestors.clock import Clock
from ingestors.engine.budget import Jitter
from ingestors.engine.connection_commands import PlanRules
from ingestors.engine.feed_values import SocketEvent
from ingestors.exchanges.exchange import Exchange
from ingestors.exchanges.http import HostClient
from ingestors.exchanges.live.binance import BinanceProtocol
from ingestors.exchanges.live.coinbase import CoinbaseProtocol
from ingestors.exchanges.live.coinbase_advanced import CoinbaseAdvancedProtocol
from ingestors.exchanges.live.fill_by_id import BinanceFiller, CoinbaseFiller
from ingestors.exchanges.live.fill_by_time import CoinbaseAdvancedFiller, KrakenFiller
from ingestors.exchanges.live.kraken import KrakenProtocol
from ingestors.exchanges.live.port import LiveProtocol
from ingestors.exchanges.live.rest_trades import LiveFiller
from ingestors.live.binance_transport import api_key_headers, sbe_protocol
from ingestors.live.connections import LiveConnections
from ingestors.live.desk import LiveMarket
from ingestors.live.live_socket import SocketBounds
from ingestors.settings import IngestorSettings
from relay.errors import SettingsError
from relay.observability import Counters
from relay.protocol.codes import ErrorCode

__all__ = ["LIVE_EXCHANGES", "open_live"]

LIVE_EXCHANGES = ("BINANCE", "KRAKEN", "COINBASE")


class _Parts(NamedTuple):
    """What an exchange's live side is made of."""

    base_url: str
    make_protocol: Callable[[], LiveProtocol]
    filler: LiveFiller
    feed: str = "json trade"
    headers: Mapping[str, str] | None = None


def open_live(
    name: str,
    settings: IngestorSettings,
    exchange: Exchange,
    *,
    clock: Clock,
    counters: Counters,
    jitter: Jitter,
    deliver: Callable[[SocketEvent], None],
    rules: PlanRules | None = None,
) -> LiveMarket:
    """Return the live side of an exchange; it connects when the first market is added.

    Args:
        name: upper-case name of the exchange.
        settings: URLs, modes and bounds.
        exchange: its REST side, whose budget the filler shares.
        clock: time.
        counters: of the process.
        jitter: returns a whole number of [0, n).
        deliver: called with every event.
        rules: bounds of the connection plan; those of the settings by default.

    Raises:
        SettingsError: UNKNOWN_EXCHANGE, the exchange has no live feed here; or its settings do not fit together.
    """
    if exchange.host is None or name not in LIVE_EXCHANGES:
        raise SettingsError(
            f"expected an exchange with a live feed ({', '.join(LIVE_EXCHANGES)}), got {name}",
            code=ErrorCode.UNKNOWN_EXCHANGE,
        )
    parts = _parts(name, settings, exchange.host, clock)
    connections = LiveConnections(
        name,
        parts.make_protocol,
        base_url=parts.base_url,
        clock=clock,
        counters=counters,
        jitter=jitter,
        deliver=deliver,
        look=parts.filler.newest,
        rules=rules or PlanRules(tickers_max=settings.socket_tickers_max),
        bounds=SocketBounds(message_bytes_max=settings.socket_message_bytes_max),
        headers=parts.headers,
    )
    return LiveMarket(connections, parts.filler, exchange.markets.find, parts.feed)


def _parts(name: str, settings: IngestorSettings, host: HostClient, clock: Clock) -> _Parts:
    if name == "BINANCE":
        return _binance(settings, host, clock)
    if name == "KRAKEN":
        return _Parts(settings.kraken_socket_url, KrakenProtocol, KrakenFiller(host, clock=clock))
    if settings.coinbase_api == "exchange":
        return _Parts(settings.coinbase_socket_url, CoinbaseProtocol, CoinbaseFiller(host, clock=clock))
    filler = CoinbaseAdvancedFiller(host, clock=clock)
    return _Parts(settings.coinbase_advanced_socket_url, CoinbaseAdvancedProtocol, filler)


def _binance(settings: IngestorSettings, host: HostClient, clock: Clock) -> _Parts:
    stream = settings.binance_stream
    filler = BinanceFiller(host, clock=clock, stream=stream)
    if settings.binance_transport == "json":
        return _Parts(settings.binance_socket_url, lambda: BinanceProtocol(stream=stream), filler, f"json {stream}")
    make, headers = sbe_protocol(stream), api_key_headers(settings)
    return _Parts(settings.binance_sbe_socket_url, make, filler, f"sbe {stream}", headers)
