"""Live records on their way to the event log: straight, or over the spill while the log is away."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ingestors.live.spill import LogEntry, Spill
from relay.errors import RelayError, RetryableError, StorageError
from relay.eventlog import EventLog
from relay.observability import Counters

__all__ = ["LogForwarder"]

_TURN_MAX = 2_000
"""Spilled records that are forwarded in one turn, so that sockets are served in between."""


class LogForwarder:
    """Appends in order for every key; never blocks for the log's sake.

    Args:
        log: the event log.
        spill: where records wait on disk.
        acknowledged: called in :meth:`turn` with each entry that the log has.
        counters: of the process.
    """

    def __init__(
        self, log: EventLog, spill: Spill, *, acknowledged: Callable[[LogEntry], None], counters: Counters
    ) -> None:
        self._log, self._spill, self._counters = log, spill, counters
        self._acknowledged = acknowledged
        self._done: deque[tuple[LogEntry, BaseException | None]] = deque()
        self._refused: deque[LogEntry] = deque()
        self.outstanding = 0
        self.is_prepared = False
        """Set once the log knows the topic: an append never waits then."""

    @property
    def is_straight(self) -> bool:
        """Whether the log takes records, and nothing waits on disk."""
        return self.is_prepared and not self._spill and not self._refused

    def append(self, entry: LogEntry, *, is_kept: bool = False) -> bool:
        """Append an entry; return False when it could be kept nowhere."""
        if self.is_straight and self._append(entry):
            return True
        try:
            kept = self._spill.append(entry, is_kept=is_kept)
        except StorageError:
            self._counters.add("live.spill.failed")
            kept = False
        self._counters.add("live.spill.kept" if kept else "live.spill.dropped")
        return kept

    def turn(self) -> None:
        """Hand out acknowledgements, and forward what waits."""
        for _ in range(len(self._done)):
            entry, error = self._done.popleft()
            self.outstanding -= 1
            if error is None:
                self._acknowledged(entry)
            else:
                # The log refused it although it was reachable: it goes again, in front of everything newer.
                self._counters.add("live.log.refused")
                self._refused.append(entry)
        while self._refused and self._append(self._refused[0]):
            self._refused.popleft()
        for _ in range(_TURN_MAX):
            waiting = self._spill.peek() if self.is_prepared and not self._refused else None
            if waiting is None or not self._append(waiting):
                break
            self._spill.take()
        self._counters.set("live.log.outstanding", self.outstanding)
        self._counters.set("live.spill.bytes", self._spill.waiting_bytes)
        self._counters.set("live.spill.damaged", self._spill.damaged)

    def close(self) -> None:
        """Close the spill; what waits there stays for the next start."""
        self._spill.close()

    def _append(self, entry: LogEntry) -> bool:
        note = self._done.append
        try:
            self._log.append_then(
                entry.topic, key=entry.key, value=entry.value, done=lambda error: note((entry, error))
            )
        except RetryableError:
            self._counters.add("live.log.waits")
            return False
        except RelayError:
            self._counters.add("live.log.refused")
            return False
        self.outstanding += 1
        return True
