"""The same client for asyncio: it works in whichever loop is running, Jupyter's too."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from relay.protocol.times import TimeUnit
from relay_client.archive import read_completeness, read_ticks
from relay_client.arguments import items
from relay_client.async_subscription import AsyncSubscription
from relay_client.async_tick_player import AsyncTickPlayer
from relay_client.client import SYMBOLS_MAX
from relay_client.engine.completeness import Completeness
from relay_client.exchange_reading import read_statistics, read_symbol_history
from relay_client.flow import run_async
from relay_client.flows import ClientFlows, OnProgress
from relay_client.history import History
from relay_client.opening import open_flows
from relay_client.outcome import Outcome, Request, id_of
from relay_client.probe import RelayInfo
from relay_client.settings import ClientSettings, Encoding, Idle, Transport
from relay_client.statistics import ExchangeStatistics
from relay_client.stored_ticks import StoredTicks
from relay_client.subscribing import BUFFER_MAX, NumberKind, Order, Plan, Policy, TopicsLike, new_plan
from relay_client.symbols import Symbol, SymbolState
from relay_client.times import TimeLike
from relay_client.triggers import AsyncTriggers

__all__ = ["AsyncClient"]


class AsyncClient:
    """A client of one relay whose calls are awaited; see :class:`relay_client.Client` for arguments and errors.

    Cancelling a call stops the waiting only: a submitted request goes on, and asking again fetches nothing twice.
    """

    def __init__(
        self,
        host: str | None = None,
        *,
        request_port: int | None = None,
        subscribe_port: int | None = None,
        transport: Transport | None = None,
        idle: Idle | None = None,
        encoding: Encoding | None = None,
        settings: ClientSettings | None = None,
        config_file: Path | None = None,
    ) -> None:
        self._flows = open_flows(
            host,
            request_port,
            subscribe_port,
            transport=transport,
            idle=idle,
            encoding=encoding,
            settings=settings,
            config_file=config_file,
        )
        self._finalizer = weakref.finalize(self, ClientFlows.close, self._flows)

    @property
    def client_id(self) -> str:
        """UUID of this client."""
        return self._flows.session.client_id

    @property
    def triggers(self) -> AsyncTriggers:
        """Triggers; see :attr:`relay_client.Client.triggers`."""
        return AsyncTriggers(self, self._flows)

    async def history(
        self,
        ticker: str,
        *,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        last: str | None = None,
        period: str | int = "1m",
        limit: int | None = None,
        unit: TimeUnit | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - a deadline for the request, told to the engine
        on_progress: OnProgress | None = None,
    ) -> History:
        """Return bars; see :meth:`relay_client.Client.history`. ``on_progress`` is called in the loop."""
        query = self._flows.query(ticker, start=start, end=end, last=last, period=period, limit=limit, unit=unit)
        return await run_async(self._flows.history(query, timeout_s=timeout, on_progress=on_progress))

    async def submit(
        self,
        ticker: str,
        *,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        last: str | None = None,
        period: str | int = "1m",
        limit: int | None = None,
        unit: TimeUnit | None = None,
        request_id: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Request:
        """Submit a request; see :meth:`relay_client.Client.submit`."""
        query = self._flows.query(ticker, start=start, end=end, last=last, period=period, limit=limit, unit=unit)
        return await run_async(self._flows.submit(query, request_id=request_id, timeout_s=timeout))

    async def request_status(
        self,
        request: str | Request,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Outcome:
        """Return the state of a request; see :meth:`relay_client.Client.request_status`."""
        return await run_async(self._flows.request_status(id_of(request), timeout_s=timeout))

    async def wait(
        self,
        request: str | Request,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        on_progress: OnProgress | None = None,
    ) -> Outcome:
        """Return how a request ended; see :meth:`relay_client.Client.wait`."""
        return (await self.wait_all([request], timeout=timeout, on_progress=on_progress))[0]

    async def wait_all(
        self,
        requests: Iterable[str | Request],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        on_progress: OnProgress | None = None,
    ) -> list[Outcome]:
        """Return how requests ended, once all have; see :meth:`relay_client.Client.wait_all`."""
        ids = [id_of(request) for request in items("requests", requests)]
        return await run_async(self._flows.wait(ids, timeout_s=timeout, on_progress=on_progress))

    async def symbols(
        self,
        text: str = "",
        *,
        ticker: str = "",
        exchange: str = "",
        refresh: bool = False,
        limit: int = SYMBOLS_MAX,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> list[Symbol]:
        """Return markets that match; see :meth:`relay_client.Client.symbols`."""
        return await run_async(
            self._flows.symbols(
                ticker=ticker, exchange=exchange, text=text, refresh=refresh, limit=limit, timeout_s=timeout
            )
        )

    async def symbol_history(
        self,
        ticker: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> list[SymbolState]:
        """Return what a market was and when; see :meth:`relay_client.Client.symbol_history`."""
        return await run_async(read_symbol_history(self._flows, ticker, timeout_s=timeout))

    async def statistics(
        self,
        exchange: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> ExchangeStatistics:
        """Return an exchange's 24 h statistics; see :meth:`relay_client.Client.statistics`."""
        return await run_async(read_statistics(self._flows, exchange, timeout_s=timeout))

    async def ticks(
        self,
        ticker: str,
        *,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        last: str | None = None,
        limit: int | None = None,
        unit: TimeUnit | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> StoredTicks:
        """Return stored ticks; see :meth:`relay_client.Client.ticks`."""
        return await run_async(
            read_ticks(self._flows, ticker, start=start, end=end, last=last, limit=limit, unit=unit, timeout_s=timeout)
        )

    async def completeness(
        self,
        ticker: str,
        *,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        last: str | None = None,
        unit: TimeUnit | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Completeness:
        """Return how complete stored ticks are; see :meth:`relay_client.Client.completeness`."""
        return await run_async(
            read_completeness(self._flows, ticker, start=start, end=end, last=last, unit=unit, timeout_s=timeout)
        )

    def subscribe(
        self,
        topics: TopicsLike,
        *,
        start: TimeLike | None = None,
        order: Order = "arrival",
        numbers: NumberKind = "decimal",
        buffer_max: int = BUFFER_MAX,
        policy: Policy = "drop_oldest",
        conflate: bool = False,
        repair: bool = True,
        timeout: float | None = None,
    ) -> AsyncSubscription:
        """Subscribe live data; see :meth:`relay_client.Client.subscribe`.

        ::

            async for tick in client.subscribe("BTC/USDT.BINANCE"):
                print(tick.price, tick.amount)

        It begins when it is iterated, awaited, or entered (``async with``), which is when errors are raised.
        """
        plan = new_plan(
            topics,
            start=start,
            order=order,
            numbers=numbers,
            buffer_max=buffer_max,
            policy=policy,
            conflate=conflate,
            repair=repair,
            settings=self._flows.settings,
        )
        return AsyncSubscription(self._flows.session, plan, self._check_tickers, timeout=timeout)

    async def _check_tickers(self, plan: Plan, timeout: float | None) -> None:  # noqa: ASYNC109
        await run_async(self._flows.check_tickers(plan.tickers, exchanges=plan.exchanges, timeout_s=timeout))

    def replay(
        self,
        topics: TopicsLike,
        *,
        start: TimeLike,
        end: TimeLike | None = None,
        speed: float | None = None,
        timeout: float | None = None,
    ) -> AsyncTickPlayer:
        """Play stored ticks and bars as :meth:`subscribe` would give them; see :meth:`relay_client.Client.replay`.

        ::

            async for tick in client.replay("BTC/USDT.BINANCE", start="2026-01-01T00:00Z", end="2026-01-02T00:00Z"):
                await strategy(tick)

        It reads when it is iterated, awaited, or entered (``async with``), which is when errors of reading are raised.
        """
        return AsyncTickPlayer(
            topics,
            ticks=lambda ticker: self.ticks(ticker, start=start, end=end, timeout=timeout),
            bars=lambda ticker, period: self.history(ticker, start=start, end=end, period=period, timeout=timeout),
            speed=speed,
        )

    async def probe(self, *, timeout: float | None = None) -> RelayInfo:  # noqa: ASYNC109
        """Ask the relay about itself; see :meth:`relay_client.Client.probe`."""
        return await run_async(self._flows.probe(timeout_s=timeout))

    def counters(self) -> Mapping[str, int]:
        """Return what this client has counted."""
        return self._flows.session.counters.snapshot()

    async def close(self) -> None:
        """Close sockets and end the thread; harmless when repeated."""
        await asyncio.to_thread(self._finalizer)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
