"""Outcomes of an offer. The methods return plain numbers, which equal these members."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Outcome"]


class Outcome(IntEnum):
    """What became of a message."""

    ACCEPTED = 0
    BACK_PRESSURED = -1
    """The reader is too far behind: try again later."""
    TOO_LONG = -2
    """Longer than this ring ever takes (``payload_length_max``)."""
    CLOSED = -3
    """The ring is full and its consumer has left."""
    CORRUPT = -4
    """The other side's position contradicts ours: make the ring anew."""
