"""Bars made from ticks wait a little, so that a second's bars are not a commit of their own each second.

What waits is in memory only: the tables' offsets lie before it, so a start reads it again. Whatever else comes takes
it along into its own commit, at once; so no batch is ever committed before one that came earlier.
"""

from __future__ import annotations

from spark_jobs.jobs.history.batch import MicroBatch

__all__ = ["HeldBars"]


class HeldBars:
    """Micro-batches that bring nothing but bars made from ticks. Times are seconds of a monotonic clock.

    Args:
        wait_s: how long the oldest waits; 0 holds nothing.
        rows_max: with so many bars nothing waits any more.
    """

    def __init__(self, *, wait_s: float, rows_max: int) -> None:
        self._wait_s, self._rows_max = wait_s, rows_max
        self._batches: list[MicroBatch] = []
        self._rows, self._since = 0, 0.0

    def __len__(self) -> int:
        return self._rows

    def offer(self, batch: MicroBatch, *, now: float) -> bool:
        """Take a micro-batch in if it may wait; return whether it does."""
        found = batch.decoded()
        is_alone = len(found.coverage) == len(found.markets) == len(found.quarantine) == 0
        rows = self._rows + len(found.tick_bars)
        if not self._wait_s or not is_alone or rows >= self._rows_max:
            return False
        if not self._batches:
            self._since = now
        self._batches.append(batch)
        self._rows = rows
        return True

    def is_due(self, *, now: float) -> bool:
        """Return whether the oldest has waited long enough."""
        return bool(self._batches) and now - self._since >= self._wait_s

    def take(self) -> MicroBatch | None:
        """Return all that waits as one micro-batch, and hold it no longer; None when nothing does."""
        batches, self._batches, self._rows = self._batches, [], 0
        return batches[-1].after(*batches[:-1]) if batches else None
