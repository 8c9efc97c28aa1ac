"""Symbol metadata through the history job's commits: changes, delisting, crashes, old lakes, changed denominators."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from relay.errors import RetryableError
from relay.eventlog import LogIdentity
from relay.observability import Counters
from relay.protocol.codes import ErrorCode
from relay.protocol.ranges import Range
from relay.protocol.v1 import market_pb2
from relay.tables import TableSettings
from relay.tables.catalog import open_catalog
from relay.tables.reader import LakeTables, open_tables
from relay.tables.schema import NAMESPACE, SYMBOL_CHANGES_TABLE, SYMBOL_TABLE
from relay.tables.writer import IcebergTables, open_writable_tables
from relay_client.symbols import states_of
from spark_jobs.jobs.history.batch import MicroBatch
from spark_jobs.jobs.history.committer import Committed, HistoryCommitter
from spark_jobs.jobs.history.contradictions import ContradictionLog
from spark_jobs.jobs.history.writers import DriverBarsWriter
from tests.support.batches import BTC, batch, record

HISTORY, SYMBOLS = "market-ohlc", "symbol-metadata"
ETH = "ETH/USDT.BINANCE"
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
    """Dies before the present rows are committed, as a killed driver does."""

    is_dying = False

    def merge_markets(self, *args, **named):
        if self.is_dying:
            raise RetryableError("killed", code=ErrorCode.STORAGE)
        return super().merge_markets(*args, **named)


class Job:
    """The history job's commits over a lake, without Spark; its log is two lists."""

    def __init__(self, settings: TableSettings) -> None:
        self.settings, self.batches = settings, 0
        self.logs: dict[str, list[bytes]] = {HISTORY: [], SYMBOLS: []}
        self.start()

    def start(self) -> None:
        open_writable_tables(self.settings)
        self.tables, self.counters = DyingTables(open_catalog(self.settings)), Counters()
        topics = {HISTORY: LogIdentity("c", "history", 1), SYMBOLS: LogIdentity("c", "symbols", 1)}
        self.committer = HistoryCommitter(self.tables, topics, self.counters)
        self.positions = {topic: starts[0] for topic, starts in self.committer.start_offsets().items()}

    def list_markets(self, name: str, at: int, *tickers: str, **facts: object) -> None:
        for ticker in tickers:
            market = market_pb2.Market(
                market_id=ticker, exchange_id="BINANCE", updated_at=at, listing_id=name, listing_count=len(tickers)
            )
            for field, value in facts.items():
                setattr(market, field, value)
            self.logs[SYMBOLS].append(record(market))

    def process(self) -> Committed:
        """Commit what the logs hold behind the positions."""
        rows = [
            {"topic": topic, "partition": 0, "offset": offset, "key": BTC.encode(), "value": values[offset]}
            for topic, values in self.logs.items()
            for offset in range(self.positions[topic], len(values))
        ]
        kinds = [pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.binary()]
        names = ["topic", "partition", "offset", "key", "value"]
        records = pa.Table.from_pylist(rows, schema=pa.schema(list(zip(names, kinds, strict=True))))
        self.batches += 1
        writer = DriverBarsWriter(self.tables, ContradictionLog(self.counters))
        done = self.committer.commit(MicroBatch(Frame(records), batch_id=self.batches, in_driver=True), writer)
        self.positions = {topic: len(values) for topic, values in self.logs.items()}
        return done

    def lake(self) -> LakeTables:
        return open_tables(self.settings)

    def states(self, ticker: str) -> list[tuple[int, int | None, str]]:
        return [
            (s.valid_from_ns, s.valid_to_ns, s.symbol.status) for s in states_of(self.lake().market_changes(ticker))
        ]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(TableSettings(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"))


def test_changes_and_aliases_have_ranges_and_what_vanished_is_delisted_case_69(job):
    """Case 69: a renamed market: the old symbol's end is known, and the update tells how many have changed."""
    job.list_markets("l1", 10, BTC, ETH)
    assert (job.process().markets_changed, job.states(ETH)) == (2, [(10, None, "ACTIVE")])
    job.list_markets("l2", 20, BTC, ETH)
    done = job.process()
    assert (done.markets_changed, done.exchanges, done.symbol_snapshot_id > 0) == (0, {"BINANCE"}, True)
    job.list_markets("l3", 30, BTC, alias_of="BTC/USDC.BINANCE")
    assert job.process().markets_changed == 2
    assert job.states(ETH) == [(10, 30, "ACTIVE"), (30, None, "DELISTED")]
    job.list_markets("l4", 40, BTC)
    job.process()
    aliases = [(s.valid_from_ns, s.valid_to_ns, s.symbol.alias_of) for s in states_of(job.lake().market_changes(BTC))]
    assert aliases == [(10, 30, None), (30, 40, "BTC/USDC.BINANCE"), (40, None, None)]
    markets, _ = job.lake().markets(exchange="BINANCE")
    assert [(m.market_id, m.valid_from, market_pb2.Market.Status.Name(m.status)) for m in markets] == [
        (BTC, 40, "ACTIVE"),
        (ETH, 30, "DELISTED"),
    ]


@pytest.mark.parametrize("more", [False, True])
def test_a_crash_between_the_two_commits_keeps_each_change_once(job, more):
    job.list_markets("l1", 10, BTC, ETH)
    job.process()
    job.list_markets("l2", 20, BTC, native_symbol="B")
    job.tables.is_dying = True
    with pytest.raises(RetryableError):
        job.process()
    assert job.states(ETH)[-1] == (20, None, "DELISTED")
    if more:
        job.list_markets("l3", 30, BTC, ETH, native_symbol="C")
    job.start()
    job.process()
    job.start()
    job.process()
    changes = [(m.valid_from, m.native_symbol) for m in job.lake().market_changes(BTC)]
    assert changes == [(10, ""), (20, "B"), *([(30, "C")] if more else [])]
    assert len(job.states(ETH)) == (3 if more else 2)


def test_a_lake_of_before_gets_the_columns_and_its_rows_are_the_beginning(job):
    columns = ("listing_id", "listing_count", "valid_from_ns")
    job.list_markets("l1", 10, BTC, ETH)
    job.process()
    catalog = open_catalog(job.settings)
    with catalog.load_table((NAMESPACE, SYMBOL_TABLE)).update_schema() as change:
        for column in columns:
            change.delete_column(column)
    catalog.drop_table((NAMESPACE, SYMBOL_CHANGES_TABLE))
    found, _ = job.lake().markets(exchange="BINANCE")
    assert [m.HasField("valid_from") for m in found] == [False, False]
    assert job.lake().market_changes(BTC) == []
    job.start()
    job.list_markets("l2", 20, BTC)
    job.process()
    assert job.states(BTC) == [(10, None, "ACTIVE")]
    assert job.states(ETH) == [(10, 20, "ACTIVE"), (20, None, "DELISTED")]


def test_denominators_that_change_leave_stored_numbers_as_they_were(job):
    job.list_markets("l1", 10, BTC, tick_denom=100, base_denom=10)
    first = batch(range(3), price=4_213)
    job.logs[HISTORY].append(record(first))
    job.process()
    before = job.lake().read_bars(BTC, 60, within=EVERYTHING)
    job.list_markets("l2", 20, BTC, tick_denom=10_000, base_denom=1_000)
    second = batch(range(3, 5), price=421_300)
    for row in second.rows:
        row.price_decimals = 4
    second.market.tick_denom = 10_000
    job.logs[HISTORY].append(record(second))
    job.process()
    after = job.lake().read_bars(BTC, 60, within=EVERYTHING)
    assert after.slice(0, 3) == before
    assert set(after["close"].to_pylist()[:3]) == {Decimal("42.13")}
    assert {close.quantize(Decimal("0.01")) for close in after["close"].to_pylist()} == {Decimal("42.13")}
    assert [(m.valid_from, m.tick_denom) for m in job.lake().market_changes(BTC)] == [(10, 100), (20, 10_000)]
