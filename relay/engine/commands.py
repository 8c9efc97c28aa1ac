"""What the gateway's engine asks its loop to do."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Broadcast", "Command", "Publish", "Recheck", "SendToClient", "SendToManager", "Upstream"]


@dataclass(frozen=True, slots=True)
class SendToClient:
    """Send on the client ROUTER: routing frames, version, body."""

    frames: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class SendToManager:
    """Send on the DEALER; when its queue is full or nobody is there, send ``otherwise`` to the client."""

    frames: tuple[bytes, ...]
    otherwise: SendToClient


@dataclass(frozen=True, slots=True)
class Publish:
    """Send on the client XPUB: topic, version, body."""

    frames: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Upstream:
    """Subscribe (or unsubscribe) a topic at the publishers."""

    topic: bytes
    on: bool


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Write a topic's messages into the clients' broadcast (or no longer).

    Attributes:
        is_sbe: in SBE. Said at every such demand, so that whoever joins is told the ticker's number.
    """

    topic: bytes
    on: bool
    is_sbe: bool = False


@dataclass(frozen=True, slots=True)
class Recheck:
    """Ask the client XPUB whether anybody holds a topic, as it is, by ``@`` or by ``@@``; tell it by ``on_held``."""

    topic: bytes


Command = SendToClient | SendToManager | Publish | Upstream | Broadcast | Recheck
