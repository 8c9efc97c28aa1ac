"""The streaming query of bars: Kafka → micro-batches → the bar engine → the log and the manager.

::

    tick topic ──► events in the order of the log ──► engine ──► final bars ──► history topic, then PUSH
    control topic ─► periods that are wanted              │ └──► running bars ─► PUSH
                                                          └────► buckets not seen whole ─► store thread ─► as final bars

State is saved whole every few seconds, with the offsets that it has reached. What a batch decides depends on the log
alone, so records that are read again after a restart decide the same; what was said already is not said again.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from relay.errors import RetryableError, StorageError
from relay.eventlog import CONTROL_TOPIC, HISTORY_TOPIC, TICK_TOPIC, EventLog, partition_of
from relay.eventlog.access import offsets_since, read_range
from relay.observability import Counters
from relay.protocol.periods import NANOSECONDS, WANTED_PERIODS_MAX
from relay.protocol.v1 import market_pb2
from relay.tables.offsets import HISTORY_JOB
from relay.tables.schema import TICK_BARS_TABLE
from spark_jobs.jobs.bars.bar_store import BarLake, BarStore, Placed
from spark_jobs.jobs.bars.decode import BarEvent, PeriodsWanted, bar_event, bar_events
from spark_jobs.jobs.bars.engine.bar_book import BarBook
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, Beat, GapNotice, MadeBar, Recompute
from spark_jobs.jobs.bars.messages import BarKey, message_of_bar
from spark_jobs.jobs.bars.outlet import BarOutlet, Decided
from spark_jobs.jobs.bars.state import BarsState
from spark_jobs.jobs.bars.wanted import WantedPeriods
from spark_jobs.jobs.hints import HintSender
from spark_jobs.jobs.record_reader import RecordReader
from spark_jobs.jobs.records import TIMED_EXPRESSIONS, Record, next_offsets, of_topic, stretches
from spark_jobs.jobs.settings import JobSettings
from spark_jobs.jobs.source import clamped_starts, ensure_topics, followed_log, log_stream, start_query
from spark_jobs.jobs.state_store import StateStore

__all__ = ["BarsJob"]

JOB = "bars"
_CLOCK_S = 1.0
_WANTED_LATELY_NS = 60 * NANOSECONDS
_LOG = structlog.get_logger(__name__)


class _Made(NamedTuple):
    """What was decided, and by the record at which place of the tick topic."""

    one: MadeBar | Recompute
    offset: int
    partition: int


class BarsJob:
    """Runs the query; one instance in the driver, made anew after each failure."""

    def __init__(
        self,
        settings: JobSettings,
        *,
        session: SparkSession,
        log: EventLog,
        open_lake: Callable[[], BarLake],
        hints: HintSender,
        counters: Counters,
    ) -> None:
        self._settings, self._session, self._log, self._counters = settings, session, log, counters
        prefix = settings.topic_prefix
        self._ticks, self._control, self._bars = (prefix + t for t in (TICK_TOPIC, CONTROL_TOPIC, HISTORY_TOPIC))
        ensure_topics(log, settings)
        self._identity = log.identity(self._ticks)
        self._states = StateStore(settings.checkpoint_folder, BarsState, job=JOB)
        self._wanted = WantedPeriods(settings.bars_periods)
        self._read_wanted()
        rules = BarRules(
            lateness_ns=settings.bars_lateness_ms * 1_000_000, keep_ns=settings.bars_keep_seconds * NANOSECONDS
        )
        self._book = BarBook(rules, self._wanted.of)
        self._places: dict[str, int] = {}
        state = self._restored()
        self._reached = dict(state.tick_offsets) if state else self._rebuild_offsets()
        self._outlet = BarOutlet(
            log=log,
            topic=self._bars,
            hints=hints,
            starts=self._bar_starts(state, open_lake),
            source=zlib.crc32(f"{self._identity.cluster_id}/{self._identity.topic_id}".encode()),
            counters=counters,
            # Partitions that have been added since hold nothing that was announced before.
            announced={p: state.bar_offsets.get(p, 0) for p in range(len(log.end_offsets(self._bars)))}
            if state
            else None,
        )
        self._store = BarStore(
            open_lake=open_lake,
            outlet=self._outlet,
            cluster_id=self._identity.cluster_id,
            topic_id=self._identity.topic_id,
            counters=counters,
            waiting=[_placed(one) for one in state.pending] if state else (),
        )
        self._reader = RecordReader(TIMED_EXPRESSIONS, log=followed_log(session, log), counters=counters, job=JOB)
        self._saved_at = time.monotonic()
        self._lock, self._is_whole = threading.Lock(), True
        self._closing = threading.Event()
        self._query: StreamingQuery | None = None
        self._clock = threading.Thread(target=self._watch_clock, name="bars-clock", daemon=True)
        self._clock.start()

    def start(self) -> StreamingQuery:
        """Start the query where the state has come to."""
        starts = clamped_starts(self._log, {self._ticks: self._reached}, counters=self._counters, job=JOB)
        self._doubt({p for p, offset in starts[self._ticks].items() if offset != self._reached.get(p, 0)})
        # What was wanted lately has been read; it is told again every few seconds.
        starts[self._control] = dict(enumerate(self._log.end_offsets(self._control)))
        self._outlet.tell_again()
        if starts[self._ticks].keys() != self._reached.keys():
            starts[self._ticks] = self._catch_up(starts[self._ticks])
        source = log_stream(
            self._session, self._settings, starts, records_max=self._settings.bars_records_per_batch_max
        )
        self._reader.start_at(starts)
        self._query = start_query(
            source,
            self._process,
            self._settings,
            job=JOB,
            trigger_ms=self._settings.bars_trigger_ms,
            reader=self._reader,
        )
        return self._query

    def _doubt(self, partitions: set[int]) -> None:
        """The log has lost what lies between the state and its oldest record: the archive may have it."""
        for ticker in self._book.tickers:
            if partitions & {self._place(ticker), partition_of(ticker.encode(), self._identity.partitions)}:
                self._counters.add("bars.tickers.doubted")
                self._book.doubt(ticker)

    def _catch_up(self, starts: Mapping[int, int]) -> dict[int, int]:
        """The topic has grown since the state was saved: read on up to its ends in the order of appending.

        A ticker's records go on in another partition, and the query's micro-batches take from all at once (0003).
        """
        ends = dict(enumerate(self._log.end_offsets(self._ticks)))
        _LOG.warning("log_has_grown", topic=self._ticks, before=len(self._reached), partitions=len(ends))
        with self._lock:
            # Not whole before all is read: a state in between would name all partitions, and be gone on from anyhow.
            self._is_whole = False
            for records in stretches(read_range(self._log, self._ticks, starts=starts, ends=ends)):
                self._give(self._take(records))
                self._counters.add("bars.records.caught_up", len(records))
            self._reached = {p: max(end, starts[p]) for p, end in ends.items()}
            self._is_whole = True
        return dict(self._reached)

    def _place(self, ticker: str) -> int:
        """Return the partition of a ticker's newest record."""
        return self._places.get(ticker, partition_of(ticker.encode(), self._identity.partitions))

    def _move(self, ticker: str, partition: int) -> None:
        """Note that a ticker's records lie in another partition from here on."""
        state, before = self._book.tickers.get(ticker), self._places.get(ticker)
        self._places[ticker] = partition
        if state is not None and before is not None:
            self._counters.add("bars.tickers.moved")
            self._store.hold(before, trade_offset=state.trade_offset, gap_offset=state.gap_offset)
            self._book.move(ticker)

    def close(self) -> None:
        """End the store's thread, and save the state unless a batch is under way or was broken off."""
        self._closing.set()
        self._clock.join(timeout=10.0)
        self._store.close()
        self._reader.close()
        if self._lock.acquire(blocking=False):
            try:
                if self._is_whole:
                    self._save()
            finally:
                self._lock.release()

    def _process(self, frame: DataFrame, batch_id: int) -> None:
        started = time.monotonic_ns()
        records = self._reader.read(frame, batch_id)
        ticks = of_topic(records, self._ticks)
        with self._lock:
            if not self._is_whole or self._closing.is_set():
                raise RetryableError("what came before was broken off; bars are made again from the last state")
            self._is_whole = False
            self._want(of_topic(records, self._control))
            self._give([*self._take(ticks), *self._on_clock()])
            self._reached.update(next_offsets(ticks))
            self._is_whole = True
            # Under the lock: a bucket that goes from the book to the store meanwhile would be in neither.
            if time.monotonic() - self._saved_at >= self._settings.bars_state_seconds:
                self._save()
        self._counters.add("bars.records", len(ticks))
        self._counters.set("bars.batch.last_ms", (time.monotonic_ns() - started) // 1_000_000)
        # Each ticker has a watermark of its own: the furthest behind and the furthest ahead of those that are live.
        if reached := [t.reached_ns for t in self._book.tickers.values() if t.reached_ns and not t.is_down]:
            self._counters.set("bars.watermark.oldest_ms", min(reached) // 1_000_000)
            self._counters.set("bars.watermark.newest_ms", max(reached) // 1_000_000)

    def _read_wanted(self) -> None:
        """Learn what is wanted now, before the first tick: a period that is not wanted has no bars."""
        since_ns = time.time_ns() - _WANTED_LATELY_NS
        ends = dict(enumerate(self._log.end_offsets(self._control)))
        starts = offsets_since(self._log, self._control, since_ns)
        for found in read_range(self._log, self._control, starts=starts, ends=ends):
            at = found.position
            self._told(bar_event(Record(at.topic, at.partition, at.offset, found.key, found.value)))

    def _told(self, event: BarEvent | None) -> None:
        if event is not None and isinstance(event.said, PeriodsWanted):
            self._wanted.tell(event.ticker, event.said.periods, lease_ms=event.said.lease_ms)

    def _want(self, records: pa.Table) -> None:
        for event in bar_events(records):
            self._told(event)
        for ticker in self._wanted.changed():
            self._book.want(ticker)
        refused = self._wanted.refused_count
        if refused and not self._counters.get("bars.periods.refused"):
            _LOG.warning("periods_refused", count=refused, asked_max=WANTED_PERIODS_MAX)
        self._counters.set("bars.periods.refused", refused)

    def _take(self, records: pa.Table) -> list[_Made]:
        """Return what records decide, and which did."""
        made: list[_Made] = []
        for event in bar_events(records):
            ticker, said = event.ticker, event.said
            if self._places.get(ticker) != event.partition:
                self._move(ticker, event.partition)
            if isinstance(said, BarTrade):
                self._book.on_trade(ticker, said)
            elif isinstance(said, GapNotice):
                self._book.on_gap(ticker, said, offset=event.offset)
            elif isinstance(said, Beat):
                made += [_Made(one, event.offset, event.partition) for one in self._book.on_beat(ticker, said)]
        return made

    def _on_clock(self) -> list[_Made]:
        """Return what is over by the clock."""
        return [_Made(one, offset, self._place(one.ticker)) for offset, one in self._book.on_clock(time.time_ns())]

    def _give(self, made: Iterable[_Made]) -> None:
        """Publish final bars, then running ones; hand to the store what it has to make."""
        decided: list[Decided] = []
        placed: list[Placed] = []
        first: set[BarKey] = set()
        for one, offset, partition in made:
            if isinstance(one, Recompute):
                placed.append(Placed(one, partition))
                continue
            key = (one.ticker, one.period_seconds, one.start_ns)
            if not one.revision:
                first.add(key)
            elif key not in first and (self._store.is_waiting(key) or not self._outlet.has_read(key)):
                # Said before the last restart, so the table alone knows under which revision; nothing overtakes it.
                placed.append(Placed(self._recompute(key), self._place(one.ticker)))
                continue
            message = self._message(one)
            if message is not None:
                decided.append(Decided(message, offset, partition))
        self._outlet.publish(decided)
        self._store.ask(placed)
        self._outlet.show(m for m in map(self._message, self._book.running()) if m is not None)

    def _recompute(self, key: BarKey) -> Recompute:
        state = self._book.tickers[key[0]]
        return Recompute(*key, state.trade_offset, state.gap_offset)

    def _message(self, bar: MadeBar) -> market_pb2.OHLC | None:
        try:
            return message_of_bar(bar)
        except ValueError as error:
            self._counters.add("bars.unfit")
            _LOG.error("bar_left_out", ticker=bar.ticker, start_ns=bar.start_ns, error=str(error))
            return None

    def _watch_clock(self) -> None:
        """Of feeds that have stopped no record comes that would end their last bars."""
        while not self._closing.wait(_CLOCK_S):
            with self._lock:
                if not self._is_whole:
                    return
                self._is_whole = False
                try:
                    self._give(self._on_clock())
                    self._is_whole = True
                except Exception:  # noqa: BLE001 - whatever it was, the book has given away what nobody has got
                    _LOG.exception("bars_not_given")
            if not self._is_whole and self._query is not None:
                # No record may come for long that would meet the failure: the query begins anew from the last state.
                self._query.stop()

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        # Bars that the store publishes from here on are found behind these offsets.
        bar_offsets = dict(enumerate(self._log.end_offsets(self._bars)))
        pending = [(*one.bucket, one.partition) for one in self._store.waiting()]
        size = self._states.save(
            BarsState(
                self._identity.cluster_id,
                self._identity.topic_id,
                dict(self._reached),
                bar_offsets,
                self._book.encode(),
                pending,
                {t: p for t, p in self._places.items() if p != _home(t, self._reached)},
            )
        )
        self._counters.set("bars.state.bytes", size)
        tickers = self._book.tickers.values()
        self._counters.set("bars.tickers", len(tickers))
        self._counters.set("bars.repeats", sum(ticker.repeats for ticker in tickers))
        self._counters.set("bars.holes_forgotten", sum(ticker.numbers.forgotten for ticker in tickers))

    def _restored(self) -> BarsState | None:
        state = self._states.load_of(self._identity)
        if state is None:
            return None
        try:
            self._book.restore(state.book)
        except StorageError as error:
            self._counters.add("bars.state.refused")
            _LOG.error("bars_state_refused", error=str(error))
            return None
        self._places = {t: state.places.get(t, _home(t, state.tick_offsets)) for t in self._book.tickers}
        return state

    def _rebuild_offsets(self) -> dict[int, int]:
        """Without a state: as far back in the log as the settings say."""
        since_ns = time.time_ns() - self._settings.bars_rebuild_hours * 3600 * NANOSECONDS
        return offsets_since(self._log, self._ticks, since_ns)

    def _bar_starts(self, state: BarsState | None, open_lake: Callable[[], BarLake]) -> dict[int, int]:
        """From where this job's own bars have to be read: the table must have all that lies before."""
        identity = self._log.identity(self._bars)
        if state is not None:
            starts = dict(state.bar_offsets)
        else:
            since_ns = time.time_ns() - (self._settings.bars_rebuild_hours * 3600 + 60) * NANOSECONDS
            starts = offsets_since(self._log, self._bars, since_ns)
        lake = open_lake()
        try:
            source = {"cluster_id": identity.cluster_id, "topic_id": identity.topic_id}
            stored = lake.offsets(TICK_BARS_TABLE, job=HISTORY_JOB, **source).end_offsets
            passed = lake.log_reached(**source)
        finally:
            lake.close()
        return {p: min(offset, max(stored.get(p, 0), passed.get(p, 0))) for p, offset in starts.items()}


def _home(ticker: str, offsets: Mapping[int, int]) -> int:
    """Return where a ticker's records belong in a topic that has these partitions."""
    return partition_of(ticker.encode(), len(offsets))


def _placed(one: tuple[str, int, int, int, int, int]) -> Placed:
    return Placed(Recompute(*one[:5]), one[5])
