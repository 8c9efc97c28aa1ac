"""The end of a request as its client is told it."""

from __future__ import annotations

from relay.protocol.codes import ErrorCode
from relay.protocol.ranges import to_wire
from relay.protocol.v1 import request_pb2
from relay.tables.schema import NAMESPACE, OHLC_TABLE
from spark_jobs.manager.engine.evidence import Evidence, conclude, missing_of
from spark_jobs.manager.engine.model import Job, Outcome, Request
from spark_jobs.manager.engine.requests import notification_topic, wanted_range

__all__ = ["outcome_of", "pending", "unknown_request"]

_Notification = request_pb2.HistoryReadyNotification


def outcome_of(job: Job, request: Request, evidence: Evidence, *, now_ns: int) -> Outcome:
    """Return a request's outcome; requests of one job may differ in what of the future they asked for."""
    status, code, text = conclude(job, evidence)
    notification = _about(request)
    notification.status = status
    notification.error_code = code
    notification.error_message = text
    notification.row_count = evidence.bars
    notification.snapshot_id = evidence.snapshot_id
    notification.completed_at = now_ns
    notification.missing.extend(to_wire(missing_of(job, evidence, wanted_range(request))))
    return Outcome(request.request_id, notification_topic(request), notification.SerializeToString(), now_ns)


def pending(request: Request) -> _Notification:
    """Return the answer to a status query while the request runs."""
    notification = _about(request)
    notification.status = _Notification.PENDING
    return notification


def unknown_request(request_id: str) -> _Notification:
    """Return the answer to a status query about a request that was never submitted, or was pruned."""
    return _Notification(
        request_id=request_id[:80],
        status=_Notification.ERROR,
        error_code=ErrorCode.UNKNOWN_REQUEST,
        error_message="no such request; finished ones are kept for days only: submit it again with the same request_id",
    )


def _about(request: Request) -> _Notification:
    return _Notification(
        request_id=request.request_id,
        client_id=request.client_id or "",
        ticker=request.ticker,
        period_seconds=request.period_seconds,
        start_time=request.start_ns,
        end_time=request.end_ns,
        namespace=NAMESPACE,
        table=OHLC_TABLE,
    )
