"""Real Iceberg tables on a SQLite catalog: merge, offsets, coverage, reads at a snapshot."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relay.errors import RetryableError, SettingsError
from relay.protocol.ranges import Range
from relay.tables.catalog import TableSettings, open_catalog, open_table
from relay.tables.offsets import SourceOffsets
from relay.tables.reader import LakeTables, open_tables
from relay.tables.schema import COVERAGE_COLUMNS, COVERAGE_TABLE, OHLC_COLUMNS, OHLC_TABLE
from relay.tables.writer import IcebergTables, open_writable_tables

MINUTE_NS = 60 * 10**9
BTC = "BTC/USDT.BINANCE"
REACHED = SourceOffsets("history", "cluster", "topic", {0: 10})


def bars(starts_ns: list[int], *, ticker: str = BTC, close: str = "1", fetched_at_ns: int = 1, offset: int = 0):
    number = Decimal(close)
    return pa.Table.from_pylist(
        [
            {
                "ticker": ticker,
                "period_seconds": 60,
                "start": start_ns // 1000,
                "open": number,
                "high": number,
                "low": number,
                "close": number,
                "volume": number,
                "source": "EXCHANGE",
                "is_final": True,
                "incomplete": False,
                "revision": 0,
                "fetched_at_ns": fetched_at_ns,
                "log_partition": 0,
                "log_offset": offset,
            }
            for start_ns in starts_ns
        ],
        schema=OHLC_COLUMNS,
    )


def coverage(job_id: str, ranges: list[Range], *, batch_index: int = 0, is_last: bool = True):
    return pa.Table.from_pylist(
        [
            {
                "job_id": job_id,
                "attempt": 1,
                "batch_index": batch_index,
                "is_last": is_last,
                "status": "OK",
                "ticker": BTC,
                "period_seconds": 60,
                "covered": [{"start_ns": r.start_ns, "end_ns": r.end_ns} for r in ranges],
                "covered_from": ranges[0].start_ns // 1000 if ranges else None,
                "covered_to": ranges[-1].end_ns // 1000 if ranges else None,
                "rows": 1,
                "total_rows": 1,
                "source": "BINANCE",
                "fetched_at_ns": 1,
                "log_partition": 0,
                "log_offset": 0,
            }
        ],
        schema=COVERAGE_COLUMNS,
    )


@pytest.fixture
def settings(tmp_path: Path) -> TableSettings:
    return TableSettings(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")


@pytest.fixture
def writer(settings: TableSettings) -> IcebergTables:
    return open_writable_tables(settings)


@pytest.fixture
def reader(settings: TableSettings, writer: IcebergTables) -> LakeTables:
    return open_tables(settings)


def closes(table: pa.Table) -> list[str]:
    return [str(value.normalize()) for value in table["close"].to_pylist()]


EVERYTHING = Range(0, 10**18)


def test_the_row_latest_by_fetch_time_and_log_position_wins_whatever_the_order_of_commits(writer, reader):
    writer.merge_bars(bars([0], close="2", fetched_at_ns=20, offset=5), reached=REACHED, batch_id=1)
    writer.merge_bars(bars([0], close="1", fetched_at_ns=10, offset=9), reached=REACHED, batch_id=2)
    assert closes(reader.read_bars(BTC, 60, within=EVERYTHING)) == ["2"]
    writer.merge_bars(bars([0], close="3", fetched_at_ns=20, offset=6), reached=REACHED, batch_id=3)
    assert closes(reader.read_bars(BTC, 60, within=EVERYTHING)) == ["3"]


def test_a_repeated_merge_changes_nothing_and_commits_nothing(writer, reader):
    first = writer.merge_bars(bars([0, MINUTE_NS]), reached=REACHED, batch_id=1)
    assert writer.merge_bars(bars([0, MINUTE_NS]), reached=REACHED, batch_id=1) is None
    assert reader.bars_snapshot_id() == first


def test_a_merge_keeps_every_row_outside_its_keys(writer, reader):
    writer.merge_bars(bars([0, MINUTE_NS, 2 * MINUTE_NS]), reached=REACHED, batch_id=1)
    writer.merge_bars(bars([0], ticker="ETH/USDT.BINANCE"), reached=REACHED, batch_id=2)
    writer.merge_bars(bars([MINUTE_NS], close="7", fetched_at_ns=2), reached=REACHED, batch_id=3)
    assert closes(reader.read_bars(BTC, 60, within=EVERYTHING)) == ["1", "7", "1"]
    assert reader.count_bars("ETH/USDT.BINANCE", 60, within=EVERYTHING) == 1


def test_offsets_are_kept_in_the_commit_and_count_only_for_their_log(settings, writer):
    writer.merge_bars(bars([0]), reached=REACHED, batch_id=1)
    again = open_writable_tables(settings)
    kept = again.offsets(OHLC_TABLE, job="history", cluster_id="cluster", topic_id="topic")
    assert kept.end_offsets == {0: 10}
    recreated = again.offsets(OHLC_TABLE, job="history", cluster_id="cluster", topic_id="another")
    assert recreated.end_offsets == {}


def test_coverage_is_united_and_clipped_and_found_by_job(writer, reader):
    for index, span in enumerate([Range(0, 5 * MINUTE_NS), Range(5 * MINUTE_NS, 9 * MINUTE_NS)]):
        writer.append(COVERAGE_TABLE, coverage("job-1", [span], batch_index=index), reached=REACHED, batch_id=index)
    writer.append(COVERAGE_TABLE, coverage("job-2", []), reached=REACHED, batch_id=3)
    within = Range(MINUTE_NS, 100 * MINUTE_NS)
    assert reader.coverage(BTC, 60, within=within) == [Range(MINUTE_NS, 9 * MINUTE_NS)]
    assert [r.batch_index for r in reader.job_coverage(["job-1"])] in ([0, 1], [1, 0])
    assert reader.job_coverage(["job-2"])[0].covered == ()


def test_bars_are_read_at_the_snapshot_that_was_told_or_at_a_descendant(writer, reader):
    first = writer.merge_bars(bars([0]), reached=REACHED, batch_id=1)
    writer.merge_bars(bars([MINUTE_NS]), reached=REACHED, batch_id=2)
    assert len(reader.read_bars(BTC, 60, within=EVERYTHING, snapshot_id=first)) == 2
    assert reader.nth_bar_start_ns(BTC, 60, within=EVERYTHING, n=2) == MINUTE_NS
    assert reader.nth_bar_start_ns(BTC, 60, within=EVERYTHING, n=3) is None


def test_tables_that_do_not_exist_yet_read_as_empty(tmp_path):
    settings = TableSettings(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    open_catalog(settings)
    empty = open_tables(settings)
    assert empty.coverage(BTC, 60, within=EVERYTHING) == []
    assert empty.job_coverage(["x"]) == []
    assert empty.bars_snapshot_id() == 0
    assert len(empty.read_bars(BTC, 60, within=EVERYTHING)) == 0
    assert empty.markets() == ([], 0)


def test_two_writers_that_race_both_land_case_118(settings, writer, reader):
    other = open_writable_tables(settings)
    meet = threading.Barrier(2)

    def write(tables: IcebergTables, minutes: range) -> None:
        meet.wait(60)
        for minute in minutes:
            tables.merge_bars(bars([minute * MINUTE_NS]), reached=REACHED, batch_id=minute)

    with ThreadPoolExecutor(2) as pool:
        ended = [pool.submit(write, writer, range(0, 12, 2)), pool.submit(write, other, range(1, 12, 2))]
        for future in ended:
            future.result(120)
    assert reader.count_bars(BTC, 60, within=EVERYTHING) == 12


def test_two_writers_of_the_same_keys_leave_each_key_once_case_120(settings, writer, reader):
    other = open_writable_tables(settings)
    meet = threading.Barrier(2)

    def write(tables: IcebergTables, offset: int) -> None:
        for minute in range(8):
            meet.wait(60)
            tables.merge_bars(bars([minute * MINUTE_NS], offset=offset), reached=REACHED, batch_id=minute)

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(write, writer, 1), pool.submit(write, other, 2)]:
            future.result(120)
    assert reader.count_bars(BTC, 60, within=EVERYTHING) == 8
    assert len(reader.read_bars(BTC, 60, within=EVERYTHING)) == 8


def test_a_writer_whose_offsets_another_one_has_moved_commits_nothing(settings, writer, reader):
    other = open_writable_tables(settings)
    known = writer.offsets(COVERAGE_TABLE, job="history", cluster_id="cluster", topic_id="topic")
    rows = coverage("job-1", [Range(0, MINUTE_NS)])
    assert writer.append(COVERAGE_TABLE, rows, reached=REACHED, batch_id=1, known=known)
    beyond = known.advanced({0: 99})
    with pytest.raises(RetryableError, match="another history job writes the same tables"):
        other.append(COVERAGE_TABLE, rows, reached=beyond, batch_id=1, known=known)
    writer.merge_bars(bars([0], offset=1), reached=REACHED, batch_id=1, known=known)
    with pytest.raises(RetryableError, match="another history job"):
        other.merge_bars(bars([MINUTE_NS], offset=2), reached=beyond, batch_id=2, known=known)
    assert reader.count_bars(BTC, 60, within=EVERYTHING) == 1
    assert len(reader.job_coverage(["job-1"])) == 1


def test_a_commit_that_landed_although_it_was_reported_lost_is_not_made_twice(writer, reader):
    known = writer.offsets(COVERAGE_TABLE, job="history", cluster_id="cluster", topic_id="topic")
    rows = coverage("job-1", [Range(0, MINUTE_NS)])
    for _ in range(2):
        writer.append(COVERAGE_TABLE, rows, reached=REACHED, batch_id=1, known=known)
    assert len(reader.job_coverage(["job-1"])) == 1


def test_times_of_any_unit_and_zone_are_stored_as_microseconds_utc_case_46_47(settings, writer, reader, tmp_path):
    rows = bars([MINUTE_NS, 2 * MINUTE_NS])
    for minute, kind in ((0, pa.timestamp("ns", tz="Europe/Berlin")), (1, pa.timestamp("ms", tz="America/New_York"))):
        one = rows.slice(minute, 1)
        other = one.set_column(2, pa.field("start", kind, nullable=False), one["start"].cast(kind))
        writer.merge_bars(other, reached=REACHED, batch_id=minute)
    assert reader.read_bars(BTC, 60, within=EVERYTHING)["start"].cast("int64").to_pylist() == [60_000_000, 120_000_000]
    files = list((tmp_path / "warehouse").rglob("*.parquet"))
    assert files
    for path in files:
        assert str(pq.read_schema(path).field("start").type) == "timestamp[us, tz=UTC]"


def test_half_a_microsecond_is_refused_and_not_cut_off_case_47(writer, reader):
    rows = bars([MINUTE_NS])
    kind = pa.timestamp("ns", tz="UTC")
    finer = pa.array([MINUTE_NS + 500], pa.int64()).cast(kind)
    with pytest.raises(pa.ArrowInvalid, match="lose data"):
        writer.merge_bars(
            rows.set_column(2, pa.field("start", kind, nullable=False), finer), reached=REACHED, batch_id=0
        )
    assert reader.bars_snapshot_id() == 0


def test_many_keys_of_three_columns_are_merged_by_one_commit_that_rewrites_their_range_case_122_123_124_125(
    settings, writer, reader
):
    """How long it takes is in docs/performance.md."""
    count = 20_000
    writer.merge_bars(bars([n * MINUTE_NS for n in range(count)]), reached=REACHED, batch_id=0)
    newer = bars([n * MINUTE_NS for n in range(0, count, 2)], close="2", fetched_at_ns=2)
    others = bars([n * MINUTE_NS for n in range(500)], ticker="ETH/USDT.BINANCE")
    before = len(open_table(open_catalog(settings), OHLC_TABLE).metadata.snapshots)
    assert writer.merge_bars(pa.concat_tables([newer, others]), reached=REACHED, batch_id=1)
    found = reader.read_bars(BTC, 60, within=EVERYTHING)
    assert (len(found), closes(found)[:4]) == (count, ["2", "1", "2", "1"])
    assert reader.count_bars("ETH/USDT.BINANCE", 60, within=EVERYTHING) == 500
    # What the range had goes and what it has comes: one change, told in two snapshots.
    assert len(open_table(open_catalog(settings), OHLC_TABLE).metadata.snapshots) == before + 2


def test_tables_that_lie_under_another_catalog_name_are_told_and_not_made_anew_case_132(settings, writer):
    renamed = TableSettings(settings.catalog_uri, settings.warehouse, catalog_name="other")
    with pytest.raises(SettingsError, match=r"expected catalog_name lake, .* got other"):
        open_writable_tables(renamed)
    open_writable_tables(settings)
