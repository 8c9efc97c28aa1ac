"""The ingestor's loop: broker messages and job news into the slot engine, its commands out."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from google.protobuf.message import Message

from ingestors.clock import Clock
from ingestors.engine.job_state import CancelJob, Exit, JobKey, JobResult, Send, SetRateLimit, SlotCommand, StartJob
from ingestors.engine.logged_mark import Logged
from ingestors.engine.slots import SlotEngine
from ingestors.exchanges.exchange import Exchange
from ingestors.job_runner import BannedError, JobRunner
from ingestors.live.desk import LiveDesk
from relay.engine.redial import Redial
from relay.errors import RelayError
from relay.observability import Counters
from relay.protocol.codes import ErrorCode
from relay.protocol.envelope import EnvelopeError, decode, encode
from relay.protocol.ranges import Range
from relay.protocol.registry import Channel
from relay.protocol.v1 import work_pb2
from relay.transport import AsyncSocket, Context, SocketKind, SocketLimits, open_async_socket, redial

__all__ = ["Worker"]

_LOG = structlog.get_logger(__name__)
_TICK_SECONDS = 0.25
_UNSENT_MAX = 200
"""Offers and heartbeats are dropped above this: the broker is away, and they are repeated anyway."""
_FAREWELL_MS = 1_000
_SILENCE_NS = 15_000_000_000


@dataclass(frozen=True, slots=True)
class _Ended:
    key: JobKey
    exchange: str
    result: JobResult | None = None
    banned_ns: int = 0


@dataclass(frozen=True, slots=True)
class _Stop:
    within_ns: int


class Worker:
    """Drives one ingestor process.

    Args:
        engine: slots and leases.
        runner: runs attempts at history and symbols.
        desk: runs live attempts; None for an ingestor without a live side.
        exchanges: by name, for rate limits that the broker sets.
        clock: time.
        counters: shared.
        parent_pid: leave when this is no longer the parent process; None to stay.
    """

    def __init__(
        self,
        engine: SlotEngine,
        runner: JobRunner,
        *,
        desk: LiveDesk | None = None,
        exchanges: Mapping[str, Exchange],
        clock: Clock,
        counters: Counters,
        parent_pid: int | None = None,
    ) -> None:
        self._engine = engine
        self._runner = runner
        self._desk = desk
        self._exchanges = exchanges
        self._clock = clock
        self._counters = counters
        self._parent_pid = parent_pid
        self._inbox: asyncio.Queue[Message | _Ended | _Stop] = asyncio.Queue()
        self._outbox: asyncio.Queue[Message] = asyncio.Queue()
        self._jobs: dict[JobKey, asyncio.Task[None]] = {}
        self._is_over = False
        self._redial = Redial(_SILENCE_NS)

    def stop(self, *, within_ns: int) -> None:
        """Take no more jobs, end within this time, then return from :meth:`run`; call from the loop's thread."""
        self._inbox.put_nowait(_Stop(within_ns))

    async def run(self, context: Context, endpoint: str, *, message_bytes_max: int) -> None:
        """Serve until stopped, told to shut down, or orphaned."""
        # No identity: a new connection is a new routing id, and the broker goes by what is in the messages.
        socket = open_async_socket(
            context, SocketKind.DEALER, connect=[endpoint], limits=SocketLimits(frame_bytes_max=message_bytes_max)
        )
        pumps = [asyncio.create_task(self._receive(socket)), asyncio.create_task(self._send(socket))]
        try:
            while not self._is_over and not self._is_orphan():
                for pump in pumps:
                    if pump.done():
                        pump.result()
                await self._turn()
                self._watch_broker(socket, endpoint)
            await self._cancel_jobs()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._outbox.join(), _FAREWELL_MS / 1_000)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            socket.close(_FAREWELL_MS)

    def status(self) -> Mapping[str, object]:
        """Return what ``/status`` shows; called from another thread."""
        return {
            "ready": self._engine.broker_epoch is not None and not self._engine.is_draining,
            "broker_epoch": self._engine.broker_epoch,
            "free_slots": self._counters.get("slots.free"),
            "running_jobs": self._counters.get("jobs.running"),
            "live_tickers": self._counters.get("live.tickers"),
            "feeds": {} if self._desk is None else dict(self._desk.feeds),
            "exchanges": {name: x.adapter.capabilities.fidelity.value for name, x in self._exchanges.items()},
        }

    async def _turn(self) -> None:
        with contextlib.suppress(TimeoutError):
            item = await asyncio.wait_for(self._inbox.get(), _TICK_SECONDS)
            self._execute(self._take(item))
        self._execute(self._engine.on_tick(self._clock.monotonic_ns()))
        self._counters.set("slots.free", self._engine.free_slots)
        self._counters.set("jobs.running", len(self._engine.running))
        self._counters.set("jobs.started", self._engine.counts.started)
        self._counters.set("requests.repeated", self._engine.counts.repeated_requests)
        self._counters.set("requests.refused", self._engine.counts.refused_requests)
        self._counters.set("leases.lost", self._engine.counts.leases_lost)
        self._counters.set("broker.restarts", self._engine.counts.broker_restarts)

    def _take(self, item: Message | _Ended | _Stop) -> list[SlotCommand]:
        now_ns = self._clock.monotonic_ns()
        if isinstance(item, _Stop):
            _LOG.info("drain_started", running_jobs=len(self._engine.running))
            return self._engine.drain(now_ns, within_ns=item.within_ns)
        if isinstance(item, _Ended):
            self._jobs.pop(item.key, None)
            if item.result is None:
                _LOG.warning("exchange_parked", exchange=item.exchange, seconds=item.banned_ns // 10**9)
                return self._engine.on_banned(
                    item.key, exchange=item.exchange, duration_ns=item.banned_ns, now_ns=now_ns
                )
            return self._engine.on_finished(item.key, item.result, now_ns)
        return self._engine.on_message(item, now_ns)

    def _execute(self, commands: list[SlotCommand]) -> None:
        for command in commands:
            if isinstance(command, Send):
                self._post(command.message)
            elif isinstance(command, StartJob):
                self._jobs[command.key] = asyncio.create_task(self._job(command.key, command.request))
            elif isinstance(command, CancelJob):
                self._cancel(command)
            elif isinstance(command, SetRateLimit):
                self._set_rate_limit(command)
            elif isinstance(command, Exit):
                self._is_over = True

    async def _job(self, key: JobKey, request: work_pb2.DataRequest) -> None:
        exchange = request.ticker.rpartition(".")[2]

        def progress(rows: int, covered: tuple[Range, ...], newest_ns: int) -> None:
            self._engine.on_progress(key, rows=rows, covered=covered, last_event_ns=newest_ns)

        def live_progress(ticks: int, newest_ns: int, logged: Logged) -> None:
            self._engine.on_progress(key, rows=ticks, last_event_ns=newest_ns, logged=logged)

        try:
            if request.type == work_pb2.DataRequest.REALTIME_TICKS and self._desk is not None:
                result = await self._desk.run(request, live_progress)
            else:
                result = await self._runner.run(request, progress)
        except BannedError as error:
            self._inbox.put_nowait(_Ended(key, exchange, banned_ns=error.duration_ns))
            return
        except asyncio.CancelledError:
            result = JobResult(False, 0, ErrorCode.CANCELLED, "cancelled")
        except RelayError as error:
            result = JobResult(False, 0, error.code, str(error))
        except Exception as error:  # noqa: BLE001 - one broken job must not end the others
            _LOG.exception("job_broke", job_id=key.job_id, ticker=request.ticker)
            result = JobResult(False, 0, ErrorCode.INTERNAL, f"{type(error).__name__}: {error}"[:500])
        self._inbox.put_nowait(_Ended(key, exchange, result))

    def _cancel(self, command: CancelJob) -> None:
        _LOG.info("job_stopped", job_id=command.key.job_id, attempt=command.key.attempt, code=command.code)
        task = self._jobs.get(command.key)
        if task is not None:
            task.cancel()

    async def _cancel_jobs(self) -> None:
        tasks = list(self._jobs.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _set_rate_limit(self, command: SetRateLimit) -> None:
        for exchange in self._exchanges.values():
            if exchange.host is not None and exchange.host.host == command.host:
                exchange.set_weight_per_minute(command.weight_per_minute)

    def _post(self, message: Message) -> None:
        is_repeated = isinstance(message, work_pb2.WorkerReady | work_pb2.WorkHeartbeat)
        if is_repeated and self._outbox.qsize() >= _UNSENT_MAX:
            self._counters.add("broker.unsent")
            return
        self._outbox.put_nowait(message)

    def _watch_broker(self, socket: AsyncSocket, endpoint: str) -> None:
        """Offers and heartbeats are always answered: after a long silence the connection is made anew."""
        if self._redial.failed(self._clock.monotonic_ns()):
            self._counters.add("broker.redialled")
            redial(socket, endpoint)

    async def _receive(self, socket: AsyncSocket) -> None:
        while True:
            frames = await socket.recv_multipart()
            self._redial.worked()
            try:
                envelope = decode(frames, Channel.WORK_TO_INGESTOR)
            except EnvelopeError as error:
                self._counters.add(f"rejected.{error.reason}")
            else:
                self._inbox.put_nowait(envelope.message)

    async def _send(self, socket: AsyncSocket) -> None:
        while True:
            message = await self._outbox.get()
            await socket.send_multipart(encode(message))
            self._outbox.task_done()

    def _is_orphan(self) -> bool:
        if self._parent_pid is None or os.getppid() == self._parent_pid:
            return False
        _LOG.warning("parent_vanished", parent_pid=self._parent_pid)
        return True
