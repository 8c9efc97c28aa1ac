"""Commits one micro-batch: bars, then coverage, then the rest; each table trimmed by its own stored offsets.

::

    records ─► trim by tick_bars'     ─► append       first: a revision that anybody can see in ohlc is known
            ─► trim by ohlc's offsets ─► merge bars ─┐ covered implies visible:
            ─► trim by coverage's     ─► append ─────┘ coverage is committed after the bars
            ─► trim by changes'       ─► append       first: what holds now has its change
            ─► trim by symbols'       ─► merge markets
            ─► trim by quarantine's   ─► append
    after all commits are visible: hints to the manager
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from relay.eventlog import LogIdentity
from relay.observability import Counters
from relay.tables.listings import merge_listings
from relay.tables.offsets import HISTORY_JOB, SourceOffsets
from relay.tables.schema import (
    COVERAGE_TABLE,
    OHLC_TABLE,
    QUARANTINE_TABLE,
    SYMBOL_CHANGES_TABLE,
    SYMBOL_TABLE,
    TICK_BARS_TABLE,
)
from relay.tables.writer import IcebergTables
from spark_jobs.jobs.history.batch import MicroBatch
from spark_jobs.jobs.history.writers import BarsWriter

__all__ = ["Committed", "HistoryCommitter"]

JOB = HISTORY_JOB
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Committed:
    """What a micro-batch changed.

    Attributes:
        jobs: (job_id, attempt) that got coverage rows.
        exchanges: exchanges whose markets changed.
        markets_changed: count of markets whose facts changed.
        symbol_snapshot_id: snapshot of ``market.symbol_metadata``, 0 when it did not change.
    """

    jobs: frozenset[tuple[str, int]] = frozenset()
    exchanges: frozenset[str] = frozenset()
    markets_changed: int = 0
    symbol_snapshot_id: int = 0


@dataclass(slots=True)
class HistoryCommitter:
    """Applies micro-batches in order.

    Args:
        tables: small commits.
        bars: writes bars; by PyIceberg or by Spark.
        topics: topic name → which log it is; the first is that of bars and coverage.
        counters: rows, replays and quarantined records are counted.
    """

    tables: IcebergTables
    topics: Mapping[str, LogIdentity]
    counters: Counters
    _reached: dict[tuple[str, str], SourceOffsets] = field(default_factory=dict)
    _covered: dict[str, SourceOffsets] = field(default_factory=dict)

    def start_offsets(self) -> dict[str, dict[int, int]]:
        """Return from where to read each topic: the least that any of its tables has stored."""
        starts: dict[str, dict[int, int]] = {}
        for topic, identity in self.topics.items():
            stored = [self._complete(name, topic).end_offsets for name in self._table_names(topic)]
            starts[topic] = {p: min(ends.get(p, 0) for ends in stored) for p in range(identity.partitions)}
        return starts

    def commit(self, batch: MicroBatch, bars: BarsWriter) -> Committed:
        """Commit a micro-batch; the tables skip what they have already."""
        history, symbols = self.topics
        decoded = batch.decoded()
        started = time.monotonic_ns()
        self._append_tick_bars(history, batch)
        kept = self._offsets(OHLC_TABLE, history)
        reached = kept.advanced(batch.end_offsets(history))
        if bars.merge(batch, history, kept, reached):
            self._reached[OHLC_TABLE, history] = reached
        coverage = self._fresh(COVERAGE_TABLE, history, decoded.coverage)
        self._append(COVERAGE_TABLE, history, coverage, batch)
        markets = self._fresh(SYMBOL_TABLE, symbols, decoded.markets)
        changed, snapshot_id = self._merge_markets(symbols, batch, markets) if len(markets) else (0, 0)
        for topic in self.topics:
            found = decoded.quarantine.filter(pc.equal(decoded.quarantine["topic"], topic))
            fresh = self._fresh(QUARANTINE_TABLE, topic, found, names=("partition", "offset"))
            self._append(QUARANTINE_TABLE, topic, fresh, batch)
            self.counters.add("history.records.quarantined", len(fresh))
        self.counters.add("history.batches.committed")
        self.counters.add("history.coverage.rows", len(coverage))
        self.counters.set("history.commit.last_ms", (time.monotonic_ns() - started) // 1_000_000)
        # A replayed batch sends its hints again: the first ones may have died with the job.
        jobs = zip(decoded.coverage["job_id"].to_pylist(), decoded.coverage["attempt"].to_pylist(), strict=True)
        exchanges = frozenset(markets["exchange"].to_pylist()) if snapshot_id else frozenset()
        return Committed(frozenset(jobs), exchanges, changed, snapshot_id)

    def _table_names(self, topic: str) -> Iterable[str]:
        # Quarantine is left out: its offsets move only with poison, and appending is trimmed all the same.
        # So are bars made from ticks: they are committed first, so what the others have reached lies in their table.
        return (OHLC_TABLE, COVERAGE_TABLE) if topic == next(iter(self.topics)) else (SYMBOL_TABLE,)

    def _complete(self, name: str, topic: str) -> SourceOffsets:
        """Offsets before which a table holds all that it should; its own stand still while nothing comes for it."""
        own = self._offsets(name, topic)
        if name != COVERAGE_TABLE:
            return own
        if topic not in self._covered:
            self._covered[topic] = self.tables.covered(
                TICK_BARS_TABLE, job=JOB, cluster_id=own.cluster_id, topic_id=own.topic_id
            )
        return own.advanced(self._covered[topic].end_offsets)

    def _merge_markets(self, topic: str, batch: MicroBatch, markets: pa.Table) -> tuple[int, int]:
        """Append what has changed, then put what holds now; return how many have changed and the snapshot id.

        The changes come first: a present row that can be seen has its change. A crash in between leaves them to be
        found by the same comparison again, and trimmed by what their table has stored.
        """
        found = merge_listings(self.tables.market_rows(markets["exchange"].to_pylist()), markets)
        for listing_id in found.doubted:
            self.counters.add("history.listings.doubted")
            _LOG.error("listing_doubted listing_id=%s: it lacks most markets, so none is delisted", listing_id)
        changes = self._fresh(SYMBOL_CHANGES_TABLE, topic, found.changes)
        self._append(SYMBOL_CHANGES_TABLE, topic, changes, batch)
        self.counters.add("history.markets.changed", len(changes))
        known = self._offsets(SYMBOL_TABLE, topic)
        reached = known.advanced(batch.end_offsets(topic))
        snapshot_id = self.tables.merge_markets(markets, reached=reached, batch_id=batch.batch_id, known=known)
        if snapshot_id is not None:
            self._reached[SYMBOL_TABLE, topic] = reached
        return len(set(found.changes["ticker"].to_pylist())), snapshot_id or 0

    def _append_tick_bars(self, topic: str, batch: MicroBatch) -> None:
        """Append each revision of the bars made from ticks, and say up to where all is covered when that is done.

        All batches before this one are committed whole, so one that brings nothing for coverage is covered already;
        and nothing for quarantine, because a start goes by these offsets and must not leave out what was no good.
        """
        decoded = batch.decoded()
        rows = self._fresh(TICK_BARS_TABLE, topic, decoded.tick_bars)
        covered = self._complete(COVERAGE_TABLE, topic)
        if len(decoded.coverage) == 0 and len(decoded.quarantine) == 0:
            covered = covered.advanced(batch.end_offsets(topic))
        self._append(TICK_BARS_TABLE, topic, rows, batch, covered=covered)
        self._covered[topic] = covered
        self.counters.add("history.tick_bars.rows", len(rows))

    def _offsets(self, name: str, topic: str) -> SourceOffsets:
        if (name, topic) not in self._reached:
            identity = self.topics[topic]
            self._reached[name, topic] = self.tables.offsets(
                name, job=JOB, cluster_id=identity.cluster_id, topic_id=identity.topic_id
            )
        return self._reached[name, topic]

    def _fresh(
        self, name: str, topic: str, rows: pa.Table, *, names: tuple[str, str] = ("log_partition", "log_offset")
    ) -> pa.Table:
        """Rows at or after the table's stored offsets."""
        partition, offset = names
        fresh = self._offsets(name, topic).fresh(rows, partition=partition, offset=offset)
        if len(fresh) < len(rows):
            self.counters.add(f"history.{name}.replayed_rows_skipped", len(rows) - len(fresh))
        return fresh

    def _append(
        self, name: str, topic: str, rows: pa.Table, batch: MicroBatch, *, covered: SourceOffsets | None = None
    ) -> None:
        if len(rows) == 0:
            return
        known = self._offsets(name, topic)
        reached = known.advanced(batch.end_offsets(topic))
        self.tables.append(name, rows, reached=reached, batch_id=batch.batch_id, known=known, covered=covered)
        self._reached[name, topic] = reached
