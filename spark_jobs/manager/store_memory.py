"""In-memory twin of the job table, for tests of its users and for the conformance suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from relay.errors import StorageError
from spark_jobs.manager.engine.commands import (
    AddJob,
    AddRequest,
    Change,
    DropRealtime,
    DropTrigger,
    EndJob,
    MarkPublished,
    RealtimeChange,
    RememberExchange,
    SaveJob,
    SaveRealtime,
    SaveTrigger,
    TriggerChange,
)
from spark_jobs.manager.engine.model import (
    Job,
    JobState,
    Outcome,
    RealtimeJob,
    Request,
    StoredRequest,
    StoredState,
    StoredTrigger,
)

__all__ = ["MemoryJobStore"]


@dataclass(slots=True)
class _Tables:
    jobs: dict[str, Job] = field(default_factory=dict)
    ended_ns: dict[str, int] = field(default_factory=dict)
    requests: dict[str, Request] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    exchanges: set[str] = field(default_factory=set)
    realtime: dict[str, RealtimeJob] = field(default_factory=dict)
    triggers: dict[str, StoredTrigger] = field(default_factory=dict)

    def copy(self) -> _Tables:
        return _Tables(
            dict(self.jobs),
            dict(self.ended_ns),
            dict(self.requests),
            dict(self.outcomes),
            set(self.exchanges),
            dict(self.realtime),
            dict(self.triggers),
        )


class MemoryJobStore:
    """A :class:`~spark_jobs.manager.ports.JobStore` in this process's memory; not durable."""

    def __init__(self) -> None:
        self._tables = _Tables()

    def load(self) -> StoredState:
        """See the port."""
        tables = self._tables
        jobs = [job for job in tables.jobs.values() if job.state is not JobState.ENDED]
        unfinished = {job.job_id for job in jobs}
        requests = [r for r in tables.requests.values() if r.job_id in unfinished]
        return StoredState(
            tuple(sorted(jobs, key=lambda j: (j.created_ns, j.job_id))),
            tuple(sorted(requests, key=lambda r: (r.submitted_ns, r.request_id))),
            frozenset(tables.exchanges),
            tuple(tables.realtime[job_id] for job_id in sorted(tables.realtime)),
            tuple(tables.triggers[trigger_id] for trigger_id in sorted(tables.triggers)),
        )

    def find(self, request_id: str) -> StoredRequest | None:
        """See the port."""
        request = self._tables.requests.get(request_id)
        return StoredRequest(request, self._tables.outcomes.get(request_id)) if request is not None else None

    def commit(self, changes: Sequence[Change]) -> None:
        """See the port."""
        tables = self._tables.copy()
        for change in changes:
            _apply(tables, change)
        self._tables = tables

    def outbox(self, *, published_since_ns: int) -> Sequence[Outcome]:
        """See the port."""
        due = [o for o in self._tables.outcomes.values() if not o.published_ns or o.published_ns >= published_since_ns]
        return sorted(due, key=lambda o: (o.completed_ns, o.request_id))

    def prune(self, *, ended_before_ns: int) -> int:
        """See the port."""
        tables = self._tables.copy()
        waiting = {tables.requests[r].job_id for r, outcome in tables.outcomes.items() if not outcome.published_ns}
        old = {job_id for job_id, ended in tables.ended_ns.items() if ended < ended_before_ns} - waiting
        for job_id in old:
            del tables.jobs[job_id], tables.ended_ns[job_id]
        for request_id in [r.request_id for r in tables.requests.values() if r.job_id in old]:
            del tables.requests[request_id]
            tables.outcomes.pop(request_id, None)
        self._tables = tables
        return len(old)

    def close(self) -> None:
        """See the port."""


def _apply(tables: _Tables, change: Change) -> None:
    match change:
        case AddJob(job):
            if job.job_id in tables.jobs:
                raise StorageError(f"expected a new job, but {job.job_id} is there already")
            tables.jobs[job.job_id] = job
        case AddRequest(request):
            if request.request_id in tables.requests:
                raise StorageError(f"expected a new request, but {request.request_id} is there already")
            _unfinished(tables, request.job_id)
            tables.requests[request.request_id] = request
        case SaveJob(job):
            _unfinished(tables, job.job_id)
            tables.jobs[job.job_id] = job
        case EndJob(job, outcomes, ended_ns):
            _unfinished(tables, job.job_id)
            tables.jobs[job.job_id] = replace(job, state=JobState.ENDED)
            tables.ended_ns[job.job_id] = ended_ns
            tables.outcomes.update({outcome.request_id: outcome for outcome in outcomes})
        case MarkPublished(request_ids, published_ns):
            for request_id in request_ids:
                if request_id in tables.outcomes:
                    tables.outcomes[request_id] = replace(tables.outcomes[request_id], published_ns=published_ns)
        case RememberExchange(exchange):
            tables.exchanges.add(exchange)
        case SaveRealtime() | DropRealtime() | SaveTrigger() | DropTrigger():
            _apply_kept(tables, change)


def _apply_kept(tables: _Tables, change: RealtimeChange | TriggerChange) -> None:
    """Apply what replaces or drops a row, whatever was there."""
    match change:
        case SaveRealtime(job=live):
            tables.realtime[live.job_id] = live
        case DropRealtime(job_id):
            tables.realtime.pop(job_id, None)
        case SaveTrigger(trigger):
            tables.triggers[trigger.trigger_id] = trigger
        case DropTrigger(trigger_id):
            tables.triggers.pop(trigger_id, None)


def _unfinished(tables: _Tables, job_id: str) -> None:
    job = tables.jobs.get(job_id)
    if job is None or job.state is JobState.ENDED:
        raise StorageError(f"expected an unfinished job, but {job_id} has ended or does not exist")
