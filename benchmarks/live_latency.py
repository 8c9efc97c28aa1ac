"""How long from the exchange's socket to the client's loop, and what does a tick cost each process?"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import zmq

from benchmarks.processes import cpu_seconds, endpoint, peer, running, wait_for
from benchmarks.report import Latency, Report
from relay_client import Client, ClientSettings, Tick
from tests.support.platform import Platform

__all__ = ["run"]

_SYMBOLS = ("SOL/USDT", "DOGE/USDT", "PEPE/USDT", "XRP/ETH")
_PARTS = ("simulation", "ingestor", "gateway", "manager", "kafka", "history")
_GOAL_P99_US = 2_000
_COMPARED_RATE = 5_000
_WAYS = {"shared memory": {"transport": "shm"}, "shared memory, spinning": {"transport": "shm", "idle": "spin"}}


def run(*, quick: bool) -> Report:
    """Measure each rate twice in turn: the platform, and a plain consumer with libzmq's proxy in its place."""
    report = Report(
        "live_latency",
        "How long from the exchange's socket to the client's loop, against a plain consumer, PUB, zmq.proxy and SUB?",
        layout="the whole platform by relay up (Kafka and Spark archive every tick); client or SUB in the benchmark",
        durability="the fast path waits for nothing; every tick goes to Kafka and Iceberg beside it",
    )
    plan = {200: 2} if quick else {100: 20, 5_000: 20, 50_000: 10}
    with tempfile.TemporaryDirectory() as name:
        platform = Platform(Path(name) / "platform")
        try:
            for rate, seconds in plan.items():
                _drive(platform, rate)
                ours = _platform(report, platform, rate, seconds)
                if rate == _COMPARED_RATE:
                    for way, how in _WAYS.items():
                        shared = _platform(report, platform, rate, seconds, way=way, **how)
                        for percentile in (50, 99):
                            ratio = shared.p_us(percentile) / max(1, ours.p_us(percentile))
                            report.ratio(f"p{percentile}_by_{way}_to_tcp_at_{rate}_a_second", ratio)
                plain = _plain(report, platform, rate, seconds, folder=Path(name))
                _drive(platform, 0)
                for percentile in (50, 99):
                    ratio = ours.p_us(percentile) / max(1, plain.p_us(percentile))
                    report.ratio(f"p{percentile}_to_plain_at_{rate}_a_second", ratio)
                if rate == _COMPARED_RATE:
                    report.ratio("p99_at_5000_to_2_ms", ours.p_us(99) / _GOAL_P99_US, goal_max=1.0)
        finally:
            platform.close()
    report.notes["reading"] = (
        "received: wall clock before parsing in the process that holds the exchange's socket; end: the item in the "
        "client's loop. Client, simulated exchange, Kafka and Spark share the processors with the path that is measured"
    )
    return report


def _drive(platform: Platform, rate: int) -> None:
    order = {"exchange": "binance", "symbols": list(_SYMBOLS), "per_second": rate}
    platform.simulation("/control/drive", order)


def _platform(report: Report, platform: Platform, rate: int, seconds: int, *, way: str = "tcp", **how: str) -> Latency:
    settings = ClientSettings(
        host="127.0.0.1", request_port=platform.ports["request"], subscribe_port=platform.ports["subscribe"]
    ).model_copy(update={"transport": "tcp", **how})
    latency, received = Latency(), 0
    with Client(settings=settings) as client:
        subscription = client.subscribe([f"{symbol}.BINANCE" for symbol in _SYMBOLS], timeout=60, numbers="scaled")
        wait_for(lambda: subscription.transport == settings.transport, what=f"data by {settings.transport}")
        feed = iter(subscription)
        for _ in range(2 * rate):  # warms up: sockets, first batches, the archive
            next(feed)
        before, began = _cpu(platform), time.monotonic()
        end = began + seconds
        while time.monotonic() < end:
            tick = next(feed)
            if not isinstance(tick, Tick):
                continue
            latency.record_ns(time.time_ns() - tick.received_ns)
            received += 1
        took, after = time.monotonic() - began, _cpu(platform)
        counters = subscription.counters()
        subscription.close()
    lost = int(counters["lost"]) + int(counters["overrun"])
    report.add(f"platform, {way}, {rate:,} a second", **latency.row(), per_second=int(received / took), lost=lost)
    if received:
        costs = {name: round((after[name] - before[name]) * 1e6 / received, 1) for name in before}
        report.notes[f"processor time a tick by {way} at {rate:,} a second, µs"] = costs
    return latency


def _cpu(platform: Platform) -> dict[str, float]:
    """Processor seconds of every part, children included, and of this process."""
    parts = platform.parts()
    used = {}
    for name in _PARTS:
        process = psutil.Process(parts[name]["pid"])
        with contextlib.suppress(psutil.Error):
            used[name] = sum(cpu_seconds(p) for p in (process, *process.children(recursive=True)))
    return {**used, "client": cpu_seconds(psutil.Process())}


def _plain(report: Report, platform: Platform, rate: int, seconds: int, *, folder: Path) -> Latency:
    """The same feed through a consumer that parses nothing but the symbol, and libzmq's own proxy."""
    incoming, outgoing = endpoint(), endpoint()
    streams = "/".join(f"{symbol.replace('/', '').lower()}@trade" for symbol in _SYMBOLS)
    url = f"ws://127.0.0.1:{platform.ports['simulation']}/binance-ws/stream?streams={streams}"
    consumer = [sys.executable, "-m", "benchmarks.plain_feed", url, incoming]
    latency, received = Latency(), 0
    with (
        peer("proxy", incoming, outgoing, folder=folder),
        running(consumer, log=folder / "plain_feed.log"),
        _subscriber(outgoing) as socket,
    ):
        for _ in range(rate):
            socket.recv_multipart()
        began = time.monotonic()
        end = began + seconds
        while time.monotonic() < end:
            stamp = socket.recv_multipart()[1]
            latency.record_ns(time.time_ns() - int.from_bytes(stamp, "big"))
            received += 1
        took = time.monotonic() - began
    report.add(f"plain consumer and proxy, {rate:,} a second", **latency.row(), per_second=int(received / took))
    return latency


@contextlib.contextmanager
def _subscriber(address: str) -> Iterator[zmq.Socket[bytes]]:
    context = zmq.Context()
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, 1_000_000)
    socket.rcvtimeo = 60_000
    socket.subscribe(b"")
    socket.connect(address)
    try:
        yield socket
    finally:
        context.destroy(0)
