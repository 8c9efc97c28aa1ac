"""Reads on in topics of Kafka, stretch by stretch, for who knows where each stretch ends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from relay.errors import RetryableError
from relay.eventlog.port import LogColumns
from relay.protocol.codes import ErrorCode

__all__ = ["KafkaFollower"]

_ANSWER_S = 5.0
_TURN_S = 0.1
_TURN_MESSAGES = 1_000
_AHEAD = {
    "fetch.message.max.bytes": 1024 * 1024,
    "queued.max.messages.kbytes": 16 * 1024,
    "queued.min.messages": 30_000,
}
"""What is read ahead while nobody takes: some seconds of thousands of ticks, and no more memory than that."""

_AHEAD_MAX = 100_000
"""Records kept that lie behind the ends: one partition brings them while another does not answer."""

_Place = tuple[str, int]


class KafkaFollower:
    """A :class:`~relay.eventlog.port.LogFollower`: one consumer, which reads ahead in a thread of its own.

    Args:
        connection: librdkafka's settings that reach the cluster.
        starts: first offset by topic and partition.
    """

    def __init__(self, connection: Mapping[str, Any], starts: Mapping[str, Mapping[int, int]]) -> None:
        # What is gone is an error: where to go on is for the caller to say.
        own = {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "error"}
        self._consumer = Consumer({**connection, **own, **_AHEAD, "isolation.level": "read_committed"})
        self._reached: dict[_Place, int] = {(t, p): o for t, offsets in starts.items() for p, o in offsets.items()}
        self._ahead: list[Message] = []
        self._consumer.assign([TopicPartition(topic, p, offset) for (topic, p), offset in self._reached.items()])

    def take(self, ends: Mapping[str, Mapping[int, int]]) -> LogColumns:
        """See the port."""
        wanted = {(topic, p): end for topic, offsets in ends.items() for p, end in offsets.items()}
        found = LogColumns()
        before, self._ahead = self._ahead, []
        self._sort(before, wanted, found)
        deadline = time.monotonic() + _ANSWER_S
        while left := self._left(wanted):
            try:
                messages = self._consumer.consume(min(sum(left.values()), _TURN_MESSAGES), timeout=_TURN_S)
                self._sort(messages, wanted, found)
                if not messages:
                    self._pass_markers(left)
            except KafkaException as error:
                raise RetryableError(f"following the log: {error}", code=ErrorCode.UNAVAILABLE) from error
            if len(self._ahead) > _AHEAD_MAX:
                text = f"following the log: {len(self._ahead)} records lie ahead and {sum(left.values())} are missing"
                raise RetryableError(text, code=ErrorCode.UNAVAILABLE)
            # Records behind the ends are no answer: they come as long as other partitions are written to.
            if self._left(wanted) != left:
                deadline = time.monotonic() + _ANSWER_S
            elif time.monotonic() > deadline:
                text = f"following the log: no answer within {_ANSWER_S:.0f} s, {sum(left.values())} records missing"
                raise RetryableError(text, code=ErrorCode.UNAVAILABLE)
        return found

    def close(self) -> None:
        """See the port."""
        self._consumer.close()

    def _left(self, wanted: Mapping[_Place, int]) -> dict[_Place, int]:
        return {place: end - self._reached[place] for place, end in wanted.items() if end > self._reached[place]}

    def _sort(self, messages: Iterable[Message], wanted: Mapping[_Place, int], found: LogColumns) -> None:
        """Take what lies before the ends, and keep the rest for the next stretch: none before it is left then."""
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
            topic, partition, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
            place = (topic, partition)
            if offset >= wanted[place]:
                self._ahead.append(message)
                self._reached[place] = max(self._reached[place], wanted[place])
                continue
            self._reached[place] = offset + 1
            found.topics.append(topic)
            found.partitions.append(partition)
            found.offsets.append(offset)
            found.times_ms.append(message.timestamp()[1])
            found.keys.append(message.key())
            found.values.append(message.value())

    def _pass_markers(self, places: Iterable[_Place]) -> None:
        """What takes offsets without being a record, as transactions do, moves the position alone."""
        for told in self._consumer.position([TopicPartition(*place) for place in places]):
            if told.error is not None and told.error.code() != KafkaError.NO_ERROR:
                raise KafkaException(told.error)
            place = (told.topic, told.partition)
            self._reached[place] = max(self._reached[place], told.offset)
