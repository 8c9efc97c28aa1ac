"""What each call of a client does, as flows; the sync and the async client run the same ones."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.message import Message

from relay.errors import PeerError, RelayError, RetryableError, SettingsError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import PERIOD_SECONDS_MAX, align_down_ns, parse_period
from relay.protocol.ranges import Range, intersect
from relay.protocol.tickers import parse_ticker
from relay.protocol.times import TimeUnit
from relay.protocol.topics import is_uuid_text
from relay.protocol.v1 import request_pb2
from relay_client.arguments import callback, flag, seconds, whole
from relay_client.arguments import text as checked_text
from relay_client.engine.answers import error_for
from relay_client.engine.plan import HistoryQuery, plan_requests
from relay_client.flow import Flow, call, result_of, wait, wait_for_one
from relay_client.history import History
from relay_client.lake import Lake, load_readers
from relay_client.outcome import Outcome, Progress, Request
from relay_client.probe import RelayInfo
from relay_client.reading import bars_before_gap, read_history
from relay_client.session import Pending, Session
from relay_client.settings import ClientSettings
from relay_client.symbols import Symbol
from relay_client.times import TimeLike, parse_range
from relay_client.trigger_flows import TriggerStream

__all__ = ["ClientFlows", "OnProgress", "checked_period", "checked_ticker"]

OnProgress = Callable[[Progress], object]
_PROGRESS_S = 1.0
_AT_ONCE_MAX = 2
"""Requests of one call that run at a time: a long history must leave slots to others."""
_SYMBOLS_REPEAT_S = 10.0
_SYMBOLS_MAX = 100_000


class ClientFlows:
    """The flows of one client, over its session and its view of the tables."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.session = Session(settings)
        self.lake = Lake(settings)
        self.trigger_streams: dict[str, TriggerStream] = {}
        """Firings that came since a registration and that nobody has asked for yet."""

    def close(self) -> None:
        """End the thread, close sockets and catalogs."""
        self.session.close()
        self.lake.close()

    def query(
        self,
        ticker: str,
        *,
        start: TimeLike | None,
        end: TimeLike | None,
        last: str | None,
        period: str | int,
        limit: int | None,
        unit: TimeUnit | None,
    ) -> HistoryQuery:
        """Return the checked question.

        Raises:
            SettingsError: with the code of the argument that is wrong.
        """
        self.session.check_usable()
        parsed_ticker, period_seconds = checked_ticker(ticker), checked_period(period)
        if limit is not None:
            limit = whole("limit", limit, low=1, high=self.settings.rows_per_request_max, code=ErrorCode.INVALID_LIMIT)
        now_ns = time.time_ns()
        if last is not None:
            # "The last two hours" are those of closed bars: the running one is not asked for.
            now_ns = align_down_ns(now_ns, period_seconds)
        start_ns, end_ns = parse_range(start=start, end=end, last=last, unit=unit, now_ns=now_ns)
        query = HistoryQuery(parsed_ticker, period_seconds, start_ns, end_ns, limit)
        query.check(rows_max=self.settings.rows_per_request_max)
        return query

    def history(self, query: HistoryQuery, *, timeout_s: float | None, on_progress: OnProgress | None) -> Flow[History]:
        """Look into the tables, ask for what is missing, wait, and read."""
        callback("on_progress", on_progress)
        wait_s = seconds("timeout", timeout_s, self.settings.history_timeout_seconds)
        # Loading the table libraries takes seconds on a cold machine, which is none of the relay's.
        yield from call(load_readers)
        clock = _Clock(wait_s)
        # A request may take long; that nobody is there shows sooner.
        locate_s = min(clock.left_s(), self.settings.request_timeout_seconds)
        reply = yield from _answer(self.session.locate(timeout_s=locate_s), self.session)
        located_ns = time.monotonic_ns()
        covered, before = yield from call(lambda: self._look(reply, query))
        clock.check(f"the tables were looked at only after {clock.elapsed_s()} s")
        if query.limit is not None and before >= query.limit:
            return (yield from call(lambda: self._read(reply, query, ())))
        ranges = plan_requests(
            query,
            covered,
            now_ns=reply.server_time + time.monotonic_ns() - located_ns,
            requests_max=self.settings.requests_max,
            rows_max=self.settings.rows_per_request_max,
        )
        limit = None if query.limit is None else query.limit - before
        watched = _Watched(self, reply, query, clock, on_progress)
        outcomes = yield from watched.fetch(ranges, limit=limit)
        return (yield from call(lambda: self._read(reply, query, outcomes)))

    def submit(self, query: HistoryQuery, *, request_id: str | None, timeout_s: float | None) -> Flow[Request]:
        """Submit one request and return once it is durable."""
        span = Range(query.start_ns, query.end_ns)
        message = _submission(query, span, self.session.client_id, limit=query.limit, request_id=request_id)
        answer = yield from _answer(self._ask(message, timeout_s), self.session)
        if not isinstance(answer, request_pb2.SubmitResponse):
            raise _unexpected(answer)
        return Request(
            request_id=message.request_id,
            ticker=query.ticker,
            period_seconds=query.period_seconds,
            start_ns=query.start_ns,
            end_ns=query.end_ns,
            limit=query.limit,
            was_known=answer.status == request_pb2.SubmitResponse.DUPLICATE,
            topic=answer.notification_topic,
        )

    def request_status(self, request_id: str, *, timeout_s: float | None) -> Flow[Outcome]:
        """Ask for the state of one request."""
        query = request_pb2.RequestStatusQuery(request_id=_checked_id(request_id))
        answer = yield from _answer(self._ask(query, timeout_s), self.session)
        if not isinstance(answer, request_pb2.HistoryReadyNotification):
            raise _unexpected(answer)
        if answer.error_code == ErrorCode.UNKNOWN_REQUEST:
            raise error_for(answer.error_code, answer.error_message)
        return Outcome.of(answer)

    def wait(
        self, request_ids: Sequence[str], *, timeout_s: float | None, on_progress: OnProgress | None
    ) -> Flow[list[Outcome]]:
        """Await the ends of requests."""
        callback("on_progress", on_progress)
        clock = _Clock(seconds("timeout", timeout_s, self.settings.history_timeout_seconds))
        waited = [self.session.watch(_checked_id(r), timeout_s=clock.left_s()) for r in request_ids]
        try:
            while not all(w.future.done() for w in waited):
                yield from wait(*(w.future for w in waited), timeout_s=_PROGRESS_S if on_progress else None)
                if on_progress is not None:
                    done = sum(w.future.done() for w in waited)
                    on_progress(Progress(done, len(waited), 0, 0, clock.elapsed_s()))
            return [Outcome.of(w.future.result()) for w in waited]
        finally:
            self.session.forget(*waited)

    def symbols(
        self, *, ticker: str, exchange: str, text: str, refresh: bool, limit: int, timeout_s: float | None
    ) -> Flow[list[Symbol]]:
        """Ask for markets; while they are being fetched, wait for the update and ask again."""
        clock = _Clock(seconds("timeout", timeout_s, self.settings.request_timeout_seconds))
        query = request_pb2.SymbolQuery(
            ticker=checked_text("ticker", ticker),
            exchange=checked_text("exchange", exchange),
            text=checked_text("text", text),
            refresh=flag("refresh", refresh),
            limit=whole("limit", limit, low=1, high=_SYMBOLS_MAX, code=ErrorCode.INVALID_LIMIT),
        )
        while True:
            # Awaited before the question: the update may come between the answer and the wait.
            update = self.session.next_update(timeout_s=clock.left_s())
            try:
                answer = yield from _answer(self.session.ask(query, timeout_s=clock.left_s()), self.session)
                if not isinstance(answer, request_pb2.SymbolReply):
                    raise _unexpected(answer)
                if answer.status != request_pb2.SymbolReply.PENDING:
                    return _symbols(answer)
                yield from wait(update.future, timeout_s=min(_SYMBOLS_REPEAT_S, clock.left_s()))
            finally:
                self.session.forget(update)
            if not clock.left_s():
                raise RetryableError(f"{answer.error_message}; the deadline has passed", code=ErrorCode.TIMEOUT)
            query.refresh = False

    def check_tickers(
        self, tickers: Sequence[str], *, exchanges: Sequence[str] = (), timeout_s: float | None
    ) -> Flow[None]:
        """Raise for the first ticker or exchange that is unknown: subscribing it would be silence for ever."""
        for exchange in exchanges:
            yield from self.symbols(ticker="", exchange=exchange, text="", refresh=False, limit=1, timeout_s=timeout_s)
        for ticker in tickers:
            found = yield from self.symbols(
                ticker=ticker, exchange="", text="", refresh=False, limit=1, timeout_s=timeout_s
            )
            if not found:
                raise PeerError(
                    f"expected a known ticker, got {ticker}; look it up with symbols() or `relay symbols`",
                    code=ErrorCode.UNKNOWN_SYMBOL,
                )

    def probe(self, *, timeout_s: float | None) -> Flow[RelayInfo]:
        """Ask the relay about itself."""
        answer = yield from _answer(self._ask(request_pb2.Probe(nonce=str(uuid.uuid4())), timeout_s), self.session)
        if not isinstance(answer, request_pb2.ProbeReply):
            raise _unexpected(answer)
        return RelayInfo.of(answer)

    def located(self, *, timeout_s: float | None) -> Flow[request_pb2.ProbeReply]:
        """Await what the relay tells about itself: where the tables are."""
        wait_s = seconds("timeout", timeout_s, self.settings.request_timeout_seconds)
        yield from call(load_readers)
        reply: request_pb2.ProbeReply = yield from _answer(self.session.locate(timeout_s=wait_s), self.session)
        return reply

    def _ask(self, message: Message, timeout_s: float | None) -> Pending[Message]:
        wait_s = seconds("timeout", timeout_s, self.settings.request_timeout_seconds)
        return self.session.ask(message, timeout_s=wait_s)

    def _look(self, reply: request_pb2.ProbeReply, query: HistoryQuery) -> tuple[Sequence[Range], int]:
        with self.lake.reader(reply) as tables:
            covered = tables.coverage(query.ticker, query.period_seconds, within=query.wanted)
            return covered, bars_before_gap(tables, query, covered) if query.limit is not None else 0

    def _read(self, reply: request_pb2.ProbeReply, query: HistoryQuery, outcomes: Sequence[Outcome]) -> History:
        with self.lake.reader(reply) as tables:
            return read_history(tables, query, outcomes)


class _Clock:
    """A deadline for a whole call."""

    def __init__(self, timeout_s: float) -> None:
        self._began = time.monotonic()
        self._timeout_s = timeout_s

    def left_s(self) -> float:
        return max(0.0, self._began + self._timeout_s - time.monotonic())

    def check(self, what: str) -> None:
        """Raise when the time is over; ``what`` says which step has used it up."""
        if not self.left_s():
            raise RetryableError(
                f"{what}, and the {self._timeout_s:g} s of this call are over; allow more time",
                code=ErrorCode.TIMEOUT,
            )

    def elapsed_s(self) -> int:
        return int(time.monotonic() - self._began)


class _Watched:
    """Submits the ranges of one history and waits for all their ends."""

    def __init__(
        self,
        flows: ClientFlows,
        reply: request_pb2.ProbeReply,
        query: HistoryQuery,
        clock: _Clock,
        on_progress: OnProgress | None,
    ) -> None:
        self._flows, self._reply, self._query, self._clock = flows, reply, query, clock
        self._on_progress = on_progress
        closed_ns = align_down_ns(reply.server_time, query.period_seconds)
        self._wanted = Range(query.wanted.start_ns, min(query.end_ns, closed_ns))

    def fetch(self, ranges: Sequence[Range], *, limit: int | None) -> Flow[list[Outcome]]:
        """Submit the ranges, a few at a time, and return their ends in the same order."""
        session = self._flows.session
        ask: Pending[Message] | None = None
        watches: list[Pending[request_pb2.HistoryReadyNotification]] = []
        try:
            for span in ranges:
                yield from self._until_fewer(watches, _AT_ONCE_MAX, total=len(ranges))
                message = _submission(self._query, span, session.client_id, limit=limit)
                left_s = self._clock.left_s()
                watches.append(session.watch(message.request_id, submitted=message, timeout_s=left_s))
                ask = session.ask(message, timeout_s=left_s)
                yield from result_of(ask.future)
            yield from self._until_fewer(watches, 1, total=len(ranges))
            outcomes = [Outcome.of(watch.future.result()) for watch in watches]
        finally:
            session.forget(*([ask] if ask else []), *watches)
        return [outcome.raise_for_status() for outcome in outcomes]

    def _until_fewer(self, watches: Sequence[Pending[Any]], count: int, *, total: int) -> Flow[None]:
        """Wait until fewer than so many requests run; tell about the progress meanwhile."""
        while True:
            running = [watch.future for watch in watches if not watch.future.done()]
            if self._on_progress is not None and watches:
                covered_ns = yield from call(self._covered_ns)
                wanted_ns = max(0, self._wanted.end_ns - self._wanted.start_ns)
                done = len(watches) - len(running)
                self._on_progress(Progress(done, total, covered_ns, wanted_ns, self._clock.elapsed_s()))
            if len(running) < count:
                return None
            yield from wait_for_one(running, timeout_s=_PROGRESS_S if self._on_progress is not None else None)

    def _covered_ns(self) -> int:
        query = self._query
        try:
            with self._flows.lake.reader(self._reply) as tables:
                covered = tables.coverage(query.ticker, query.period_seconds, within=query.wanted)
        except RetryableError:
            return 0
        return sum(r.end_ns - r.start_ns for r in intersect(self._wanted, covered))


def _answer(pending: Pending[Any], session: Session) -> Flow[Any]:
    """Wait for one answer; whoever stops waiting is forgotten."""
    try:
        return (yield from result_of(pending.future))
    finally:
        session.forget(pending)


def _submission(
    query: HistoryQuery, span: Range, client_id: str, *, limit: int | None, request_id: str | None = None
) -> request_pb2.SubmitHistoricalRequest:
    return request_pb2.SubmitHistoricalRequest(
        request_id=str(uuid.uuid4()) if request_id is None else _checked_id(request_id),
        client_id=client_id,
        ticker=query.ticker,
        start_time=span.start_ns,
        end_time=span.end_ns,
        period_seconds=query.period_seconds,
        limit=limit,
    )


def _symbols(answer: request_pb2.SymbolReply) -> list[Symbol]:
    reply = request_pb2.SymbolReply
    if answer.status == reply.ERROR or answer.error_code == ErrorCode.UNKNOWN_EXCHANGE:
        raise error_for(answer.error_code, answer.error_message)
    return [Symbol.of(market) for market in answer.markets]


def checked_ticker(ticker: object) -> str:
    """Return a ticker in the unified form.

    Raises:
        SettingsError: INVALID_TICKER.
    """
    try:
        return str(parse_ticker(checked_text("ticker", ticker, code=ErrorCode.INVALID_TICKER)))
    except PeerError as error:
        raise SettingsError(str(error), code=error.code) from error


def checked_period(period: object) -> int:
    """Return the seconds of a period.

    Raises:
        SettingsError: INVALID_PERIOD.
    """
    if not isinstance(period, str):
        return whole("period", period, low=1, high=PERIOD_SECONDS_MAX, code=ErrorCode.INVALID_PERIOD)
    try:
        return parse_period(period)
    except PeerError as error:
        raise SettingsError(str(error), code=error.code) from error


def _checked_id(request_id: object) -> str:
    checked = checked_text("request_id", request_id, code=ErrorCode.INVALID_REQUEST_ID)
    if not is_uuid_text(checked):
        raise SettingsError(
            f"expected request_id as a lower-case UUID of 36 characters, got {checked[:80]!r}",
            code=ErrorCode.INVALID_REQUEST_ID,
        )
    return checked


def _unexpected(answer: Message) -> RelayError:
    return PeerError(f"the relay answered with a {type(answer).__name__}; is it of another version? Upgrade the older")
