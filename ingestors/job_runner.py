"""Runs one attempt: executes the history engine's commands with an exchange and the event log."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import structlog

from ingestors.clock import Clock
from ingestors.engine.batches import BatchLimits, JobIdentity
from ingestors.engine.budget import Jitter
from ingestors.engine.commands import (
    Command,
    EmitBatch,
    FetchBars,
    FetchClock,
    FetchTrades,
    FindListing,
    Finish,
    Wait,
)
from ingestors.engine.day_statistics import statistics_records
from ingestors.engine.history import HistoryEngine
from ingestors.engine.job_state import JobResult
from ingestors.engine.listings import market_record
from ingestors.engine.outcomes import ExchangeError
from ingestors.engine.retry import GiveUp, Park, RetryPolicy
from ingestors.engine.values import Listing
from ingestors.exchanges.exchange import Exchange
from ingestors.log_writer import AttemptLog, Progress
from ingestors.statistics_fetch import fetch_statistics
from relay.errors import PeerError, RelayError
from relay.eventlog import HISTORY_TOPIC, SYMBOL_TOPIC, TICKER_STATS_TOPIC, EventLog
from relay.observability import Counters
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import check_period
from relay.protocol.ranges import Range, from_wire
from relay.protocol.tickers import parse_ticker
from relay.protocol.v1 import market_pb2, work_pb2

__all__ = ["BannedError", "JobRunner"]

_LOG = structlog.get_logger(__name__)
T = TypeVar("T")
_TOPICS = {work_pb2.DataRequest.SYMBOLS: SYMBOL_TOPIC, work_pb2.DataRequest.STATISTICS: TICKER_STATS_TOPIC}


class BannedError(RelayError):
    """The exchange lets nobody in for ``duration_ns``; the job is to be given back."""

    default_code = ErrorCode.BANNED

    def __init__(self, duration_ns: int) -> None:
        super().__init__(f"the exchange has banned this address for {duration_ns // 10**9} s")
        self.duration_ns = duration_ns


class JobRunner:
    """Runs attempts on the exchanges of one process.

    Args:
        exchanges: by name.
        log: event log.
        topic_prefix: before every topic.
        clock: time.
        jitter: randomness of back-off.
        limits: bounds of one log record.
        counters: shared by all jobs.
    """

    def __init__(
        self,
        *,
        exchanges: Mapping[str, Exchange],
        log: EventLog,
        topic_prefix: str,
        clock: Clock,
        jitter: Jitter,
        limits: BatchLimits,
        counters: Counters,
    ) -> None:
        self._exchanges = exchanges
        self._log = log
        self._topic_prefix = topic_prefix
        self._clock = clock
        self._jitter = jitter
        self._limits = limits
        self._counters = counters

    async def run(self, request: work_pb2.DataRequest, progress: Progress) -> JobResult:
        """Run one attempt to its end; everything it wrote is acknowledged when this returns.

        Raises:
            BannedError: give the job back.
            StorageError: the event log refuses its records for good.
        """
        exchange = self._exchanges[request.ticker.rpartition(".")[2]]
        attempt = AttemptLog(
            self._log,
            topic=self._topic_prefix + _TOPICS.get(request.type, HISTORY_TOPIC),
            clock=self._clock,
            counters=self._counters,
            progress=progress,
        )
        try:
            if request.type == work_pb2.DataRequest.SYMBOLS:
                return await self._symbols(exchange, attempt, listing_id=f"{request.job_id}:{request.attempt}")
            if request.type == work_pb2.DataRequest.STATISTICS:
                return await self._statistics(exchange, attempt)
            return await self._history(exchange, request, attempt)
        finally:
            await attempt.abandon()

    async def _symbols(self, exchange: Exchange, attempt: AttemptLog, *, listing_id: str) -> JobResult:
        try:
            listings = await self._call(exchange.markets.all)
        except RelayError as error:
            return _failed(error)
        for listing in listings.values():
            market = self._market(exchange, listing)
            # Whoever has all records of an answer knows what is not listed any more.
            market.listing_id, market.listing_count = listing_id, len(listings)
            await attempt.emit_market(market)
        await attempt.settle()
        return JobResult(True, len(listings))

    async def _statistics(self, exchange: Exchange, attempt: AttemptLog) -> JobResult:
        try:
            rows, bad_count = await fetch_statistics(exchange, self._call, now_ns=self._clock.wall_ns)
        except RelayError as error:
            return _failed(error)
        self._counters.add("statistics.bad_rows", bad_count)
        parts = statistics_records(exchange.name, rows, generated_at_ns=self._clock.wall_ns(), limits=self._limits)
        for part in parts:
            await attempt.emit_statistics(part)
        await attempt.settle()
        _LOG.info("statistics_fetched", exchange=exchange.name, rows=len(rows), bad=bad_count, records=len(parts))
        return JobResult(True, len(rows))

    async def _history(self, exchange: Exchange, request: work_pb2.DataRequest, attempt: AttemptLog) -> JobResult:
        market = market_pb2.Market(market_id=request.ticker, exchange_id=exchange.name)
        engine = self._engine(exchange, request, market)
        listing: Listing | None = None
        try:
            check_period(request.historical.period_seconds)
            parse_ticker(request.ticker)
            listing = await self._call(lambda: exchange.markets.find(request.ticker))
        except BannedError:
            raise
        except RelayError as error:
            commands = engine.on_failure(error.code, str(error), self._clock.wall_ns())
        else:
            market.CopyFrom(self._market(exchange, listing))
            commands = engine.start(self._clock.wall_ns())
        result = await self._drive(exchange, listing, engine, deque(commands), attempt)
        self._report(request, engine, result)
        return result

    async def _drive(
        self,
        exchange: Exchange,
        listing: Listing | None,
        engine: HistoryEngine,
        commands: deque[Command],
        attempt: AttemptLog,
    ) -> JobResult:
        while True:
            command = commands.popleft()
            if isinstance(command, EmitBatch):
                await attempt.emit(command.batch)
            elif isinstance(command, Wait):
                await self._clock.sleep_ns(command.duration_ns)
            elif isinstance(command, Finish):
                await attempt.settle()
                return JobResult(command.success, command.rows, command.code, command.message)
            else:
                commands.extend(await self._answer(exchange, listing, engine, command, attempt))

    async def _answer(
        self,
        exchange: Exchange,
        listing: Listing | None,
        engine: HistoryEngine,
        command: FetchClock | FetchBars | FetchTrades | FindListing,
        attempt: AttemptLog,
    ) -> list[Command]:
        """Ask the exchange what the engine wants to know; a failure becomes the attempt's end."""
        assert listing is not None  # noqa: S101 - the engine asks only after it was started with one
        adapter, known = exchange.adapter, listing
        try:
            if isinstance(command, FetchClock):
                enough_ns = command.enough_ns
                server_ns = await self._call(lambda: exchange.server_time_ns(enough_ns=enough_ns))
                return engine.on_clock(server_ns, self._clock.wall_ns())
            if isinstance(command, FetchBars):
                bars_wanted = command.wanted
                bars = await self._call(lambda: adapter.fetch_bars_page(known, bars_wanted))
                return engine.on_bars(bars, bars_wanted, self._clock.wall_ns())
            if isinstance(command, FetchTrades):
                trades_wanted = command.wanted
                trades = await self._call(lambda: adapter.fetch_trades_page(known, trades_wanted))
                return engine.on_trades(trades, self._clock.wall_ns())
            before_ns = command.before_ns
            listed_ns = await self._call(lambda: adapter.history_start_ns(known, before_ns=before_ns))
            return engine.on_listing(listed_ns, self._clock.wall_ns())
        except BannedError:
            # What is fetched is kept: the next attempt starts after it.
            for item in engine.flush(self._clock.wall_ns()):
                await attempt.emit(item.batch)
            await attempt.settle()
            raise
        except RelayError as error:
            return engine.on_failure(error.code, str(error), self._clock.wall_ns())

    async def _call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer or the policy gives up.

        Raises:
            BannedError: the exchange lets nobody in.
            PeerError: given up, or the answer made no sense.
        """
        policy = RetryPolicy(jitter=self._jitter)
        while True:
            try:
                return await ask()
            except ExchangeError as error:
                decision = policy.judge(error.outcome)
                if isinstance(decision, Park):
                    raise BannedError(decision.duration_ns) from error
                if isinstance(decision, GiveUp):
                    raise PeerError(decision.message, code=decision.code) from error
            self._counters.add("calls.retried")
            await self._clock.sleep_ns(decision.wait_ns)

    def _engine(self, exchange: Exchange, request: work_pb2.DataRequest, market: market_pb2.Market) -> HistoryEngine:
        params = request.historical
        identity = JobIdentity(
            job_id=request.job_id,
            attempt=request.attempt,
            request_id=request.request_id,
            client_id=request.client_id,
            ticker=request.ticker,
            period_seconds=max(1, params.period_seconds),
            span=Range(params.start_time, params.end_time),
        )
        return HistoryEngine(
            identity,
            market=market,
            capabilities=exchange.adapter.capabilities,
            delivered=tuple(from_wire(request.covered)),
            limit=params.limit if params.HasField("limit") and params.limit else None,
            limits=self._limits,
        )

    def _market(self, exchange: Exchange, listing: Listing) -> market_pb2.Market:
        return market_record(listing, exchange.adapter.capabilities, updated_at_ns=self._clock.wall_ns())

    def _report(self, request: work_pb2.DataRequest, engine: HistoryEngine, result: JobResult) -> None:
        counts = engine.counts
        for name in ("off_grid", "doubled", "outside", "quarantined", "empty_answers", "holes"):
            self._counters.add(f"history.{name}", getattr(counts, name))
        _LOG.info(
            "history_fetched" if result.success else "history_failed",
            job_id=request.job_id,
            attempt=request.attempt,
            ticker=request.ticker,
            rows=result.rows,
            code=result.code,
            message=result.message,
            quarantined=counts.quarantined,
            holes=counts.holes,
        )


def _failed(error: RelayError) -> JobResult:
    if isinstance(error, BannedError):
        raise error
    return JobResult(False, 0, error.code, str(error))
