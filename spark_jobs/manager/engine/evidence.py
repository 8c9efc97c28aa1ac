"""What the tables say about a job, and what follows: end it, try again, or wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range, intersect, subtract, union
from relay.protocol.v1 import request_pb2
from relay.tables.port import CoverageRow
from spark_jobs.manager.engine.model import Job, JobState

__all__ = [
    "Evidence",
    "Verdict",
    "beginning",
    "can_pass",
    "conclude",
    "covered_by",
    "is_miscounted",
    "is_worth_counting",
    "judge",
    "last_row",
    "missing_of",
]

_PASSING = frozenset(
    {
        ErrorCode.UNAVAILABLE,
        ErrorCode.TIMEOUT,
        ErrorCode.OVERLOADED,
        ErrorCode.RATE_LIMITED,
        ErrorCode.BANNED,
        ErrorCode.MAINTENANCE,
        ErrorCode.EXCHANGE_ERROR,
        ErrorCode.BAD_ANSWER,
        ErrorCode.NO_PROGRESS,
        ErrorCode.CANCELLED,
        ErrorCode.LEASE_LOST,
        ErrorCode.STORAGE,
        ErrorCode.INTERNAL,
        ErrorCode.DEADLINE,
    }
)
_NOTHING_THERE = frozenset({ErrorCode.UNKNOWN_SYMBOL, ErrorCode.NO_DATA, ErrorCode.BEFORE_LISTING})
_STATUS = request_pb2.HistoryReadyNotification


class Verdict(Enum):
    """What to do with a job."""

    WAIT = "wait"
    FETCH = "fetch"
    END = "end"
    LOST = "lost"
    """What an attempt had written to the log is not there any more: fetch it again."""


@dataclass(frozen=True, slots=True)
class LogEnds:
    """What the event log of history held at a time.

    Attributes:
        cluster_id, topic_id: which log this is.
        oldest, ends: by partition: the oldest offset that is kept, and the one after the last record.
        asked_ns: every record that was acknowledged before this time lies before the ends, or is gone.
    """

    cluster_id: str
    topic_id: str
    oldest: tuple[int, ...]
    ends: tuple[int, ...]
    asked_ns: int

    def is_read(self, reached: Mapping[int, int]) -> bool:
        """Return whether end offsets by partition, reached in this very log, leave nothing of it unread."""
        return all(
            end <= max(oldest, reached.get(partition, 0))
            for partition, (oldest, end) in enumerate(zip(self.oldest, self.ends, strict=True))
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """One look at the tables for one job; coverage was read before bars and snapshot.

    Attributes:
        attempt: the job's attempt when it was looked at.
        covered: union over all attempts and of what was stored before, inside the job's range.
        last: the ``is_last`` row of the job's latest attempt, when it is visible.
        nth_bar_ns: with a limit, the start of the last wanted bar when all before it is covered.
        bars: bars in the table in the job's range, at most the limit.
        bars_before: with a limit that is not reached, bars in the covered beginning, after which the next attempt
            goes on.
        snapshot_id: of ``market.ohlc``.
        is_miscounted: the visible rows of the attempt are not as many as its last batch says.
        is_closing: the job was closing when it was looked at, so that bars were counted whatever was covered.
        log_read_ns: whatever the log had acknowledged before this time is in the tables, or is gone; 0 for unknown.
    """

    job_id: str
    attempt: int
    covered: tuple[Range, ...]
    last: CoverageRow | None = None
    nth_bar_ns: int | None = None
    bars: int = 0
    bars_before: int = 0
    snapshot_id: int = 0
    is_miscounted: bool = False
    is_closing: bool = False
    log_read_ns: int = 0


def can_pass(error_code: str) -> bool:
    """Return whether a later attempt may succeed where this code was the cause."""
    return error_code in _PASSING


def covered_by(job: Job, rows: Iterable[CoverageRow]) -> tuple[Range, ...]:
    """Return what of the job's range is covered, united over all its attempts."""
    return tuple(intersect(job.fetch, union((*job.stored, *(r for row in rows for r in row.covered)))))


def last_row(job: Job, rows: Iterable[CoverageRow]) -> CoverageRow | None:
    """Return the closing row of the latest attempt: with it, all rows of all attempts are visible."""
    return next((row for row in rows if row.is_last and row.attempt == job.attempt), None)


def is_miscounted(job: Job, rows: Iterable[CoverageRow]) -> bool:
    """Return whether the latest attempt's closing row is visible and says another total than its rows add up to."""
    own = [row for row in rows if row.attempt == job.attempt]
    return any(row.is_last and row.total_rows != sum(r.rows for r in own) for row in own)


def beginning(job: Job, covered: tuple[Range, ...]) -> Range:
    """Return the covered piece at the very start of the job's range, empty when there is none."""
    if covered and covered[0].start_ns == job.fetch.start_ns:
        return covered[0]
    return Range(job.fetch.start_ns, job.fetch.start_ns)


def is_whole(job: Job, covered: Iterable[Range]) -> bool:
    """Return whether nothing of the job's range is missing."""
    return not subtract(job.fetch, covered)


def is_worth_counting(job: Job, covered: tuple[Range, ...], last: CoverageRow | None) -> bool:
    """Return whether the job may end by this look, so that its bars must be counted."""
    return job.closing or last is not None or is_whole(job, covered)


def is_complete(job: Job, evidence: Evidence) -> bool:
    """Return whether the request is answered in full."""
    return evidence.nth_bar_ns is not None or is_whole(job, evidence.covered)


def judge(job: Job, evidence: Evidence, *, attempts_max: int) -> Verdict:
    """Decide what follows from a look at the tables."""
    if is_complete(job, evidence) or job.closing:
        return Verdict.END
    if job.state is JobState.CHECKING:
        return Verdict.FETCH
    if job.state is JobState.DISPATCHED:
        return Verdict.WAIT
    if evidence.last is None:
        return Verdict.LOST if is_delivery_lost(job, evidence) else Verdict.WAIT
    return _judge_closed(job, evidence, evidence.last, is_last_attempt=job.attempts_counted >= attempts_max)


def _judge_closed(job: Job, evidence: Evidence, last: CoverageRow, *, is_last_attempt: bool) -> Verdict:
    """Decide by the closing row of an attempt that left something open."""
    if job.state is JobState.QUEUED and (job.error_code or can_pass(last.error_code)):
        return Verdict.WAIT
    if is_last_attempt:
        return Verdict.END
    if can_pass(last.error_code):
        return Verdict.FETCH
    return Verdict.LOST if is_progress_lost(job, evidence) else Verdict.END


def is_delivery_lost(job: Job, evidence: Evidence) -> bool:
    """Return whether the history job has read all that the log held after the delivery, and met no closing batch."""
    is_waiting = job.state is JobState.DELIVERED and not job.error_code and evidence.attempt == job.attempt
    return is_waiting and 0 < job.delivered_ns < evidence.log_read_ns


def is_progress_lost(job: Job, evidence: Evidence) -> bool:
    """Return whether the log had acknowledged more than has come by the closing row, before which all batches lie."""
    return any(subtract(piece, evidence.covered) for piece in job.logged)


def missing_of(job: Job, evidence: Evidence, wanted: Range) -> list[Range]:
    """Return what of a request's range is not covered; after the bar that fills the limit nothing is missing."""
    if evidence.nth_bar_ns is not None:
        wanted = Range(wanted.start_ns, min(wanted.end_ns, evidence.nth_bar_ns + job.period_seconds * NANOSECONDS))
    return subtract(wanted, evidence.covered)


def conclude(job: Job, evidence: Evidence) -> tuple[_STATUS.Status, str, str]:
    """Return status, error code and error text of a job that ends."""
    last = evidence.last
    if is_complete(job, evidence):
        if evidence.bars:
            return _STATUS.OK, "", ""
        return _STATUS.NOT_FOUND, last.error_code if last else "", last.error_message if last else ""
    code = job.error_code or (last.error_code if last else "")
    text = job.error_message or (last.error_message if last else "")
    if not code:
        code, text = ErrorCode.NO_DATA, "the exchange answered less than was asked; what lacks is told in missing"
    if evidence.covered:
        return _STATUS.PARTIAL, code, text
    if code in _NOTHING_THERE or (last is not None and last.status == "NOT_FOUND"):
        return _STATUS.NOT_FOUND, code, text
    return (_STATUS.TIMEOUT if code == ErrorCode.DEADLINE else _STATUS.ERROR), code, text
