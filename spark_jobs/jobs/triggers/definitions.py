"""Records of the control topic → definitions of triggers. Pure: no Spark, no I/O."""

from __future__ import annotations

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.envelope import decode_record
from relay.protocol.topics import is_uuid_text
from relay.protocol.v1 import trigger_pb2

__all__ = ["definition_of"]

_ACTIONS = (trigger_pb2.CEPTriggerRequest.REGISTER, trigger_pb2.CEPTriggerRequest.CANCEL)


def definition_of(key: bytes, value: bytes) -> trigger_pb2.CEPTriggerRequest | None:
    """Return what a record says about a trigger, its pattern unread; None when it is about something else.

    Raises:
        PeerError: the bytes are no record, or ids or action are not as they must be.
    """
    _, message = decode_record(value)
    if not isinstance(message, trigger_pb2.CEPTriggerRequest):
        return None
    if message.trigger_id.encode() != key or not is_uuid_text(message.trigger_id):
        raise PeerError(
            f"expected a UUID as trigger_id and as the record's key, got {message.trigger_id[:80]!r} and {key[:80]!r}",
            code=ErrorCode.INVALID_REQUEST_ID,
        )
    if message.client_id and not is_uuid_text(message.client_id):
        raise PeerError(
            f"expected a UUID as client_id, or none, got {message.client_id[:80]!r}", code=ErrorCode.INVALID_CLIENT_ID
        )
    if message.action not in _ACTIONS:
        raise PeerError(f"expected REGISTER or CANCEL, got action {message.action}", code=ErrorCode.INVALID_REQUEST)
    return message
