"""What a history request means: field checks, the aligned and clipped range, the job that answers it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS, align_down_ns, align_up_ns, bar_count, check_period
from relay.protocol.ranges import Range
from relay.protocol.tickers import parse_ticker
from relay.protocol.times import check_time_ns
from relay.protocol.topics import is_uuid_text, request_topic, response_topic
from relay.protocol.v1 import request_pb2
from spark_jobs.manager.engine.model import Job, JobKind, Request

__all__ = [
    "REQUEST_ROWS_MAX",
    "RequestRules",
    "check_admission",
    "fetch_range",
    "is_same_request",
    "new_history_job",
    "notification_topic",
    "read_request",
    "wanted_range",
]

REQUEST_ROWS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class RequestRules:
    """Bounds that are settings."""

    rows_max: int = REQUEST_ROWS_MAX
    deadline_ns: int = 900 * NANOSECONDS


def read_request(message: request_pb2.SubmitHistoricalRequest, *, job_id: str, now_ns: int) -> Request:
    """Return the request that a message asks for, with the ticker in its new form.

    Args:
        message: as the client sent it.
        job_id: of the job that would answer it.
        now_ns: present time.

    Raises:
        PeerError: with the code that the answer carries.
    """
    if not is_uuid_text(message.request_id):
        raise PeerError(
            f"expected request_id as a lower-case UUID of 36 characters, got {message.request_id[:80]!r}",
            code=ErrorCode.INVALID_REQUEST_ID,
        )
    client_id = message.client_id if message.HasField("client_id") else None
    if client_id is not None and not is_uuid_text(client_id):
        raise PeerError(
            f"expected client_id as a lower-case UUID of 36 characters, got {client_id[:80]!r}; or leave it out",
            code=ErrorCode.INVALID_CLIENT_ID,
        )
    request = Request(
        request_id=message.request_id,
        job_id=job_id,
        client_id=client_id,
        ticker=str(parse_ticker(message.ticker)),
        period_seconds=check_period(message.period_seconds),
        start_ns=check_time_ns(message.start_time, what="start_time"),
        end_ns=check_time_ns(message.end_time, what="end_time"),
        limit=message.limit if message.HasField("limit") else None,
        submitted_ns=now_ns,
    )
    _check_range(request)
    return request


def _check_range(request: Request) -> None:
    if request.end_ns <= request.start_ns:
        raise PeerError(
            f"expected start_time before end_time, got {request.start_ns} and {request.end_ns}",
            code=ErrorCode.INVALID_RANGE,
        )
    if request.limit == 0:
        raise PeerError(
            "expected a limit of at least 1, got 0; leave it out for all bars", code=ErrorCode.INVALID_LIMIT
        )
    wanted = wanted_range(request)
    if not bar_count(wanted.start_ns, wanted.end_ns, request.period_seconds):
        raise PeerError(
            f"no bar of {request.period_seconds} s starts in [{request.start_ns}, {request.end_ns}); widen the range",
            code=ErrorCode.INVALID_RANGE,
        )


def check_admission(request: Request, *, exchanges: Collection[str], rules: RequestRules, now_ns: int) -> None:
    """Raise when a new request cannot be served.

    Raises:
        PeerError: UNKNOWN_EXCHANGE with the known ones, or TOO_MANY_ROWS with the advice to split.
    """
    exchange = parse_ticker(request.ticker).exchange
    if exchange not in exchanges:
        raise PeerError(
            f"unknown exchange {exchange}; known are {', '.join(sorted(exchanges)) or 'none yet'}",
            code=ErrorCode.UNKNOWN_EXCHANGE,
        )
    fetch = fetch_range(request, now_ns=now_ns)
    rows = bar_count(fetch.start_ns, fetch.end_ns, request.period_seconds)
    if request.limit is not None:
        rows = min(rows, request.limit)
    if rows > rules.rows_max:
        raise PeerError(
            f"expected at most {rules.rows_max} rows a request, got a range of {rows}; "
            f"split it into {-(-rows // rules.rows_max)} requests",
            code=ErrorCode.TOO_MANY_ROWS,
        )


def wanted_range(request: Request) -> Range:
    """Return what the client asked for: from the first bar start that is in the range to its end as submitted."""
    return Range(align_up_ns(request.start_ns, request.period_seconds), request.end_ns)


def fetch_range(request: Request, *, now_ns: int) -> Range:
    """Return the whole bars to fetch: ends on the grid, clipped to bars that are closed now."""
    start_ns = align_up_ns(request.start_ns, request.period_seconds)
    end_ns = min(align_up_ns(request.end_ns, request.period_seconds), align_down_ns(now_ns, request.period_seconds))
    return Range(start_ns, max(start_ns, end_ns))


def new_history_job(request: Request, *, rules: RequestRules, now_ns: int) -> Job:
    """Return the job of a request that nothing running answers."""
    return Job(
        job_id=request.job_id,
        kind=JobKind.HISTORICAL,
        ticker=request.ticker,
        exchange=parse_ticker(request.ticker).exchange,
        created_ns=now_ns,
        client_id=request.client_id or "",
        period_seconds=request.period_seconds,
        fetch=fetch_range(request, now_ns=now_ns),
        limit=request.limit,
        deadline_ns=now_ns + rules.deadline_ns,
    )


def is_same_request(left: Request, right: Request) -> bool:
    """Return whether two requests of one id ask the same."""

    def asked(r: Request) -> tuple[object, ...]:
        return r.client_id, r.ticker, r.period_seconds, r.start_ns, r.end_ns, r.limit

    return asked(left) == asked(right)


def notification_topic(request: Request) -> str:
    """Return where the outcome is published: the client's topic, or the request's own when it gave no client_id."""
    return response_topic(request.client_id) if request.client_id else request_topic(request.request_id)
