"""Loss by stamp: one counter for each publisher epoch of a topic."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from relay_client.engine.spans import Span, SpanSet

__all__ = ["Arrival", "SequenceLedger", "Stream"]

_EPOCHS_MAX = 64
_LOST_SPANS_MAX = 4_096


class Arrival(Enum):
    """What a stamp means.

    ::

        sequence of next   what it is
        = next             NEXT
        > next             JUMP: [next, sequence) is missing
        < next             LATE when it was missing, FOUND when it was reported lost, else REPEAT
        epoch unknown      FIRST of the topic, or a NEW_EPOCH: counted from here on
    """

    NEXT = "next"
    JUMP = "jump"
    LATE = "late"
    FOUND = "found"
    REPEAT = "repeat"
    FIRST = "first"
    NEW_EPOCH = "new_epoch"


@dataclass(slots=True)
class Stream:
    """Counter of one publisher epoch."""

    epoch: int
    next: int
    missing: SpanSet = field(default_factory=SpanSet)
    lost: SpanSet = field(default_factory=lambda: SpanSet(spans_max=_LOST_SPANS_MAX))


class SequenceLedger:
    """All epochs of one topic; the oldest are forgotten beyond a bound. Returning to a known one is no resync."""

    def __init__(self) -> None:
        self._streams: dict[int, Stream] = {}
        self.current: Stream | None = None

    def stream(self, epoch: int) -> Stream | None:
        """Return the counter of an epoch."""
        return self._streams.get(epoch)

    def take(self, epoch: int, sequence: int) -> Arrival:
        """Count one message; after a JUMP the caller finds what is missing in ``stream(epoch).missing``."""
        stream = self._streams.get(epoch)
        if stream is None:
            return self._begin(epoch, sequence)
        self.current = stream
        if sequence == stream.next:
            stream.next = sequence + 1
            return Arrival.NEXT
        if sequence > stream.next:
            stream.missing.add_span(stream.next, sequence - 1)
            stream.next = sequence + 1
            return Arrival.JUMP
        if stream.missing.remove(sequence):
            return Arrival.LATE
        return Arrival.FOUND if stream.lost.remove(sequence) else Arrival.REPEAT

    def settle(self, epoch: int, sequence: int) -> None:
        """Note a message that came as history: it is not missing, and moves no counter."""
        stream = self._streams.get(epoch)
        if stream is not None:
            stream.missing.remove(sequence)

    def missing(self, epoch: int, first: int, last: int) -> int:
        """Return how many sequences of a span are missing."""
        stream = self._streams.get(epoch)
        return stream.missing.count(first, last) if stream is not None else 0

    def give_up(self, epoch: int, first: int, last: int, *, is_reported: bool) -> list[Span]:
        """Take what is missing of a span for lost, and return it."""
        stream = self._streams.get(epoch)
        if stream is None:
            return []
        lost = stream.missing.present(first, last)
        for span in lost:
            stream.missing.remove_span(*span)
            if is_reported:
                stream.lost.add_span(*span)
        return lost

    def _begin(self, epoch: int, sequence: int) -> Arrival:
        is_first = not self._streams
        self.current = self._streams[epoch] = Stream(epoch, sequence + 1)
        if len(self._streams) > _EPOCHS_MAX:
            del self._streams[next(iter(self._streams))]
        return Arrival.FIRST if is_first else Arrival.NEW_EPOCH
