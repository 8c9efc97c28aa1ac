"""Maintenance beside Spark: its readers and its writer, and Spark's own procedures on the same tables."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from relay.observability import Counters
from relay.tables.catalog import open_catalog, open_table
from relay.tables.schema import OHLC_TABLE, TICKS_TABLE
from relay.tables.writer import open_writable_tables
from spark_jobs.jobs.history.batch import MicroBatch
from spark_jobs.jobs.history.contradictions import ContradictionLog
from spark_jobs.jobs.history.writers import SparkBarsWriter
from tests.support.batches import BTC, batch, record
from tests.support.lake import add_ticks, bars, contents
from tests.support.processes import wait_until
from tests.support.spark_lake import SparkLake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TICKS_KEY = ("ticker", "trade_number")
TOPIC = "market-ohlc"
COLUMNS = "topic string, partition int, offset bigint, key binary, value binary"


def offsets(lake: SparkLake) -> dict[int, int]:
    again = open_writable_tables(lake.settings)
    return dict(again.offsets("ticks", job="ticks", cluster_id="cluster", topic_id="topic").end_offsets)


@pytest.fixture
def lake(spark, tmp_path) -> SparkLake:
    return SparkLake(spark, tmp_path)


def test_spark_reads_the_same_rows_after_files_were_put_together(lake):
    for number in range(6):
        add_ticks(lake.tables, range(number * 10, number * 10 + 10))
    before = lake.checksum(TICKS_TABLE)
    assert before[0] == 60
    assert lake.compact(TICKS_TABLE).files_before == 6
    assert lake.checksum(TICKS_TABLE) == before


def test_procedures_of_spark_confuse_neither_offsets_nor_what_is_known_of_ticks(lake):
    for number in range(6):
        add_ticks(lake.tables, range(number * 10, number * 10 + 10))
    rows = contents(lake.settings, TICKS_TABLE, key=TICKS_KEY)
    name = f"'market.{TICKS_TABLE}'"
    [done] = lake.call("rewrite_data_files", f"table => {name}, options => map('rewrite-all', 'true')")
    assert done["rewritten_data_files_count"] == 6
    lake.call("rewrite_manifests", name)
    assert contents(lake.settings, TICKS_TABLE, key=TICKS_KEY) == rows
    assert offsets(lake) == {0: 60}
    # The writer that was open goes on, a replay adds nothing, and so does one that begins after it.
    add_ticks(lake.tables, range(55, 70))
    lake.call("expire_snapshots", f"table => {name}, older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")
    assert offsets(lake) == {0: 70}
    add_ticks(open_writable_tables(lake.settings), range(65, 80))
    numbers = contents(lake.settings, TICKS_TABLE, key=TICKS_KEY)["trade_number"].to_pylist()
    assert numbers == list(range(80))
    head = open_table(open_catalog(lake.settings), TICKS_TABLE)
    assert "replace" not in {s.summary.operation.value for s in head.metadata.snapshots[-1:]}


@pytest.mark.soak
def test_a_merge_of_spark_that_loses_its_files_to_maintenance_is_done_again_case_126(lake, caplog):
    """While Spark merges, the files that it has read are put together under it, until a merge has lost by it."""
    caplog.set_level(logging.INFO)
    writer = SparkBarsWriter(lake.name, ContradictionLog(Counters()))
    known = lake.tables.offsets(OHLC_TABLE, job="history", cluster_id="c", topic_id="t")
    tracker = lake.session.sparkContext.statusTracker()
    is_over = threading.Event()

    def has_lost() -> bool:
        return any("merge_lost_a_race" in message for message in caplog.messages)

    def maintain() -> None:
        tables, number = open_writable_tables(lake.settings), 1_000
        while not (has_lost() or is_over.is_set()):
            wait_until(lambda: tracker.getActiveJobsIds() or is_over.is_set(), what="a Spark job", deadline_s=120)
            number += 1
            rows = bars(range(number, number + 1), ticker="ETH/USDT.BINANCE")
            assert tables.merge_bars(rows, reached=known, batch_id=number)
            lake.compact(OHLC_TABLE)
            wait_until(lambda: not tracker.getActiveJobsIds(), what="the end of the Spark job", deadline_s=120)

    with ThreadPoolExecutor(1) as pool:
        maintaining = pool.submit(maintain)
        try:
            for place in range(4):
                value = record(batch(range(place, place + 4), fetched_at=place + 1, price=1_000 + place))
                frame = lake.session.createDataFrame([(TOPIC, 0, place, BTC.encode(), bytearray(value))], COLUMNS)
                micro = MicroBatch(frame, batch_id=place, in_driver=False)
                reached = known.advanced({0: place + 1})
                assert writer.merge(micro, TOPIC, known, reached)
                known = reached
        finally:
            is_over.set()
        maintaining.result(120)
    assert has_lost()
    rows = contents(lake.settings, OHLC_TABLE, key=("ticker", "start"))
    prices = [int(close * 100) for close in rows["close"].to_pylist() if close > 1]
    assert prices == [1_000 + min(minute, 3) for minute in range(7)]
