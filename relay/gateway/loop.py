"""The gateway's sockets and loop: polls, hands messages to the engine, executes its commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack

import structlog

from relay.engine.commands import Broadcast, Command, Publish, Recheck, SendToClient, SendToManager, Upstream
from relay.engine.gateway import GatewayEngine
from relay.engine.redial import Redial
from relay.gateway.settings import GatewaySettings
from relay.observability import Counters
from relay.observability.shared_counters import SHARED_MEMORY_OFF
from relay.protocol.topics import DEMAND_PREFIX, SBE_DEMAND_PREFIX
from relay.transport import (
    MANUAL_SUBSCRIPTIONS,
    ClientBroadcast,
    Context,
    Passage,
    Poller,
    RingIntake,
    SendOutcome,
    Socket,
    SocketKind,
    SocketLimits,
    SubscriptionCanary,
    Waker,
    accept_subscription,
    open_socket,
    pin_loop,
    receive,
    redial,
    send,
    subscribe,
    unsubscribe,
)

__all__ = ["GatewayLoop"]

_LOG = structlog.get_logger(__name__)
_BURST = 256
_SUBSCRIPTIONS_BURST = 32
"""Subscriptions, and topics asked about, in one turn: a thousand clients that leave at once hold up no tick."""
_TICK_MS = 100
_LOOK_NS = 50_000_000
_REDIAL_NS = 5_000_000_000


class GatewayLoop:
    """Owns the gateway's sockets; one thread.

    Args:
        broadcast: to clients on this host, where there is one; it stays the caller's.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        engine: GatewayEngine,
        context: Context,
        counters: Counters,
        *,
        broadcast: ClientBroadcast | None = None,
    ) -> None:
        self._settings, self._engine, self._counters = settings, engine, counters
        self._broadcast = broadcast
        beat = settings.heartbeat_ms
        # libzmq cuts off a peer at twice the limit; up to the limit the engine answers with a reason.
        client = SocketLimits(
            settings.client_queue_max, settings.request_queue_max, 2 * settings.request_bytes_max, beat
        )
        inner = SocketLimits(settings.client_queue_max, settings.client_queue_max, settings.published_bytes_max, beat)
        manager = SocketLimits(
            settings.request_queue_max, settings.request_queue_max, 2 * settings.published_bytes_max, beat, True
        )
        with ExitStack() as opened:

            def keep(socket: Socket) -> Socket:
                opened.callback(socket.close, 0)
                return socket

            kind, manual = SocketKind, [MANUAL_SUBSCRIPTIONS]
            self.router = keep(open_socket(context, kind.ROUTER, bind=[settings.request_endpoint], limits=client))
            self.xpub = keep(
                open_socket(context, kind.XPUB, bind=[settings.subscribe_endpoint], limits=client, options=manual)
            )
            self.fast_path = keep(open_socket(context, kind.XSUB, bind=[settings.fast_path_endpoint], limits=inner))
            self.published = keep(
                open_socket(context, kind.XSUB, connect=[settings.manager_publish_endpoint], limits=inner)
            )
            self.manager = keep(
                open_socket(context, kind.DEALER, connect=[settings.manager_request_endpoint], limits=manager)
            )
            self._canary = SubscriptionCanary(context, self.xpub)
            opened.callback(self._canary.close)
            self._opened = opened.pop_all()
        self._fast_passage = Passage(
            self.fast_path,
            self.xpub,
            is_wanted=engine.passes_fast_path,
            on_misshaped=engine.on_misshaped,
            types_of=engine.fast_path_types,
            broadcast=broadcast,
            is_native=settings.native_forwarding,
        )
        self._published_passage = Passage(
            self.published,
            self.xpub,
            is_wanted=lambda *message: engine.passes_published(*message, now_ns=time.time_ns()),
            on_misshaped=engine.on_misshaped,
            types_of=engine.published_types,
            broadcast=broadcast,
            is_native=settings.native_forwarding,
        )
        self._unsure: set[bytes] = set()
        self._look_due_ns = 0
        self._requests, self._beats = Redial(_REDIAL_NS), Redial(_REDIAL_NS)

        self._rings, self._ring_trouble = self._open_rings(), ""

    def _open_rings(self) -> RingIntake | None:
        settings = self._settings
        if not settings.tick_rings or settings.shared_memory == SHARED_MEMORY_OFF:
            return None
        try:
            return RingIntake(
                self._engine.relay_epoch,
                self.xpub,
                folder=settings.shared_memory,
                is_wanted=self._engine.passes_fast_path,
                types_of=self._engine.fast_path_types,
                broadcast=self._broadcast,
            )
        except LookupError as error:
            _LOG.info("no_tick_rings", reason=str(error))
            return None

    @property
    def is_native(self) -> bool:
        """Whether market data pass through the accelerator."""
        return self._fast_passage.is_native

    def run(self, stopping: Callable[[], bool], waker: Waker) -> None:
        """Run until ``stopping``; then let replies in flight go out, up to the drain time."""
        now_ns = time.time_ns
        if reason := pin_loop(self._settings.processors):
            _LOG.warning("loop_not_pinned", processors=self._settings.processors, reason=reason)
        handlers: list[tuple[Socket, Callable[[list[bytes]], Iterable[Command]]]] = [
            (self.xpub, self._on_subscription),
            (self.manager, self._engine.on_reply),
            (self.router, lambda frames: self._engine.on_request(frames, now_ns())),
        ]
        self._execute(self._engine.start(is_socket_asked=self._canary.is_supported))
        poller = Poller([*(socket for socket, _ in handlers), self.published, self.fast_path, waker.fileno()])
        if self._rings is not None:
            send(self.fast_path, [b"\x01" + self._rings.topic])
        drain_until: float | None = None
        while drain_until is None or (self._engine.in_flight and time.monotonic() < drain_until):
            ready = poller.wait(self._sleep_ms())
            if self._rings is not None:
                self._counters.add("fast_path.by_ring", self._rings.turn_all(_BURST))
            if self.fast_path in ready:
                _, sent = self._fast_passage.turn(_BURST)
                self._counters.add("fast_path.forwarded", sent)
            if self.published in ready:
                self._forward_published()
            for socket, handle in handlers:
                if socket in ready:
                    self._drain(socket, handle)
            if time.monotonic_ns() >= self._look_due_ns:
                self._look(now_ns(), poller)
            if drain_until is None and stopping():
                drain_until = time.monotonic() + self._settings.drain_ms / 1000
                handlers.pop()
                poller.remove(self.router)

    def _sleep_ms(self) -> int:
        """For how long the poller may sleep; whoever writes into a ring knows then that it has to wake."""
        if self._rings is None:
            return _TICK_MS
        if self._settings.idle == "spin" and self._rings.readers:
            return 0
        return self._rings.arm(_TICK_MS)

    def close(self) -> None:
        """Close all sockets and rings."""
        if self._rings is not None:
            self._rings.close()
        self._opened.close()

    def _drain(self, socket: Socket, handle: Callable[[list[bytes]], Iterable[Command]]) -> None:
        """Handle a bounded burst, so that no socket starves another."""
        for _ in range(_SUBSCRIPTIONS_BURST if socket is self.xpub else _BURST):
            frames = receive(socket)
            if frames is None:
                return
            self._execute(handle(frames))

    def _forward_published(self) -> None:
        """Pass on a bounded burst of the manager's messages, untouched."""
        received, sent = self._published_passage.turn(_BURST)
        self._counters.add("published.forwarded", sent)
        if received:
            # Beats may be late, but what comes at all shows that the connection is alive: it is not cut off.
            self._beats.worked()

    def _look(self, now_ns: int, poller: Poller) -> None:
        """Do what is due; not at every turn, of which a stream of ticks makes thousands a second."""
        if self._rings is not None:
            self._look_at_rings(self._rings, poller)
        self._look_due_ns = time.monotonic_ns() + _LOOK_NS
        self._execute(self._engine.on_tick(now_ns))
        self._watch_beats(now_ns)
        self._counters.set("topics.upstream", self._engine.topics_upstream)
        if self._broadcast is not None:
            self._counters.set("broadcast.topics", self._broadcast.topics)
            self._counters.set("broadcast.written", self._broadcast.records())
            self._counters.set("broadcast.unfit", self._broadcast.unfit)
            self._counters.set("broadcast.refused", self._broadcast.refused)

    def _look_at_rings(self, rings: RingIntake, poller: Poller) -> None:
        begun, ended = rings.look(time.monotonic_ns())
        for reader in begun:
            poller.add(reader.descriptor)
        for reader in ended:
            poller.remove(reader.descriptor)
            reader.close()
        if rings.trouble != self._ring_trouble:
            # Rings that are open go on; a new ingestor uses the socket meanwhile.
            self._ring_trouble = rings.trouble
            _LOG.warning("tick_rings_not_seen" if rings.trouble else "tick_rings_seen_again", reason=rings.trouble)
        if begun or ended:
            _LOG.info("tick_rings_changed", begun=len(begun), ended=len(ended), open=len(rings.readers))
            self._counters.set("fast_path.rings", len(rings.readers))

    def _watch_beats(self, now_ns: int) -> None:
        """Connect to the manager's publisher anew after a long silence; libzmq sends the subscriptions again."""
        if self._engine.manager_available(now_ns):
            self._beats.worked()
        elif self._beats.failed(time.monotonic_ns()):
            self._counters.add("publisher.redialled")
            redial(self.published, self._settings.manager_publish_endpoint)

    def _on_subscription(self, frames: list[bytes]) -> Iterable[Command]:
        if self._canary.is_mark(frames):
            return self._recheck()
        if self._canary.is_echo(frames):
            return []
        wanted, topic, commands = self._engine.on_subscription(frames)
        if wanted is not None:
            accept_subscription(self.xpub, topic, on=wanted)
        return commands

    def _recheck(self) -> list[Command]:
        """Ask about topics that are in doubt; at most once for many unsubscriptions."""
        unsure = [self._unsure.pop() for _ in range(min(len(self._unsure), _SUBSCRIPTIONS_BURST))]
        if self._unsure:
            self._canary.ask()
        commands: list[Command] = []
        for topic in unsure:
            is_demanded = self._canary.is_held(DEMAND_PREFIX + topic)
            is_sbe = self._canary.is_held(SBE_DEMAND_PREFIX + topic)
            is_held = is_demanded or is_sbe or self._canary.is_held(topic)
            commands += self._engine.on_held(topic, is_held=is_held, is_demanded=is_demanded, is_sbe=is_sbe)
        return commands

    def _switch(self, topic: bytes, *, on: bool, is_sbe: bool) -> None:
        """Begin or end to broadcast a topic; what knows it natively learns of it with its next message."""
        if self._broadcast is None:
            return
        self._broadcast.want(topic, on=on, is_sbe=is_sbe)
        for way in (self._fast_passage, self._published_passage, self._rings):
            if way is not None:
                way.forget(topic)

    def _execute(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case Publish(frames):
                    send(self.xpub, frames)
                case SendToClient(frames):
                    if send(self.router, frames) is not SendOutcome.SENT:
                        self._counters.add("replies.undeliverable")
                case SendToManager(frames, otherwise):
                    if send(self.manager, frames) is SendOutcome.SENT:
                        self._requests.worked()
                        continue
                    self._counters.add("requests.unavailable")
                    self._engine.in_flight -= 1
                    self._execute([otherwise])
                    if self._requests.failed(time.monotonic_ns()):
                        self._counters.add("manager.redialled")
                        redial(self.manager, self._settings.manager_request_endpoint)
                case Recheck(topic):
                    self._unsure.add(topic)
                    self._canary.ask()
                case Broadcast(topic, on, is_sbe):
                    self._switch(topic, on=on, is_sbe=is_sbe)
                case Upstream(topic, on):
                    for socket in (self.published, self.fast_path):
                        (subscribe if on else unsubscribe)(socket, topic)
