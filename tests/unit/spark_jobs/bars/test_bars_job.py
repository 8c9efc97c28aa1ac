"""The bars job without Spark, on a log and tables that outlive it: ended and started again at will."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from relay.errors import RetryableError
from relay.eventlog import HISTORY_TOPIC, TICK_TOPIC, LogRecord, partition_of
from relay.eventlog.memory import MemoryEventLog
from relay.observability import Counters
from relay.protocol.envelope import decode_record, encode_record
from relay.protocol.ranges import Range
from relay.protocol.v1 import market_pb2
from relay.tables.merge import latest_tick_bars
from relay.tables.offsets import SourceOffsets
from relay.tables.schema import GAPS_COLUMNS, TICK_BARS_COLUMNS
from spark_jobs.jobs.bars import job as job_module
from spark_jobs.jobs.bars.job import BarsJob
from spark_jobs.jobs.history.tick_bars import tick_bars_of, tick_bars_table
from spark_jobs.jobs.records import RECORD_COLUMNS, Record
from spark_jobs.jobs.settings import JobSettings
from spark_jobs.jobs.ticks.decode import decode_ticks
from tests.support.processes import wait_until

TICKER = "BTC/USDT.BINANCE"
S = 10**9
START = 1_700_000_040 * S
SCHEMA = pa.schema(
    [*zip(RECORD_COLUMNS, (pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.binary()), strict=True)]  # type: ignore[arg-type]
)
TIMED = SCHEMA.append(pa.field("time_ms", pa.int64()))


class Frame:
    """Stands for a micro-batch."""

    def __init__(self, records: Sequence[LogRecord]) -> None:
        self._records = [_record(r)._asdict() | {"time_ms": r.timestamp_ns // 10**6} for r in records]

    def selectExpr(self, *_: str) -> Frame:
        return self

    def toArrow(self) -> pa.Table:
        return pa.Table.from_pylist(self._records, schema=TIMED)


class Query:
    """Stands for the streaming query."""

    def __init__(self) -> None:
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True


class World:
    """A log whose every record is in the tables at once, and the job that is running now; it is the lake, too."""

    def __init__(self, folder: Path, *, partitions: int = 1) -> None:
        self.settings = JobSettings(checkpoint_folder=str(folder), topic_partitions=partitions, bars_state_seconds=3600)
        # A millisecond from record to record.
        self.log, self.said, self.query = MemoryEventLog(clock=count(time.time_ns(), 10**6).__next__), 0, Query()
        self.archived = dict.fromkeys(range(8), 10**6)
        self.shown: list[market_pb2.OHLC] = []

    def begin(self) -> World:
        self.job = BarsJob(
            self.settings,
            session=SimpleNamespace(sparkContext=SimpleNamespace(master="spark://nowhere")),  # type: ignore[arg-type]
            log=self.log,
            open_lake=lambda: self,
            hints=self,  # type: ignore[arg-type]
            counters=Counters(),
        )
        self.job.start()
        self.read_until = dict(self.job._reached)
        return self

    def again(self) -> World:
        self.job.close()
        return self.begin()

    def send(self, _: bytes, message: market_pb2.OHLC) -> None:
        self.shown.append(message)

    def trade(self, seconds: float, price: int, *, decimals: int = 0) -> World:
        self.said += 1
        time_ns = START + round(seconds * S)
        tick = market_pb2.Tick(ticker=TICKER, trade_id=str(self.said), timestamp=time_ns, price=price, amount=1)
        tick.price_decimals = decimals
        return self._say(tick)

    def beat(self, seconds: float, *, state: str = "UP") -> World:
        return self._say(
            market_pb2.Heartbeat(
                source=market_pb2.Heartbeat.INGESTOR,
                ticker=TICKER,
                exchange_time_reached=START + round(seconds * S),
                state=market_pb2.Heartbeat.State.Value(state),
            )
        )

    def turn(self) -> World:
        """Hand over what the log has got since the last turn."""
        places = [(r, r.position) for r in self._read(TICK_TOPIC)]
        new = [r for r, at in places if at.offset >= self.read_until.get(at.partition, 0)]
        self.read_until.update({at.partition: at.offset + 1 for _, at in places})
        self.job._process(Frame(new), 0)  # type: ignore[arg-type]
        return self

    def grow(self, partitions: int) -> World:
        for topic in (TICK_TOPIC, HISTORY_TOPIC):
            self.log.grow(topic, partitions)
        return self

    def logged(self) -> list[tuple[int, int, int]]:
        """(second of its start, revision, close) of the final bars in the log."""
        return [((b.timestamp - START) // S, b.revision, b.close) for b, _ in self._bars()]

    def offsets(self, name: str, *, job: str, cluster_id: str, topic_id: str) -> SourceOffsets:
        return SourceOffsets(job, cluster_id, topic_id, dict(self.archived))

    def log_reached(self, cluster_id: str, topic_id: str) -> Mapping[int, int]:
        return dict(self.archived)

    def read_ticks_of(self, tickers: Sequence[str], *, within: Range) -> pa.Table:
        table = pa.Table.from_pylist([r._asdict() for r in self._records(TICK_TOPIC)], schema=SCHEMA)
        ticks = decode_ticks(table, seen_at_us=0).ticks.sort_by([("time_ns", "ascending")])
        times = ticks["time_ns"]
        return ticks.filter(pc.and_(pc.greater_equal(times, within.start_ns), pc.less(times, within.end_ns)))

    def read_gaps_of(self, tickers: Sequence[str]) -> pa.Table:
        return GAPS_COLUMNS.empty_table()

    def last_tick_bars_of(self, keys: pa.Table) -> pa.Table:
        bars, wrong = tick_bars_of(list(self._bars()))
        assert not wrong
        return latest_tick_bars(tick_bars_table(bars))

    def tick_bars_within(self, ticker: str, period_seconds: int, *, within: Range) -> pa.Table:
        return TICK_BARS_COLUMNS.empty_table()

    def close(self) -> None:
        """Nothing is open."""

    def _say(self, message: market_pb2.Tick | market_pb2.Heartbeat) -> World:
        self.log.append(TICK_TOPIC, key=TICKER.encode(), value=encode_record(message))
        return self

    def _records(self, topic: str) -> list[Record]:
        return [_record(r) for r in self._read(topic)]

    def _read(self, topic: str) -> list[LogRecord]:
        partitions = range(len(self.log.end_offsets(topic)))
        found = [r for p in partitions for r in self.log.read(topic, partition=p, limit=10**6)]
        return sorted(found, key=lambda record: record.timestamp_ns)

    def _bars(self) -> Iterator[tuple[market_pb2.OHLC, Record]]:
        for record in self._records(HISTORY_TOPIC):
            message = decode_record(record.value or b"")[1]
            assert isinstance(message, market_pb2.OHLC)
            yield message, record


def _record(record: LogRecord) -> Record:
    at = record.position
    return Record(at.topic, at.partition, at.offset, record.key, record.value)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield from begun(World(tmp_path), monkeypatch)


@pytest.fixture
def growing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A log of two partitions; in one of three the ticker lies before the place that it has now."""
    assert (partition_of(TICKER.encode(), 2), partition_of(TICKER.encode(), 3)) == (1, 0)
    yield from begun(World(tmp_path, partitions=2), monkeypatch)


def begun(made: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(job_module, "log_stream", lambda *_, **__: None)
    monkeypatch.setattr(job_module, "start_query", lambda *_, **__: made.query)
    yield made.begin()
    made.job.close()


def first_bar(world: World) -> World:
    """A minute that was seen whole, closed at 51."""
    return world.beat(-1).trade(1, 50).trade(2, 51).beat(60).turn()


def test_a_late_trade_after_a_restart_makes_the_next_revision_not_another_first_one(world: World) -> None:
    first_bar(world)
    assert world.logged() == [(0, 0, 51)]
    world.again().trade(3, 52).beat(61).turn()
    wait_until(lambda: len(world.logged()) == 2, what="the revision", deadline_s=60)
    assert world.logged() == [(0, 0, 51), (0, 1, 52)]
    world.trade(4, 53).beat(62).turn()
    assert world.logged()[2:] == [(0, 2, 53)]


def test_a_late_trade_in_the_batch_that_ends_its_bar_is_a_revision_at_once(world: World) -> None:
    world.beat(-1).trade(1, 50).beat(60).trade(2, 51).beat(61).turn()
    assert world.logged() == [(0, 0, 50), (0, 1, 51)]


def test_a_bar_that_was_logged_and_perhaps_not_announced_is_announced_after_a_restart(world: World) -> None:
    world.beat(-1).trade(1, 50).turn().again()
    world.trade(2, 51).beat(60).trade(3, 52).beat(61).turn()
    assert world.logged() == [(0, 0, 51), (0, 1, 52)]
    world.shown.clear()
    # Killed here: what was saved before these bars counts.
    killed, world.job = world.job, None  # type: ignore[assignment]
    killed._closing.set()
    world.begin()
    assert [(bar.revision, bar.close, bar.is_final) for bar in world.shown] == [(1, 52, True)]
    assert world.turn().logged() == [(0, 0, 51), (0, 1, 52)]
    world.again()
    assert [bar.revision for bar in world.shown if bar.is_final] == [1]


def test_a_state_of_another_version_is_refused_and_the_log_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_bar(world).job.close()
    monkeypatch.setattr("spark_jobs.jobs.bars.engine.bar_book._MAGIC", b"MRBARS9\n")
    world.begin()
    assert world.read_until == {0: 0}
    assert world.turn().logged() == [(0, 0, 51)]


def test_bars_that_the_clock_ended_and_the_log_did_not_take_are_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.settings = world.settings.model_copy(update={"bars_periods": (1,)})
    world.again()
    now = (time.time_ns() - START) // S
    world.beat(now - 1).trade(now + 1, 70).beat(now + 1, state="DOWN").turn()

    def full(*_: object, **__: object) -> None:
        raise RetryableError("the buffer is full")

    monkeypatch.setattr(world.log, "append", full)
    wait_until(lambda: world.query.is_stopped, what="the failure that no record would meet", deadline_s=60)
    with pytest.raises(RetryableError, match="broken off"):
        world.job._process(Frame([]), 0)  # type: ignore[arg-type]
    world.job.close()
    monkeypatch.undo()
    monkeypatch.setattr(job_module, "log_stream", lambda *_, **__: None)
    monkeypatch.setattr(job_module, "start_query", lambda *_, **__: world.query)
    assert world.logged() == []
    assert world.begin().turn().logged() == [(now + 1, 0, 70)]


def test_nothing_of_a_job_that_was_closed_is_said_any_more(world: World) -> None:
    world.beat(-1).trade(1, 50).beat(60)
    world.job.close()
    with pytest.raises(RetryableError):
        world.turn()
    assert world.logged() == []


def test_a_bar_that_fits_nowhere_holds_no_other_up(world: World) -> None:
    world.trade(-70, 1, decimals=18).trade(-69, 100).trade(-5, 50).beat(60).turn()
    wait_until(lambda: len(world.logged()) == 1, what="the bar of the second minute", deadline_s=60)
    assert world.logged() == [(-60, 0, 50)]


def test_a_long_bar_is_made_of_parts(world: World) -> None:
    world.settings = world.settings.model_copy(update={"bars_periods": (86_400,)})
    world.again()
    for hour, price in ((2, 50), (3, 52), (9, 49), (15, 51), (15.1, 50)):
        world.trade(hour * 3600, price)
    world.beat(40 * 3600).turn()
    wait_until(lambda: len(world.logged()) == 1, what="the day's bar", deadline_s=60)
    [(bar, _)] = world._bars()
    assert (bar.open, bar.high, bar.low, bar.close) == (50, 52, 49, 50)
    assert (bar.trades, bar.volume, bar.first_trade_id, bar.last_trade_id) == (5, "5", "1", "5")
    assert bar.quote_volume == "252"


def test_a_topic_that_has_grown_meanwhile_is_read_on_in_the_order_of_appending(growing: World) -> None:
    growing.beat(-1).trade(1, 50).turn().job.close()
    growing.trade(2, 51).grow(3).trade(3, 52).beat(60).begin()
    assert growing.logged() == [(0, 0, 52)]
    assert [bar.trades for bar, _ in growing._bars()] == [3]
    # Both starts go on from where this one has come to, which is all partitions.
    growing.again().trade(61, 53).beat(120).turn()
    assert growing.logged() == [(0, 0, 52), (60, 0, 53)]


def test_a_ticker_that_moves_while_the_job_runs_keeps_its_order(growing: World) -> None:
    growing.beat(-1).trade(1, 50).turn().trade(2, 51).grow(3).trade(3, 52).beat(60).turn()
    assert growing.logged() == [(0, 0, 52)]
    assert [bar.trades for bar, _ in growing._bars()] == [3]


def test_a_revision_decided_in_the_new_partition_is_not_taken_for_an_old_one(growing: World) -> None:
    growing.beat(-1).trade(1, 50)
    for second in range(2, 61):
        growing.beat(second)
    growing.turn().grow(3).trade(2, 55).beat(61).turn()
    assert growing.logged() == [(0, 0, 50), (0, 1, 55)]
    growing.again().trade(3, 56).beat(62).turn()
    wait_until(lambda: len(growing.logged()) == 3, what="the revision after a restart", deadline_s=60)
    assert growing.logged()[2:] == [(0, 2, 56)]


def test_of_a_ticker_that_has_moved_nothing_is_made_before_the_archive_has_its_older_place(growing: World) -> None:
    growing.archived[1] = 0
    growing.trade(5, 50).turn().grow(3).trade(6, 51).beat(60).turn()
    store = growing.job._store
    assert [one.partition for one in store.waiting()] == [0]
    assert store._turn(growing) == 0
    growing.archived[1] = 1
    wait_until(lambda: growing.logged() == [(0, 0, 51)], what="the bar", deadline_s=60)
    assert [bar.trades for bar, _ in growing._bars()] == [2]


def test_offsets_of_the_place_before_are_not_waited_for_in_the_new_one(growing: World) -> None:
    growing.archived[0] = 0
    growing.beat(-2).trade(-1, 50).turn().grow(3).beat(60).turn()
    wait_until(lambda: growing.logged() == [(-60, 0, 50)], what="the bar", deadline_s=60)


def test_a_place_that_is_not_the_keys_own_is_known_after_a_restart(growing: World) -> None:
    growing.beat(-1).trade(1, 50).turn().grow(3).again()
    assert growing.job._places == {TICKER: 1}
    growing.again()
    assert growing.job._places == {TICKER: 1}
    growing.trade(2, 51).beat(60).turn().again()
    assert (growing.job._places, growing.logged()) == ({TICKER: 0}, [(0, 0, 51)])
