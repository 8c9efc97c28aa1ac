"""The streaming query: Kafka → micro-batches → tables → hints to the manager."""

from __future__ import annotations

import logging
import threading
import time

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from relay.errors import RetryableError
from relay.eventlog import HISTORY_TOPIC, SYMBOL_TOPIC, EventLog
from relay.observability import Counters
from relay.protocol.topics import METADATA_UPDATE, outcome_topic
from relay.protocol.v1 import market_pb2, request_pb2
from relay.tables.schema import NAMESPACE, OHLC_TABLE, SYMBOL_TABLE
from relay.tables.writer import IcebergTables
from spark_jobs.jobs.hints import HintSender
from spark_jobs.jobs.history.batch import MicroBatch
from spark_jobs.jobs.history.committer import Committed, HistoryCommitter
from spark_jobs.jobs.history.contradictions import ContradictionLog
from spark_jobs.jobs.history.held_bars import HeldBars
from spark_jobs.jobs.history.writers import BarsWriter, DriverBarsWriter, SparkBarsWriter
from spark_jobs.jobs.settings import JobSettings
from spark_jobs.jobs.source import clamped_starts, ensure_topics, log_stream, start_query

__all__ = ["HistoryJob"]

_LOG = logging.getLogger(__name__)
_CLOCK_S = 0.5


class HistoryJob:
    """Runs the query; one instance in the driver.

    It begins at the offsets that the tables have stored and keeps a checkpoint for this run only, so that no
    file that a crash has left half-written, and no checkpoint of another log, can stop or mislead a start.
    """

    def __init__(
        self,
        settings: JobSettings,
        *,
        session: SparkSession,
        log: EventLog,
        tables: IcebergTables,
        hints: HintSender,
        counters: Counters,
    ) -> None:
        self._settings, self._session, self._log = settings, session, log
        self._tables, self._hints, self._counters = tables, hints, counters
        prefix = settings.topic_prefix
        ensure_topics(log, settings)
        topics = (prefix + HISTORY_TOPIC, prefix + SYMBOL_TOPIC)
        self._committer = HistoryCommitter(tables, {t: log.identity(t) for t in topics}, counters)
        said = ContradictionLog(counters)
        self._small: BarsWriter = DriverBarsWriter(tables, said)
        self._big: BarsWriter = SparkBarsWriter(settings.catalog_name, said)
        self._expected: dict[str, dict[int, int]] = {}
        self._held = HeldBars(wait_s=settings.tick_bars_wait_seconds, rows_max=settings.tick_bars_rows_max)
        self._lock, self._is_whole = threading.Lock(), True
        self._closing = threading.Event()
        self._clock: threading.Thread | None = None
        self.query: StreamingQuery | None = None

    def start(self) -> StreamingQuery:
        """Start the query at the tables' stored offsets."""
        starts = clamped_starts(self._log, self._committer.start_offsets(), counters=self._counters, job="history")
        self._expected = {topic: dict(offsets) for topic, offsets in starts.items()}
        source = log_stream(self._session, self._settings, starts, records_max=self._settings.records_per_batch_max)
        self.query = start_query(source, self._process, self._settings, job="history", trigger_ms=0)
        if self._settings.tick_bars_wait_seconds:
            self._clock = threading.Thread(target=self._watch_clock, name="history-clock", daemon=True)
            self._clock.start()
        return self.query

    def close(self) -> None:
        """Commit what waits, unless a batch is under way or was broken off."""
        self._closing.set()
        if self._clock is not None:
            self._clock.join(timeout=10.0)
        if self._lock.acquire(blocking=False):
            try:
                if self._is_whole:
                    self._commit_held()
            finally:
                self._lock.release()

    def _process(self, frame: DataFrame, batch_id: int) -> None:
        started = time.monotonic_ns()
        in_driver = self._is_small(frame)
        batch = MicroBatch(frame, batch_id=batch_id, in_driver=in_driver)
        with self._lock:
            if not self._is_whole or self._closing.is_set():
                raise RetryableError(
                    "what came before was not committed; the log is read again from the tables' offsets"
                )
            # Whatever is raised from here on, what was held is not behind it: nothing may be committed any more.
            self._is_whole = False
            if in_driver and self._held.offer(batch, now=time.monotonic()):
                self._counters.add("history.batches.held")
            elif in_driver:
                held = self._held.take()
                self._commit(batch if held is None else batch.after(held))
            else:
                self._commit_held()
                self._commit(batch)
            self._count_holes(batch)
            self._is_whole = True
            self._counters.set("history.tick_bars.waiting", len(self._held))
        self._counters.add("history.batches.in_driver" if in_driver else "history.batches.in_executors")
        self._counters.set("history.batch.last_ms", (time.monotonic_ns() - started) // 1_000_000)

    def _is_small(self, frame: DataFrame) -> bool:
        """Return whether a batch is decoded and committed here; else the executors do it, for seconds at the least.

        A fetched page is a record of up to a thousand bars, a bar made from ticks one of a hundred bytes: the number
        of records alone says too little, so of many the bytes are asked for.
        """
        records_max = self._settings.driver_records_max
        if records_max == 0 or self._pending() <= records_max:
            return records_max > 0
        # Added up here: a sum by Spark is a shuffle, and many times as dear.
        sizes = frame.select(f.length("value").alias("bytes")).toArrow()["bytes"]
        return (pc.sum(sizes).as_py() or 0) <= self._settings.driver_batch_mebibytes * 2**20

    def _commit(self, batch: MicroBatch) -> None:
        self._send_hints(self._committer.commit(batch, self._small if batch.in_driver else self._big))

    def _commit_held(self) -> None:
        held = self._held.take()
        if held is not None:
            self._commit(held)

    def _watch_clock(self) -> None:
        """No record may come for long that would take along what waits."""
        while not self._closing.wait(_CLOCK_S):
            with self._lock:
                if not self._is_whole:
                    return
                if not self._held.is_due(now=time.monotonic()):
                    continue
                self._is_whole = False
                try:
                    self._commit_held()
                    self._is_whole = True
                    self._counters.set("history.tick_bars.waiting", 0)
                except Exception:  # noqa: BLE001 - whatever it was, what waited is in no table
                    _LOG.exception("held_bars_not_committed")
            if not self._is_whole and self.query is not None:
                self.query.stop()

    def _pending(self) -> int:
        """Records that the log holds after what was processed: an upper bound of this batch, for a few milliseconds."""
        return sum(
            max(0, end - self._expected.get(topic, {}).get(partition, 0))
            for topic in self._committer.topics
            for partition, end in enumerate(self._log.end_offsets(topic))
        )

    def _count_holes(self, batch: MicroBatch) -> None:
        """Note where the batch ended; offsets that were skipped mean records that the log no longer had."""
        for topic in self._committer.topics:
            expected = self._expected.setdefault(topic, {})
            for partition, first in batch.first_offsets(topic).items():
                if first > expected.get(partition, first):
                    self._counters.add("history.records.skipped_by_the_log", first - expected[partition])
                    _LOG.error(
                        "log_records_skipped topic=%s partition=%d from=%d to=%d",
                        *(topic, partition, expected[partition], first),
                    )
            expected.update(batch.end_offsets(topic))

    def _send_hints(self, committed: Committed) -> None:
        for job_id, attempt in sorted(committed.jobs):
            hint = request_pb2.HistoryReadyNotification(
                job_id=job_id, attempt=attempt, namespace=NAMESPACE, table=OHLC_TABLE
            )
            self._hints.send(outcome_topic(job_id).encode(), hint)
        if committed.symbol_snapshot_id:
            update = market_pb2.SymbolMetadataUpdated(
                namespace=NAMESPACE,
                table=SYMBOL_TABLE,
                snapshot_id=committed.symbol_snapshot_id,
                exchanges=sorted(committed.exchanges),
                changed=committed.markets_changed,
                updated_at=time.time_ns(),
            )
            self._hints.send(METADATA_UPDATE, update)
