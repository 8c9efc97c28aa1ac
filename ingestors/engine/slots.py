"""Slots and leases of one ingestor: broker messages, job news and ticks in, messages and job starts out.

::

    FREE ──DataRequest──► BUSY ──job ends──► FREE (next offer_sequence)
      └──── ban ────► PARKED ──ban over──► FREE            any ──fewer slots──► retired
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from google.protobuf.message import Message

from ingestors.engine.job_state import (
    CancelJob,
    ExchangeSlots,
    Exit,
    JobKey,
    JobResult,
    RunningJob,
    Send,
    SetRateLimit,
    Slot,
    SlotCommand,
    StartJob,
)
from ingestors.engine.logged_mark import NOT_LOGGED, Logged
from ingestors.engine.slot_table import SlotTable
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range, to_wire
from relay.protocol.v1 import work_pb2

__all__ = ["OFFER_INTERVAL_NS", "SlotCounts", "SlotEngine"]

OFFER_INTERVAL_NS = 5 * NANOSECONDS
HEARTBEAT_INTERVAL_NS = 5 * NANOSECONDS
_LEASE_DEFAULT_MS = 15_000
_MILLISECOND_NS = 1_000_000
_ENDED_JOBS_MAX = 1_000


@dataclass(slots=True)
class SlotCounts:
    """What happened on the work channel."""

    started: int = 0
    repeated_requests: int = 0
    refused_requests: int = 0
    leases_lost: int = 0
    broker_restarts: int = 0


@dataclass(slots=True)
class _Drain:
    """A shutdown under way."""

    until_ns: int | None = None


class SlotEngine:
    """State of all slots of one ingestor process.

    Args:
        ingestor_id: stable name of this ingestor.
        ingestor_epoch: random for each start.
        slots: how many of which exchange.
    """

    def __init__(self, *, ingestor_id: str, ingestor_epoch: int, slots: Iterable[ExchangeSlots]) -> None:
        self._ingestor_id = ingestor_id
        self._ingestor_epoch = ingestor_epoch
        self._slots = SlotTable(slots)
        self._jobs: dict[JobKey, RunningJob] = {}
        self._ended: dict[JobKey, Message] = {}
        self._broker_epoch: int | None = None
        self._drain: _Drain | None = None
        self.counts = SlotCounts()

    @property
    def running(self) -> Mapping[JobKey, RunningJob]:
        """Jobs in work."""
        return self._jobs

    @property
    def free_slots(self) -> int:
        """Slots that are on offer."""
        return self._slots.free

    @property
    def broker_epoch(self) -> int | None:
        """Epoch of the broker heard last, None before the first answer."""
        return self._broker_epoch

    @property
    def is_draining(self) -> bool:
        """Whether no new job is taken."""
        return self._drain is not None

    def on_tick(self, now_ns: int) -> list[SlotCommand]:
        """Do what is due: lost leases, heartbeats, offers, the end of a drain."""
        commands = self._lose_leases(now_ns)
        commands += self._heartbeats(now_ns, every_ns=HEARTBEAT_INTERVAL_NS)
        commands += self._offers(now_ns, every_ns=OFFER_INTERVAL_NS)
        return commands + self._drained(now_ns)

    def on_message(self, message: Message, now_ns: int) -> list[SlotCommand]:
        """Take a message of the broker."""
        if isinstance(message, work_pb2.DataRequest):
            return self._on_request(message, now_ns)
        if isinstance(message, work_pb2.BrokerPing):
            return self._on_ping(message, now_ns)
        if isinstance(message, work_pb2.WorkStop):
            return self._cancel(message.job_id)
        if isinstance(message, work_pb2.IngestorControl):
            return self._on_control(message, now_ns)
        return []

    def on_progress(
        self, key: JobKey, *, rows: int, covered: Iterable[Range] = (), last_event_ns: int, logged: Logged = NOT_LOGGED
    ) -> None:
        """Take what the log has acknowledged of a job; ``last_event_ns`` is the newest bar's or trade's time."""
        job = self._jobs.get(key)
        if job is not None:
            job.rows, job.covered, job.last_event_ns = rows, tuple(covered), last_event_ns
            job.logged = logged

    def on_finished(self, key: JobKey, result: JobResult, now_ns: int) -> list[SlotCommand]:
        """Take the end of a job: all its records are acknowledged, or it stopped without writing on."""
        job = self._jobs.get(key)
        if self._drain is not None and job is not None and job.is_realtime:
            # It goes on elsewhere, from where the last beat says that everything is logged.
            beat = self._heartbeats(now_ns, every_ns=0, only=key)
            reject = self._reject(key, work_pb2.WorkReject.SHUTTING_DOWN, (), wait_ns=0)
            return [*beat, *self._end(key, reject, now_ns)]
        message = work_pb2.WorkComplete(
            job_id=key.job_id,
            attempt=key.attempt,
            success=result.success,
            error_code=result.code,
            error_message=result.message,
            rows=result.rows,
        )
        return self._end(key, message, now_ns)

    def on_banned(self, key: JobKey, *, exchange: str, duration_ns: int, now_ns: int) -> list[SlotCommand]:
        """Give a job back because its exchange lets nobody in; park all slots of that exchange."""
        self._slots.park(exchange, now_ns + duration_ns)
        job = self._jobs.get(key)
        covered = job.covered if job else ()
        message = self._reject(key, work_pb2.WorkReject.RATE_LIMITED, covered, wait_ns=duration_ns)
        return self._end(key, message, now_ns)

    def drain(self, now_ns: int, *, within_ns: int | None) -> list[SlotCommand]:
        """Take no more jobs; live ones stop, others may end, what is left after ``within_ns`` is given back."""
        self._drain = _Drain(None if within_ns is None else now_ns + within_ns)
        live = [CancelJob(key, ErrorCode.CANCELLED) for key, job in self._jobs.items() if job.is_realtime]
        return [*live, *self._drained(now_ns)]

    def _on_request(self, request: work_pb2.DataRequest, now_ns: int) -> list[SlotCommand]:
        key = JobKey(request.job_id, request.attempt)
        if key in self._jobs:
            self.counts.repeated_requests += 1
            return self._heartbeats(now_ns, every_ns=0, only=key)
        if key in self._ended:
            # Its end did not arrive, or crossed with this repeat.
            self.counts.repeated_requests += 1
            return [Send(self._ended[key])]
        slot = self._slots.takeable(request.slot_id, request.offer_sequence)
        reason, wait_ns = self._refusal(request, slot, now_ns)
        if slot is None or reason is not None:
            self.counts.refused_requests += 1
            return [
                Send(
                    self._reject(
                        key, work_pb2.WorkReject.NO_CAPACITY if reason is None else reason, (), wait_ns=wait_ns
                    )
                )
            ]
        self._slots.take(slot, key)
        lease_ns = (request.lease_ms or _LEASE_DEFAULT_MS) * _MILLISECOND_NS
        job = RunningJob(slot.slot_id, slot.exchange, lease_ns, now_ns + lease_ns, now_ns, now_ns)
        job.is_realtime = slot.is_realtime
        job.logged = Logged(request.realtime.resume_after_trade_id, request.realtime.resume_after_time)
        self._jobs[key] = job
        self.counts.started += 1
        return [StartJob(key, request)]

    def _refusal(
        self, request: work_pb2.DataRequest, slot: Slot | None, now_ns: int
    ) -> tuple[work_pb2.WorkReject.Reason | None, int]:
        if self._drain is not None:
            return work_pb2.WorkReject.SHUTTING_DOWN, 0
        is_realtime = request.type == work_pb2.DataRequest.REALTIME_TICKS
        if slot is None or slot.is_realtime != is_realtime:
            return work_pb2.WorkReject.NO_CAPACITY, 0
        if _exchange_of(request.ticker) != slot.exchange:
            return work_pb2.WorkReject.UNSUPPORTED_EXCHANGE, 0
        parked_ns = self._slots.parked_ns(slot.exchange, now_ns)
        return (work_pb2.WorkReject.RATE_LIMITED, parked_ns) if parked_ns else (None, 0)

    def _on_ping(self, ping: work_pb2.BrokerPing, now_ns: int) -> list[SlotCommand]:
        is_restart = self._broker_epoch is not None and ping.broker_epoch != self._broker_epoch
        self._broker_epoch = ping.broker_epoch
        for job in self._jobs.values():
            # The ping may answer an offer sent before the newest heartbeat, so only the one before it is proven.
            job.lease_until_ns = max(job.lease_until_ns, job.proven_beat_ns + job.lease_ns)
        if not is_restart:
            return []
        self.counts.broker_restarts += 1
        self._slots.forget_offers()
        return self._heartbeats(now_ns, every_ns=0) + self._offers(now_ns, every_ns=OFFER_INTERVAL_NS)

    def _on_control(self, control: work_pb2.IngestorControl, now_ns: int) -> list[SlotCommand]:
        action = control.action
        if action == work_pb2.IngestorControl.CANCEL:
            return self._cancel(control.request_id)
        if action == work_pb2.IngestorControl.SHUTDOWN:
            return self.drain(now_ns, within_ns=None)
        if action == work_pb2.IngestorControl.HEARTBEAT:
            self._slots.forget_offers()
            return self._heartbeats(now_ns, every_ns=0) + self._offers(now_ns, every_ns=OFFER_INTERVAL_NS)
        for wanted in control.config.slots:
            self._slots.resize(ExchangeSlots(wanted.exchange, wanted.historical_slots, wanted.realtime_slots))
        limits = [SetRateLimit(limit.host, limit.weight_per_minute) for limit in control.config.rate_limits]
        return [*limits, *self._offers(now_ns, every_ns=OFFER_INTERVAL_NS)]

    def _cancel(self, job_id: str) -> list[SlotCommand]:
        return [CancelJob(key, ErrorCode.CANCELLED) for key in self._jobs if key.job_id == job_id]

    def _end(self, key: JobKey, message: Message, now_ns: int) -> list[SlotCommand]:
        job = self._jobs.pop(key, None)
        if job is None:
            return []
        self._remember(key, message)
        self._slots.release(job.slot_id)
        return [Send(message), *self._offers(now_ns, every_ns=OFFER_INTERVAL_NS), *self._drained(now_ns)]

    def _remember(self, key: JobKey, message: Message) -> None:
        self._ended[key] = message
        if len(self._ended) > _ENDED_JOBS_MAX:
            del self._ended[next(iter(self._ended))]

    def _lose_leases(self, now_ns: int) -> list[SlotCommand]:
        """Stop jobs whose lease could not be renewed: by now another worker may have them."""
        lost = [key for key, job in self._jobs.items() if now_ns >= job.lease_until_ns]
        for key in lost:
            self.counts.leases_lost += 1
            self._slots.release(self._jobs.pop(key).slot_id)
        return [CancelJob(key, ErrorCode.LEASE_LOST) for key in lost]

    def _heartbeats(self, now_ns: int, *, every_ns: int, only: JobKey | None = None) -> list[SlotCommand]:
        commands: list[SlotCommand] = []
        for key, job in self._jobs.items():
            if (only is not None and key != only) or now_ns - job.beat_ns < every_ns:
                continue
            job.proven_beat_ns, job.beat_ns = job.beat_ns, now_ns
            beat = work_pb2.WorkHeartbeat(
                job_id=key.job_id,
                attempt=key.attempt,
                progress_rows=job.rows,
                last_event_at=job.last_event_ns,
                covered=to_wire(job.covered),
                last_logged_trade_id=job.logged.trade_id,
                last_logged_time=job.logged.time_ns,
            )
            commands.append(Send(beat))
        return commands

    def _offers(self, now_ns: int, *, every_ns: int) -> list[SlotCommand]:
        if self._drain is not None:
            return []
        return [Send(self._offer(slot)) for slot in self._slots.due_offers(now_ns, every_ns=every_ns)]

    def _offer(self, slot: Slot) -> work_pb2.WorkerReady:
        return work_pb2.WorkerReady(
            exchange=slot.exchange,
            slot_type=work_pb2.WorkerReady.REALTIME if slot.is_realtime else work_pb2.WorkerReady.HISTORICAL,
            ingestor_id=self._ingestor_id,
            ingestor_epoch=self._ingestor_epoch,
            slot_id=slot.slot_id,
            offer_sequence=slot.offer_sequence,
        )

    def _reject(
        self, key: JobKey, reason: work_pb2.WorkReject.Reason, covered: Iterable[Range], *, wait_ns: int
    ) -> work_pb2.WorkReject:
        return work_pb2.WorkReject(
            job_id=key.job_id,
            attempt=key.attempt,
            reason=reason,
            retry_after_ms=min(-(-wait_ns // _MILLISECOND_NS), 2**32 - 1),
            covered=to_wire(covered),
        )

    def _drained(self, now_ns: int) -> list[SlotCommand]:
        drain = self._drain
        if drain is None:
            return []
        commands: list[SlotCommand] = []
        if drain.until_ns is not None and now_ns >= drain.until_ns:
            for key, job in self._jobs.items():
                reject = self._reject(key, work_pb2.WorkReject.SHUTTING_DOWN, job.covered, wait_ns=0)
                commands += [CancelJob(key, ErrorCode.UNAVAILABLE), Send(reject)]
            self._jobs.clear()
        return commands if self._jobs else [*commands, Exit()]


def _exchange_of(ticker: str) -> str:
    """Return the exchange of a ticker, or of a bare exchange name (symbol jobs)."""
    return ticker.rpartition(".")[2]
