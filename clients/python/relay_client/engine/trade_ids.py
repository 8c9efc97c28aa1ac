"""Trade ids of one ticker: repeats, the newest, and which ids are known never to have been published."""

from __future__ import annotations

from relay_client.engine.spans import Span, SpanSet

__all__ = ["TradeIds", "number_of"]

_TEXTS_MAX = 100_000
_DIGITS_MAX = 18


def number_of(trade_id: str) -> int | None:
    """Return the number of an id; None for one that is no plain number."""
    return int(trade_id) if trade_id.isascii() and trade_id.isdigit() and len(trade_id) <= _DIGITS_MAX else None


class TradeIds:
    """What has been seen, by number where ids are numbers (contiguous within a market), else by text.

    Args:
        spans_max: islands of numbers to remember; what lies below the oldest counts as seen.

    Attributes:
        newest: highest number seen or said by a beat before the first trade; None before.
        declared: numbers in gaps that the ingestor declared: they come as backfill, or never.
        lost: numbers that were reported lost.
        backfilled: numbers that came as backfill: published anew, so no trace of a message that was lost before.
    """

    def __init__(self, *, spans_max: int) -> None:
        self.newest: int | None = None
        self.declared = SpanSet(spans_max=spans_max)
        self.lost = SpanSet(spans_max=spans_max)
        self.backfilled = SpanSet(spans_max=spans_max)
        self._seen = SpanSet(spans_max=spans_max)
        self._forgotten = SpanSet(spans_max=spans_max)
        self._texts: dict[str, None] = {}

    def take(self, trade_id: str, number: int | None) -> bool:
        """Note a trade; return whether it is new."""
        if number is None:
            return self._take_text(trade_id)
        if not self._seen.add(number):
            return False
        if self.newest is None or number > self.newest:
            self.newest = number
        return True

    def declare(self, first: int, last: int) -> None:
        """Note a gap that the ingestor declares; what came from it and was forgotten has been published after all."""
        self.declared.add_span(first, last)
        for span in self._forgotten.present(first, last):
            self.declared.remove_span(*span)

    def forget(self, trade_id: str, number: int | None) -> None:
        """Take a trade for not seen again."""
        if number is None:
            self._texts.pop(trade_id, None)
            return
        self._seen.remove(number)
        self.backfilled.remove(number)
        self._forgotten.add(number)
        self.declared.remove(number)

    def wanted(self, first: int, last: int) -> list[Span]:
        """Return the numbers from first to last that are neither seen nor declared missing."""
        return [span for low, high in self._seen.absent(first, last) for span in self.declared.absent(low, high)]

    def outstanding(self, first: int, last: int) -> int:
        """Return how many numbers from first to last have not been seen but as backfill."""
        unseen = sum(high - low + 1 for low, high in self._seen.absent(first, last))
        return unseen + self.backfilled.count(first, last)

    def _take_text(self, trade_id: str) -> bool:
        if trade_id in self._texts:
            return False
        self._texts[trade_id] = None
        if len(self._texts) > _TEXTS_MAX:
            del self._texts[next(iter(self._texts))]
        return True
