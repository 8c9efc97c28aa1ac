"""Records of the event log as the jobs read them, and what becomes of one that is no good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from relay.eventlog import LogRecord

__all__ = [
    "RECORD_COLUMNS",
    "TIMED_EXPRESSIONS",
    "Record",
    "in_log_order",
    "next_offsets",
    "of_topic",
    "quarantine_row",
    "records_of",
    "stretches",
]

RECORD_COLUMNS = ("topic", "partition", "offset", "key", "value")
TIMED_EXPRESSIONS = (*RECORD_COLUMNS, "unix_millis(timestamp) AS time_ms")
"""What the source is asked for where it matters when a record was appended, too."""
_STRETCH_RECORDS = 20_000
_BYTES_MAX = 64 * 1024
_DETAIL_CHARACTERS_MAX = 2000


class Record(NamedTuple):
    """One record: its place in the log and what it holds."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def records_of(table: pa.Table) -> Iterator[Record]:
    """Return the records of a table with the columns :data:`RECORD_COLUMNS`."""
    columns = [table[name].to_pylist() for name in RECORD_COLUMNS]
    return map(Record._make, zip(*columns, strict=True))


def of_topic(table: pa.Table, topic: str) -> pa.Table:
    """Return the records of one topic."""
    return table.filter(pc.equal(table["topic"], topic))


def in_log_order(table: pa.Table) -> pa.Table:
    """Return records by partition and offset; where ``time_ms`` is known, partitions are merged by it.

    The records of a ticker lie in two partitions when the topic has grown between them (0003).
    """
    table = table.sort_by([("partition", "ascending"), ("offset", "ascending")])
    if "time_ms" not in table.column_names:
        return table
    partitions, times = table["partition"].to_numpy(), table["time_ms"].to_numpy()
    # A clock that was set back changes no partition's order.
    bounds = np.flatnonzero(np.diff(partitions)) + 1
    reached = [np.maximum.accumulate(part) for part in np.split(times, bounds)]
    return table if len(reached) == 1 else table.take(np.argsort(np.concatenate(reached), kind="stable"))


def stretches(found: Iterator[LogRecord]) -> Iterator[pa.Table]:
    """Yield records of the log, some thousands at a time, with the columns of :data:`TIMED_EXPRESSIONS`."""
    while part := list(islice(found, _STRETCH_RECORDS)):
        yield pa.table(
            {
                "topic": pa.array([one.position.topic for one in part], pa.string()),
                "partition": pa.array([one.position.partition for one in part], pa.int32()),
                "offset": pa.array([one.position.offset for one in part], pa.int64()),
                "key": pa.array([one.key for one in part], pa.binary()),
                "value": pa.array([one.value for one in part], pa.binary()),
                "time_ms": pa.array([one.timestamp_ns // 1_000_000 for one in part], pa.int64()),
            }
        )


def next_offsets(table: pa.Table) -> Mapping[int, int]:
    """Return by partition the offset after the last record of a table of one topic."""
    last = table.group_by("partition").aggregate([("offset", "max")])
    ends = (offset + 1 for offset in last["offset_max"].to_pylist())
    return dict(zip(last["partition"].to_pylist(), ends, strict=True))


def quarantine_row(record: Record, reason: str, error: Exception, *, seen_at_us: int) -> dict[str, Any]:
    """Return the row of ``market.quarantine`` that keeps a record that is no good.

    Args:
        record: what was read; of its value the first 64 KiB are kept.
        reason: a RejectReason.
        error: what is wrong with it.
        seen_at_us: present time, microseconds since the epoch.
    """
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "reason": reason,
        "detail": str(error)[:_DETAIL_CHARACTERS_MAX],
        "key": record.key,
        "value": (record.value or b"")[:_BYTES_MAX],
        "size_bytes": len(record.value or b""),
        "seen_at": seen_at_us,
    }
