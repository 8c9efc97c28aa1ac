"""The work channel: what ingestors say, turned into changes of leases and jobs; DataRequests out."""

from __future__ import annotations

import re
from dataclasses import replace

from google.protobuf.message import Message

from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import from_wire, to_wire, union
from relay.protocol.v1 import work_pb2
from spark_jobs.manager.engine.broker import Broker, Lease
from spark_jobs.manager.engine.commands import Command, RememberExchange, SendWork
from spark_jobs.manager.engine.evidence import can_pass
from spark_jobs.manager.engine.jobs import JobBook
from spark_jobs.manager.engine.model import Assignment, Job, JobKind, JobState, Route
from spark_jobs.manager.engine.realtime import RealtimeBook
from spark_jobs.manager.engine.slots import offer_of

__all__ = ["WorkEngine", "is_sound"]

_Reject = work_pb2.WorkReject
_TYPES = {
    JobKind.HISTORICAL: work_pb2.DataRequest.HISTORICAL_OHLC,
    JobKind.SYMBOLS: work_pb2.DataRequest.SYMBOLS,
    JobKind.STATISTICS: work_pb2.DataRequest.STATISTICS,
}
_EXCHANGE = re.compile(r"[A-Z0-9_]+", re.ASCII)
_NAME_BYTES_MAX = 128
_REFUSED_SLOT_NS = 5 * NANOSECONDS


class WorkEngine:
    """Speaks for the broker with ingestors.

    Args:
        broker: slots and leases.
        book: jobs.
        realtime: live jobs.
        epoch: of this broker, random for each start; told in every BrokerPing.
        lease_ms: lease of an attempt, told in every DataRequest.
        exchanges: known ones; grows with offers.
    """

    def __init__(
        self,
        broker: Broker,
        book: JobBook,
        realtime: RealtimeBook,
        *,
        epoch: int,
        lease_ms: int,
        exchanges: set[str],
    ) -> None:
        self._broker = broker
        self._book = book
        self._realtime = realtime
        self._epoch = epoch
        self._lease_ms = lease_ms
        self._exchanges = exchanges

    def handle(self, message: Message, route: Route, *, now_ns: int) -> list[Command]:
        """Handle one message of an ingestor; offers and heartbeats are always answered with BrokerPing."""
        if isinstance(message, work_pb2.WorkerReady):
            return [*self._offered(message, route, now_ns=now_ns), self._ping(route, now_ns=now_ns)]
        if isinstance(message, work_pb2.WorkHeartbeat):
            return [*self._heard(message, route, now_ns=now_ns), self._ping(route, now_ns=now_ns)]
        if isinstance(message, work_pb2.WorkComplete):
            return self._completed(message, now_ns=now_ns)
        if isinstance(message, work_pb2.WorkReject):
            return self._rejected(message, now_ns=now_ns)
        return []

    def unreachable(self, job_id: str, attempt: int, *, now_ns: int) -> list[Command]:
        """A DataRequest could not be sent: the attempt never was, another slot takes the job."""
        lease = self._broker.unreachable(job_id, attempt, now_ns=now_ns)
        if lease is not None and self._realtime.owns(job_id):
            return self._realtime.lost(job_id, now_ns=now_ns)
        job = self._book.jobs.get(job_id)
        if lease is None or job is None:
            return []
        return self._book.try_again(
            job, code=ErrorCode.LEASE_LOST, text="the ingestor was gone", now_ns=now_ns, is_counted=False
        )

    def expire(self, now_ns: int) -> list[Command]:
        """End the leases whose worker was silent for too long."""
        commands: list[Command] = []
        for lease in self._broker.expire(now_ns):
            commands += self._lost(lease.job_id, "its ingestor missed its heartbeats", now_ns=now_ns)
        return commands

    def assign(self, now_ns: int) -> list[Command]:
        """Give waiting jobs to free slots: each attempt is stored, then sent."""
        commands: list[Command] = []
        for lease, slot in self._broker.assign(now_ns):
            if self._realtime.owns(lease.job_id):
                commands += self._realtime.assigned(lease, slot, lease_ms=self._lease_ms, now_ns=now_ns)
                continue
            job = replace(
                self._book.jobs[lease.job_id],
                state=JobState.DISPATCHED,
                error_code="",
                error_message="",
                attempt=lease.attempt,
                attempts_counted=self._book.jobs[lease.job_id].attempts_counted + 1,
                progress_rows=0,
                assignment=slot,
            )
            commands += [self._book.save(job), self._data_request(job, slot, lease)]
        return commands

    def _offered(self, message: work_pb2.WorkerReady, route: Route, *, now_ns: int) -> list[Command]:
        offer = offer_of(message)
        result = self._broker.offered(offer, route, now_ns=now_ns)
        commands: list[Command] = []
        if result.accepted and offer.exchange not in self._exchanges:
            self._exchanges.add(offer.exchange)
            commands.append(RememberExchange(offer.exchange))
        for job_id, _ in result.lost:
            commands += self._lost(job_id, "its ingestor offered the slot anew without WorkComplete", now_ns=now_ns)
        if result.resend is not None:
            commands += self._sent_again(result.resend)
        return commands

    def _sent_again(self, lease: Lease) -> list[Command]:
        """The DataRequest of an attempt never arrived."""
        live = self._realtime.jobs.get(lease.job_id)
        if live is not None and live.assignment is not None:
            return [self._realtime.data_request(live, live.assignment, lease, lease_ms=self._lease_ms)]
        job = self._book.jobs.get(lease.job_id)
        if job is None or job.assignment is None:
            return []
        return [self._data_request(job, job.assignment, lease)]

    def _heard(self, message: work_pb2.WorkHeartbeat, route: Route, *, now_ns: int) -> list[Command]:
        if self._realtime.owns(message.job_id):
            return self._realtime.heard(message, route, now_ns=now_ns)
        job = self._book.jobs.get(message.job_id)
        if job is not None and self._broker.heard(message.job_id, message.attempt, route, now_ns=now_ns):
            return self._book.progressed(
                job, rows=message.progress_rows, covered=from_wire(message.covered), now_ns=now_ns
            )
        lease = self._broker.lease_of(job.job_id, job.attempt) if job is not None else None
        if lease is not None and lease.route == route:
            # CANCEL names the job only: it would stop the newer attempt on the same ingestor too.
            return []
        return [SendWork(route, _cancel(message.job_id))]

    def _completed(self, message: work_pb2.WorkComplete, *, now_ns: int) -> list[Command]:
        if self._realtime.owns(message.job_id):
            return self._realtime.completed(message, now_ns=now_ns)
        lease = self._broker.complete(message.job_id, message.attempt, now_ns=now_ns)
        job = self._book.jobs.get(message.job_id)
        if lease is None or job is None:
            return []
        if message.success:
            return self._book.delivered(job, rows=message.rows, now_ns=now_ns)
        code = message.error_code or ErrorCode.INTERNAL
        if can_pass(code):
            return self._book.try_again(job, code=code, text=message.error_message, now_ns=now_ns, is_reported=True)
        return self._book.failed_for_good(job, code=code, text=message.error_message, now_ns=now_ns)

    def _rejected(self, message: work_pb2.WorkReject, *, now_ns: int) -> list[Command]:
        lease = self._broker.reject(message.job_id, message.attempt, now_ns=now_ns)
        live, job = self._realtime.jobs.get(message.job_id), self._book.jobs.get(message.job_id)
        found = live or job
        if lease is None or found is None:
            return []
        self._park(message, lease, found.exchange, now_ns=now_ns)
        code = _Reject.Reason.Name(message.reason) if message.reason in _Reject.Reason.values() else ""
        if live is not None:
            is_failure = message.reason != _Reject.SHUTTING_DOWN
            return self._realtime.rejected(live.job_id, code=code, is_failure=is_failure, now_ns=now_ns)
        if job is None:
            return []
        progress = self._book.progressed(job, rows=0, covered=from_wire(message.covered), now_ns=now_ns)
        return progress + self._book.given_back(
            self._book.jobs[job.job_id],
            code=code,
            is_counted=message.reason == _Reject.UNSUPPORTED_EXCHANGE,
            is_ban=message.reason == _Reject.RATE_LIMITED,
            now_ns=now_ns,
        )

    def _park(self, message: work_pb2.WorkReject, lease: Lease, exchange: str, *, now_ns: int) -> None:
        """Use no slot that would reject the same again."""
        ingestor_id, _ = lease.slot_key
        until_ns = now_ns + message.retry_after_ms * 1_000_000
        if message.reason == _Reject.SHUTTING_DOWN:
            self._broker.drop_free(ingestor_id)
            return
        is_ban = message.reason == _Reject.RATE_LIMITED
        if not is_ban:
            until_ns = max(until_ns, now_ns + _REFUSED_SLOT_NS)
        self._broker.park(lease.slot_key, exchange, until_ns=until_ns, now_ns=now_ns, is_ban=is_ban)

    def _lost(self, job_id: str, why: str, *, now_ns: int) -> list[Command]:
        if self._realtime.owns(job_id):
            return self._realtime.lost(job_id, now_ns=now_ns)
        job = self._book.jobs.get(job_id)
        if job is None:
            return []
        return self._book.try_again(job, code=ErrorCode.LEASE_LOST, text=why, now_ns=now_ns)

    def _data_request(self, job: Job, slot: Assignment, lease: Lease) -> SendWork:
        requests = self._book.requests_of(job.job_id)
        message = work_pb2.DataRequest(
            request_id=requests[0].request_id if requests else job.job_id,
            type=_TYPES[job.kind],
            ticker=job.ticker,
            client_id=job.client_id,
            job_id=job.job_id,
            attempt=lease.attempt,
            lease_ms=self._lease_ms,
            slot_id=slot.slot_id,
            offer_sequence=slot.offer_sequence,
        )
        if job.kind is JobKind.HISTORICAL:
            _describe(job, message)
        return SendWork(lease.route, message, job.job_id, lease.attempt)

    def _ping(self, route: Route, *, now_ns: int) -> SendWork:
        return SendWork(route, work_pb2.BrokerPing(broker_epoch=self._epoch, sent_at=now_ns))


def is_sound(message: Message) -> bool:
    """Return whether a message of the work channel names what it is about."""
    if isinstance(message, work_pb2.WorkerReady):
        return (
            0 < len(message.ingestor_id) <= _NAME_BYTES_MAX
            and len(message.exchange) <= _NAME_BYTES_MAX
            and _EXCHANGE.fullmatch(message.exchange) is not None
            and message.slot_type in work_pb2.WorkerReady.SlotType.values()
        )
    return 0 < len(getattr(message, "job_id", "")) <= _NAME_BYTES_MAX


def _describe(job: Job, message: work_pb2.DataRequest) -> None:
    """Say what is to be fetched. With a limit only the covered beginning can be skipped: its bars are counted."""
    params = message.historical
    params.start_time, params.end_time, params.period_seconds = (
        job.fetch.start_ns,
        job.fetch.end_ns,
        job.period_seconds,
    )
    if job.limit is None:
        message.covered.extend(to_wire(union((*job.stored, *job.logged))))
    else:
        params.start_time = max(job.resume_ns, job.fetch.start_ns)
        params.limit = job.limit - job.bars_before


def _cancel(job_id: str) -> work_pb2.IngestorControl:
    return work_pb2.IngestorControl(action=work_pb2.IngestorControl.CANCEL, request_id=job_id)
