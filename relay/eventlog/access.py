"""Whole stretches of the log: read up to an end, appended until all is acknowledged."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter

from relay.errors import RetryableError
from relay.eventlog.port import EventLog, LogRecord
from relay.protocol.codes import ErrorCode

__all__ = ["append_acknowledged", "offsets_since", "read_range"]

_READ_RECORDS = 5_000
_ACKNOWLEDGED_S = 30.0
_TOLD_S = 5.0


def read_range(log: EventLog, topic: str, *, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[LogRecord]:
    """Yield a topic's records up to the ends, by when they were appended; those of one partition in its order.

    So the records of a key that lie in two partitions, because the topic has grown, are in their order too.

    Args:
        log: the event log.
        topic: of it.
        starts: first offset by partition; the oldest record where nothing is said, or where it is gone.
        ends: by partition, offset after the last record that is wanted.

    Raises:
        RetryableError: the log is away.
    """
    oldest = log.start_offsets(topic)
    parts = [
        _timed(_read_partition(log, topic, p, start=max(starts.get(p, 0), oldest[p]), end=end))
        for p, end in ends.items()
    ]
    return (record for _, record in heapq.merge(*parts, key=itemgetter(0)))


def _read_partition(log: EventLog, topic: str, partition: int, *, start: int, end: int) -> Iterator[LogRecord]:
    while start < end:
        records = log.read(topic, partition=partition, from_offset=start, limit=_READ_RECORDS)
        for record in records:
            if record.position.offset >= end:
                return
            yield record
        if not records:
            return
        start = records[-1].position.offset + 1


def _timed(records: Iterable[LogRecord]) -> Iterator[tuple[int, LogRecord]]:
    """Yield records with their times; a clock that was set back changes no partition's order."""
    time_ns = 0
    for record in records:
        time_ns = max(time_ns, record.timestamp_ns)
        yield time_ns, record


def offsets_since(log: EventLog, topic: str, since_ns: int) -> dict[int, int]:
    """Return by partition where the first record lies that was appended at or after a time; the end without one."""
    found: dict[int, int] = {}
    for partition, end in enumerate(log.end_offsets(topic)):
        first = log.read(topic, partition=partition, from_time_ns=since_ns, limit=1)
        found[partition] = first[0].position.offset if first else end
    return found


def append_acknowledged(log: EventLog, topic: str, records: Iterable[tuple[bytes, bytes]], *, what: str) -> None:
    """Append records (key, value) and wait until the log has acknowledged all.

    Args:
        log, topic: where to.
        records: those of one key stay in order.
        what: names them in the error.

    Raises:
        RetryableError: the log does not take them all; some may be there.
    """
    waiting = list(records)
    if not waiting:
        return
    # One event for all: a future for each costs more than the record.
    left, is_over, lock = len(waiting), threading.Event(), threading.Lock()
    refused: list[BaseException] = []

    def done(error: BaseException | None) -> None:
        nonlocal left
        with lock:
            left -= 1
            if error is not None:
                refused.append(error)
        if left == 0:
            is_over.set()

    for key, value in waiting:
        log.append_then(topic, key=key, value=value, done=done)
    # The last acknowledgements may be out of the queue and not yet told.
    queued = log.flush(_ACKNOWLEDGED_S)
    if queued or not is_over.wait(_TOLD_S):
        raise RetryableError(f"the log has not acknowledged {queued or left} {what}", code=ErrorCode.UNAVAILABLE)
    if refused:
        raise refused[0]
