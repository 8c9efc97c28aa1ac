"""Where ticks go at once: the fast path's port, and its ways towards the relays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import structlog

from relay.observability import Counters
from relay.protocol.envelope import VERSION_FRAME
from relay.protocol.topics import RING_TOPIC
from relay.transport import (
    ConnectionWatch,
    Context,
    RingWriter,
    SendOutcome,
    SocketKind,
    SocketLimits,
    open_socket,
    receive,
    send,
)

__all__ = ["PublisherSink", "TickSink"]

_LOOK_NS = 1_000_000_000
_OFFERED_MAX = 8
"""Rings that one relay's connection offers: one, and those of earlier starts that it has not taken back yet."""
_LOG = structlog.get_logger(__name__)


class TickSink(Protocol):
    """The fast path. Never blocks and never waits for the event log."""

    def publish(self, topic: bytes, body: bytes) -> None:
        """Publish a stamped message: type id and serialised protobuf."""

    def turn(self, now_ns: int) -> None:
        """Look after the transport; called every few milliseconds with the monotonic time."""

    def close(self) -> None:
        """Release the transport."""


class PublisherSink:
    """A :class:`TickSink` over ZeroMQ, with a publisher of its own for every relay, and a ring for each on this host.

    One socket a relay, so that a connection that has to be made anew takes nothing from the others. A relay that can
    share memory says so by a subscription; while its ring is read and has room, messages go there, not to the socket.

    Args:
        context: ZeroMQ's.
        endpoints: fast-path endpoints of the relays.
        queue_max: messages kept for one relay that is slow or away; beyond it the newest are dropped, which the
            stamps make visible.
        counters: of the process.
        epoch: random for each start of the ingestor.
        shared_memory: folder of shared memory; None for none.

    Raises:
        SettingsError: an endpoint makes no sense.
    """

    def __init__(
        self,
        context: Context,
        endpoints: Sequence[str],
        *,
        queue_max: int,
        counters: Counters,
        epoch: int = 0,
        shared_memory: str | None = None,
    ) -> None:
        self._counters = counters
        self._links: list[_Link] = []
        self._look_due_ns = 0
        limits = SocketLimits(send_queue_max=queue_max, receive_queue_max=queue_max)
        try:
            for number, endpoint in enumerate(endpoints):
                self._links.append(
                    _Link(context, endpoint, limits, counters, epoch=epoch + number, shared_memory=shared_memory)
                )
        except BaseException:
            self.close()
            raise

    def publish(self, topic: bytes, body: bytes) -> None:
        """See the port."""
        for link in self._links:
            link.publish(topic, body)

    def turn(self, now_ns: int) -> None:
        """See the port."""
        is_due = now_ns >= self._look_due_ns
        if is_due:
            self._look_due_ns = now_ns + _LOOK_NS
        for link in self._links:
            link.turn(now_ns, is_due=is_due)
        self._counters.set("live.rings", sum(link.has_ring for link in self._links))

    def close(self) -> None:
        """See the port."""
        for link in self._links:
            link.close()


class _Link:
    """The ways to one relay."""

    def __init__(
        self,
        context: Context,
        endpoint: str,
        limits: SocketLimits,
        counters: Counters,
        *,
        epoch: int,
        shared_memory: str | None,
    ) -> None:
        self._counters, self._epoch, self._shared_memory = counters, epoch, shared_memory
        self._ring: RingWriter | None = None
        self._ring_topic = b""
        self._offered: list[bytes] = []
        self._socket = open_socket(context, SocketKind.XPUB, limits=limits)
        try:
            self._watch = ConnectionWatch(self._socket, endpoint)
        except BaseException:
            self._socket.close(0)
            raise

    @property
    def has_ring(self) -> bool:
        """Whether messages go through shared memory."""
        return self._ring is not None and self._ring.is_read

    def publish(self, topic: bytes, body: bytes) -> None:
        """Send by the ring; through the socket where there is none, or no room in it."""
        if self._ring is not None and self._ring.offer(topic, body):
            self._counters.add("live.publish.by_ring")
        elif send(self._socket, (topic, VERSION_FRAME, body)) is not SendOutcome.SENT:
            self._counters.add("live.publish.dropped")

    def turn(self, now_ns: int, *, is_due: bool) -> None:
        """Take what the relay subscribes, and look after both ways."""
        while (frames := receive(self._socket)) is not None:
            if len(frames) == 1 and frames[0][1:].startswith(RING_TOPIC):
                self._told(frames[0][1:], is_on=frames[0][:1] == b"\x01")
        if self._ring is not None and (is_due or not self._ring.is_read) and not self._ring.look():
            self._forget(self._ring_topic)
        if is_due and self._watch.turn(now_ns):
            self._counters.add("live.publish.redialled")

    def close(self) -> None:
        """Close both ways."""
        self._end_ring()
        self._watch.close()
        self._socket.close(200)

    def _told(self, topic: bytes, *, is_on: bool) -> None:
        if not is_on:
            self._forget(topic)
        elif self._shared_memory is not None and topic not in self._offered and len(self._offered) < _OFFERED_MAX:
            self._offered.append(topic)
            self._open_ring()

    def _forget(self, topic: bytes) -> None:
        """A relay takes its offer back, or its ring is of no use any more: another one that was offered may be."""
        if topic in self._offered:
            self._offered.remove(topic)
        if topic == self._ring_topic:
            self._end_ring()
            self._open_ring()

    def _open_ring(self) -> None:
        """Open the ring that was offered last, unless there is one: a ring that works is not given up for another."""
        for topic in reversed(self._offered) if self._ring is None else ():
            try:
                self._ring = RingWriter(topic, writer_epoch=self._epoch, folder=self._shared_memory or "")
            except LookupError as error:
                # The relay is on another host, or in another container: the socket serves it.
                self._counters.add("live.rings.refused")
                _LOG.info("ring_not_opened", relay=topic.decode(errors="replace"), reason=str(error))
                continue
            self._ring_topic = topic
            _LOG.info("ring_opened", relay=topic.decode(errors="replace"))
            return

    def _end_ring(self) -> None:
        self._ring_topic = b""
        ring, self._ring = self._ring, None
        if ring is not None:
            ring.close()
