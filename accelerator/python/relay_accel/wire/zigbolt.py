"""ZigBolt's reliable channel: packets, NAK bodies, fragments. All numbers are unsigned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import ClassVar

from relay_accel._wire import reassembly_key
from relay_accel.wire.value import WireValue

__all__ = ["Fragment", "FragmentFlag", "NakBody", "NetworkPacket", "PacketType", "reassembly_key"]


class PacketType(IntEnum):
    """What a packet is."""

    DATA = 0
    NAK = 1
    HEARTBEAT = 2
    SETUP = 3
    TEARDOWN = 4


class FragmentFlag(IntFlag):
    """Where in its message a fragment is."""

    BEGIN = 1
    END = 2


@dataclass(frozen=True, slots=True)
class NetworkPacket(WireValue):
    """Header of 25 bytes and what it carries; ``sequence`` of a heartbeat is the receiver's contiguous position.

    A NAK carries a :class:`NakBody`, data with ``is_fragment`` a :class:`Fragment`, a heartbeat nothing.
    """

    _kind: ClassVar[str] = "zigbolt.packet"
    packet_type: int
    session_id: int
    stream_id: int
    sequence: int
    payload: bytes = b""
    is_fragment: bool = False


@dataclass(frozen=True, slots=True)
class NakBody(WireValue):
    """``count`` packets, one at least, that a receiver misses, from ``from_sequence`` on."""

    _kind: ClassVar[str] = "zigbolt.nak"
    session_id: int
    stream_id: int
    from_sequence: int
    count: int


@dataclass(frozen=True, slots=True)
class Fragment(WireValue):
    """A part of a message; lengths and offset in bytes. Its flags follow from them.

    Fragments of one message share ``reassembly_key(stream_id, message_id)`` within a session.
    """

    _kind: ClassVar[str] = "zigbolt.fragment"
    total_length: int
    fragment_offset: int
    message_id: int
    payload: bytes

    @property
    def flags(self) -> FragmentFlag:
        """Begin and end, as offset and lengths have them."""
        end = self.fragment_offset + len(self.payload) == self.total_length
        begin = FragmentFlag.BEGIN if self.fragment_offset == 0 else FragmentFlag(0)
        return begin | (FragmentFlag.END if end else FragmentFlag(0))
