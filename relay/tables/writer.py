"""Small commits from one process by PyIceberg: no job, no executor, no shuffle (numbers: docs/performance.md).

Every commit carries the log offsets that the table has reached. A conflict with another committer (maintenance)
means: do the whole replacement again on the new head. Offsets that somebody else has moved mean that a second
writer is at work: nothing is committed then, because the same records would be there twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import Table

from relay.errors import RetryableError
from relay.protocol.codes import ErrorCode
from relay.tables.catalog import TableSettings, ensure_tables, open_catalog, open_table, storage_errors
from relay.tables.filters import bars_of_filter, exchanges_filter, union
from relay.tables.known_ticks import TICKS_KEY, KnownTicks, first_rows
from relay.tables.listings import merge_listings
from relay.tables.merge import contradictions, latest_bars, series_spans
from relay.tables.offsets import SourceOffsets, covered_offsets, stored_offsets
from relay.tables.schema import OHLC_KEY, OHLC_TABLE, SYMBOL_TABLE, TABLE_COLUMNS, TICKS_TABLE, fitted
from relay.tables.transaction import LeanTransaction

__all__ = ["IcebergTables", "open_writable_tables"]

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
_COMMIT_TRIES_MAX = 10


def open_writable_tables(settings: TableSettings) -> IcebergTables:
    """Open the catalog for writing and create the tables that are missing."""
    catalog = open_catalog(settings)
    with storage_errors("creating the tables"):
        ensure_tables(catalog)
    return IcebergTables(catalog)


class IcebergTables:
    """Writes the tables by PyIceberg. The one writer of each table; one thread."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._ticks = KnownTicks()

    def offsets(self, name: str, *, job: str, cluster_id: str, topic_id: str) -> SourceOffsets:
        """Return how far a table has come in a topic."""
        return stored_offsets(self._table(name), job=job, cluster_id=cluster_id, topic_id=topic_id)

    def covered(self, name: str, *, job: str, cluster_id: str, topic_id: str) -> SourceOffsets:
        """Return before which offsets of a topic every batch is covered, as a table's commits say."""
        return covered_offsets(self._table(name), job=job, cluster_id=cluster_id, topic_id=topic_id)

    def merge_bars(
        self,
        rows: pa.Table,
        *,
        reached: SourceOffsets,
        batch_id: int,
        known: SourceOffsets | None = None,
        on_contradicted: Callable[[pa.Table], None] | None = None,
    ) -> int | None:
        """Put bars into ``market.ohlc``: of one key the row stays that :mod:`relay.tables.merge` says.

        Args:
            rows: bars, in the table's columns; of one key there may be several.
            reached: offsets to keep in the commit.
            batch_id: information only.
            known: offsets that the table must still have; None to commit whatever it has.
            on_contradicted: is given what :func:`~relay.tables.merge.contradictions` finds, after the commit, if that
                is anything.

        Returns:
            The snapshot id of the commit; None when nothing changed.

        Raises:
            RetryableError: the table is away, or another writer has moved its offsets.
        """
        rows = fitted(rows, TABLE_COLUMNS[OHLC_TABLE])
        latest = latest_bars(rows)
        contradicted: list[pa.Table] = []

        def merge(existing: pa.Table) -> pa.Table:
            contradicted[:] = [contradictions(existing, rows)] if on_contradicted is not None else []
            return latest_bars(pa.concat_tables([existing, latest]))

        snapshot_id = self._replace(
            OHLC_TABLE,
            merge,
            matching=union(bars_of_filter(*span) for span in series_spans(latest)),
            key=OHLC_KEY,
            kept=reached.summary(batch_id=batch_id),
            fence=_Fence(known, reached),
        )
        if on_contradicted is not None and contradicted and len(contradicted[0]):
            on_contradicted(contradicted[0])
        return snapshot_id

    def market_rows(self, exchanges: Iterable[str]) -> pa.Table:
        """Return the present rows of ``market.symbol_metadata`` of some exchanges."""
        with storage_errors(f"reading market.{SYMBOL_TABLE}"):
            found = self._table(SYMBOL_TABLE).scan(row_filter=exchanges_filter(exchanges)).to_arrow()
        return fitted(found, TABLE_COLUMNS[SYMBOL_TABLE])

    def merge_markets(
        self, rows: pa.Table, *, reached: SourceOffsets, batch_id: int, known: SourceOffsets | None = None
    ) -> int | None:
        """Put markets into ``market.symbol_metadata``, as :mod:`relay.tables.listings` says."""
        rows = fitted(rows, TABLE_COLUMNS[SYMBOL_TABLE])
        return self._replace(
            SYMBOL_TABLE,
            lambda existing: merge_listings(existing, rows).present,
            matching=exchanges_filter(rows["exchange"].to_pylist()),
            key=("ticker",),
            kept=reached.summary(batch_id=batch_id),
            fence=_Fence(known, reached),
        )

    def append(
        self,
        name: str,
        rows: pa.Table,
        *,
        reached: SourceOffsets,
        batch_id: int,
        known: SourceOffsets | None = None,
        covered: SourceOffsets | None = None,
    ) -> int:
        """Append rows; returns the snapshot id. Arguments as for :meth:`merge_bars`, and of ``summary``."""
        columns, kept = TABLE_COLUMNS[name], reached.summary(batch_id=batch_id, covered=covered)
        fence = _Fence(known, reached)

        def commit(table: Table) -> None:
            if fence.is_passed(table):
                return
            with LeanTransaction(table) as change:
                change.append(rows.cast(columns), snapshot_properties=kept)

        return self._commit(name, commit)

    def append_ticks(
        self, rows: pa.Table, *, reached: SourceOffsets, batch_id: int, known: SourceOffsets | None = None
    ) -> int:
        """Append the ticks that ``market.ticks`` does not hold yet; returns how many.

        Arguments and errors as for :meth:`merge_bars`.
        """
        rows = first_rows(rows, key=TICKS_KEY)
        fence, kept, added = _Fence(known, reached), reached.summary(batch_id=batch_id), 0

        def commit(table: Table) -> None:
            nonlocal added
            if fence.is_passed(table):
                return
            fresh = self._ticks.unknown(table, rows)
            added = len(fresh)
            with LeanTransaction(table) as change:
                change.append(fresh.cast(TABLE_COLUMNS[TICKS_TABLE]), snapshot_properties=kept)

        self._commit(TICKS_TABLE, commit)
        self._ticks.stored(rows)
        return added

    def _replace(
        self,
        name: str,
        merge: Callable[[pa.Table], pa.Table],
        *,
        matching: BooleanExpression,
        key: tuple[str, ...],
        kept: Mapping[str, str],
        fence: _Fence,
    ) -> int | None:
        """Replace the rows that match a filter by what ``merge`` makes of them, sorted by key."""
        columns = TABLE_COLUMNS[name]
        changed = False

        def commit(table: Table) -> None:
            nonlocal changed
            if fence.is_passed(table):
                return
            existing = fitted(table.scan(row_filter=matching).to_arrow(), columns)
            merged = merge(existing)
            changed = not _same_rows(existing, merged, key)
            if not changed:
                return
            with LeanTransaction(table) as change:
                if len(existing) == 0:
                    change.append(merged, snapshot_properties=dict(kept))
                else:
                    change.overwrite(merged, overwrite_filter=matching, snapshot_properties=dict(kept))

        snapshot_id = self._commit(name, commit)
        return snapshot_id if changed else None

    def _commit(self, name: str, commit: Callable[[Table], None]) -> int:
        for _ in range(_COMMIT_TRIES_MAX):
            table = self._table(name)
            with storage_errors(f"committing to market.{name}"):
                try:
                    commit(table)
                except (CommitFailedException, ValidationException) as error:
                    _LOG.info("commit_lost_a_race table=%s error=%s", name, error)
                    continue
                snapshot = table.current_snapshot()
            return snapshot.snapshot_id if snapshot is not None else 0
        raise RetryableError(
            f"market.{name}: {_COMMIT_TRIES_MAX} commits in a row lost against another committer; "
            "is a second writer running?",
            code=ErrorCode.STORAGE,
        )

    def _table(self, name: str) -> Table:
        with storage_errors(f"opening market.{name}"):
            table = open_table(self._catalog, name)
        if table is None:
            raise RetryableError(f"market.{name} does not exist; was it dropped?", code=ErrorCode.STORAGE)
        return table


@dataclass(frozen=True, slots=True)
class _Fence:
    """Tells a commit of our own that landed although it was reported lost from another writer's."""

    known: SourceOffsets | None
    reached: SourceOffsets

    def is_passed(self, table: Table) -> bool:
        """Return whether the table has what is to be committed already.

        Raises:
            RetryableError: somebody else has moved the table's offsets.
        """
        known = self.known
        if known is None:
            return False
        stored = stored_offsets(table, job=known.job, cluster_id=known.cluster_id, topic_id=known.topic_id)
        if stored == known:
            return False
        if stored == self.reached:
            return True
        raise RetryableError(
            f"{'.'.join(table.name())}: expected log offsets {dict(known.end_offsets)}, got "
            f"{dict(stored.end_offsets)}: another {known.job} job writes the same tables; stop one of them",
            code=ErrorCode.STORAGE,
        )


def _same_rows(existing: pa.Table, merged: pa.Table, key: tuple[str, ...]) -> bool:
    if len(existing) != len(merged):
        return False
    if len(existing) == 0:
        return True
    ordered = existing.sort_by([(name, "ascending") for name in key])
    return bool(ordered.combine_chunks().equals(merged.combine_chunks()))
