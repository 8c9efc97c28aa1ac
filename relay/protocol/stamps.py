"""Publish stamps: field 15, appended to the serialised message by the owner of the PUB or XPUB socket."""

from __future__ import annotations

from google.protobuf.message import Message

from relay.protocol.registry import Channel, channel_types
from relay.protocol.topics import is_unstamped
from relay.protocol.v1 import common_pb2

__all__ = ["STAMPED_IDS", "Stamper"]

_STAMP_FIELD = 15
_TAG_AND_LENGTH = [bytes([_STAMP_FIELD << 3 | 2, length]) for length in range(128)]


def _carries_stamp(message_class: type[Message]) -> bool:
    field = message_class.DESCRIPTOR.fields_by_number.get(_STAMP_FIELD)
    return field is not None and field.message_type is common_pb2.PublishStamp.DESCRIPTOR


STAMPED_IDS = frozenset(i for i, c in channel_types(Channel.MARKET_DATA).items() if _carries_stamp(c))
"""Type ids with room for a stamp; in Market and HistoryReadyNotification field 15 is something else."""


class Stamper:
    """Counts messages of each topic under one publisher epoch.

    Args:
        epoch: random for each start of the publisher.
    """

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._sequences: dict[bytes, int] = {}
        self._stamp = common_pb2.PublishStamp(publisher_epoch=epoch)

    def stamp(self, topic: bytes, body: bytes, *, now_ns: int) -> bytes:
        """Return the body with the next stamp of its topic; topics without stamps stay as they are.

        In protobuf a later field replaces an earlier one of the same number, so no decoding is needed.
        """
        if is_unstamped(topic) or body[0] not in STAMPED_IDS:
            return body
        sequence = self._sequences.get(topic, 0) + 1
        self._sequences[topic] = sequence
        stamp = self._stamp
        stamp.topic_sequence, stamp.published_at = sequence, now_ns
        written = stamp.SerializeToString()
        return b"".join((body, _TAG_AND_LENGTH[len(written)], written))
