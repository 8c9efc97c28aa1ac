"""Kills at every step from a tick to a stored bar: the finals are those of the trades, none lost, none doubled.

Steps::

    running     ticks are read and in the saved state, their bar is not final yet
    published   final bars are in the log, in no table, and no state was saved since
    committing  the first of the tables has bars, the others follow
    worker      an executor's Python worker decodes a micro-batch
    kafka       the log is away while bars become final
    manager     nobody takes hints while bars become final

All the while maintenance puts files together and forgets snapshots, every second.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import psutil
import pytest
import zmq

from relay.eventlog import TICK_TOPIC
from relay.protocol.envelope import decode_record, encode_record
from relay.protocol.ranges import Range
from relay.protocol.v1 import market_pb2
from relay.tables.schema import OHLC_TABLE, TICK_BARS_TABLE
from tests.integration.spark_jobs.conftest import HistoryProcess
from tests.support.kafka import RunningKafka
from tests.support.lake import contents
from tests.support.processes import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600)]

TICKER = "BTC/USDT.BINANCE"
T0_NS = 1_700_000_000 * 10**9
SECOND_NS = 10**9
EVERYTHING = Range(0, 4 * 10**18)
COMMAND = [sys.executable, "-c", "from relay.cli import main; main()", "job", "history", "ticks", "bars", "maintenance"]
ALL, HALF = 20, 10
Row = tuple[int, Decimal, Decimal, Decimal, Decimal, Decimal, int]


def trade(number: int) -> market_pb2.Tick:
    """Five trades a second; no two seconds have the same bar."""
    return market_pb2.Tick(
        ticker=TICKER,
        trade_id=str(number + 1),
        timestamp=T0_NS + number * SECOND_NS // 5,
        price=1_000 + number * 7 % 101,
        amount=1 + number % 3,
    )


def said(seconds: range) -> list[object]:
    """What a feed logs in these seconds, a beat at the end of each; what was before its first trade stays unknown."""
    found: list[object] = []
    if seconds.start == 0:
        states = (market_pb2.Gap.OPEN, market_pb2.Gap.UNFILLABLE)
        first = {"from_time": T0_NS - SECOND_NS, "to_time": T0_NS, "to_trade_id": "0"}
        found += [market_pb2.Gap(ticker=TICKER, state=state, **first) for state in states]
    for second in seconds:
        found += [trade(5 * second + n) for n in range(5)]
        found.append(beat(second + 1))
    return found


def beat(second: int) -> market_pb2.Heartbeat:
    reached_ns = T0_NS + second * SECOND_NS
    source = market_pb2.Heartbeat.INGESTOR
    return market_pb2.Heartbeat(source=source, ticker=TICKER, exchange_time_reached=reached_ns, attempt=1)


def expected() -> list[Row]:
    seconds: defaultdict[int, list[market_pb2.Tick]] = defaultdict(list)
    for number in range(5 * ALL):
        seconds[number // 5].append(trade(number))
    return [
        (
            T0_NS // 1000 + second * 10**6,
            *(Decimal(p) for p in (t[0].price, max(x.price for x in t), min(x.price for x in t), t[-1].price)),
            Decimal(sum(x.amount for x in t)),
            5,
        )
        for second, t in seconds.items()
    ]


def stored(job: HistoryProcess) -> list[Row]:
    table = job.lake().read_bars(TICKER, 1, within=EVERYTHING)
    names = ("open", "high", "low", "close", "volume", "trades")
    return list(zip(table["start"].cast("int64").to_pylist(), *(table[n].to_pylist() for n in names), strict=True))


def count(job: HistoryProcess, name: str) -> int:
    return len(contents(job.settings.tables(), name, key=("log_offset",)))


def logged(job: HistoryProcess) -> list[market_pb2.OHLC]:
    """Every bar of the history log, oldest first."""
    found = []
    for partition in range(2):
        end = job.log.end_offsets(job.topic)[partition]
        records = job.log.read(job.topic, partition=partition, from_offset=0, limit=10_000) if end else []
        found += [decode_record(record.value)[1] for record in records]
    return found


class Jobs:
    """A driver with three jobs, and what is put before them."""

    deadline_s = 180.0

    def __init__(self, broker: RunningKafka, folder: Path) -> None:
        self.broker, self.job = broker, HistoryProcess(broker, folder)

    def start(
        self, *, command: Sequence[str] = COMMAND, environment: Mapping[str, str] | None = None, **settings: str
    ) -> None:
        given = {
            "BARS_PERIODS": "[1]",
            "BARS_STATE_SECONDS": "1",
            "TICKS_TRIGGER_SECONDS": "1",
            "TICK_BARS_WAIT_SECONDS": "1",
            "MAINTENANCE_EXPIRY_SECONDS": "1",
            "MAINTENANCE_COMPACTION_SECONDS": "1",
            "MAINTENANCE_SMALL_FILES_MIN": "2",
            "SNAPSHOTS_MAX": "3",
            **settings,
        }
        named = {f"RELAY_JOB_{name}": value for name, value in given.items()}
        self.job.start(list(command), **named, **(environment or {}))

    def put(self, *messages: object) -> None:
        for one in messages:
            self.job.log.append(self.job.prefix + TICK_TOPIC, key=TICKER.encode(), value=encode_record(one))
        assert self.job.log.flush(60) == 0

    def kill(self) -> None:
        assert self.job.process is not None
        os.killpg(self.job.process.pid, signal.SIGKILL)
        self.job.process.kill()

    def wait(self, condition: Callable[[], object], what: str) -> None:
        def checked() -> object:
            assert self.job.process is not None
            assert self.job.process.returncode is None, self.job.process.tail()
            return condition()

        wait_until(checked, what=what, deadline_s=self.deadline_s)

    def has_state(self) -> bool:
        return bool(list((self.job.folder / "checkpoints" / "bars-state").glob("*.state")))

    def is_whole(self) -> None:
        """Everything was said and stored once, and is that of the trades."""
        self.wait(lambda: len(stored(self.job)) == ALL, what="every bar in the table")
        assert stored(self.job) == expected()
        assert count(self.job, TICK_BARS_TABLE) == ALL
        bars = logged(self.job)
        assert sorted(bar.timestamp for bar in bars) == [T0_NS + second * SECOND_NS for second in range(ALL)]
        assert {bar.revision for bar in bars} == {0}
        # Of the first second the feed has not seen the beginning.
        assert [bar.timestamp for bar in bars if bar.incomplete] == [T0_NS]
        self.wait(lambda: len(self.job.lake().read_ticks(TICKER, within=EVERYTHING)) == 5 * ALL, what="the archive")
        self.wait(lambda: self.job.counters().get("maintenance.turns"), what="a turn of maintenance")
        assert self.job.counters().get("maintenance.failures", 0) == 0
        assert self.job.process is not None
        assert self.job.process.terminate() == 0


@pytest.fixture
def jobs(kafka: RunningKafka, tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(kafka, tmp_path)
    yield jobs
    jobs.job.close()


def test_bars_that_were_published_and_neither_committed_nor_in_a_saved_state_are_there_once_after_a_kill(jobs: Jobs):
    jobs.put(*said(range(HALF)))
    jobs.start(BARS_STATE_SECONDS="3600", TICK_BARS_WAIT_SECONDS="600")
    jobs.wait(lambda: len(logged(jobs.job)) == HALF, what="bars in the log")
    jobs.wait(lambda: jobs.job.counters().get("history.tick_bars.waiting") == HALF, what="bars that wait")
    jobs.kill()
    assert (count(jobs.job, OHLC_TABLE), count(jobs.job, TICK_BARS_TABLE), jobs.has_state()) == (0, 0, False)
    jobs.put(*said(range(HALF, ALL)))
    jobs.start()
    jobs.is_whole()


@pytest.mark.soak
def test_a_bar_that_ran_when_its_state_was_saved_is_final_once_after_a_kill(jobs: Jobs):
    first, *others = said(range(HALF))[::-1]
    jobs.put(*others[::-1])
    jobs.start()
    jobs.wait(lambda: len(logged(jobs.job)) == HALF - 1, what="bars in the log")
    jobs.wait(jobs.has_state, what="a saved state")
    jobs.kill()
    jobs.put(first, *said(range(HALF, ALL)))
    jobs.start()
    jobs.is_whole()


@pytest.mark.soak
@pytest.mark.parametrize("table", [TICK_BARS_TABLE, OHLC_TABLE])
def test_a_kill_between_the_commits_of_the_tables_loses_and_doubles_nothing(jobs: Jobs, table: str):
    jobs.put(*said(range(HALF)))
    jobs.start(TICK_BARS_WAIT_SECONDS="0", BARS_RECORDS_PER_BATCH_MAX="7", RECORDS_PER_BATCH_MAX="2")
    jobs.wait(lambda: count(jobs.job, table), what=f"a first commit of {table}")
    jobs.kill()
    jobs.put(*said(range(HALF, ALL)))
    jobs.start(TICK_BARS_WAIT_SECONDS="0")
    jobs.is_whole()


@pytest.mark.soak
def test_python_workers_that_are_killed_in_a_micro_batch_cost_nothing_case_145(jobs: Jobs):
    def workers() -> list[psutil.Process]:
        assert jobs.job.process is not None
        found = []
        for child in psutil.Process(jobs.job.process.pid).children(recursive=True):
            try:
                if any("pyspark.daemon" in part or "pyspark/daemon" in part for part in child.cmdline()):
                    found.append(child)
            except psutil.Error:
                continue
        return found

    jobs.start(DRIVER_RECORDS_MAX="0", TICK_BARS_WAIT_SECONDS="0")
    killed = 0
    for second in range(0, ALL, 4):
        jobs.put(*said(range(second, second + 4)))
        if killed < 2:
            jobs.wait(workers, what="a worker")
            for worker in workers():
                try:
                    worker.kill()
                except psutil.NoSuchProcess:
                    continue
                killed += 1
    assert killed >= 2
    jobs.wait(lambda: jobs.job.counters().get("history.query.failures"), what="a failed micro-batch")
    jobs.is_whole()


@pytest.mark.soak
def test_the_log_may_be_away_while_bars_become_final(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path):
    broker = RunningKafka(tmp_path_factory.mktemp("own-kafka"))
    jobs = Jobs(broker, tmp_path)
    try:
        jobs.put(*said(range(HALF)))
        jobs.start()
        jobs.wait(lambda: logged(jobs.job), what="bars in the log")
        broker.process.kill()
        broker.restart()
        jobs.put(*said(range(HALF, ALL)))
        jobs.is_whole()
    finally:
        jobs.job.close()
        broker.close()


@pytest.mark.soak
def test_a_manager_that_dies_gets_the_bars_that_it_missed_from_the_log(jobs: Jobs):
    context = zmq.Context()

    def manager() -> zmq.Socket:
        pull = context.socket(zmq.PULL)
        pull.linger, pull.rcvtimeo = 0, 120_000
        pull.bind(f"tcp://127.0.0.1:{jobs.job.pull_port}")
        return pull

    try:
        pull = manager()
        jobs.put(*said(range(HALF)))
        jobs.start()
        pull.recv_multipart()
        pull.close()
        jobs.put(*said(range(HALF, ALL - 1)))
        jobs.wait(lambda: len(logged(jobs.job)) == ALL - 1, what="bars that nobody was told of")
        pull = manager()
        jobs.put(*said(range(ALL - 1, ALL)))
        pull.recv_multipart()
        jobs.is_whole()
    finally:
        context.destroy(0)
