"""The client's state machine: one call for each message, wish or tick, with the monotonic time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from google.protobuf.message import Message

from relay.errors import RetryableError
from relay.protocol.codes import ErrorCode
from relay.protocol.envelope import EnvelopeError, decode
from relay.protocol.registry import Channel
from relay.protocol.topics import HEARTBEAT, METADATA_UPDATE, response_topic
from relay.protocol.v1 import market_pb2, request_pb2
from relay_client.engine.commands import Command, Fail, Reconnect, Resolve, SessionTimes
from relay_client.engine.connection import PROBE_CORRELATION, Connection
from relay_client.engine.requests import RequestBook
from relay_client.engine.route import Route

__all__ = ["CORRELATION_BYTES", "SessionEngine"]

CORRELATION_BYTES = 4


class SessionEngine:
    """Owns the connection's state and everything that callers wait for.

    Args:
        client_id: UUID text; its notifications come on ``RESPONSE:{client_id}``.
        times: durations.
        new_nonce: makes UUID texts for probes.
        count: called with a counter's name for each event.
        transport: ``auto``, ``tcp`` or ``shm``, see :class:`~relay_client.engine.route.Route`.
        is_sbe: have what comes by shared memory in SBE, where the relay announces it.
    """

    def __init__(
        self,
        client_id: str,
        *,
        times: SessionTimes,
        new_nonce: Callable[[], str],
        count: Callable[[str], None],
        transport: str = "auto",
        is_sbe: bool = False,
    ) -> None:
        topics = [HEARTBEAT, METADATA_UPDATE, response_topic(client_id).encode()]
        self.route = Route(transport, is_sbe=is_sbe)
        self._connection = Connection(topics, times, new_nonce, self.route)
        self._book = RequestBook(times)
        self._count = count
        self._located: dict[int, int] = {}
        self._updates: dict[int, int] = {}

    def start(self, now_ns: int) -> list[Command]:
        """Return what to do on the first sockets."""
        return self._connection.start(now_ns)

    def due_ns(self) -> int:
        """Return when the next tick matters."""
        dues = [self._connection.due_ns(), *self._located.values(), *self._updates.values()]
        book_ns = self._book.due_ns()
        return min(dues if book_ns is None else [*dues, book_ns])

    def ask(self, key: int, message: Message, *, deadline_ns: int, now_ns: int) -> list[Command]:
        """Put a question; resolved with its answer."""
        self._book.ask(key, message, deadline_ns=deadline_ns, now_ns=now_ns)
        return self.on_tick(now_ns)

    def watch(
        self,
        key: int,
        request_id: str,
        *,
        submitted: request_pb2.SubmitHistoricalRequest | None = None,
        deadline_ns: int,
        now_ns: int,
    ) -> list[Command]:
        """Await a request's end; resolved with its notification."""
        self._book.watch(key, request_id, submitted=submitted, deadline_ns=deadline_ns, now_ns=now_ns)
        return self.on_tick(now_ns)

    def hold(self, topics: Sequence[bytes], now_ns: int) -> list[Command]:
        """Subscribe topics of live feeds, until released; :class:`InForce` follows."""
        return [*self._connection.hold(topics, now_ns), *self.on_tick(now_ns)]

    def release(self, topics: Sequence[bytes]) -> list[Command]:
        """Take topics of live feeds back."""
        return self._connection.release(topics)

    def on_broadcast_opened(self, now_ns: int) -> list[Command]:
        """The relay's broadcast is open."""
        self._count("shm.joined")
        return [*self._connection.pass_again(self.route.on_opened(), now_ns), *self.on_tick(now_ns)]

    def on_broadcast_refused(self, reason: str) -> list[Command]:
        """The relay's broadcast cannot be read."""
        self._count("shm.refused")
        return self.route.on_refused(reason)

    def on_broadcast_lapped(self, now_ns: int) -> list[Command]:
        """The relay has overwritten what was not read yet; the feeds look for what they miss."""
        self._count("shm.lapped")
        return self._connection.pass_again(self.route.on_lapped(now_ns), now_ns, was_cut=True)

    def on_broadcast_lost(self, reason: str, now_ns: int, *, is_gone: bool) -> list[Command]:
        """The relay's broadcast is of no use any more, for its relay has ended, or for another reason."""
        self._count("shm.left")
        return self._connection.pass_again(self.route.on_lost(reason, is_gone=is_gone), now_ns, was_cut=True)

    def on_heard(self, now_ns: int) -> None:
        """Live messages that do not come by :meth:`on_published` show that the relay lives, too."""
        self._connection.on_heard(now_ns)

    def locate(self, key: int, *, deadline_ns: int, now_ns: int) -> list[Command]:
        """Await what the relay tells about itself; what it told already is good, with the server time brought up."""
        told = self._connection.told(now_ns)
        if told is not None:
            return [Resolve(key, told)]
        self._located[key] = deadline_ns
        return []

    def next_update(self, key: int, *, deadline_ns: int, now_ns: int) -> list[Command]:
        """Await the next update of the symbols."""
        del now_ns
        self._updates[key] = deadline_ns
        return []

    def forget(self, key: int, now_ns: int) -> list[Command]:
        """Nobody waits under this key any more."""
        del now_ns
        self._book.forget(key)
        self._located.pop(key, None)
        self._updates.pop(key, None)
        return []

    def on_unsent(self, correlation: int, now_ns: int) -> None:
        """A message could not go out: there is no connection now."""
        if correlation == PROBE_CORRELATION:
            self._connection.on_unsent(now_ns)
        else:
            self._book.on_unsent(correlation, now_ns)

    def on_reply(self, frames: Sequence[bytes], now_ns: int) -> list[Command]:
        """Handle a message of the request socket: correlation, delimiter, version, body."""
        self._connection.on_heard(now_ns)
        try:
            envelope = decode(frames, Channel.CLIENT_REPLY)
        except EnvelopeError as error:
            self._count(f"rejected.{error.reason}")
            return []
        if len(envelope.routing) != 2 or len(envelope.routing[0]) != CORRELATION_BYTES:
            self._count("rejected.wrong_routing")
            return []
        correlation = int.from_bytes(envelope.routing[0], "big")
        if correlation != PROBE_CORRELATION:
            return self._book.on_reply(correlation, envelope.message, now_ns)
        if not isinstance(envelope.message, request_pb2.ProbeReply):
            return []
        commands = self._connection.on_probe_reply(envelope.message, now_ns)
        located, self._located = self._located, {}
        return [*commands, *(Resolve(key, envelope.message) for key in located)]

    def on_published(self, frames: Sequence[bytes], now_ns: int) -> list[Command]:
        """Handle a message of the subscribe socket: topic, version, body."""
        self._connection.on_heard(now_ns)
        try:
            message = decode(frames[1:], Channel.MARKET_DATA).message
        except EnvelopeError as error:
            self._count(f"rejected.{error.reason}")
            return []
        match message:
            case market_pb2.Heartbeat() if frames[0] == HEARTBEAT:
                return self._connection.on_epoch(message.epoch, now_ns)
            case request_pb2.Probe():
                return self._on_echo(frames[0], now_ns)
            case request_pb2.HistoryReadyNotification():
                return self._book.on_ended(message)
            case market_pb2.SymbolMetadataUpdated():
                updates, self._updates = self._updates, {}
                return [Resolve(key, message) for key in updates]
        return []

    def on_tick(self, now_ns: int) -> list[Command]:
        """Send what is due, end what is late, reconnect after silence."""
        commands = self._connection.on_tick(now_ns)
        if any(isinstance(command, Reconnect) for command in commands):
            self._count("reconnected")
        commands += self._book.on_tick(now_ns, in_force=self._connection.in_force)
        for waiting in (self._located, self._updates):
            for key in [key for key, deadline_ns in waiting.items() if now_ns >= deadline_ns]:
                del waiting[key]
                commands.append(Fail(key, _silent()))
        return commands

    def _on_echo(self, topic: bytes, now_ns: int) -> list[Command]:
        passed = self._connection.on_echo(topic)
        if not passed:
            return []
        self._count("barrier_passed")
        self._book.on_connected_anew(now_ns)
        return list(chain(passed, self._book.on_tick(now_ns, in_force=True)))


def _silent() -> RetryableError:
    return RetryableError(
        "the relay did not answer until the deadline; check its address and that it runs (relay status)",
        code=ErrorCode.TIMEOUT,
    )
