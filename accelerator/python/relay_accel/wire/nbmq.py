"""nbmq: frames, one a datagram, and the hashes that name messages, frames and sessions. Big-endian on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from relay_accel._wire import fnv1a64, message_id, session_id
from relay_accel.wire.value import WireValue

__all__ = [
    "CHUNK_LENGTH_MAX",
    "FRAME_LENGTH_MAX",
    "ControlFrame",
    "ControlKind",
    "DataFrame",
    "fnv1a64",
    "message_id",
    "session_id",
]

FRAME_LENGTH_MAX = 500
"""The longest frame, in bytes."""
CHUNK_LENGTH_MAX = 466
"""The longest chunk of a part, in bytes."""


class ControlKind(IntEnum):
    """What a control frame says."""

    CONNECT = 1
    CONNECTED = 2
    DISCONNECTED = 3
    HEARTBEAT = 4
    ACK = 5


@dataclass(frozen=True, slots=True)
class DataFrame(WireValue):
    """A chunk of part ``part_index`` of a message of ``part_count`` parts; sizes and offset in bytes."""

    _kind: ClassVar[str] = "nbmq.data"
    session_id: int
    message_id: int
    part_count: int
    part_index: int
    message_size: int
    part_size: int
    chunk_offset: int
    chunk: bytes


@dataclass(frozen=True, slots=True)
class ControlFrame(WireValue):
    """A frame without data: ``session_id`` is 0 in a Connect; an Ack, and nothing else, has ``frame_hash``.

    The hash is :func:`fnv1a64` of the whole data frame.
    """

    _kind: ClassVar[str] = "nbmq.control"
    kind: int
    session_id: int = 0
    frame_hash: int | None = None
