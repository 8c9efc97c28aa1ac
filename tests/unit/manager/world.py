"""The engines together with a table twin and a store twin: messages in, commands looked at."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from google.protobuf.message import Message

from relay.protocol.ranges import Range
from relay.protocol.v1 import request_pb2, work_pb2
from relay.tables.port import CoverageRow
from spark_jobs.manager.engine.broker import Broker, BrokerLimits
from spark_jobs.manager.engine.commands import Answer, Command, EndJob, Publish, SendWork
from spark_jobs.manager.engine.evidence import LogEnds
from spark_jobs.manager.engine.jobs import JobBook, JobRules
from spark_jobs.manager.engine.model import Job, Request
from spark_jobs.manager.engine.realtime import RealtimeBook, RealtimeRules
from spark_jobs.manager.engine.work import WorkEngine
from spark_jobs.manager.lookups import look_at_jobs
from spark_jobs.manager.store_memory import MemoryJobStore
from tests.support.tables import MemoryTables, coverage_row

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
START = 1_700_000_040 * SECOND
NOW = START + 10_000 * MINUTE
BTC = "BTC/USDT.BINANCE"
ROUTE = (b"ingestor",)
Notification = request_pb2.HistoryReadyNotification


def minutes(first: int, last: int) -> Range:
    """The range of whole minutes after START."""
    return Range(START + first * MINUTE, START + last * MINUTE)


def request(first: int = 0, last: int = 10, *, limit: int | None = None, **fields: object) -> Request:
    """A request for one-minute bars."""
    asked = minutes(first, last)
    values: dict[str, object] = {
        "request_id": str(uuid.uuid4()),
        "job_id": str(uuid.uuid4()),
        "client_id": str(uuid.uuid4()),
        "ticker": BTC,
        "start_ns": asked.start_ns,
        "end_ns": asked.end_ns,
        "submitted_ns": NOW,
        **fields,
    }
    return Request(period_seconds=60, limit=limit, **values)  # type: ignore[arg-type]


@dataclass
class World:
    """One manager's engines; ``now_ns`` is moved by the test."""

    now_ns: int = NOW
    tables: MemoryTables = field(default_factory=MemoryTables)
    store: MemoryJobStore = field(default_factory=MemoryJobStore)
    exchanges: set[str] = field(default_factory=lambda: {"BINANCE"})
    sent: list[SendWork] = field(default_factory=list)
    published: dict[str, Notification] = field(default_factory=dict)
    ended: list[Job] = field(default_factory=list)
    sequence: int = 0
    log_ends: LogEnds | None = None

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin a new broker epoch from the store, as after a crash."""
        self.broker = Broker(BrokerLimits())
        self.book = JobBook(self.broker, JobRules())
        state = self.store.load()
        self.book.restore(state.jobs, state.requests, now_ns=self.now_ns)
        self.realtime = RealtimeBook(
            self.broker, RealtimeRules(), exchanges=self.exchanges, new_id=lambda: str(uuid.uuid4())
        )
        self.realtime.restore(state.realtime, now_ns=self.now_ns)
        self.work = WorkEngine(
            self.broker, self.book, self.realtime, epoch=5, lease_ms=15_000, exchanges=self.exchanges
        )

    def run(self, commands: Sequence[Command]) -> None:
        """Store and note what was sent."""
        self.store.commit([c for c in commands if not isinstance(c, Answer | SendWork | Publish)])
        for command in commands:
            if isinstance(command, SendWork):
                self.sent.append(command)
            elif isinstance(command, EndJob):
                self.ended.append(command.job)
            elif isinstance(command, Publish):
                notification = Notification.FromString(command.outcome.notification)
                assert command.outcome.request_id not in self.published
                self.published[command.outcome.request_id] = notification

    def submit(self, asked: Request) -> Request:
        """Submit and look at the tables, as intake and loop do."""
        self.run(self.book.submit(asked, now_ns=self.now_ns))
        self.look()
        return asked

    def look(self) -> None:
        """Look at the tables for all marked jobs until none is marked."""
        while jobs := self.book.take_marked(now_ns=self.now_ns):
            for evidence in look_at_jobs(self.tables, jobs, log_ends=[self.log_ends] if self.log_ends else []):
                self.run(self.book.weigh(evidence, now_ns=self.now_ns))

    def reconcile(self) -> None:
        """Look at the tables for all jobs."""
        self.book.mark_all()
        self.look()

    def tell(self, message: Message, route: tuple[bytes, ...] = ROUTE) -> None:
        """An ingestor speaks."""
        self.run(self.work.handle(message, route, now_ns=self.now_ns))

    def offer(self, exchange: str = "BINANCE", **fields: object) -> None:
        """A slot is offered (always slot 0 under the next sequence)."""
        self.sequence += 1
        values: dict[str, object] = {
            "slot_type": work_pb2.WorkerReady.HISTORICAL,
            "ingestor_id": "one",
            "ingestor_epoch": 1,
            "slot_id": 0,
            "offer_sequence": self.sequence,
            **fields,
        }
        self.tell(work_pb2.WorkerReady(exchange=exchange, **values))  # type: ignore[arg-type]

    def dispatch(self) -> work_pb2.DataRequest:
        """Offer a slot and return the DataRequest that goes to it."""
        self.offer()
        before = len(self.sent)
        self.run(self.work.assign(self.now_ns))
        [data_request] = [c.message for c in self.sent[before:] if isinstance(c.message, work_pb2.DataRequest)]
        return data_request

    def complete(self, data: work_pb2.DataRequest, code: str = "", text: str = "") -> None:
        """The attempt ends, successfully when no code is given."""
        self.tell(
            work_pb2.WorkComplete(
                job_id=data.job_id, attempt=data.attempt, success=not code, error_code=code, error_message=text
            )
        )

    def show(self, data: work_pb2.DataRequest, *covered: Range, **fields: object) -> CoverageRow:
        """The attempt's closing row becomes visible, and the hint arrives."""
        row = coverage_row(data.job_id, *covered, attempt=data.attempt, **fields)
        self.tables.commit(row)
        self.book.mark(data.job_id)
        self.look()
        return row

    def advance(self, seconds: int) -> None:
        """Time passes: leases and deadlines are checked."""
        self.now_ns += seconds * SECOND
        self.run(self.work.expire(self.now_ns))
        self.run(self.book.check_deadlines(self.now_ns))
        self.look()

    def cancelled(self) -> list[str]:
        """Return the jobs that got CANCEL."""
        return [c.message.request_id for c in self.sent if isinstance(c.message, work_pb2.IngestorControl)]
