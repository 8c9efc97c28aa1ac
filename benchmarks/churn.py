"""What do 1,000 subscribers of 10,000 topics that come and go cost the relay, against libzmq's own proxy?"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import zmq

from benchmarks.processes import endpoint, gateway, peer
from benchmarks.report import Report

__all__ = ["run"]

_TOPICS_EACH = 20
_WAYS = ("libzmq proxy", "relay")
_DEADLINE_S = 120
_CALM_US = 50_000
_PULSES_PER_SECOND = 1_000
_MIB = 2**20
_Found = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Plan:
    topics: int
    subscribers: int
    seconds: float = 6.0
    batch: int = 100
    connects: int = 10


@dataclass(slots=True)
class _World:
    """Sockets around one forwarder: who is upstream of it, who subscribes, and the pulse that passes meanwhile."""

    context: zmq.Context[zmq.Socket[bytes]]
    subscribe_at: str
    upstream: zmq.Socket[bytes]
    pulse: zmq.Socket[bytes]
    forwarder: psutil.Process
    held: set[bytes] = field(default_factory=set)

    def subscriber(self, topics: Sequence[bytes]) -> zmq.Socket[bytes]:
        socket = self.context.socket(zmq.SUB)
        socket.linger = 0
        socket.setsockopt(zmq.SNDHWM, 1_000_000)  # subscriptions over the bound are lost without a word
        for topic in topics:
            socket.subscribe(topic)
        socket.connect(self.subscribe_at)
        return socket

    def wait(self, condition: Callable[[set[bytes]], bool]) -> None:
        """Wait until the topics upstream meet a condition."""
        end = time.monotonic() + _DEADLINE_S
        while not condition(self.held):
            if time.monotonic() > end:
                raise TimeoutError(f"the topics upstream did not settle within {_DEADLINE_S} s: {len(self.held)} held")
            if self.upstream.poll(100):
                with contextlib.suppress(zmq.Again):
                    while True:
                        said = self.upstream.recv(zmq.NOBLOCK)
                        (self.held.add if said[:1] == b"\x01" else self.held.discard)(said[1:])

    def latency(self) -> dict[str, int]:
        """Return the pulse's percentiles since the last call, and how many of its messages are missing."""
        self.pulse.send(b"")
        return dict(json.loads(self.pulse.recv()))

    def pss_mib(self) -> float:
        return float(self.forwarder.memory_full_info().pss) / _MIB


def run(*, quick: bool) -> Report:
    """Measure the proxy and the relay in turn, with few topics and with many."""
    report = Report(
        "churn",
        "What do 1,000 subscribers of 10,000 topics that come and go cost the relay, against libzmq's own proxy?",
        layout="relay gateway or zmq.proxy; publisher and subscriber of a steady stream in one process, all others in "
        "the benchmark's",
        durability="nothing is written",
    )
    plans = [_Plan(200, 20, seconds=0.5, batch=10)] if quick else [_Plan(1_000, 100), _Plan(10_000, 1_000)]
    for plan in plans:
        measured = {way: _measure(way, plan) for way in _WAYS}
        for way, found in measured.items():
            for case, values in found.items():
                report.add(f"{way}, {plan.topics:,} topics: {case}", **values)
        _compare(report, plan, *(measured[way] for way in _WAYS))
    report.notes["reading"] = (
        "a rate counts what has gone all the way: subscribed and seen upstream, left and gone upstream; latency is "
        "that of a steady stream on a topic of its own meanwhile, from one process through the forwarder back to it. "
        "libzmq looks through all topics for each peer that leaves, once in the proxy and twice in a socket whose "
        "owner accepts subscriptions, as the relay's must"
    )
    return report


def _compare(report: Report, plan: _Plan, proxy: _Found, ours: _Found) -> None:
    for case in ("subscribing", "connecting and vanishing"):
        name = f"{case.split()[0]}_{plan.topics}_topics"
        report.ratio(f"proxy_rate_to_relay_{name}", proxy[case]["per_second"] / ours[case]["per_second"])
        for percentile in ("p50_us", "p99_us"):
            ratio = ours[case][percentile] / max(1, proxy[case][percentile])
            report.ratio(f"{percentile}_to_proxy_{name}", ratio)
    grown = [max(0.01, m["all subscribed"]["pss_mib"] - m["at rest"]["pss_mib"]) for m in (ours, proxy)]
    report.ratio(f"memory_for_all_to_proxy_{plan.topics}_topics", grown[0] / grown[1])


def _measure(way: str, plan: _Plan) -> _Found:
    found: _Found = {}
    with tempfile.TemporaryDirectory() as name, _world(way, Path(name), plan) as world:
        _warm_up(world, plan)
        found["at rest"] = {"pss_mib": round(world.pss_mib(), 1), **_steady(world, plan)}
        dice = random.Random(7)
        topics = [b"T%d/USDT.BINANCE|tick" % number for number in range(plan.topics)]
        began = time.monotonic()
        shares = itertools.cycle(topics)
        sockets = [world.subscriber([next(shares) for _ in range(_TOPICS_EACH)]) for _ in range(plan.subscribers)]
        world.wait(lambda held: len(held & set(topics)) == min(plan.topics, plan.subscribers * _TOPICS_EACH))
        took_s = time.monotonic() - began
        found["all subscribed"] = {
            "subscriptions_per_second": int(plan.subscribers * _TOPICS_EACH / took_s),
            "pss_mib": round(world.pss_mib(), 1),
            **_steady(world, plan),
        }
        found["subscribing"] = _churn(world, plan, plan.batch, lambda own: _switch(world, sockets, own, dice))
        found["connecting and vanishing"] = _churn(world, plan, plan.connects, lambda own: _come_and_go(world, own))
        began = time.monotonic()
        for socket in sockets:
            socket.close(0)
        world.wait(lambda held: not held & set(topics))
        took_s = time.monotonic() - began
        steady = _steady(world, plan)
        found["all left"] = {"took_s": round(took_s, 1), "pss_mib": round(world.pss_mib(), 1), **steady}
    return found


def _warm_up(world: _World, plan: _Plan) -> None:
    """Reach the state in which nothing is allocated for the first time."""
    for _ in range(3):
        _come_and_go(world, [b"W%d/USDT.BINANCE|tick" % number for number in range(plan.connects)])
    _steady(world, plan)


def _steady(world: _World, plan: _Plan) -> dict[str, int]:
    """Let the stream pass undisturbed for a while."""
    end = time.monotonic() + _DEADLINE_S
    while time.monotonic() < end:  # what the phase before has held up passes first
        time.sleep(plan.seconds / 8)
        seen = world.latency()
        if seen["count"] and seen["p50_us"] < _CALM_US:
            break
    time.sleep(plan.seconds / 4)
    return world.latency()


def _churn(world: _World, plan: _Plan, batch: int, turn: Callable[[list[bytes]], None]) -> dict[str, Any]:
    """Make turns for a while, each with some topics that nobody else holds."""
    numbers, count = itertools.count(), 0
    world.latency()
    began = time.monotonic()
    while time.monotonic() - began < plan.seconds:
        turn([b"C%d/USDT.BINANCE|tick" % next(numbers) for _ in range(batch)])
        count += batch
    took_s = time.monotonic() - began
    return {"per_second": int(count / took_s), **world.latency()}


def _switch(world: _World, sockets: Sequence[zmq.Socket[bytes]], topics: Sequence[bytes], dice: random.Random) -> None:
    """Subscribe a topic each on sockets that are there, and take it back."""
    chosen = [dice.choice(sockets) for _ in topics]
    for socket, topic in zip(chosen, topics, strict=True):
        socket.subscribe(topic)
    world.wait(lambda held: held.issuperset(topics))
    for socket, topic in zip(chosen, topics, strict=True):
        socket.unsubscribe(topic)
    world.wait(lambda held: held.isdisjoint(topics))


def _come_and_go(world: _World, topics: Sequence[bytes]) -> None:
    """Connect a subscriber for each topic, and let all vanish."""
    sockets = [world.subscriber([topic]) for topic in topics]
    world.wait(lambda held: held.issuperset(topics))
    for socket in sockets:
        socket.close(0)
    world.wait(lambda held: held.isdisjoint(topics))


@contextlib.contextmanager
def _world(way: str, folder: Path, plan: _Plan) -> Iterator[_World]:
    names = ("request", "subscribe", "fast_path", "manager_request", "manager_publish")
    addresses = {name: endpoint() for name in names}
    context = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 4 * plan.subscribers + 100)
    upstream, pulse = context.socket(zmq.XPUB), context.socket(zmq.REQ)
    upstream.setsockopt(zmq.RCVHWM, 0)
    upstream.connect(addresses["fast_path"])
    pulse.rcvtimeo = _DEADLINE_S * 1000
    pulse_at = endpoint()
    pulse.bind(pulse_at)
    forwarder = (
        peer("proxy", addresses["fast_path"], addresses["subscribe"], folder=folder)
        if way == "libzmq proxy"
        else gateway(addresses, folder=folder)
    )
    rate = str(_PULSES_PER_SECOND)
    beating = peer("pulse", addresses["fast_path"], addresses["subscribe"], pulse_at, rate, folder=folder)
    try:
        with forwarder as process, beating:
            yield _World(context, addresses["subscribe"], upstream, pulse, process)
    finally:
        context.destroy(0)
