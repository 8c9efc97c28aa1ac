"""What became of requests, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from relay.errors import RelayError
from relay.protocol.codes import ErrorCode
from relay.protocol.ranges import Range, from_wire
from relay.protocol.times import format_ns
from relay.protocol.v1 import request_pb2
from relay_client.arguments import text
from relay_client.engine.answers import error_for

__all__ = ["Outcome", "Progress", "Request", "RequestStatus", "id_of"]


class RequestStatus(StrEnum):
    """State of a request; all but PENDING are ends."""

    OK = "OK"
    NOT_FOUND = "NOT_FOUND"
    ERROR = "ERROR"
    TIMEOUT = "TIMEOUT"
    PARTIAL = "PARTIAL"
    PENDING = "PENDING"


@dataclass(frozen=True, slots=True)
class Request:
    """A submitted request.

    Attributes:
        request_id: key of everything that is asked about it.
        was_known: it had been submitted before with the same id.
        topic: where its end is published.
    """

    request_id: str
    ticker: str
    period_seconds: int
    start_ns: int
    end_ns: int
    limit: int | None
    was_known: bool
    topic: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """State or end of a request.

    Attributes:
        missing: what of its range is not covered.
        snapshot_id: of the table ``namespace.table``, at which the rows are visible; 0 when there are none.
    """

    request_id: str
    status: RequestStatus
    error_code: str
    error_message: str
    ticker: str
    period_seconds: int
    start_ns: int
    end_ns: int
    row_count: int
    snapshot_id: int
    completed_at_ns: int
    missing: tuple[Range, ...]

    @classmethod
    def of(cls, message: request_pb2.HistoryReadyNotification) -> Outcome:
        """Return the outcome of a notification."""
        return cls(
            request_id=message.request_id,
            status=RequestStatus(request_pb2.HistoryReadyNotification.Status.Name(message.status)),
            error_code=message.error_code,
            error_message=message.error_message,
            ticker=message.ticker,
            period_seconds=message.period_seconds,
            start_ns=message.start_time,
            end_ns=message.end_time,
            row_count=message.row_count,
            snapshot_id=message.snapshot_id,
            completed_at_ns=message.completed_at,
            missing=tuple(from_wire(message.missing)),
        )

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        return self.status is not RequestStatus.PENDING

    @property
    def error(self) -> RelayError | None:
        """The error that ERROR and TIMEOUT stand for; other ends are results."""
        if self.status not in (RequestStatus.ERROR, RequestStatus.TIMEOUT):
            return None
        code = self.error_code or ("TIMEOUT" if self.status is RequestStatus.TIMEOUT else "INTERNAL")
        text = self.error_message or f"the request ended with {self.status}"
        span = f"[{format_ns(self.start_ns)}, {format_ns(self.end_ns)})" if self.start_ns else ""
        return error_for(code, f"{self.ticker} {span} request {self.request_id}: {text}")

    def raise_for_status(self) -> Outcome:
        """Raise the error that this outcome stands for, else return it.

        Raises:
            RelayError: of the branch that its code belongs to.
        """
        if self.error is not None:
            raise self.error
        return self


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a history has come.

    Attributes:
        requests_done, requests_total: how many of its requests have ended.
        covered_ns, wanted_ns: time that the table covers of the whole time asked for.
        elapsed_seconds: since the call began, whole seconds.
    """

    requests_done: int
    requests_total: int
    covered_ns: int
    wanted_ns: int
    elapsed_seconds: int


def id_of(request: str | Request) -> str:
    """Return the id of a request."""
    found = getattr(request, "request_id", request)
    return text("request", found, code=ErrorCode.INVALID_REQUEST_ID)
