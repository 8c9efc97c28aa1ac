"""The envelope: ``[version 0x01]`` and ``[type id][protobuf]``, after whatever frames the transport needs.

::

    SUB        topic | version | type id + protobuf
    ROUTER     routing … | (correlation id) | (empty delimiter) | version | type id + protobuf
    log value  version, type id, protobuf in one piece

Specification: ``proto/spec/0001-envelope.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError, Message

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode, RejectReason
from relay.protocol.registry import ALL_IDS, RETIRED_IDS, Channel, channel_types, type_id_of

__all__ = [
    "LOG_RECORD_BYTES_MAX",
    "LOG_RECORD_ROWS_MAX",
    "SBE_VERSION",
    "SBE_VERSION_FRAME",
    "VERSION",
    "VERSION_FRAME",
    "Envelope",
    "EnvelopeError",
    "EnvelopeLimits",
    "check_frames",
    "decode",
    "decode_body",
    "decode_record",
    "encode",
    "encode_record",
]

VERSION = 1
VERSION_FRAME = bytes([VERSION])
SBE_VERSION = 2
"""Of a record whose body is one message in Simple Binary Encoding, on ways where the reader asked for it (0018)."""
SBE_VERSION_FRAME = bytes([SBE_VERSION])
LOG_RECORD_BYTES_MAX = 900_000
LOG_RECORD_ROWS_MAX = 1_000
_UNDECODABLE = (DecodeError, UnicodeDecodeError, ValueError, RecursionError)
_RECORDS = channel_types(Channel.EVENT_LOG)


@dataclass(frozen=True, slots=True)
class EnvelopeLimits:
    """Bounds on what a peer may send; each is a setting of the process that binds the socket."""

    message_bytes_max: int = 64 * 1024
    frames_max: int = 8


class EnvelopeError(PeerError):
    """Bytes that are no message of this channel.

    Attributes:
        reason: the named reason under which the rejection is counted.
        routing: the frames before the last two, so that a ROUTER can still answer.
    """

    default_code = ErrorCode.INVALID_ENVELOPE

    def __init__(self, reason: RejectReason, message: str, *, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.reason = reason
        self.routing: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Envelope:
    """One decoded message.

    Attributes:
        routing: opaque frames before the last two, echoed untouched in an answer.
        type_id: id on its channel.
        body: type id and protobuf as they came, for forwarding without encoding again.
        message: the decoded protobuf message.
    """

    routing: tuple[bytes, ...]
    type_id: int
    body: bytes
    message: Message


def encode(message: Message) -> tuple[bytes, bytes]:
    """Return the two frames of a message: version, and type id with protobuf."""
    return VERSION_FRAME, bytes([type_id_of(message)]) + message.SerializeToString()


def encode_record(message: Message) -> bytes:
    """Return the log record value of a message: both frames joined."""
    return b"".join(encode(message))


def check_frames(frames: Sequence[bytes], limits: EnvelopeLimits) -> None:
    """Raise :class:`EnvelopeError` when a message has too few or too many frames, or too many bytes."""
    if len(frames) > limits.frames_max:
        raise EnvelopeError(
            RejectReason.TOO_MANY_FRAMES,
            f"expected at most {limits.frames_max} frames, got {len(frames)}; send version and body only",
        )
    if len(frames) < 2:
        raise EnvelopeError(
            RejectReason.TOO_FEW_FRAMES, f"expected 2 frames (version, type id + protobuf), got {len(frames)}"
        )
    if len(frames[-1]) > limits.message_bytes_max:
        raise EnvelopeError(
            RejectReason.FRAME_TOO_LARGE,
            f"expected a body of at most {limits.message_bytes_max} bytes, got {len(frames[-1])}; split the request",
        )
    total_bytes = sum(map(len, frames))
    if total_bytes > limits.message_bytes_max + 1024:
        raise EnvelopeError(
            RejectReason.MESSAGE_TOO_LARGE,
            f"expected at most {limits.message_bytes_max} bytes in all frames, got {total_bytes}; split the request",
        )


def decode(frames: Sequence[bytes], channel: Channel, *, limits: EnvelopeLimits | None = None) -> Envelope:
    """Decode the last two frames of a message.

    Args:
        frames: all frames without a SUB topic; those before the last two are routing.
        channel: where the message travelled, which says which type ids have a meaning.
        limits: bounds to check first; none for peers of our own.

    Raises:
        EnvelopeError: with a named reason and the routing frames; never anything else.
    """
    routing = tuple(frames[:-2])
    try:
        if limits is not None:
            check_frames(frames, limits)
        elif len(frames) < 2:
            raise EnvelopeError(RejectReason.TOO_FEW_FRAMES, f"expected at least 2 frames, got {len(frames)}")
        if frames[-2] != VERSION_FRAME:
            reason = RejectReason.EMPTY_FRAME if not frames[-2] else RejectReason.WRONG_VERSION
            raise EnvelopeError(
                reason, f"expected version frame 0x01, got 0x{frames[-2][:8].hex()}; upgrade the older side"
            )
        type_id, message = decode_body(frames[-1], channel)
    except EnvelopeError as error:
        error.routing = routing
        raise
    return Envelope(routing, type_id, frames[-1], message)


def decode_body(body: bytes, channel: Channel) -> tuple[int, Message]:
    """Decode ``type id + protobuf`` as read on one channel.

    Raises:
        EnvelopeError: empty, retired, unknown, of another channel, or undecodable.
    """
    if not body:
        raise EnvelopeError(RejectReason.EMPTY_FRAME, "expected a body of type id + protobuf, got an empty frame")
    type_id = body[0]
    known = channel_types(channel)
    message_class = known.get(type_id)
    if message_class is None:
        raise _unknown_type(type_id, channel)
    message = message_class()
    try:
        message.ParseFromString(body[1:])
    except _UNDECODABLE as error:
        raise EnvelopeError(
            RejectReason.UNDECODABLE,
            f"expected a {message_class.__name__} after type id 0x{type_id:02x}, but its bytes do not decode: {error}",
        ) from error
    return type_id, message


def decode_record(value: bytes) -> tuple[int, Message]:
    """Decode the value of a log record.

    Raises:
        EnvelopeError: with a named reason; never anything else.
    """
    if len(value) > 1 and value[0] == VERSION and (message_class := _RECORDS.get(value[1])) is not None:
        try:
            return value[1], message_class.FromString(value[2:])
        except _UNDECODABLE:
            return decode_body(value[1:], Channel.EVENT_LOG)
    if not value:
        raise EnvelopeError(RejectReason.EMPTY_FRAME, "expected a record of version, type id, protobuf; got no bytes")
    if value[0] != VERSION:
        raise EnvelopeError(RejectReason.WRONG_VERSION, f"expected version 0x01, got 0x{value[0]:02x}")
    return decode_body(value[1:], Channel.EVENT_LOG)


def _unknown_type(type_id: int, channel: Channel) -> EnvelopeError:
    if type_id in RETIRED_IDS:
        return EnvelopeError(
            RejectReason.RETIRED_TYPE,
            f"type id 0x{type_id:02x} is retired; see proto/spec/0002-registry.md for what replaces it",
            code=ErrorCode.RETIRED_MESSAGE,
        )
    reason = RejectReason.WRONG_CHANNEL if type_id in ALL_IDS else RejectReason.UNKNOWN_TYPE
    allowed = ", ".join(f"0x{i:02x}" for i in sorted(channel_types(channel)))
    return EnvelopeError(reason, f"expected one of {allowed} on {channel}, got type id 0x{type_id:02x}")
