"""One behaviour over the Iceberg reader and its in-memory twin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from relay.protocol.ranges import Range
from relay.tables.catalog import TableSettings
from relay.tables.offsets import SourceOffsets
from relay.tables.port import CoverageRow, TableReader
from relay.tables.reader import open_tables
from relay.tables.schema import COVERAGE_COLUMNS, COVERAGE_TABLE, OHLC_COLUMNS
from relay.tables.writer import open_writable_tables
from spark_jobs.manager.engine.model import Job, JobKind, JobState
from spark_jobs.manager.lookups import look_at_jobs
from tests.support.tables import MemoryTables, coverage_row

BTC = "BTC/USDT.BINANCE"
MINUTE = 60 * 10**9
START = 1_700_000_040 * 10**9
Show = Callable[[CoverageRow], None]


def minutes(first: int, last: int) -> Range:
    return Range(START + first * MINUTE, START + last * MINUTE)


def lake(path: Path) -> tuple[TableReader, Show]:
    settings = TableSettings(f"sqlite:///{path}/catalog.db", f"file://{path}/warehouse")
    writer = open_writable_tables(settings)
    offsets = iter(range(1, 1000))

    def show(row: CoverageRow) -> None:
        offset = next(offsets)
        reached = SourceOffsets("history", "cluster", "topic", {0: offset})
        starts_ns = [t for r in row.covered for t in range(r.start_ns, r.end_ns, MINUTE)]
        writer.merge_bars(_bars(starts_ns, offset), reached=reached, batch_id=offset)
        writer.append(COVERAGE_TABLE, _coverage(row, offset), reached=reached, batch_id=offset)

    return open_tables(settings), show


@pytest.fixture(params=["memory", "iceberg"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[TableReader, Show]:
    if request.param == "iceberg":
        return lake(tmp_path)
    memory = MemoryTables()
    return memory, memory.commit


def test_what_one_reader_shows_the_other_shows_too(tables: tuple[TableReader, Show]) -> None:
    reader, show = tables
    show(coverage_row("a", minutes(0, 3), attempt=2, batch_index=1, is_last=False))
    show(coverage_row("a", minutes(3, 5), minutes(8, 10), error_code="MAINTENANCE", error_message="away"))
    show(coverage_row("b", minutes(20, 21)))
    assert list(reader.coverage(BTC, 60, within=minutes(1, 9))) == [minutes(1, 5), minutes(8, 9)]
    assert list(reader.coverage(BTC, 300, within=minutes(1, 9))) == []
    rows = sorted(reader.job_coverage(["a", "unknown"]), key=lambda row: row.attempt)
    assert [(r.attempt, r.is_last, r.covered, r.error_code) for r in rows] == [
        (1, True, (minutes(3, 5), minutes(8, 10)), "MAINTENANCE"),
        (2, False, (minutes(0, 3),), ""),
    ]
    assert reader.count_bars(BTC, 60, within=minutes(2, 9)) == 4
    assert reader.nth_bar_start_ns(BTC, 60, within=minutes(2, 9), n=4) == START + 8 * MINUTE
    assert reader.nth_bar_start_ns(BTC, 60, within=minutes(2, 9), n=5) is None
    assert reader.bars_snapshot_id() != 0


def test_tables_that_do_not_exist_cover_nothing(tables: tuple[TableReader, Show]) -> None:
    reader, _ = tables
    assert list(reader.coverage(BTC, 60, within=minutes(0, 5))) == []
    assert list(reader.job_coverage(["a"])) == []
    assert (reader.count_bars(BTC, 60, within=minutes(0, 5)), reader.bars_snapshot_id()) == (0, 0)
    assert reader.markets(exchange="BINANCE") == ([], 0)


def test_a_job_is_judged_alike(tables: tuple[TableReader, Show]) -> None:
    reader, show = tables
    show(coverage_row("a", minutes(0, 6)))
    job = Job("a", JobKind.HISTORICAL, BTC, "BINANCE", 1, period_seconds=60, fetch=minutes(0, 10), attempt=1)
    [delivered, limited] = look_at_jobs(
        reader,
        [
            Job(**_fields(job) | {"state": JobState.DELIVERED}),
            Job(**_fields(job) | {"state": JobState.CHECKING, "limit": 4}),
        ],
    )
    assert (delivered.covered, delivered.bars, delivered.is_miscounted) == ((minutes(0, 6),), 6, False)
    assert (limited.nth_bar_ns, limited.bars) == (START + 3 * MINUTE, 4)


def _fields(job: Job) -> dict[str, object]:
    return {name: getattr(job, name) for name in Job.__slots__}


def _bars(starts_ns: list[int], offset: int) -> pa.Table:
    rows = [
        {
            "ticker": BTC,
            "period_seconds": 60,
            "start": start_ns // 1000,
            **dict.fromkeys(("open", "high", "low", "close", "volume"), 1),
            "source": "EXCHANGE",
            "is_final": True,
            "incomplete": False,
            "revision": 0,
            "fetched_at_ns": offset,
            "log_partition": 0,
            "log_offset": offset,
        }
        for start_ns in starts_ns
    ]
    return pa.Table.from_pylist(rows, schema=OHLC_COLUMNS)


def _coverage(row: CoverageRow, offset: int) -> pa.Table:
    values = {name: getattr(row, name) for name in CoverageRow.__slots__} | {
        "covered": [{"start_ns": r.start_ns, "end_ns": r.end_ns} for r in row.covered],
        "covered_from": row.covered[0].start_ns // 1000,
        "covered_to": row.covered[-1].end_ns // 1000,
        "log_partition": 0,
        "log_offset": offset,
    }
    return pa.Table.from_pylist([values], schema=COVERAGE_COLUMNS)
