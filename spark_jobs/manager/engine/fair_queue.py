"""Queue that is oldest-first within a client and fair between clients (start-time fair queueing)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

__all__ = ["FairQueue", "QueueEntry"]


@dataclass(frozen=True, slots=True, order=True)
class QueueEntry:
    """A job that waits: served by lowest tag, then age."""

    tag: int
    created_ns: int
    job_id: str
    attempt: int = field(compare=False)
    not_before_ns: int = field(compare=False)


class FairQueue:
    """Each job gets the next tag of its client, and an idle client starts at the tag served last.

    So a client with a thousand jobs and one with a single job alternate, a newcomer waits for one round at most,
    and nobody starves behind a stream of newcomers. A job that comes back keeps its tag and is served first.
    """

    def __init__(self) -> None:
        self._ready: list[QueueEntry] = []
        self._later: list[tuple[int, QueueEntry]] = []
        self._entries: dict[str, QueueEntry] = {}
        self._tags: dict[str, int] = {}
        self._client_tags: dict[str, int] = {}
        self._served_tag = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._entries

    def push(self, job_id: str, *, attempt: int, client_id: str, created_ns: int, not_before_ns: int = 0) -> None:
        """Add a job, or put it back."""
        tag = self._tags.get(job_id)
        if tag is None:
            tag = max(self._served_tag, self._client_tags.get(client_id, 0)) + 1
            self._tags[job_id] = self._client_tags[client_id] = tag
        entry = QueueEntry(tag, created_ns, job_id, attempt, not_before_ns)
        self._entries[job_id] = entry
        heapq.heappush(self._later, (not_before_ns, entry))

    def peek(self, now_ns: int) -> QueueEntry | None:
        """Return the next job whose time has come."""
        while self._later and self._later[0][0] <= now_ns:
            heapq.heappush(self._ready, heapq.heappop(self._later)[1])
        while self._ready and self._entries.get(self._ready[0].job_id) is not self._ready[0]:
            heapq.heappop(self._ready)
        return self._ready[0] if self._ready else None

    def pop(self, now_ns: int) -> QueueEntry | None:
        """Take the next job whose time has come."""
        entry = self.peek(now_ns)
        if entry is not None:
            heapq.heappop(self._ready)
            del self._entries[entry.job_id]
            self._served_tag = max(self._served_tag, entry.tag)
        return entry

    def remove(self, job_id: str) -> bool:
        """Take a job out (its heap entry is skipped later)."""
        return self._entries.pop(job_id, None) is not None

    def forget(self, job_id: str) -> None:
        """The job has ended: drop its tag, and the tags of clients that are not ahead of the queue."""
        self._entries.pop(job_id, None)
        self._tags.pop(job_id, None)
        self._client_tags = {client: tag for client, tag in self._client_tags.items() if tag > self._served_tag}
