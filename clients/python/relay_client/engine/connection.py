"""One connection to the relay: the subscription barrier, the watch over its beats, and its epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.protocol.topics import probe_topic
from relay.protocol.v1 import request_pb2
from relay_client.engine.commands import (
    Command,
    InForce,
    Reconnect,
    RelayAway,
    Send,
    SessionTimes,
    Subscribe,
    Unsubscribe,
)
from relay_client.engine.route import Route

__all__ = ["PROBE_CORRELATION", "Connection"]

PROBE_CORRELATION = 0
"""Of the barrier's own probes; callers' messages have higher ones."""
_PROBE_NS = 50_000_000
_PROBE_MAX_NS = 1_000_000_000


class Connection:
    """Subscriptions are in force only after a probe's echo has come back on the same socket.

    ::

        start ──► probing ──(echo)──► in force
                    ▲                    │ new relay epoch
                    ├────────────────────┘
                    └── reconnect ◄── no beat for three intervals (from any state)

    Args:
        topics: subscribed from the start, always by the socket.
        times: of the engine.
        new_nonce: makes a UUID text.
        route: of the topics that are held for live feeds.
    """

    def __init__(
        self, topics: Sequence[bytes], times: SessionTimes, new_nonce: Callable[[], str], route: Route
    ) -> None:
        self._topics, self._times, self._new_nonce, self._route = list(topics), times, new_nonce, route
        self._nonce = ""
        self._probe_due_ns = 0
        self._probe_wait_ns = _PROBE_NS
        self._heard_ns = 0
        self._epoch: int | None = None
        self.in_force = False
        self._was_cut = False
        self._reply: request_pb2.ProbeReply | None = None
        self._reply_ns = 0

    def start(self, now_ns: int) -> list[Command]:
        """Subscribe everything on fresh sockets and begin the barrier."""
        self._heard_ns = now_ns
        self._nonce = ""
        closing = self._route.on_fresh_sockets()
        return [*closing, *map(Subscribe, [*self._topics, *self._route.names]), *self._begin_barrier(now_ns)]

    def hold(self, topics: Sequence[bytes], now_ns: int) -> list[Command]:
        """Subscribe more topics, on later connections too, and pass the barrier with them."""
        return [*self._route.hold(topics), *self._begin_barrier(now_ns)]

    def release(self, topics: Sequence[bytes]) -> list[Command]:
        """Take topics back."""
        return self._route.release(topics)

    def pass_again(self, commands: Sequence[Command], now_ns: int, *, was_cut: bool = False) -> list[Command]:
        """Pass the barrier with what has changed about the route, or, after a cut, without a change."""
        self._was_cut = self._was_cut or was_cut
        # A barrier that is being passed already serves a cut as well: begun anew at each, it might never be passed.
        if commands or (was_cut and self.in_force):
            return [*commands, *self._begin_barrier(now_ns)]
        return []

    def due_ns(self) -> int:
        """Return when the next tick matters."""
        silent_ns = self._heard_ns + self._times.beat_ns
        return silent_ns if self.in_force else min(self._probe_due_ns, silent_ns)

    def on_heard(self, now_ns: int) -> None:
        """Note that the relay lives."""
        self._heard_ns = now_ns

    def on_epoch(self, epoch: int, now_ns: int) -> list[Command]:
        """Note the relay's epoch: another one has forgotten nothing but frames in flight, so pass the barrier anew."""
        known, self._epoch = self._epoch, epoch
        if known is None or known == epoch:
            return []
        self._was_cut = True
        return [*self._route.on_cut(), *self._begin_barrier(now_ns)]

    def on_probe_reply(self, reply: request_pb2.ProbeReply, now_ns: int) -> list[Command]:
        """Take what the relay tells about itself."""
        self._reply, self._reply_ns = reply, now_ns
        commands = self.on_epoch(reply.relay_epoch, now_ns)
        self._route.told(reply.relay_epoch, reply.transports)
        return [*commands, *self._route.join()] if self.in_force else commands

    def told(self, now_ns: int) -> request_pb2.ProbeReply | None:
        """Return what the relay told last, its server time moved on to the present; None before the first answer."""
        if self._reply is None:
            return None
        told = request_pb2.ProbeReply()
        told.CopyFrom(self._reply)
        told.server_time += now_ns - self._reply_ns
        return told

    def on_echo(self, topic: bytes) -> list[Command]:
        """Handle a probe that came back on the subscribe socket; an old nonce proves nothing."""
        if not self._nonce or topic != _topic(self._nonce):
            return []
        self._nonce = ""
        self.in_force = True
        was_cut, self._was_cut = self._was_cut, False
        return [Unsubscribe(topic), InForce(was_cut), *self._route.on_in_force(), *self._route.join()]

    def on_unsent(self, now_ns: int) -> None:
        """A probe could not go out: the connection is not there yet."""
        self._probe_due_ns = now_ns + self._times.unsent_ns
        self._probe_wait_ns = _PROBE_NS

    def on_tick(self, now_ns: int) -> list[Command]:
        """Reconnect after silence; repeat the probe while its echo is awaited."""
        if now_ns - self._heard_ns >= self._times.beat_ns:
            self._was_cut = True
            return [RelayAway(), Reconnect(), *self.start(now_ns)]
        if self.in_force or now_ns < self._probe_due_ns:
            return []
        self._probe_due_ns = now_ns + self._probe_wait_ns
        self._probe_wait_ns = min(2 * self._probe_wait_ns, _PROBE_MAX_NS)
        return [Send(PROBE_CORRELATION, request_pb2.Probe(nonce=self._nonce))]

    def _begin_barrier(self, now_ns: int) -> list[Command]:
        commands: list[Command] = [Unsubscribe(_topic(self._nonce))] if self._nonce else []
        self._nonce, self.in_force = self._new_nonce(), False
        self._probe_due_ns, self._probe_wait_ns = now_ns, _PROBE_NS
        return [*commands, Subscribe(_topic(self._nonce))]


def _topic(nonce: str) -> bytes:
    return probe_topic(nonce).encode()
