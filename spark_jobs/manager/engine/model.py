"""Values of the manager: requests, jobs, assignments, outcomes. All frozen; times in nanoseconds, UTC."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range

__all__ = [
    "NOTHING",
    "Assignment",
    "Job",
    "JobKind",
    "JobState",
    "Outcome",
    "RealtimeJob",
    "RealtimeState",
    "Request",
    "Route",
    "StoredRequest",
    "StoredState",
    "StoredTrigger",
    "TriggerState",
]


NOTHING = Range(0, 0)
Route = tuple[bytes, ...]
"""Frames that lead to a peer, echoed as they came; empty when it was not heard since the start."""


class JobKind(StrEnum):
    """What a job fetches."""

    HISTORICAL = "historical"
    SYMBOLS = "symbols"
    STATISTICS = "statistics"


class JobState(StrEnum):
    """Where a job is in its life.

    ::

        CHECKING ──covered──────────────────────────────────────► ENDED
           └─► QUEUED ◄─attempt lost, failed, rejected──┐            ▲
                 └─► DISPATCHED ──WorkComplete──► DELIVERED ──evidence┘
    """

    CHECKING = "checking"
    QUEUED = "queued"
    DISPATCHED = "dispatched"
    DELIVERED = "delivered"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Request:
    """One client's request as it was submitted; ``job_id`` is the job that answers it.

    Attributes:
        start_ns, end_ns: as submitted, neither rounded nor clipped.
    """

    request_id: str
    job_id: str
    client_id: str | None
    ticker: str
    period_seconds: int
    start_ns: int
    end_ns: int
    limit: int | None
    submitted_ns: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """The slot that an attempt took: which offer of which slot of which ingestor process."""

    ingestor_id: str
    ingestor_epoch: int
    slot_id: int
    offer_sequence: int
    exchange: str
    slot_type: int


@dataclass(frozen=True, slots=True)
class Job:
    """One fetch, for one or many requests.

    Attributes:
        ticker: the ticker, or the bare exchange for SYMBOLS and STATISTICS.
        fetch: bar-aligned range after clipping to closed bars; empty for SYMBOLS and STATISTICS.
        attempt: number of the latest attempt, 0 before the first; with ``job_id`` it names a lease.
        attempts_counted: attempts that count against the bound (bans and undelivered ones do not).
        deadline_ns: when it ends without more evidence; None while the deadline stands still.
        delivered_ns: when WorkComplete came, 0 before.
        stored: ranges that the table held before the job.
        logged: ranges that workers say the event log has acknowledged; skipped by the next attempt.
        resume_ns, bars_before: with a limit, where the next attempt starts and how many bars lie before.
        refusals: how often an ingestor gave it back without a ban; the first few do not count as attempts.
        closing: no more attempts; ends by whatever the next look at the table shows.
    """

    job_id: str
    kind: JobKind
    ticker: str
    exchange: str
    created_ns: int
    client_id: str = ""
    period_seconds: int = 0
    fetch: Range = NOTHING
    limit: int | None = None
    state: JobState = JobState.CHECKING
    attempt: int = 0
    attempts_counted: int = 0
    not_before_ns: int = 0
    deadline_ns: int | None = None
    delivered_ns: int = 0
    stored: tuple[Range, ...] = ()
    logged: tuple[Range, ...] = ()
    progress_rows: int = 0
    resume_ns: int = 0
    bars_before: int = 0
    assignment: Assignment | None = None
    error_code: str = ""
    error_message: str = ""
    closing: bool = False
    refusals: int = 0

    @property
    def bars(self) -> int:
        """How many bars its range spans."""
        return (self.fetch.end_ns - self.fetch.start_ns) // (self.period_seconds * NANOSECONDS or 1)

    @property
    def is_of_exchange(self) -> bool:
        """Whether it is over with its WorkComplete: no table says what it brought."""
        return self.kind is not JobKind.HISTORICAL

    @property
    def join_key(self) -> tuple[str, str, int, Range, int | None]:
        """Identical running fetches share one job."""
        return self.kind, self.ticker, self.period_seconds, self.fetch, self.limit


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one request, kept until published and for duplicates afterwards.

    Attributes:
        topic: where it is published.
        notification: serialised HistoryReadyNotification.
        published_ns: 0 while it waits for a listener.
    """

    request_id: str
    topic: str
    notification: bytes
    completed_ns: int
    published_ns: int = 0


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A request with its outcome, None while it runs."""

    request: Request
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class StoredState:
    """What a manager needs at start: unfinished jobs, their requests, live jobs, triggers, exchanges ever offered."""

    jobs: tuple[Job, ...]
    requests: tuple[Request, ...]
    exchanges: frozenset[str]
    realtime: tuple[RealtimeJob, ...] = ()
    triggers: tuple[StoredTrigger, ...] = ()


class RealtimeState(StrEnum):
    """Where a live ticker's job is; it has no end, only times without demand.

    ::

        IDLE ──demand──► QUEUED ──slot──► RUNNING ──demand gone──► STOPPING ──WorkComplete──► IDLE
                            ▲                └──── lost, rejected, failed ──┘
    """

    IDLE = "idle"
    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class RealtimeJob:
    """The one live job of a ticker.

    Attributes:
        attempt: of the newest dispatch; grows for ever, so that an older one's beats are known as such.
        resume_after: highest trade id up to which everything is in the log or given up; empty before the first.
        resume_after_ns: exchange time of that trade, or of one before it; 0 where it is not known.
        failures: attempts in a row that ended without a beat of progress.
        not_before_ns: the next attempt starts no earlier.
    """

    job_id: str
    ticker: str
    exchange: str
    created_ns: int
    state: RealtimeState = RealtimeState.IDLE
    attempt: int = 0
    resume_after: str = ""
    resume_after_ns: int = 0
    failures: int = 0
    not_before_ns: int = 0
    changed_ns: int = 0
    assignment: Assignment | None = None
    error_code: str = ""
    error_message: str = ""


class TriggerState(StrEnum):
    """Whether a trigger is active, or how it ended."""

    ACTIVE = "active"
    CANCELLED = "cancelled"
    FIRED = "fired"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class StoredTrigger:
    """A trigger as it is kept.

    Attributes:
        definition: serialised REGISTER.
        ended_ns: 0 while it is active.
    """

    trigger_id: str
    definition: bytes
    registered_ns: int
    state: TriggerState = TriggerState.ACTIVE
    ended_ns: int = 0
