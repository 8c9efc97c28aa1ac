"""Tells the bars job which periods clients subscribe: through the event log, again every few seconds, on a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import structlog

from relay.errors import RelayError
from relay.eventlog import CONTROL_TOPIC, EventLog
from relay.protocol.envelope import encode_record
from relay.protocol.v1 import work_pb2

__all__ = ["PeriodTeller"]

_log = structlog.get_logger(__name__)
_AGAIN_S = 10.0
_LEASE_MS = 60_000
"""A manager that dies takes its word back after so long."""
_ACKNOWLEDGED_S = 5.0


class PeriodTeller:
    """Keeps the latest demand and appends it, key = ticker.

    Args:
        open_log: opens the event log, on the thread; None when the manager was given none.
        topic_prefix: before the log's topics.
    """

    def __init__(self, open_log: Callable[[], EventLog] | None, *, topic_prefix: str) -> None:
        self._open_log, self._topic = open_log, topic_prefix + CONTROL_TOPIC
        self._changed, self._closing = threading.Event(), threading.Event()
        self._demand: Mapping[str, frozenset[int]] = {}
        self._thread: threading.Thread | None = None
        if open_log is not None:
            self._thread = threading.Thread(target=self._run, name="period-teller", daemon=True)
            self._thread.start()

    def tell(self, demand: Mapping[str, frozenset[int]]) -> None:
        """Take over which periods (seconds) of each ticker are wanted now."""
        if demand != self._demand:
            self._demand = dict(demand)
            self._changed.set()

    def close(self) -> None:
        """Stop after what is in hand; an append that hangs is left behind."""
        self._closing.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join(timeout=2.0)

    def _run(self) -> None:
        log: EventLog | None = None
        told: set[str] = set()
        while not self._closing.is_set():
            self._changed.wait(_AGAIN_S if self._demand or told else None)
            self._changed.clear()
            if self._closing.is_set():
                break
            demand = self._demand
            try:
                if log is None and self._open_log is not None:
                    log = self._open_log()
                if log is not None:
                    _append(log, self._topic, {t: demand.get(t, frozenset()) for t in told | set(demand)})
                    told = set(demand)
            except RelayError as error:
                _log.warning("periods_not_told", error_code=error.code, error=str(error))
                told |= set(demand)
            except Exception:  # noqa: BLE001 - a dead thread would leave every later subscription without bars
                _log.exception("period_teller_failed")
                told |= set(demand)
        if log is not None:
            log.close()


def _append(log: EventLog, topic: str, demand: Mapping[str, frozenset[int]]) -> None:
    log.prepare(topic)
    for ticker, periods in sorted(demand.items()):
        request = work_pb2.DataRequest(
            type=work_pb2.DataRequest.REALTIME_TICKS,
            ticker=ticker,
            lease_ms=_LEASE_MS,
            realtime=work_pb2.RealtimeParams(include_ohlc=True, ohlc_period_seconds=sorted(periods)),
        )
        log.append(topic, key=ticker.encode(), value=encode_record(request))
    log.flush(_ACKNOWLEDGED_S)
