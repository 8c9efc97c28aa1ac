"""The live examples as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from relay.protocol.v1 import market_pb2
from tests.support.client_world import BTC, GatewayWorld
from tests.support.live_world import BTC_TICK, LiveWorld

ROOT = Path(__file__).resolve().parents[3]


def run_example(world: GatewayWorld, name: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RELAY_CLIENT_REQUEST_PORT": str(world.ports["request"]),
        "RELAY_CLIENT_SUBSCRIBE_PORT": str(world.ports["subscribe"]),
    }
    command = [sys.executable, str(ROOT / "examples" / name), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_live_example_prints_the_ticks_that_come(world: GatewayWorld) -> None:
    live = LiveWorld(world)
    try:
        with run_example(world, "live_ticks.py", BTC, "3") as example:
            live.until_subscribed(BTC_TICK)
            live.trade([1, 2, 3])
            out, errors = example.communicate(timeout=120)
    finally:
        live.close()
    assert example.returncode == 0, errors
    assert [line.rpartition("trade ")[2] for line in out.splitlines()[:3]] == ["1)", "2)", "3)"]
    assert "'received': 3" in out


def test_the_example_of_bars_keeps_the_last_revision_of_each(world: GatewayWorld) -> None:
    live, topic = LiveWorld(world), f"{BTC}|ohlc:60"
    told = [(0, False, 0, 105), (0, True, 0, 106), (0, True, 1, 107), (60, True, 0, 103)]
    try:
        with run_example(world, "live_bars.py", BTC, "60", "2") as example:
            live.until_subscribed(topic)
            for start_s, is_final, revision, high in told:
                bar = market_pb2.OHLC(ticker=BTC, period_seconds=60, timestamp=start_s * 10**9, volume="1", trades=2)
                bar.open, bar.low, bar.close, bar.high, bar.price_decimals = 101, 100, 102, high, 0
                bar.is_final, bar.revision = is_final, revision
                world.manager.publish(topic, bar)
            out, errors = example.communicate(timeout=120)
    finally:
        live.close()
    assert example.returncode == 0, errors
    assert [line.split()[1:3] for line in out.splitlines()[:4]] == [
        ["runs:", "2"],
        ["revision", "0:"],
        ["revision", "1:"],
        ["revision", "0:"],
    ]
    assert out.splitlines()[-1] == "kept 2 bars, highest 107"
