"""How soon are bars there, what does a tick cost the jobs, and how fast do they catch up?"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import zmq

from benchmarks.job_world import JobWorld, QuerySamples, driver_cpu_s, driver_pss_mib, pulling
from benchmarks.processes import wait_for
from benchmarks.report import Latency, Report
from benchmarks.tick_log import TickLog
from relay.eventlog import HISTORY_TOPIC, TICK_TOPIC
from relay.eventlog.access import read_range
from relay.protocol.envelope import decode_body, decode_record
from relay.protocol.registry import Channel
from relay.protocol.v1 import market_pb2
from spark_jobs.jobs.bars.decode import BarEvent, bar_events
from spark_jobs.jobs.bars.engine.bar_book import BarBook
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, Beat
from tests.support.kafka import RunningKafka

__all__ = ["run"]

_JOBS = ("history", "ticks", "bars", "triggers", "maintenance")
_PERIODS = (1, 60)
_SECOND_NS = 10**9
_GOAL_FINAL_US, _GOAL_RUNNING_US = 2_000_000, 1_000_000
_GOAL_MEMORY_MIB = 1.5 * 1024

_Bar = tuple[str, int]
"""Ticker and start in ns, of bars of one second."""


def run(*, quick: bool) -> Report:
    """Measure live latencies and memory at a rate, then how fast a time away is caught up, against plain engines."""
    report = Report(
        "live_bars",
        "How soon is a bar there after its end, what does a tick cost, and how fast is what was missed caught up?",
        layout="Kafka, one driver with all four queries and maintenance (local[2]); feed, subscriber in the benchmark",
        durability="a final bar is in Kafka before it is sent; ticks and bars go to Iceberg beside it",
    )
    tickers, rate, seconds, behind = (10, 200, 4, 5_000) if quick else (200, 5_000, 40, 300_000)
    with tempfile.TemporaryDirectory() as name:
        kafka = RunningKafka(Path(name) / "kafka")
        try:
            world = JobWorld(kafka, Path(name) / "live", bars_periods=_PERIODS)
            _live(report, world, tickers=tickers, rate=rate, seconds=seconds)
            world.log.close()
            world = JobWorld(kafka, Path(name) / "behind", bars_periods=_PERIODS)
            _catch_up(report, world, tickers=tickers, rate=rate, count=behind)
            world.log.close()
        finally:
            kafka.close()
    report.notes["reading"] = (
        "final: arrival minus the bar's end (lateness 0; the feed says 0.1 s after each second that it is over); "
        "running: arrival minus the time of the newest trade in it; feed, subscriber, Kafka and Spark share the "
        "processors"
    )
    return report


def _live(report: Report, world: JobWorld, *, tickers: int, rate: int, seconds: int) -> None:
    feed, stopping = TickLog(world.log, prefix=world.prefix, tickers=tickers), threading.Event()
    final, running_, arrived, shown = Latency(), Latency(), {}, 0
    with world.driver(*_JOBS) as process, pulling(world.pull_port) as pull:
        rest = driver_pss_mib(process)
        thread = threading.Thread(target=feed.live, args=(rate,), kwargs={"stopping": stopping}, daemon=True)
        began_ns = time.time_ns()
        thread.start()
        warm_ns = began_ns + (2 if seconds < 10 else 45) * _SECOND_NS
        _pull_until(pull, warm_ns)
        before, before_s, samples = driver_cpu_s(process), time.monotonic(), QuerySamples(world)
        while time.time_ns() < warm_ns + seconds * _SECOND_NS:
            bar, now_ns = _pulled(pull), time.time_ns()
            if bar is None or bar.period_seconds != 1:
                continue
            if bar.is_final:
                arrived[(bar.ticker, bar.timestamp)] = now_ns
                final.record_ns(now_ns - bar.timestamp - _SECOND_NS)
            else:
                shown += 1
                newest_ns = began_ns + (int(bar.last_trade_id) * tickers) * _SECOND_NS // rate
                running_.record_ns(max(0, now_ns - newest_ns))
        took, after = time.monotonic() - before_s, driver_cpu_s(process)
        samples.close()
        full = driver_pss_mib(process)
        stopping.set()
        thread.join()
        counters = world.counters()
    report.add(f"final bars, {rate:,} ticks/s of {tickers}", **final.row(), p95_us=final.p_us(95))
    for stage, latency in zip(("until it is decided", "then until it is there"), _stages(world, arrived), strict=True):
        report.add(f"of that, {stage}", **latency.row(), p95_us=latency.p_us(95))
    report.add(f"running bars, {rate:,} ticks/s of {tickers}", **running_.row(), p95_us=running_.p_us(95))
    report.add("driver, PSS in MiB at rest", **rest)
    report.add(f"driver, PSS in MiB at {rate:,} ticks/s", **full)
    used = {name: round((after[name] - before[name]) / (took * rate) * 1000, 4) for name in after}
    report.add("driver, processor seconds a 1,000 ticks", **used, total=round(sum(used.values()), 4))
    report.ratio("final_p95_to_2_s", final.p_us(95) / _GOAL_FINAL_US, goal_max=1.0)
    report.ratio("running_p95_to_1_s", running_.p_us(95) / _GOAL_RUNNING_US, goal_max=1.0)
    report.ratio("driver_memory_to_1.5_GiB", full["total"] / _GOAL_MEMORY_MIB, goal_max=1.0)
    report.notes["bars in the measured time"] = {
        "final": len(arrived),
        "expected": tickers * seconds,
        "running": shown,
    }
    report.notes["queries, micro-batches in the measured time"] = samples.described()
    report.notes["bars job"] = {
        name: counters.get(f"bars.{name}") for name in ("batch.last_ms", "state.last_ms", "state.bytes")
    }


def _stages(world: JobWorld, arrived: Mapping[_Bar, int]) -> tuple[Latency, Latency]:
    """Tell apart by the stamp of the log's record: from a bar's end to its append, and from there to the subscriber."""
    made, sent = Latency(), Latency()
    topic = world.prefix + HISTORY_TOPIC
    ends = dict(enumerate(world.log.end_offsets(topic)))
    for record in read_range(world.log, topic, starts={}, ends=ends):
        _, bar = decode_record(record.value)
        if isinstance(bar, market_pb2.OHLC) and bar.period_seconds == 1 and (bar.ticker, bar.timestamp) in arrived:
            made.record_ns(bar.stamp.published_at - bar.timestamp - _SECOND_NS)
            sent.record_ns(arrived[(bar.ticker, bar.timestamp)] - bar.stamp.published_at)
    return made, sent


def _pull_until(pull: zmq.Socket[bytes], end_ns: int) -> None:
    while time.time_ns() < end_ns:
        _pulled(pull)


def _pulled(pull: zmq.Socket[bytes]) -> market_pb2.OHLC | None:
    if not pull.poll(100):
        return None
    _, message = decode_body(pull.recv_multipart()[-1], Channel.NOTIFICATION)
    return message if isinstance(message, market_pb2.OHLC) else None


def _catch_up(report: Report, world: JobWorld, *, tickers: int, rate: int, count: int) -> None:
    """Write some minutes of ticks while nothing runs, then let the job read them; then without Spark, and in bulk."""
    start_ns = (time.time_ns() // (3600 * _SECOND_NS) - 1) * 3600 * _SECOND_NS
    TickLog(world.log, prefix=world.prefix, tickers=tickers).ticks(count, start_ns=start_ns, step_ns=_SECOND_NS // rate)
    total = sum(world.log.end_offsets(world.prefix + TICK_TOPIC))
    with world.driver("bars"):
        began = time.monotonic()
        wait_for(lambda: world.counters().get("bars.records", 0) >= total, what="all records", within_s=900)
        spark_s = time.monotonic() - began
    began = time.monotonic()
    events = _events(world)
    read_s = time.monotonic() - began
    bars, plain_s = _plain(events)
    bulk_s = _bulk(events)
    report.add("caught up by the job", ticks_per_second=int(count / spark_s), seconds=round(spark_s, 1))
    plain = read_s + plain_s
    report.add("plain consumer with the same engine", ticks_per_second=int(count / plain), seconds=round(plain, 1))
    report.add("Arrow, one bulk aggregate of decoded rows", ticks_per_second=int(count / bulk_s), bars=bars)
    report.ratio("catch_up_to_plain_consumer", spark_s / plain)
    report.notes["plain consumer, seconds"] = {"read and decoded": round(read_s, 2), "engine": round(plain_s, 2)}


def _events(world: JobWorld) -> list[BarEvent]:
    topic, found = world.prefix + TICK_TOPIC, []
    for partition, end in enumerate(world.log.end_offsets(topic)):
        offset = 0
        while offset < end:
            records = world.log.read(topic, partition=partition, from_offset=offset, limit=50_000)
            table = pa.table(
                {
                    "topic": [topic] * len(records),
                    "partition": pa.array([partition] * len(records), pa.int32()),
                    "offset": pa.array([r.position.offset for r in records], pa.int64()),
                    "key": [r.key for r in records],
                    "value": [r.value for r in records],
                }
            )
            found += list(bar_events(table))
            offset = records[-1].position.offset + 1
    return found


def _plain(events: list[BarEvent]) -> tuple[int, float]:
    book, bars = BarBook(BarRules(), lambda _: _PERIODS), 0
    began = time.monotonic()
    for ticker, _, _, said in events:
        if isinstance(said, BarTrade):
            book.on_trade(ticker, said)
        elif isinstance(said, Beat):
            bars += len(book.on_beat(ticker, said))
    return bars, time.monotonic() - began


def _bulk(events: list[BarEvent]) -> float:
    """The same aggregate of all trades at once, from columns; nothing of finality, revisions or repeats."""
    trades = [(e.ticker, e.said) for e in events if isinstance(e.said, BarTrade)]
    table = pa.table(
        {
            "ticker": [ticker for ticker, _ in trades],
            "time": pa.array([t.time_ns for _, t in trades], pa.int64()),
            "number": pa.array([t.number for _, t in trades], pa.int64()),
            "price": pa.array([t.price for _, t in trades], pa.int64()),
            "amount": pa.array([t.amount for _, t in trades], pa.int64()),
        }
    )
    began = time.monotonic()
    for period in _PERIODS:
        starts = pc.multiply(pc.divide(table["time"], period * _SECOND_NS), period * _SECOND_NS)
        ordered = table.append_column("start", starts).sort_by([("time", "ascending"), ("number", "ascending")])
        wanted = [("price", "first"), ("price", "last"), ("price", "max"), ("price", "min"), ("amount", "sum")]
        ordered.group_by(["ticker", "start"], use_threads=False).aggregate(wanted)
    return time.monotonic() - began
