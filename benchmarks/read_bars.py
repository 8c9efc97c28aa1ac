"""How long does reading a million bars through the SDK take, against pyarrow on the same Parquet files?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

from benchmarks.bars import BASE_NS, MINUTE_NS, TICKER, bar_rows
from benchmarks.report import Report
from relay.protocol.ranges import Range
from relay.protocol.v1 import request_pb2
from relay.tables import TableSettings
from relay.tables.offsets import SourceOffsets
from relay.tables.schema import NAMESPACE, OHLC_TABLE
from relay.tables.writer import open_writable_tables

__all__ = ["run"]

_CHUNKS = 20
_OFFSETS = SourceOffsets("history", "bench", "bench")


def run(*, quick: bool) -> Report:
    """Measure the Arrow and the pandas way, whole and a day out of the middle."""
    count = 20_000 if quick else 1_000_000
    report = Report(
        "read_bars",
        "How long does reading a million bars through the SDK take, against pyarrow on the same Parquet files?",
        layout="one process: relay_client's tables and result, PyIceberg and pyarrow within; a warm page cache",
        durability="nothing is written while it is measured",
    )
    with tempfile.TemporaryDirectory() as folder:
        where = TableSettings(f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse")
        _fill(where, count)
        _measure(report, where, count, rounds=1 if quick else 7)
    return report


def _fill(where: TableSettings, count: int) -> None:
    tables = open_writable_tables(where)
    rows_each = count // _CHUNKS
    for index in range(_CHUNKS):
        bars = bar_rows(rows_each, first=index * rows_each, offset=index)
        tables.merge_bars(bars, reached=_OFFSETS.advanced({0: index + 1}), batch_id=index)


def _measure(report: Report, where: TableSettings, count: int, *, rounds: int) -> None:
    from relay_client.lake import Lake
    from relay_client.settings import ClientSettings

    lake = Lake(ClientSettings())
    reply = request_pb2.ProbeReply(catalog_uri=where.catalog_uri, warehouse=where.warehouse)
    paths = _paths(where)
    everything, day = Range(BASE_NS, BASE_NS + count * MINUTE_NS), 1_440 * MINUTE_NS
    middle = Range(BASE_NS + count // 2 * MINUTE_NS, BASE_NS + count // 2 * MINUTE_NS + day)

    def read(within: Range) -> pa.Table:
        with lake.reader(reply) as tables:
            return tables.read_bars_since(TICKER, 60, within=within)[0]

    def plain() -> pa.Table:
        return pq.ParquetDataset(paths, partitioning=None).read()

    def sorted_like_ours() -> pa.Table:
        return plain().sort_by("start")

    ways: dict[str, Callable[[], Any]] = {
        "pyarrow, Parquet files to Arrow": plain,
        "pyarrow, Parquet files to Arrow, sorted": sorted_like_ours,
        "SDK to Arrow": lambda: read(everything),
        "pyarrow, Parquet files to pandas (Arrow-backed)": lambda: _pandas(plain()),
        "SDK to pandas": lambda: _pandas(read(everything)),
        "SDK to Arrow, one day of it": lambda: read(middle),
    }
    taken: dict[str, float] = {}
    for name, way in ways.items():
        found = way()
        expected = 1_440 if name.endswith("one day of it") else count
        if len(found) != min(expected, count):
            raise RuntimeError(f"{name}: expected {expected} bars, got {len(found)}")
        del found
        taken[name] = _median(way, rounds)
        report.add(name, seconds=round(taken[name], 3), rows_per_second=int(expected / taken[name]))
    for kind, mine, theirs in (
        ("arrow", "SDK to Arrow", "pyarrow, Parquet files to Arrow"),
        ("pandas", "SDK to pandas", "pyarrow, Parquet files to pandas (Arrow-backed)"),
    ):
        report.ratio(f"{kind}_to_pyarrow", taken[mine] / taken[theirs], goal_max=1.5)
    report.notes["files"] = f"{len(paths)} Parquet files"


def _paths(where: TableSettings) -> list[str]:
    catalog = load_catalog("lake", uri=where.catalog_uri, warehouse=where.warehouse)
    files = catalog.load_table((NAMESPACE, OHLC_TABLE)).inspect.data_files()
    return [unquote(urlsplit(path).path) for path in sorted(files["file_path"].to_pylist())]


def _pandas(table: pa.Table) -> Any:
    import pandas as pd

    kept = {f.type: pd.ArrowDtype(f.type) for f in table.schema if pa.types.is_decimal(f.type)}
    return table.to_pandas(types_mapper=kept.get).set_index("start")


def _median(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return sorted(taken)[len(taken) // 2]
