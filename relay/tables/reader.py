"""Reads of the tables by PyIceberg: bounds are pushed down, so that only matching files are opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from relay.protocol.ranges import Range, intersect
from relay.protocol.v1 import market_pb2
from relay.tables.catalog import TableSettings, open_table, storage_errors
from relay.tables.catalog_file import FollowedCatalog
from relay.tables.filters import (
    bars_filter,
    bars_of_filter,
    coverage_filter,
    jobs_filter,
    markets_filter,
    tickers_filter,
    ticks_filter,
    union,
)
from relay.tables.markets import market_of_row
from relay.tables.merge import latest_tick_bars, series_spans
from relay.tables.offsets import HISTORY_JOB, SourceOffsets, covered_offsets, stored_offsets
from relay.tables.port import CoverageRow
from relay.tables.schema import (
    COVERAGE_TABLE,
    GAPS_COLUMNS,
    GAPS_TABLE,
    OHLC_COLUMNS,
    OHLC_KEY,
    OHLC_TABLE,
    QUARANTINE_TABLE,
    STORED_TIME,
    SYMBOL_CHANGES_TABLE,
    SYMBOL_COLUMNS,
    SYMBOL_TABLE,
    TICK_BARS_COLUMNS,
    TICK_BARS_TABLE,
    TICKS_COLUMNS,
    TICKS_TABLE,
    fitted,
)

__all__ = ["LakeTables", "open_tables"]


def open_tables(settings: TableSettings) -> LakeTables:
    """Open the tables for reading; they need not exist yet."""
    return LakeTables(FollowedCatalog(settings))


class LakeTables:
    """A :class:`~relay.tables.port.TableReader` over an Iceberg catalog. One thread at a time."""

    def __init__(self, catalog: FollowedCatalog) -> None:
        self._catalog = catalog

    @property
    def catalog_changes(self) -> int:
        """See the port."""
        return self._catalog.changes

    def coverage(self, ticker: str, period_seconds: int, *, within: Range) -> Sequence[Range]:
        """See the port."""
        with storage_errors("reading market.coverage"):
            table = open_table(self._catalog.current(), COVERAGE_TABLE)
            if table is None or not within:
                return []
            found = table.scan(
                row_filter=coverage_filter(ticker, period_seconds, within),
                selected_fields=("covered",),
            ).to_arrow()
        return intersect(within, (r for cell in found["covered"].to_pylist() for r in _ranges(cell)))

    def job_coverage(self, job_ids: Sequence[str]) -> Sequence[CoverageRow]:
        """See the port."""
        with storage_errors("reading market.coverage"):
            table = open_table(self._catalog.current(), COVERAGE_TABLE)
            if table is None or not job_ids:
                return []
            found = table.scan(row_filter=jobs_filter(job_ids)).to_arrow()
        return [_coverage_row(row) for row in found.to_pylist()]

    def log_reached(self, cluster_id: str, topic_id: str) -> Mapping[int, int]:
        """See the port.

        Quarantine is committed after coverage, so what it has reached is covered, too; and the bars made from ticks,
        which come between batches and make no coverage rows, say with each commit what is.
        """
        reached = SourceOffsets(HISTORY_JOB, cluster_id, topic_id)
        with storage_errors("reading how far the tables have come"):
            for name in (QUARANTINE_TABLE, COVERAGE_TABLE):
                table = open_table(self._catalog.current(), name)
                if table is not None:
                    stored = stored_offsets(table, job=HISTORY_JOB, cluster_id=cluster_id, topic_id=topic_id)
                    reached = reached.advanced(stored.end_offsets)
            table = open_table(self._catalog.current(), TICK_BARS_TABLE)
            if table is not None:
                covered = covered_offsets(table, job=HISTORY_JOB, cluster_id=cluster_id, topic_id=topic_id)
                reached = reached.advanced(covered.end_offsets)
        return reached.end_offsets

    def bars_snapshot_id(self) -> int:
        """See the port."""
        with storage_errors("reading market.ohlc"):
            table = open_table(self._catalog.current(), OHLC_TABLE)
        snapshot = table.current_snapshot() if table is not None else None
        return snapshot.snapshot_id if snapshot is not None else 0

    def count_bars(self, ticker: str, period_seconds: int, *, within: Range) -> int:
        """See the port."""
        return len(self._starts(ticker, period_seconds, within))

    def nth_bar_start_ns(self, ticker: str, period_seconds: int, *, within: Range, n: int) -> int | None:
        """See the port."""
        starts = self._starts(ticker, period_seconds, within)
        if len(starts) < n:
            return None
        ordered = starts.take(pc.array_sort_indices(starts))
        return int(ordered[n - 1].cast(pa.int64()).as_py()) * 1000

    def read_bars(
        self,
        ticker: str,
        period_seconds: int,
        *,
        within: Range,
        limit: int | None = None,
        snapshot_id: int | None = None,
    ) -> pa.Table:
        """See the port."""
        with storage_errors("reading market.ohlc"):
            table = open_table(self._catalog.current(), OHLC_TABLE)
            if table is None or not within:
                return OHLC_COLUMNS.empty_table()
            bars = table.scan(
                row_filter=bars_filter(ticker, period_seconds, within),
                snapshot_id=_at_snapshot(table, snapshot_id),
            ).to_arrow()
        bars = fitted(bars, OHLC_COLUMNS).sort_by("start")
        return bars if limit is None else bars.slice(0, limit)

    def read_bars_since(
        self,
        ticker: str,
        period_seconds: int,
        *,
        within: Range,
        limit: int | None = None,
        snapshot_ids: Sequence[int] = (),
    ) -> tuple[pa.Table, int, Sequence[int]]:
        """Read bars at the head, which should descend from every snapshot that was told.

        Returns:
            Bars ascending by start; the head's snapshot id (0 without one); told snapshots that are not among its
            ancestors: not visible yet, or expired.
        """
        with storage_errors("reading market.ohlc"):
            table = open_table(self._catalog.current(), OHLC_TABLE)
            head = table.current_snapshot() if table is not None else None
            if table is None or head is None:
                return OHLC_COLUMNS.empty_table(), 0, list(snapshot_ids)
            known = _ancestry(table, head.snapshot_id)
            bars = table.scan(
                row_filter=bars_filter(ticker, period_seconds, within), snapshot_id=head.snapshot_id
            ).to_arrow()
        bars = _ascending(fitted(bars, OHLC_COLUMNS))
        bars = bars if limit is None else bars.slice(0, limit)
        return bars, head.snapshot_id, [told for told in snapshot_ids if told not in known]

    def read_ticks(self, ticker: str, *, within: Range, limit: int | None = None) -> pa.Table:
        """Return stored ticks with an exchange time in a range, ascending by time and id."""
        ordered = self.read_ticks_of([ticker], within=within)
        return ordered if limit is None else ordered.slice(0, limit)

    def read_ticks_of(self, tickers: Sequence[str], *, within: Range) -> pa.Table:
        """Return the stored ticks of some tickers in one scan, ascending by ticker, time and id."""
        with storage_errors("reading market.ticks"):
            table = open_table(self._catalog.current(), TICKS_TABLE)
            if table is None or not within or not tickers:
                return TICKS_COLUMNS.empty_table()
            ticks = table.scan(row_filter=ticks_filter(tickers, within)).to_arrow()
        order = [(name, "ascending") for name in ("ticker", "time_ns", "trade_number")]
        return fitted(ticks, TICKS_COLUMNS).sort_by(order)

    def read_tick_numbers(self, ticker: str, *, within: Range) -> pa.ChunkedArray:
        """Return the trade numbers (int64, ascending) of the ticks that :meth:`read_ticks` returns; no other column."""
        name = "trade_number"
        with storage_errors("reading market.ticks"):
            table = open_table(self._catalog.current(), TICKS_TABLE)
            if table is None or not within:
                return TICKS_COLUMNS.empty_table()[name]
            numbers = table.scan(row_filter=ticks_filter([ticker], within), selected_fields=(name,)).to_arrow()
        return numbers.sort_by(name)[name]

    def read_gaps(self, ticker: str) -> pa.Table:
        """Return everything that was said about the gaps of a ticker, in the order it was said."""
        return self.read_gaps_of([ticker])

    def read_gaps_of(self, tickers: Sequence[str]) -> pa.Table:
        """Return everything that was said about the gaps of some tickers, each ticker's in the order it was said."""
        with storage_errors("reading market.gaps"):
            table = open_table(self._catalog.current(), GAPS_TABLE)
            if table is None or not tickers:
                return GAPS_COLUMNS.empty_table()
            gaps = table.scan(row_filter=tickers_filter(tickers)).to_arrow()
        return fitted(gaps, GAPS_COLUMNS).sort_by([("log_partition", "ascending"), ("log_offset", "ascending")])

    def last_tick_bars(self, ticker: str, period_seconds: int, starts_ns: Sequence[int]) -> pa.Table:
        """Return the last revision of the bars made from ticks that have these starts, ascending by start.

        Args:
            ticker, period_seconds: of the bars.
            starts_ns: nanoseconds since the epoch; a start that was never made has no row.

        Returns:
            Rows in the columns of ``market.tick_bars``. Offsets that :meth:`offsets` said of that table before this
            call are in the answer whole; what is behind them the log holds.
        """
        keys = pa.table(
            {
                "ticker": pa.repeat(pa.scalar(ticker), len(starts_ns)),
                "period_seconds": pa.repeat(pa.scalar(period_seconds, pa.int32()), len(starts_ns)),
                "start": pa.array([start_ns // 1000 for start_ns in starts_ns], pa.int64()).cast(STORED_TIME),
            }
        )
        return self.last_tick_bars_of(keys)

    def last_tick_bars_of(self, keys: pa.Table) -> pa.Table:
        """Return the same as :meth:`last_tick_bars` for bars of many tickers and periods, in one scan, sorted by key.

        Args:
            keys: columns ticker, period_seconds (int32) and start (as stored).
        """
        keys = fitted(keys, pa.schema([TICK_BARS_COLUMNS.field(name) for name in OHLC_KEY])).sort_by(
            [(name, "ascending") for name in OHLC_KEY]
        )
        with storage_errors("reading market.tick_bars"):
            table = open_table(self._catalog.current(), TICK_BARS_TABLE)
            if table is None or len(keys) == 0:
                return TICK_BARS_COLUMNS.empty_table()
            matching = union(bars_of_filter(*span) for span in series_spans(keys))
            found = fitted(table.scan(row_filter=matching).to_arrow(), TICK_BARS_COLUMNS)
        wanted = found.join(keys, keys=list(OHLC_KEY), join_type="left semi")
        return latest_tick_bars(fitted(wanted, TICK_BARS_COLUMNS))

    def tick_bars_within(self, ticker: str, period_seconds: int, *, within: Range) -> pa.Table:
        """Return the last revision of each bar made from ticks, of a ticker and period, that starts in a range."""
        with storage_errors("reading market.tick_bars"):
            table = open_table(self._catalog.current(), TICK_BARS_TABLE)
            if table is None:
                return TICK_BARS_COLUMNS.empty_table()
            found = table.scan(row_filter=bars_of_filter([ticker], period_seconds, within)).to_arrow()
        return latest_tick_bars(fitted(found, TICK_BARS_COLUMNS))

    def offsets(self, name: str, *, job: str, cluster_id: str, topic_id: str) -> SourceOffsets:
        """Return up to where of a topic a job has stored a table; empty when it has stored nothing of this log.

        Args:
            name: of the table.
            job: that writes it (:data:`~relay.tables.offsets.HISTORY_JOB` for bars made from ticks).
            cluster_id, topic_id: which log the offsets are of.
        """
        with storage_errors(f"reading how far market.{name} has come"):
            table = open_table(self._catalog.current(), name)
            if table is None:
                return SourceOffsets(job, cluster_id, topic_id)
            return stored_offsets(table, job=job, cluster_id=cluster_id, topic_id=topic_id)

    def close(self) -> None:
        """Let go of the catalog's connections."""
        self._catalog.close()

    def markets(
        self, *, ticker: str = "", exchange: str = "", text: str = "", limit: int = 100
    ) -> tuple[Sequence[market_pb2.Market], int]:
        """See the port."""
        with storage_errors("reading market.symbol_metadata"):
            table = open_table(self._catalog.current(), SYMBOL_TABLE)
            snapshot = table.current_snapshot() if table is not None else None
            if table is None or snapshot is None:
                return [], 0
            found = table.scan(row_filter=markets_filter(ticker, exchange)).to_arrow()
        found = fitted(found, SYMBOL_COLUMNS).sort_by("ticker")
        if text:
            found = found.filter(pc.match_substring(found["ticker"], text, ignore_case=True))
        return [market_of_row(row) for row in found.slice(0, limit).to_pylist()], snapshot.snapshot_id

    def market_changes(self, ticker: str) -> Sequence[market_pb2.Market]:
        """Return what was known of a market, each state since its ``valid_from``, oldest first."""
        with storage_errors("reading market.symbol_changes"):
            table = open_table(self._catalog.current(), SYMBOL_CHANGES_TABLE)
            if table is None:
                return []
            found = table.scan(row_filter=tickers_filter([ticker])).to_arrow()
        order = ("valid_from_ns", "updated_at_ns", "log_partition", "log_offset")
        ordered = fitted(found, SYMBOL_COLUMNS).sort_by([(name, "ascending") for name in order])
        return [market_of_row(row) for row in ordered.to_pylist()]

    def _starts(self, ticker: str, period_seconds: int, within: Range) -> pa.Array:
        with storage_errors("reading market.ohlc"):
            table = open_table(self._catalog.current(), OHLC_TABLE)
            if table is None or not within:
                return pa.array([], pa.timestamp("us", tz="UTC"))
            found = table.scan(
                row_filter=bars_filter(ticker, period_seconds, within), selected_fields=("start",)
            ).to_arrow()
        return found["start"].combine_chunks()


def _at_snapshot(table: Table, wanted: int | None) -> int | None:
    """The head when it descends from the wanted snapshot (ids are random: ancestry counts), else the wanted one."""
    head = table.current_snapshot()
    if not wanted or head is None or head.snapshot_id == wanted:
        return None
    parent_of = {s.snapshot_id: s.parent_snapshot_id for s in table.metadata.snapshots}
    cursor: int | None = head.snapshot_id
    while cursor is not None:
        if cursor == wanted:
            return None
        cursor = parent_of.get(cursor)
    return wanted if wanted in parent_of else None


def _ancestry(table: Table, snapshot_id: int) -> set[int]:
    parent_of = {s.snapshot_id: s.parent_snapshot_id for s in table.metadata.snapshots}
    found: set[int] = set()
    cursor: int | None = snapshot_id
    while cursor is not None:
        found.add(cursor)
        cursor = parent_of.get(cursor)
    return found


def _ascending(bars: pa.Table) -> pa.Table:
    """Sort by start, unless it is so already, as within one sorted file."""
    starts = bars["start"]
    if len(bars) < 2 or pc.all(pc.less(starts.slice(0, len(bars) - 1), starts.slice(1))).as_py():
        return bars
    return bars.sort_by("start")


def _ranges(cell: list[dict[str, int]]) -> list[Range]:
    return [Range(item["start_ns"], item["end_ns"]) for item in cell]


def _coverage_row(row: dict[str, object]) -> CoverageRow:
    picked = {name: row[name] for name in CoverageRow.__slots__ if name != "covered"}
    picked["error_code"] = picked["error_code"] or ""
    picked["error_message"] = picked["error_message"] or ""
    return CoverageRow(covered=tuple(_ranges(row["covered"])), **picked)  # type: ignore[arg-type]
