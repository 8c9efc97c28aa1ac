"""The job book: every unfinished job with its requests, from CHECKING to its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range, intersect, union
from relay.protocol.v1 import work_pb2
from spark_jobs.manager.engine.broker import Broker
from spark_jobs.manager.engine.commands import AddJob, AddRequest, Command, EndJob, Publish, SaveJob, SendWork
from spark_jobs.manager.engine.evidence import Evidence, Verdict, beginning, judge
from spark_jobs.manager.engine.looks import LookSchedule
from spark_jobs.manager.engine.model import Job, JobKind, JobState, Request
from spark_jobs.manager.engine.outcomes import outcome_of
from spark_jobs.manager.engine.requests import RequestRules, new_history_job

__all__ = ["JobBook", "JobRules"]

_LOST = "the event log does not hold any more what it had acknowledged; look whether its data was deleted"


@dataclass(frozen=True, slots=True)
class JobRules:
    """Bounds of a job's life; times in nanoseconds.

    Attributes:
        refusals_max: so many refusals of ingestors do not count as attempts.
        closing_grace_ns: a job whose last attempt has failed waits so long for that attempt's closing batch.
    """

    attempts_max: int = 3
    refusals_max: int = 5
    closing_grace_ns: int = 60 * NANOSECONDS
    deadline_ns: int = 900 * NANOSECONDS
    backoff_ns: int = NANOSECONDS
    backoff_max_ns: int = 30 * NANOSECONDS
    requests: RequestRules = field(default_factory=RequestRules)


class JobBook:
    """Unfinished jobs and their requests; what a job needs of slots goes to the broker.

    Args:
        broker: slots and leases.
        rules: bounds.
    """

    def __init__(self, broker: Broker, rules: JobRules) -> None:
        self._broker = broker
        self._rules = rules
        self._jobs: dict[str, Job] = {}
        self._by_key: dict[object, str] = {}
        self._requests: dict[str, list[Request]] = {}
        self._by_request: dict[str, Request] = {}
        self._looks = LookSchedule()

    @property
    def jobs(self) -> Mapping[str, Job]:
        """Unfinished jobs by id."""
        return self._jobs

    def find_request(self, request_id: str) -> Request | None:
        """Return a request that still runs."""
        return self._by_request.get(request_id)

    def requests_of(self, job_id: str) -> list[Request]:
        """Return the requests that a job answers."""
        return self._requests.get(job_id, [])

    def restore(self, jobs: Iterable[Job], requests: Iterable[Request], *, now_ns: int) -> None:
        """Take over what was stored: running attempts are trusted for one lease, the rest waits again."""
        for request in requests:
            self._requests.setdefault(request.job_id, []).append(request)
            self._by_request[request.request_id] = request
        for job in sorted(jobs, key=lambda j: j.created_ns):
            self._add(job)
            if job.state is JobState.DISPATCHED and job.assignment is not None:
                self._broker.restore(job.job_id, job.attempt, job.assignment, now_ns=now_ns)
            elif job.state is JobState.QUEUED:
                self._enqueue(job)
        self.mark_all()

    def submit(self, request: Request, *, now_ns: int) -> list[Command]:
        """Attach a new request to the running job that fetches the same, or to a new one."""
        job = new_history_job(request, rules=self._rules.requests, now_ns=now_ns)
        running = self._by_key.get(job.join_key)
        if running is not None:
            request = replace(request, job_id=running)
        self._requests.setdefault(request.job_id, []).append(request)
        self._by_request[request.request_id] = request
        if running is not None:
            return [AddRequest(request)]
        self._add(job)
        self.mark(job.job_id, is_urgent=True)
        return [AddJob(job), AddRequest(request)]

    def start_of_exchange(self, kind: JobKind, exchange: str, *, job_id: str, now_ns: int) -> list[Command]:
        """Fetch the symbols or the statistics of an exchange, unless that runs already."""
        job = Job(
            job_id=job_id,
            kind=kind,
            ticker=exchange,
            exchange=exchange,
            created_ns=now_ns,
            state=JobState.QUEUED,
            deadline_ns=now_ns + self._rules.deadline_ns,
        )
        if job.join_key in self._by_key:
            return []
        self._add(job)
        self._enqueue(job)
        return [AddJob(job)]

    def mark(self, job_id: str, *, is_urgent: bool = False) -> None:
        """Look at the tables for this job soon; at once when what is known of it has changed."""
        job = self._jobs.get(job_id)
        if job is not None and job.kind is JobKind.HISTORICAL:
            self._looks.mark(job_id, is_urgent=is_urgent)

    def mark_all(self) -> None:
        """Look at the tables for every unfinished job."""
        for job_id in self._jobs:
            self.mark(job_id)

    def waits_for_coverage(self, *, delivered_before_ns: int) -> bool:
        """Return whether an attempt that was delivered before a time has not been seen in the tables yet."""
        return any(0 < job.delivered_ns < delivered_before_ns for job in self._jobs.values())

    def take_marked(self, *, now_ns: int) -> list[Job]:
        """Return the jobs to look at now, and forget their marks."""
        return self._looks.take(self._jobs, now_ns=now_ns)

    def save(self, job: Job) -> SaveJob:
        """Take over a job's new state."""
        self._jobs[job.job_id] = job
        return SaveJob(job)

    def progressed(self, job: Job, *, rows: int, covered: Iterable[Range], now_ns: int) -> list[Command]:
        """A worker reported progress: what is in the log need not be fetched again, and the deadline moves."""
        logged = tuple(intersect(job.fetch, union((*job.logged, *covered))))
        if rows <= job.progress_rows and logged == job.logged:
            return []
        deadline_ns = now_ns + self._rules.deadline_ns
        return [
            self.save(replace(job, logged=logged, progress_rows=max(rows, job.progress_rows), deadline_ns=deadline_ns))
        ]

    def delivered(self, job: Job, *, rows: int = 0, now_ns: int) -> list[Command]:
        """An attempt wrote everything to the log: the rest is the history job's, and the deadline stands still."""
        if job.is_of_exchange:
            return self._end(replace(job, progress_rows=rows), Evidence(job.job_id, job.attempt, ()), now_ns=now_ns)
        self.mark(job.job_id, is_urgent=True)
        return [
            self.save(replace(job, state=JobState.DELIVERED, delivered_ns=now_ns, deadline_ns=None, assignment=None))
        ]

    def failed_for_good(self, job: Job, *, code: str, text: str, now_ns: int) -> list[Command]:
        """An attempt failed and there will be no other: its closing batch, once visible, ends the job."""
        if job.is_of_exchange:
            job = replace(job, error_code=code, error_message=text)
            return self._end(job, Evidence(job.job_id, job.attempt, ()), now_ns=now_ns)
        self.mark(job.job_id, is_urgent=True)
        grace_ns = now_ns + self._rules.closing_grace_ns
        deadline_ns = grace_ns if job.deadline_ns is None else min(job.deadline_ns, grace_ns)
        failed = replace(
            job,
            state=JobState.DELIVERED,
            assignment=None,
            error_code=code,
            error_message=text,
            deadline_ns=deadline_ns,
        )
        return [self.save(failed)]

    def try_again(
        self,
        job: Job,
        *,
        code: str,
        text: str,
        now_ns: int,
        is_counted: bool = True,
        is_reported: bool = False,
        keeps_reason: bool = False,
    ) -> list[Command]:
        """Let a job wait for its next attempt, or let it close when the bound is reached.

        Args:
            job: whose attempt is over.
            code, text: why.
            now_ns: present time.
            is_counted: False when the attempt shall not count.
            is_reported: True when the worker told of its failure: the next attempt waits, longer each time, and
                the job does not end before the closing batch of the last one is visible.
            keeps_reason: True when that batch is visible and must not end the job that waits for its next attempt.
        """
        counted = job.attempts_counted - (0 if is_counted else 1)
        if counted >= self._rules.attempts_max:
            end = self.failed_for_good if is_reported else self._close
            text = f"{counted} attempts failed, the last one by {code}: {text}"
            return end(job, code=ErrorCode.ATTEMPTS_EXHAUSTED, text=text, now_ns=now_ns)
        delay_ns = min(self._rules.backoff_ns << max(counted - 1, 0), self._rules.backoff_max_ns)
        waiting = replace(
            job,
            state=JobState.QUEUED,
            attempts_counted=counted,
            not_before_ns=now_ns + delay_ns if is_reported else 0,
            deadline_ns=job.deadline_ns or now_ns + self._rules.deadline_ns,
            delivered_ns=0,
            assignment=None,
            error_code=code if keeps_reason else "",
            error_message=text if keeps_reason else "",
        )
        self._enqueue(waiting)
        self.mark(job.job_id, is_urgent=True)
        return [self.save(waiting)]

    def given_back(self, job: Job, *, code: str, is_counted: bool, is_ban: bool, now_ns: int) -> list[Command]:
        """An ingestor rejected an attempt; who refuses again and again uses up the attempts all the same."""
        refusals = job.refusals + (0 if is_ban else 1)
        return self.try_again(
            replace(job, refusals=refusals),
            code=code,
            text="an ingestor rejected it",
            now_ns=now_ns,
            is_counted=is_counted or refusals > self._rules.refusals_max,
        )

    def weigh(self, evidence: Evidence, *, now_ns: int) -> list[Command]:
        """Decide by a look at the tables."""
        job = self._jobs.get(evidence.job_id)
        if job is None:
            return []
        if evidence.last is not None and evidence.last.attempt != job.attempt:
            evidence = replace(evidence, last=None)
        if job.closing and not evidence.is_closing:
            self.mark(job.job_id, is_urgent=True)
            return []
        verdict = judge(job, evidence, attempts_max=self._rules.attempts_max)
        if verdict is Verdict.END:
            return [*self._end(job, evidence, now_ns=now_ns), *self._overtake(job, now_ns=now_ns)]
        if verdict is Verdict.WAIT:
            return []
        piece = beginning(job, evidence.covered)
        seen = replace(
            job, stored=evidence.covered, logged=(), resume_ns=piece.end_ns, bars_before=evidence.bars_before
        )
        last = evidence.last
        if verdict is Verdict.LOST:
            return self.try_again(seen, code=ErrorCode.STORAGE, text=_LOST, now_ns=now_ns, keeps_reason=True)
        return self.try_again(
            seen,
            code=last.error_code if last else "",
            text=last.error_message if last else "",
            now_ns=now_ns,
            is_reported=last is not None,
        )

    def check_deadlines(self, now_ns: int) -> list[Command]:
        """Close the jobs whose time is over."""
        late = [j for j in self._jobs.values() if not j.closing and j.deadline_ns and j.deadline_ns <= now_ns]
        commands: list[Command] = []
        for job in late:
            code = job.error_code or ErrorCode.DEADLINE
            text = job.error_message or "no progress before the deadline; submit the missing ranges again"
            commands += self._close(job, code=code, text=text, now_ns=now_ns)
        return commands

    def _close(self, job: Job, *, code: str, text: str, now_ns: int) -> list[Command]:
        """No more attempts; the next look at the tables says what was reached."""
        cancel = self._withdraw(job, now_ns=now_ns)
        self._leave_key(job)
        closing = replace(
            job, state=JobState.DELIVERED, closing=True, error_code=code, error_message=text, assignment=None
        )
        if job.is_of_exchange:
            return [*cancel, *self._end(closing, Evidence(job.job_id, job.attempt, ()), now_ns=now_ns)]
        self.mark(job.job_id, is_urgent=True)
        return [self.save(closing), *cancel]

    def _end(self, job: Job, evidence: Evidence, *, now_ns: int) -> list[Command]:
        cancel = self._withdraw(job, now_ns=now_ns)
        del self._jobs[job.job_id]
        self._leave_key(job)
        self._looks.forget(job.job_id)
        requests = self._requests.pop(job.job_id, [])
        for request in requests:
            del self._by_request[request.request_id]
        outcomes = tuple(outcome_of(job, request, evidence, now_ns=now_ns) for request in requests)
        ended = EndJob(replace(job, state=JobState.ENDED, assignment=None), outcomes, now_ns)
        return [ended, *cancel, *map(Publish, outcomes)]

    def _overtake(self, ended: Job, *, now_ns: int) -> list[Command]:
        """A job delivered later was seen in the tables: the history job is neither away nor behind for older ones."""
        if not ended.delivered_ns or ended.closing:
            return []
        older = [
            j
            for j in self._jobs.values()
            if j.state is JobState.DELIVERED and j.deadline_ns is None and j.delivered_ns < ended.delivered_ns
        ]
        return [self.save(replace(j, deadline_ns=now_ns + self._rules.deadline_ns)) for j in older]

    def _withdraw(self, job: Job, *, now_ns: int) -> list[Command]:
        lease = self._broker.withdraw(job.job_id, now_ns=now_ns)
        if lease is None or not lease.route:
            return []
        cancel = work_pb2.IngestorControl(action=work_pb2.IngestorControl.CANCEL, request_id=job.job_id)
        return [SendWork(lease.route, cancel)]

    def _add(self, job: Job) -> None:
        self._jobs[job.job_id] = job
        if not job.closing:
            self._by_key[job.join_key] = job.job_id

    def _leave_key(self, job: Job) -> None:
        """Let later requests for the same get a new job."""
        if self._by_key.get(job.join_key) == job.job_id:
            del self._by_key[job.join_key]

    def _enqueue(self, job: Job) -> None:
        self._broker.enqueue(
            job.job_id,
            attempt=job.attempt + 1,
            exchange=job.exchange,
            slot_type=work_pb2.WorkerReady.HISTORICAL,
            client_id=job.client_id,
            created_ns=job.created_ns,
            not_before_ns=job.not_before_ns,
        )
