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
from relay.tables.expiry import expire_snapshots
from relay.tables.offsets import SourceOffsets
from relay.tables.reader import open_tables
from relay.tables.schema import OHLC_TABLE, QUARANTINE_COLUMNS, QUARANTINE_TABLE
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


def expire(settings: TableSettings, name: str, *, later: timedelta = timedelta(), count_max: int) -> int:
    hour_ago = datetime.now(UTC) + later - timedelta(hours=1)
    return expire_snapshots(open_catalog(settings), name, older_than=hour_ago, count_max=count_max)


def test_the_newest_snapshots_stay_with_all_bars_and_the_offsets(settings):
    tables = open_writable_tables(settings)
    for number in range(5):
        commit(tables, number)
    expire(settings, OHLC_TABLE, count_max=2)
    assert snapshots(settings) == 2
    assert tables.offsets(OHLC_TABLE, job="history", cluster_id="c", topic_id="t").end_offsets == {0: 5}
    assert len(open_tables(settings).read_bars(BTC, 60, within=EVERYTHING)) == 15


def test_the_head_stays_however_old_it_is(settings):
    tables = open_writable_tables(settings)
    for number in range(3):
        commit(tables, number)
    expire(settings, OHLC_TABLE, later=timedelta(hours=2), count_max=100)
    assert snapshots(settings) == 1
    commit(tables, 3)
    assert len(open_tables(settings).read_bars(BTC, 60, within=EVERYTHING)) == 12


def test_the_last_snapshot_of_each_job_stays_and_its_offsets_are_found_over_the_hole(settings):
    tables = open_writable_tables(settings)
    sources = [SourceOffsets("history", "c", "ohlc"), SourceOffsets("ticks", "c", "ticks")]

    def quarantine(source: SourceOffsets, offset: int) -> None:
        row = {"topic": source.topic_id, "partition": 0, "offset": offset, "reason": "r", "detail": "d"}
        rows = pa.Table.from_pylist([{**row, "size_bytes": 0, "seen_at": 0}], schema=QUARANTINE_COLUMNS)
        tables.append(QUARANTINE_TABLE, rows, reached=source.advanced({0: offset + 1}), batch_id=offset)

    for offset in range(3):
        quarantine(sources[0], offset)
    for offset in range(6):
        quarantine(sources[1], offset)
    # A job of a log that was made anew again and again: only the last ones count.
    for number in range(6):
        quarantine(SourceOffsets("history", "c", f"ohlc-{number}"), 0)
    assert expire(settings, QUARANTINE_TABLE, later=timedelta(hours=2), count_max=100) == 15 - 5
    found = [
        tables.offsets(QUARANTINE_TABLE, job=job, cluster_id="c", topic_id=topic).end_offsets
        for job, topic in (("ticks", "ticks"), ("history", "ohlc-5"), ("history", "ohlc-2"), ("history", "ohlc"))
    ]
    assert found == [{0: 6}, {0: 1}, {0: 1}, {}]


def test_fewer_old_snapshots_than_are_worth_a_commit_wait(settings):
    tables = open_writable_tables(settings)
    for number in range(3):
        commit(tables, number)
    catalog, later = open_catalog(settings), datetime.now(UTC) + timedelta(hours=1)
    assert expire_snapshots(catalog, OHLC_TABLE, older_than=later, count_max=100, at_least=3) == 0
    assert expire_snapshots(catalog, OHLC_TABLE, older_than=later, count_max=100, at_least=2) == 2


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
