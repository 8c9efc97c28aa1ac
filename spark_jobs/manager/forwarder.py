"""Notification forwarder: hints to the job book, firings noted, everything else on to subscribers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from google.protobuf.message import Message

from relay.observability import Counters
from relay.protocol.codes import RejectReason
from relay.protocol.envelope import Envelope, EnvelopeError, EnvelopeLimits, decode
from relay.protocol.registry import Channel
from relay.protocol.topics import DEMAND_PREFIX, TOPIC_BYTES_MAX, is_uuid_text, trigger_topic
from relay.protocol.v1 import request_pb2, trigger_pb2
from spark_jobs.manager.publisher import Publisher

__all__ = ["NotificationForwarder"]

_OUTCOME, _RESPONSE = b"OUTCOME:", b"RESPONSE:"
_OF_TRIGGERS = (b"CEP:", _RESPONSE)
_OURS = (b"HISTORY_READY:", b"PROBE:", b"HEARTBEAT", DEMAND_PREFIX, b"\xff")


class NotificationForwarder:
    """Handles the messages of the PULL socket: ``topic``, ``version``, ``type id + protobuf``.

    Args:
        publisher: where messages go.
        mark: called with the job id of each hint.
        fired: called with the trigger id of each firing and when it was made, nanoseconds; None when it does not say.
        limits: bounds of a message.
        counters: of the process.
    """

    def __init__(
        self,
        *,
        publisher: Publisher,
        mark: Callable[[str], None],
        fired: Callable[[str, int | None], None],
        limits: EnvelopeLimits,
        counters: Counters,
    ) -> None:
        self._publisher = publisher
        self._mark, self._fired = mark, fired
        self._limits = limits
        self._counters = counters

    def handle(self, frames: Sequence[bytes], *, now_ns: int) -> None:
        """Take a hint or forward a message; what fits nowhere is counted by its reason."""
        try:
            envelope = decode(frames, Channel.NOTIFICATION, limits=self._limits)
            topic = self._topic(envelope)
        except EnvelopeError as error:
            self._counters.add(f"manager.notifications.rejected.{error.reason}")
            return
        if isinstance(envelope.message, request_pb2.HistoryReadyNotification):
            self._counters.add("manager.hints.received")
            self._mark(envelope.message.job_id or topic[len(_OUTCOME) :].decode("ascii", "replace"))
            return
        if isinstance(envelope.message, trigger_pb2.CEPTriggerEvent):
            self._counters.add("manager.triggers.events")
            self._fired(envelope.message.trigger_id, envelope.message.stamp.published_at or None)
        self._counters.add("manager.notifications.forwarded")
        self._publisher.publish(topic, envelope.body, now_ns=now_ns)

    def _topic(self, envelope: Envelope) -> bytes:
        """Return the topic; a notice about a request is only ever the manager's own word."""
        topic = envelope.routing[0] if len(envelope.routing) == 1 else b""
        if not topic or len(topic) > TOPIC_BYTES_MAX or not _is_fitting(topic, envelope.message):
            raise EnvelopeError(
                RejectReason.WRONG_TOPIC,
                "expected a hint on OUTCOME:{job_id}, a firing on CEP:{its trigger_id} or RESPONSE:{client_id}, or a "
                f"message on its public topic, got topic {topic[:80]!r}",
            )
        return topic


def _is_fitting(topic: bytes, message: Message) -> bool:
    match message:
        case request_pb2.HistoryReadyNotification():
            return topic.startswith(_OUTCOME)
        case request_pb2.Probe():
            return False
        case trigger_pb2.CEPTriggerEvent(trigger_id=trigger_id):
            if not is_uuid_text(trigger_id):
                return False
            client_id = topic.removeprefix(_RESPONSE).decode("ascii", "replace")
            is_owners = topic.startswith(_RESPONSE) and is_uuid_text(client_id)
            return is_owners or topic == trigger_topic(trigger_id).encode()
    return not topic.startswith((_OUTCOME, *_OF_TRIGGERS, *_OURS))
