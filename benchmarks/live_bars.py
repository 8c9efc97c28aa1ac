"""How soon are bars there, what does a tick cost the jobs, and how fast do they catch up?"""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import zmq

from benchmarks.processes import RELAY, cpu_seconds, running, wait_for
from benchmarks.report import Latency, Report
from benchmarks.tick_log import TickLog
from relay.eventlog import TICK_TOPIC, EventLog, platform_topics
from relay.eventlog.kafka import KafkaEventLog
from relay.protocol.envelope import decode_body
from relay.protocol.registry import Channel
from relay.protocol.v1 import market_pb2
from spark_jobs.jobs.bars.decode import BarEvent, bar_events
from spark_jobs.jobs.bars.engine.bar_book import BarBook
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, Beat
from spark_jobs.jobs.settings import JobSettings
from tests.support.kafka import RunningKafka
from tests.support.processes import free_port
from tests.support.spark import job_settings

__all__ = ["run"]

_PERIODS = (1, 60)
_SECOND_NS = 10**9
_GOAL_FINAL_US, _GOAL_RUNNING_US = 2_000_000, 1_000_000


def run(*, quick: bool) -> Report:
    """Measure live latencies at a rate, then how fast a time away is caught up, against plain Python and Arrow."""
    report = Report(
        "live_bars",
        "How soon is a bar there after its end, what does a tick cost, and how fast is what was missed caught up?",
        layout="Kafka, one driver with history, ticks and bars (local[2]); feed and subscriber in the benchmark",
        durability="a final bar is in Kafka before it is sent; ticks and bars go to Iceberg beside it",
    )
    tickers, rate, seconds, behind = (10, 200, 4, 5_000) if quick else (200, 5_000, 40, 300_000)
    with tempfile.TemporaryDirectory() as name:
        kafka = RunningKafka(Path(name) / "kafka")
        try:
            world = _World(kafka, Path(name))
            _live(report, world, tickers=tickers, rate=rate, seconds=seconds)
            _catch_up(report, world, tickers=tickers, rate=rate, count=behind)
            world.log.close()
        finally:
            kafka.close()
    report.notes["reading"] = (
        "final: arrival minus the bar's end (lateness 0); running: arrival minus the time of the newest trade in it; "
        "feed, subscriber, Kafka and Spark share the processors"
    )
    return report


class _World:
    """Topics, tables and settings of one run."""

    def __init__(self, kafka: RunningKafka, folder: Path) -> None:
        self.folder, self.prefix = folder, f"{uuid.uuid4().hex[:8]}-"
        self.status_port, self.pull_port = free_port(), free_port()
        self.settings: JobSettings = job_settings(
            folder,
            log_bootstrap_servers=kafka.bootstrap_servers,
            topic_prefix=self.prefix,
            topic_partitions=6,
            manager_notification_endpoint=f"tcp://127.0.0.1:{self.pull_port}",
            status_port=self.status_port,
            bars_periods=_PERIODS,
        )
        self.log: EventLog = KafkaEventLog(kafka.bootstrap_servers, client_id="benchmark")
        self.log.ensure_topics(platform_topics(prefix=self.prefix, partitions=6, retention_hours=1))

    @contextlib.contextmanager
    def driver(self, *names: str) -> Iterator[psutil.Process]:
        """Run the jobs until the block ends."""
        given = self.settings.model_dump(mode="json", exclude_unset=True)
        environment = {f"RELAY_JOB_{n.upper()}": v if isinstance(v, str) else json.dumps(v) for n, v in given.items()}
        with running([*RELAY, "job", *names], log=self.folder / "job.log", environment=environment) as process:
            wait_for(lambda: self.counters() is not None, what="the driver", within_s=120)
            yield process

    def counters(self) -> dict[str, int] | None:
        """Counters of the driver once its queries run."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.status_port}/status", timeout=5) as answer:
                status = json.load(answer)
        except OSError:
            return None
        return dict(status["counters"]) if status["ready"] else None


def _live(report: Report, world: _World, *, tickers: int, rate: int, seconds: int) -> None:
    feed, stopping = TickLog(world.log, prefix=world.prefix, tickers=tickers), threading.Event()
    final, running_, finals, shown = Latency(), Latency(), 0, 0
    with world.driver("history", "ticks", "bars") as process, _pull(world.pull_port) as pull:
        thread = threading.Thread(target=feed.live, args=(rate,), kwargs={"stopping": stopping}, daemon=True)
        began_ns = time.time_ns()
        thread.start()
        warm_ns = began_ns + (2 if seconds < 10 else 45) * _SECOND_NS
        before = (0.0, 0.0)
        while (now_ns := time.time_ns()) < warm_ns + seconds * _SECOND_NS:
            if now_ns >= warm_ns and before == (0.0, 0.0):
                before = (_cpu(process), time.monotonic())
            if not pull.poll(100):
                continue
            bar = _bar(pull)
            now_ns = time.time_ns()
            if bar is None or now_ns < warm_ns or bar.period_seconds != 1:
                continue
            if bar.is_final:
                finals += 1
                final.record_ns(now_ns - bar.timestamp - _SECOND_NS)
            else:
                shown += 1
                newest_ns = began_ns + (int(bar.last_trade_id) * tickers) * _SECOND_NS // rate
                running_.record_ns(max(0, now_ns - newest_ns))
        took, used = time.monotonic() - before[1], _cpu(process) - before[0]
        stopping.set()
        thread.join()
        counters = world.counters() or {}
    report.add(f"final bars, {rate:,} ticks/s of {tickers}", **final.row(), p95_us=final.p_us(95))
    report.add(f"running bars, {rate:,} ticks/s of {tickers}", **running_.row(), p95_us=running_.p_us(95))
    report.ratio("final_p95_to_2_s", final.p_us(95) / _GOAL_FINAL_US, goal_max=1.0)
    report.ratio("running_p95_to_1_s", running_.p_us(95) / _GOAL_RUNNING_US, goal_max=1.0)
    report.notes["bars in the measured time"] = {"final": finals, "expected": tickers * seconds, "running": shown}
    report.notes["driver, processor seconds a 1,000 ticks"] = round(used / (took * rate) * 1000, 4)
    report.notes["one micro-batch, ms"] = {
        "in the engine's function, last": counters.get("bars.batch.last_ms"),
        "state, bytes": counters.get("bars.state.bytes"),
    }


def _catch_up(report: Report, world: _World, *, tickers: int, rate: int, count: int) -> None:
    """Write some minutes of ticks while nothing runs, then let the job read them; then without Spark, and in bulk."""
    fresh = _World.__new__(_World)
    fresh.__dict__.update(world.__dict__)
    fresh.prefix = f"{uuid.uuid4().hex[:8]}-"
    fresh.settings = world.settings.model_copy(
        update={"topic_prefix": fresh.prefix, "checkpoint_folder": str(world.folder / "checkpoints-2")}
    )
    fresh.log.ensure_topics(platform_topics(prefix=fresh.prefix, partitions=6, retention_hours=1))
    start_ns = (time.time_ns() // (3600 * _SECOND_NS) - 1) * 3600 * _SECOND_NS
    TickLog(fresh.log, prefix=fresh.prefix, tickers=tickers).ticks(count, start_ns=start_ns, step_ns=_SECOND_NS // rate)
    total = sum(fresh.log.end_offsets(fresh.prefix + TICK_TOPIC))
    with fresh.driver("bars"):
        began = time.monotonic()
        wait_for(lambda: (fresh.counters() or {}).get("bars.records", 0) >= total, what="all records", within_s=900)
        spark_s = time.monotonic() - began
    began = time.monotonic()
    events = _events(fresh)
    read_s = time.monotonic() - began
    bars, plain_s = _plain(events)
    bulk_s = _bulk(events)
    report.add("caught up by the job", ticks_per_second=int(count / spark_s), seconds=round(spark_s, 1))
    plain = read_s + plain_s
    report.add("plain consumer with the same engine", ticks_per_second=int(count / plain), seconds=round(plain, 1))
    report.add("Arrow, one bulk aggregate of decoded rows", ticks_per_second=int(count / bulk_s), bars=bars)
    report.ratio("catch_up_to_plain_consumer", spark_s / plain)
    report.notes["plain consumer, seconds"] = {"read and decoded": round(read_s, 2), "engine": round(plain_s, 2)}


def _events(world: _World) -> list[BarEvent]:
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


def _bar(pull: zmq.Socket[bytes]) -> market_pb2.OHLC | None:
    _, message = decode_body(pull.recv_multipart()[-1], Channel.NOTIFICATION)
    return message if isinstance(message, market_pb2.OHLC) else None


def _cpu(process: psutil.Process) -> float:
    used = 0.0
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            used += cpu_seconds(one)
    return used


@contextlib.contextmanager
def _pull(port: int) -> Iterator[zmq.Socket[bytes]]:
    context = zmq.Context()
    socket = context.socket(zmq.PULL)
    socket.setsockopt(zmq.RCVHWM, 1_000_000)
    socket.bind(f"tcp://127.0.0.1:{port}")
    try:
        yield socket
    finally:
        context.destroy(0)
