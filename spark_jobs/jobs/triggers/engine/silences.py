"""Silences of one ticker: how long nothing was traded, by the ticker's own time."""

from __future__ import annotations

from bisect import insort

from spark_jobs.jobs.triggers.engine.listeners import Hits, Listener

__all__ = ["SilenceBook"]


class SilenceBook:
    """Durations that triggers wait for, shortest first."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, str, int, Listener]] = []

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, listener: Listener, mask: int, duration_ns: int) -> None:
        """Add a duration that a trigger waits for."""
        insort(self._entries, (duration_ns, listener.trigger_id, mask, listener))

    def remove(self, listener: Listener) -> None:
        """Take all durations of a trigger out."""
        self._entries = [entry for entry in self._entries if entry[3] is not listener]

    def ended(self, last_ns: int, from_ns: int, until_ns: int) -> list[tuple[int, int, Hits]]:
        """Return the silences that were full from one time to another, both included, in order.

        Args:
            last_ns: last trade; a silence begins with it or with the start of the trigger, whichever is later.
            from_ns, until_ns: the times.

        Returns:
            When it was full, its duration, and for whom.
        """
        if not self._entries or until_ns - last_ns < self._entries[0][0]:
            return []
        found: dict[tuple[int, int], Hits] = {}
        for duration_ns, _, mask, listener in self._entries:
            due_ns = max(last_ns, listener.start_ns) + duration_ns
            if from_ns <= due_ns <= until_ns:
                hits = found.setdefault((due_ns, duration_ns), {})
                hits[listener] = hits.get(listener, 0) | mask
        return [(due_ns, duration_ns, hits) for (due_ns, duration_ns), hits in sorted(found.items(), key=_when)]


def _when(entry: tuple[tuple[int, int], Hits]) -> tuple[int, int]:
    return entry[0]
