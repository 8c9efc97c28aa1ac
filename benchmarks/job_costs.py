"""What do the Spark jobs cost for 1,000 ticks, and how does it grow with symbols, periods and triggers?"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import psutil
import pyarrow as pa
import zmq

from benchmarks.job_world import JobWorld, QuerySamples, driver_cpu_s, driver_pss_mib, pulling
from benchmarks.report import Report
from benchmarks.tick_log import TickLog
from relay.eventlog import TICK_TOPIC, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.protocol.v1 import trigger_pb2
from relay_client.pattern_builder import when
from spark_jobs.jobs.bars.decode import BarEvent, bar_events
from spark_jobs.jobs.bars.engine.bar_book import BarBook
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, Beat, MadeBar
from spark_jobs.jobs.bars.messages import message_of_bar
from spark_jobs.jobs.records import RECORD_COLUMNS
from spark_jobs.jobs.ticks.decode import decode_ticks
from spark_jobs.jobs.triggers.book import TriggerBook
from tests.support.kafka import RunningKafka

__all__ = ["run"]

_SECOND_NS = 10**9
_START_NS = 1_700_000_000 * _SECOND_NS
_TICKERS, _PERIODS = 200, (1, 60)
_FOUR = (1, 60, 300, 3_600)
_EIGHT = (1, 5, 15, 60, 300, 900, 3_600, 86_400)
_TURNS = 3
_TOGETHER = ("history", "ticks", "bars", "triggers")

_Batches = Sequence[pa.Table]


def run(*, quick: bool) -> Report:
    """Time the engines alone in one thread, then one driver with each query alone and with all of them."""
    report = Report(
        "job_costs",
        "What do the Spark jobs cost for 1,000 ticks, and how does it grow with symbols, periods and triggers?",
        layout="engines: one thread, records in memory, its processor time; queries: Kafka and one driver (local[2])",
        durability="engines: none; queries: as in use",
    )
    rate, seconds = (500, 2) if quick else (5_000, 6)
    base = _engines(report, rate, seconds, quick=quick)
    chosen = [("bars",)] if quick else [("ticks",), ("bars",), ("triggers",), ("history", "bars"), _TOGETHER]
    _queries(report, base, chosen, rate=rate, warm_s=3 if quick else 15, seconds=3 if quick else 15)
    report.notes["reading"] = (
        "engines: the least of three turns; what is said of a query is the driver's processor time over the time "
        "measured, so it holds what Spark costs at rest; a busy machine makes all of it dearer"
    )
    return report


def _engines(report: Report, rate: int, seconds: int, *, quick: bool) -> float:
    """Add what each engine costs; return what bars of the base case do, decoding included."""
    base = _batches(rate, seconds, tickers=_TICKERS)
    ticks = rate * seconds
    decoded = _least_ms(lambda: [list(bar_events(batch)) for batch in base], ticks)
    report.add("decode for bars or triggers", ms_per_1000=decoded)
    archived = _least_ms(lambda: [decode_ticks(batch, seen_at_us=0) for batch in base], ticks)
    report.add("decode for the archive", ms_per_1000=archived)
    events = [list(bar_events(batch)) for batch in base]
    made = _least_ms(lambda: _bars(events, _PERIODS), ticks)
    for tickers in (50, 800):
        others = [list(bar_events(batch)) for batch in _batches(rate, seconds, tickers=tickers)]
        _add_bars(report, others, tickers, _PERIODS, ticks, made)
    report.add(f"bars, {_TICKERS} symbols, {len(_PERIODS)} periods", ms_per_1000=made, to_base=1.0)
    for periods in ((60,), _FOUR, _EIGHT):
        _add_bars(report, events, _TICKERS, periods, ticks, made)
    for count in (0, 100) if quick else (0, 1_000, 10_000):
        definitions = list(_triggers(count))
        matched = _least_ms(lambda found=definitions: _matched(events, found), ticks)  # type: ignore[misc]
        report.add(f"triggers, {count:,} over {_TICKERS} symbols", ms_per_1000=matched)
    return decoded + made


def _add_bars(
    report: Report,
    events: Sequence[Sequence[BarEvent]],
    tickers: int,
    periods: tuple[int, ...],
    ticks: int,
    base_ms: float,
) -> None:
    took = _least_ms(lambda: _bars(events, periods), ticks)
    case = f"bars, {tickers} symbols, {len(periods)} period{'s' * (len(periods) > 1)}"
    report.add(case, ms_per_1000=took, to_base=round(took / base_ms, 2))


def _least_ms(work: Callable[[], object], ticks: int) -> float:
    """Return the processor time of 1,000 ticks in ms, the least of some turns: what disturbs only ever adds."""
    took = []
    for _ in range(_TURNS):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return round(min(took) / ticks * 1e6, 2)


def _batches(rate: int, seconds: int, *, tickers: int) -> _Batches:
    """Return the records of a feed, a second's in a table: ticks of all tickers in turn, and their beats."""
    log = MemoryEventLog()
    log.ensure_topics(platform_topics(prefix="", partitions=6, retention_hours=1))
    feed = TickLog(log, prefix="", tickers=tickers)
    found, ends = [], [0] * 6
    for second in range(seconds):
        feed.ticks(rate, start_ns=_START_NS + second * _SECOND_NS, step_ns=_SECOND_NS // rate)
        rows: list[tuple[str, int, int, bytes, bytes]] = []
        for partition, begin in enumerate(ends):
            records = log.read(TICK_TOPIC, partition=partition, from_offset=begin, limit=1_000_000)
            rows += [(TICK_TOPIC, partition, r.position.offset, r.key, r.value) for r in records]
        ends = list(log.end_offsets(TICK_TOPIC))
        kinds = (pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.binary())
        columns = zip(*rows, strict=True)
        found.append(pa.table({n: pa.array(c, k) for n, c, k in zip(RECORD_COLUMNS, columns, kinds, strict=True)}))
    return found


def _bars(events: Sequence[Sequence[BarEvent]], periods: Iterable[int]) -> None:
    """Fold ticks, and make the messages of final bars and, four times a second, of running ones."""
    wanted = tuple(periods)
    book = BarBook(BarRules(), lambda _: wanted)
    for batch in events:
        quarter = -(-len(batch) // 4)
        for place in range(0, len(batch), quarter):
            made: list[MadeBar] = []
            for ticker, _, _, said in batch[place : place + quarter]:
                if isinstance(said, BarTrade):
                    book.on_trade(ticker, said)
                elif isinstance(said, Beat):
                    made += [one for one in book.on_beat(ticker, said) if isinstance(one, MadeBar)]
            for bar in (*made, *book.running()):
                message_of_bar(bar).SerializeToString()


def _triggers(count: int) -> Iterable[trigger_pb2.CEPTriggerRequest]:
    """Yield thresholds around the feed's prices (42130.00 to 42139.99), each ticker's at levels of its own."""
    for number in range(count):
        ticker = f"T{number % _TICKERS:03}/USDT.BINANCE"
        level = f"{42_130 + number // _TICKERS % 50 / 5:.2f}"
        pattern = when(ticker).crosses(level).build()
        name = f"{number:08d}-1111-4111-8111-111111111111"
        yield trigger_pb2.CEPTriggerRequest(trigger_id=name, pattern=pattern, cooldown_ms=60_000)


def _matched(events: Sequence[Sequence[BarEvent]], definitions: Iterable[trigger_pb2.CEPTriggerRequest]) -> None:
    book = TriggerBook(lateness_ns=0)
    for request in definitions:
        book.register(request, since_ns=_START_NS)
    for batch in events:
        book.take(batch)


def _queries(
    report: Report, engine_ms: float, chosen: Iterable[tuple[str, ...]], *, rate: int, warm_s: int, seconds: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        kafka = RunningKafka(Path(name) / "kafka")
        try:
            for place, jobs in enumerate(chosen):
                world = JobWorld(kafka, Path(name) / str(place), bars_periods=_PERIODS)
                used = _used(report, world, jobs, rate=rate, warm_s=warm_s, seconds=seconds)
                world.log.close()
                if jobs == ("bars",):
                    report.ratio("bars_query_to_its_engine", used / engine_ms)
        finally:
            kafka.close()


def _used(report: Report, world: JobWorld, jobs: tuple[str, ...], *, rate: int, warm_s: int, seconds: int) -> float:
    """Run some queries at rest, then at a rate; add both, and return the ms a 1,000 ticks."""
    feed, stopping = TickLog(world.log, prefix=world.prefix, tickers=_TICKERS), threading.Event()
    with world.driver(*jobs) as process, pulling(world.pull_port) as pull:
        _wait(pull, warm_s / 2)
        rest = _over(process, lambda: _wait(pull, warm_s / 2))
        thread = threading.Thread(target=feed.live, args=(rate,), kwargs={"stopping": stopping}, daemon=True)
        thread.start()
        _wait(pull, warm_s)
        samples = QuerySamples(world)
        busy = _over(process, lambda: _wait(pull, seconds))
        samples.close()
        memory = driver_pss_mib(process)["total"]
        stopping.set()
        thread.join()
    total = sum(busy.values()) / rate * 1e6
    report.add(
        "driver with " + ", ".join(jobs),
        at_rest_ms_per_s=round(sum(rest.values()) * 1000),
        ms_per_1000=round(total, 1),
        python_ms_per_1000=round(busy["python"] / rate * 1e6, 1),
        jvm_ms_per_1000=round(busy["jvm"] / rate * 1e6, 1),
        pss_mib=memory,
    )
    report.notes[f"micro-batches with {', '.join(jobs)}"] = samples.described()
    return total


def _over(process: psutil.Process, wait: Callable[[], None]) -> dict[str, float]:
    """Return the processor seconds a second that a driver uses meanwhile."""
    before, began = driver_cpu_s(process), time.monotonic()
    wait()
    took, after = time.monotonic() - began, driver_cpu_s(process)
    return {name: (after[name] - before[name]) / took for name in after}


def _wait(pull: zmq.Socket[bytes], seconds: float) -> None:
    """Let time pass, and take what is sent meanwhile: a socket that nobody reads would fill."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if pull.poll(100):
            pull.recv_multipart()
