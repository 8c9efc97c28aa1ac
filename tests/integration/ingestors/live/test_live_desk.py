"""A live desk from the exchanges' sockets to fast path and log: each trade once, holes said and filled."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zmq

from ingestors.clock import system_clock
from ingestors.engine.logged_mark import NOT_LOGGED, Logged
from ingestors.exchanges.exchange import open_exchange
from ingestors.live.opening import open_desk
from ingestors.live.spill import LogEntry, Spill
from ingestors.settings import IngestorSettings
from ingestors.simulation.server import SimulatedExchange
from ingestors.simulation.socket_faults import SocketFault, SocketFaultKind
from relay.errors import RetryableError
from relay.eventlog import TICK_TOPIC, LogPosition, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.observability import Counters
from relay.protocol.envelope import decode, decode_record, encode_record
from relay.protocol.registry import Channel
from relay.protocol.v1 import market_pb2, work_pb2
from relay.transport import SocketKind, new_context, open_socket
from tests.support.ingestors import no_jitter
from tests.support.processes import eventually
from tests.support.simulated import GENEROUS

BTC = "BTC/USDT.BINANCE"
TICKERS = {"BINANCE": BTC, "KRAKEN": "BTC/USDT.KRAKEN", "COINBASE": "BTC/USD.COINBASE"}


def in_loop(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments: object, **named: object) -> None:
        asyncio.run(test(*arguments, **named))

    return run


class AwayLog(MemoryEventLog):
    """A log that can be away."""

    is_away = False

    def append(self, topic: str, *, key: bytes, value: bytes) -> Future[LogPosition]:
        if self.is_away:
            raise RetryableError("away")
        return super().append(topic, key=key, value=value)


class Desk:
    """A desk, its jobs, and what came out of both ends."""

    def __init__(self, server: SimulatedExchange, folder: Path, log: AwayLog, **changes: object) -> None:
        self.server, self.log, self.counters = server, log, Counters()
        self.context = new_context()
        self.fast_path = open_socket(self.context, SocketKind.SUB, bind=["tcp://127.0.0.1:*"])
        self.fast_path.setsockopt(zmq.SUBSCRIBE, b"")
        self.fast_path.setsockopt(zmq.RCVHWM, 1_000_000)
        endpoint = self.fast_path.getsockopt_string(zmq.LAST_ENDPOINT)
        urls = {f"{k.replace('-', '_')}_base_url": v for k, v in server.base_urls.items()}
        sockets = {f"{k.replace('-', '_')}_socket_url": v for k, v in server.socket_urls.items()}
        settings = IngestorSettings(
            relay_endpoints=(endpoint,),
            spill_path=folder / "spill",
            **urls,
            **sockets,
            **changes,  # type: ignore[arg-type]
        )
        clock = system_clock()
        self.exchanges = {
            name: open_exchange(name, settings, clock=clock, jitter=no_jitter, counters=self.counters)
            for name in TICKERS
        }
        self.desk = open_desk(
            settings,
            self.exchanges,
            context=self.context,
            log=log,
            source_id="test",
            epoch=random.getrandbits(63),
            clock=clock,
            jitter=no_jitter,
            counters=self.counters,
        )
        self.desk.start()
        self.marks: dict[str, Logged] = {}
        self.jobs: dict[str, asyncio.Task[object]] = {}
        self._published: list[tuple[bytes, object]] = []

    def start(self, ticker: str, *, attempt: int = 1, resume_after: Logged = NOT_LOGGED) -> None:
        request = work_pb2.DataRequest(
            type=work_pb2.DataRequest.REALTIME_TICKS, job_id=ticker, attempt=attempt, ticker=ticker
        )
        if resume_after.trade_id:
            request.realtime.resume_after_trade_id = resume_after.trade_id
            request.realtime.resume_after_time = resume_after.time_ns

        def progress(_: int, __: int, mark: Logged) -> None:
            self.marks[ticker] = mark

        self.jobs[ticker] = asyncio.get_running_loop().create_task(self.desk.run(request, progress))

    async def stop(self) -> None:
        for job in self.jobs.values():
            job.cancel()
        await asyncio.gather(*self.jobs.values(), return_exceptions=True)
        await self.desk.close()
        for exchange in self.exchanges.values():
            await exchange.adapter.close()
        self.fast_path.close(0)
        self.context.term()

    def published(self) -> list[tuple[bytes, object]]:
        while self.fast_path.poll(0):
            frames = self.fast_path.recv_multipart()
            self._published.append((frames[0], decode(frames[1:], Channel.FAST_PATH).message))
        return self._published

    def live_ids(self, ticker: str) -> list[int]:
        return [int(m.trade_id) for _, m in self.published() if isinstance(m, market_pb2.Tick) and m.ticker == ticker]

    def logged(self, ticker: str) -> list[object]:
        records = self.log.read(TICK_TOPIC, key=ticker.encode(), limit=1_000_000)
        return [decode_record(record.value)[1] for record in records]

    def logged_ids(self, ticker: str) -> list[int]:
        return [int(m.trade_id) for m in self.logged(ticker) if isinstance(m, market_pb2.Tick)]


def new_log() -> AwayLog:
    log = AwayLog()
    log.ensure_topics(platform_topics(prefix="", partitions=2, retention_hours=1))
    return log


@asynccontextmanager
async def running(folder: Path, log: AwayLog | None = None, **changes: object) -> AsyncIterator[Desk]:
    async with SimulatedExchange(limits=GENEROUS) as server:
        desk = Desk(server, folder, log or new_log(), **changes)
        try:
            yield desk
        finally:
            await desk.stop()


def gaps(messages: Sequence[object]) -> list[market_pb2.Gap]:
    return [m for m in messages if isinstance(m, market_pb2.Gap)]


def unfillable(messages: Sequence[object]) -> set[int]:
    return {
        n
        for gap in gaps(messages)
        if gap.state == market_pb2.Gap.UNFILLABLE and gap.from_trade_id
        for n in range(int(gap.from_trade_id), int(gap.to_trade_id) + 1)
    }


def is_whole(ids: Sequence[int]) -> bool:
    """Whether every id from the lowest to the highest is there once."""
    return bool(ids) and sorted(ids) == list(range(min(ids), max(ids) + 1))


@in_loop
async def test_all_exchanges_deliver_each_trade_once_to_both_ends(tmp_path: Path) -> None:
    async with running(tmp_path) as desk:
        for exchange, ticker in TICKERS.items():
            desk.server.drive(exchange.lower(), ticker.partition(".")[0], 200)
            desk.start(ticker)
        for ticker in TICKERS.values():
            # A SUB socket subscribes when its thread looks at it, so it is looked at while trades come.
            await eventually(lambda t=ticker: len(desk.live_ids(t)) >= 300, what=f"trades of {ticker}")
            ids = desk.live_ids(ticker)
            assert ids == sorted(ids)
            assert is_whole(ids)
            assert is_whole(desk.logged_ids(ticker))
            beats = [m for _, m in desk.published() if isinstance(m, market_pb2.Heartbeat) and m.ticker == ticker]
            assert any(beat.state == market_pb2.Heartbeat.UP and beat.attempt == 1 for beat in beats)
            await eventually(
                lambda t=ticker: int(desk.marks[t].trade_id or 0) >= desk.live_ids(t)[0], what="the mark to move"
            )


@pytest.mark.parametrize("exchange", list(TICKERS))
@in_loop
async def test_dropped_doubled_and_reordered_trades_arrive_once_and_holes_are_said_and_filled(
    exchange: str, tmp_path: Path
) -> None:
    ticker = TICKERS[exchange]
    async with running(tmp_path) as desk:
        desk.server.drive(exchange.lower(), ticker.partition(".")[0], 200)
        kinds = (SocketFaultKind.DROP, SocketFaultKind.DOUBLE, SocketFaultKind.REORDER)
        numbers = [desk.server.socket_faults.add(SocketFault(kind, percent=3, delay_ms=20)) for kind in kinds]
        assert len(numbers) == 3
        desk.start(ticker)
        await eventually(lambda: len(desk.live_ids(ticker)) >= 600, what="trades")
        desk.server.socket_faults.clear()
        newest = max(desk.live_ids(ticker))
        await eventually(lambda: min(newest, max(desk.logged_ids(ticker))) == newest, what="the rest in the log")

        def settled() -> bool:
            ids = [n for n in desk.logged_ids(ticker) if n <= newest]
            return is_whole(ids)

        await eventually(settled, what="every hole to be filled")
        ticks = [m for m in desk.logged(ticker) if isinstance(m, market_pb2.Tick)]
        in_order = [int(t.trade_id) for t in ticks if not t.backfill]
        assert in_order == sorted(in_order)
        assert any(tick.backfill for tick in ticks)
        said = gaps(desk.logged(ticker))
        assert any(g.state == market_pb2.Gap.OPEN and g.cause == market_pb2.Gap.SEQUENCE for g in said)
        assert any(g.state == market_pb2.Gap.FILLED for g in said)
        assert not unfillable(desk.logged(ticker))
        assert desk.counters.get("feed.repeats") > 0


@in_loop
async def test_a_connection_that_ends_is_a_gap_that_is_filled_case_59(tmp_path: Path) -> None:
    async with running(tmp_path) as desk:
        desk.server.drive("binance", "BTC/USDT", 200)
        desk.start(BTC)
        await eventually(lambda: len(desk.logged_ids(BTC)) >= 100, what="trades")
        for _ in range(3):
            before = len(desk.logged_ids(BTC))
            desk.server.socket_faults.add(SocketFault(SocketFaultKind.DISCONNECT, exchange="binance", count=1))
            await eventually(lambda b=before: len(desk.logged_ids(BTC)) >= b + 200, what="trades again")
        await eventually(lambda: is_whole(desk.logged_ids(BTC)), what="the holes to be filled")
        causes = {g.cause for g in gaps(desk.logged(BTC)) if g.state == market_pb2.Gap.OPEN and g.from_trade_id}
        assert causes == {market_pb2.Gap.DISCONNECT}


@in_loop
async def test_a_trade_is_the_same_whichever_way_it_came(tmp_path: Path) -> None:
    async with running(tmp_path) as desk:
        for exchange, ticker in TICKERS.items():
            desk.server.drive(exchange.lower(), ticker.partition(".")[0], 100)
            desk.start(ticker)
        for ticker in TICKERS.values():
            await eventually(lambda t=ticker: len(desk.logged_ids(t)) >= 50, what=f"trades of {ticker}")
            market = desk.desk._markets[ticker.rpartition(".")[2]]
            listing = await market.find(ticker)
            ticks = {int(m.trade_id): m for m in desk.logged(ticker) if isinstance(m, market_pb2.Tick)}
            first, last = min(ticks) + 5, min(ticks) + 30
            before = ticks[first - 1].timestamp
            pages = market.filler.fill(listing, first=first, last=last, after_time_ns=before)
            fetched = [trade async for page in pages for trade in page]
            assert [trade.number for trade in fetched] == list(range(first, last + 1))
            for trade in fetched:
                tick = ticks[trade.number]
                assert (trade.time_ns, trade.taker_buy) == (tick.timestamp, tick.taker_buy)
                assert (trade.price, trade.price_decimals) == (tick.price, tick.price_decimals)
                assert (trade.amount, trade.amount_decimals) == (tick.amount, tick.amount_decimals)


@in_loop
async def test_the_next_attempt_goes_on_behind_the_mark_of_the_last_one(tmp_path: Path) -> None:
    log = new_log()
    async with SimulatedExchange(limits=GENEROUS) as server:
        server.drive("binance", "BTC/USDT", 200)
        first = Desk(server, tmp_path / "a", log)
        first.start(BTC)
        await eventually(lambda: len(first.logged_ids(BTC)) >= 100, what="trades")
        await first.stop()
        mark = first.marks[BTC]
        last = max(
            (m for m in first.logged(BTC) if isinstance(m, market_pb2.Tick)), key=lambda tick: int(tick.trade_id)
        )
        assert mark == (last.trade_id, last.timestamp)
        down = [m for m in first.logged(BTC) if isinstance(m, market_pb2.Heartbeat)][-1]
        assert down.state == market_pb2.Heartbeat.DOWN
        second = Desk(server, tmp_path / "b", log)
        second.start(BTC, attempt=2, resume_after=mark)
        await eventually(lambda: len(second.live_ids(BTC)) >= 200, what="trades of the next attempt")
        await eventually(lambda: is_whole(second.logged_ids(BTC)), what="the time between to be filled")
        seen = second.live_ids(BTC)
        began = next(m for _, m in second.published() if isinstance(m, market_pb2.Gap))
        assert (began.from_trade_id, began.from_time) == (str(int(mark.trade_id) + 1), mark.time_ns)
        await second.stop()
        ids = seen
        assert min(ids) == int(mark.trade_id) + 1
        assert len(ids) == len(set(ids))


@in_loop
async def test_while_the_log_is_away_the_fast_path_goes_on_and_nothing_is_lost(tmp_path: Path) -> None:
    async with running(tmp_path) as desk:
        desk.server.drive("binance", "BTC/USDT", 300)
        desk.start(BTC)
        await eventually(lambda: len(desk.logged_ids(BTC)) >= 50, what="trades")
        desk.log.is_away = True
        stood = len(desk.logged_ids(BTC))
        await eventually(lambda: len(desk.live_ids(BTC)) >= stood + 300, what="the fast path to go on")
        assert len(desk.logged_ids(BTC)) == stood
        assert desk.counters.get("live.spill.kept") > 0
        desk.log.is_away = False
        await eventually(lambda: len(desk.logged_ids(BTC)) >= stood + 300, what="the spill to be forwarded")
        ids = desk.logged_ids(BTC)
        assert ids == sorted(ids)
        assert is_whole(ids)


@in_loop
async def test_what_waited_when_the_process_died_is_forwarded_without_any_job(tmp_path: Path) -> None:
    spill = Spill(tmp_path / "spill", bytes_max=1 << 20)
    body = encode_record(market_pb2.Tick(trade_id="7", ticker=BTC))
    spill.append(LogEntry(TICK_TOPIC, BTC.encode(), body, 7, 7))
    spill.close()
    async with running(tmp_path) as desk:
        await eventually(lambda: desk.logged_ids(BTC) == [7], what="the record of before to be forwarded")


@in_loop
async def test_over_the_spills_bound_the_missing_trades_are_declared_and_fetched_again(tmp_path: Path) -> None:
    async with running(tmp_path, spill_bytes_max=1024 * 1024) as desk:
        desk.server.drive("binance", "BTC/USDT", 3_000)
        desk.start(BTC)
        await eventually(lambda: len(desk.logged_ids(BTC)) >= 50, what="trades")
        desk.log.is_away = True
        await eventually(lambda: desk.counters.get("live.ticks.dropped") > 100, what="the spill to be full")
        desk.server.drive("binance", "BTC/USDT", 50)
        desk.log.is_away = False

        def settled() -> bool:
            said = gaps(desk.logged(BTC))
            opened = [g for g in said if g.cause == market_pb2.Gap.DROPPED and g.state == market_pb2.Gap.OPEN]
            filled = [g for g in said if g.cause == market_pb2.Gap.DROPPED and g.state == market_pb2.Gap.FILLED]
            return bool(opened) and len(filled) >= len(opened)

        await eventually(settled, what="the dropped trades to be declared and filled")
        assert sorted(set(desk.logged_ids(BTC))) == list(
            range(min(desk.logged_ids(BTC)), max(desk.logged_ids(BTC)) + 1)
        )


@in_loop
async def test_a_ticker_that_the_exchange_does_not_have_is_a_failed_job_with_words(tmp_path: Path) -> None:
    async with running(tmp_path) as desk:
        desk.start("NO/COIN.BINANCE")
        with pytest.raises(Exception, match="NO/COIN"):
            await desk.jobs["NO/COIN.BINANCE"]
