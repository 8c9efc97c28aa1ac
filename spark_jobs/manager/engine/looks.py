"""When the tables are looked at for which job: small ones at once, long ones now and then and one by one.

A look reads every coverage row of a job, so that looks at each hint would cost the square of its length; and while
one is being read, all other jobs wait.
"""

from __future__ import annotations

from collections.abc import Mapping

from relay.protocol.periods import NANOSECONDS
from spark_jobs.manager.engine.model import Job, JobState

__all__ = ["LookSchedule"]

_LONG_BARS_MIN = 20_000
"""Some twenty pages."""
_INTERVAL_NS_PER_BAR = NANOSECONDS // 50_000
_INTERVAL_NS_MIN, _INTERVAL_NS_MAX = 2 * NANOSECONDS, 30 * NANOSECONDS
_DELIVERED_INTERVAL_NS_MAX = 5 * NANOSECONDS
"""All is in the log: the next look may be the last, so it comes sooner."""


class LookSchedule:
    """Marks of jobs, and when a long job is due again."""

    def __init__(self) -> None:
        self._marked: dict[str, None] = {}
        self._not_before_ns: dict[str, int] = {}

    def mark(self, job_id: str, *, is_urgent: bool) -> None:
        """Ask for a look; an urgent one does not wait for a long job's turn."""
        self._marked[job_id] = None
        if is_urgent:
            self._not_before_ns.pop(job_id, None)

    def forget(self, job_id: str) -> None:
        """The job has ended."""
        self._marked.pop(job_id, None)
        self._not_before_ns.pop(job_id, None)

    def take(self, jobs: Mapping[str, Job], *, now_ns: int) -> list[Job]:
        """Return all marked small jobs, or when there are none the long one that has waited longest, if due."""
        marked = [jobs[job_id] for job_id in self._marked if job_id in jobs]
        small = [job for job in marked if job.bars < _LONG_BARS_MIN]
        due = [job for job in marked if self._not_before_ns.get(job.job_id, 0) <= now_ns]
        taken = small or sorted(due, key=lambda job: self._not_before_ns.get(job.job_id, 0))[:1]
        for job in taken:
            del self._marked[job.job_id]
            if job.bars >= _LONG_BARS_MIN:
                self._not_before_ns[job.job_id] = now_ns + _interval_ns(job)
        return taken


def _interval_ns(job: Job) -> int:
    longest_ns = _DELIVERED_INTERVAL_NS_MAX if job.state is JobState.DELIVERED else _INTERVAL_NS_MAX
    return min(max(job.bars * _INTERVAL_NS_PER_BAR, _INTERVAL_NS_MIN), longest_ns)
