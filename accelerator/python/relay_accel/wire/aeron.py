"""Aeron's UDP protocol, version 0: frames as frozen values.

Ids and offsets are signed 32-bit numbers; receiver ids, tags and reserved values signed 64-bit ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any, ClassVar, Self

from relay_accel import _wire
from relay_accel._wire import TermPositions
from relay_accel.wire.value import WireValue, refusal

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "FRAME_ALIGNMENT",
    "DataFlag",
    "DataFrame",
    "ErrorFrame",
    "FrameHeader",
    "FrameType",
    "NakFrame",
    "PadFrame",
    "ResolutionEntry",
    "ResolutionFrame",
    "RttFlag",
    "RttFrame",
    "SetupFlag",
    "SetupFrame",
    "StatusMessageFlag",
    "StatusMessageFrame",
    "TermPositions",
    "decode",
    "walk",
]

FRAME_ALIGNMENT = 32
"""Frames begin at multiples of so many bytes, in a term and in a datagram."""


class FrameType(IntEnum):
    """What a frame is."""

    PAD = 0
    DATA = 1
    NAK = 2
    STATUS_MESSAGE = 3
    ERROR = 4
    SETUP = 5
    RTT_MEASUREMENT = 6
    RESOLUTION = 7


class DataFlag(IntFlag):
    """Of DATA: fragments of a message, and what heartbeats say."""

    BEGIN = 0x80
    END = 0x40
    END_OF_STREAM = 0x20
    REVOKED = 0x10


class StatusMessageFlag(IntFlag):
    """Of SM."""

    SEND_SETUP = 0x80
    END_OF_STREAM = 0x40


class SetupFlag(IntFlag):
    """Of SETUP."""

    SEND_RESPONSE_SETUP = 0x80
    GROUP = 0x40


class RttFlag(IntFlag):
    """Of RTTM."""

    REPLY = 0x80


@dataclass(frozen=True, slots=True)
class FrameHeader(WireValue):
    """The first eight bytes of every frame: what a reader looks at first.

    ``frame_length`` counts these bytes and is 0 in a heartbeat; ``frame_type`` may be one that has no class here.
    """

    _kind: ClassVar[str] = "aeron.header"
    frame_length: int
    version: int
    flags: int
    frame_type: int


@dataclass(frozen=True, slots=True)
class DataFrame(WireValue):
    """DATA: a fragment of a message, at a place in a term that is a multiple of 32.

    ``payload`` None is a heartbeat: its frame length says 0, and its header is a datagram of its own.
    """

    _kind: ClassVar[str] = "aeron.data"
    term_offset: int
    session_id: int
    stream_id: int
    term_id: int
    payload: bytes | None = b""
    flags: int = DataFlag.BEGIN | DataFlag.END
    reserved_value: int = 0


@dataclass(frozen=True, slots=True)
class PadFrame(WireValue):
    """PAD: ``frame_length`` bytes of a term that hold no message. Its header alone travels."""

    _kind: ClassVar[str] = "aeron.pad"
    frame_length: int
    term_offset: int
    session_id: int
    stream_id: int
    term_id: int
    flags: int = DataFlag.BEGIN | DataFlag.END
    reserved_value: int = 0


@dataclass(frozen=True, slots=True)
class StatusMessageFrame(WireValue):
    """SM: how far a receiver has read, for how many bytes it has room, and which group it counts itself to."""

    _kind: ClassVar[str] = "aeron.status_message"
    session_id: int
    stream_id: int
    consumption_term_id: int
    consumption_term_offset: int
    receiver_window: int
    receiver_id: int
    group_tag: int | None = None
    flags: int = 0


@dataclass(frozen=True, slots=True)
class NakFrame(WireValue):
    """NAK: ``length`` bytes that a receiver misses."""

    _kind: ClassVar[str] = "aeron.nak"
    session_id: int
    stream_id: int
    term_id: int
    term_offset: int
    length: int
    flags: int = 0


@dataclass(frozen=True, slots=True)
class SetupFrame(WireValue):
    """SETUP: what a receiver has to know of a stream. Lengths in bytes; ``ttl`` 0 is what the system says."""

    _kind: ClassVar[str] = "aeron.setup"
    term_offset: int
    session_id: int
    stream_id: int
    initial_term_id: int
    active_term_id: int
    term_length: int
    mtu: int
    ttl: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class RttFrame(WireValue):
    """RTTM: the question for the time to a receiver and back (``flags`` 0), or its answer (``RttFlag.REPLY``)."""

    _kind: ClassVar[str] = "aeron.rtt"
    session_id: int
    stream_id: int
    echo_timestamp_ns: int
    reception_delta_ns: int
    receiver_id: int
    flags: int = 0


@dataclass(frozen=True, slots=True)
class ErrorFrame(WireValue):
    """ERR: a receiver refuses a stream. ``text`` is at most 1,023 bytes of a stranger's text.

    The flag 0x08 follows ``group_tag``.
    """

    _kind: ClassVar[str] = "aeron.error"
    session_id: int
    stream_id: int
    receiver_id: int
    error_code: int
    text: bytes = b""
    group_tag: int | None = None
    flags: int = 0

    @property
    def message(self) -> str:
        """The text, with a mark where it is no UTF-8."""
        return self.text.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class ResolutionEntry(WireValue):
    """One driver of a RES frame: its name (512 bytes at most) and where it is; flag 0x80: it is the sender itself."""

    _kind: ClassVar[str] = "aeron.resolution_entry"
    address: IPv4Address | IPv6Address
    udp_port: int
    name: bytes
    age_in_ms: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class ResolutionFrame(WireValue):
    """RES: drivers and where they are."""

    _kind: ClassVar[str] = "aeron.resolution"
    entries: tuple[ResolutionEntry, ...]
    flags: int = 0

    @classmethod
    def _of(cls, values: tuple[Any, ...]) -> Self:
        rows, flags = values
        return cls(tuple(ResolutionEntry(*row) for row in rows), flags)

    def _values(self) -> tuple[Any, ...]:
        return tuple(entry._values() for entry in self.entries), self.flags


_FRAMES: tuple[type[WireValue], ...] = (
    PadFrame,
    DataFrame,
    NakFrame,
    StatusMessageFrame,
    ErrorFrame,
    SetupFrame,
    RttFrame,
    ResolutionFrame,
)
_BY_KIND = {frame._kind: frame for frame in _FRAMES}


def decode(buffer: Buffer, offset: int = 0) -> WireValue:
    """Read the frame of any type that begins at ``offset``. Raises as :meth:`WireValue.decode`."""
    header = FrameHeader.decode(buffer, offset)
    if header.frame_type >= len(_FRAMES):
        raise refusal("INVALID", "type", offset + 6, f"0 to {len(_FRAMES) - 1}", str(header.frame_type))
    return _FRAMES[header.frame_type].decode(buffer, offset)


def walk(datagram: Buffer) -> Iterator[tuple[int, WireValue]]:
    """Yield offset (bytes) and value of each frame of a datagram.

    Raises:
        WireError: behind the last good frame, for the first that is none.
    """
    found, error = _wire.walk(datagram)
    for offset, kind, values in found:
        yield offset, _BY_KIND[kind]._of(values)
    if error is not None:
        raise error
