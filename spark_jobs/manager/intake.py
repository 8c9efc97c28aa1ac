"""Request intake: what relays pass on, answered at once; a history request is stored before QUEUED is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.errors import PeerError, StorageError
from relay.observability import Counters
from relay.protocol.codes import ErrorCode, RejectReason
from relay.protocol.envelope import Envelope, EnvelopeError, EnvelopeLimits, decode
from relay.protocol.registry import Channel
from relay.protocol.v1 import request_pb2, trigger_pb2
from spark_jobs.manager.engine.commands import Answer, Command, Publish
from spark_jobs.manager.engine.jobs import JobBook
from spark_jobs.manager.engine.model import Request, Route, StoredRequest
from spark_jobs.manager.engine.outcomes import pending, unknown_request
from spark_jobs.manager.engine.replay import ReplayWanted, read_replay
from spark_jobs.manager.engine.requests import (
    RequestRules,
    check_admission,
    is_same_request,
    notification_topic,
    read_request,
)
from spark_jobs.manager.engine.triggers import TriggerBook
from spark_jobs.manager.lookups import SymbolsQuestion
from spark_jobs.manager.ports import JobStore
from spark_jobs.manager.statistics import StatisticsDesk
from spark_jobs.manager.symbols import SymbolDesk

__all__ = ["RequestIntake"]

_Status = request_pb2.SubmitResponse
_LATER = "this manager does not serve it; upgrade the manager"


class RequestIntake:
    """Handles the messages of the request socket.

    Args:
        store: where finished requests are looked up.
        book: unfinished jobs.
        symbols: symbol queries.
        statistics: statistics queries.
        triggers: registered ones.
        ask: puts a question to the tables' thread.
        replay: puts a question to the event log's thread.
        exchanges: known ones.
        rules: bounds of a request.
        jobs_max: bound of unfinished jobs.
        limits: bounds of a message.
        new_id: makes job ids.
        counters: of the process.
    """

    def __init__(
        self,
        *,
        store: JobStore,
        book: JobBook,
        symbols: SymbolDesk,
        statistics: StatisticsDesk,
        triggers: TriggerBook,
        ask: Callable[[SymbolsQuestion], None],
        replay: Callable[[ReplayWanted, Route], Answer | None],
        exchanges: set[str],
        rules: RequestRules,
        jobs_max: int,
        limits: EnvelopeLimits,
        new_id: Callable[[], str],
        counters: Counters,
    ) -> None:
        self._store = store
        self._book = book
        self._symbols = symbols
        self._statistics = statistics
        self._triggers = triggers
        self._ask = ask
        self._replay = replay
        self._exchanges = exchanges
        self._rules = rules
        self._jobs_max = jobs_max
        self._limits = limits
        self._new_id = new_id
        self._counters = counters

    def handle(self, frames: Sequence[bytes], *, now_ns: int) -> list[Command]:
        """Return the commands for one message; whatever it was, there is an answer."""
        try:
            envelope = decode(frames, Channel.CLIENT_REQUEST, limits=self._limits)
        except EnvelopeError as error:
            return self._malformed(error, frames)
        try:
            return self._dispatch(envelope, now_ns=now_ns)
        except StorageError as error:
            request_id = getattr(envelope.message, "request_id", "")
            return [_submit_response(envelope.routing, request_id, _Status.ERROR, error.code, str(error))]

    def _malformed(self, error: EnvelopeError, frames: Sequence[bytes]) -> list[Command]:
        self._counters.add(f"manager.requests.rejected.{error.reason}")
        retired = error.reason is RejectReason.RETIRED_TYPE
        status = _Status.UNSUPPORTED if retired else _Status.INVALID
        routing = error.routing or tuple(frames[:1])
        return [_submit_response(routing, "", status, error.code, str(error))]

    def _dispatch(self, envelope: Envelope, *, now_ns: int) -> list[Command]:
        routing, message = envelope.routing, envelope.message
        commands: list[Command] = []
        match message:
            case request_pb2.SubmitHistoricalRequest():
                commands = self._submit(message, routing, now_ns=now_ns)
            case request_pb2.RequestStatusQuery():
                commands = [self._status(message.request_id, routing)]
            case request_pb2.SymbolQuery():
                question = self._symbols.ask(message, routing)
                if isinstance(question, Answer):
                    commands = [question]
                else:
                    self._ask(question)
            case request_pb2.StatsQuery():
                self._counters.add("manager.statistics.asked")
                commands = self._statistics.ask(message, routing, now_ns=now_ns)
            case request_pb2.ReplayRequest():
                commands = self._replayed(message, routing)
            case trigger_pb2.CEPTriggerRequest():
                self._counters.add("manager.triggers.asked")
                commands = self._triggers.handle(message, routing, now_ns=now_ns)
            case _:
                commands = [_submit_response(routing, "", _Status.UNSUPPORTED, ErrorCode.NOT_IMPLEMENTED, _LATER)]
        return commands

    def _replayed(self, message: request_pb2.ReplayRequest, routing: Route) -> list[Command]:
        try:
            refused = self._replay(read_replay(message), routing)
        except PeerError as error:
            self._counters.add("manager.replays.invalid")
            invalid = request_pb2.ReplayResponse(
                status=request_pb2.ReplayResponse.INVALID, error_code=error.code, error_message=str(error)
            )
            return [Answer(routing, invalid)]
        self._counters.add("manager.replays.asked")
        return [] if refused is None else [refused]

    def _submit(self, message: request_pb2.SubmitHistoricalRequest, routing: Route, *, now_ns: int) -> list[Command]:
        try:
            request = read_request(message, job_id=self._new_id(), now_ns=now_ns)
            known = self._find(request.request_id)
            if known is not None:
                return self._repeated(request, known, routing)
            check_admission(request, exchanges=self._exchanges, rules=self._rules, now_ns=now_ns)
        except PeerError as error:
            self._counters.add("manager.requests.invalid")
            return [_submit_response(routing, message.request_id[:80], _Status.INVALID, error.code, str(error))]
        if len(self._book.jobs) >= self._jobs_max:
            text = f"{self._jobs_max} jobs are unfinished already; submit again later with the same request_id"
            return [_submit_response(routing, request.request_id, _Status.UNAVAILABLE, ErrorCode.OVERLOADED, text)]
        self._counters.add("manager.requests.queued")
        queued = _submit_response(routing, request.request_id, _Status.QUEUED, topic=notification_topic(request))
        return [*self._book.submit(request, now_ns=now_ns), queued]

    def _repeated(self, request: Request, known: StoredRequest, routing: Route) -> list[Command]:
        """The id is known: the same answer again, or a conflict."""
        if not is_same_request(request, known.request):
            raise PeerError(
                f"request_id {request.request_id} was submitted with other parameters; use a new one",
                code=ErrorCode.REQUEST_CONFLICT,
            )
        self._counters.add("manager.requests.duplicate")
        topic = notification_topic(known.request)
        duplicate = _submit_response(routing, request.request_id, _Status.DUPLICATE, topic=topic)
        if known.outcome is None:
            self._book.mark(known.request.job_id)
            return [duplicate]
        return [duplicate, Publish(known.outcome)]

    def _status(self, request_id: str, routing: Route) -> Answer:
        known = self._find(request_id)
        if known is None:
            return Answer(routing, unknown_request(request_id))
        if known.outcome is None:
            self._book.mark(known.request.job_id)
            return Answer(routing, pending(known.request))
        return Answer(routing, request_pb2.HistoryReadyNotification.FromString(known.outcome.notification))

    def _find(self, request_id: str) -> StoredRequest | None:
        running = self._book.find_request(request_id)
        return StoredRequest(running, None) if running is not None else self._store.find(request_id)


def _submit_response(
    routing: Route,
    request_id: str,
    status: request_pb2.SubmitResponse.Status,
    code: str = "",
    text: str = "",
    *,
    topic: str = "",
) -> Answer:
    return Answer(
        routing,
        request_pb2.SubmitResponse(
            request_id=request_id, status=status, error_code=code, error_message=text, notification_topic=topic
        ),
    )
