"""What no snapshot names is removed once it is old; everything else stays."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from relay.observability import Counters
from relay.tables.catalog import open_catalog, open_table
from relay.tables.orphans import find_orphans, plain_path
from relay.tables.schema import NAMESPACE, OHLC_KEY, OHLC_TABLE, TICKS_TABLE
from relay.tables.settings import TableSettings
from relay.tables.transaction import LeanTransaction
from relay.tables.writer import open_writable_tables
from spark_jobs.jobs.maintenance.service import say_outlook
from spark_jobs.jobs.maintenance.turns import MaintenanceTurns, Work
from spark_jobs.jobs.settings import JobSettings
from tests.integration.tables.test_compaction import HISTORY, job_settings
from tests.support.lake import add_ticks, bars, contents, files_on_disk, lake_in, ticks

FOUR_DAYS = timedelta(days=4)


@pytest.fixture
def settings(tmp_path: Path) -> TableSettings:
    return lake_in(tmp_path)


def planted(folder: Path, name: str, *, age: timedelta) -> Path:
    path = folder / "warehouse" / NAMESPACE / name / "data" / f"planted-{age.total_seconds():.0f}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"nobody's")
    written = (datetime.now(UTC) - age).timestamp()
    os.utime(path, (written, written))
    return path


def turn(job: JobSettings, *, later: timedelta = timedelta()) -> Counters:
    counters = Counters()
    turns = MaintenanceTurns(job, counters, now=lambda: datetime.now(UTC) + later)
    assert turns.run(Work(), stopping=threading.Event())
    turns.close()
    return counters


def test_an_old_orphan_goes_a_young_one_and_all_that_is_named_stay(settings, tmp_path):
    tables = open_writable_tables(settings)
    tables.merge_bars(bars(range(3)), reached=HISTORY, batch_id=0)
    tables.merge_bars(bars(range(1), close=2, fetched_at_ns=2), reached=HISTORY, batch_id=1)
    for path in files_on_disk(tmp_path, OHLC_TABLE):
        os.utime(path, (1, 1))
    before = files_on_disk(tmp_path, OHLC_TABLE)
    rows = contents(settings, OHLC_TABLE, key=OHLC_KEY)
    old, young = planted(tmp_path, OHLC_TABLE, age=FOUR_DAYS), planted(tmp_path, OHLC_TABLE, age=timedelta(hours=71))
    elsewhere = planted(tmp_path, "not_a_table", age=FOUR_DAYS)
    said: list[str] = []
    say_outlook(job_settings(tmp_path), say=said.append)
    assert any(line.startswith("market.ohlc") and "1 orphans" in line for line in said)
    assert old.exists(), "a dry run removes nothing"
    counters = turn(job_settings(tmp_path))
    assert (counters.get("maintenance.orphans.removed"), counters.get("maintenance.orphans.bytes")) == (1, 8)
    assert files_on_disk(tmp_path, OHLC_TABLE) == before | {young}
    assert elsewhere.exists()
    assert contents(settings, OHLC_TABLE, key=OHLC_KEY) == rows


class CatalogWithCommit:
    """The catalog; before the table is opened for the second time, a commit whose files were listed takes place."""

    def __init__(self, catalog: Catalog, commit: Callable[[], None]) -> None:
        self._catalog, self._commit, self._opened = catalog, commit, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._catalog, name)

    def load_table(self, identifier: tuple[str, ...]) -> Table:
        if tuple(identifier)[-1] == TICKS_TABLE:
            self._opened += 1
            if self._opened == 2:
                self._commit()
        return self._catalog.load_table(identifier)


def test_a_file_that_is_committed_after_it_was_listed_is_none_of_them(settings, tmp_path):
    tables = open_writable_tables(settings)
    add_ticks(tables, range(10))
    table = open_table(open_catalog(settings), TICKS_TABLE)
    before = files_on_disk(tmp_path, TICKS_TABLE)
    under_way = LeanTransaction(table)
    under_way.append(ticks(range(10, 20)))
    assert files_on_disk(tmp_path, TICKS_TABLE) - before, "its files are written, but nothing names them yet"

    def commit() -> None:
        under_way.commit_transaction()

    late = datetime.now(UTC) + FOUR_DAYS
    catalog = CatalogWithCommit(open_catalog(settings), commit)
    found = find_orphans(catalog, TICKS_TABLE, older_than=late)
    assert len(table.refresh().metadata.snapshots) == 2
    assert found == []


def test_after_compaction_and_expiry_only_what_the_head_names_is_on_disk_case_127(settings, tmp_path):
    tables = open_writable_tables(settings)
    for minute in range(8):
        tables.merge_bars(bars(range(minute, minute + 1)), reached=HISTORY, batch_id=minute)
    rows = contents(settings, OHLC_TABLE, key=OHLC_KEY)
    counters = turn(job_settings(tmp_path), later=FOUR_DAYS)
    assert counters.get("maintenance.files.compacted") == 8
    assert counters.get("maintenance.snapshots.expired") == 8
    assert len([p for p in files_on_disk(tmp_path, OHLC_TABLE) if p.suffix == ".parquet"]) == 1
    assert contents(settings, OHLC_TABLE, key=OHLC_KEY) == rows
    again = open_writable_tables(settings)
    known = again.offsets(OHLC_TABLE, job="history", cluster_id="cluster", topic_id="topic")
    assert known.end_offsets == {0: 10}
    assert turn(job_settings(tmp_path), later=FOUR_DAYS).get("maintenance.orphans.removed") == 0


def test_no_file_is_judged_where_another_table_lies_in_the_same_folder(settings, tmp_path):
    tables = open_writable_tables(settings)
    tables.merge_bars(bars(range(1)), reached=HISTORY, batch_id=0)
    catalog = open_catalog(settings)
    own = open_table(catalog, OHLC_TABLE)
    catalog.create_table("market.guest", schema=own.schema(), location=f"{own.location()}/data/guest")
    old = planted(tmp_path, OHLC_TABLE, age=FOUR_DAYS)
    turn(job_settings(tmp_path))
    assert old.exists()


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("/a/b", "/a/b"),
        ("s3://bucket/a?b#c", "bucket/a?b#c"),
        ("s3a://bucket/a", "bucket/a"),
    ],
)
def test_every_way_to_write_a_location_is_one_path(location, path):
    assert plain_path(location) == path


def test_files_of_another_catalogs_table_in_the_same_folder_are_left_alone(tmp_path):
    first, second = (TableSettings(f"sqlite:///{tmp_path}/{name}.db", f"file://{tmp_path}/warehouse") for name in "ab")
    add_ticks(open_writable_tables(first), range(10))
    rows = contents(first, TICKS_TABLE, key=("ticker", "trade_number"))
    add_ticks(open_writable_tables(second), range(20))
    for settings in (first, second):
        catalog = open_catalog(settings)
        assert find_orphans(catalog, TICKS_TABLE, older_than=datetime.now(UTC) + FOUR_DAYS) == []
        catalog.close()
    assert contents(first, TICKS_TABLE, key=("ticker", "trade_number")) == rows


@pytest.mark.parametrize("left", [b"", b"{", b"[]", b"\x1f\x8bcut", b"\xff\xfe", b"{}"], ids=repr)
def test_metadata_that_a_kill_has_left_half_written_are_an_orphan_like_any_other(settings, tmp_path, left):
    add_ticks(open_writable_tables(settings), range(10))
    folder = tmp_path / "warehouse" / NAMESPACE / TICKS_TABLE / "metadata"
    (folder / "00009-half.metadata.json").write_bytes(left)
    found = find_orphans(open_catalog(settings), TICKS_TABLE, older_than=datetime.now(UTC) + FOUR_DAYS)
    assert [Path(orphan.path).name for orphan in found] == ["00009-half.metadata.json"]
