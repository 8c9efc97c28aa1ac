"""What tests of the ingestor share: a clock that never waits, a runner, and a scripted history."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

import httpx

from ingestors.clock import Clock
from ingestors.engine.batches import BatchLimits, JobIdentity
from ingestors.engine.commands import (
    EmitBatch,
    FetchBars,
    FetchClock,
    FetchTrades,
    FindListing,
    Finish,
    Wait,
)
from ingestors.engine.history import HistoryEngine
from ingestors.engine.job_state import JobResult
from ingestors.engine.trades_reader import TradesWanted
from ingestors.engine.values import Bar, BarsPage, Capabilities, TradesPage
from ingestors.exchanges.exchange import Exchange, open_exchange
from ingestors.job_runner import JobRunner
from ingestors.settings import IngestorSettings
from relay.eventlog import HISTORY_TOPIC, SYMBOL_TOPIC, EventLog, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.observability import Counters
from relay.protocol.envelope import decode_record
from relay.protocol.periods import NANOSECONDS, align_down_ns
from relay.protocol.ranges import Range, from_wire, union
from relay.protocol.v1 import market_pb2, work_pb2

MINUTE_NS = 60 * NANOSECONDS
T0 = 1_700_000_040 * NANOSECONDS // MINUTE_NS * MINUTE_NS
"""A whole minute."""


class SteppedClock:
    """Time that passes only by sleeping, which returns at once."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * NANOSECONDS
        self.slept_ns: list[int] = []

    async def sleep_ns(self, duration_ns: int) -> None:
        self.slept_ns.append(duration_ns)
        self.now_ns += duration_ns

    def clock(self) -> Clock:
        return Clock(time.time_ns, lambda: self.now_ns, self.sleep_ns)


def no_jitter(_: int) -> int:
    return 0


def new_log() -> MemoryEventLog:
    log = MemoryEventLog()
    log.ensure_topics(platform_topics(prefix="", partitions=1, retention_hours=1))
    return log


def batches(log: EventLog, topic: str = HISTORY_TOPIC) -> list[market_pb2.OHLCBatch]:
    messages = [decode_record(record.value)[1] for record in log.read(topic, partition=0, limit=100_000)]
    return [message for message in messages if isinstance(message, market_pb2.OHLCBatch)]


def markets(log: EventLog) -> list[market_pb2.Market]:
    messages = [decode_record(record.value)[1] for record in log.read(SYMBOL_TOPIC, partition=0, limit=100_000)]
    return [message for message in messages if isinstance(message, market_pb2.Market)]


def covered(found: list[market_pb2.OHLCBatch]) -> list[Range]:
    return union(r for batch in found for r in from_wire(batch.covered))


def rows(found: list[market_pb2.OHLCBatch]) -> list[market_pb2.OHLC]:
    return [row for batch in found for row in batch.rows]


def history_request(
    ticker: str, span: Range, *, period_seconds: int = 60, limit: int | None = None, attempt: int = 1
) -> work_pb2.DataRequest:
    return work_pb2.DataRequest(
        job_id="job-1",
        attempt=attempt,
        request_id="request-1",
        client_id="client-1",
        ticker=ticker,
        lease_ms=15_000,
        historical=work_pb2.HistoricalParams(
            start_time=span.start_ns, end_time=span.end_ns, period_seconds=period_seconds, limit=limit
        ),
    )


@dataclass
class Bench:
    """A job runner on one exchange."""

    exchange: Exchange
    clock: SteppedClock
    counters: Counters
    log: MemoryEventLog
    runner: JobRunner
    progress: list[tuple[int, tuple[Range, ...], int]] = field(default_factory=list)

    async def run(self, request: work_pb2.DataRequest) -> JobResult:
        try:
            return await self.runner.run(request, lambda *seen: self.progress.append(seen))
        finally:
            await self.exchange.adapter.close()


def bench(
    name: str,
    *,
    base_urls: Mapping[str, str] | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    coinbase_api: str = "exchange",
    limits: BatchLimits | None = None,
    log: MemoryEventLog | None = None,
) -> Bench:
    urls = base_urls or {}
    settings = IngestorSettings(
        coinbase_api=coinbase_api,
        **{f"{key.replace('-', '_')}_base_url": url for key, url in urls.items()},
    )
    clock, counters, log = SteppedClock(), Counters(), log or new_log()
    exchange = open_exchange(
        name, settings, clock=clock.clock(), jitter=no_jitter, counters=counters, transport=transport
    )
    runner = JobRunner(
        exchanges={name: exchange},
        log=log,
        topic_prefix="",
        clock=clock.clock(),
        jitter=no_jitter,
        limits=limits or BatchLimits(),
        counters=counters,
    )
    return Bench(exchange, clock, counters, log, runner)


def minute(index: int, *, price: str = "10", volume: str = "1", offset_ns: int = 0) -> Bar:
    number = Decimal(price)
    return Bar(T0 + index * MINUTE_NS + offset_ns, number, number, number, number, Decimal(volume))


BINANCE_LIKE = Capabilities("BINANCE", (60, 300, 3_600, 86_400), 1_000, sends_empty_buckets=True)
COINBASE_LIKE = Capabilities(
    "COINBASE",
    (60, 300, 3_600, 86_400),
    300,
    window_rows_max=300,
    sends_rows_before_start=True,
)
KRAKEN_LIKE = Capabilities(
    "KRAKEN",
    (60, 300, 3_600, 86_400),
    720,
    bounds_end=False,
    sends_rows_before_start=True,
    history_rows=720,
    trades_by_time=True,
)


@dataclass
class Script:
    """Answers an engine's questions out of functions; records what was asked."""

    bars: Callable[[FetchBars], BarsPage] = lambda _: BarsPage(())
    trades: Callable[[TradesWanted], TradesPage] = lambda _: TradesPage((), "", True)
    server_ns: int = T0 + 10_000_000 * MINUTE_NS
    listed_ns: int | None = None
    asked: list[FetchBars] = field(default_factory=list)
    asked_trades: list[TradesWanted] = field(default_factory=list)
    asked_listing: int = 0
    waited_ns: list[int] = field(default_factory=list)
    questions_max: int = 10_000

    def play(self, engine: HistoryEngine) -> tuple[list[market_pb2.OHLCBatch], Finish]:
        found: list[market_pb2.OHLCBatch] = []
        commands = list(engine.start(0))
        for _ in range(self.questions_max):
            command = commands.pop(0)
            if isinstance(command, Finish):
                assert not commands
                return found, command
            if isinstance(command, EmitBatch):
                found.append(command.batch)
            elif isinstance(command, Wait):
                self.waited_ns.append(command.duration_ns)
                self.server_ns += command.duration_ns
            else:
                assert not commands, "a question is the last command"
                commands = self._answer(engine, command)
        raise AssertionError(f"the engine did not end after {self.questions_max} commands")

    def _answer(self, engine: HistoryEngine, command: object) -> list[object]:
        if isinstance(command, FetchClock):
            return list(engine.on_clock(self.server_ns, 0))
        if isinstance(command, FetchBars):
            self.asked.append(command)
            return list(engine.on_bars(self.bars(command), command.wanted, 0))
        if isinstance(command, FetchTrades):
            self.asked_trades.append(command.wanted)
            return list(engine.on_trades(self.trades(command.wanted), 0))
        assert isinstance(command, FindListing)
        self.asked_listing += 1
        return list(engine.on_listing(self.listed_ns, 0))


def serving(
    bars: list[Bar], *, page_rows_max: int = 1_000, bucket_seconds: int = 60
) -> Callable[[FetchBars], BarsPage]:
    """Serve bars as a seeking endpoint does: the first rows inside the window."""

    def answer(command: FetchBars) -> BarsPage:
        wanted = command.wanted
        inside = [
            bar
            for bar in sorted(bars, key=lambda bar: bar.start_ns)
            if wanted.window.start_ns <= align_down_ns(bar.start_ns, bucket_seconds) < wanted.window.end_ns
        ]
        return BarsPage(tuple(inside[: min(wanted.rows_max, page_rows_max)]))

    return answer


def serving_periods(bars: list[Bar]) -> Callable[[FetchBars], BarsPage]:
    """Serve minute bars, and for longer periods one row for each bucket that has any."""

    by_period: dict[int, list[Bar]] = {}

    def answer(command: FetchBars) -> BarsPage:
        wanted = command.wanted
        if wanted.period_seconds not in by_period:
            by_bucket = {align_down_ns(bar.start_ns, wanted.period_seconds): bar for bar in bars}
            by_period[wanted.period_seconds] = [replace(bar, start_ns=b) for b, bar in sorted(by_bucket.items())]
        rows = by_period[wanted.period_seconds]
        inside = [bar for bar in rows if wanted.window.start_ns <= bar.start_ns < wanted.window.end_ns]
        return BarsPage(tuple(inside[: wanted.rows_max]))

    return answer


def history(
    span: Range,
    *,
    period_seconds: int = 60,
    capabilities: Capabilities = BINANCE_LIKE,
    delivered: tuple[Range, ...] = (),
    limit: int | None = None,
    limits: BatchLimits | None = None,
) -> HistoryEngine:
    ticker = f"BTC/USDT.{capabilities.exchange}"
    identity = JobIdentity("job-1", 1, "request-1", "client-1", ticker, period_seconds, span)
    return HistoryEngine(
        identity,
        market=market_pb2.Market(market_id=ticker, tick_denom=100, base_denom=100, quote_denom=100),
        capabilities=capabilities,
        delivered=delivered,
        limit=limit,
        limits=limits,
    )


def minutes(first: int, end: int) -> Range:
    return Range(T0 + first * MINUTE_NS, T0 + end * MINUTE_NS)
