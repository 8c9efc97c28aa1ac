"""24 h statistics: fetched by schedule and on demand, read back from the log, published, and answered.

::

    schedule, StatsQuery ─► STATISTICS job ─► ingestor ─► log ─► WorkComplete ─► the log is read
                                                                                 ├─► {exchange}|ticker24h
                                                                                 └─► everybody who waits
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.topics import statistics_topic
from relay.protocol.v1 import market_pb2, request_pb2
from spark_jobs.manager.engine.broker import Broker
from spark_jobs.manager.engine.commands import Answer, Command, PublishMarket
from spark_jobs.manager.engine.exchange_schedule import ExchangeSchedule, is_due, served_exchanges
from spark_jobs.manager.engine.jobs import JobBook
from spark_jobs.manager.engine.model import Job, JobKind, Route
from spark_jobs.manager.statistics_reader import StatisticsFound

__all__ = ["StatisticsDesk", "StatisticsRules"]

_Response = request_pb2.SubmitResponse
_WAITING_MAX = 1_000
_LOOK_NS = NANOSECONDS
_NO_LOG = "this manager knows no event log; set log_bootstrap_servers"


@dataclass(frozen=True, slots=True)
class StatisticsRules:
    """Times, nanoseconds.

    Attributes:
        every_ns: between two fetches of an exchange; 0 fetches only what is asked for.
        fresh_ns: statistics that are younger answer a query at once.
        wait_ns: a query waits so long for a fetch, then it is told to ask again.
    """

    every_ns: int = 3_600 * NANOSECONDS
    fresh_ns: int = 60 * NANOSECONDS
    wait_ns: int = 10 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class _Newest:
    parts: tuple[market_pb2.Ticker24h, ...]
    as_of_ns: int


@dataclass(frozen=True, slots=True)
class _Waiting:
    exchange: str
    routing: Route
    until_ns: int


class StatisticsDesk:
    """Answers statistics queries; one fetch of an exchange at a time, whoever asks.

    Args:
        rules: times.
        exchanges: known ones; grows.
        new_id: makes job ids.
        read: asks for an exchange's newest statistics in the log, and says whether a fetch has just written some; None
            for a manager without a log.
        now_ns: present time.
    """

    def __init__(
        self,
        rules: StatisticsRules,
        *,
        exchanges: set[str],
        new_id: Callable[[], str],
        read: Callable[[str, bool], None] | None,
        now_ns: int,
    ) -> None:
        self._rules = rules
        self._exchanges = exchanges
        self._new_id = new_id
        self._read = read
        self._schedule = ExchangeSchedule(rules.every_ns if read is not None else 0, now_ns=now_ns)
        self._newest: dict[str, _Newest] = {}
        self._waiting: list[_Waiting] = []
        self._asked_log: set[str] = set()
        self._unread: dict[str, int] = {}
        self._fetched: set[str] = set()
        self._next_look_ns = 0

    def begin(self, book: JobBook, broker: Broker) -> None:
        """Take over the engines of a new broker epoch."""
        self._book, self._broker = book, broker

    def ask(self, query: request_pb2.StatsQuery, routing: Route, *, now_ns: int) -> list[Command]:
        """Answer a query, or let it wait for a fetch."""
        exchange = query.exchange
        if exchange not in self._exchanges:
            text = f"unknown exchange {exchange[:80]!r}; known are {', '.join(sorted(self._exchanges)) or 'none yet'}"
            return [_refusal(routing, _Response.INVALID, ErrorCode.UNKNOWN_EXCHANGE, text)]
        newest = self._newest.get(exchange)
        # Who asks for a further part reads on in what he has begun to read, however old that has become.
        if newest is not None and (query.part_index or 0 <= now_ns - newest.as_of_ns < self._rules.fresh_ns):
            return [_part(newest, query.part_index, routing)]
        if query.part_index:
            text = f"expected part_index 0 first, got {query.part_index}; no statistics of {exchange} are known yet"
            return [_refusal(routing, _Response.INVALID, ErrorCode.INVALID_REQUEST, text)]
        away = self._away(exchange, now_ns=now_ns)
        if away is not None:
            return [_refusal(routing, _Response.UNAVAILABLE, *away)]
        self._waiting.append(_Waiting(exchange, routing, now_ns + self._rules.wait_ns))
        return self._fetch(exchange, now_ns=now_ns)

    def ended(self, job: Job, *, now_ns: int) -> list[Command]:
        """A fetch has ended: what it wrote is read, or whoever waits is told why there is nothing."""
        if job.kind is not JobKind.STATISTICS:
            return []
        if not job.error_code:
            self._fetched.add(job.exchange)
            self._look_up(job.exchange)
            return []
        self._schedule.failed(job.exchange, now_ns=now_ns)
        text = f"the 24 h statistics of {job.exchange} could not be fetched: {job.error_message or job.error_code}"
        return self._refuse(job.exchange, _Response.ERROR, job.error_code, text)

    def found(self, found: StatisticsFound, *, now_ns: int) -> list[Command]:
        """The log was read: publish what is new, and answer."""
        exchange = found.exchange
        if found.error_code:
            self._unread[exchange] = now_ns + _LOOK_NS
            return []
        is_fetched = found.is_after_fetch
        if is_fetched:
            self._fetched.discard(exchange)
        before = self._newest.get(exchange)
        if not found.parts or (before and before.parts[0].generated_at == found.parts[0].generated_at):
            lost = f"the 24 h statistics of {exchange} were acknowledged, but the event log does not hold them"
            return self._refuse(exchange, _Response.ERROR, ErrorCode.INTERNAL, lost) if is_fetched else []
        generated_ns = found.parts[0].generated_at
        # Clocks differ: what was fetched just now is as old as we saw it, not as the ingestor's clock says.
        newest = _Newest(found.parts, now_ns if is_fetched else min(generated_ns, now_ns))
        self._newest[exchange] = newest
        if not is_fetched:
            self._schedule.asked(exchange, at_ns=newest.as_of_ns)
        topic = statistics_topic(exchange)
        answers = [_part(newest, 0, waiting.routing) for waiting in self._take_waiting(exchange)]
        return [*(PublishMarket(topic, part) for part in found.parts), *answers]

    def tick(self, now_ns: int) -> list[Command]:
        """Do what is due: queries that waited for long enough, reads that failed, scheduled fetches."""
        before, self._waiting = self._waiting, []
        late: list[_Waiting] = []
        for waiting in before:
            is_late = is_due(waiting.until_ns, now_ns=now_ns, most_ns=self._rules.wait_ns)
            (late if is_late else self._waiting).append(waiting)
        commands: list[Command] = [
            _refusal(
                w.routing,
                _Response.UNAVAILABLE,
                ErrorCode.UNAVAILABLE,
                f"the 24 h statistics of {w.exchange} are being fetched; ask again",
            )
            for w in late
        ]
        if self._read is None or not is_due(self._next_look_ns, now_ns=now_ns, most_ns=_LOOK_NS):
            return commands
        self._next_look_ns = now_ns + _LOOK_NS
        for exchange in [name for name, t in self._unread.items() if is_due(t, now_ns=now_ns, most_ns=_LOOK_NS)]:
            self._look_up(exchange)
        served = served_exchanges(self._broker.slots, now_ns=now_ns)
        for exchange in served - self._asked_log:
            self._look_up(exchange)
        for exchange in self._schedule.due(served - self._unread.keys(), now_ns=now_ns):
            commands += self._fetch(exchange, now_ns=now_ns)
        return commands

    def _fetch(self, exchange: str, *, now_ns: int) -> list[Command]:
        if exchange in self._fetched:
            return []
        self._schedule.asked(exchange, at_ns=now_ns)
        return self._book.start_of_exchange(JobKind.STATISTICS, exchange, job_id=self._new_id(), now_ns=now_ns)

    def _look_up(self, exchange: str) -> None:
        self._asked_log.add(exchange)
        self._unread.pop(exchange, None)
        if self._read is not None:
            self._read(exchange, exchange in self._fetched)

    def _away(self, exchange: str, *, now_ns: int) -> tuple[str, str] | None:
        """Return why nothing can be fetched now, as code and text."""
        if self._read is None:
            return ErrorCode.UNAVAILABLE, _NO_LOG
        if exchange not in served_exchanges(self._broker.slots, now_ns=now_ns):
            text = f"no ingestor serves {exchange} at present; start one, or ask again when it is back"
            return ErrorCode.UNAVAILABLE, text
        if len(self._waiting) >= _WAITING_MAX:
            return ErrorCode.OVERLOADED, "too many queries wait for statistics; ask again later"
        return None

    def _take_waiting(self, exchange: str) -> list[_Waiting]:
        taken = [w for w in self._waiting if w.exchange == exchange]
        self._waiting = [w for w in self._waiting if w.exchange != exchange]
        return taken

    def _refuse(self, exchange: str, status: _Response.Status, code: str, text: str) -> list[Command]:
        return [_refusal(waiting.routing, status, code, text) for waiting in self._take_waiting(exchange)]


def _part(newest: _Newest, index: int, routing: Route) -> Answer:
    if index < len(newest.parts):
        return Answer(routing, newest.parts[index])
    text = f"expected part_index below {len(newest.parts)}, got {index}"
    return _refusal(routing, _Response.INVALID, ErrorCode.INVALID_REQUEST, text)


def _refusal(routing: Route, status: _Response.Status, code: str, text: str) -> Answer:
    return Answer(routing, _Response(status=status, error_code=code, error_message=text[:500]))
