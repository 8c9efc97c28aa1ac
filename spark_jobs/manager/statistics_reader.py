"""Reads the newest 24 h statistics out of the event log on a thread of its own, which the loop must not wait for."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from relay.errors import RelayError
from relay.eventlog import TICKER_STATS_TOPIC, EventLog, LogRecord
from relay.protocol.codes import ErrorCode
from relay.protocol.envelope import EnvelopeError, decode_record
from relay.protocol.periods import NANOSECONDS
from relay.protocol.v1 import market_pb2
from relay.transport import Waker

__all__ = ["StatisticsFound", "StatisticsReader", "newest_statistics"]

_LOG = structlog.get_logger(__name__)
_WINDOWS_NS = (2 * 3_600 * NANOSECONDS, 26 * 3_600 * NANOSECONDS, None)
"""How far back to look at first, step by step; None for as far as the log goes. Later reads go on where they ended."""
_STEP_RECORDS = 50
_GROUPS_MAX = 4
_JUMP_NS = 3_600 * NANOSECONDS
"""What comes later in the log and is so much older was made after an ingestor's clock was set right."""


@dataclass(frozen=True, slots=True)
class StatisticsFound:
    """The newest statistics of an exchange that are complete in the log; no parts when it holds none.

    Attributes:
        is_after_fetch: as the question said: it was put after a fetch had written its records.
    """

    exchange: str
    is_after_fetch: bool
    parts: tuple[market_pb2.Ticker24h, ...] = ()
    error_code: str = ""


class StatisticsReader:
    """Questions in, results out through a queue and a wake of the loop.

    Args:
        open_log: opens the event log, on the worker thread; None when the manager was given none.
        topic_prefix: before the log's topics.
        waker: woken for each result.
    """

    def __init__(self, open_log: Callable[[], EventLog] | None, *, topic_prefix: str, waker: Waker) -> None:
        self._open_log, self._topic, self._waker = open_log, topic_prefix + TICKER_STATS_TOPIC, waker
        self._questions: queue.SimpleQueue[tuple[str, bool] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[StatisticsFound] = queue.SimpleQueue()
        self._folds: dict[str, _Fold] = {}
        self._thread: threading.Thread | None = None
        if open_log is not None:
            self._thread = threading.Thread(target=self._run, name="statistics-reader", daemon=True)
            self._thread.start()

    @property
    def has_log(self) -> bool:
        """Whether there is a log to read."""
        return self._open_log is not None

    def ask(self, exchange: str, is_after_fetch: bool) -> None:
        """Look for an exchange's newest statistics."""
        self._questions.put((exchange, is_after_fetch))

    def results(self) -> list[StatisticsFound]:
        """Return the results that are there."""
        found: list[StatisticsFound] = []
        while True:
            try:
                found.append(self._results.get_nowait())
            except queue.Empty:
                return found

    def close(self) -> None:
        """Stop after the question in hand; a read that hangs is left behind."""
        self._questions.put(None)
        if self._thread is not None:
            self._thread.join(timeout=2.0)

    def _run(self) -> None:
        log: EventLog | None = None
        is_away = False
        while (question := self._questions.get()) is not None:
            exchange, _ = question
            try:
                if log is None and self._open_log is not None:
                    log = self._open_log()
                result = StatisticsFound(*question, self._newest(log, exchange) if log is not None else ())
                is_away = False
            except RelayError as error:
                if not is_away:
                    _LOG.warning("statistics_not_read", exchange=exchange, error_code=error.code, error=str(error))
                is_away = True
                result = StatisticsFound(*question, error_code=error.code)
            except Exception:  # noqa: BLE001 - a dead thread would leave every later question unanswered
                _LOG.exception("statistics_read_failed", exchange=exchange)
                result = StatisticsFound(*question, error_code=ErrorCode.INTERNAL)
            self._results.put(result)
            self._waker.wake()
        if log is not None:
            log.close()

    def _newest(self, log: EventLog, exchange: str) -> tuple[market_pb2.Ticker24h, ...]:
        fold = self._folds.get(exchange)
        if fold is None:
            fold = _first_fold(log, self._topic, exchange)
        else:
            _read_on(log, self._topic, exchange, fold)
        self._folds[exchange] = fold
        return fold.newest


def newest_statistics(records: Iterable[market_pb2.Ticker24h]) -> tuple[market_pb2.Ticker24h, ...]:
    """Return the newest statistics of which all parts are there, by part; empty when there are none."""
    fold = _Fold()
    for record in records:
        fold.take(record)
    return fold.newest


class _Fold:
    """The newest complete statistics of the records so far, and those that are still in parts."""

    def __init__(self) -> None:
        self.newest: tuple[market_pb2.Ticker24h, ...] = ()
        self.next_offset: int | None = None
        self._open: dict[tuple[int, int], dict[int, market_pb2.Ticker24h]] = {}

    def take(self, part: market_pb2.Ticker24h) -> None:
        count = part.part_count or 1
        group = self._open.setdefault((part.generated_at, count), {})
        group[part.part_index] = part
        # The length first: a count is whatever a record says.
        if len(group) >= count and set(range(count)) <= group.keys() and self._is_newer(part.generated_at):
            self.newest = tuple(group[index] for index in range(count))
        while len(self._open) > _GROUPS_MAX:
            del self._open[next(iter(self._open))]

    def _is_newer(self, at_ns: int) -> bool:
        if not self.newest:
            return True
        newest_ns = self.newest[0].generated_at
        return at_ns > newest_ns or newest_ns - at_ns > _JUMP_NS


def _first_fold(log: EventLog, topic: str, exchange: str) -> _Fold:
    now_ns = time.time_ns()
    for window_ns in _WINDOWS_NS:
        fold = _Fold()
        from_ns = None if window_ns is None else now_ns - window_ns
        _read_on(log, topic, exchange, fold, from_time_ns=from_ns)
        if fold.newest:
            break
    return fold


def _read_on(log: EventLog, topic: str, exchange: str, fold: _Fold, *, from_time_ns: int | None = None) -> None:
    while True:
        records = log.read(
            topic,
            key=exchange.encode(),
            from_offset=fold.next_offset,
            from_time_ns=from_time_ns if fold.next_offset is None else None,
            limit=_STEP_RECORDS,
        )
        for record in records:
            _take(fold, record, exchange)
        if len(records) < _STEP_RECORDS:
            return


def _take(fold: _Fold, record: LogRecord, exchange: str) -> None:
    fold.next_offset = record.position.offset + 1
    try:
        _, message = decode_record(record.value)
    except EnvelopeError as error:
        _LOG.warning("statistics_record_refused", exchange=exchange, offset=record.position.offset, error=str(error))
        return
    if isinstance(message, market_pb2.Ticker24h) and message.exchange_id == exchange:
        fold.take(message)
