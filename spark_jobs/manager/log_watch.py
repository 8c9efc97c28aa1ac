"""Where the event log of history ends, asked on a thread of its own: the log may be away for longer than a look."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog

from relay.errors import RelayError
from relay.eventlog import HISTORY_TOPIC, EventLog
from spark_jobs.manager.engine.evidence import LogEnds

__all__ = ["LogWatch"]

_log = structlog.get_logger(__name__)


class LogWatch:
    """Keeps the latest answer; asked while a delivered job waits for its coverage.

    Args:
        open_log: opens the event log, on the worker thread; None when the manager was given none.
        topic_prefix: before the log's topics.
    """

    def __init__(self, open_log: Callable[[], EventLog] | None, *, topic_prefix: str) -> None:
        self._open_log, self._topic = open_log, topic_prefix + HISTORY_TOPIC
        self._wanted, self._closing = threading.Event(), threading.Event()
        self.latest: LogEnds | None = None
        """What was seen last; replaced as a whole, so that every thread may read it."""
        self._thread: threading.Thread | None = None
        if open_log is not None:
            self._thread = threading.Thread(target=self._run, name="log-watch", daemon=True)
            self._thread.start()

    def ask(self) -> None:
        """Look again soon; harmless while a look is under way."""
        self._wanted.set()

    def close(self) -> None:
        """Stop after the look in hand; one that hangs is left behind."""
        self._closing.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(timeout=2.0)

    def _run(self) -> None:
        log: EventLog | None = None
        while self._wanted.wait() and not self._closing.is_set():
            self._wanted.clear()
            try:
                if log is None and self._open_log is not None:
                    log = self._open_log()
                if log is not None:
                    self.latest = _ends(log, self._topic)
            except RelayError as error:
                _log.warning("log_ends_not_read", error_code=error.code, error=str(error))
            except Exception:  # noqa: BLE001 - a dead thread would leave lost records unnoticed without a word
                _log.exception("log_watch_failed")
        if log is not None:
            log.close()


def _ends(log: EventLog, topic: str) -> LogEnds:
    asked_ns = time.time_ns()
    identity = log.identity(topic)
    ends = LogEnds(
        cluster_id=identity.cluster_id,
        topic_id=identity.topic_id,
        oldest=tuple(log.start_offsets(topic)),
        ends=tuple(log.end_offsets(topic)),
        asked_ns=asked_ns,
    )
    # Taken twice: offsets of a topic that was made anew in between would be told under the old one's name.
    if log.identity(topic) != identity:
        return _ends(log, topic)
    return ends
