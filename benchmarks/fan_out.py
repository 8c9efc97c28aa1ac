"""How many market-data messages a second does the relay fan out, against libzmq's own proxy?"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import zmq

from benchmarks.peers import READY
from benchmarks.processes import cpu_seconds, endpoint, gateway, peer
from benchmarks.report import Report
from relay.protocol.envelope import VERSION_FRAME, encode
from relay.protocol.v1 import market_pb2

__all__ = ["run"]

_QUEUE_MAX = 1_000_000
_BODY = encode(
    market_pb2.Tick(
        trade_id="4210994121",
        ticker="BTC/USDT.BINANCE",
        timestamp=1_700_000_000 * 10**9,
        price=4_213_000,
        amount=150_000,
        taker_buy=True,
        received_at=1_700_000_000 * 10**9,
        price_decimals=2,
        amount_decimals=5,
    )
)[1]
_TOPIC = b"BTC/USDT.BINANCE|tick"
_BEAT = (b"HEARTBEAT:MANAGER", *encode(market_pb2.Heartbeat(source=market_pb2.Heartbeat.MANAGER)))
"""Without it the relay takes the publisher's side for dead and connects anew, which loses messages."""
_WAYS = ("libzmq proxy", "relay, publisher side", "relay, fast path", "relay, fast path in Python")
"""The last one without the accelerator: every message passes a loop in Python."""


def run(*, quick: bool) -> Report:
    """Measure 1, 10 and 100 subscribers; every message counts, none may be lost."""
    report = Report(
        "fan_out",
        "How many market-data messages a second does the relay fan out, against libzmq's own proxy?",
        layout="publisher in the benchmark's process → relay gateway (or zmq.proxy) → all subscribers in one process",
        durability="nothing is written",
    )
    plan = {1: 5_000, 10: 1_000} if quick else {1: 100_000, 10: 50_000, 100: 5_000}
    for subscribers, count in plan.items():
        measured = {}
        for way in _WAYS:
            measured[way] = _measure(way, subscribers, count, rounds=2 if quick else 5)
            wall_s, cpu_s, load_s = measured[way]
            report.add(
                f"{way}, {subscribers} subscribers",
                messages_per_second=int(count / wall_s),
                deliveries_per_second=int(count * subscribers / wall_s),
                forwarder_cpu_us_per_message=round(cpu_s * 1e6 / count, 2),
                forwarder_busy_share=round(load_s, 2),
            )
        for way in _WAYS[1:]:
            name = f"{way.replace('relay, ', '').replace(' ', '_')}_{subscribers}_subscribers"
            report.ratio(f"proxy_rate_to_{name}", measured[way][0] / measured[_WAYS[0]][0])
            report.ratio(f"cpu_{name}_to_proxy", measured[way][1] / measured[_WAYS[0]][1])
    report.notes["reading"] = (
        "publisher and subscribers are Python and share the processors with the forwarder: the ratio of processor time "
        "a message (one thread of zmq's I/O included) compares the forwarders, the ratio of rates the whole chain"
    )
    return report


def _measure(way: str, subscribers: int, count: int, *, rounds: int) -> tuple[float, float, float]:
    """Return seconds of the median round, mean processor seconds of the forwarder a round, and their ratio."""
    with tempfile.TemporaryDirectory() as name, _chain(way, Path(name), subscribers) as (publisher, report, forwarder):
        found = []
        for number in range(rounds + 1):
            cpu_s, started = cpu_seconds(forwarder), time.perf_counter()
            message = (_TOPIC, VERSION_FRAME, _BODY)
            publisher.send_multipart(_BEAT)
            for _ in range(count):
                publisher.send_multipart(message)
            publisher.send_multipart((_TOPIC, VERSION_FRAME, _BODY[:1] + b"END"))
            received = int(report.recv())
            wall_s = time.perf_counter() - started
            if received != count * subscribers:
                raise RuntimeError(f"{way}: expected {count * subscribers} deliveries, got {received}")
            if number:  # the first one warms up
                found.append((wall_s, cpu_seconds(forwarder) - cpu_s))
    wall_s, cpu_s = sorted(found)[len(found) // 2]
    cpu_s = sum(cpu for _, cpu in found) / len(found)  # the kernel counts in steps of 10 ms
    return wall_s, max(cpu_s, 1e-6), cpu_s / wall_s


@contextlib.contextmanager
def _chain(
    way: str, folder: Path, subscribers: int
) -> Iterator[tuple[zmq.Socket[bytes], zmq.Socket[bytes], psutil.Process]]:
    names = ("request", "subscribe", "fast_path", "manager_request", "manager_publish")
    addresses = {name: endpoint() for name in names}
    context = zmq.Context()
    publisher, report = context.socket(zmq.XPUB), context.socket(zmq.PULL)
    publisher.setsockopt(zmq.SNDHWM, _QUEUE_MAX)
    report.rcvtimeo = 120_000
    report_at = endpoint()
    report.bind(report_at)
    if way == "relay, publisher side":
        publisher.bind(addresses["manager_publish"])
    else:
        publisher.connect(addresses["fast_path"])
    forwarder = (
        peer("proxy", addresses["fast_path"], addresses["subscribe"], folder=folder)
        if way == "libzmq proxy"
        else gateway(addresses, folder=folder, client_queue_max=_QUEUE_MAX, with_accelerator=not way.endswith("Python"))
    )
    sink = peer("sink", addresses["subscribe"], report_at, _TOPIC.decode(), str(subscribers), folder=folder)
    try:
        with forwarder as process, sink:
            _until_all_hear(publisher, report, subscribers)
            yield publisher, report, process
    finally:
        context.destroy(0)


def _until_all_hear(publisher: zmq.Socket[bytes], report: zmq.Socket[bytes], subscribers: int) -> None:
    """Send markers until one of them has reached every subscriber; then let the rest of them arrive."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        publisher.send_multipart(_BEAT)
        publisher.send_multipart((_TOPIC, VERSION_FRAME, _BODY[:1] + READY))
        heard = 0
        while report.poll(500 if heard else 200):
            report.recv()
            heard += 1
        if heard == subscribers:
            return
    raise TimeoutError("the subscribers did not all hear within 60 s")
