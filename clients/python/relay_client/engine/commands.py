"""What the client's engine asks its loop to do, and the times it goes by."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import Message

from relay.errors import RelayError

__all__ = [
    "CloseBroadcast",
    "Command",
    "EndFeeds",
    "Fail",
    "InForce",
    "OpenBroadcast",
    "ReadBroadcast",
    "Reconnect",
    "RelayAway",
    "Resolve",
    "Send",
    "SessionTimes",
    "Subscribe",
    "Unsubscribe",
]

_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message on the request socket; when it cannot go out now, tell the engine by ``on_unsent``."""

    correlation: int
    message: Message


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Subscribe a topic."""

    topic: bytes


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Take a subscription back."""

    topic: bytes


@dataclass(frozen=True, slots=True)
class Reconnect:
    """Close both sockets and open new ones; the subscriptions follow as commands."""


@dataclass(frozen=True, slots=True)
class Resolve:
    """What a caller waits for under a key has come."""

    key: int
    message: Message


@dataclass(frozen=True, slots=True)
class Fail:
    """What a caller waits for under a key will not come."""

    key: int
    error: RelayError


@dataclass(frozen=True, slots=True)
class InForce:
    """Everything subscribed so far is in force at the relay; after a cut, frames may have been lost before."""

    was_cut: bool


@dataclass(frozen=True, slots=True)
class RelayAway:
    """The relay has been silent for too long."""


@dataclass(frozen=True, slots=True)
class OpenBroadcast:
    """Open the relay's broadcast, and tell the engine by ``on_broadcast_opened`` or ``on_broadcast_refused``.

    Attributes:
        name, host_id: as the relay told them.
        relay_epoch: of the relay that told them.
        is_sbe: whether topics that have a form in SBE are demanded in it: the client wants it, and the relay writes it.
    """

    name: str
    host_id: str
    relay_epoch: int
    is_sbe: bool = False


@dataclass(frozen=True, slots=True)
class ReadBroadcast:
    """Everything of before has come by the socket: read the broadcast that was opened, from where it was opened on."""


@dataclass(frozen=True, slots=True)
class CloseBroadcast:
    """Read what is left in the relay's broadcast, and then no longer."""


@dataclass(frozen=True, slots=True)
class EndFeeds:
    """End all subscriptions of market data with an error."""

    error: RelayError


Command = (
    Send
    | Subscribe
    | Unsubscribe
    | Resolve
    | Fail
    | Reconnect
    | InForce
    | RelayAway
    | OpenBroadcast
    | ReadBroadcast
    | CloseBroadcast
    | EndFeeds
)


@dataclass(frozen=True, slots=True)
class SessionTimes:
    """Durations of the engine.

    Attributes:
        reply_ns: after it an unanswered message is taken for lost.
        beat_ns: silence after which the connection is made anew.
        status_ns: how often the status of an awaited request is asked.
        backoff_ns, backoff_max_ns: wait after "try again", doubled each time.
        unsent_ns: wait after a message that could not go out (not connected yet).
    """

    reply_ns: int = 2_000 * _MS
    beat_ns: int = 3_000 * _MS
    status_ns: int = 10_000 * _MS
    backoff_ns: int = 250 * _MS
    backoff_max_ns: int = 5_000 * _MS
    unsent_ns: int = 20 * _MS

    def backoff(self, failures: int) -> int:
        """Return the wait after so many failures in a row (1 for the first)."""
        return min(self.backoff_max_ns, self.backoff_ns << min(failures - 1, 16))
