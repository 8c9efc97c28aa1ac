"""Where ticks go at once: the fast path's port, and its publisher towards the relays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from relay.observability import Counters
from relay.protocol.envelope import VERSION_FRAME
from relay.transport import ConnectionWatch, Context, SendOutcome, Socket, SocketKind, SocketLimits, open_socket, send

__all__ = ["PublisherSink", "TickSink"]

_LOOK_NS = 1_000_000_000


class TickSink(Protocol):
    """The fast path. Never blocks and never waits for the event log."""

    def publish(self, topic: bytes, body: bytes) -> None:
        """Publish a stamped message: type id and serialised protobuf."""

    def turn(self, now_ns: int) -> None:
        """Look after the transport; called every few milliseconds with the monotonic time."""

    def close(self) -> None:
        """Release the transport."""


class PublisherSink:
    """A :class:`TickSink` over ZeroMQ, with a PUB of its own for every relay.

    One socket a relay, so that a connection that has to be made anew takes nothing from the others.

    Args:
        context: ZeroMQ's.
        endpoints: fast-path endpoints of the relays.
        queue_max: messages kept for one relay that is slow or away; beyond it the newest are dropped, which the
            stamps make visible.
        counters: of the process.

    Raises:
        SettingsError: an endpoint makes no sense.
    """

    def __init__(self, context: Context, endpoints: Sequence[str], *, queue_max: int, counters: Counters) -> None:
        self._counters = counters
        limits = SocketLimits(send_queue_max=queue_max, receive_queue_max=queue_max)
        self._sockets: list[Socket] = []
        self._watches: list[ConnectionWatch] = []
        try:
            for endpoint in endpoints:
                self._sockets.append(open_socket(context, SocketKind.PUB, limits=limits))
                self._watches.append(ConnectionWatch(self._sockets[-1], endpoint))
        except BaseException:
            self.close()
            raise
        self._look_due_ns = 0

    def publish(self, topic: bytes, body: bytes) -> None:
        """See the port."""
        for socket in self._sockets:
            if send(socket, (topic, VERSION_FRAME, body)) is not SendOutcome.SENT:
                self._counters.add("live.publish.dropped")

    def turn(self, now_ns: int) -> None:
        """See the port."""
        if now_ns < self._look_due_ns:
            return
        self._look_due_ns = now_ns + _LOOK_NS
        for watch in self._watches:
            if watch.turn(now_ns):
                self._counters.add("live.publish.redialled")

    def close(self) -> None:
        """See the port."""
        for watch in self._watches:
            watch.close()
        for socket in self._sockets:
            socket.close(200)
