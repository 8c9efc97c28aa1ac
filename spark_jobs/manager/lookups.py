"""Reads of the tables on one worker thread: they block for tens of milliseconds, which the loop must not."""

from __future__ import annotations

import queue
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from relay.errors import RelayError
from relay.protocol.ranges import Range
from relay.protocol.v1 import market_pb2, request_pb2
from relay.tables.port import CoverageRow, TableReader
from relay.transport import Waker
from spark_jobs.manager.engine.evidence import (
    Evidence,
    LogEnds,
    beginning,
    covered_by,
    is_miscounted,
    is_worth_counting,
    last_row,
)
from spark_jobs.manager.engine.model import Job, JobState, Route

__all__ = ["Answered", "Failed", "JobsQuestion", "SymbolsFound", "SymbolsQuestion", "TableLookups", "look_at_jobs"]

_MARKETS_MAX = 1_000_000
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JobsQuestion:
    """Look at the tables for these jobs, as they are now; with what the event log held lately, where it is known."""

    jobs: tuple[Job, ...]
    log_ends: LogEnds | None = None


@dataclass(frozen=True, slots=True)
class SymbolsQuestion:
    """Look for markets."""

    query: request_pb2.SymbolQuery
    exchange: str
    routing: Route


@dataclass(frozen=True, slots=True)
class Answered:
    """What was seen for the jobs of a question."""

    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class SymbolsFound:
    """Markets that match, and how many are stored: of each exchange that was asked about when none matches."""

    question: SymbolsQuestion
    markets: tuple[market_pb2.Market, ...]
    snapshot_id: int
    stored: Mapping[str, int]

    @property
    def stored_count(self) -> int:
        """Of all exchanges."""
        return sum(self.stored.values())


@dataclass(frozen=True, slots=True)
class Failed:
    """The tables could not be read; jobs are looked at again by the next reconciliation."""

    question: JobsQuestion | SymbolsQuestion
    code: str
    text: str


Question = JobsQuestion | SymbolsQuestion
Result = Answered | SymbolsFound | Failed


class TableLookups:
    """Questions in, results out through a queue and a wake of the loop.

    Args:
        open_tables: opens the tables, on the worker thread and again after a failure to open.
        waker: woken for each result.
    """

    def __init__(self, open_tables: Callable[[], TableReader], waker: Waker) -> None:
        self._open_tables = open_tables
        self._waker = waker
        self._questions: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self._tables: TableReader | None = None
        self._unread: LogEnds | None = None
        self._thread = threading.Thread(target=self._run, name="table-lookups", daemon=True)
        self._thread.start()

    def ask(self, question: Question) -> None:
        """Put a question; results come in the order of questions."""
        self._questions.put(question)

    def results(self) -> list[Result]:
        """Return the results that are there."""
        found: list[Result] = []
        while True:
            try:
                found.append(self._results.get_nowait())
            except queue.Empty:
                return found

    @property
    def catalog_changes(self) -> int:
        """How often the catalog's file was found deleted or replaced."""
        return self._tables.catalog_changes if self._tables is not None else 0

    def close(self) -> None:
        """Stop after the question in hand; a read that hangs is left behind."""
        self._questions.put(None)
        self._thread.join(timeout=2.0)

    def _run(self) -> None:
        while (question := self._questions.get()) is not None:
            try:
                result = self._answer(question)
            except RelayError as error:
                result = Failed(question, error.code, str(error))
            except Exception as error:  # noqa: BLE001 - a dead worker thread would stop every job without a word
                _log.exception("table_read_failed")
                result = Failed(question, RelayError.default_code, f"reading the tables failed: {error}")
            self._results.put(result)
            self._waker.wake()

    def _answer(self, question: Question) -> Result:
        if self._tables is None:
            self._tables = self._open_tables()
        if isinstance(question, JobsQuestion):
            return self._look(self._tables, question)
        return _find_symbols(self._tables, question)

    def _look(self, tables: TableReader, question: JobsQuestion) -> Answered:
        """Look, and keep ends that the tables have not reached: where bars never cease, the newest never are."""
        newest, oldest = question.log_ends, self._unread
        ends = tuple(one for one in (newest, oldest) if one is not None)
        evidence = tuple(look_at_jobs(tables, question.jobs, log_ends=ends))
        read_ns = max((one.log_read_ns for one in evidence), default=0)
        is_same_log = oldest is not None and newest is not None and oldest.topic_id == newest.topic_id
        if not is_same_log or (oldest is not None and oldest.asked_ns <= read_ns):
            self._unread = newest if newest is not None and newest.asked_ns > read_ns else None
        return Answered(evidence)


def _find_symbols(tables: TableReader, question: SymbolsQuestion) -> SymbolsFound:
    query = question.query
    limit = min(query.limit or 100, 10_000)
    wanted = {"ticker": query.ticker, "exchange": question.exchange, "text": query.text}
    markets, snapshot_id = tables.markets(**wanted, limit=limit)
    stored = Counter(market.exchange_id for market in markets)
    if not markets:
        everything, _ = tables.markets(exchange=question.exchange, limit=_MARKETS_MAX)
        stored = Counter(market.exchange_id for market in everything)
        # Counted before the last look: what has come since is seen, and is never told to be unknown.
        markets, snapshot_id = tables.markets(**wanted, limit=limit)
    return SymbolsFound(question, tuple(markets), snapshot_id, stored)


def look_at_jobs(tables: TableReader, jobs: Sequence[Job], *, log_ends: Sequence[LogEnds] = ()) -> list[Evidence]:
    """Return the evidence for jobs: one scan for their coverage rows, then bars where a job may end.

    How far the log has been read is asked first: a row that is not seen after that does not come out of it any more.

    Args:
        tables: to be read.
        jobs: of the manager.
        log_ends: where the log ended, newest first; the first that the tables have reached counts.

    Raises:
        RetryableError: the tables are away.
    """
    log_read_ns = _log_read_ns(tables, log_ends)
    started = [job.job_id for job in jobs if job.attempt]
    rows: defaultdict[str, list[CoverageRow]] = defaultdict(list)
    for row in tables.job_coverage(started) if started else ():
        rows[row.job_id].append(row)
    stored = _stored_coverage(tables, [job for job in jobs if job.state is JobState.CHECKING or job.closing])
    bars = _BarCounts(tables)
    looks = [
        _look(bars, replace(job, stored=(*job.stored, *stored.get(job.job_id, ()))), rows[job.job_id]) for job in jobs
    ]
    return [replace(evidence, log_read_ns=log_read_ns) for evidence in looks]


def _log_read_ns(tables: TableReader, log_ends: Sequence[LogEnds]) -> int:
    for ends in log_ends:
        if ends.is_read(tables.log_reached(ends.cluster_id, ends.topic_id)):
            return ends.asked_ns
    return 0


def _stored_coverage(tables: TableReader, jobs: Iterable[Job]) -> dict[str, Sequence[Range]]:
    """Return what the table holds of the jobs' ranges, whoever fetched it: one scan for each ticker and period."""
    groups: defaultdict[tuple[str, int], list[Job]] = defaultdict(list)
    for job in jobs:
        if job.fetch:
            groups[job.ticker, job.period_seconds].append(job)
    found: dict[str, Sequence[Range]] = {}
    for (ticker, period_seconds), group in groups.items():
        hull = Range(min(j.fetch.start_ns for j in group), max(j.fetch.end_ns for j in group))
        covered = tables.coverage(ticker, period_seconds, within=hull)
        found |= {job.job_id: covered for job in group}
    return found


def _look(bars: _BarCounts, job: Job, rows: list[CoverageRow]) -> Evidence:
    covered, last = covered_by(job, rows), last_row(job, rows)
    evidence = Evidence(
        job.job_id, job.attempt, covered, last, is_miscounted=is_miscounted(job, rows), is_closing=job.closing
    )
    piece = beginning(job, covered)
    if job.limit is not None and piece:
        nth_ns = bars.nth_start_ns(job, piece, job.limit)
        before = bars.count(job, piece) if nth_ns is None else job.limit
        evidence = replace(evidence, nth_bar_ns=nth_ns, bars_before=before)
    if evidence.nth_bar_ns is None and not is_worth_counting(job, covered, last):
        return evidence
    count = bars.count(job, job.fetch) if evidence.nth_bar_ns is None else evidence.bars_before
    if job.limit is not None:
        count = min(count, job.limit)
    return replace(evidence, bars=count, snapshot_id=bars.snapshot_id())


class _BarCounts:
    """Counts of one look, each read once: joined or repeated ranges are common."""

    def __init__(self, tables: TableReader) -> None:
        self._tables = tables
        self._counts: dict[tuple[str, int, Range], int] = {}
        self._snapshot_id: int | None = None

    def count(self, job: Job, within: Range) -> int:
        key = (job.ticker, job.period_seconds, within)
        if key not in self._counts:
            self._counts[key] = self._tables.count_bars(job.ticker, job.period_seconds, within=within) if within else 0
        return self._counts[key]

    def nth_start_ns(self, job: Job, within: Range, n: int) -> int | None:
        return self._tables.nth_bar_start_ns(job.ticker, job.period_seconds, within=within, n=n)

    def snapshot_id(self) -> int:
        if self._snapshot_id is None:
            self._snapshot_id = self._tables.bars_snapshot_id()
        return self._snapshot_id
