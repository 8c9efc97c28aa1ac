"""Records of the event log as the jobs read them, and what becomes of one that is no good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["RECORD_COLUMNS", "Record", "next_offsets", "of_topic", "quarantine_row", "records_of"]

RECORD_COLUMNS = ("topic", "partition", "offset", "key", "value")
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
