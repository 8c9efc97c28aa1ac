"""What does shared memory save a client on the relay's host, in time and in processor?"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.processes import cpu_seconds, endpoint, gateway, running, wait_for
from benchmarks.report import Latency, Report
from benchmarks.tick_source import TICKER
from relay_client import Client, ClientSettings, Tick

__all__ = ["run"]

_RATE = 5_000
_NAMES = ("request", "subscribe", "fast_path", "manager_request", "manager_publish")
_WAYS: dict[str, dict[str, str]] = {
    "tcp": {"transport": "tcp"},
    "shared memory, asleep": {"transport": "shm"},
    "shared memory, spinning": {"transport": "shm", "idle": "spin"},
    "shared memory, spinning, direct": {"transport": "shm", "idle": "spin"},
}
_DIRECT = "direct"


@dataclass(slots=True)
class _Measured:
    """Of one way, over all its rounds."""

    latency: Latency = field(default_factory=Latency)
    relay_s: float = 0.0
    client_s: float = 0.0
    wall_s: float = 0.0


def run(*, quick: bool) -> Report:
    """Measure each way in turn, several rounds, with a relay that sleeps and one that spins."""
    report = Report(
        "fan_out_local",
        "How long from a tick's making to a callback on the relay's host, by TCP and by shared memory, and what for?",
        layout="source (ring in shared memory) → relay gateway → client in the benchmark's process, callback",
        durability="nothing is written",
    )
    seconds, rounds = (1, 1) if quick else (10, 3)
    for relay_idle in ("sleep", "spin"):
        measured = _of_relay(relay_idle, seconds=seconds, rounds=rounds)
        for way, found in measured.items():
            count = found.latency.count
            report.add(
                f"relay {relay_idle}s, {way}",
                **found.latency.row(),
                per_second=int(count / found.wall_s),
                relay_cpu_us_per_message=round(found.relay_s * 1e6 / count, 1),
                client_cpu_us_per_message=round(found.client_s * 1e6 / count, 1),
            )
        for way in list(_WAYS)[1:]:
            for percentile in (50, 99):
                ratio = measured[way].latency.p_us(percentile) / max(1, measured["tcp"].latency.p_us(percentile))
                report.ratio(f"relay {relay_idle}s, p{percentile} of {way} to tcp", ratio)
    report.notes["reading"] = (
        f"at {_RATE:,} ticks a second, evenly spaced; from the time in the tick, taken before it is made and stamped, "
        "to the user's callback, in its own thread or, where it is direct, in the client's. The processor time of who "
        "spins is all the time there is"
    )
    return report


def _of_relay(idle: str, *, seconds: int, rounds: int) -> dict[str, _Measured]:
    """Measure each way in turn with one source and one gateway."""
    measured = {way: _Measured() for way in _WAYS}
    with tempfile.TemporaryDirectory() as name, _chain(Path(name), idle) as (settings, relay):
        for _ in range(rounds):
            for way, how in _WAYS.items():
                is_direct = way.endswith(_DIRECT)
                _measure(measured[way], settings.model_copy(update=how), relay, seconds, is_direct=is_direct)
    return measured


def _measure(
    into: _Measured, settings: ClientSettings, relay: psutil.Process, seconds: int, *, is_direct: bool
) -> None:
    latency, is_measuring, own = into.latency, False, psutil.Process()

    def callback(tick: object) -> None:
        if is_measuring and isinstance(tick, Tick):
            latency.record_ns(time.time_ns() - tick.received_ns)

    with Client(settings=settings) as client:
        subscription = client.subscribe(TICKER, numbers="scaled", timeout=60, repair=False)
        subscription.on(callback, direct=is_direct)
        wait_for(lambda: subscription.transport == settings.transport, what=f"data by {settings.transport}")
        end = subscription.counters()["received"] + _RATE
        wait_for(lambda: subscription.counters()["received"] >= end, what="a second of ticks")
        before, began = (cpu_seconds(relay), cpu_seconds(own)), time.monotonic()
        is_measuring = True
        time.sleep(seconds)
        is_measuring = False
        into.wall_s += time.monotonic() - began
        into.relay_s += cpu_seconds(relay) - before[0]
        into.client_s += cpu_seconds(own) - before[1]
        counters = subscription.counters()
        if counters["lost"] or counters["overrun"]:
            raise RuntimeError(f"expected no tick to be lost, got {dict(counters)}")


@contextlib.contextmanager
def _chain(folder: Path, idle: str) -> Iterator[tuple[ClientSettings, psutil.Process]]:
    addresses = {name: endpoint() for name in _NAMES}
    at = {name: addresses[name] for name in ("fast_path", "manager_request", "manager_publish")}
    source = [sys.executable, "-m", "benchmarks.tick_source", *at.values(), str(_RATE)]
    settings = ClientSettings(request_endpoint=addresses["request"], subscribe_endpoint=addresses["subscribe"])
    with gateway(addresses, folder=folder, idle=idle) as relay, running(source, log=folder / "source.log"):
        with Client(settings=settings) as client:
            wait_for(lambda: client.probe().manager_available, what="the manager to be heard")
        yield settings, relay
