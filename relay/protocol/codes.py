"""Registry of error codes. A code is never reused or renamed; ``proto/spec/0002`` lists them for other languages."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ErrorCode", "RejectReason"]


class ErrorCode(StrEnum):
    """What an answer or an outcome says in ``error_code``."""

    # The request is wrong.
    INVALID_ENVELOPE = "INVALID_ENVELOPE"
    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_REQUEST_ID = "INVALID_REQUEST_ID"
    INVALID_CLIENT_ID = "INVALID_CLIENT_ID"
    INVALID_TICKER = "INVALID_TICKER"
    INVALID_PERIOD = "INVALID_PERIOD"
    INVALID_RANGE = "INVALID_RANGE"
    INVALID_LIMIT = "INVALID_LIMIT"
    INVALID_TIME = "INVALID_TIME"
    INVALID_TOPIC = "INVALID_TOPIC"
    INVALID_PATTERN = "INVALID_PATTERN"
    TOO_MANY_ROWS = "TOO_MANY_ROWS"
    REQUEST_CONFLICT = "REQUEST_CONFLICT"
    UNKNOWN_REQUEST = "UNKNOWN_REQUEST"
    RETIRED_MESSAGE = "RETIRED_MESSAGE"
    NOT_IMPLEMENTED = "NOT_IMPLEMENTED"
    # The settings are wrong.
    INVALID_SETTINGS = "INVALID_SETTINGS"
    MISSING_EXTRA = "MISSING_EXTRA"
    # Try again.
    UNAVAILABLE = "UNAVAILABLE"
    TIMEOUT = "TIMEOUT"
    OVERLOADED = "OVERLOADED"
    # What exchanges answer.
    UNKNOWN_EXCHANGE = "UNKNOWN_EXCHANGE"
    UNKNOWN_SYMBOL = "UNKNOWN_SYMBOL"
    UNSUPPORTED_PERIOD = "UNSUPPORTED_PERIOD"
    BEFORE_LISTING = "BEFORE_LISTING"
    NO_DATA = "NO_DATA"
    NOT_CLOSED_YET = "NOT_CLOSED_YET"
    NO_PROGRESS = "NO_PROGRESS"
    RATE_LIMITED = "RATE_LIMITED"
    BANNED = "BANNED"
    MAINTENANCE = "MAINTENANCE"
    EXCHANGE_ERROR = "EXCHANGE_ERROR"
    BAD_ANSWER = "BAD_ANSWER"
    # Ends of jobs.
    ATTEMPTS_EXHAUSTED = "ATTEMPTS_EXHAUSTED"
    DEADLINE = "DEADLINE"
    CANCELLED = "CANCELLED"
    LEASE_LOST = "LEASE_LOST"
    # Storage and the rest.
    STORAGE = "STORAGE"
    DENIED = "DENIED"
    INTERNAL = "INTERNAL"


class RejectReason(StrEnum):
    """Why bytes were rejected; also the name of the counter (``rejected.{reason}``)."""

    WRONG_VERSION = "wrong_version"
    EMPTY_FRAME = "empty_frame"
    TOO_FEW_FRAMES = "too_few_frames"
    TOO_MANY_FRAMES = "too_many_frames"
    FRAME_TOO_LARGE = "frame_too_large"
    MESSAGE_TOO_LARGE = "message_too_large"
    UNKNOWN_TYPE = "unknown_type"
    WRONG_CHANNEL = "wrong_channel"
    RETIRED_TYPE = "retired_type"
    UNDECODABLE = "undecodable"
    INVALID_FIELD = "invalid_field"
    PUSHED_INTO_XPUB = "pushed_into_xpub"
    REFUSED_SUBSCRIPTION = "refused_subscription"
    WRONG_TOPIC = "wrong_topic"
    FORGED_REPLY = "forged_reply"
