"""Tells the jobs what clients want, through the event log, on a thread: the log may be away, the loop must not wait.

The bars job learns which periods are subscribed (again every few seconds, as a lease), the triggers job what is
registered and cancelled (once; what the log has not acknowledged is told again).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice

import structlog

from relay.errors import RelayError, RetryableError, StorageError
from relay.eventlog import CONTROL_TOPIC, EventLog, LogPosition
from relay.protocol.envelope import VERSION, encode_record
from relay.protocol.registry import MessageType
from relay.protocol.v1 import trigger_pb2, work_pb2

__all__ = ["ControlTeller"]

_log = structlog.get_logger(__name__)
_AGAIN_S = 10.0
_RETRY_S = 1.0
_LEASE_MS = 60_000
"""A manager that dies takes its word about periods back after so long."""
_ACKNOWLEDGED_S = 5.0
_BATCH = 500
_Words = tuple[bytes | None, ...]
"""What is to be told of one trigger: None for CANCEL, its definition, or a CANCEL before another definition."""


class ControlTeller:
    """Keeps the latest demand and what is untold of triggers; appends both, key = ticker or trigger_id.

    Args:
        open_log: opens the event log, on the thread; None when the manager was given none.
        topic_prefix: before the log's topics.
    """

    def __init__(self, open_log: Callable[[], EventLog] | None, *, topic_prefix: str) -> None:
        self._open_log, self._topic = open_log, topic_prefix + CONTROL_TOPIC
        self._changed, self._closing = threading.Event(), threading.Event()
        self._demand: Mapping[str, frozenset[int]] = {}
        self._told: set[str] = set()
        self._refused: set[str] = set()
        self._lock = threading.Lock()
        self._triggers: dict[str, _Words] = {}
        self._log: EventLog | None = None
        self._thread: threading.Thread | None = None
        if open_log is not None:
            self._thread = threading.Thread(target=self._run, name="control-teller", daemon=True)
            self._thread.start()

    @property
    def untold_count(self) -> int:
        """How many triggers' words the log has not acknowledged yet."""
        return len(self._triggers)

    @property
    def refused_count(self) -> int:
        """How many tickers' periods the log did not take at the last telling."""
        return len(self._refused)

    def tell(self, demand: Mapping[str, frozenset[int]]) -> None:
        """Take over which periods (seconds) of each ticker are wanted now."""
        if demand != self._demand:
            self._demand = dict(demand)
            self._changed.set()

    def tell_trigger(self, trigger_id: str, definition: bytes | None) -> None:
        """Take over that a trigger is registered (a serialised REGISTER), or cancelled (None)."""
        if self._thread is not None:
            with self._lock:
                self._triggers[trigger_id] = _joined(self._triggers.get(trigger_id, ()), (definition,))
            self._changed.set()

    def close(self) -> None:
        """Stop after what is in hand; an append that hangs is left behind."""
        self._closing.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join(timeout=2.0)

    def _run(self) -> None:
        wait_s: float | None = None
        while not self._closing.is_set():
            self._changed.wait(wait_s)
            self._changed.clear()
            if self._closing.is_set():
                break
            # Periods or triggers that cannot be told must not keep the others back.
            is_told = self._is_done(self._prepare)
            for telling in (self._tell_periods, self._tell_triggers) if is_told else ():
                is_told &= self._is_done(telling)
            wait_s = (_AGAIN_S if self._demand or self._told else None) if is_told else _RETRY_S
        if self._log is not None:
            self._log.close()

    def _is_done(self, step: Callable[[], None]) -> bool:
        """Take a step; return whether it was done."""
        try:
            step()
        except RelayError as error:
            _log.warning("control_not_told", error_code=error.code, error=str(error))
        except Exception:  # noqa: BLE001 - a dead thread would leave every later word untold
            _log.exception("control_teller_failed")
        else:
            return True
        return False

    def _prepare(self) -> None:
        if self._log is None and self._open_log is not None:
            self._log = self._open_log()
        if self._log is not None:
            self._log.prepare(self._topic)

    def _tell_periods(self) -> None:
        """Append what is wanted of each ticker; a ticker whose record the log refuses is told with the next telling."""
        log, demand = self._log, self._demand
        if log is None:
            return
        said = self._told = self._told | set(demand)
        refused: set[str] = set()
        for ticker in sorted(said):
            request = work_pb2.DataRequest(
                type=work_pb2.DataRequest.REALTIME_TICKS,
                ticker=ticker,
                lease_ms=_LEASE_MS,
                realtime=work_pb2.RealtimeParams(
                    include_ohlc=True, ohlc_period_seconds=sorted(demand.get(ticker, frozenset()))
                ),
            )
            try:
                log.append(self._topic, key=ticker.encode(), value=encode_record(request))
            except StorageError as error:
                refused.add(ticker)
                if ticker not in self._refused:
                    _log.error("periods_not_told", ticker=ticker, error_code=error.code, error=str(error))
        if said:
            log.flush(_ACKNOWLEDGED_S)
        self._told, self._refused = set(demand) | refused, refused

    def _tell_triggers(self) -> None:
        """Append what is untold, a batch after the other; what is not acknowledged stays untold."""
        log = self._log
        while log is not None and self._triggers and not self._closing.is_set():
            with self._lock:
                batch = dict(islice(self._triggers.items(), _BATCH))
                for trigger_id in batch:
                    del self._triggers[trigger_id]
            sent: dict[str, list[Future[LogPosition]]] = {}
            try:
                for trigger_id, words in batch.items():
                    sent[trigger_id] = []
                    try:
                        for word in words:
                            value = _record(trigger_id, word)
                            sent[trigger_id].append(log.append(self._topic, key=trigger_id.encode(), value=value))
                    except StorageError as error:
                        # This record alone is refused: those behind it are told.
                        _log.error("trigger_not_told", trigger_id=trigger_id, error_code=error.code, error=str(error))
                log.flush(_ACKNOWLEDGED_S)
            finally:
                untold = {t: words for t, words in batch.items() if not _is_acknowledged(sent.get(t, ()), len(words))}
                with self._lock:
                    for trigger_id, words in untold.items():
                        self._triggers[trigger_id] = _joined(words, self._triggers.get(trigger_id, ()))
            if untold:
                raise RetryableError(f"the log has not acknowledged {len(untold)} triggers; they are told again")


def _joined(before: _Words, after: _Words) -> _Words:
    """Return what is to be told when both are: of a definition that was cancelled only the CANCEL is left."""
    for word in after:
        if word is None:
            before = (None,)
        elif word not in before:
            before = (*before, word)
    return before


def _record(trigger_id: str, definition: bytes | None) -> bytes:
    if definition is None:
        request = trigger_pb2.CEPTriggerRequest
        return encode_record(request(trigger_id=trigger_id, action=request.CANCEL))
    return bytes((VERSION, MessageType.CEP_TRIGGER_REQUEST)) + definition


def _is_acknowledged(futures: Sequence[Future[LogPosition]], expected: int) -> bool:
    return len(futures) == expected and all(f.done() and f.exception() is None for f in futures)
