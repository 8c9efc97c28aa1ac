"""The event log on Kafka: idempotent producer, reads by assignment; librdkafka has its one home here."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from relay.errors import RetryableError, SettingsError, StorageError
from relay.eventlog.client_log import RepeatFilter
from relay.eventlog.kafka_follower import KafkaFollower
from relay.eventlog.port import RECORD_BYTES_MAX, LogIdentity, LogPosition, LogRecord, TopicSpec, partition_of
from relay.protocol.codes import ErrorCode

__all__ = ["KafkaEventLog"]

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
_LOG.addFilter(RepeatFilter())
_ADMIN_TIMEOUT_S = 10.0
_READ_TIMEOUT_S = 10.0
_PREPARE_TIMEOUT_S = 2.0
"""Short: whoever prepares asks again, and its process cannot end before the answer."""
_NO_LEADER_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)


class KafkaEventLog:
    """An :class:`~relay.eventlog.port.EventLog` on a Kafka cluster; thread-safe.

    Args:
        bootstrap_servers: ``host:port[,host:port]``.
        client_id: shown in the broker's logs.
        buffer_bytes_max: bound of what waits for acknowledgement; over it ``append`` refuses.
    """

    def __init__(self, bootstrap_servers: str, *, client_id: str, buffer_bytes_max: int = 64 * 1024 * 1024) -> None:
        self._connection = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": client_id,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "log.connection.close": False,
            "logger": _LOG,
        }
        self._producer = Producer(
            self._connection
            | {
                "enable.idempotence": True,
                "acks": "all",
                # Records wait for the log as long as it takes; who appended decides when to give up.
                "message.timeout.ms": 0,
                # A few milliseconds together make one request of many records: less work for us and for the broker.
                "linger.ms": 5,
                "compression.type": "lz4",
                "message.max.bytes": RECORD_BYTES_MAX,
                "queue.buffering.max.kbytes": max(1, buffer_bytes_max // 1024),
                "queue.buffering.max.messages": 100_000,
            }
        )
        self._admin: AdminClient | None = None
        self._bounds_consumer: Consumer | None = None
        self._bounds_lock = threading.Lock()
        self._partitions: dict[str, int] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="kafka-acknowledgements", daemon=True)
        self._thread.start()

    def ensure_topics(self, topics: Sequence[TopicSpec]) -> None:
        """See the port."""
        admin = self._admin_client()
        try:
            existing = admin.list_topics(timeout=_ADMIN_TIMEOUT_S).topics
        except KafkaException as error:
            raise _away("listing topics", error) from error
        wanted = []
        for spec in topics:
            found = existing.get(spec.name)
            # It may have grown since it was last asked for.
            self._partitions.pop(spec.name, None)
            if found is None:
                config = {"retention.ms": str(spec.retention_ms), "max.message.bytes": "1048588"}
                wanted.append(NewTopic(spec.name, spec.partitions, config=config))
            elif len(found.partitions) < spec.partitions:
                raise SettingsError(
                    f"topic {spec.name} has {len(found.partitions)} partitions, settings say {spec.partitions}; "
                    f"set topic_partitions to {len(found.partitions)}, or grow the topic to {spec.partitions}"
                )
        if not wanted:
            return
        for name, created in admin.create_topics(wanted, operation_timeout=_ADMIN_TIMEOUT_S).items():
            try:
                created.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise _away(f"creating topic {name}", error) from error
        self._await_topics({topic.topic for topic in wanted})

    def _await_topics(self, missing: set[str]) -> None:
        """What the controller has created a broker may not know for a moment."""
        deadline = time.monotonic() + _ADMIN_TIMEOUT_S
        while missing:
            try:
                known = self._admin_client().list_topics(timeout=_ADMIN_TIMEOUT_S).topics
            except KafkaException as error:
                raise _away("listing topics", error) from error
            missing = {name for name in missing if name not in known or not known[name].partitions}
            if missing and time.monotonic() > deadline:
                raise RetryableError(f"topics {', '.join(sorted(missing))} do not show up", code=ErrorCode.UNAVAILABLE)
            if missing:
                time.sleep(0.02)

    def prepare(self, topic: str) -> None:
        """See the port."""
        self._partition_count(topic, timeout_s=_PREPARE_TIMEOUT_S)

    def append(self, topic: str, *, key: bytes, value: bytes) -> Future[LogPosition]:
        """See the port."""
        acknowledged: Future[LogPosition] = Future()

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if not acknowledged.set_running_or_notify_cancel():
                return
            if error is not None:
                acknowledged.set_exception(_refused(topic, error))
            else:
                acknowledged.set_result(LogPosition(topic, message.partition(), message.offset()))

        self._produce(topic, key, value, on_delivery)
        return acknowledged

    def append_then(
        self, topic: str, *, key: bytes, value: bytes, done: Callable[[BaseException | None], None]
    ) -> None:
        """See the port."""

        def on_delivery(error: KafkaError | None, _: Message) -> None:
            done(None if error is None else _refused(topic, error))

        self._produce(topic, key, value, on_delivery)

    def _produce(
        self, topic: str, key: bytes, value: bytes, on_delivery: Callable[[KafkaError | None, Message], None]
    ) -> None:
        try:
            self._producer.produce(topic, value, key, partition=self._partition(topic, key), on_delivery=on_delivery)
        except BufferError as error:
            raise RetryableError(
                "the buffer towards the event log is full; wait until it drains",
                code=ErrorCode.OVERLOADED,
                retry_after_ms=100,
            ) from error
        except KafkaException as error:
            raise StorageError(f"the event log cannot take a record of {len(value)} bytes: {error}") from error

    def flush(self, timeout_s: float) -> int:
        """See the port."""
        return int(self._producer.flush(timeout_s))

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
        if partition is None:
            if key is None:
                raise SettingsError("expected a key or a partition to read from, got neither")
            partition = self._partition(topic, key)
        consumer = Consumer(
            self._connection | {"group.id": "unused", "enable.auto.commit": False, "isolation.level": "read_committed"}
        )
        try:
            return self._read(consumer, TopicPartition(topic, partition), key, from_offset, from_time_ns, limit)
        except KafkaException as error:
            raise _away(f"reading {topic}", error) from error
        finally:
            consumer.close()

    def follow(self, starts: Mapping[str, Mapping[int, int]]) -> KafkaFollower:
        """See the port."""
        return KafkaFollower(self._connection, starts)

    def start_offsets(self, topic: str) -> Sequence[int]:
        """See the port."""
        return [low for low, _ in self._bounds(topic)]

    def end_offsets(self, topic: str) -> Sequence[int]:
        """See the port."""
        return [end for _, end in self._bounds(topic)]

    def identity(self, topic: str) -> LogIdentity:
        """See the port."""
        admin = self._admin_client()
        try:
            cluster = admin.describe_cluster(request_timeout=_ADMIN_TIMEOUT_S).result()
            described = admin.describe_topics(TopicCollection([topic]), request_timeout=_ADMIN_TIMEOUT_S)
            found = described[topic].result()
        except KafkaException as error:
            raise _away(f"describing {topic}", error) from error
        return LogIdentity(str(cluster.cluster_id), str(found.topic_id), len(found.partitions))

    def close(self) -> None:
        """See the port."""
        self._producer.flush(5.0)
        if self._bounds_consumer is not None:
            self._bounds_consumer.close()
        self._closing.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(0.1)

    def _admin_client(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(self._connection)
        return self._admin

    def _bounds(self, topic: str) -> list[tuple[int, int]]:
        # Kept open: a new consumer would connect anew for each question.
        with self._bounds_lock:
            if self._bounds_consumer is None:
                self._bounds_consumer = Consumer(self._connection | {"group.id": "unused", "enable.auto.commit": False})
            consumer = self._bounds_consumer
            try:
                count = self._partition_count(topic)
                return [_watermarks(consumer, TopicPartition(topic, p)) for p in range(count)]
            except KafkaException as error:
                raise _away(f"reading the bounds of {topic}", error) from error

    def _partition(self, topic: str, key: bytes) -> int:
        return partition_of(key, self._partition_count(topic))

    def _partition_count(self, topic: str, *, timeout_s: float = _ADMIN_TIMEOUT_S) -> int:
        if topic not in self._partitions:
            try:
                found = self._producer.list_topics(topic, timeout=timeout_s).topics[topic]
            except KafkaException as error:
                raise _away(f"finding {topic}", error) from error
            if found.error is not None or not found.partitions:
                raise RetryableError(f"topic {topic} does not exist (yet): {found.error}", code=ErrorCode.STORAGE)
            self._partitions[topic] = len(found.partitions)
        return self._partitions[topic]

    def _read(
        self,
        consumer: Consumer,
        place: TopicPartition,
        key: bytes | None,
        from_offset: int | None,
        from_time_ns: int | None,
        limit: int,
    ) -> list[LogRecord]:
        low, end = _watermarks(consumer, place)
        place.offset = max(low, from_offset or 0)
        if from_time_ns is not None:
            wanted = TopicPartition(place.topic, place.partition, from_time_ns // 1_000_000)
            by_time = consumer.offsets_for_times([wanted], timeout=_READ_TIMEOUT_S)[0].offset
            place.offset = max(place.offset, by_time if by_time >= 0 else end)
        consumer.assign([place])
        records: list[LogRecord] = []
        deadline = time.monotonic() + _READ_TIMEOUT_S
        # The position, not the last message, says where the end is: transaction markers take offsets too.
        while len(records) < limit and _position(consumer, place) < end:
            for message in consumer.consume(min(limit, 1_000), timeout=0.1):
                if message.error() is not None:
                    raise KafkaException(message.error())
                # Most records of a partition are of other keys: nothing is made of those.
                is_wanted = key is None or message.key() == key
                if is_wanted and len(records) < limit and (message.offset() or 0) < end:
                    records.append(_record(message))
                deadline = time.monotonic() + _READ_TIMEOUT_S
            if time.monotonic() > deadline:
                raise RetryableError(f"reading {place.topic}: no answer within {_READ_TIMEOUT_S:.0f} s")
        return records


def _watermarks(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """Oldest offset and end of a partition; a partition that has just been made or moved has no leader for a moment."""
    deadline = time.monotonic() + _READ_TIMEOUT_S
    while True:
        try:
            low, end = consumer.get_watermark_offsets(place, timeout=_READ_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() not in _NO_LEADER_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return int(low), int(end)


def _position(consumer: Consumer, place: TopicPartition) -> int:
    position = consumer.position([place])[0].offset
    return int(position) if position >= 0 else int(place.offset)


def _record(message: Message) -> LogRecord:
    position = LogPosition(message.topic() or "", message.partition() or 0, message.offset() or 0)
    return LogRecord(position, message.timestamp()[1] * 1_000_000, message.key() or b"", message.value() or b"")


def _refused(topic: str, error: KafkaError) -> StorageError:
    return StorageError(f"the event log refused a record of {topic}: {error}")


def _away(what: str, error: KafkaException) -> RetryableError:
    return RetryableError(f"{what}: the event log does not answer: {error}", code=ErrorCode.UNAVAILABLE)
