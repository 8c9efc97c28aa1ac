"""Bars, history and the archive in one real driver on a real Kafka: recorded trades become the recorded candles."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zmq
from confluent_kafka.admin import AdminClient, NewPartitions

from relay.eventlog import TICK_TOPIC, partition_of
from relay.eventlog.access import read_range
from relay.eventlog.kafka import KafkaEventLog
from relay.protocol.envelope import decode, decode_record, encode_record
from relay.protocol.ranges import Range
from relay.protocol.registry import Channel
from relay.protocol.v1 import market_pb2
from tests.support.kafka import RunningKafka
from tests.support.processes import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600)]

TICKER = "XRP/ETH.BINANCE"
EVERYTHING = Range(0, 4 * 10**18)
PERIODS = {60: "1m", 300: "5m"}
DECIMALS = 8
COMMAND = [sys.executable, "-c", "from relay.cli import main; main()", "job", "history", "ticks", "bars"]


def records(folder: Path) -> list[object]:
    """A feed's log of three days: what was not seen before its first trade, each trade, a beat now and then."""
    table = pq.read_table(folder / "binance" / "XRPETH-trades-2019-10-11_13.parquet").to_pylist()
    first_ns = table[0]["timestamp"] * 10**6
    said: list[object] = [gap("OPEN", first_ns), gap("UNFILLABLE", first_ns)]
    for place, row in enumerate(table):
        price, amount = (int(Decimal(repr(row[name])).scaleb(DECIMALS)) for name in ("price", "amount"))
        tick = market_pb2.Tick(
            ticker=TICKER,
            trade_id=str(row["id"]),
            timestamp=row["timestamp"] * 10**6,
            price=price,
            amount=amount,
            price_decimals=DECIMALS,
            amount_decimals=DECIMALS,
            taker_buy=row["side"] == "buy",
        )
        said += [tick] * (1 + (place % 20 == 0))
        if place % 50 == 0:
            said.append(beat(tick.timestamp))
    return said


def gap(state: str, first_ns: int) -> market_pb2.Gap:
    day_ns = first_ns // (86_400 * 10**9) * 86_400 * 10**9
    return market_pb2.Gap(ticker=TICKER, state=state, from_time=day_ns, to_time=first_ns, to_trade_id="13519806")


def beat(reached_ns: int) -> market_pb2.Heartbeat:
    return market_pb2.Heartbeat(
        source=market_pb2.Heartbeat.INGESTOR, ticker=TICKER, exchange_time_reached=reached_ns, attempt=1
    )


def candles(folder: Path, period_seconds: int) -> list[tuple]:
    table = pq.read_table(folder / "binance" / f"XRPETH-{PERIODS[period_seconds]}-2019-10-11_13.parquet").to_pylist()
    names = ("open", "high", "low", "close", "volume")
    return [
        (int(row["date"].timestamp() * 10**6), *(Decimal(repr(row[name])) for name in names))
        for row in table
        if row["volume"]
    ]


def stored(job, period_seconds: int) -> list[tuple]:
    table = job.lake().read_bars(TICKER, period_seconds, within=EVERYTHING)
    names = ("open", "high", "low", "close", "volume")
    return list(zip(table["start"].cast("int64").to_pylist(), *(table[n].to_pylist() for n in names), strict=True))


def archived(job) -> list[int]:
    return job.lake().read_ticks(TICKER, within=EVERYTHING)["trade_number"].to_pylist()


def logged(job) -> Iterator[market_pb2.OHLC]:
    offset = 0
    partition = job.log.append(job.topic, key=TICKER.encode(), value=b"\x01").result(30).partition
    while found := job.log.read(job.topic, partition=partition, from_offset=offset, limit=10_000):
        for record in found:
            if record.value != b"\x01":
                message = decode_record(record.value)[1]
                message.ClearField("stamp")
                yield message
        offset = found[-1].position.offset + 1


@pytest.mark.parametrize("state", ["kept", pytest.param("lost", marks=pytest.mark.soak)])
def test_recorded_trades_give_the_recorded_candles_over_a_kill_and_a_late_trade(
    recorded_data: Path, history_job, state: str
):
    job = history_job()
    everything = records(recorded_data)

    def put(*said: object) -> None:
        for one in said:
            job.log.append(job.prefix + TICK_TOPIC, key=TICKER.encode(), value=encode_record(one))
        assert job.log.flush(60) == 0

    def start() -> None:
        job.start(
            COMMAND,
            RELAY_JOB_BARS_PERIODS="[60, 300]",
            RELAY_JOB_BARS_STATE_SECONDS="1",
            RELAY_JOB_TICKS_TRIGGER_SECONDS="1",
            RELAY_JOB_DRIVER_RECORDS_MAX="10000",
        )

    context = zmq.Context()
    pull = context.socket(zmq.PULL)
    pull.linger, pull.rcvtimeo = 0, 120_000
    pull.bind(f"tcp://127.0.0.1:{job.pull_port}")
    expected = {period: candles(recorded_data, period) for period in PERIODS}
    ticks = [one for one in everything if isinstance(one, market_pb2.Tick)]
    try:
        half = len(everything) // 2
        put(*everything[:half])
        start()
        wait_until(lambda: len(stored(job, 60)) > 500, what="the first bars", deadline_s=180)
        os.killpg(job.process.pid, signal.SIGKILL)
        if state == "lost":
            shutil.rmtree(job.folder / "checkpoints")
        put(*everything[half:], beat(ticks[-1].timestamp + 600 * 10**9))
        start()
        wait_until(lambda: len(stored(job, 60)) == len(expected[60]), what="all minutes", deadline_s=180)
        wait_until(lambda: len(stored(job, 300)) == len(expected[300]), what="all five minutes", deadline_s=60)
        assert {period: stored(job, period) for period in PERIODS} == expected
        traded = sorted({int(tick.trade_id) for tick in ticks})
        wait_until(lambda: sorted(archived(job)) == traded, what="every trade once in the archive")
        assert isinstance(decode(pull.recv_multipart()[1:], Channel.NOTIFICATION).message, market_pb2.OHLC)

        # A trade that comes days late: its bucket is made anew from what is stored.
        late = market_pb2.Tick()
        late.CopyFrom(ticks[0])
        late.trade_id, late.price = "99999999", ticks[0].price * 2
        put(late, beat(ticks[-1].timestamp + 601 * 10**9))
        start_ns = late.timestamp // (60 * 10**9) * 60 * 10**9

        def revisions() -> list[int]:
            return job.lake().last_tick_bars(TICKER, 60, [start_ns])["revision"].to_pylist()

        wait_until(lambda: revisions() == [1], what="the revision", deadline_s=180)
        wait_until(lambda: stored(job, 60)[0][2] == Decimal(late.price).scaleb(-DECIMALS), what="its high")
        assert stored(job, 60)[1:] == expected[60][1:]
    finally:
        context.destroy(0)
    said: dict[tuple[int, int], list[market_pb2.OHLC]] = {}
    for bar in logged(job):
        said.setdefault((bar.period_seconds, bar.timestamp), []).append(bar)
    # Nothing was said twice, nothing was contradicted, and only the late trade made revisions.
    assert all([bar.revision for bar in bars] == list(range(len(bars))) for bars in said.values())
    assert sum(len(bars) - 1 for bars in said.values()) == len(PERIODS)
    assert job.process.terminate() == 0


def test_bars_go_on_exactly_when_the_logs_topics_have_grown(history_job, kafka: RunningKafka):
    job, minute_ns = history_job(), 60 * 10**9
    first_ns = (time.time_ns() // minute_ns - 60) * minute_ns
    ticker, log = "BTC/USDT.BINANCE", job.log
    assert (partition_of(ticker.encode(), 2), partition_of(ticker.encode(), 3)) == (1, 0)

    def put(*said: market_pb2.Tick | market_pb2.Heartbeat) -> None:
        for one in said:
            one.ticker = ticker
            log.append(job.prefix + TICK_TOPIC, key=ticker.encode(), value=encode_record(one))
        assert log.flush(60) == 0

    def tick(number: int, minutes: float) -> market_pb2.Tick:
        at_ns = first_ns + round(minutes * minute_ns)
        return market_pb2.Tick(trade_id=str(number), timestamp=at_ns, price=100 + number, amount=1, taker_buy=True)

    def bars() -> list[tuple[float, int, int, bool]]:
        ends = dict(enumerate(log.end_offsets(job.topic)))
        found = [decode_record(r.value)[1] for r in read_range(log, job.topic, starts={}, ends=ends)]
        said = [((b.timestamp - first_ns) / minute_ns, b.revision, b.trades, b.incomplete) for b in found]
        return [bar for bar in said if bar[0] >= 0]

    settings = {"RELAY_JOB_BARS_STATE_SECONDS": "1", "RELAY_JOB_TICKS_TRIGGER_SECONDS": "1"}
    command = [*COMMAND, "triggers"]
    job.start(command, **settings)
    # Of the minute before its first trade nobody knows anything.
    put(tick(9, -5), beat(first_ns - 1), tick(10, 0.1), tick(11, 0.2), beat(first_ns + minute_ns), tick(12, 1.1))
    wait_until(lambda: bars() == [(0, 0, 2, False)], what="the first bar", deadline_s=180)
    wait_until(lambda: job.counters().get("bars.records") == 6, what="all to be read", deadline_s=60)
    assert job.process.terminate() == 0
    # What nobody has read yet lies in both places of the ticker.
    put(tick(13, 1.2))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    names = [name for name in admin.list_topics(timeout=10).topics if name.startswith(job.prefix)]
    for grown in admin.create_partitions([NewPartitions(name, 3) for name in names]).values():
        grown.result(30)
    log = KafkaEventLog(kafka.bootstrap_servers, client_id="test-grown")
    try:
        wait_until(lambda: len(log.end_offsets(job.topic)) == 3, what="the partitions", deadline_s=60)
        put(tick(14, 1.3), beat(first_ns + 2 * minute_ns))
        job.start(command, **settings)
        whole = [(0, 0, 2, False), (1, 0, 3, False)]
        wait_until(lambda: bars() == whole, what="the bar of both places", deadline_s=180)
        put(tick(15, 2.1), beat(first_ns + 3 * minute_ns))
        wait_until(lambda: bars() == [*whole, (2, 0, 1, False)], what="the next bar", deadline_s=60)
        assert {name: job.counters().get(f"{name}.query.failures", 0) for name in ("bars", "triggers")} == {
            "bars": 0,
            "triggers": 0,
        }
    finally:
        log.close()
    assert job.process.terminate() == 0
