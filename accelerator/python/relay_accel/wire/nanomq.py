"""NanoMQ: messages, records of the write-ahead log, frames on TCP. Checksums are written and checked by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import ClassVar

from relay_accel._wire import crc32
from relay_accel.wire.value import WireValue

__all__ = [
    "TCP_PAYLOAD_LENGTH_MAX",
    "Message",
    "MessageFlag",
    "Record",
    "RecordType",
    "TcpFrame",
    "TcpHeader",
    "TcpType",
    "crc32",
]

TCP_PAYLOAD_LENGTH_MAX = 1 << 24
"""The longest payload of a frame on TCP, in bytes."""


class MessageFlag(IntFlag):
    """What was done with a message, and what shall be."""

    COMPRESSED = 1
    ENCRYPTED = 2
    PERSISTENT = 4
    PRIORITY = 8


class RecordType(IntEnum):
    """What a record of the log is."""

    DATA = 1
    COMMIT = 2
    PADDING = 3


class TcpType(IntEnum):
    """What a frame on TCP is."""

    PUBLISH = 1
    SUBSCRIBE = 2
    UNSUBSCRIBE = 3
    ACK = 4
    DATA = 5
    ERROR = 6


@dataclass(frozen=True, slots=True)
class Message(WireValue):
    """Header of 64 bytes with a CRC-32 of the payload, and the payload; ``timestamp_ns`` since 1970."""

    _kind: ClassVar[str] = "nanomq.message"
    id: int
    timestamp_ns: int
    topic_id: int
    flags: int = 0
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Record(WireValue):
    """A record of the write-ahead log, with a CRC-32 over header and payload."""

    _kind: ClassVar[str] = "nanomq.record"
    record_type: int
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class TcpHeader(WireValue):
    """The first eight bytes of a frame on TCP: how many bytes a reader has to wait for."""

    _kind: ClassVar[str] = "nanomq.tcp_header"
    frame_type: int
    length: int


@dataclass(frozen=True, slots=True)
class TcpFrame(WireValue):
    """A whole frame on TCP."""

    _kind: ClassVar[str] = "nanomq.tcp"
    frame_type: int
    payload: bytes = b""
