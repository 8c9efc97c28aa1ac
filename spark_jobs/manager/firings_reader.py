"""Which triggers have fired while the manager was away, read off the event log once, on a thread.

The manager learns of firings as they pass its forwarder; what was on its way when it stopped is only in the log.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import structlog

from relay.errors import RelayError
from relay.eventlog import TRIGGER_TOPIC, EventLog
from relay.eventlog.access import offsets_since, read_range
from relay.transport import Waker

__all__ = ["FiringsReader"]

_log = structlog.get_logger(__name__)
_RETRY_S = 5.0


class FiringsReader:
    """A time in, the last firing of each trigger since then out, through a queue and a wake of the loop.

    Args:
        open_log: opens the event log, on the thread; None when the manager was given none.
        topic_prefix: before the log's topics.
        waker: woken for each result.
    """

    def __init__(self, open_log: Callable[[], EventLog] | None, *, topic_prefix: str, waker: Waker) -> None:
        self._open_log, self._topic, self._waker = open_log, topic_prefix + TRIGGER_TOPIC, waker
        self._questions: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[dict[str, int]] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        if open_log is not None:
            self._thread = threading.Thread(target=self._run, name="firings-reader", daemon=True)
            self._thread.start()

    def ask(self, since_ns: int) -> None:
        """Have the firings read that were logged since a time; asked again until the log answers."""
        if self._thread is not None:
            self._questions.put(since_ns)

    def results(self) -> list[dict[str, int]]:
        """Return what was read: when the last firing of each trigger was logged."""
        found: list[dict[str, int]] = []
        while True:
            try:
                found.append(self._results.get_nowait())
            except queue.Empty:
                return found

    def close(self) -> None:
        """Stop after the read in hand; one that hangs is left behind."""
        self._closing.set()
        self._questions.put(None)
        if self._thread is not None:
            self._thread.join(timeout=2.0)

    def _run(self) -> None:
        log: EventLog | None = None
        while (since_ns := self._questions.get()) is not None:
            try:
                if log is None and self._open_log is not None:
                    log = self._open_log()
                if log is not None:
                    self._results.put(_last_firings(log, self._topic, since_ns))
                    self._waker.wake()
            except RelayError as error:
                _log.warning("firings_not_read", error_code=error.code, error=str(error))
                self._again(since_ns)
            except Exception:  # noqa: BLE001 - a dead thread would leave one-shots that have fired active for ever
                _log.exception("firings_reader_failed")
                self._again(since_ns)
        if log is not None:
            log.close()

    def _again(self, since_ns: int) -> None:
        self._closing.wait(_RETRY_S)
        self._questions.put(since_ns)


def _last_firings(log: EventLog, topic: str, since_ns: int) -> dict[str, int]:
    ends = dict(enumerate(log.end_offsets(topic)))
    records = read_range(log, topic, starts=offsets_since(log, topic, since_ns), ends=ends)
    return {record.key.decode("ascii", "replace"): record.timestamp_ns for record in records}
