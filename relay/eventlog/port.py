"""The event log's port: append, flush, read, identity. Kafka stands behind it, and an in-memory twin for tests."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

__all__ = [
    "CONTROL_TOPIC",
    "HISTORY_TOPIC",
    "RECORD_BYTES_MAX",
    "SYMBOL_TOPIC",
    "TICKER_STATS_TOPIC",
    "TICK_TOPIC",
    "TRIGGER_TOPIC",
    "EventLog",
    "LogColumns",
    "LogFollower",
    "LogIdentity",
    "LogPosition",
    "LogRecord",
    "TopicSpec",
    "partition_of",
    "platform_topics",
]

RECORD_BYTES_MAX = 1_000_000
"""A record of more bytes, key and value, is refused: the log's batches are bounded."""
HISTORY_TOPIC = "market-ohlc"
"""OHLCBatch (and final bars made from ticks), key = ticker."""
SYMBOL_TOPIC = "symbol-metadata"
"""Market, key = ticker."""
TICK_TOPIC = "market-tick"
"""Tick, Gap and Heartbeat of a ticker, key = ticker, so that they stay in order."""
TICKER_STATS_TOPIC = "market-ticker"
CONTROL_TOPIC = "market-control"
"""DataRequest: which periods of a ticker's bars are wanted, key = ticker; told again while they are. CEPTriggerRequest:
definitions of triggers, key = trigger_id; told again every day at least."""
TRIGGER_TOPIC = "market-trigger"
"""CEPTriggerEvent, key = trigger_id."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it must exist.

    Attributes:
        name: topic name, prefix included.
        partitions: count at creation; the key decides the partition, so keys move when a topic grows.
        retention_ms: how long records are kept; -1 for ever.
    """

    name: str
    partitions: int
    retention_ms: int


@dataclass(frozen=True, slots=True)
class LogPosition:
    """Where a record lies; offsets start at 0 in each partition."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record: its place, when it was appended (ns), its key and value."""

    position: LogPosition
    timestamp_ns: int
    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """Which log a stored offset belongs to: a recreated topic starts at 0 again under another ``topic_id``."""

    cluster_id: str
    topic_id: str
    partitions: int


@dataclass(slots=True)
class LogColumns:
    """Records by column, in the order of each partition; lists of one length."""

    topics: list[str] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    times_ms: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.offsets)


class LogFollower(Protocol):
    """Reads on in some topics, stretch by stretch; used by one thread at a time."""

    def take(self, ends: Mapping[str, Mapping[int, int]]) -> LogColumns:
        """Return all records from where the last stretch ended, up to the ends.

        Args:
            ends: by topic and partition, the offset after the last record that is wanted; of all that are followed.

        Raises:
            RetryableError: the log is away, or no longer holds a record; the follower is of no use any more.
        """

    def close(self) -> None:
        """Let go of the connection."""


class EventLog(Protocol):
    """Durable, partitioned, append-only log of keyed records."""

    def ensure_topics(self, topics: Sequence[TopicSpec]) -> None:
        """Create what is missing. A topic that has grown since it was made is as good (0003).

        Raises:
            SettingsError: a topic exists with fewer partitions.
            RetryableError: the log is away.
        """

    def prepare(self, topic: str) -> None:
        """Learn what an append needs to know of a topic, so that appends to it never wait.

        Raises:
            RetryableError: the log is away, or the topic does not exist yet.
        """

    def append(self, topic: str, *, key: bytes, value: bytes) -> Future[LogPosition]:
        """Append a record; the future ends when the log has acknowledged it (all in-sync replicas).

        Records of one key stay in order. While the log is away records wait in a bounded buffer.

        Raises:
            RetryableError: OVERLOADED, the buffer is full; wait and try again.
            StorageError: this record cannot be taken: it is over ``RECORD_BYTES_MAX``.
        """

    def append_then(
        self, topic: str, *, key: bytes, value: bytes, done: Callable[[BaseException | None], None]
    ) -> None:
        """Like :meth:`append`, for thousands of records a second: ``done`` is called instead of ending a future.

        Args:
            topic, key, value: as for :meth:`append`.
            done: called once, on any thread, with None when the log has acknowledged the record; must not raise.

        Raises:
            RetryableError: OVERLOADED, the buffer is full; ``done`` is not called then.
            StorageError: as for :meth:`append`; ``done`` is not called then.
        """

    def flush(self, timeout_s: float) -> int:
        """Wait until everything appended is acknowledged; return how many records still are not."""

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
        """Read at most ``limit`` records of the key's partition (or of ``partition``), ascending.

        Starts at ``from_offset``, or at the first record at or after ``from_time_ns``, or at the oldest one;
        stops at the end of the log. With a key, records of other keys are left out.

        Raises:
            RetryableError: the log is away.
        """

    def follow(self, starts: Mapping[str, Mapping[int, int]]) -> LogFollower:
        """Return a reader of several topics that keeps its connection and reads ahead.

        Args:
            starts: first offset by topic and partition.
        """

    def start_offsets(self, topic: str) -> Sequence[int]:
        """Return the offset of the oldest record that is still kept, of each partition."""

    def end_offsets(self, topic: str) -> Sequence[int]:
        """Return the offset after the last record of each partition."""

    def identity(self, topic: str) -> LogIdentity:
        """Return which log and topic this is."""

    def close(self) -> None:
        """Flush shortly and release everything."""


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key; chosen by us, so that every client library puts a ticker at the same place."""
    return zlib.crc32(key) % partitions


def platform_topics(*, prefix: str, partitions: int, retention_hours: int) -> Sequence[TopicSpec]:
    """Return the topics of the platform."""
    retention_ms = retention_hours * 3_600_000
    names = (HISTORY_TOPIC, SYMBOL_TOPIC, TICK_TOPIC, TICKER_STATS_TOPIC, CONTROL_TOPIC, TRIGGER_TOPIC)
    return [TopicSpec(prefix + name, partitions, retention_ms) for name in names]
