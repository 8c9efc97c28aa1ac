"""Live jobs: one for each wanted ticker, dispatched again as long as the demand lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.v1 import work_pb2
from spark_jobs.manager.engine.broker import Broker, Lease
from spark_jobs.manager.engine.commands import Command, DropRealtime, SaveRealtime, SendWork
from spark_jobs.manager.engine.model import Assignment, RealtimeJob, RealtimeState, Route

__all__ = ["RealtimeBook", "RealtimeRules"]

_State = RealtimeState
_NO_DEMAND = "nobody has subscribed to it for a while"


@dataclass(frozen=True, slots=True)
class RealtimeRules:
    """Bounds of live jobs; times in nanoseconds.

    Attributes:
        stop_ns: so long after its last holder left a ticker is stopped.
        backoff_ns, backoff_max_ns: wait after a failed attempt, doubled each time.
        keep_ns: an idle job, with the id behind which it resumes, is forgotten after so long.
        jobs_max: tickers at once; more demand is refused and counted.
    """

    stop_ns: int = 60 * NANOSECONDS
    backoff_ns: int = NANOSECONDS
    backoff_max_ns: int = 60 * NANOSECONDS
    keep_ns: int = 7 * 86_400 * NANOSECONDS
    jobs_max: int = 10_000


class RealtimeBook:
    """Live jobs by ticker.

    Args:
        broker: slots and leases, shared with the other jobs.
        rules: bounds.
        exchanges: known ones; grows with offers. A ticker of any other makes no job.
        new_id: makes job ids.
    """

    def __init__(self, broker: Broker, rules: RealtimeRules, *, exchanges: set[str], new_id: Callable[[], str]) -> None:
        self._broker, self._rules, self._exchanges, self._new_id = broker, rules, exchanges, new_id
        self._jobs: dict[str, RealtimeJob] = {}
        self._by_ticker: dict[str, str] = {}
        self._wanted: frozenset[str] = frozenset()
        self._unwanted_ns: dict[str, int] = {}
        self._refused: set[str] = set()

    @property
    def refused_count(self) -> int:
        """How many wanted tickers have no job: of an unknown exchange, or over the bound."""
        return len(self._refused)

    @property
    def jobs(self) -> Mapping[str, RealtimeJob]:
        """All live jobs by id, idle ones too."""
        return self._jobs

    def owns(self, job_id: str) -> bool:
        """Return whether a job is one of these."""
        return job_id in self._jobs

    def unserved(self) -> list[str]:
        """Return the wanted tickers that no ingestor works on now."""
        return [t for t in sorted(self._wanted) if self._state_of(t) is not _State.RUNNING]

    def restore(self, jobs: Iterable[RealtimeJob], *, now_ns: int) -> None:
        """Take over what was stored: demand is not known yet, so everything has one grace to be wanted again."""
        for job in jobs:
            self._jobs[job.job_id] = job
            self._by_ticker[job.ticker] = job.job_id
            if job.state is not _State.IDLE:
                self._unwanted_ns[job.job_id] = now_ns
            if job.state in (_State.RUNNING, _State.STOPPING) and job.assignment is not None:
                self._broker.restore(job.job_id, job.attempt, job.assignment, now_ns=now_ns)
            elif job.state is _State.QUEUED:
                self._enqueue(job)

    def demand(self, tickers: frozenset[str], *, now_ns: int) -> list[Command]:
        """Take the set of wanted tickers."""
        commands: list[Command] = []
        for ticker in sorted(self._wanted - tickers):
            job_id = self._by_ticker.get(ticker)
            if job_id is not None:
                self._unwanted_ns[job_id] = now_ns
        for ticker in sorted(tickers - self._wanted):
            commands += self._want(ticker, now_ns=now_ns)
        self._refused &= tickers
        self._wanted = tickers
        return commands

    def on_tick(self, now_ns: int) -> list[Command]:
        """Stop what nobody has wanted for the grace; start what is wanted of an exchange that is known by now."""
        commands: list[Command] = []
        for ticker in [t for t in self._refused if self._is_admitted(t)]:
            commands += self._want(ticker, now_ns=now_ns)
        for job_id, since_ns in list(self._unwanted_ns.items()):
            if now_ns - since_ns >= self._rules.stop_ns:
                del self._unwanted_ns[job_id]
                commands += self._stop(self._jobs[job_id], now_ns=now_ns)
        return commands

    def prune(self, now_ns: int) -> list[Command]:
        """Forget the jobs that were idle for long."""
        old = [
            job
            for job in self._jobs.values()
            if job.state is _State.IDLE and now_ns - job.changed_ns > self._rules.keep_ns
        ]
        for job in old:
            del self._jobs[job.job_id], self._by_ticker[job.ticker]
        return [DropRealtime(job.job_id) for job in old]

    def assigned(self, lease: Lease, slot: Assignment, *, lease_ms: int, now_ns: int) -> list[Command]:
        """A slot was found: the attempt is stored, then sent."""
        job = replace(
            self._jobs[lease.job_id],
            state=_State.RUNNING,
            attempt=lease.attempt,
            assignment=slot,
            changed_ns=now_ns,
        )
        return [self._save(job), self.data_request(job, slot, lease, lease_ms=lease_ms)]

    def data_request(self, job: RealtimeJob, slot: Assignment, lease: Lease, *, lease_ms: int) -> SendWork:
        """Return the message that starts an attempt."""
        message = work_pb2.DataRequest(
            request_id=job.job_id,
            type=work_pb2.DataRequest.REALTIME_TICKS,
            ticker=job.ticker,
            job_id=job.job_id,
            attempt=lease.attempt,
            lease_ms=lease_ms,
            slot_id=slot.slot_id,
            offer_sequence=slot.offer_sequence,
            realtime=work_pb2.RealtimeParams(include_ticks=True),
        )
        if job.resume_after:
            message.realtime.resume_after_trade_id = job.resume_after
            message.realtime.resume_after_time = job.resume_after_ns
        return SendWork(lease.route, message, job.job_id, lease.attempt)

    def heard(self, message: work_pb2.WorkHeartbeat, route: Route, *, now_ns: int) -> list[Command]:
        """A worker's beat: its lease is renewed, and how far the log has come is stored."""
        job = self._jobs[message.job_id]
        if not self._broker.heard(job.job_id, message.attempt, route, now_ns=now_ns):
            if message.attempt >= job.attempt and job.state is _State.RUNNING:
                return []
            return [SendWork(route, work_pb2.WorkStop(job_id=job.job_id, reason="another attempt has this job"))]
        again: list[Command] = [self._stop_message(job, route)] if job.state is _State.STOPPING else []
        resume_after = _later_id(job.resume_after, message.last_logged_trade_id)
        if resume_after == job.resume_after and not job.failures:
            return again
        after_ns = job.resume_after_ns if resume_after == job.resume_after else message.last_logged_time
        saved = replace(job, resume_after=resume_after, resume_after_ns=after_ns, failures=0)
        return [self._save(saved), *again]

    def completed(self, message: work_pb2.WorkComplete, *, now_ns: int) -> list[Command]:
        """An attempt ended by its worker's word: it was stopped, or the exchange refused the ticker."""
        job = self._jobs[message.job_id]
        if self._broker.complete(job.job_id, message.attempt, now_ns=now_ns) is None:
            return []
        if job.state is _State.STOPPING or message.error_code == ErrorCode.CANCELLED:
            return self._ended(job, now_ns=now_ns)
        return self._failed(job, code=message.error_code, text=message.error_message, now_ns=now_ns)

    def rejected(self, job_id: str, *, code: str, is_failure: bool, now_ns: int) -> list[Command]:
        """A worker gave an attempt back; its lease has ended already."""
        job = self._jobs[job_id]
        if job.state is _State.STOPPING or not is_failure:
            return self._ended(job, now_ns=now_ns)
        return self._failed(job, code=code, text="an ingestor rejected it", now_ns=now_ns)

    def lost(self, job_id: str, *, now_ns: int) -> list[Command]:
        """An attempt's lease has ended without its worker's word: the next slot takes over at once."""
        job = self._jobs.get(job_id)
        return self._ended(job, now_ns=now_ns) if job is not None else []

    def _want(self, ticker: str, *, now_ns: int) -> list[Command]:
        job = self._jobs.get(self._by_ticker.get(ticker, ""))
        if job is None:
            if not self._is_admitted(ticker):
                self._refused.add(ticker)
                return []
            self._refused.discard(ticker)
            job = RealtimeJob(self._new_id(), ticker, _exchange_of(ticker), now_ns)
            self._by_ticker[ticker] = job.job_id
        self._unwanted_ns.pop(job.job_id, None)
        return self._queue(job, now_ns=now_ns) if job.state is _State.IDLE else []

    def _is_admitted(self, ticker: str) -> bool:
        return _exchange_of(ticker) in self._exchanges and len(self._jobs) < self._rules.jobs_max

    def _queue(self, job: RealtimeJob, *, now_ns: int) -> list[Command]:
        waiting = replace(job, state=_State.QUEUED, assignment=None, changed_ns=now_ns)
        self._enqueue(waiting)
        return [self._save(waiting)]

    def _stop(self, job: RealtimeJob, *, now_ns: int) -> list[Command]:
        if job.state is _State.QUEUED:
            self._broker.withdraw(job.job_id, now_ns=now_ns)
            return [self._save(replace(job, state=_State.IDLE, changed_ns=now_ns))]
        if job.state is not _State.RUNNING:
            return []
        lease = self._broker.lease_of(job.job_id, job.attempt)
        if lease is None:
            return [self._save(replace(job, state=_State.IDLE, assignment=None, changed_ns=now_ns))]
        stopping = self._save(replace(job, state=_State.STOPPING, changed_ns=now_ns))
        return [stopping, self._stop_message(job, lease.route)] if lease.route else [stopping]

    def _ended(self, job: RealtimeJob, *, now_ns: int) -> list[Command]:
        """No attempt runs now: wait for a slot again while the ticker is wanted or in its grace."""
        if job.ticker in self._wanted or job.job_id in self._unwanted_ns:
            return self._queue(job, now_ns=now_ns)
        return [self._save(replace(job, state=_State.IDLE, assignment=None, changed_ns=now_ns))]

    def _failed(self, job: RealtimeJob, *, code: str, text: str, now_ns: int) -> list[Command]:
        failures = job.failures + 1
        wait_ns = min(self._rules.backoff_ns << min(failures - 1, 16), self._rules.backoff_max_ns)
        failed = replace(
            job, failures=failures, not_before_ns=now_ns + wait_ns, error_code=code, error_message=text[:500]
        )
        return self._ended(failed, now_ns=now_ns)

    def _enqueue(self, job: RealtimeJob) -> None:
        self._broker.enqueue(
            job.job_id,
            attempt=job.attempt + 1,
            exchange=job.exchange,
            slot_type=work_pb2.WorkerReady.REALTIME,
            client_id="",
            created_ns=job.created_ns,
            not_before_ns=job.not_before_ns,
        )

    def _save(self, job: RealtimeJob) -> SaveRealtime:
        self._jobs[job.job_id] = job
        return SaveRealtime(job)

    def _stop_message(self, job: RealtimeJob, route: Route) -> SendWork:
        return SendWork(route, work_pb2.WorkStop(job_id=job.job_id, reason=_NO_DEMAND))

    def _state_of(self, ticker: str) -> RealtimeState | None:
        job = self._jobs.get(self._by_ticker.get(ticker, ""))
        return None if job is None else job.state


def _exchange_of(ticker: str) -> str:
    return ticker.rpartition(".")[2]


def _later_id(known: str, told: str) -> str:
    """Return the higher of two ids; one that is no number is not taken over."""
    if not (told.isascii() and told.isdigit() and len(told) <= 20):
        return known
    return told if not known or int(told) > int(known) else known
