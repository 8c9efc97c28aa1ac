"""Replays out of the event log on one worker thread: a scan takes its time, which the loop must not."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

import structlog

from relay.errors import RelayError
from relay.eventlog import HISTORY_TOPIC, TICK_TOPIC, TRIGGER_TOPIC, EventLog
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.v1 import request_pb2
from relay.transport import Waker
from spark_jobs.manager.engine.commands import Answer
from spark_jobs.manager.engine.model import Route
from spark_jobs.manager.engine.replay import ReplayCollector, ReplayWanted

__all__ = ["ReplayDesk", "replay", "unavailable"]

_LOG = structlog.get_logger(__name__)
_WAITING_MAX = 256
_TOPIC_OF = {"tick": TICK_TOPIC, "gap": TICK_TOPIC, "ohlc": HISTORY_TOPIC, "trigger": TRIGGER_TOPIC}
_WINDOWS_NS = (*(seconds * NANOSECONDS for seconds in (5, 20, 60, 200, 600, 2_000, 6_000, 21_600)), None)
"""How far back to look for numbers, step by step; None for as far as the log goes. Nearly every loss is seconds old,
and a step that reaches much too far back would be full before it comes to what is asked for."""
_CLOCK_SLACK_NS = 60 * NANOSECONDS
"""An exchange's clock may run ahead of ours by less than this, so a record may be older than its trade."""
_STEP_RECORDS = 20_000
"""Each step connects to the log anew, which takes as long as reading thousands of records."""
_SCAN_RECORDS_MAX = 500_000


class ReplayDesk:
    """Questions in, answers out through a queue and a wake of the loop.

    Args:
        open_log: opens the event log, on the worker thread; None when the manager was given none.
        topic_prefix: before the log's topics.
        waker: woken for each answer.
    """

    def __init__(self, open_log: Callable[[], EventLog] | None, *, topic_prefix: str, waker: Waker) -> None:
        self._open_log, self._waker = open_log, waker
        self._topics = {kind: topic_prefix + topic for kind, topic in _TOPIC_OF.items()}
        self._questions: queue.SimpleQueue[ReplayWanted | None] = queue.SimpleQueue()
        self._asking: dict[ReplayWanted, dict[Route, None]] = {}
        self._asking_lock = threading.Lock()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="replays", daemon=True)
        self._thread.start()

    def ask(self, wanted: ReplayWanted, routing: Route) -> Answer | None:
        """Put a question, or join the same one that waits; return an answer at once when it cannot be taken."""
        if self._open_log is None:
            return Answer(routing, unavailable("this manager knows no event log; set log_bootstrap_servers"))
        overloaded = Answer(routing, unavailable("too many replays wait; ask again later", ErrorCode.OVERLOADED))
        with self._asking_lock:
            routes = self._asking.get(wanted)
            if routes is not None:
                # Clients ask again after seconds: were each one a scan of its own, a slow log would never catch up.
                if routing not in routes and len(routes) >= _WAITING_MAX:
                    return overloaded
                routes[routing] = None
                return None
            if len(self._asking) >= _WAITING_MAX:
                return overloaded
            self._asking[wanted] = {routing: None}
        self._questions.put(wanted)
        return None

    def answers(self) -> list[Answer]:
        """Return the answers that are there."""
        found: list[Answer] = []
        while True:
            try:
                found.append(self._answers.get_nowait())
            except queue.Empty:
                return found

    def close(self) -> None:
        """Stop after the question in hand; a read that hangs is left behind."""
        self._questions.put(None)
        self._thread.join(timeout=2.0)

    def _run(self) -> None:
        log: EventLog | None = None
        while (wanted := self._questions.get()) is not None:
            try:
                if log is None and self._open_log is not None:
                    log = self._open_log()
                topic = self._topics[wanted.topic.kind]
                response = replay(log, topic, wanted) if log is not None else unavailable("no log")
            except RelayError as error:
                response = unavailable(str(error), error.code)
            except Exception as error:  # noqa: BLE001 - a dead thread would leave every later question unanswered
                _LOG.exception("replay_failed", topic=str(wanted.topic))
                response = unavailable(f"the replay failed: {error}", ErrorCode.INTERNAL)
            with self._asking_lock:
                routes = self._asking.pop(wanted)
            for routing in routes:
                self._answers.put(Answer(routing, response))
            self._waker.wake()
        if log is not None:
            log.close()


def unavailable(text: str, code: str = ErrorCode.UNAVAILABLE) -> request_pb2.ReplayResponse:
    """Return an answer that says why there is none."""
    return request_pb2.ReplayResponse(
        status=request_pb2.ReplayResponse.UNAVAILABLE, error_code=code, error_message=text[:500]
    )


def replay(log: EventLog, topic: str, wanted: ReplayWanted) -> request_pb2.ReplayResponse:
    """Return the records that a replay asks for.

    Raises:
        RetryableError: the log is away.
    """
    if wanted.by == "time":
        collector = ReplayCollector(wanted)
        from_ns = None if wanted.cursor else max(0, wanted.first - _CLOCK_SLACK_NS)
        _scan(log, topic, wanted, collector, from_offset=wanted.cursor or None, from_time_ns=from_ns)
        return collector.answer()
    # One for all steps: what a short one has found, a long one that is cut off must not lose again.
    collector = ReplayCollector(wanted)
    for window_ns in _WINDOWS_NS:
        from_ns = None if window_ns is None else time.time_ns() - window_ns
        _scan(log, topic, wanted, collector, from_offset=None, from_time_ns=from_ns)
        if collector.is_complete or (collector.lowest is not None and collector.lowest < wanted.first):
            break
    return collector.answer()


def _scan(
    log: EventLog,
    topic: str,
    wanted: ReplayWanted,
    collector: ReplayCollector,
    *,
    from_offset: int | None,
    from_time_ns: int | None,
) -> None:
    key, scanned = wanted.key, 0
    while not (collector.is_full or collector.is_complete) and scanned < _SCAN_RECORDS_MAX:
        records = log.read(topic, key=key, from_offset=from_offset, from_time_ns=from_time_ns, limit=_STEP_RECORDS)
        collector.take((record.position.offset, record.value) for record in records)
        scanned += len(records)
        if len(records) < _STEP_RECORDS:
            return
        from_offset, from_time_ns = records[-1].position.offset + 1, None
    if scanned >= _SCAN_RECORDS_MAX and from_offset is not None:
        collector.pause(from_offset)
