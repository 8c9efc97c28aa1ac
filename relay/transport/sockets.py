"""Sockets with the options that every part needs, and sends and receives whose outcomes are values."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

import zmq
import zmq.asyncio
from zmq.backend import Socket as _Raw

from relay.errors import RelayError, RetryableError, SettingsError
from relay.transport.ports import port_holder

__all__ = [
    "MANUAL_SUBSCRIPTIONS",
    "VERBOSE_SUBSCRIPTIONS",
    "AsyncSocket",
    "Context",
    "Poller",
    "SendOutcome",
    "Socket",
    "SocketKind",
    "SocketLimits",
    "accept_subscription",
    "connect_socket",
    "library_version",
    "new_context",
    "open_async_socket",
    "open_socket",
    "receive",
    "redial",
    "send",
    "subscribe",
    "unsubscribe",
]

Context = zmq.Context[zmq.Socket[bytes]]
Socket = zmq.Socket[bytes]
AsyncSocket = zmq.asyncio.Socket

MANUAL_SUBSCRIPTIONS: tuple[int, int] = (zmq.XPUB_MANUAL, 1)
"""Option of an XPUB whose owner accepts each subscription by :func:`accept_subscription`."""
VERBOSE_SUBSCRIPTIONS: tuple[int, int] = (zmq.XPUB_VERBOSE, 1)
"""Option of an XPUB that shall see every subscription, also repeated ones."""

_LIBZMQ_FLOOR = (4, 3, 2)
_SUBSCRIPTIONS_MAX = 1_000_000
"""Subscriptions queue towards publishers like messages, all at once after a reconnect; what is over the bound is lost
without a word, so it is out of reach."""
_LAST, _MORE, _HAS_MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE), int(zmq.RCVMORE)


class SocketKind(IntEnum):
    """Socket types in use."""

    PAIR = zmq.PAIR
    PUB = zmq.PUB
    SUB = zmq.SUB
    REQ = zmq.REQ
    DEALER = zmq.DEALER
    ROUTER = zmq.ROUTER
    PULL = zmq.PULL
    PUSH = zmq.PUSH
    XPUB = zmq.XPUB
    XSUB = zmq.XSUB


class SendOutcome(Enum):
    """What became of a non-blocking send."""

    SENT = "sent"
    FULL = "full"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class SocketLimits:
    """Bounds of one socket.

    Attributes:
        send_queue_max, receive_queue_max: messages for each peer (high-water marks); 0 would mean no bound
            and is refused. What SUB and XSUB send are subscriptions, which have a wide bound of their own.
        frame_bytes_max: a peer that sends a bigger frame is disconnected by libzmq; None for no bound.
        heartbeat_ms: ZMTP heartbeat interval; a peer that is silent for three of them is dropped.
        immediate: queue only for peers that are connected (a DEALER towards one server).
    """

    send_queue_max: int = 1_000
    receive_queue_max: int = 1_000
    frame_bytes_max: int | None = None
    heartbeat_ms: int = 5_000
    immediate: bool = False

    def __post_init__(self) -> None:
        if self.send_queue_max < 1 or self.receive_queue_max < 1:
            raise SettingsError("expected queue bounds of at least 1, got 0 (in ZeroMQ that means no bound)")


def new_context(*, io_threads: int = 1, sockets_max: int = 1023) -> Context:
    """Return a ZeroMQ context.

    Raises:
        SettingsError: the linked libzmq is older than 4.3.2, which has known remote faults.
    """
    if zmq.zmq_version_info() < _LIBZMQ_FLOOR:
        raise SettingsError(f"expected libzmq of at least 4.3.2, got {zmq.zmq_version()}; upgrade pyzmq")
    context = zmq.Context(io_threads)
    context.set(zmq.MAX_SOCKETS, sockets_max)
    return context


def library_version() -> str:
    """Return the linked libzmq's version and pyzmq's."""
    return f"libzmq {zmq.zmq_version()}, pyzmq {zmq.pyzmq_version()}"


def open_socket(
    context: Context,
    kind: SocketKind,
    *,
    bind: Sequence[str] = (),
    connect: Sequence[str] = (),
    limits: SocketLimits | None = None,
    options: Sequence[tuple[int, int | bytes]] = (),
) -> Socket:
    """Open, configure, bind and connect a socket.

    Args:
        context: from :func:`new_context`.
        kind: socket type.
        bind, connect: endpoints such as ``tcp://127.0.0.1:5559``.
        limits: queue, frame and heartbeat bounds.
        options: further ``zmq`` options, set before bind and connect.

    Raises:
        SettingsError: an address cannot be bound; names the process that holds the port when it can be seen.
    """
    socket = context.socket(kind)
    try:
        _configure(socket, limits or SocketLimits(), options)
        _attach(socket, bind, connect)
    except BaseException:
        socket.close(0)
        raise
    return socket


def open_async_socket(
    context: Context,
    kind: SocketKind,
    *,
    bind: Sequence[str] = (),
    connect: Sequence[str] = (),
    limits: SocketLimits | None = None,
) -> AsyncSocket:
    """Like :func:`open_socket`, for use inside a running asyncio loop."""
    socket = zmq.asyncio.Context(shadow=context.underlying).socket(kind)
    try:
        _configure(socket, limits or SocketLimits(), ())
        _attach(socket, bind, connect)
    except BaseException:
        socket.close(0)
        raise
    return socket


def send(socket: Socket, frames: Sequence[bytes]) -> SendOutcome:
    """Send without blocking; a full queue and an unknown ROUTER peer are outcomes, not errors."""
    try:
        # Frame by frame through the binding itself: a quarter of what send_multipart costs.
        for frame in frames[:-1]:
            _Raw.send(socket, frame, _MORE, True, False)
        _Raw.send(socket, frames[-1], _LAST, True, False)
    except zmq.Again:
        return SendOutcome.FULL
    except zmq.ZMQError as error:
        if error.errno == zmq.EHOSTUNREACH:
            return SendOutcome.UNREACHABLE
        raise RetryableError(f"send failed: {error}") from error
    return SendOutcome.SENT


def receive(socket: Socket) -> list[bytes] | None:
    """Receive all frames of one message without blocking; None when there is none."""
    try:
        frames: list[bytes] = [_Raw.recv(socket, _LAST, True, False)]
        while _Raw.get(socket, _HAS_MORE):
            frames.append(_Raw.recv(socket, _LAST, True, False))
    except zmq.Again:
        return None
    return frames


def connect_socket(socket: zmq.Socket[bytes] | AsyncSocket, endpoint: str) -> None:
    """Connect a socket that was opened without an endpoint.

    Raises:
        SettingsError: the endpoint makes no sense.
    """
    try:
        socket.connect(endpoint)
    except zmq.ZMQError as error:
        raise SettingsError(f"cannot connect to {endpoint}: {error}; expected tcp://HOST:PORT") from error


def redial(socket: Socket | AsyncSocket, endpoint: str) -> None:
    """Drop a connection, if there is still one, and make it anew; subscriptions of the socket go with it.

    libzmq tries again after every network error, but gives up for good when a peer speaks another protocol: a foreign
    process that held the port for a moment would cut the two off for ever.
    """
    with contextlib.suppress(zmq.ZMQError):
        socket.disconnect(endpoint)
    socket.connect(endpoint)


def subscribe(socket: Socket, topic: bytes) -> None:
    """Subscribe a SUB socket, or send the subscription upstream from an XSUB socket."""
    _subscription(socket, topic, on=True)


def unsubscribe(socket: Socket, topic: bytes) -> None:
    """Take one subscription back."""
    _subscription(socket, topic, on=False)


def accept_subscription(socket: Socket, topic: bytes, *, on: bool) -> None:
    """Put a subscription of the peer last received from into force (or out of it) on a manual XPUB.

    Must be called before the next receive: the socket option acts on the pipe that was read last.
    """
    socket.setsockopt(zmq.SUBSCRIBE if on else zmq.UNSUBSCRIBE, topic)


class Poller:
    """Waits for input on sockets and file descriptors."""

    def __init__(self, sources: Sequence[Socket | int] = ()) -> None:
        self._poller = zmq.Poller()
        for source in sources:
            self.add(source)

    def add(self, source: Socket | int) -> None:
        """Watch a socket or a file descriptor for input."""
        self._poller.register(source, zmq.POLLIN)

    def remove(self, source: Socket | int) -> None:
        """Stop watching."""
        self._poller.unregister(source)

    def wait(self, timeout_ms: int) -> set[Socket | int]:
        """Return what has input, at the latest after ``timeout_ms``."""
        return {source for source, _ in self._poller.poll(timeout_ms)}


def _configure(
    socket: zmq.Socket[bytes] | AsyncSocket, limits: SocketLimits, options: Sequence[tuple[int, int | bytes]]
) -> None:
    socket.setsockopt(zmq.LINGER, 0)
    kind = socket.getsockopt(zmq.TYPE)
    subscribes = kind in (zmq.SUB, zmq.XSUB)
    socket.setsockopt(zmq.SNDHWM, _SUBSCRIPTIONS_MAX if subscribes else limits.send_queue_max)
    socket.setsockopt(zmq.RCVHWM, limits.receive_queue_max)
    socket.setsockopt(zmq.HEARTBEAT_IVL, limits.heartbeat_ms)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3 * limits.heartbeat_ms)
    socket.setsockopt(zmq.HEARTBEAT_TTL, 3 * limits.heartbeat_ms)
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 30)
    socket.setsockopt(zmq.HANDSHAKE_IVL, 10_000)
    socket.setsockopt(zmq.RECONNECT_IVL, 50)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 2_000)
    if limits.frame_bytes_max is not None:
        socket.setsockopt(zmq.MAXMSGSIZE, limits.frame_bytes_max)
    if limits.immediate:
        socket.setsockopt(zmq.IMMEDIATE, 1)
    if kind == zmq.ROUTER:
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    if kind == zmq.REQ:
        socket.setsockopt(zmq.REQ_RELAXED, 1)
        socket.setsockopt(zmq.REQ_CORRELATE, 1)
    for option, value in options:
        socket.setsockopt(option, value)


def _attach(socket: zmq.Socket[bytes] | AsyncSocket, bind: Sequence[str], connect: Sequence[str]) -> None:
    for endpoint in bind:
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            raise SettingsError(f"cannot bind {endpoint}: {error}{port_holder(endpoint)}") from error
    for endpoint in connect:
        connect_socket(socket, endpoint)


def _subscription(socket: Socket, topic: bytes, *, on: bool) -> None:
    kind = socket.getsockopt(zmq.TYPE)
    if kind == zmq.SUB:
        socket.setsockopt(zmq.SUBSCRIBE if on else zmq.UNSUBSCRIBE, topic)
    elif kind == zmq.XSUB:
        if send(socket, [(b"\x01" if on else b"\x00") + topic]) is not SendOutcome.SENT:
            raise RetryableError("the upstream queue for subscriptions is full")
    else:
        raise RelayError(f"expected a SUB or XSUB socket, got type {int(kind)}")
