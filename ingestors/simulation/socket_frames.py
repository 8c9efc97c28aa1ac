"""WebSocket frames as bytes: a server's are neither masked nor compressed, so they are made once and joined."""

from __future__ import annotations

__all__ = ["BINARY", "PING", "PONG", "TEXT", "frame"]

TEXT, BINARY, PING, PONG = 0x81, 0x82, 0x89, 0x8A
"""First byte: the final fragment of such a message."""
_SHORT_MAX, _MEDIUM_MAX = 125, 0xFFFF
_SHORT_HEADS = {
    kind: [bytes((kind, length)) for length in range(_SHORT_MAX + 1)] for kind in (TEXT, BINARY, PING, PONG)
}


def frame(kind: int, payload: bytes) -> bytes:
    """Return one whole frame."""
    length = len(payload)
    if length <= _SHORT_MAX:
        return _SHORT_HEADS[kind][length] + payload
    if length <= _MEDIUM_MAX:
        return bytes((kind, 126)) + length.to_bytes(2, "big") + payload
    return bytes((kind, 127)) + length.to_bytes(8, "big") + payload
