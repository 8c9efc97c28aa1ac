"""What the gateway's engine asks its loop to do."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Command", "Publish", "Recheck", "SendToClient", "SendToManager", "Upstream"]


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
class Recheck:
    """Ask the client XPUB whether anybody still holds a topic, and tell the engine by ``on_held``."""

    topic: bytes


Command = SendToClient | SendToManager | Publish | Upstream | Recheck
