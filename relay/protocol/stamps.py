"""Publish stamps: field 15, appended to the serialised message by the owner of the PUB or XPUB socket."""

from __future__ import annotations

from relay.protocol.registry import MessageType
from relay.protocol.topics import is_unstamped
from relay.protocol.v1 import common_pb2

__all__ = ["Stamper"]

_WITHOUT_STAMP = frozenset({MessageType.MARKET, MessageType.HISTORY_READY, MessageType.PROBE})
"""In these, field 15 is something else or nothing."""
_FIELD_15_LENGTH_DELIMITED = bytes([15 << 3 | 2])


class Stamper:
    """Counts messages of each topic under one publisher epoch.

    Args:
        epoch: random for each start of the publisher.
    """

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._sequences: dict[bytes, int] = {}

    def stamp(self, topic: bytes, body: bytes, *, now_ns: int) -> bytes:
        """Return the body with the next stamp of its topic; topics without stamps stay as they are.

        In protobuf a later field replaces an earlier one of the same number, so no decoding is needed.
        """
        if is_unstamped(topic) or body[0] in _WITHOUT_STAMP:
            return body
        sequence = self._sequences.get(topic, 0) + 1
        self._sequences[topic] = sequence
        stamp = common_pb2.PublishStamp(
            publisher_epoch=self.epoch, topic_sequence=sequence, published_at=now_ns
        ).SerializeToString()
        return body + _FIELD_15_LENGTH_DELIMITED + bytes([len(stamp)]) + stamp
