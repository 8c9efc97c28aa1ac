"""What does it cost to put 2,000 small files together: from one process, or by Spark's procedures?"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.report import Report
from relay.protocol.ranges import Range
from relay.tables.catalog import open_catalog, open_table
from relay.tables.compaction import CompactionRules, compact
from relay.tables.reader import open_tables
from relay.tables.schema import TICKS_TABLE
from relay.tables.writer import open_writable_tables
from tests.support.lake import DAY_NS, FIRST_DAY_NS, TICKS, ticks
from tests.support.spark import start_session
from tests.support.spark_lake import SparkLake

__all__ = ["run"]

_TICKERS = 50
_ROWS = 2_000
_OPTIONS = "options => map('min-input-files', '5')"


def run(*, quick: bool) -> Report:
    """Make the same table twice, put its files together each way, and read one ticker's day before and after."""
    report = Report(
        "maintenance",
        "What does it cost to put a day's small files of ticks together, from one process or by Spark?",
        layout="one process with PyIceberg; one Spark driver, local[2]",
        durability="local files and a SQLite catalog, no fsync of ours",
    )
    commits = 20 if quick else 250
    with tempfile.TemporaryDirectory() as name:
        session, base = start_session(Path(name))
        try:
            lakes = []
            for way in ("process", "spark"):
                lake = SparkLake((session, base), Path(name) / way)
                _fill(lake, commits)
                lakes.append(lake)
            _state(report, lakes[0], "before")
            report.add("read a ticker's day, before", ms=_read_ms(lakes[0]))
            # A first statement pays for the session's catalog and classes.
            session.sql(f"SELECT count(*) FROM {lakes[1].name}.market.{TICKS_TABLE}").collect()
            here = _timed(lambda: _compact(lakes[0]))
            table = f"table => 'market.{TICKS_TABLE}'"
            there = _timed(lambda: lakes[1].call("rewrite_data_files", f"{table}, {_OPTIONS}"))
            report.add("compaction from one process", ms=here)
            report.add("rewrite_data_files of Spark", ms=there)
            report.add("rewrite_manifests of Spark", ms=_timed(lambda: lakes[1].call("rewrite_manifests", table)))
            _state(report, lakes[0], "after")
            report.add("read a ticker's day, after", ms=_read_ms(lakes[0]))
            report.ratio("process_to_spark", here / there)
        finally:
            session.stop()
    return report


def _fill(lake: SparkLake, commits: int) -> None:
    tables, reached = open_writable_tables(lake.settings), TICKS
    names = pa.array([f"T{n % _TICKERS}/USDT.BINANCE" for n in range(_ROWS)])
    for commit in range(commits):
        first = commit * _ROWS
        rows = ticks(range(first, first + _ROWS))
        rows = rows.set_column(0, rows.schema.field("ticker"), names)
        after = reached.advanced({0: first + _ROWS})
        tables.append_ticks(rows, reached=after, batch_id=commit, known=reached)
        reached = after


def _compact(lake: SparkLake) -> None:
    closed_ns = FIRST_DAY_NS + 2 * DAY_NS
    rules, catalog = CompactionRules(), open_catalog(lake.settings)
    compact(catalog, TICKS_TABLE, rules, closed_before_ns=closed_ns, stopping=threading.Event())


def _state(report: Report, lake: SparkLake, when: str) -> None:
    table = open_table(open_catalog(lake.settings), TICKS_TABLE)
    snapshot = table.current_snapshot() if table is not None else None
    if table is None or snapshot is None:
        raise RuntimeError("the table has no rows; was it filled?")
    summary: Any = snapshot.summary
    report.add(
        f"table {when}",
        rows=int(summary["total-records"]),
        files=int(summary["total-data-files"]),
        manifests=len(snapshot.manifests(table.io)),
        bytes=int(summary["total-files-size"]),
    )


def _read_ms(lake: SparkLake) -> int:
    tables = open_tables(lake.settings)
    within = Range(FIRST_DAY_NS, FIRST_DAY_NS + DAY_NS)
    return min(_timed(lambda: tables.read_ticks("T7/USDT.BINANCE", within=within)) for _ in range(3))


def _timed(work: Callable[[], object]) -> int:
    started = time.monotonic_ns()
    work()
    return (time.monotonic_ns() - started) // 1_000_000
