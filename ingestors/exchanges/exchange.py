"""One exchange as jobs see it: its adapter, its list of markets, and how far its clock is known."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from ingestors.clock import Clock
from ingestors.engine.budget import BudgetLimits, HostBudget, Jitter
from ingestors.exchanges import binance, coinbase, coinbase_advanced, kraken
from ingestors.exchanges.ccxt_generic import open_ccxt
from ingestors.exchanges.http import Dialect, HostClient
from ingestors.exchanges.market_list import MarketList
from ingestors.exchanges.port import ExchangeAdapter
from ingestors.settings import IngestorSettings
from relay.observability import Counters

__all__ = ["Exchange", "open_exchange"]


class Exchange:
    """An adapter with what all jobs of the exchange share.

    Args:
        adapter: the port's implementation.
        host: its HTTP client; None when the adapter brings its own.
        clock: time.
    """

    def __init__(self, adapter: ExchangeAdapter, *, host: HostClient | None, clock: Clock) -> None:
        self.adapter = adapter
        self.host = host
        self.markets = MarketList(adapter.markets, clock=clock)
        self._server_ns = 0

    @property
    def name(self) -> str:
        """Upper-case name of the exchange."""
        return self.adapter.capabilities.exchange

    async def server_time_ns(self, *, enough_ns: int) -> int:
        """Return the exchange's time; one known earlier will do when it is at or after ``enough_ns``."""
        if self._server_ns < enough_ns:
            self._server_ns = await self.adapter.server_time_ns()
        return self._server_ns

    def set_weight_per_minute(self, weight: int) -> None:
        """Change the host's budget."""
        if self.host is not None and weight > 0:
            burst = min(self.host.budget.limits.burst_weight, weight)
            self.host.budget.set_limits(BudgetLimits(weight_per_minute=weight, burst_weight=burst))


def open_exchange(
    name: str,
    settings: IngestorSettings,
    *,
    clock: Clock,
    jitter: Jitter,
    counters: Counters,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Exchange:
    """Return an exchange by its name.

    Raises:
        SettingsError: no adapter serves the name.
    """

    def host(base_url: str, dialect: Dialect, limits: BudgetLimits) -> HostClient:
        return HostClient(
            base_url=base_url,
            name=name,
            dialect=dialect,
            budget=HostBudget(limits, jitter=jitter),
            clock=clock,
            counters=counters,
            timeout_seconds=settings.request_timeout_seconds,
            transport=transport,
        )

    def made(client: HostClient, adapter: Callable[[HostClient], ExchangeAdapter]) -> Exchange:
        return Exchange(adapter(client), host=client, clock=clock)

    if name == "BINANCE":
        return made(host(settings.binance_base_url, binance.DIALECT, binance.DEFAULT_LIMITS), binance.BinanceAdapter)
    if name == "KRAKEN":
        return made(host(settings.kraken_base_url, kraken.DIALECT, kraken.DEFAULT_LIMITS), kraken.KrakenAdapter)
    if name == "COINBASE" and settings.coinbase_api == "exchange":
        client = host(settings.coinbase_base_url, coinbase.DIALECT, coinbase.DEFAULT_LIMITS)
        return made(client, coinbase.CoinbaseAdapter)
    if name == "COINBASE":
        url, limits = settings.coinbase_advanced_base_url, coinbase_advanced.DEFAULT_LIMITS
        return made(host(url, coinbase_advanced.DIALECT, limits), coinbase_advanced.CoinbaseAdvancedAdapter)
    return Exchange(open_ccxt(name), host=None, clock=clock)
