"""Answers that the relay gives by itself, each of the type that the request expects."""

from __future__ import annotations

from google.protobuf.message import Message

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.envelope import encode
from relay.protocol.v1 import request_pb2

__all__ = ["refusal", "reply_routing", "unavailable"]

_CORRELATION_BYTES = 4
_RETRY = "the manager does not answer; retry with the same request_id after 1 s"


def reply_routing(frames: list[bytes]) -> tuple[bytes, ...]:
    """Return the frames to send an error back with, whatever the rest of the message is worth.

    A REQ needs its empty delimiter (and the correlation id before it) back, or it stays stuck for ever; a DEALER that
    sent none gets none.
    """
    if len(frames) > 1 and not frames[1]:
        return tuple(frames[:2])
    if len(frames) > 2 and not frames[2] and len(frames[1]) == _CORRELATION_BYTES:
        return tuple(frames[:3])
    return tuple(frames[:1])


def refusal(error: PeerError, message: Message | None) -> tuple[bytes, bytes]:
    """Return the frames of an error SubmitResponse; it answers malformed input of any kind."""
    retired = error.code == ErrorCode.RETIRED_MESSAGE
    status = request_pb2.SubmitResponse.UNSUPPORTED if retired else request_pb2.SubmitResponse.INVALID
    return encode(
        request_pb2.SubmitResponse(
            request_id=getattr(message, "request_id", ""),
            status=status,
            error_code=str(error.code),
            error_message=str(error),
        )
    )


def unavailable(
    message: Message, *, code: ErrorCode = ErrorCode.UNAVAILABLE, text: str = _RETRY
) -> tuple[bytes, bytes]:
    """Return the frames that say "try again" in the reply type of the request."""
    code, text = ErrorCode.UNAVAILABLE, _RETRY
    answer: Message
    match message:
        case request_pb2.RequestStatusQuery():
            answer = request_pb2.HistoryReadyNotification(
                request_id=message.request_id,
                status=request_pb2.HistoryReadyNotification.ERROR,
                error_code=code,
                error_message=text,
            )
        case request_pb2.SymbolQuery():
            answer = request_pb2.SymbolReply(status=request_pb2.SymbolReply.ERROR, error_code=code, error_message=text)
        case request_pb2.ReplayRequest():
            answer = request_pb2.ReplayResponse(
                status=request_pb2.ReplayResponse.UNAVAILABLE, error_code=code, error_message=text
            )
        case _:
            answer = request_pb2.SubmitResponse(
                request_id=getattr(message, "request_id", ""),
                status=request_pb2.SubmitResponse.UNAVAILABLE,
                error_code=code,
                error_message=text,
            )
    return encode(answer)
