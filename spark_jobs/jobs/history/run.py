"""Composition root of the history job: opens everything, keeps the query running, ends cleanly on SIGTERM."""

from __future__ import annotations

import signal
import threading
import time

import structlog
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession

from relay.errors import RetryableError
from relay.eventlog.kafka import KafkaEventLog
from relay.observability import Counters, StatusServer
from relay.tables.writer import open_writable_tables
from relay.transport import new_context
from spark_jobs.jobs.checkpoints import lock_checkpoints
from spark_jobs.jobs.hints import HintSender
from spark_jobs.jobs.history.job import HistoryJob
from spark_jobs.jobs.session import open_session
from spark_jobs.jobs.settings import JobSettings

__all__ = ["run_history"]

_LOG = structlog.get_logger()
_RETRY_S = (0.2, 1.0, 2.0, 5.0)
_FAILURES_MAX = 20


def run_history(settings: JobSettings, *, stopping: threading.Event) -> int:
    """Run until ``stopping`` is set; returns the exit code.

    A query that fails (table store or log away) is started again at the tables' offsets, with back-off; after
    20 failures without a batch between them the process gives up with exit code 1.

    Raises:
        SettingsError: another history job uses the same checkpoint folder.
    """
    counters = Counters()
    state: dict[str, object] = {"ready": False, "job": "history"}
    status = StatusServer(
        address=settings.status_address, port=settings.status_port, counters=counters, status=lambda: state
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    lock = lock_checkpoints(settings.checkpoint_folder, job="history")
    started = time.monotonic()
    session = open_session(settings, name="market-relay-history")
    _LOG.info("session_opened", seconds=round(time.monotonic() - started, 2), master=session.sparkContext.master)
    log = KafkaEventLog(settings.log_bootstrap_servers, client_id="history-job")
    context = new_context()
    hints = HintSender(context, settings.manager_notification_endpoint, counters)
    try:
        return _keep_running(settings, session, log, hints, counters, state, stopping)
    finally:
        state["ready"] = False
        hints.close()
        context.term()
        log.close()
        session.stop()
        status.close()
        lock.close()


def _keep_running(
    settings: JobSettings,
    session: SparkSession,
    log: KafkaEventLog,
    hints: HintSender,
    counters: Counters,
    state: dict[str, object],
    stopping: threading.Event,
) -> int:
    failures, batches_seen = 0, 0
    while not stopping.is_set():
        try:
            tables = open_writable_tables(settings.tables())
            job = HistoryJob(settings, session=session, log=log, tables=tables, hints=hints, counters=counters)
            query = job.start()
            state["ready"] = True
            _LOG.info("query_started")
            while not stopping.is_set() and query.isActive:
                stopping.wait(0.2)
            if stopping.is_set():
                query.stop()
                return 0
            failure: Exception | None = query.exception()
        except (RetryableError, PySparkException) as error:
            failure = error
        state["ready"] = False
        batches = counters.get("history.batches.committed")
        failures = 1 if batches > batches_seen else failures + 1
        batches_seen = batches
        counters.add("history.query.failures")
        _LOG.error("query_failed", failures=failures, error=str(failure)[:2000])
        if failures >= _FAILURES_MAX:
            return 1
        stopping.wait(_RETRY_S[min(failures, len(_RETRY_S)) - 1])
    return 0
