"""How long until a submitted request is durable and acknowledged, against a bare ROUTER that echoes?"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import zmq

from benchmarks.processes import cpu_seconds, endpoint, gateway, manager, peer
from benchmarks.report import Latency, Report
from relay.protocol.envelope import decode, encode
from relay.protocol.registry import Channel
from relay.protocol.v1 import request_pb2

__all__ = ["run"]

_MINUTE_NS = 60 * 10**9
_BEGIN_NS = 1_600_000_020 * 10**9
_WAIT_MS = 20_000
Submit = request_pb2.SubmitResponse


def run(*, quick: bool) -> Report:
    """Measure one and sixteen requests in flight, all of them new."""
    report = Report(
        "submit_ack",
        "How long until a submitted request is durable and acknowledged, against a bare ROUTER that echoes?",
        layout="client (DEALER) → relay gateway → relay manager, three processes; echo: client → one process; loopback",
        durability="the job is committed (SQLite, WAL, synchronous=FULL) before the answer; the bare echo has no disk",
    )
    count = 300 if quick else 3_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare, durable = endpoint(), endpoint()
        with peer("echo", bare, folder=folder), peer("echo", durable, "durable", folder=folder):
            _platform(report, folder, count, bare=bare, durable=durable)
    return report


def _platform(report: Report, folder: Path, count: int, *, bare: str, durable: str) -> None:
    addresses = {
        name: endpoint() for name in ("request", "subscribe", "fast_path", "manager_request", "manager_publish")
    }
    inner = {
        "request": addresses["manager_request"],
        "publish": addresses["manager_publish"],
        "work": endpoint(),
        "notification": endpoint(),
    }
    with manager(inner, folder=folder) as managing, gateway(addresses, folder=folder) as relaying:
        ours = addresses["request"]
        _until_available(ours)
        for in_flight in (1, 16):
            measured: dict[str, Latency] = {}
            before = cpu_seconds(relaying), cpu_seconds(managing)
            for what, where in (("echo", bare), ("echo, one durable write", durable), ("relay and manager", ours)):
                _exchange(where, count // 5, in_flight=in_flight)
                started = time.perf_counter()
                measured[what] = _exchange(where, count, in_flight=in_flight)
                rate = count / (time.perf_counter() - started)
                report.add(f"{what}, {in_flight} in flight", **measured[what].row(), per_second=int(rate))
            per_request = 1e6 / (count + count // 5)
            report.notes[f"processor time a request, {in_flight} in flight"] = (
                f"relay {(cpu_seconds(relaying) - before[0]) * per_request:.0f} µs, "
                f"manager {(cpu_seconds(managing) - before[1]) * per_request:.0f} µs"
            )
            for p in (50, 99):
                mine = measured["relay and manager"].p_us(p)
                report.ratio(f"p{p}_to_echo_{in_flight}_in_flight", mine / measured["echo"].p_us(p), goal_max=2.0)
                report.ratio(
                    f"p{p}_to_durable_echo_{in_flight}_in_flight", mine / measured["echo, one durable write"].p_us(p)
                )


def _until_available(where: str) -> None:
    """The relay says UNAVAILABLE until it has heard the manager's beat."""
    with _dealer(where) as dealer:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            dealer.send_multipart(_request(0)())
            reply = decode(dealer.recv_multipart(), Channel.CLIENT_REPLY).message
            if isinstance(reply, Submit) and reply.status == Submit.QUEUED:
                return
            time.sleep(0.05)
    raise TimeoutError("the manager did not accept a request within 30 s")


def _exchange(where: str, count: int, *, in_flight: int) -> Latency:
    """Send ``count`` requests, ``in_flight`` at a time; the answers come in order."""
    latency = Latency()
    messages = [_request(number)() for number in range(count)]
    with _dealer(where) as dealer:
        sent_ns: list[int] = []
        for answered in range(count):
            while len(sent_ns) < min(count, answered + in_flight):
                sent_ns.append(time.perf_counter_ns())
                dealer.send_multipart(messages[len(sent_ns) - 1])
            answer = dealer.recv_multipart()
            latency.record_ns(time.perf_counter_ns() - sent_ns[answered])
            _check(answer)
    return latency


def _check(answer: list[bytes]) -> None:
    if answer[-1][0] != 0x10:  # an echo sends the request itself back
        reply = decode(answer, Channel.CLIENT_REPLY).message
        if not isinstance(reply, Submit) or reply.status != Submit.QUEUED:
            raise RuntimeError(f"expected QUEUED, got {reply}")


def _dealer(where: str) -> zmq.Socket[bytes]:
    dealer: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    dealer.linger, dealer.rcvtimeo = 0, _WAIT_MS
    dealer.connect(where)
    return dealer


def _request(number: int) -> Callable[[], list[bytes]]:
    """A request that joins no other: each has a range of its own."""
    start_ns = _BEGIN_NS + number * 10 * _MINUTE_NS

    def build() -> list[bytes]:
        message = request_pb2.SubmitHistoricalRequest(
            request_id=str(uuid.uuid4()),
            client_id=str(uuid.uuid4()),
            ticker="BTC/USDT.BINANCE",
            start_time=start_ns,
            end_time=start_ns + 10 * _MINUTE_NS,
            period_seconds=60,
        )
        return [b"", *encode(message)]

    return build
