"""Composition root of the streaming jobs: one session, one query a job, each kept running, a clean end on SIGTERM."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Protocol

import structlog
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from relay.errors import RelayError, RetryableError
from relay.eventlog.kafka import KafkaEventLog
from relay.observability import Counters, StatusServer, new_counters
from relay.tables.reader import open_tables
from relay.tables.writer import IcebergTables, open_writable_tables
from relay.transport import new_context
from spark_jobs.jobs.bars.job import BarsJob
from spark_jobs.jobs.checkpoints import lock_checkpoints
from spark_jobs.jobs.hints import HintSender
from spark_jobs.jobs.history.job import HistoryJob
from spark_jobs.jobs.maintenance.service import MAINTENANCE, MaintenanceThread
from spark_jobs.jobs.progress import QueryProgress, progress_of
from spark_jobs.jobs.session import open_session
from spark_jobs.jobs.settings import JobSettings
from spark_jobs.jobs.ticks.job import TickArchiveJob
from spark_jobs.jobs.triggers.job import TriggersJob

__all__ = ["STREAMING_JOBS", "run_jobs"]

STREAMING_JOBS = ("history", "ticks", "bars", "triggers")
_LOG = structlog.get_logger()
_RETRY_S = (0.2, 1.0, 2.0, 5.0)
_FAILURES_MAX = 20
_TURN_S = 0.2
_PROGRESS_S = 1.0


class StreamingJob(Protocol):
    """A job that is started anew after each failure."""

    def start(self) -> StreamingQuery:
        """Start the query at the tables' offsets."""

    def close(self) -> None:
        """Let go of what it holds; its query has ended."""


class _Keeper:
    """Keeps one query running: a failed one is started again at the tables' offsets, with back-off.

    Attributes:
        is_running: whether the query was active at the last turn; asking is a call into the JVM.
    """

    def __init__(self, name: str, make: Callable[[], StreamingJob], counters: Counters) -> None:
        self.name, self._make, self._counters = name, make, counters
        self._job: StreamingJob | None = None
        self._query: StreamingQuery | None = None
        self._failures = 0
        self._not_before = 0.0
        self._looked_at = 0.0
        self._progress: QueryProgress | None = None
        self.is_running = False

    @property
    def has_given_up(self) -> bool:
        """Whether it has failed too often without a batch in between."""
        return self._failures >= _FAILURES_MAX

    def describe(self) -> dict[str, object]:
        """Return whether it runs, how often it failed, and the last micro-batch, for ``/status``."""
        told = {} if self._progress is None else self._progress.described()
        return {"running": self.is_running, "failures": self._failures, **told}

    def turn(self) -> None:
        """Note a failure, and start again when it is time."""
        self._look()
        self.is_running = self._query is not None and self._query.isActive
        if self.is_running or self.has_given_up:
            return
        if self._query is not None:
            failed, self._query = self._query, None
            self._close()
            self._failed(failed.exception(), failed.lastProgress)
        if time.monotonic() < self._not_before or self.has_given_up:
            return
        try:
            self._job = self._make()
            self._query = self._job.start()
            self.is_running = True
            _LOG.info("query_started", job=self.name)
        except (RetryableError, PySparkException) as error:
            self._close()
            self._failed(error, None)

    def stop(self) -> None:
        """Stop the query."""
        if self._query is not None:
            self._query.stop()
        self._close()

    def _look(self) -> None:
        """Note how far the query is; each look is a call into the JVM."""
        now = time.monotonic()
        if self._query is None or now - self._looked_at < _PROGRESS_S:
            return
        self._looked_at = now
        told = self._query.lastProgress
        if told is None:
            return
        progress = progress_of(json.loads(told.json))
        if progress != self._progress:
            self._progress = progress
            progress.count(self._counters, job=self.name)

    def _close(self) -> None:
        job, self._job = self._job, None
        if job is not None:
            try:
                job.close()
            except RelayError as error:
                _LOG.error("job_not_closed", job=self.name, error=str(error))

    def _failed(self, error: object, progress: object) -> None:
        self._failures = 1 if progress else self._failures + 1
        self._not_before = time.monotonic() + _RETRY_S[min(self._failures, len(_RETRY_S)) - 1]
        self._counters.add(f"{self.name}.query.failures")
        _LOG.error("query_failed", job=self.name, failures=self._failures, error=str(error)[:2000])


def run_jobs(settings: JobSettings, names: Sequence[str], *, stopping: threading.Event) -> int:
    """Run streaming jobs in one session until ``stopping`` is set; returns the exit code.

    After 20 failures of a job without a batch between them the process gives up with exit code 1.

    Args:
        settings: of the jobs.
        names: of :data:`STREAMING_JOBS`; with maintenance, the tables are looked after beside them.
        stopping: set by signals too.

    Raises:
        SettingsError: another process runs one of the jobs on the same checkpoint folder.
    """
    counters, shared = new_counters("jobs", shared_memory=settings.shared_memory)
    state: dict[str, object] = {"ready": False, "jobs": list(names)}
    with ExitStack() as opened:
        if shared is not None:
            opened.callback(shared.close)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        for name in names:
            opened.callback(lock_checkpoints(settings.checkpoint_folder, job=name).close)
        status = StatusServer(
            address=settings.status_address, port=settings.status_port, counters=counters, status=lambda: state
        )
        opened.callback(status.close)
        started = time.monotonic()
        session = open_session(settings, name="market-relay-" + "-".join(names))
        opened.callback(session.stop)
        _LOG.info("session_opened", seconds=round(time.monotonic() - started, 2), master=session.sparkContext.master)
        log = KafkaEventLog(settings.log_bootstrap_servers, client_id="spark-jobs")
        opened.callback(log.close)
        context = new_context()
        opened.callback(context.term)

        def hints() -> HintSender:
            # A ZeroMQ socket is for one thread, and each query has a thread of its own.
            sender = HintSender(context, settings.manager_notification_endpoint, counters)
            opened.callback(sender.close)
            return sender

        history_hints, bar_hints, trigger_hints = hints(), hints(), hints()

        def tables() -> IcebergTables:
            return open_writable_tables(settings.tables())

        makers: dict[str, Callable[[], StreamingJob]] = {
            "history": lambda: HistoryJob(
                settings, session=session, log=log, tables=tables(), hints=history_hints, counters=counters
            ),
            "ticks": lambda: TickArchiveJob(settings, session=session, log=log, tables=tables(), counters=counters),
            "bars": lambda: BarsJob(
                settings,
                session=session,
                log=log,
                open_lake=lambda: open_tables(settings.tables()),
                hints=bar_hints,
                counters=counters,
            ),
            "triggers": lambda: TriggersJob(settings, session=session, log=log, hints=trigger_hints, counters=counters),
        }
        keepers = [_Keeper(name, makers[name], counters) for name in names if name != MAINTENANCE]
        if MAINTENANCE in names:
            opened.callback(MaintenanceThread(settings, counters).close)
        opened.callback(lambda: state.update(ready=False))
        return _keep_running(keepers, state, stopping)


def _keep_running(keepers: Sequence[_Keeper], state: dict[str, object], stopping: threading.Event) -> int:
    while not stopping.is_set():
        for keeper in keepers:
            keeper.turn()
        if any(keeper.has_given_up for keeper in keepers):
            return 1
        state["ready"] = all(keeper.is_running for keeper in keepers)
        state["queries"] = {keeper.name: keeper.describe() for keeper in keepers}
        stopping.wait(_TURN_S)
    for keeper in keepers:
        keeper.stop()
    return 0
