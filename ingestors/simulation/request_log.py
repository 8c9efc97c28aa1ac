"""What was asked: counts and the last requests by path, so that tests can prove that nothing is fetched twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["RequestLog", "SeenRequest"]

LAST_REQUESTS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """One request and how it was answered (status 0: the connection was dropped)."""

    query: Mapping[str, str]
    status: int
    faults: tuple[str, ...]


class RequestLog:
    """Counts by full path; the last thousand requests of each are kept."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._last: dict[str, deque[SeenRequest]] = {}

    def add(self, path: str, request: SeenRequest) -> None:
        """Note a request."""
        self._counts[path] = self._counts.get(path, 0) + 1
        self._last.setdefault(path, deque(maxlen=LAST_REQUESTS_MAX)).append(request)

    def clear(self) -> None:
        """Forget everything."""
        self._counts.clear()
        self._last.clear()

    def count(self, path: str) -> int:
        """Return how often a path was asked."""
        return self._counts.get(path, 0)

    def last(self, path: str) -> list[SeenRequest]:
        """Return the last requests of a path, oldest first."""
        return list(self._last.get(path, ()))

    def report(self) -> dict[str, object]:
        """Return everything as one JSON-ready object."""
        paths = {path: {"count": count, "last": self.last(path)} for path, count in sorted(self._counts.items())}
        return {"total": sum(self._counts.values()), "paths": paths}
