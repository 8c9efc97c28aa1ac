"""Where firings go: into the log, and then to the manager, which publishes them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping

import msgspec

from relay.errors import RetryableError
from relay.eventlog import EventLog
from relay.eventlog.access import append_acknowledged, read_range
from relay.observability import Counters
from relay.protocol.envelope import EnvelopeError, decode_record, encode_record
from relay.protocol.periods import NANOSECONDS
from relay.protocol.topics import response_topic, trigger_topic
from relay.protocol.v1 import trigger_pb2
from spark_jobs.jobs.hints import HintSender
from spark_jobs.jobs.triggers.book import Fired
from spark_jobs.jobs.triggers.engine.messages import event_message
from spark_jobs.jobs.triggers.engine.values import Firing

__all__ = ["TriggerOutlet"]

_TRIGGERS_MAX = 1_000_000
_AGAIN_MAX = 10_000
_AGAIN_NS = 60 * NANOSECONDS


class _Last(msgspec.Struct):
    """The newest firings of a trigger that the log holds: their time, which they were, and when the last was made."""

    fired_at_ns: int
    match_ids: set[str]
    made_ns: int


class TriggerOutlet:
    """Publishes firings: each goes to the log once, and from there to whoever listens, once at least.

    A trigger's firings come in the order of their times. So what is older than its last one in the log, or has its
    time and match_id, was logged before: records are read again after a restart.

    Args:
        log: the event log.
        topic: of firings; the key is the trigger_id.
        hints: towards the manager.
        starts: by partition, from where the log's own firings are read: where the state was saved; empty for all.
        counters: of the process.

    Raises:
        RetryableError: the log is away.
    """

    def __init__(
        self, *, log: EventLog, topic: str, hints: HintSender, starts: Mapping[int, int], counters: Counters
    ) -> None:
        self._log, self._topic, self._hints, self._counters = log, topic, hints, counters
        self._last: dict[str, _Last] = {}
        self._is_broken = False
        self._untold: deque[trigger_pb2.CEPTriggerEvent] = deque(maxlen=_AGAIN_MAX)
        self._read_own(starts)

    def made_ns(self, trigger_id: str) -> int:
        """Return when a trigger's last firing that was read or logged was made, by the clock; 0 for none."""
        last = self._last.get(trigger_id)
        return 0 if last is None else last.made_ns

    def fired_before_ns(self, trigger_id: str, registered_ns: int) -> int:
        """Return when an earlier trigger of an id fired last, by its exchange; 0 if none did before a registration."""
        last = self._last.get(trigger_id)
        return last.fired_at_ns if last is not None and last.made_ns < registered_ns else 0

    def tell_again(self, client_of: Callable[[str], str]) -> None:
        """Announce what was logged shortly before this began: the process before may have died in between.

        Args:
            client_of: finds the owner of a trigger.
        """
        for event in self._untold:
            self._announce(event, client_of(event.trigger_id))
        self._counters.add("triggers.told_again", len(self._untold))
        self._untold.clear()

    def publish(self, fired: Iterable[Fired]) -> int:
        """Log and then announce firings; return how many were new.

        Args:
            fired: each trigger's in the order of their times.

        Raises:
            RetryableError: the log does not acknowledge; the job has to begin anew from its last state.
        """
        if self._is_broken:
            raise RetryableError("firings were not acknowledged by the log; they are made again from the last state")
        made_ns = time.time_ns()
        fresh, known = [], 0
        for one in fired:
            if self._is_new(one.firing, made_ns):
                event = event_message(one.firing)
                event.stamp.published_at = made_ns
                fresh.append((event, one.client_id))
            else:
                known += 1
        if fresh:
            self._is_broken = True
            self._append([event for event, _ in fresh])
            self._is_broken = False
        for event, client_id in fresh:
            self._announce(event, client_id)
        self._counters.add("triggers.fired", len(fresh))
        self._counters.add("triggers.fired_again", known)
        return len(fresh)

    def _append(self, events: list[trigger_pb2.CEPTriggerEvent]) -> None:
        records = ((event.trigger_id.encode(), encode_record(event)) for event in events)
        append_acknowledged(self._log, self._topic, records, what="firings")

    def _announce(self, event: trigger_pb2.CEPTriggerEvent, client_id: str) -> None:
        # The stamp stays: by when it was made the manager tells a firing from one of an earlier trigger of that id.
        self._hints.send(trigger_topic(event.trigger_id).encode(), event)
        if client_id:
            self._hints.send(response_topic(client_id).encode(), event)

    def _is_new(self, firing: Firing, made_ns: int) -> bool:
        """Return whether a firing was not logged yet, and note it."""
        last = self._last.get(firing.trigger_id)
        if last is not None and (
            firing.fired_at_ns < last.fired_at_ns
            or (firing.fired_at_ns == last.fired_at_ns and firing.match_id in last.match_ids)
        ):
            return False
        self._note(firing.trigger_id, firing.fired_at_ns, firing.match_id, made_ns)
        return True

    def _note(self, trigger_id: str, fired_at_ns: int, match_id: str, made_ns: int) -> None:
        last = self._last.get(trigger_id)
        if last is None:
            last = self._last[trigger_id] = _Last(fired_at_ns, set(), made_ns)
        if fired_at_ns > last.fired_at_ns:
            last.fired_at_ns, last.match_ids = fired_at_ns, set()
        if fired_at_ns == last.fired_at_ns:
            last.match_ids.add(match_id)
        last.made_ns = max(last.made_ns, made_ns)
        while len(self._last) > _TRIGGERS_MAX:
            del self._last[next(iter(self._last))]

    def _read_own(self, starts: Mapping[int, int]) -> None:
        """Learn what was logged. Without a place to begin at, that of the last minute counts as not announced."""
        ends = dict(enumerate(self._log.end_offsets(self._topic)))
        for record in read_range(self._log, self._topic, starts=starts, ends=ends):
            try:
                _, event = decode_record(record.value)
            except EnvelopeError:
                continue
            if isinstance(event, trigger_pb2.CEPTriggerEvent):
                made_ns = event.stamp.published_at or record.timestamp_ns
                self._note(event.trigger_id, event.fired_at, event.match_id, made_ns)
                self._untold.append(event)
        if self._untold and not starts:
            newest_ns = max(event.stamp.published_at for event in self._untold)
            recent = [e for e in self._untold if e.stamp.published_at >= newest_ns - _AGAIN_NS]
            self._untold.clear()
            self._untold.extend(recent)
