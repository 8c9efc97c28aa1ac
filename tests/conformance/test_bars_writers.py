"""Both writers of bars leave the same table: by PyIceberg from the driver, by Spark's MERGE from the executors."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay.protocol.ranges import Range
from relay.tables.offsets import SourceOffsets
from relay.tables.reader import open_tables
from relay.tables.schema import OHLC_TABLE
from relay.tables.writer import open_writable_tables
from spark_jobs.jobs.history.batch import MicroBatch
from spark_jobs.jobs.history.writers import DriverBarsWriter, SparkBarsWriter
from tests.support.batches import BTC, batch, record

pytestmark = pytest.mark.spark

TOPIC = "market-ohlc"
COLUMNS = "topic string, partition int, offset bigint, key binary, value binary"
EVERYTHING = Range(0, 2 * 10**18)


class Table:
    """A table with one writer, fed micro-batches as the job feeds them."""

    def __init__(self, kind: str, spark, folder: Path) -> None:
        self._session, base = spark
        catalog = f"lake_{kind}_{abs(hash(folder))}"
        self.settings = base.model_copy(
            update={
                "catalog_uri": f"sqlite:///{folder}/catalog.db",
                "warehouse": f"file://{folder}/warehouse",
                "catalog_name": catalog,
            }
        )
        from spark_jobs.jobs.session import spark_catalog_properties

        for key, value in spark_catalog_properties(self.settings).items():
            if key.startswith("spark.sql.catalog"):
                self._session.conf.set(key, value)
        self.tables = open_writable_tables(self.settings.tables())
        self.in_driver = kind == "driver"
        self.writer = DriverBarsWriter(self.tables) if self.in_driver else SparkBarsWriter(catalog)
        self.batches = 0

    def merge(self, *values: bytes, first_offset: int) -> bool:
        rows = [(TOPIC, 0, first_offset + i, BTC.encode(), bytearray(v)) for i, v in enumerate(values)]
        frame = self._session.createDataFrame(rows, COLUMNS)
        micro = MicroBatch(frame, batch_id=self.batches, in_driver=self.in_driver)
        self.batches += 1
        kept = self.offsets()
        return self.writer.merge(micro, TOPIC, kept, kept.advanced(micro.end_offsets(TOPIC)))

    def offsets(self) -> SourceOffsets:
        return self.tables.offsets(OHLC_TABLE, job="history", cluster_id="c", topic_id="t")

    def rows(self) -> list[dict]:
        return open_tables(self.settings.tables()).read_bars(BTC, 60, within=EVERYTHING).to_pylist()


@pytest.fixture(params=["driver", "spark"])
def table(request, spark, tmp_path) -> Table:
    return Table(request.param, spark, tmp_path)


def prices(table: Table) -> list[int]:
    return [int(row["close"] * 100) for row in table.rows()]


def test_new_bars_are_added_and_offsets_kept(table):
    assert table.merge(record(batch(range(3))), record(batch(range(3, 5))), first_offset=0)
    assert prices(table) == [4_213] * 5
    assert table.offsets().end_offsets == {0: 2}


def test_within_one_batch_the_later_fetch_wins_whatever_its_place(table):
    newer, older = batch(range(2), fetched_at=9, price=900), batch(range(2), fetched_at=5, price=500)
    table.merge(record(newer), record(older), first_offset=0)
    assert prices(table) == [900, 900]


def test_across_batches_the_later_fetch_wins_and_equal_times_go_by_log_position(table):
    table.merge(record(batch(range(3), fetched_at=5, price=500)), first_offset=0)
    table.merge(record(batch(range(1), fetched_at=4, price=400)), first_offset=1)
    table.merge(record(batch(range(1, 2), fetched_at=5, price=501)), first_offset=2)
    assert prices(table) == [500, 501, 500]


def test_a_replayed_batch_changes_nothing(table):
    values = [record(batch(range(3), fetched_at=5))]
    table.merge(*values, first_offset=0)
    before = table.rows()
    assert not table.merge(*values, first_offset=0) or table.rows() == before
    assert table.rows() == before
    assert table.offsets().end_offsets == {0: 1}


def test_a_poison_record_and_a_batch_without_rows_do_no_harm(table):
    table.merge(b"\x02poison", record(batch(range(0))), record(batch(range(2))), first_offset=0)
    assert prices(table) == [4_213, 4_213]
