"""What an answer means for the one who asked: done, try again, unknown, or refused."""

from __future__ import annotations

from enum import Enum

from google.protobuf.message import Message

from relay.errors import AccessError, PeerError, RelayError, RetryableError, StorageError
from relay.protocol.codes import ErrorCode
from relay.protocol.v1 import request_pb2

__all__ = ["StatusVerdict", "SubmitVerdict", "error_for", "is_away", "judge_status", "judge_submit"]

_Submit = request_pb2.SubmitResponse
_Ready = request_pb2.HistoryReadyNotification
_AWAY = frozenset({ErrorCode.UNAVAILABLE, ErrorCode.OVERLOADED, ErrorCode.STORAGE})
_PASSING = frozenset(
    {
        ErrorCode.UNAVAILABLE,
        ErrorCode.TIMEOUT,
        ErrorCode.OVERLOADED,
        ErrorCode.RATE_LIMITED,
        ErrorCode.BANNED,
        ErrorCode.MAINTENANCE,
        ErrorCode.EXCHANGE_ERROR,
        ErrorCode.BAD_ANSWER,
        ErrorCode.NO_PROGRESS,
        ErrorCode.ATTEMPTS_EXHAUSTED,
        ErrorCode.DEADLINE,
        ErrorCode.CANCELLED,
        ErrorCode.LEASE_LOST,
    }
)


class SubmitVerdict(Enum):
    """What a SubmitResponse means."""

    ACCEPTED = "accepted"
    AWAY = "away"
    REFUSED = "refused"


class StatusVerdict(Enum):
    """What the answer to a status query means."""

    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"
    AWAY = "away"


def judge_submit(answer: request_pb2.SubmitResponse) -> SubmitVerdict:
    """Judge the answer to a submission; DUPLICATE is as good as QUEUED."""
    if answer.status in (_Submit.QUEUED, _Submit.DUPLICATE):
        return SubmitVerdict.ACCEPTED
    return SubmitVerdict.AWAY if answer.status == _Submit.UNAVAILABLE else SubmitVerdict.REFUSED


def judge_status(answer: Message) -> StatusVerdict:
    """Judge the answer to a status query.

    The relay and the manager also answer ERROR for themselves; only a request's own end has ``completed_at``.
    """
    if not isinstance(answer, _Ready):
        return StatusVerdict.AWAY
    if answer.status == _Ready.PENDING:
        return StatusVerdict.RUNNING
    if answer.status == _Ready.ERROR and not answer.completed_at:
        if answer.error_code == ErrorCode.UNKNOWN_REQUEST:
            return StatusVerdict.UNKNOWN
        if answer.error_code in _AWAY:
            return StatusVerdict.AWAY
    return StatusVerdict.ENDED


def is_away(answer: Message) -> bool:
    """Return whether somebody on the way says "try again"."""
    if isinstance(answer, _Submit):
        failed = answer.status == _Submit.ERROR and answer.error_code in _AWAY
        return failed or judge_submit(answer) is SubmitVerdict.AWAY
    if isinstance(answer, _Ready):
        return judge_status(answer) is StatusVerdict.AWAY
    if isinstance(answer, request_pb2.SymbolReply):
        return answer.status == request_pb2.SymbolReply.ERROR and answer.error_code in _AWAY
    if isinstance(answer, request_pb2.ReplayResponse):
        return answer.status == request_pb2.ReplayResponse.UNAVAILABLE
    return False


def error_for(code: str, text: str) -> RelayError:
    """Return the error of a code: the branch says what the caller can do."""
    if code in _PASSING:
        return RetryableError(text or "try again", code=code)
    if code == ErrorCode.STORAGE:
        return StorageError(text or "the tables or the job store failed", code=code)
    if code == ErrorCode.DENIED:
        return AccessError(text or "not allowed", code=code)
    if code in (ErrorCode.INTERNAL, ""):
        return RelayError(text or "failed without a reason; see the logs of the relay and the manager", code=code)
    return PeerError(text or f"refused: {code}", code=code)
