"""What tests of live feeds share: listings, captured messages, and a live side on the simulated exchange."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from ingestors.clock import system_clock
from ingestors.engine.connection_commands import PlanRules
from ingestors.engine.feed_values import Connected, Disconnected, LiveTrade, SocketEvent, Trades
from ingestors.engine.values import Listing
from ingestors.exchanges.exchange import Exchange, open_exchange
from ingestors.live.desk import LiveMarket
from ingestors.live.markets import open_live
from ingestors.settings import IngestorSettings
from ingestors.simulation.binance_sbe_socket import SIMULATED_KEY
from relay.observability import Counters
from relay.protocol.tickers import parse_ticker
from tests.support.ingestors import no_jitter

__all__ = ["SECOND_NS", "LiveBench", "captured", "listing", "live_bench"]

SECOND_NS = 1_000_000_000


def listing(
    ticker: str,
    native_symbol: str = "",
    *,
    price_increment: str | None = "0.01",
    amount_increment: str | None = "0.00001",
    alias_of: str | None = None,
) -> Listing:
    parsed = parse_ticker(ticker)
    return Listing(
        parsed,
        native_symbol or parsed.symbol.replace("/", "-"),
        price_increment=None if price_increment is None else Decimal(price_increment),
        amount_increment=None if amount_increment is None else Decimal(amount_increment),
        alias_of=alias_of,
    )


def captured(path: Path) -> Iterator[bytes]:
    """Return the messages that a recorded socket received."""
    received = re.compile(r"\d+\.\d+: (.*)")
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        match = received.fullmatch(line)
        if match is not None:
            yield match[1].encode()


@dataclass
class LiveBench:
    """A live side at work; collects what it delivers."""

    exchange: Exchange
    market: LiveMarket
    counters: Counters
    events: list[SocketEvent] = field(default_factory=list)

    def trades(self, ticker: str) -> dict[int, LiveTrade]:
        """Return the trades of a ticker by number."""
        return {
            trade.number: trade
            for event in self.events
            if isinstance(event, Trades) and event.ticker == ticker
            for trade in event.trades
        }

    def of_kind(self, kind: type[SocketEvent]) -> list[SocketEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    def is_connected(self, ticker: str) -> bool:
        told = [e for e in self.events if isinstance(e, Connected | Disconnected) and e.ticker == ticker]
        return bool(told) and isinstance(told[-1], Connected)

    async def add(self, *tickers: str) -> None:
        for ticker in tickers:
            self.market.connections.add(await self.market.find(ticker))

    async def close(self) -> None:
        await self.market.connections.close()
        await self.exchange.adapter.close()


def live_bench(
    name: str,
    *,
    base_urls: Mapping[str, str],
    socket_urls: Mapping[str, str],
    coinbase_api: str = "exchange",
    binance_stream: str = "trade",
    binance_transport: str = "json",
    binance_api_key: str = SIMULATED_KEY,
    rules: PlanRules | None = None,
) -> LiveBench:
    """Return a live side by URL only; inside a running loop."""
    asyncio.get_running_loop()
    settings = IngestorSettings(
        coinbase_api=coinbase_api,
        binance_stream=binance_stream,
        binance_transport=binance_transport,
        binance_api_key=binance_api_key,
        **{f"{key.replace('-', '_')}_base_url": url for key, url in base_urls.items()},
        **{f"{key.replace('-', '_')}_socket_url": url for key, url in socket_urls.items()},
    )
    counters, clock, events = Counters(), system_clock(), list[SocketEvent]()
    exchange = open_exchange(name, settings, clock=clock, jitter=no_jitter, counters=counters)
    market = open_live(
        name,
        settings,
        exchange,
        clock=clock,
        counters=counters,
        jitter=no_jitter,
        deliver=events.append,
        rules=rules,
    )
    return LiveBench(exchange, market, counters, events)
