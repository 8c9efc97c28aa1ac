"""In-memory twin of the event log, for tests of its users and for the conformance suite."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

from relay.errors import RetryableError, SettingsError, StorageError
from relay.eventlog.port import (
    RECORD_BYTES_MAX,
    LogColumns,
    LogIdentity,
    LogPosition,
    LogRecord,
    TopicSpec,
    partition_of,
)
from relay.protocol.codes import ErrorCode

__all__ = ["MemoryEventLog"]


class MemoryEventLog:
    """An :class:`~relay.eventlog.port.EventLog` in this process's memory; thread-safe, not durable.

    Args:
        clock: when a record is appended, ns since the epoch.
    """

    def __init__(self, *, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._cluster_id = str(uuid.uuid4())
        self._topics: dict[str, list[list[LogRecord]]] = {}
        self._topic_ids: dict[str, str] = {}

    def ensure_topics(self, topics: Sequence[TopicSpec]) -> None:
        """See the port."""
        with self._lock:
            for spec in topics:
                existing = self._topics.get(spec.name)
                if existing is None:
                    self._topics[spec.name] = [[] for _ in range(spec.partitions)]
                    self._topic_ids[spec.name] = str(uuid.uuid4())
                elif len(existing) < spec.partitions:
                    raise SettingsError(
                        f"topic {spec.name} has {len(existing)} partitions, settings say {spec.partitions}; "
                        f"set topic_partitions to {len(existing)}, or grow the topic to {spec.partitions}"
                    )

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions, as its operator may; keys move."""
        with self._lock:
            self._topics[topic] += [[] for _ in range(partitions - len(self._topics[topic]))]

    def prepare(self, topic: str) -> None:
        """See the port."""
        with self._lock:
            if topic not in self._topics:
                raise RetryableError(f"topic {topic} does not exist (yet)", code=ErrorCode.STORAGE)

    def append(self, topic: str, *, key: bytes, value: bytes) -> Future[LogPosition]:
        """See the port."""
        if len(key) + len(value) > RECORD_BYTES_MAX:
            raise StorageError(f"the event log cannot take a record of {len(value)} bytes, over {RECORD_BYTES_MAX}")
        with self._lock:
            partitions = self._partitions(topic)
            partition = partition_of(key, len(partitions))
            records = partitions[partition]
            position = LogPosition(topic, partition, len(records))
            records.append(LogRecord(position, self._clock(), key, value))
        acknowledged: Future[LogPosition] = Future()
        acknowledged.set_result(position)
        return acknowledged

    def append_then(
        self, topic: str, *, key: bytes, value: bytes, done: Callable[[BaseException | None], None]
    ) -> None:
        """See the port."""
        self.append(topic, key=key, value=value).add_done_callback(lambda future: done(future.exception()))

    def flush(self, timeout_s: float) -> int:
        """See the port."""
        del timeout_s
        return 0

    def read(
        self,
        topic: str,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        from_offset: int | None = None,
        from_time_ns: int | None = None,
        limit: int = 1_000,
    ) -> Sequence[LogRecord]:
        """See the port."""
        with self._lock:
            partitions = self._partitions(topic)
            if partition is None:
                if key is None:
                    raise SettingsError("expected a key or a partition to read from, got neither")
                partition = partition_of(key, len(partitions))
            records = list(partitions[partition])
        return [
            record
            for record in records
            if (key is None or record.key == key)
            and (from_offset is None or record.position.offset >= from_offset)
            and (from_time_ns is None or record.timestamp_ns >= from_time_ns)
        ][:limit]

    def follow(self, starts: Mapping[str, Mapping[int, int]]) -> MemoryFollower:
        """See the port."""
        return MemoryFollower(self, starts)

    def start_offsets(self, topic: str) -> Sequence[int]:
        """See the port."""
        with self._lock:
            return [0 for _ in self._partitions(topic)]

    def end_offsets(self, topic: str) -> Sequence[int]:
        """See the port."""
        with self._lock:
            return [len(records) for records in self._partitions(topic)]

    def identity(self, topic: str) -> LogIdentity:
        """See the port."""
        with self._lock:
            return LogIdentity(self._cluster_id, self._topic_ids[topic], len(self._partitions(topic)))

    def close(self) -> None:
        """See the port."""

    def _partitions(self, topic: str) -> list[list[LogRecord]]:
        if topic not in self._topics:
            raise SettingsError(f"topic {topic} does not exist; call ensure_topics first", code=ErrorCode.STORAGE)
        return self._topics[topic]


class MemoryFollower:
    """A :class:`~relay.eventlog.port.LogFollower` of a log in memory."""

    def __init__(self, log: MemoryEventLog, starts: Mapping[str, Mapping[int, int]]) -> None:
        self._log, self._reached = log, {topic: dict(offsets) for topic, offsets in starts.items()}

    def take(self, ends: Mapping[str, Mapping[int, int]]) -> LogColumns:
        """See the port."""
        found = LogColumns()
        for topic, offsets in ends.items():
            for partition, end in offsets.items():
                first = self._reached[topic][partition]
                records = self._log.read(topic, partition=partition, from_offset=first, limit=max(end - first, 0))
                if len(records) < end - first:
                    raise RetryableError(f"{topic}/{partition} ends before offset {end}", code=ErrorCode.UNAVAILABLE)
                for record in records:
                    found.topics.append(topic)
                    found.partitions.append(partition)
                    found.offsets.append(record.position.offset)
                    found.times_ms.append(record.timestamp_ns // 1_000_000)
                    found.keys.append(record.key)
                    found.values.append(record.value)
                self._reached[topic][partition] = max(end, first)
        return found

    def close(self) -> None:
        """See the port."""
