"""The triggers job without Spark: definitions and ticks of the log in, firings out, state on disk.

What a batch decides depends on the log alone. State is saved whole every few seconds with the offsets that it has
reached; what is read again after a restart fires the same, and the log's own firings say which of it is known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from relay.errors import PeerError, RetryableError, StorageError
from relay.eventlog import CONTROL_TOPIC, TICK_TOPIC, TRIGGER_TOPIC, EventLog, partition_of
from relay.eventlog.access import offsets_since, read_range
from relay.observability import Counters
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.v1 import trigger_pb2
from spark_jobs.jobs.bars.decode import bar_events
from spark_jobs.jobs.hints import HintSender
from spark_jobs.jobs.records import in_log_order, next_offsets, of_topic, stretches
from spark_jobs.jobs.settings import JobSettings
from spark_jobs.jobs.state_store import StateStore
from spark_jobs.jobs.triggers.book import TriggerBook
from spark_jobs.jobs.triggers.definitions import definition_of
from spark_jobs.jobs.triggers.outlet import TriggerOutlet
from spark_jobs.jobs.triggers.state import TriggersState

__all__ = ["JOB", "TriggerService"]

JOB = "triggers"
_CONTROL_COLUMNS = ("partition", "offset", "key", "value", "time_ms")
_NS_PER_MS = 1_000_000
_WORDS_MAX = 100_000
_BEFORE_NS = 60 * NANOSECONDS
_EXPIRED_NS = 86_400 * NANOSECONDS
_LOSSES = ("forced", "held_overflow", "left_behind", "unsure", "partials_overflow", "window_overflow")
_LOG = structlog.get_logger(__name__)


class TriggerService:
    """Everything of the job but its query.

    Args:
        settings: of the job.
        log: the event log; its topics exist.
        hints: towards the manager.
        counters: of the process.

    Raises:
        RetryableError: the log, or the folder of the state, is away.
    """

    def __init__(self, settings: JobSettings, *, log: EventLog, hints: HintSender, counters: Counters) -> None:
        self._settings, self._log, self._counters = settings, log, counters
        self._ticks, self._control, self._fired = (
            settings.topic_prefix + topic for topic in (TICK_TOPIC, CONTROL_TOPIC, TRIGGER_TOPIC)
        )
        self._identity = log.identity(self._ticks)
        self._states = StateStore(settings.checkpoint_folder, TriggersState, job=JOB)
        self._book = TriggerBook(lateness_ns=settings.triggers_lateness_ms * _NS_PER_MS)
        self._over: set[str] = set()
        self._words: dict[bytes, bytes] = {}
        self._lock, self._is_whole, self._is_closed = threading.Lock(), True, False
        self._saved_at = time.monotonic()
        self._said: dict[str, int] = {}
        state = self._restored()
        # Before the definitions: a trigger that is registered from here on finds its ticks behind this.
        tick_ends = dict(enumerate(log.end_offsets(self._ticks)))
        self._outlet = TriggerOutlet(
            log=log,
            topic=self._fired,
            hints=hints,
            starts=state.trigger_offsets if state else {},
            counters=counters,
        )
        self._control_reached = dict(enumerate(log.end_offsets(self._control)))
        starts = state.control_offsets if state else {}
        for record in read_range(log, self._control, starts=starts, ends=self._control_reached):
            self._define(record.key, record.value, registered_ns=record.timestamp_ns)
        self._outlet.tell_again(self._book.client_of)
        self._reached = dict(state.tick_offsets) if state else self._rebuild_offsets(tick_ends)

    @property
    def offsets(self) -> dict[str, dict[int, int]]:
        """Next offsets to read, by topic."""
        return {self._ticks: dict(self._reached), self._control: dict(self._control_reached)}

    def doubt(self, partitions: set[int]) -> None:
        """The log has lost records between the state and its oldest one."""
        counts = {len(self._reached), self._identity.partitions}
        self._book.doubt(t for t in self._book.tickers if partitions & {partition_of(t.encode(), n) for n in counts})

    def catch_up(self, starts: Mapping[int, int]) -> dict[int, int]:
        """Read the ticks up to the end of a topic that has grown; return the offsets after them.

        A ticker's records go on in another partition, and a query's micro-batches take from all at once (0003).

        Args:
            starts: first offset by partition, of all of them.

        Raises:
            RetryableError: the log is away; this object is of no use any more.
        """
        ends = dict(enumerate(self._log.end_offsets(self._ticks)))
        _LOG.warning("log_has_grown", topic=self._ticks, before=len(self._reached), partitions=len(ends))
        with self._lock:
            # Not whole before all is read: a state in between would name all partitions, and be gone on from anyhow.
            self._is_whole = False
            for records in stretches(read_range(self._log, self._ticks, starts=starts, ends=ends)):
                self._outlet.publish(self._book.take(bar_events(self._named(records))))
                self._counters.add("triggers.records.caught_up", len(records))
            self._reached = {p: max(end, starts[p]) for p, end in ends.items()}
            self._is_whole = True
        return dict(self._reached)

    def take(self, records: pa.Table) -> None:
        """Take a micro-batch: what it defines, then what fires.

        Args:
            records: columns of :data:`~spark_jobs.jobs.records.TIMED_EXPRESSIONS`; triggers begin when appended.

        Raises:
            RetryableError: the log is away; this object is of no use any more.
        """
        started_ns = time.monotonic_ns()
        control, ticks = (of_topic(records, topic) for topic in (self._control, self._ticks))
        with self._lock:
            if self._is_closed or not self._is_whole:
                raise RetryableError("what came before was broken off; firings are made again from the last state")
            self._is_whole = False
            for row in in_log_order(control.select(list(_CONTROL_COLUMNS))).to_pylist():
                self._define(row["key"], row["value"], registered_ns=row["time_ms"] * _NS_PER_MS)
            self._outlet.publish(self._book.take(bar_events(self._named(ticks))))
            self._reached.update(next_offsets(ticks))
            self._control_reached.update(next_offsets(control))
            self._is_whole = True
            if time.monotonic() - self._saved_at >= self._settings.triggers_state_seconds:
                self._save()
        self._counters.add("triggers.records", len(ticks))
        for name, count in self._book.counts.items():
            self._counters.set(f"triggers.matcher.{name}", count)
        self._counters.set("triggers.held", self._book.held)
        self._counters.set("triggers.begun", self._book.begun)
        self._counters.set("triggers.batch.last_ms", (time.monotonic_ns() - started_ns) // 1_000_000)

    def close(self) -> None:
        """Save the state, unless a batch is under way or was broken off: then the one before counts.

        Raises:
            RetryableError: the disk is full or away.
        """
        self._is_closed = True
        if self._lock.acquire(blocking=False):
            try:
                if self._is_whole:
                    self._save()
            finally:
                self._lock.release()

    def _save(self) -> None:
        started_ns, self._saved_at = time.monotonic_ns(), time.monotonic()
        self._counters.add("triggers.let_go", self._book.let_go(time.time_ns() - _EXPIRED_NS))
        # All that the log holds of firings was announced by now.
        fired_offsets = dict(enumerate(self._log.end_offsets(self._fired)))
        matcher, bars, clients = self._book.encode()
        size = self._states.save(
            TriggersState(
                self._identity.cluster_id,
                self._identity.topic_id,
                dict(self._reached),
                dict(self._control_reached),
                fired_offsets,
                matcher,
                bars,
                clients,
            )
        )
        self._warn()
        self._counters.set("triggers.registered", len(self._book))
        self._counters.set("triggers.tickers", len(self._book.tickers))
        self._counters.set("triggers.state.bytes", size)
        self._counters.set("triggers.state.last_ms", (time.monotonic_ns() - started_ns) // 1_000_000)

    def _warn(self) -> None:
        """Say what was left out since this was last called, and may have cost a firing."""
        counts = {name: self._book.counts.get(name, 0) for name in _LOSSES}
        more = {name: count - self._said.get(name, 0) for name, count in counts.items()}
        if any(more.values()):
            _LOG.warning("trigger_events_left_out", **{name: count for name, count in more.items() if count})
        self._said = counts

    def _named(self, ticks: pa.Table) -> pa.Table:
        """Return the records of tickers that a trigger names; the others are passed over undecoded."""
        keys = ticks["key"]
        named = pa.array([ticker.encode() for ticker in self._book.tickers], keys.type)
        return ticks.filter(pc.is_in(keys, value_set=named))

    def _define(self, key: bytes | None, value: bytes | None, *, registered_ns: int) -> None:
        if key is None or value is None or self._words.get(key) == value:
            # Everything is told again now and then; thousands of known definitions would hold the ticks up.
            return
        try:
            request = definition_of(key, value)
            if request is None:
                return
            if len(self._words) >= _WORDS_MAX:
                self._words.clear()
            self._words[key] = value
            if request.action == trigger_pb2.CEPTriggerRequest.CANCEL:
                self._over.discard(request.trigger_id)
                self._book.cancel(request.trigger_id)
            elif not self._is_over(request, registered_ns):
                # What an earlier trigger of this id has fired on is not read as the new one's, also without a state.
                fired_ns = self._outlet.fired_before_ns(request.trigger_id, registered_ns)
                self._book.register(request, since_ns=max(registered_ns, fired_ns + 1))
        except (PeerError, ValueError) as error:
            self._counters.add("triggers.refused")
            code = error.code if isinstance(error, PeerError) else ErrorCode.INVALID_REQUEST
            _LOG.warning("trigger_refused", key=str(key[:80]), error_code=code, error=str(error))

    def _is_over(self, request: trigger_pb2.CEPTriggerRequest, registered_ns: int) -> bool:
        """Return whether a definition is of a trigger that is over, as far as the state does not know it.

        A firing that was made before the registration is of an earlier trigger of this id. Both are times of the
        platform's clocks; that of the exchange, by which it fired, may be ahead of them.
        """
        has_fired = request.one_shot and self._outlet.made_ns(request.trigger_id) >= registered_ns
        if has_fired or 0 < request.expires_at < time.time_ns() - _EXPIRED_NS:
            self._over.add(request.trigger_id)
        return request.trigger_id in self._over

    def _restored(self) -> TriggersState | None:
        state = self._states.load_of(self._identity)
        if state is None:
            return None
        try:
            self._book.restore(state.matcher, state.bars, state.clients)
        except StorageError as error:
            self._counters.add("triggers.state.refused")
            _LOG.error("triggers_state_refused", error=str(error))
            return None
        return state

    def _rebuild_offsets(self, ends: dict[int, int]) -> dict[int, int]:
        """Without a state: from the first registration, but no further back than the settings say."""
        first_ns = self._book.since_ns
        if first_ns is None:
            return ends
        oldest_ns = time.time_ns() - self._settings.triggers_rebuild_hours * 3600 * NANOSECONDS
        return offsets_since(self._log, self._ticks, max(first_ns - _BEFORE_NS, oldest_ns))
