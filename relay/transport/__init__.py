"""ZeroMQ's one home: sockets with bounded queues, heartbeats and outcomes as values."""

from relay.transport.broadcast import BroadcastReader, ClientBroadcast, split_record
from relay.transport.canary import SubscriptionCanary
from relay.transport.connection_watch import ConnectionWatch
from relay.transport.passage import Passage
from relay.transport.pinning import pin_loop
from relay.transport.sockets import (
    MANUAL_SUBSCRIPTIONS,
    VERBOSE_SUBSCRIPTIONS,
    AsyncSocket,
    Context,
    Poller,
    SendOutcome,
    Socket,
    SocketKind,
    SocketLimits,
    accept_subscription,
    new_context,
    open_async_socket,
    open_socket,
    receive,
    redial,
    send,
    subscribe,
    unsubscribe,
)
from relay.transport.tick_ring import RingIntake, RingReader, RingWriter
from relay.transport.waker import Waker

__all__ = [
    "MANUAL_SUBSCRIPTIONS",
    "VERBOSE_SUBSCRIPTIONS",
    "AsyncSocket",
    "BroadcastReader",
    "ClientBroadcast",
    "ConnectionWatch",
    "Context",
    "Passage",
    "Poller",
    "RingIntake",
    "RingReader",
    "RingWriter",
    "SendOutcome",
    "Socket",
    "SocketKind",
    "SocketLimits",
    "SubscriptionCanary",
    "Waker",
    "accept_subscription",
    "new_context",
    "open_async_socket",
    "open_socket",
    "pin_loop",
    "receive",
    "redial",
    "send",
    "split_record",
    "subscribe",
    "unsubscribe",
]
