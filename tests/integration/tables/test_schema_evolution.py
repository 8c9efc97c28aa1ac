"""Old bytes under a newer schema, newer bytes under an old one, tables of another age: all stays readable."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from relay.protocol.envelope import decode_record, encode_record
from relay.protocol.ranges import Range
from relay.protocol.v1 import market_pb2
from relay.tables.catalog import open_catalog, open_table
from relay.tables.offsets import SourceOffsets
from relay.tables.reader import open_tables
from relay.tables.schema import NAMESPACE, OHLC_COLUMNS, OHLC_TABLE, TICKS_TABLE
from relay.tables.settings import TableSettings
from relay.tables.writer import open_writable_tables
from spark_jobs.jobs.history.decode import decode_records
from spark_jobs.jobs.records import RECORD_COLUMNS
from spark_jobs.jobs.ticks.decode import decode_ticks
from tests.support.batches import BTC, FETCHED_NS, batch, tick_bar
from tests.support.lake import bars, contents, lake_in

EVERYTHING = Range(0, 4 * 10**18)
REACHED = SourceOffsets("history", "c", "t", {0: 9})
NEWER = bytes([0x82, 0x7D, 5]) + b"newer"
"""Field 2000 of a later version, a text."""


@pytest.fixture
def settings(tmp_path: Path) -> TableSettings:
    return lake_in(tmp_path)


def records(*values: bytes) -> pa.Table:
    kinds = (pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.binary())
    rows = [("t", 0, offset, BTC.encode(), value) for offset, value in enumerate(values)]
    return pa.table({n: pa.array(c, k) for n, k, c in zip(RECORD_COLUMNS, kinds, zip(*rows, strict=True), strict=True)})


def test_bytes_of_a_newer_version_are_read_without_what_is_unknown_from_the_record_into_the_table(settings):
    plain, newer = batch(range(3), job_id="j"), batch(range(3), job_id="j")
    for row in newer.rows:
        row.MergeFromString(NEWER)
    newer.covered[0].MergeFromString(NEWER)
    newer_bytes = encode_record(newer) + NEWER
    assert newer_bytes.count(b"newer") == 5
    made = encode_record(tick_bar(7)) + NEWER
    market = encode_record(market_pb2.Market(market_id=BTC, exchange_id="BINANCE")) + NEWER
    seen_at_us = FETCHED_NS // 1000 + 10**6
    found = decode_records(records(newer_bytes, made, market), seen_at_us=seen_at_us)
    assert len(found.quarantine) == 0
    old = decode_records(records(encode_record(plain), encode_record(tick_bar(7))), seen_at_us=seen_at_us)
    assert (found.bars, found.tick_bars, found.coverage) == (old.bars, old.tick_bars, old.coverage)
    open_writable_tables(settings).merge_bars(found.bars, reached=REACHED, batch_id=0)
    assert open_tables(settings).read_bars(BTC, 60, within=EVERYTHING) == old.bars.sort_by("start")


def test_bytes_of_a_newer_tick_are_read_too(settings):
    tick = market_pb2.Tick(ticker=BTC, trade_id="7", timestamp=FETCHED_NS, price=5, amount=1)
    values = [encode_record(tick) + NEWER]
    [row] = decode_ticks(records(*values), seen_at_us=FETCHED_NS // 1000).ticks.to_pylist()
    assert (row["trade_number"], row["time_ns"]) == (7, FETCHED_NS)


def test_bytes_of_an_older_version_read_as_not_given_where_a_field_was_added():
    """Fields that came later — listings, revisions, bars made from ticks — are simply not in old bytes."""
    market = market_pb2.Market(market_id=BTC, exchange_id="BINANCE", listing_id="x", listing_count=9, alias_of="A/B.C")
    old = market_pb2.Market()
    old.CopyFrom(market)
    for added in ("listing_id", "listing_count", "alias_of"):
        old.ClearField(added)
    found = decode_records(records(encode_record(old)), seen_at_us=FETCHED_NS // 1000)
    [row] = found.markets.to_pylist()
    assert (row["listing_id"], row["listing_count"], row["alias_of"]) == (None, None, None)
    assert decode_record(encode_record(old))[1] == old


def test_rows_of_before_a_column_was_added_are_read_with_the_new_ones_and_mean_what_they_meant(settings):
    catalog = open_catalog(settings)
    catalog.create_namespace(NAMESPACE)
    before = pa.schema([column for column in OHLC_COLUMNS if column.name not in ("is_fetched", "trades")])
    catalog.create_table((NAMESPACE, OHLC_TABLE), schema=before)
    old = open_table(catalog, OHLC_TABLE)
    old.append(bars(range(2)).select(before.names))
    tables = open_writable_tables(settings)
    tables.merge_bars(bars(range(2, 4), close=2), reached=REACHED, batch_id=0)
    found = open_tables(settings).read_bars(BTC, 60, within=EVERYTHING)
    assert found["is_fetched"].to_pylist() == [None, None, True, True]
    assert found["trades"].to_pylist() == [None] * 4
    # Null means fetched: a bar made from ticks does not replace it.
    made_of_ticks = bars(range(1), close=9, fetched_at_ns=9)
    place = made_of_ticks.schema.get_field_index("is_fetched")
    made_of_ticks = made_of_ticks.set_column(place, OHLC_COLUMNS.field("is_fetched"), pa.array([False]))
    tables.merge_bars(made_of_ticks, reached=REACHED, batch_id=1)
    assert [int(c) for c in open_tables(settings).read_bars(BTC, 60, within=EVERYTHING)["close"].to_pylist()] == [
        1,
        1,
        2,
        2,
    ]


def test_a_column_that_a_newer_version_has_added_is_kept_by_writers_and_passed_over_by_readers(settings):
    tables = open_writable_tables(settings)
    tables.merge_bars(bars(range(2)), reached=REACHED, batch_id=0)
    table = open_table(open_catalog(settings), OHLC_TABLE)
    with table.update_schema() as change:
        change.union_by_name(pa.schema([pa.field("mood", pa.string())]))
    tables.merge_bars(bars(range(1), close=5, fetched_at_ns=5), reached=REACHED, batch_id=1)
    found = open_tables(settings).read_bars(BTC, 60, within=EVERYTHING)
    assert found.schema.names == OHLC_COLUMNS.names
    assert [int(close) for close in found["close"].to_pylist()] == [5, 1]
    assert contents(settings, OHLC_TABLE, key=("start",))["mood"].to_pylist() == [None, None]
    assert open_table(open_catalog(settings), TICKS_TABLE) is not None
