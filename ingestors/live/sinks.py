"""Where ticks go at once: the fast path's port, and its publisher towards the relays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from relay.observability import Counters
from relay.protocol.envelope import VERSION_FRAME
from relay.transport import Context, SendOutcome, SocketKind, SocketLimits, open_socket, send

__all__ = ["PublisherSink", "TickSink"]


class TickSink(Protocol):
    """The fast path. Never blocks and never waits for the event log."""

    def publish(self, topic: bytes, body: bytes) -> None:
        """Publish a stamped message: type id and serialised protobuf."""

    def close(self) -> None:
        """Release the transport."""


class PublisherSink:
    """A :class:`TickSink` over ZeroMQ PUB, connected to every relay.

    Args:
        context: ZeroMQ's.
        endpoints: fast-path endpoints of the relays.
        queue_max: messages kept for one relay that is slow or away; beyond it the newest are dropped, which the
            stamps make visible.
        counters: of the process.
    """

    def __init__(self, context: Context, endpoints: Sequence[str], *, queue_max: int, counters: Counters) -> None:
        self._counters = counters
        limits = SocketLimits(send_queue_max=queue_max, receive_queue_max=queue_max)
        self._socket = open_socket(context, SocketKind.PUB, connect=endpoints, limits=limits)

    def publish(self, topic: bytes, body: bytes) -> None:
        """See the port."""
        if send(self._socket, (topic, VERSION_FRAME, body)) is not SendOutcome.SENT:
            self._counters.add("live.publish.dropped")

    def close(self) -> None:
        """See the port."""
        self._socket.close(200)
