"""The live example as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.client_world import BTC, GatewayWorld
from tests.support.live_world import BTC_TICK, LiveWorld

ROOT = Path(__file__).resolve().parents[3]


def test_the_live_example_prints_the_ticks_that_come(world: GatewayWorld) -> None:
    live = LiveWorld(world)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RELAY_CLIENT_REQUEST_PORT": str(world.ports["request"]),
        "RELAY_CLIENT_SUBSCRIBE_PORT": str(world.ports["subscribe"]),
    }
    command = [sys.executable, str(ROOT / "examples" / "live_ticks.py"), BTC, "3"]
    try:
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as example:
            live.until_subscribed(BTC_TICK)
            live.trade([1, 2, 3])
            out, errors = example.communicate(timeout=120)
    finally:
        live.close()
    assert example.returncode == 0, errors
    assert [line.rpartition("trade ")[2] for line in out.splitlines()[:3]] == ["1)", "2)", "3)"]
    assert "'received': 3" in out
