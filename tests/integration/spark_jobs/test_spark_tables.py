"""Spark and PyIceberg on the same tables: one name, one instant, and a merge in the session of its batch."""

from __future__ import annotations

import pytest

from relay.observability import Counters
from relay.tables.offsets import SourceOffsets
from relay.tables.schema import OHLC_COLUMNS, OHLC_TABLE, TABLE_COLUMNS
from spark_jobs.jobs.history.batch import MicroBatch
from spark_jobs.jobs.history.contradictions import ContradictionLog
from spark_jobs.jobs.history.writers import SparkBarsWriter
from tests.support.batches import BASE_NS, BTC, MINUTE_NS, batch, record
from tests.support.lake import bars, contents
from tests.support.spark_lake import SparkLake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TOPIC = "market-ohlc"
COLUMNS = "topic string, partition int, offset bigint, key binary, value binary"
KNOWN = SourceOffsets("history", "c", "t")


@pytest.fixture
def lake(spark, tmp_path) -> SparkLake:
    return SparkLake(spark, tmp_path)


def test_tables_of_either_side_are_seen_by_the_other_under_the_one_name_case_132(lake):
    seen = {row["tableName"] for row in lake.session.sql(f"SHOW TABLES IN {lake.name}.market").collect()}
    assert seen == set(TABLE_COLUMNS)


def test_both_read_the_same_instant_whoever_wrote_it_case_46(lake):
    lake.tables.merge_bars(bars(range(2)), reached=KNOWN.advanced({0: 1}), batch_id=0)
    columns = ", ".join(OHLC_COLUMNS.names[1:])
    table = f"{lake.name}.market.ohlc"
    lake.session.sql(f"INSERT INTO {table} SELECT 'ETH/USDT.BINANCE' AS ticker, {columns} FROM {table}")
    found = contents(lake.settings, OHLC_TABLE, key=("ticker", "start"))
    starts = found["start"].cast("int64").to_pylist()
    assert starts[:2] == starts[2:]
    rows = lake.session.sql(f"SELECT unix_micros(start) FROM {table} ORDER BY ticker, start").collect()
    assert [row[0] for row in rows] == starts


def test_a_merge_works_in_the_session_that_its_batch_belongs_to_case_142(lake):
    """What a micro-batch is made into lives in its own session; the one that began the query cannot see it."""
    other = lake.session.newSession()
    for key, value in lake.properties.items():
        other.conf.set(key, value)
        lake.session.conf.unset(key)
    try:
        frame = other.createDataFrame([(TOPIC, 0, 0, BTC.encode(), bytearray(record(batch(range(3)))))], COLUMNS)
        micro = MicroBatch(frame, batch_id=0, in_driver=False)
        writer = SparkBarsWriter(lake.name, ContradictionLog(Counters()))
        assert writer.merge(micro, TOPIC, KNOWN, KNOWN.advanced({0: 1}))
        assert not [view for view in lake.session.catalog.listTables() if view.isTemporary]
    finally:
        for key, value in lake.properties.items():
            lake.session.conf.set(key, value)
    starts = contents(lake.settings, OHLC_TABLE, key=("start",))["start"].cast("int64").to_pylist()
    assert starts == [(BASE_NS + minute * MINUTE_NS) // 1000 for minute in range(3)]
