"""Brings the records of a query's micro-batches into the driver: by Spark's tasks, or straight from the log.

::

    Spark: which offsets a micro-batch has ─► its checkpoint, then foreachBatch
                                                 │
          local and not too big ──► a follower of the log reads just those ──┐
          else, or where that fails ──► Spark's tasks ───────────────────────┴─► Arrow

A task costs each record about 25 us of the JVM, and a micro-batch its scheduling; the follower has read ahead.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from relay.errors import RelayError
from relay.eventlog import EventLog, LogColumns, LogFollower
from relay.observability import Counters
from spark_jobs.jobs.session import projections

__all__ = ["RecordReader"]

_LOG = logging.getLogger(__name__)
_FOLLOWED_RECORDS_MAX = 50_000
"""Bigger micro-batches are a query's that is behind: Spark's tasks share them out."""
_BIG_BATCH = 6_000
"""Records of a micro-batch that is big. Estimated from a profile, not tuned: compiling for six partitions took about
36 ms of a processor, and each record is about 6 us dearer without."""
_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("time_ms", pa.int64()),
    ]
)

_Offsets = dict[str, dict[int, int]]


class RecordReader:
    """Reads one query's micro-batches into the driver.

    For Spark's tasks projections are compiled behind a big micro-batch: a query that is late has big ones in a row.

    Args:
        columns: expressions over the source's columns; one with ``AS time_ms`` is when the record was appended.
        log: to follow; None reads by tasks alone.
        counters: of the process.
        job: prefix of the counters.
    """

    def __init__(self, columns: Iterable[str], *, log: EventLog | None, counters: Counters, job: str) -> None:
        self._columns, self._log, self._counters, self._job = tuple(columns), log, counters, job
        self._names = [column.rpartition(" AS ")[2] for column in self._columns]
        self._is_big = False
        self._checkpoint: Path | None = None
        self._reached: _Offsets = {}
        self._follower: LogFollower | None = None
        self._lock = threading.RLock()

    def start_at(self, starts: Mapping[str, Mapping[int, int]]) -> None:
        """Note where the first micro-batch begins: first offset by topic and partition."""
        self._reached = {topic: dict(offsets) for topic, offsets in starts.items()}

    def begin(self, checkpoint: str) -> None:
        """Note where Spark writes which offsets a micro-batch has; a folder of this machine, or it is not followed."""
        self._checkpoint = None if "://" in checkpoint else Path(checkpoint)

    def read(self, frame: DataFrame, batch_id: int) -> pa.Table:
        """Return the records of a micro-batch."""
        ends = self._ends(batch_id)
        with self._lock:
            records = self._followed(ends) if ends is not None else None
        if records is None:
            self._let_go()
            records = self._by_tasks(frame)
        # Of a micro-batch whose end is not known, nobody knows where the next one begins.
        self._reached = ends or {}
        return records

    def close(self) -> None:
        """Let go of the log for good: a query that was stopped may be reading still, and follows it no more."""
        with self._lock:
            self._log = None
            self._let_go()

    def _let_go(self) -> None:
        with self._lock:
            follower, self._follower = self._follower, None
            if follower is not None:
                follower.close()

    def _followed(self, ends: _Offsets) -> pa.Table | None:
        """Return what lies between what was read and the ends; None where Spark's tasks have to say what that is."""
        counts = [end - self._reached.get(topic, {}).get(p, -1) for topic, o in ends.items() for p, end in o.items()]
        if self._log is None or min(counts, default=0) < 0 or sum(counts) > _FOLLOWED_RECORDS_MAX:
            return None
        if ends.keys() != self._reached.keys() or any(ends[t].keys() != self._reached[t].keys() for t in ends):
            return None
        try:
            if self._follower is None:
                self._follower = self._log.follow(self._reached)
            return self._table(self._follower.take(ends))
        except RelayError as error:
            self._counters.add(f"{self._job}.follower.failures")
            _LOG.warning("log_not_followed job=%s error=%s", self._job, error)
            return None

    def _table(self, found: LogColumns) -> pa.Table:
        columns = [found.topics, found.partitions, found.offsets, found.keys, found.values, found.times_ms]
        self._counters.add(f"{self._job}.records.followed", len(found))
        return pa.table(list(map(pa.array, columns, _SCHEMA.types)), schema=_SCHEMA).select(self._names)

    def _by_tasks(self, frame: DataFrame) -> pa.Table:
        wanted = frame.selectExpr(*self._columns)
        if self._is_big:
            with projections(frame.sparkSession, are_compiled=True):
                records = wanted.toArrow()
        else:
            records = wanted.toArrow()
        self._is_big = len(records) >= _BIG_BATCH
        return records

    def _ends(self, batch_id: int) -> _Offsets | None:
        """Return the offsets after a micro-batch: Spark notes them before it hands the micro-batch out."""
        if self._checkpoint is None or self._log is None:
            return None
        try:
            lines = (self._checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
            told = json.loads(lines[2])
            return {topic: {int(p): int(offset) for p, offset in offsets.items()} for topic, offsets in told.items()}
        except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
            self._counters.add(f"{self._job}.follower.failures")
            _LOG.warning("offsets_not_read job=%s batch=%d error=%r", self._job, batch_id, error)
            return None
