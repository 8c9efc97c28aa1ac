"""Notification forwarder: hints to the job book, everything else on to subscribers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.observability import Counters
from relay.protocol.codes import RejectReason
from relay.protocol.envelope import Envelope, EnvelopeError, EnvelopeLimits, decode
from relay.protocol.registry import Channel
from relay.protocol.topics import DEMAND_PREFIX, TOPIC_BYTES_MAX
from relay.protocol.v1 import request_pb2
from spark_jobs.manager.publisher import Publisher

__all__ = ["NotificationForwarder"]

_OUTCOME = b"OUTCOME:"
_OURS = (b"HISTORY_READY:", b"PROBE:", b"HEARTBEAT", DEMAND_PREFIX, b"\xff")


class NotificationForwarder:
    """Handles the messages of the PULL socket: ``topic``, ``version``, ``type id + protobuf``.

    Args:
        publisher: where messages go.
        mark: called with the job id of each hint.
        limits: bounds of a message.
        counters: of the process.
    """

    def __init__(
        self, *, publisher: Publisher, mark: Callable[[str], None], limits: EnvelopeLimits, counters: Counters
    ) -> None:
        self._publisher = publisher
        self._mark = mark
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
        self._counters.add("manager.notifications.forwarded")
        self._publisher.publish(topic, envelope.body, now_ns=now_ns)

    def _topic(self, envelope: Envelope) -> bytes:
        """Return the topic; a notice about a request is only ever the manager's own word."""
        topic = envelope.routing[0] if len(envelope.routing) == 1 else b""
        is_hint = isinstance(envelope.message, request_pb2.HistoryReadyNotification)
        is_fitting = topic.startswith(_OUTCOME) if is_hint else not topic.startswith((_OUTCOME, *_OURS))
        if (
            not topic
            or len(topic) > TOPIC_BYTES_MAX
            or not is_fitting
            or isinstance(envelope.message, request_pb2.Probe)
        ):
            raise EnvelopeError(
                RejectReason.WRONG_TOPIC,
                f"expected a hint on OUTCOME:{{job_id}} or a message on its public topic, got topic {topic[:80]!r}",
            )
        return topic
