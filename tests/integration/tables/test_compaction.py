"""Small files become few on real tables: the same rows, the offsets found, and no writer that fails or loses."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from relay.errors import RetryableError, SettingsError
from relay.observability import Counters
from relay.protocol.ranges import Range
from relay.tables.catalog import open_catalog, open_table
from relay.tables.compaction import CompactionRules, SmallFile, compact, groups_of
from relay.tables.offsets import SourceOffsets
from relay.tables.reader import open_tables
from relay.tables.schema import OHLC_KEY, OHLC_TABLE, TICKS_TABLE
from relay.tables.settings import TableSettings
from relay.tables.writer import open_writable_tables
from spark_jobs.jobs.checkpoints import lock_checkpoints
from spark_jobs.jobs.maintenance.service import maintain_once
from spark_jobs.jobs.maintenance.turns import MaintenanceTurns, Work
from spark_jobs.jobs.settings import JobSettings
from tests.support.lake import DAY_NS, FIRST_DAY_NS, add_ticks, bars, contents, files_on_disk, lake_in
from tests.support.processes import Process, wait_until

EVERYTHING = Range(0, 4 * 10**18)
TICKS_KEY = ("ticker", "trade_number")
RULES = CompactionRules(small_files_min=4)
OPEN = FIRST_DAY_NS + 2 * DAY_NS
HISTORY = SourceOffsets("history", "cluster", "topic", {0: 10})


@pytest.fixture
def settings(tmp_path: Path) -> TableSettings:
    return lake_in(tmp_path)


def files(settings: TableSettings, name: str) -> list[str]:
    table = open_table(open_catalog(settings), name)
    return sorted(task.file.file_path for task in table.scan().plan_files())


def job_settings(folder: Path, **fields: object) -> JobSettings:
    lake = lake_in(folder)
    return JobSettings(
        catalog_uri=lake.catalog_uri,
        warehouse=lake.warehouse,
        checkpoint_folder=str(folder / "checkpoints"),
        maintenance_small_files_min=4,
        **fields,
    )


def test_small_files_of_closed_days_become_few_with_the_same_rows_and_offsets_case_126(settings):
    tables = open_writable_tables(settings)
    for number in range(12):
        add_ticks(tables, range(number * 10, number * 10 + 10), day=0 if number < 6 else 2)
    before, files_before = contents(settings, TICKS_TABLE, key=TICKS_KEY), files(settings, TICKS_TABLE)
    done = compact(open_catalog(settings), TICKS_TABLE, RULES, closed_before_ns=OPEN, stopping=threading.Event())
    assert (done.files_before, done.files_after, done.rows, done.commits) == (6, 1, 60, 1)
    after = files(settings, TICKS_TABLE)
    assert len(after) == 7
    assert len(set(after) & set(files_before)) == 6, "the day that may still grow is left alone"
    assert contents(settings, TICKS_TABLE, key=TICKS_KEY) == before
    table = open_table(open_catalog(settings), TICKS_TABLE)
    summary = table.current_snapshot().summary
    assert (summary.operation.value, summary["total-records"], summary["total-data-files"]) == ("replace", "120", "7")
    again = open_writable_tables(settings)
    known = again.offsets(TICKS_TABLE, job="ticks", cluster_id="cluster", topic_id="topic")
    assert known.end_offsets == {0: 120}
    # A start after it knows what is stored, and a replay adds nothing.
    add_ticks(again, range(100, 125), day=2)
    assert contents(settings, TICKS_TABLE, key=TICKS_KEY)["trade_number"].to_pylist() == list(range(125))


def test_rows_are_sorted_so_that_a_ticker_lies_together(settings):
    tables = open_writable_tables(settings)
    for number in range(6):
        for ticker in ("B/USDT.BINANCE", "A/USDT.BINANCE"):
            tables.merge_bars(bars(range(number, number + 1), ticker=ticker), reached=HISTORY, batch_id=number)
    compact(open_catalog(settings), OHLC_TABLE, RULES, closed_before_ns=OPEN, stopping=threading.Event())
    assert len(files(settings, OHLC_TABLE)) == 1
    rows = open_table(open_catalog(settings), OHLC_TABLE).scan().to_arrow()
    assert rows["ticker"].to_pylist() == ["A/USDT.BINANCE"] * 6 + ["B/USDT.BINANCE"] * 6


def test_nothing_to_do_commits_nothing(settings):
    tables = open_writable_tables(settings)
    for number in range(3):
        add_ticks(tables, range(number * 10, number * 10 + 10))
    head = open_table(open_catalog(settings), TICKS_TABLE).metadata_location
    turns = MaintenanceTurns(job_settings(Path(settings.warehouse[7:]).parent), Counters())
    for _ in range(2):
        assert turns.run(Work(), stopping=threading.Event())
    turns.close()
    assert open_table(open_catalog(settings), TICKS_TABLE).metadata_location == head


class WriterInBetween(threading.Event):
    """Overwrites bars when the compaction looks for the n-th time whether it shall stop."""

    def __init__(self, settings: TableSettings, *, at: int) -> None:
        super().__init__()
        self._tables, self._left = open_writable_tables(settings), at

    def is_set(self) -> bool:
        self._left -= 1
        if self._left == 0:
            newer = bars(range(1), close=7, fetched_at_ns=9)
            assert self._tables.merge_bars(newer, reached=HISTORY.advanced({0: 99}), batch_id=99)
        return super().is_set()


def test_a_file_that_a_writer_has_replaced_meanwhile_is_left_to_the_writer_case_127(settings, tmp_path):
    tables = open_writable_tables(settings)
    for minute in range(6):
        tables.merge_bars(bars(range(minute, minute + 1)), reached=HISTORY, batch_id=minute)
    # The first look is before the files are read, the second before the commit.
    stopping = WriterInBetween(settings, at=2)
    on_disk = files_on_disk(tmp_path, OHLC_TABLE)
    done = compact(open_catalog(settings), OHLC_TABLE, RULES, closed_before_ns=OPEN, stopping=stopping)
    assert (done.commits, done.files_given_up, done.conflicts) == (0, 6, 1)
    rows = contents(settings, OHLC_TABLE, key=OHLC_KEY)
    assert [int(close) for close in rows["close"].to_pylist()] == [7, 1, 1, 1, 1, 1]
    new = {path for path in files_on_disk(tmp_path, OHLC_TABLE) - on_disk if path.suffix == ".parquet"}
    assert {str(path) for path in new} <= {path.removeprefix("file://") for path in files(settings, OHLC_TABLE)}
    done = compact(open_catalog(settings), OHLC_TABLE, RULES, closed_before_ns=OPEN, stopping=threading.Event())
    assert (done.commits, done.files_after) == (1, 1)
    assert contents(settings, OHLC_TABLE, key=OHLC_KEY) == rows


def test_writers_that_commit_all_the_time_lose_nothing_and_never_fail_case_126(settings):
    """Appends of ticks and overwrites of bars, each at its own table, against compaction and expiry without a pause."""
    writing = threading.Event()

    def write_ticks() -> None:
        tables = open_writable_tables(settings)
        for number in range(25):
            add_ticks(tables, range(number * 10, number * 10 + 10))

    def write_bars() -> None:
        tables = open_writable_tables(settings)
        known = SourceOffsets("history", "cluster", "topic")
        for number in range(25):
            reached = known.advanced({0: number + 1})
            rows = bars(range(number // 2, number + 1), close=number + 1, fetched_at_ns=number + 1)
            assert tables.merge_bars(rows, reached=reached, batch_id=number, known=known)
            known = reached

    def maintain() -> int:
        catalog, commits = open_catalog(settings), 0
        rules = CompactionRules(small_files_min=2)
        while not writing.is_set():
            for name in (TICKS_TABLE, OHLC_TABLE):
                done = compact(catalog, name, rules, closed_before_ns=OPEN, stopping=threading.Event())
                commits += done.commits
        return commits

    open_writable_tables(settings)
    with ThreadPoolExecutor(3) as pool:
        maintaining = pool.submit(maintain)
        try:
            for writer in [pool.submit(write_ticks), pool.submit(write_bars)]:
                writer.result(240)
        finally:
            writing.set()
        assert maintaining.result(120) > 0
    stored = contents(settings, TICKS_TABLE, key=TICKS_KEY)
    assert stored["trade_number"].to_pylist() == list(range(250))
    closes = contents(settings, OHLC_TABLE, key=OHLC_KEY)["close"].to_pylist()
    # Minute m was last overwritten by the last number whose range began at or before it.
    assert [int(close) for close in closes] == [min(2 * minute + 2, 25) for minute in range(25)]


def test_two_compactions_at_the_same_time_leave_each_row_once(settings):
    tables = open_writable_tables(settings)
    for number in range(12):
        add_ticks(tables, range(number * 10, number * 10 + 10))
    before = contents(settings, TICKS_TABLE, key=TICKS_KEY)
    meet = threading.Barrier(2)

    def run() -> int:
        catalog = open_catalog(settings)
        meet.wait(60)
        done = compact(catalog, TICKS_TABLE, RULES, closed_before_ns=OPEN, stopping=threading.Event())
        return done.commits

    with ThreadPoolExecutor(2) as pool:
        commits = [pool.submit(run), pool.submit(run)]
        assert sum(one.result(120) for one in commits) == 1
    assert contents(settings, TICKS_TABLE, key=TICKS_KEY) == before
    assert len(files(settings, TICKS_TABLE)) == 1


def test_a_second_maintenance_of_the_same_folder_is_refused(tmp_path):
    settings = job_settings(tmp_path)
    lock = lock_checkpoints(settings.checkpoint_folder, job="maintenance")
    try:
        with pytest.raises(SettingsError, match="another maintenance job"):
            maintain_once(settings, stopping=threading.Event())
    finally:
        lock.close()


def test_a_snapshot_inside_the_retention_is_read_as_it_was_and_told_ones_stay_ancestors(settings, tmp_path):
    tables = open_writable_tables(settings)
    first = tables.merge_bars(bars(range(3)), reached=HISTORY, batch_id=0)
    for minute in range(3, 9):
        tables.merge_bars(bars(range(minute, minute + 1)), reached=HISTORY, batch_id=minute)
    told = open_tables(settings).bars_snapshot_id()
    then = contents(settings, OHLC_TABLE, key=OHLC_KEY, snapshot_id=first)
    counters = Counters()
    turns = MaintenanceTurns(job_settings(tmp_path), counters)
    assert turns.run(Work(), stopping=threading.Event())
    turns.close()
    assert counters.get("maintenance.files.compacted") == 7
    assert contents(settings, OHLC_TABLE, key=OHLC_KEY, snapshot_id=first) == then
    found, head, unseen = open_tables(settings).read_bars_since(
        "BTC/USDT.BINANCE", 60, within=EVERYTHING, snapshot_ids=(first, told)
    )
    assert (len(found), unseen) == (9, [])
    assert head not in (first, told)


def test_a_kill_in_the_middle_leaves_the_table_readable_and_a_later_turn_removes_what_was_left(settings, tmp_path):
    tables = open_writable_tables(settings)
    for number in range(16):
        add_ticks(tables, range(number * 10, number * 10 + 10), ticker=f"T{number % 4}/USDT.BINANCE")
    before = contents(settings, TICKS_TABLE, key=TICKS_KEY)
    on_disk = files_on_disk(tmp_path, TICKS_TABLE)
    job = job_settings(tmp_path)
    given = job.model_dump(mode="json", exclude_unset=True)
    process = Process(
        [sys.executable, "-c", "from relay.cli import main; main()", "job", "maintenance", "--once"],
        log=tmp_path / "maintenance.log",
        environment={f"RELAY_JOB_{name.upper()}": str(value) for name, value in given.items()},
    )
    wait_until(
        lambda: {p for p in files_on_disk(tmp_path, TICKS_TABLE) - on_disk if p.suffix == ".parquet"},
        what="the first new file",
    )
    os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    assert contents(settings, TICKS_TABLE, key=TICKS_KEY) == before
    later = datetime.now(UTC) + timedelta(days=5)
    turns = MaintenanceTurns(job, Counters(), now=lambda: later)
    assert turns.run(Work(), stopping=threading.Event())
    turns.close()
    assert contents(settings, TICKS_TABLE, key=TICKS_KEY) == before
    live = {path.removeprefix("file://") for path in files(settings, TICKS_TABLE)}
    left = {str(path) for path in files_on_disk(tmp_path, TICKS_TABLE) if path.suffix == ".parquet"}
    assert left == live


def small(path: str, *, rows: int = 10, size_bytes: int = 1_000, partition: str = "a", place: int = 0) -> SmallFile:
    return SmallFile(path, partition, place, rows, size_bytes)


def test_groups_hold_small_files_of_one_partition_in_order_up_to_their_bounds():
    rules = CompactionRules(target_file_bytes=2_500, small_file_bytes=2_000, small_files_min=3, rows_max=100)
    found = groups_of(
        [
            *(small(f"a{place}", place=9 - place) for place in range(4)),
            *(small(f"b{place}", partition="b") for place in range(2)),
            *(small(f"c{place}", partition="c", rows=40) for place in range(5)),
            small("big", size_bytes=2_000),
            small("long", rows=50),
        ],
        rules,
    )
    assert [[file.path for file in group] for group in found] == [
        ["a3", "a2"],
        ["a1", "a0"],
        ["c0", "c1"],
        ["c2", "c3"],
    ]


class FullStore(threading.Event):
    """Asked before each group; from the second one on, no file can grow beyond a page."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.limits = 0, resource.getrlimit(resource.RLIMIT_FSIZE)

    def is_set(self) -> bool:
        self.asked += 1
        if self.asked == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, self.limits[1]))
        return super().is_set()

    def mend(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self.limits)


def test_a_store_that_is_full_ends_a_compaction_with_nothing_changed_and_nothing_left_behind(settings, tmp_path):
    tables = open_writable_tables(settings)
    for minute in range(6):
        tables.merge_bars(bars(range(minute, minute + 1)), reached=HISTORY, batch_id=minute)
    rows, on_disk = contents(settings, OHLC_TABLE, key=OHLC_KEY), files_on_disk(tmp_path, OHLC_TABLE)
    catalog, store = open_catalog(settings), FullStore()
    rules = CompactionRules(small_files_min=4, rows_max=3)
    try:
        with pytest.raises(RetryableError, match="large"):
            compact(catalog, OHLC_TABLE, rules, closed_before_ns=OPEN, stopping=store)
    finally:
        store.mend()
    assert store.asked == 2, "the first group was written whole"
    assert files_on_disk(tmp_path, OHLC_TABLE) == on_disk
    done = compact(catalog, OHLC_TABLE, rules, closed_before_ns=OPEN, stopping=threading.Event())
    assert (done.files_before, done.files_after) == (6, 2)
    assert contents(settings, OHLC_TABLE, key=OHLC_KEY) == rows


@pytest.mark.parametrize("damage", ["bytes", "gone"])
def test_a_damaged_file_keeps_neither_other_groups_nor_other_steps_nor_other_tables_waiting(settings, tmp_path, damage):
    tables = open_writable_tables(settings)
    for minute in range(6):
        tables.merge_bars(bars(range(minute, minute + 1)), reached=HISTORY, batch_id=minute)
        add_ticks(tables, range(10 * minute, 10 * minute + 10))
    victim = Path(files(settings, OHLC_TABLE)[0].removeprefix("file://"))
    if damage == "bytes":
        victim.write_bytes(b"x" * victim.stat().st_size)
    else:
        victim.unlink()
    rules = CompactionRules(small_files_min=4, rows_max=3)
    done = compact(open_catalog(settings), OHLC_TABLE, rules, closed_before_ns=OPEN, stopping=threading.Event())
    assert (done.files_given_up, done.files_before) == (3, 3)
    counters = Counters()
    turns = MaintenanceTurns(job_settings(tmp_path), counters, now=lambda: datetime.now(UTC) + timedelta(days=4))
    turns.run(Work(), stopping=threading.Event())
    turns.close()
    assert len(files(settings, TICKS_TABLE)) == 1
    for name in (OHLC_TABLE, TICKS_TABLE):
        assert len(open_table(open_catalog(settings), name).metadata.snapshots) == 1
