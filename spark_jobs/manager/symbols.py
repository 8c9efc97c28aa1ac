"""Symbol queries: answered from the table, or by starting one fetch for the exchange and saying PENDING."""

from __future__ import annotations

from collections.abc import Callable, Collection

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.tickers import parse_ticker
from relay.protocol.v1 import request_pb2
from spark_jobs.manager.engine.commands import Answer, Command
from spark_jobs.manager.engine.exchange_schedule import ExchangeSchedule
from spark_jobs.manager.engine.jobs import JobBook
from spark_jobs.manager.engine.model import Job, JobKind, Route
from spark_jobs.manager.lookups import Failed, SymbolsFound, SymbolsQuestion

__all__ = ["SymbolDesk"]

_Reply = request_pb2.SymbolReply
_REFETCH_NS = 30 * NANOSECONDS
_ARRIVAL_NS = 600 * NANOSECONDS
"""How long markets may take from the fetch into the table; some may never come, so not for ever."""


class SymbolDesk:
    """Answers symbol queries.

    Args:
        book: where SYMBOLS jobs live.
        exchanges: known ones.
        new_id: makes job ids.
        schedule: when symbols are fetched although nobody asks.
    """

    def __init__(
        self, book: JobBook, exchanges: set[str], new_id: Callable[[], str], schedule: ExchangeSchedule
    ) -> None:
        self._book = book
        self._schedule = schedule
        self._exchanges = exchanges
        self._new_id = new_id
        self._started_ns: dict[str, int] = {}
        self._fetched: dict[str, int] = {}
        self._known_ns: dict[str, int] = {}
        """Start of the last fetch that was seen whole in the table."""
        self._awaited: set[str] = set()
        """Exchanges whose fetch a client waits for: what it brings may be what was asked about."""

    def fetched(self, exchange: str, count: int) -> None:
        """A fetch has put so many markets into the log; the table shows them a little later, perhaps in parts."""
        self._fetched[exchange] = count

    def tick(self, served: Collection[str], *, now_ns: int) -> list[Command]:
        """Fetch the symbols of exchanges that are due.

        Args:
            served: exchanges that an ingestor serves.
            now_ns: present time.
        """
        commands: list[Command] = []
        for exchange in self._schedule.due(served, now_ns=now_ns):
            commands += self._fetch(exchange, now_ns=now_ns)
        return commands

    def ended(self, job: Job, *, now_ns: int) -> None:
        """A fetch has ended."""
        if job.kind is not JobKind.SYMBOLS:
            return
        if job.error_code:
            self._schedule.failed(job.exchange, now_ns=now_ns)
        else:
            self.fetched(job.exchange, job.progress_rows)

    def ask(self, query: request_pb2.SymbolQuery, routing: Route) -> SymbolsQuestion | Answer:
        """Return the question for the tables, or the answer when the query makes no sense."""
        asked = request_pb2.SymbolQuery()
        asked.CopyFrom(query)
        exchange = query.exchange
        if query.ticker:
            try:
                ticker = parse_ticker(query.ticker)
            except PeerError as error:
                return _reply(routing, _Reply.ERROR, error.code, str(error))
            if exchange and exchange != ticker.exchange:
                text = f"expected ticker and exchange to agree, got {query.ticker!r} and {exchange!r}"
                return _reply(routing, _Reply.ERROR, ErrorCode.INVALID_REQUEST, text)
            exchange, asked.ticker = ticker.exchange, str(ticker)
        if exchange and exchange not in self._exchanges:
            text = f"unknown exchange {exchange[:80]}; known are {', '.join(sorted(self._exchanges)) or 'none yet'}"
            return _reply(routing, _Reply.NOT_FOUND, ErrorCode.UNKNOWN_EXCHANGE, text)
        return SymbolsQuestion(asked, exchange, routing)

    def answer(self, found: SymbolsFound, *, now_ns: int) -> list[Command]:
        """Answer by what the table holds; an empty or unwanted state starts a fetch."""
        question = found.question
        exchanges = [question.exchange] if question.exchange else sorted(self._exchanges)
        due = question.query.refresh and any(self._is_due(e, now_ns=now_ns) for e in exchanges)
        if question.query.refresh:
            self._awaited.update(exchanges)
        is_arriving = self._is_arriving(found, exchanges, now_ns=now_ns)
        if found.stored_count and not due and not is_arriving:
            return [self._found(found)]
        commands: list[Command] = []
        # What is on its way is not fetched again: each fetch would begin another wait.
        for exchange in () if found.stored_count and is_arriving and not due else exchanges:
            self._awaited.add(exchange)
            commands += self._fetch(exchange, now_ns=now_ns)
        text = f"symbols of {', '.join(exchanges) or 'no exchange'} are being fetched; ask again after METADATA_UPDATE"
        return [*commands, _reply(question.routing, _Reply.PENDING, "", text)]

    def fail(self, failed: Failed) -> list[Command]:
        """Answer when the table could not be read."""
        if not isinstance(failed.question, SymbolsQuestion):
            return []
        return [_reply(failed.question.routing, _Reply.ERROR, failed.code, failed.text)]

    def _found(self, found: SymbolsFound) -> Answer:
        if not found.markets:
            asked = found.question.query.ticker or found.question.query.text or found.question.exchange
            return _reply(
                found.question.routing,
                _Reply.NOT_FOUND,
                ErrorCode.UNKNOWN_SYMBOL,
                f"no market matches {asked[:128]!r}; ask with refresh if it was listed lately",
                snapshot_id=found.snapshot_id,
            )
        reply = _Reply(status=_Reply.OK, markets=found.markets, snapshot_id=found.snapshot_id)
        return Answer(found.question.routing, reply)

    def _is_arriving(self, found: SymbolsFound, exchanges: list[str], *, now_ns: int) -> bool:
        """Return whether what was not found may be among markets that are on their way into the table."""
        if found.markets:
            return False
        # All are looked at: looking is also how an exchange becomes known.
        waits = [self._is_on_its_way(e, found.stored.get(e, 0), now_ns=now_ns) for e in exchanges]
        return any(waits)

    def _is_on_its_way(self, exchange: str, stored_count: int, *, now_ns: int) -> bool:
        """Return whether markets of an exchange may be missing from the table that a fetch has found or will find.

        Where an earlier fetch is stored whole, its successor by schedule lets nobody wait; a client's own does.
        """
        if exchange not in self._awaited and self._is_known(exchange, now_ns=now_ns):
            return False
        started_ns = self._started_ns.get(exchange)
        if started_ns is not None and now_ns - started_ns < _ARRIVAL_NS:
            if self._is_running(exchange) or stored_count < self._fetched.get(exchange, 0):
                return True
            if exchange in self._fetched:
                self._known_ns[exchange] = started_ns
        self._awaited.discard(exchange)
        return False

    def _is_known(self, exchange: str, *, now_ns: int) -> bool:
        """Return whether a fetch of this turn of the schedule, or of the one before, was seen whole in the table."""
        known_ns = self._known_ns.get(exchange)
        return known_ns is not None and now_ns - known_ns < self._schedule.every_ns + _ARRIVAL_NS

    def _is_running(self, exchange: str) -> bool:
        return any(j.kind is JobKind.SYMBOLS and j.exchange == exchange for j in self._book.jobs.values())

    def _fetch(self, exchange: str, *, now_ns: int) -> list[Command]:
        if not self._is_due(exchange, now_ns=now_ns):
            return []
        self._started_ns[exchange] = now_ns
        self._schedule.asked(exchange, at_ns=now_ns)
        return self._book.start_of_exchange(JobKind.SYMBOLS, exchange, job_id=self._new_id(), now_ns=now_ns)

    def _is_due(self, exchange: str, *, now_ns: int) -> bool:
        """A fetch that has just ended is not visible yet, so that asking again at once must not repeat it."""
        if self._is_running(exchange):
            return False
        started_ns = self._started_ns.get(exchange)
        return started_ns is None or now_ns - started_ns >= _REFETCH_NS


def _reply(
    routing: Route, status: request_pb2.SymbolReply.Status, code: str, text: str, *, snapshot_id: int = 0
) -> Answer:
    return Answer(routing, _Reply(status=status, error_code=code, error_message=text, snapshot_id=snapshot_id))
