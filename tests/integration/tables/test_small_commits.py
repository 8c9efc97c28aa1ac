"""Thousands of small commits: their cost is bounded, and what old ones kept is not lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from relay.protocol.ranges import Range
from relay.tables import TableSettings
from relay.tables import transaction as transactions
from relay.tables.catalog import open_catalog, open_table
from relay.tables.offsets import SourceOffsets
from relay.tables.reader import open_tables
from relay.tables.schema import OHLC_TABLE
from relay.tables.writer import IcebergTables, open_writable_tables
from spark_jobs.jobs.history.decode import decode_records
from spark_jobs.jobs.records import RECORD_COLUMNS
from tests.support.batches import BTC, batch, record

EVERYTHING = Range(0, 2 * 10**18)


@pytest.fixture
def settings(tmp_path: Path) -> TableSettings:
    return TableSettings(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")


def commit(tables: IcebergTables, number: int) -> None:
    kinds = (pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.binary())
    values = ("market-ohlc", 0, number, BTC.encode(), record(batch(range(3 * number, 3 * number + 3))))
    columns = zip(RECORD_COLUMNS, kinds, values, strict=True)
    bars = decode_records(pa.table({n: pa.array([v], k) for n, k, v in columns}), seen_at_us=4 * 10**15).bars
    tables.merge_bars(bars, reached=SourceOffsets("history", "c", "t", {0: number + 1}), batch_id=number)


def snapshots(settings: TableSettings) -> int:
    table = open_table(open_catalog(settings), OHLC_TABLE)
    assert table is not None
    return len(table.metadata.snapshots)


def test_the_newest_snapshots_stay_with_all_bars_and_the_offsets(settings):
    tables = open_writable_tables(settings)
    for number in range(5):
        commit(tables, number)
    tables.expire_snapshots(OHLC_TABLE, older_than=datetime.now(UTC) - timedelta(hours=1), count_max=2)
    assert snapshots(settings) == 2
    assert tables.offsets(OHLC_TABLE, job="history", cluster_id="c", topic_id="t").end_offsets == {0: 5}
    assert len(open_tables(settings).read_bars(BTC, 60, within=EVERYTHING)) == 15


def test_the_head_stays_however_old_it_is(settings):
    tables = open_writable_tables(settings)
    for number in range(3):
        commit(tables, number)
    tables.expire_snapshots(OHLC_TABLE, older_than=datetime.now(UTC) + timedelta(hours=1), count_max=100)
    assert snapshots(settings) == 1
    commit(tables, 3)
    assert len(open_tables(settings).read_bars(BTC, 60, within=EVERYTHING)) == 12


def test_a_commit_builds_the_metadata_once_for_each_staged_change(settings, monkeypatch):
    tables = open_writable_tables(settings)
    commit(tables, 0)
    built: list[int] = []
    build = transactions.update_table_metadata

    def counted(base, updates):
        built.append(len(updates))
        return build(base, updates)

    monkeypatch.setattr(transactions, "update_table_metadata", counted)
    commit(tables, 1)
    assert all(built)
    assert len(built) == len(set(built))
