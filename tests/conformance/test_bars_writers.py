"""Both writers of bars leave the same table: by PyIceberg from the driver, by Spark's MERGE from the executors."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from relay.observability import Counters
from relay.protocol.ranges import Range
from relay.protocol.v1 import market_pb2
from relay.tables.catalog import open_catalog
from relay.tables.offsets import SourceOffsets
from relay.tables.reader import open_tables
from relay.tables.schema import NAMESPACE, OHLC_TABLE
from relay.tables.writer import open_writable_tables
from spark_jobs.jobs.history.batch import MicroBatch
from spark_jobs.jobs.history.contradictions import ContradictionLog
from spark_jobs.jobs.history.writers import DriverBarsWriter, SparkBarsWriter
from tests.support.batches import BTC, FETCHED_NS, batch, record, tick_bar

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
        self.counters = Counters()
        said = ContradictionLog(self.counters)
        self.writer = DriverBarsWriter(self.tables, said) if self.in_driver else SparkBarsWriter(catalog, said)
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

    def contradicted(self) -> tuple[int, int]:
        """How many bars made from ticks were replaced and refused for a fetched one with other numbers."""
        return self.counters.get("history.tick_bars.replaced"), self.counters.get("history.tick_bars.refused")


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


def test_a_fetched_bar_stays_before_one_made_from_ticks_whatever_came_first_and_says_what_differs(table):
    more = {"quote_volume": "63.1950", "buy_volume": "1", "sell_volume": "0.5", "first_trade_id": "1"}
    table.merge(
        record(tick_bar(0, price=700)),
        record(tick_bar(1, price=701)),
        record(tick_bar(2, **more)),
        record(tick_bar(3, price=703, incomplete=True)),
        first_offset=0,
    )
    assert prices(table) == [700, 701, 4_213, 703]
    rolled_up_by_an_ingestor = batch(range(3, 4), price=803)
    rolled_up_by_an_ingestor.rows[0].source = market_pb2.OHLC.ROLLUP
    table.merge(
        record(batch(range(1, 2), price=801)),
        record(batch(range(2, 3))),
        record(rolled_up_by_an_ingestor),
        record(tick_bar(4, price=704, made_at=10**9)),
        record(batch(range(4, 5), price=804)),
        first_offset=4,
    )
    assert prices(table) == [700, 801, 4_213, 803, 804]
    # Of minute 2 nothing differs: a number that one of both lacks contradicts nothing.
    assert table.contradicted() == (2, 1)
    row = table.rows()[2]
    assert (row["source"], row["is_fetched"], row["quote_volume"]) == ("EXCHANGE", True, None)
    later = {"revision": 9, "made_at": 10**9}
    table.merge(
        record(tick_bar(1, price=901, **later)),
        record(tick_bar(2, **later)),
        record(tick_bar(3, price=903, incomplete=True, **later)),
        first_offset=9,
    )
    assert prices(table) == [700, 801, 4_213, 803, 804]
    assert table.contradicted() == (2, 3)


def test_of_bars_made_from_ticks_the_last_revision_stays_and_incomplete_yields_to_complete_of_the_same(table):
    def made(minute: int, price: int, revision: int, **fields: object) -> bytes:
        return record(tick_bar(minute, price=price, revision=revision, **fields))

    table.merge(made(0, 100, 0), made(1, 200, 0), made(2, 300, 1), made(3, 400, 0, incomplete=True), first_offset=0)
    table.merge(
        made(0, 101, 1),
        made(1, 201, 1, incomplete=True),
        made(2, 301, 1, incomplete=True, made_at=5),
        made(3, 401, 0),
        first_offset=4,
    )
    assert prices(table) == [101, 201, 300, 401]
    assert [row["incomplete"] for row in table.rows()] == [False, True, False, False]
    assert [row["fetched_at_ns"] for row in table.rows()] == [FETCHED_NS + 1] * 4
    assert table.contradicted() == (0, 0)


def test_any_order_of_both_kinds_leaves_what_the_rule_says(table):
    dice = random.Random(5)
    messages = [_any_message(dice) for _ in range(60)]
    for first in (0, 30):
        table.merge(*map(record, messages[first : first + 30]), first_offset=first)
    assert [(row["start"].timestamp(), int(row["close"] * 100), row["log_offset"]) for row in table.rows()] == sorted(
        _expected(messages)
    )


def _any_message(dice: random.Random) -> market_pb2.OHLC | market_pb2.OHLCBatch:
    minute, price, at = dice.randrange(12), dice.randrange(100, 999), dice.randrange(3)
    if dice.random() < 0.2:
        return batch(range(minute, minute + 2), price=price, fetched_at=at)
    revision, incomplete = dice.randrange(3), dice.random() < 0.4
    return tick_bar(minute, price=price, made_at=at, revision=revision, incomplete=incomplete)


def _expected(messages: Iterable[market_pb2.OHLC | market_pb2.OHLCBatch]) -> Iterable[tuple[float, int, int]]:
    """The rule in plain words of Python."""
    best: dict[int, tuple] = {}
    for offset, message in enumerate(messages):
        if isinstance(message, market_pb2.OHLCBatch):
            ranked = [(row, (1, 0, 0, message.fetched_at, offset)) for row in message.rows]
        else:
            rank = (0, message.revision, not message.incomplete, message.stamp.published_at, offset)
            ranked = [(message, rank)]
        for row, rank in ranked:
            best[row.timestamp] = max(best.get(row.timestamp, ((-1,), 0)), (rank, row.close))
    return [(start_ns / 10**9, close, rank[-1]) for start_ns, (rank, close) in best.items()]


def test_a_table_from_before_the_column_is_read_and_written_and_its_bars_count_as_fetched(table):
    table.merge(record(batch(range(2), price=500)), first_offset=0)
    name = (NAMESPACE, OHLC_TABLE)
    old = open_catalog(table.settings.tables()).load_table(name)
    with old.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("is_fetched")
    assert prices(table) == [500, 500]
    assert [row["is_fetched"] for row in table.rows()] == [None, None]
    open_writable_tables(table.settings.tables())
    assert "is_fetched" in open_catalog(table.settings.tables()).load_table(name).schema().column_names
    table.merge(
        record(tick_bar(1, price=700)),
        record(tick_bar(2, price=701)),
        record(batch(range(1), price=501, fetched_at=2)),
        first_offset=1,
    )
    assert prices(table) == [501, 500, 701]
    assert [row["is_fetched"] for row in table.rows()] == [True, None, False]
