"""market.ticks: unique by (ticker, trade_number), whatever comes twice, late, or after a restart."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from relay.protocol.envelope import encode_record
from relay.protocol.ranges import Range
from relay.protocol.v1 import market_pb2
from relay.tables.catalog import TableSettings, open_catalog
from relay.tables.offsets import SourceOffsets
from relay.tables.reader import LakeTables, open_tables
from relay.tables.schema import TICKS_TABLE
from relay.tables.writer import IcebergTables, open_writable_tables
from spark_jobs.jobs.ticks.decode import decode_ticks

BTC, ETH = "BTC/USDT.BINANCE", "ETH/USDT.BINANCE"
SECOND = 10**9
T0 = 1_700_000_000 * SECOND
EVERYTHING = Range(0, 4 * 10**18)


def rows(numbers: Iterable[int], ticker: str = BTC, *, spacing_ns: int = SECOND, shift_ns: int = 0) -> pa.Table:
    values = [
        encode_record(
            market_pb2.Tick(
                trade_id=str(n),
                ticker=ticker,
                timestamp=T0 + n * spacing_ns + shift_ns,
                price=100 + n,
                amount=1,
                price_decimals=2,
            )
        )
        for n in numbers
    ]
    records = pa.table(
        {
            "topic": ["t"] * len(values),
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "key": pa.array([ticker.encode()] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )
    return decode_ticks(records, seen_at_us=0).ticks


@pytest.fixture
def settings(tmp_path: Path) -> TableSettings:
    return TableSettings(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")


@pytest.fixture
def writer(settings: TableSettings) -> IcebergTables:
    return open_writable_tables(settings)


@pytest.fixture
def reader(settings: TableSettings, writer: IcebergTables) -> LakeTables:
    return open_tables(settings)


def numbers(reader: LakeTables, ticker: str = BTC) -> list[int]:
    return reader.read_ticks(ticker, within=EVERYTHING)["trade_number"].to_pylist()


def append(writer: IcebergTables, table: pa.Table, batch_id: int = 1) -> int:
    reached = SourceOffsets("ticks", "c", "t", {0: batch_id})
    return writer.append_ticks(table, reached=reached, batch_id=batch_id)


def test_a_trade_that_comes_again_in_a_batch_or_later_is_stored_once(writer: IcebergTables, reader: LakeTables) -> None:
    assert append(writer, rows([1, 2, 2, 3])) == 3
    assert append(writer, rows([3, 4]), 2) == 1
    assert append(writer, rows([2], ETH), 3) == 1
    assert numbers(reader) == [1, 2, 3, 4]
    assert numbers(reader, ETH) == [2]


def test_a_trade_whose_time_came_in_another_unit_is_stored_once(writer: IcebergTables, reader: LakeTables) -> None:
    append(writer, rows([1, 2, 3], shift_ns=456_000))
    assert append(writer, rows([4, 5], shift_ns=456_000), 2) == 2
    assert append(writer, rows([3]), 3) == 0
    assert numbers(reader) == [1, 2, 3, 4, 5]


def test_a_filled_hole_is_stored_and_its_neighbours_are_not_doubled(writer: IcebergTables, reader: LakeTables) -> None:
    append(writer, rows([1, 2, 8, 9]))
    assert append(writer, rows(range(1, 10)), 2) == 5
    assert numbers(reader) == list(range(1, 10))


def test_after_a_restart_repeats_above_the_first_batch_are_known_too(
    settings: TableSettings, writer: IcebergTables, reader: LakeTables
) -> None:
    append(writer, rows([*range(1, 40), *range(60, 100)]))
    again = open_writable_tables(settings)
    assert append(again, rows([45, 46]), 2) == 2
    assert append(again, rows(range(90, 110)), 3) == 10
    assert numbers(reader) == [*range(1, 40), 45, 46, *range(60, 110)]


def test_any_order_of_batches_and_restarts_leaves_each_trade_once(
    settings: TableSettings, writer: IcebergTables, reader: LakeTables
) -> None:
    dice = random.Random(7)
    expected: set[int] = set()
    for batch_id in range(1, 13):
        first = dice.randrange(0, 200)
        batch = [n for n in range(first, first + dice.randrange(1, 40)) if dice.random() > 0.1]
        if not batch:
            continue
        dice.shuffle(batch)
        assert append(writer, rows(batch), batch_id) == len(set(batch) - expected)
        expected |= set(batch)
        if dice.random() < 0.4:
            writer = open_writable_tables(settings)
    assert numbers(reader) == sorted(expected)


def test_ticks_are_partitioned_by_day_and_bucket_so_that_a_day_is_read_alone(
    settings: TableSettings, writer: IcebergTables, reader: LakeTables
) -> None:
    day = 86_400 * SECOND
    append(writer, rows(range(5), spacing_ns=day))
    table = open_catalog(settings).load_table(("market", TICKS_TABLE))
    names = [field.name for field in table.spec().fields]
    assert names == ["time_day", "ticker_bucket"]
    within = Range(T0 + 2 * day, T0 + 3 * day)
    assert reader.read_ticks(BTC, within=within)["trade_number"].to_pylist() == [2]
    plan = list(
        table.scan(
            row_filter=f"time_ns >= {within.start_ns} and time >= '2023-11-16T22:13:20+00:00' "
            f"and time < '2023-11-17T22:13:20+00:00'"
        ).plan_files()
    )
    assert len(plan) <= 2
