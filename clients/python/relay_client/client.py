"""The client: a few calls, each with a deadline; safe to share between threads."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from relay.protocol.times import TimeUnit
from relay_client.archive import read_completeness, read_ticks
from relay_client.arguments import items
from relay_client.engine.completeness import Completeness
from relay_client.exchange_reading import read_statistics, read_symbol_history
from relay_client.flow import run
from relay_client.flows import ClientFlows, OnProgress
from relay_client.history import History
from relay_client.opening import open_flows
from relay_client.outcome import Outcome, Request, id_of
from relay_client.probe import RelayInfo
from relay_client.settings import ClientSettings, Encoding, Idle, Transport
from relay_client.statistics import ExchangeStatistics
from relay_client.stored_ticks import StoredTicks
from relay_client.subscribing import BUFFER_MAX, NumberKind, Order, Plan, Policy, TopicsLike, new_plan
from relay_client.subscription import Subscription
from relay_client.symbols import Symbol, SymbolState
from relay_client.tick_player import TickPlayer, open_player
from relay_client.times import TimeLike
from relay_client.triggers import Triggers

__all__ = ["SYMBOLS_MAX", "Client"]

SYMBOLS_MAX = 1_000


class Client:
    """A client of one relay.

    Use it as a context manager, or call :meth:`close`; a client that is dropped closes itself. One background thread
    owns its sockets and reconnects by itself. It does not survive a fork.

    Args:
        host: of the relay; else ``RELAY_CLIENT_HOST``, the file, 127.0.0.1.
        request_port, subscribe_port: of the relay; else as above, 5559 and 5558.
        transport: of market data: ``auto`` takes the relay's shared memory where it is on this host, else ``tcp``;
            ``shm`` ends subscriptions with an error where that cannot be had. ``Subscription.transport`` says which.
        idle: waiting for shared memory: ``sleep``, or ``spin``, which is quicker and keeps a processor busy.
        encoding: of what comes by shared memory: ``protobuf`` or ``sbe``; the same values either way.
        settings: everything else; read from environment and file when left out.
        config_file: TOML file with a table ``[client]``; else the one named by ``RELAY_CONFIG``.

    Raises:
        SettingsError: a setting or an address does not fit.
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
        # Also runs at interpreter exit, so that a program that forgets to close still ends.
        self._finalizer = weakref.finalize(self, ClientFlows.close, self._flows)

    @property
    def client_id(self) -> str:
        """UUID of this client; its notifications come on ``RESPONSE:{client_id}``."""
        return self._flows.session.client_id

    @property
    def triggers(self) -> Triggers:
        """Triggers: ``register``, ``cancel``, ``list``, and ``events`` for what has fired."""
        return Triggers(self, self._flows)

    def history(
        self,
        ticker: str,
        *,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        last: str | None = None,
        period: str | int = "1m",
        limit: int | None = None,
        unit: TimeUnit | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> History:
        """Return bars: what the tables hold, and what is missing there fetched first.

        Args:
            ticker: ``BASE/QUOTE.EXCHANGE``.
            start, end: bars that start in [start, end): aware datetimes, ISO text with a zone, or integers with
                ``unit``; an end left out is now.
            last: instead of ``start``: ``1h``, ``7d`` before the end.
            period: ``1m``, ``4h``, ``1d``, ``1w`` or whole seconds.
            limit: only the first N bars from start.
            unit: of integer times: ``s``, ``ms``, ``us``, ``ns``.
            timeout: seconds for the whole call; else ``history_timeout_seconds``. That no relay answers is told after
                ``request_timeout_seconds``.
            on_progress: called in this thread about once a second while requests run.

        Raises:
            SettingsError: an argument is wrong.
            PeerError: the request was refused, or ended with an error that trying again does not mend.
            RetryableError: something is away, or the deadline has passed; what was fetched is not fetched twice.
        """
        query = self._flows.query(ticker, start=start, end=end, last=last, period=period, limit=limit, unit=unit)
        return run(self._flows.history(query, timeout_s=timeout, on_progress=on_progress))

    def submit(
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
        timeout: float | None = None,
    ) -> Request:
        """Submit a history request without waiting for its end; it is durable when this returns.

        Args:
            request_id: UUID text, to submit the same request again; else a new one.
            timeout: seconds; else ``request_timeout_seconds``. The other arguments are those of :meth:`history`.

        Raises:
            SettingsError, PeerError, RetryableError: as :meth:`history`.
        """
        query = self._flows.query(ticker, start=start, end=end, last=last, period=period, limit=limit, unit=unit)
        return run(self._flows.submit(query, request_id=request_id, timeout_s=timeout))

    def request_status(self, request: str | Request, *, timeout: float | None = None) -> Outcome:
        """Return the state of a request, PENDING while it runs.

        Raises:
            PeerError: UNKNOWN_REQUEST; never submitted, or ended too long ago.
            RetryableError: relay or manager are away.
        """
        return run(self._flows.request_status(id_of(request), timeout_s=timeout))

    def wait(
        self, request: str | Request, *, timeout: float | None = None, on_progress: OnProgress | None = None
    ) -> Outcome:
        """Return how a request ended; ERROR is an outcome here, see :meth:`Outcome.raise_for_status`.

        Args:
            request: its id, or what :meth:`submit` returned.
            timeout: seconds; else ``history_timeout_seconds``.
            on_progress: called about once a second.

        Raises:
            PeerError: UNKNOWN_REQUEST.
            RetryableError: TIMEOUT; the request has not ended by the deadline, and goes on.
        """
        return self.wait_all([request], timeout=timeout, on_progress=on_progress)[0]

    def wait_all(
        self,
        requests: Iterable[str | Request],
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[Outcome]:
        """Return how requests ended, in their order, once all have; see :meth:`wait`."""
        ids = [id_of(request) for request in items("requests", requests)]
        return run(self._flows.wait(ids, timeout_s=timeout, on_progress=on_progress))

    def symbols(
        self,
        text: str = "",
        *,
        ticker: str = "",
        exchange: str = "",
        refresh: bool = False,
        limit: int = SYMBOLS_MAX,
        timeout: float | None = None,
    ) -> list[Symbol]:
        """Return markets that match, ascending by ticker; none is an answer, not an error.

        Args:
            text: part of the ticker.
            ticker, exchange: exact.
            refresh: ask the exchange again first.
            limit: at most so many.
            timeout: seconds; else ``request_timeout_seconds``.

        Raises:
            PeerError: UNKNOWN_EXCHANGE.
            RetryableError: something is away, or the exchange's list did not come in time.
        """
        return run(
            self._flows.symbols(
                ticker=ticker, exchange=exchange, text=text, refresh=refresh, limit=limit, timeout_s=timeout
            )
        )

    def symbol_history(self, ticker: str, *, timeout: float | None = None) -> list[SymbolState]:
        """Return what a market was and when; see :func:`relay_client.exchange_reading.read_symbol_history`."""
        return run(read_symbol_history(self._flows, ticker, timeout_s=timeout))

    def statistics(self, exchange: str, *, timeout: float | None = None) -> ExchangeStatistics:
        """Return an exchange's 24 h statistics; see :func:`relay_client.exchange_reading.read_statistics`."""
        return run(read_statistics(self._flows, exchange, timeout_s=timeout))

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
    ) -> Subscription:
        """Subscribe live data; history first where ``start`` is given.

        ::

            for tick in client.subscribe("BTC/USDT.BINANCE"):
                print(tick.price, tick.amount)

        Iterating yields data; losses, repairs, gaps and states come by :meth:`Subscription.events`. Each trade comes
        once. What was lost on the way is replayed (``tick.repaired``); what cannot be had is reported as a ``Loss``.

        Args:
            topics: one or many of ``TICKER`` (its ticks), ``TICKER|tick``, ``TICKER|ohlc:SECONDS``, ``TICKER|gap``,
                ``EXCHANGE|ticker24h``.
            start: ticks since this time first: as :meth:`history` takes it, of topics of ticks only.
            order: ``arrival``: at once, repaired and backfilled ticks behind later ones; ``strict``: by trade id, which
                waits for what is missing (at most ``order_wait_ms``, then a ``Skipped`` event).
            numbers: ``decimal``, or ``scaled`` integers with their decimals.
            buffer_max: items that wait for a slow reader.
            policy: when they are more: ``drop_oldest``, ``drop_newest`` (an ``Overrun`` event tells), or ``raise``.
            conflate: keep only the newest tick or bar of each topic; nothing is repaired then.
            repair: ask for replays of what was lost.
            timeout: seconds for the check that the tickers are known; else ``request_timeout_seconds``.

        Raises:
            SettingsError: an argument is wrong.
            PeerError: UNKNOWN_SYMBOL or UNKNOWN_EXCHANGE.
            RetryableError: relay or manager are away.
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
        self._check_tickers(plan, timeout)
        return Subscription(self._flows.session, plan, self._check_tickers)

    def _check_tickers(self, plan: Plan, timeout: float | None) -> None:
        run(self._flows.check_tickers(plan.tickers, exchanges=plan.exchanges, timeout_s=timeout))

    def ticks(
        self,
        ticker: str,
        *,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        last: str | None = None,
        limit: int | None = None,
        unit: TimeUnit | None = None,
        timeout: float | None = None,
    ) -> StoredTicks:
        """Return stored ticks of a span by exchange time, and how complete they are.

        Ticks are stored a few seconds after they happened, and only while somebody was subscribed.

        Args:
            ticker: ``BASE/QUOTE.EXCHANGE``.
            start, end, last, unit: as :meth:`history` takes them.
            limit: only the first N.
            timeout: seconds for finding the tables; else ``request_timeout_seconds``.

        Raises:
            SettingsError: an argument is wrong.
            RetryableError: relay, catalog or store are away.
        """
        return run(
            read_ticks(self._flows, ticker, start=start, end=end, last=last, limit=limit, unit=unit, timeout_s=timeout)
        )

    def completeness(
        self,
        ticker: str,
        *,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        last: str | None = None,
        unit: TimeUnit | None = None,
        timeout: float | None = None,
    ) -> Completeness:
        """Return how complete the stored ticks of a span are, without reading them: ids missing, gaps, time covered.

        Args:
            ticker: ``BASE/QUOTE.EXCHANGE``.
            start, end, last, unit: as :meth:`history` takes them.
            timeout: seconds for finding the tables; else ``request_timeout_seconds``.

        Raises:
            SettingsError: an argument is wrong.
            PeerError: UNKNOWN_SYMBOL, UNKNOWN_EXCHANGE: nothing is stored of the ticker, and no exchange lists it.
            RetryableError: relay, catalog or store are away.
        """
        return run(
            read_completeness(self._flows, ticker, start=start, end=end, last=last, unit=unit, timeout_s=timeout)
        )

    def replay(
        self,
        topics: TopicsLike,
        *,
        start: TimeLike,
        end: TimeLike | None = None,
        speed: float | None = None,
        timeout: float | None = None,
    ) -> TickPlayer:
        """Play stored ticks and bars as :meth:`subscribe` would give them: a strategy runs unchanged on yesterday.

        Ticks are those that are stored; bars that are missing are fetched first, as by :meth:`history`.

        ::

            for tick in client.replay("BTC/USDT.BINANCE", start="2026-01-01T00:00Z", end="2026-01-02T00:00Z"):
                strategy(tick)

        Args:
            topics: one or many of ``TICKER``, ``TICKER|tick``, ``TICKER|ohlc:SECONDS``; merged by the time at which
                each item was known (a bar at its end).
            start, end: exchange times; an end left out is now.
            speed: seconds of market time in a second; as fast as it goes without.
            timeout: seconds for each read.

        Raises:
            SettingsError: an argument is wrong.
            RetryableError: something is away.
        """
        return open_player(
            topics,
            ticks=lambda ticker: self.ticks(ticker, start=start, end=end, timeout=timeout),
            bars=lambda ticker, period: self.history(ticker, start=start, end=end, period=period, timeout=timeout),
            speed=speed,
        )

    def probe(self, *, timeout: float | None = None) -> RelayInfo:
        """Ask the relay about itself.

        Raises:
            RetryableError: it does not answer.
        """
        return run(self._flows.probe(timeout_s=timeout))

    def counters(self) -> Mapping[str, int]:
        """Return what this client has counted (reconnects, rejected messages)."""
        return self._flows.session.counters.snapshot()

    def close(self) -> None:
        """Close sockets and end the thread; harmless when repeated."""
        self._finalizer()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
