"""The worker over real ZeroMQ sockets: a scripted broker, the simulated exchange and an event log in memory."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Any

from google.protobuf.message import Message

from ingestors.clock import Clock, system_clock
from ingestors.engine.job_state import ExchangeSlots
from ingestors.engine.slots import SlotEngine
from ingestors.simulation.faults import Fault, FaultKind, RetryAfter
from ingestors.simulation.limits import Limits
from ingestors.simulation.server import SimulatedExchange
from ingestors.worker import Worker
from relay.errors import RetryableError, SettingsError
from relay.eventlog import LogPosition, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.protocol.codes import ErrorCode
from relay.protocol.envelope import decode, encode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range
from relay.protocol.registry import Channel
from relay.protocol.times import parse_iso_ns
from relay.protocol.v1 import market_pb2, work_pb2
from relay.transport import SocketKind, new_context, open_async_socket
from tests.support.ingestors import Bench, batches, bench, covered, rows
from tests.support.processes import eventually

SPAN = Range(parse_iso_ns("2024-03-05T02:00:00Z"), parse_iso_ns("2024-03-05T08:00:00Z"))
DEADLINE_SECONDS = 30


class ScriptedBroker:
    """A ROUTER that answers offers and heartbeats with a ping, and says what the test tells it to say."""

    def __init__(self, context: Any, *, epoch: int = 1, endpoint: str = "tcp://127.0.0.1:*") -> None:
        self._socket = open_async_socket(context, SocketKind.ROUTER, bind=[endpoint])
        self.endpoint = self._socket.last_endpoint.decode()
        self.epoch = epoch
        self.pings = True
        self.seen: list[Message] = []
        self._peer = b""
        self._task = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            frames = await self._socket.recv_multipart()
            self._peer = frames[0]
            message = decode(frames[1:], Channel.WORK_TO_BROKER).message
            self.seen.append(message)
            if self.pings and isinstance(message, work_pb2.WorkerReady | work_pb2.WorkHeartbeat):
                await self.say(work_pb2.BrokerPing(broker_epoch=self.epoch, sent_at=time.time_ns()))

    async def say(self, message: Message) -> None:
        await self._socket.send_multipart([self._peer, *encode(message)])

    async def say_bytes(self, *frames: bytes) -> None:
        await self._socket.send_multipart([self._peer, *frames])

    def of(self, kind: type) -> list[Any]:
        return [message for message in self.seen if isinstance(message, kind)]

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._socket.close(0)


async def until(condition: Callable[[], Any]) -> Any:
    return await eventually(condition, what="the condition", deadline_s=DEADLINE_SECONDS)


def request(offer: work_pb2.WorkerReady, **fields: Any) -> work_pb2.DataRequest:
    values: dict[str, Any] = {
        "job_id": "job-1",
        "attempt": 1,
        "request_id": "r",
        "ticker": "BTC/USDT.BINANCE",
        "lease_ms": 15_000,
        "slot_id": offer.slot_id,
        "offer_sequence": offer.offer_sequence,
        "historical": work_pb2.HistoricalParams(start_time=SPAN.start_ns, end_time=SPAN.end_ns, period_seconds=60),
    }
    return work_pb2.DataRequest(**(values | fields))


class Stage:
    """Everything that a scene needs."""

    def __init__(self, broker: ScriptedBroker, used: Bench, worker: Worker, server: SimulatedExchange, context: Any):
        self.broker, self.used, self.worker, self.server, self.context = broker, used, worker, server, context
        self.running: asyncio.Task[None] | None = None

    async def offer(self) -> work_pb2.WorkerReady:
        (first, *_) = await until(lambda: self.broker.of(work_pb2.WorkerReady))
        return first


class FastClock:
    """Real time made faster for intervals and leases; waits are made shorter by as much."""

    def __init__(self, factor: int) -> None:
        self._factor = factor
        self._real = system_clock()
        self._start_ns = self._real.monotonic_ns()

    def _monotonic_ns(self) -> int:
        return self._start_ns + (self._real.monotonic_ns() - self._start_ns) * self._factor

    async def _sleep_ns(self, duration_ns: int) -> None:
        await self._real.sleep_ns(duration_ns // self._factor)

    def clock(self) -> Clock:
        return Clock(self._real.wall_ns, self._monotonic_ns, self._sleep_ns)


@contextlib.asynccontextmanager
async def stage(
    *, faults: tuple[Fault, ...] = (), log: MemoryEventLog | None = None, slots: int = 2, faster: int = 1
) -> AsyncIterator[Stage]:
    context = new_context()
    async with SimulatedExchange(faults=faults, limits=Limits(binance_weight_per_minute=10**6)) as server:
        used = bench("BINANCE", base_urls=server.base_urls, log=log)
        broker = ScriptedBroker(context)
        engine = SlotEngine(ingestor_id="i", ingestor_epoch=5, slots=[ExchangeSlots("BINANCE", slots)])
        clock = FastClock(faster).clock()
        worker = Worker(engine, used.runner, exchanges={"BINANCE": used.exchange}, clock=clock, counters=used.counters)
        scene = Stage(broker, used, worker, server, context)
        scene.running = asyncio.create_task(worker.run(context, broker.endpoint, message_bytes_max=4 * 1024 * 1024))
        try:
            yield scene
        finally:
            worker.stop(within_ns=0)
            await asyncio.wait_for(scene.running, DEADLINE_SECONDS)
            await scene.broker.close()
            await used.exchange.adapter.close()
            await asyncio.to_thread(context.term)


def test_a_job_is_offered_run_and_completed_after_the_log_has_acknowledged_it() -> None:
    async def scene() -> None:
        async with stage() as on:
            offer = await on.offer()
            assert (offer.exchange, offer.ingestor_epoch) == ("BINANCE", 5)
            await on.broker.say(request(offer))
            (complete,) = await until(lambda: on.broker.of(work_pb2.WorkComplete))
            assert (complete.success, complete.rows) == (True, 360)
            found = batches(on.used.log)
            assert covered(found) == [SPAN]
            assert (found[-1].is_last, found[-1].total_rows, len(rows(found))) == (True, 360, 360)
            again = await until(lambda: [o for o in on.broker.of(work_pb2.WorkerReady) if o.offer_sequence == 2])
            assert again[0].slot_id == offer.slot_id

    asyncio.run(scene())


def test_a_repeated_request_is_run_once_and_answered_again() -> None:
    async def scene() -> None:
        async with stage() as on:
            offer = await on.offer()
            await on.broker.say(request(offer))
            await until(lambda: on.broker.of(work_pb2.WorkComplete))
            await on.broker.say(request(offer))
            await until(lambda: len(on.broker.of(work_pb2.WorkComplete)) == 2)
            assert on.server.requests.count("/binance/api/v3/klines") == 1

    asyncio.run(scene())


def test_two_slots_run_two_jobs_side_by_side() -> None:
    async def scene() -> None:
        async with stage() as on:
            await until(lambda: len(on.broker.of(work_pb2.WorkerReady)) >= 2)
            first, second = on.broker.of(work_pb2.WorkerReady)[:2]
            await on.broker.say(request(first))
            await on.broker.say(request(second, job_id="job-2", ticker="ETH/USDT.BINANCE"))
            done = await until(lambda: len(on.broker.of(work_pb2.WorkComplete)) == 2 and on.broker.seen)
            assert {m.job_id for m in done if isinstance(m, work_pb2.WorkComplete)} == {"job-1", "job-2"}

    asyncio.run(scene())


def test_a_failed_job_leaves_its_marker_before_it_is_reported() -> None:
    async def scene() -> None:
        async with stage() as on:
            await on.broker.say(request(await on.offer(), ticker="NOPE/USDT.BINANCE"))
            (complete,) = await until(lambda: on.broker.of(work_pb2.WorkComplete))
            assert (complete.success, complete.error_code) == (False, "UNKNOWN_SYMBOL")
            (marker,) = batches(on.used.log)
            assert (marker.status, marker.is_last) == (market_pb2.OHLCBatch.ERROR, True)

    asyncio.run(scene())


def test_a_ban_gives_the_job_back_with_its_length_and_parks_the_exchange_case_52() -> None:
    """Case 52: 418 with Retry-After 720."""
    ban = Fault(FaultKind.BANNED, path="*klines", retry_after=RetryAfter.SECONDS, retry_after_seconds=720)

    async def scene() -> None:
        async with stage(faults=(ban,)) as on:
            await on.broker.say(request(await on.offer()))
            (reject,) = await until(lambda: on.broker.of(work_pb2.WorkReject))
            assert reject.reason == work_pb2.WorkReject.RATE_LIMITED
            assert 715_000 <= reject.retry_after_ms <= 720_000
            assert on.broker.of(work_pb2.WorkComplete) == []
            assert on.used.log.end_offsets("market-ohlc") == [0]
            ask = work_pb2.IngestorControl(action=work_pb2.IngestorControl.HEARTBEAT)
            offers = len(on.broker.of(work_pb2.WorkerReady))
            await on.broker.say(ask)
            await on.broker.say_bytes(b"\x02", b"x")
            await until(lambda: on.used.counters.get("rejected.wrong_version"))
            assert len(on.broker.of(work_pb2.WorkerReady)) == offers

    asyncio.run(scene())


class AwayLog(MemoryEventLog):
    """A log whose acknowledgements wait for :meth:`come_back`, and whose buffer is full at first."""

    def __init__(self, *, refusals: int = 0) -> None:
        super().__init__()
        self.is_away = True
        self.refusals = refusals
        self.held: list[tuple[Future[LogPosition], Future[LogPosition]]] = []

    def append(self, topic: str, *, key: bytes, value: bytes) -> Future[LogPosition]:
        if self.refusals:
            self.refusals -= 1
            raise RetryableError("full", code=ErrorCode.OVERLOADED, retry_after_ms=1)
        done = super().append(topic, key=key, value=value)
        if not self.is_away:
            return done
        waiting: Future[LogPosition] = Future()
        self.held.append((waiting, done))
        return waiting

    def come_back(self) -> None:
        self.is_away = False
        for waiting, done in self.held:
            if waiting.set_running_or_notify_cancel():
                waiting.set_result(done.result())


def _away(refusals: int = 0) -> AwayLog:
    log = AwayLog(refusals=refusals)
    log.ensure_topics(platform_topics(prefix="", partitions=1, retention_hours=1))
    return log


def test_while_the_log_is_away_the_job_holds_and_its_heartbeats_go_on() -> None:
    log = _away(refusals=2)

    async def scene() -> None:
        async with stage(log=log, faster=20) as on:
            await on.broker.say(request(await on.offer()))
            await until(lambda: log.held)
            beats = await until(lambda: len(on.broker.of(work_pb2.WorkHeartbeat)) >= 8 and on.broker.seen)
            assert on.broker.of(work_pb2.WorkComplete) == []
            assert all(b.progress_rows == 0 for b in beats if isinstance(b, work_pb2.WorkHeartbeat))
            log.come_back()
            (complete,) = await until(lambda: on.broker.of(work_pb2.WorkComplete))
            assert (complete.success, complete.rows) == (True, 360)
            assert on.used.counters.get("log.waits") == 2

    asyncio.run(scene())


def test_a_silent_broker_ends_the_lease_and_the_writing() -> None:
    log = _away()

    async def scene() -> None:
        async with stage(log=log, faster=20) as on:
            offer = await on.offer()
            on.broker.pings = False
            await on.broker.say(request(offer))
            await until(lambda: on.used.counters.get("leases.lost") == 1)
            log.come_back()
            await until(lambda: [o for o in on.broker.of(work_pb2.WorkerReady) if o.offer_sequence == 2])
            assert on.broker.of(work_pb2.WorkComplete) == []
            assert len(batches(log)) == len(log.held) == 1

    asyncio.run(scene())


def test_a_cancelled_job_is_reported_and_writes_nothing_more() -> None:
    slow = Fault(FaultKind.SLOW, path="*klines", delay_ms=60_000)

    async def scene() -> None:
        async with stage(faults=(slow,)) as on:
            await on.broker.say(request(await on.offer()))
            await until(lambda: on.used.counters.get("jobs.running") == 1)
            cancel = work_pb2.IngestorControl(action=work_pb2.IngestorControl.CANCEL, request_id="job-1")
            await on.broker.say(cancel)
            (complete,) = await until(lambda: on.broker.of(work_pb2.WorkComplete))
            assert (complete.success, complete.error_code) == (False, "CANCELLED")
            assert batches(on.used.log) == []

    asyncio.run(scene())


def _rebound(context: Any, endpoint: str) -> ScriptedBroker | None:
    """Return a broker on an endpoint, or None while the closed socket still holds it."""
    try:
        return ScriptedBroker(context, epoch=2, endpoint=endpoint)
    except SettingsError:
        return None


def test_a_restarted_broker_hears_all_offers_again_on_a_new_connection_case_74() -> None:
    """Case 74: nothing depends on an identity that a ROUTER might still hold."""

    async def scene() -> None:
        async with stage() as on:
            await on.offer()
            await until(lambda: on.worker.status()["broker_epoch"] == 1)
            endpoint, old = on.broker.endpoint, on.broker
            await old.close()
            on.broker = await until(lambda: _rebound(on.context, endpoint))
            offers = await until(lambda: len(on.broker.of(work_pb2.WorkerReady)) >= 2 and on.broker.seen)
            assert {o.slot_id for o in offers if isinstance(o, work_pb2.WorkerReady)} == {0, 1}
            await until(lambda: on.worker.status()["broker_epoch"] == 2)

    asyncio.run(scene())


def test_garbage_from_the_broker_is_counted_and_survived() -> None:
    async def scene() -> None:
        async with stage() as on:
            offer = await on.offer()
            await on.broker.say_bytes(b"\x01", b"\xee")
            await on.broker.say_bytes(b"alone")
            await on.broker.say_bytes(b"\x01", b"\x01\xff\xff\xff")
            await on.broker.say(request(offer))
            await until(lambda: on.broker.of(work_pb2.WorkComplete))
            counters = on.used.counters
            assert counters.get("rejected.unknown_type") + counters.get("rejected.wrong_channel") == 1
            assert counters.get("rejected.too_few_frames") == 1
            assert counters.get("rejected.undecodable") == 1

    asyncio.run(scene())


def test_two_workers_of_one_name_are_told_apart_by_their_epoch_case_73() -> None:
    """Case 73: no socket identity is set, so both are heard."""

    async def scene() -> None:
        async with stage(slots=1) as on:
            twin_engine = SlotEngine(ingestor_id="i", ingestor_epoch=6, slots=[ExchangeSlots("BINANCE", 1)])
            exchanges = {"BINANCE": on.used.exchange}
            twin = Worker(
                twin_engine, on.used.runner, exchanges=exchanges, clock=system_clock(), counters=on.used.counters
            )
            running = asyncio.create_task(twin.run(on.context, on.broker.endpoint, message_bytes_max=10**6))
            epochs = lambda: {o.ingestor_epoch for o in on.broker.of(work_pb2.WorkerReady)}  # noqa: E731
            await until(lambda: epochs() == {5, 6})
            twin.stop(within_ns=0)
            await asyncio.wait_for(running, DEADLINE_SECONDS)

    asyncio.run(scene())


def test_a_drained_worker_gives_its_job_back_and_returns() -> None:
    slow = Fault(FaultKind.SLOW, path="*klines", delay_ms=60_000)

    async def scene() -> None:
        async with stage(faults=(slow,)) as on:
            await on.broker.say(request(await on.offer()))
            await until(lambda: on.used.counters.get("jobs.running") == 1)
            on.worker.stop(within_ns=NANOSECONDS // 10)
            (reject,) = await until(lambda: on.broker.of(work_pb2.WorkReject))
            assert reject.reason == work_pb2.WorkReject.SHUTTING_DOWN
            assert on.running is not None
            await asyncio.wait_for(asyncio.shield(on.running), DEADLINE_SECONDS)

    asyncio.run(scene())
