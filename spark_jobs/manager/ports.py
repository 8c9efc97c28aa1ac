"""The durable job table's port; SQLite stands behind it, and an in-memory twin for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spark_jobs.manager.engine.commands import Change
from spark_jobs.manager.engine.model import Outcome, StoredRequest, StoredState

__all__ = ["JobStore"]


class JobStore(Protocol):
    """Jobs, requests and outcomes. One thread at a time; every method raises ``StorageError`` when the disk fails."""

    def load(self) -> StoredState:
        """Return what is unfinished, and the exchanges that were ever offered."""

    def find(self, request_id: str) -> StoredRequest | None:
        """Return a request with its outcome, or None when it is unknown or pruned."""

    def commit(self, changes: Sequence[Change]) -> None:
        """Make all changes durable in one transaction, or none of them.

        Raises:
            StorageError: the disk failed, or a change does not fit: a request attached to a job that has ended or
                does not exist, a request id that is there already, a job that ends twice.
        """

    def outbox(self, *, published_since_ns: int) -> Sequence[Outcome]:
        """Return outcomes that were not published, or last published at or after a time; oldest first."""

    def prune(self, *, ended_before_ns: int) -> int:
        """Forget published ends from before a time, with their requests; return how many jobs."""

    def close(self) -> None:
        """Release the storage."""
