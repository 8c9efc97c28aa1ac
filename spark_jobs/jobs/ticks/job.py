"""The streaming query of the tick archive: Kafka → micro-batches → ``market.ticks`` and ``market.gaps``."""

from __future__ import annotations

import time

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from relay.eventlog import TICK_TOPIC, EventLog
from relay.observability import Counters
from relay.tables.offsets import SourceOffsets
from relay.tables.schema import GAPS_TABLE, QUARANTINE_TABLE, TICKS_TABLE
from relay.tables.writer import IcebergTables
from spark_jobs.jobs.record_reader import RecordReader
from spark_jobs.jobs.records import RECORD_COLUMNS
from spark_jobs.jobs.settings import JobSettings
from spark_jobs.jobs.source import clamped_starts, ensure_topics, followed_log, log_stream, start_query
from spark_jobs.jobs.ticks.decode import decode_ticks

__all__ = ["TickArchiveJob"]

JOB = "ticks"


class TickArchiveJob:
    """Runs the query; one instance in the driver. Each table is trimmed by its own stored offsets.

    Ticks come every few milliseconds, so batches are collected for some seconds: a commit makes files, and files
    are what readers pay for.
    """

    def __init__(
        self,
        settings: JobSettings,
        *,
        session: SparkSession,
        log: EventLog,
        tables: IcebergTables,
        counters: Counters,
    ) -> None:
        self._settings, self._session, self._log = settings, session, log
        self._tables, self._counters = tables, counters
        self._topic = settings.topic_prefix + TICK_TOPIC
        ensure_topics(log, settings)
        self._identity = log.identity(self._topic)
        self._reached: dict[str, SourceOffsets] = {}
        self._reader = RecordReader(RECORD_COLUMNS, log=followed_log(session, log), counters=counters, job=JOB)

    def start(self) -> StreamingQuery:
        """Start the query at the least offsets that ticks and gaps have stored."""
        names = (TICKS_TABLE, GAPS_TABLE)
        stored = {
            p: min(self._offsets(name).end_offsets.get(p, 0) for name in names)
            for p in range(self._identity.partitions)
        }
        starts = clamped_starts(self._log, {self._topic: stored}, counters=self._counters, job=JOB)
        source = log_stream(self._session, self._settings, starts, records_max=self._settings.ticks_per_batch_max)
        self._reader.start_at(starts)
        trigger_ms = self._settings.ticks_trigger_seconds * 1_000
        return start_query(source, self._process, self._settings, job=JOB, trigger_ms=trigger_ms, reader=self._reader)

    def close(self) -> None:
        """Let go of the log."""
        self._reader.close()

    def _process(self, frame: DataFrame, batch_id: int) -> None:
        started = time.monotonic_ns()
        records = self._reader.read(frame, batch_id)
        if len(records) == 0:
            return
        decoded = decode_ticks(records, seen_at_us=time.time_ns() // 1000)
        ends = _end_offsets(records)
        # Gaps first: whoever sees a tick behind a hole sees the hole too.
        self._append(GAPS_TABLE, decoded.gaps, ends, batch_id)
        self._append_ticks(decoded.ticks, ends, batch_id)
        self._append(QUARANTINE_TABLE, decoded.quarantine, ends, batch_id, names=("partition", "offset"))
        self._counters.add("ticks.records", len(records))
        self._counters.add("ticks.records.quarantined", len(decoded.quarantine))
        self._counters.set("ticks.batch.last_ms", (time.monotonic_ns() - started) // 1_000_000)

    def _append_ticks(self, rows: pa.Table, ends: dict[int, int], batch_id: int) -> None:
        known = self._offsets(TICKS_TABLE)
        fresh = known.fresh(rows)
        if len(fresh) == 0:
            return
        reached = known.advanced(ends)
        added = self._tables.append_ticks(fresh, reached=reached, batch_id=batch_id, known=known)
        self._reached[TICKS_TABLE] = reached
        self._counters.add("ticks.rows", added)
        self._counters.add("ticks.repeats_dropped", len(rows) - added)

    def _append(
        self,
        name: str,
        rows: pa.Table,
        ends: dict[int, int],
        batch_id: int,
        *,
        names: tuple[str, str] = ("log_partition", "log_offset"),
    ) -> None:
        known = self._offsets(name)
        fresh = known.fresh(rows, partition=names[0], offset=names[1])
        if len(fresh) == 0:
            return
        reached = known.advanced(ends)
        self._tables.append(name, fresh, reached=reached, batch_id=batch_id, known=known)
        self._reached[name] = reached

    def _offsets(self, name: str) -> SourceOffsets:
        if name not in self._reached:
            identity = self._identity
            self._reached[name] = self._tables.offsets(
                name, job=JOB, cluster_id=identity.cluster_id, topic_id=identity.topic_id
            )
        return self._reached[name]


def _end_offsets(records: pa.Table) -> dict[int, int]:
    ends = records.group_by("partition").aggregate([("offset", "max")])
    return {p: o + 1 for p, o in zip(ends["partition"].to_pylist(), ends["offset_max"].to_pylist(), strict=True)}
