"""Field checks of client requests: what the relay refuses by itself, without asking anybody."""

from __future__ import annotations

from google.protobuf.message import Message

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import check_period
from relay.protocol.tickers import check_exchange, parse_ticker
from relay.protocol.times import check_time_ns
from relay.protocol.topics import is_uuid_text
from relay.protocol.v1 import request_pb2

__all__ = ["LIMIT_MAX", "check_request"]

LIMIT_MAX = 1_000_000
_NONCE_CHARACTERS_MAX = 64


def check_request(message: Message) -> bool:
    """Check a client request's fields; bring its ticker into the unified form.

    Returns:
        Whether the message was changed (an old-form ticker), so that it must be encoded again.

    Raises:
        PeerError: with the code of the first field that is wrong.
    """
    if isinstance(message, request_pb2.SubmitHistoricalRequest):
        return _check_submit(message)
    if isinstance(message, request_pb2.RequestStatusQuery):
        _check_uuid("request_id", message.request_id, ErrorCode.INVALID_REQUEST_ID)
    elif isinstance(message, request_pb2.Probe):
        if not 0 < len(message.nonce) <= _NONCE_CHARACTERS_MAX or not is_uuid_text(message.nonce):
            raise PeerError(f"expected a UUID as nonce, got {message.nonce[:80]!r}", code=ErrorCode.INVALID_REQUEST)
    elif isinstance(message, request_pb2.StatsQuery):
        check_exchange(message.exchange)
    elif isinstance(message, request_pb2.SymbolQuery) and message.ticker:
        ticker = str(parse_ticker(message.ticker))
        changed = ticker != message.ticker
        message.ticker = ticker
        return changed
    return False


def _check_submit(message: request_pb2.SubmitHistoricalRequest) -> bool:
    _check_uuid("request_id", message.request_id, ErrorCode.INVALID_REQUEST_ID)
    if message.HasField("client_id"):
        _check_uuid("client_id", message.client_id, ErrorCode.INVALID_CLIENT_ID)
    ticker = str(parse_ticker(message.ticker))
    check_period(message.period_seconds)
    check_time_ns(message.start_time, what="start_time")
    check_time_ns(message.end_time, what="end_time")
    if message.end_time <= message.start_time:
        raise PeerError(
            f"expected end_time after start_time, got [{message.start_time}, {message.end_time})",
            code=ErrorCode.INVALID_RANGE,
        )
    if message.HasField("limit") and not 1 <= message.limit <= LIMIT_MAX:
        raise PeerError(f"expected a limit of 1 to {LIMIT_MAX}, got {message.limit}", code=ErrorCode.INVALID_LIMIT)
    changed = ticker != message.ticker
    message.ticker = ticker
    return changed


def _check_uuid(name: str, text: str, code: ErrorCode) -> None:
    if not is_uuid_text(text):
        raise PeerError(
            f"expected a lower-case UUID of 36 characters as {name}, got {text[:80]!r}; make one with uuid4",
            code=code,
        )
