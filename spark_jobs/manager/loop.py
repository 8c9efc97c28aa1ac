"""The poll loop: sockets in, service, time."""

from __future__ import annotations

import time
from collections.abc import Callable

from relay.transport import (
    VERBOSE_SUBSCRIPTIONS,
    Context,
    Poller,
    Socket,
    SocketKind,
    SocketLimits,
    Waker,
    open_socket,
    receive,
)
from spark_jobs.manager.service import ManagerService, ManagerSockets
from spark_jobs.manager.settings import ManagerSettings

__all__ = ["close_sockets", "open_sockets", "run_loop"]

_TURN_MESSAGES_MAX = 256
_TICK_MS = 100
_GOODBYE_MS = 500


def open_sockets(context: Context, settings: ManagerSettings) -> ManagerSockets:
    """Bind the four sockets.

    Raises:
        SettingsError: an endpoint is taken or wrong.
    """
    # The bound of a frame is wider than that of a request: libzmq drops the peer that exceeds it, and the peer
    # here is a relay with all of its clients, so a request that is too large is answered instead.
    limits = SocketLimits(settings.queue_max, settings.queue_max, settings.message_bytes_max)
    opened: list[Socket] = []
    try:
        for kind, endpoint, options in (
            (SocketKind.ROUTER, settings.request_endpoint, ()),
            (SocketKind.ROUTER, settings.work_endpoint, ()),
            (SocketKind.PULL, settings.notification_endpoint, ()),
            (SocketKind.XPUB, settings.publish_endpoint, (VERBOSE_SUBSCRIPTIONS,)),
        ):
            opened.append(open_socket(context, kind, bind=[endpoint], limits=limits, options=options))
    except BaseException:
        for socket in opened:
            socket.close(0)
        raise
    return ManagerSockets(*opened)


def close_sockets(sockets: ManagerSockets) -> None:
    """Close the sockets; answers on their way get half a second."""
    for socket in (sockets.requests, sockets.work, sockets.notifications, sockets.publish):
        socket.close(_GOODBYE_MS)


def run_loop(service: ManagerService, sockets: ManagerSockets, waker: Waker, is_stopping: Callable[[], bool]) -> None:
    """Serve until told to stop; what has arrived by then is still handled."""
    poller = Poller([sockets.requests, sockets.work, sockets.notifications, sockets.publish, waker.fileno()])
    while not is_stopping():
        poller.wait(_TICK_MS)
        waker.drain()
        turn(service, sockets)
    turn(service, sockets)


def turn(service: ManagerService, sockets: ManagerSockets) -> None:
    """Handle what is there, a bounded number of messages from each socket, then what is due."""
    now_ns = time.time_ns()
    service.on_subscriptions(now_ns=now_ns)
    if requests := _receive_some(sockets.requests):
        service.on_requests(requests, now_ns=now_ns)
    if work := _receive_some(sockets.work):
        service.on_work(work, now_ns=now_ns)
    if notifications := _receive_some(sockets.notifications):
        service.on_notifications(notifications, now_ns=now_ns)
    service.on_lookups(now_ns=now_ns)
    service.tick(now_ns=now_ns)


def _receive_some(socket: Socket) -> list[list[bytes]]:
    messages: list[list[bytes]] = []
    while len(messages) < _TURN_MESSAGES_MAX and (frames := receive(socket)) is not None:
        messages.append(frames)
    return messages
