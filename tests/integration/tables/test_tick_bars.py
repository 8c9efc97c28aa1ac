"""Bars made from ticks at rest: every revision kept once, whatever dies between two commits; the last one found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from relay.errors import RetryableError
from relay.eventlog import LogIdentity
from relay.observability import Counters
from relay.protocol.codes import ErrorCode
from relay.protocol.ranges import Range
from relay.tables import TableSettings
from relay.tables.catalog import open_catalog
from relay.tables.offsets import HISTORY_JOB
from relay.tables.reader import LakeTables, open_tables
from relay.tables.schema import COVERAGE_TABLE, NAMESPACE, OHLC_TABLE, TICK_BARS_TABLE
from relay.tables.writer import IcebergTables, open_writable_tables
from spark_jobs.jobs.history.batch import MicroBatch
from spark_jobs.jobs.history.committer import HistoryCommitter
from spark_jobs.jobs.history.contradictions import ContradictionLog
from spark_jobs.jobs.history.writers import DriverBarsWriter
from tests.support.batches import BASE_NS, BTC, MINUTE_NS, batch, record, tick_bar

TOPIC, SYMBOLS = "market-ohlc", "symbol-metadata"
LOG = {"job": HISTORY_JOB, "cluster_id": "c", "topic_id": "history"}
EVERYTHING = Range(0, 2 * 10**18)


class Frame:
    """What a micro-batch needs of a data frame."""

    def __init__(self, records: pa.Table) -> None:
        self._records = records

    def select(self, *names: str) -> Frame:
        return Frame(self._records.select(names))

    def toArrow(self) -> pa.Table:
        return self._records


class DyingTables(IcebergTables):
    """Dies before the commit to a table, as a killed driver does."""

    dies_before = ""

    def merge_bars(self, *args, **named):
        self._check(OHLC_TABLE)
        return super().merge_bars(*args, **named)

    def append(self, name, *args, **named):
        self._check(name)
        return super().append(name, *args, **named)

    def _check(self, name: str) -> None:
        if name == self.dies_before:
            raise RetryableError("killed", code=ErrorCode.STORAGE)


class Job:
    """The history job's commits over a lake, without Spark: started again as often as wanted."""

    def __init__(self, settings: TableSettings) -> None:
        self.settings, self.log, self.batches = settings, [], 0
        self.start()

    def start(self, *, dies_before: str = "") -> None:
        open_writable_tables(self.settings)
        self.tables = DyingTables(open_catalog(self.settings))
        self.tables.dies_before = dies_before
        self.counters = Counters()
        topics = {TOPIC: LogIdentity("c", "history", 1), SYMBOLS: LogIdentity("c", "symbols", 1)}
        self.committer = HistoryCommitter(self.tables, topics, self.counters)
        self.writer = DriverBarsWriter(self.tables, ContradictionLog(self.counters))
        self.position = self.committer.start_offsets()[TOPIC][0]

    def append(self, *values: bytes) -> None:
        self.log.extend(values)

    def process(self) -> None:
        """Commit what the log holds behind the position."""
        values = self.log[self.position :]
        count = len(values)
        records = pa.table(
            {
                "topic": [TOPIC] * count,
                "partition": pa.array([0] * count, pa.int32()),
                "offset": pa.array(range(self.position, len(self.log)), pa.int64()),
                "key": pa.array([BTC.encode()] * count, pa.binary()),
                "value": pa.array(values, pa.binary()),
            }
        )
        self.batches += 1
        self.committer.commit(MicroBatch(Frame(records), batch_id=self.batches, in_driver=True), self.writer)
        self.position = len(self.log)

    def lake(self) -> LakeTables:
        return open_tables(self.settings)

    def revisions(self) -> list[tuple[int, int]]:
        """Minute and revision of each stored row, in the order of the log."""
        rows = open_catalog(self.settings).load_table((NAMESPACE, TICK_BARS_TABLE)).scan().to_arrow()
        rows = rows.sort_by("log_offset")
        minutes = [
            (start // 1000 * 10**6 - BASE_NS) // MINUTE_NS for start in rows["start"].cast(pa.int64()).to_pylist()
        ]
        return list(zip(minutes, rows["revision"].to_pylist(), strict=True))

    def closes(self) -> list[int]:
        return [int(close * 100) for close in self.lake().read_bars(BTC, 60, within=EVERYTHING)["close"].to_pylist()]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(TableSettings(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"))


def starts_ns(minutes: Sequence[int]) -> list[int]:
    return [BASE_NS + minute * MINUTE_NS for minute in minutes]


def test_every_revision_is_kept_and_the_last_one_is_found(job):
    job.append(*(record(tick_bar(minute, price=100 + minute)) for minute in range(3)))
    job.process()
    job.append(record(tick_bar(1, price=201, revision=1)), record(batch(range(2, 3), price=302)))
    job.process()
    job.append(record(tick_bar(1, price=202, revision=2, made_at=0, incomplete=True)))
    job.process()
    assert job.revisions() == [(0, 0), (1, 0), (2, 0), (1, 1), (1, 2)]
    assert job.closes() == [100, 202, 302]
    lake = job.lake()
    found = lake.last_tick_bars(BTC, 60, starts_ns([2, 1, 1, 5]))
    assert list(zip(found["revision"].to_pylist(), found["log_offset"].to_pylist(), strict=True)) == [(2, 5), (0, 2)]
    assert len(lake.last_tick_bars(BTC, 300, starts_ns([1]))) == 0
    assert len(lake.last_tick_bars("ETH/USDT.BINANCE", 60, starts_ns([1]))) == 0
    assert len(lake.last_tick_bars(BTC, 60, [])) == 0
    assert lake.offsets(TICK_BARS_TABLE, **LOG).end_offsets == {0: 6}
    assert lake.offsets(TICK_BARS_TABLE, **(LOG | {"topic_id": "another"})).end_offsets == {}


@pytest.mark.parametrize("dies_before", [TICK_BARS_TABLE, OHLC_TABLE, COVERAGE_TABLE])
def test_killed_between_two_commits_nothing_is_lost_and_no_row_comes_twice(job, dies_before):
    job.append(record(tick_bar(0, price=100)))
    job.process()
    job.append(
        record(tick_bar(0, price=101, revision=1)),
        record(batch(range(1, 3), price=300)),
        record(tick_bar(1, price=200)),
        b"\x02poison",
    )
    job.start(dies_before=dies_before)
    with pytest.raises(RetryableError):
        job.process()
    # Whoever sees a revision among the bars finds it among the revisions, too.
    assert len(job.revisions()) == (1 if dies_before == TICK_BARS_TABLE else 3)
    assert job.closes() == ([101, 300, 300] if dies_before == COVERAGE_TABLE else [100])
    for _ in range(2):
        job.start()
        job.process()
        assert job.revisions() == [(0, 0), (0, 1), (1, 0)]
        assert job.closes() == [101, 300, 300]
        rows = open_catalog(job.settings).load_table((NAMESPACE, "quarantine")).scan().to_arrow()
        assert rows["offset"].to_pylist() == [4]
        assert job.lake().coverage(BTC, 60, within=EVERYTHING) == [Range(*starts_ns([1, 3]))]


def test_bars_made_from_ticks_alone_move_the_start_and_what_is_covered(job):
    """Else every start would read the log of days again, and the manager would never see it read to its end."""
    job.append(record(batch(range(2))))
    job.process()
    for minute in range(5, 8):
        job.append(record(tick_bar(minute)))
        job.process()
    assert job.lake().log_reached("c", "history") == {0: 4}
    job.start()
    assert job.position == 4
    assert job.tables.offsets(COVERAGE_TABLE, **LOG).end_offsets == {0: 1}
    job.append(record(batch(range(8, 9))), record(tick_bar(8)))
    job.start(dies_before=COVERAGE_TABLE)
    with pytest.raises(RetryableError):
        job.process()
    assert job.lake().log_reached("c", "history") == {0: 4}
    job.start()
    assert job.position == 4
    job.process()
    assert job.lake().log_reached("c", "history") == {0: 6}


def test_a_lake_without_bars_made_from_ticks_starts_where_it_did(job):
    job.append(record(batch(range(2))), record(batch(range(2, 4))))
    job.process()
    job.start()
    assert job.position == 2


def test_the_table_is_made_in_a_lake_from_before_it(job):
    open_catalog(job.settings).drop_table((NAMESPACE, TICK_BARS_TABLE))
    lake = job.lake()
    assert len(lake.last_tick_bars(BTC, 60, starts_ns([1]))) == 0
    assert lake.offsets(TICK_BARS_TABLE, **LOG).end_offsets == {}
    assert lake.log_reached("c", "history") == {}
    job.start()
    job.append(record(tick_bar(1)))
    job.process()
    assert job.revisions() == [(1, 0)]


def test_of_many_tickers_and_periods_the_last_revisions_come_by_one_scan(job):
    job.append(record(tick_bar(0, price=100)), record(tick_bar(0, price=101, revision=1)), record(tick_bar(3)))
    job.process()
    keys = job.lake().last_tick_bars(BTC, 60, starts_ns([0, 3])).select(["ticker", "period_seconds", "start"])
    other = keys.set_column(0, "ticker", pa.array(["ETH/USDT.BINANCE"] * len(keys))).cast(keys.schema)
    found = job.lake().last_tick_bars_of(pa.concat_tables([other, keys]))
    assert found["revision"].to_pylist() == [1, 0]
    assert job.lake().last_tick_bars_of(other).num_rows == 0
    part = Range(starts_ns([0])[0], starts_ns([3])[0])
    within = job.lake().tick_bars_within(BTC, 60, within=part)
    assert list(zip(within["revision"].to_pylist(), map(int, within["close"].to_pylist()), strict=True)) == [(1, 1)]
    assert job.lake().tick_bars_within(BTC, 60, within=EVERYTHING).num_rows == 2
    assert job.lake().tick_bars_within(BTC, 1, within=EVERYTHING).num_rows == 0


def test_what_was_replaced_and_refused_is_counted_and_logged_with_its_numbers(job, caplog):
    job.append(record(tick_bar(0, price=100)), record(batch(range(1, 2), price=300)))
    job.process()
    job.append(record(batch(range(1), price=101)), record(tick_bar(1, price=299, trades=3)))
    with caplog.at_level("WARNING"):
        job.process()
    assert (job.counters.get("history.tick_bars.replaced"), job.counters.get("history.tick_bars.refused")) == (1, 1)
    text = caplog.text
    assert "tick_bars_contradicted replaced=1 refused=1" in text
    assert "event=replaced numbers=open:1.000000000000000000/1.010000000000000000,high:" in text
    assert "volume" not in text.split("numbers=")[1]
