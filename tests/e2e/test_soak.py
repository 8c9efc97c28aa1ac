"""Ticks for a long time: nothing lost, nothing doubled, and the memory of every part stays flat.

Two minutes with the other tests; ``make soak`` takes two hours, or what ``MARKET_RELAY_SOAK_SECONDS`` says.
"""

from __future__ import annotations

import os
import statistics
import time

import psutil
import pytest

from relay_client import Loss
from tests.e2e.test_live import Watcher, balanced, drive
from tests.support.platform import Platform
from tests.support.processes import wait_until

SOAK_SECONDS = int(os.environ.get("MARKET_RELAY_SOAK_SECONDS", "7200"))
pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(SOAK_SECONDS + 900)]

SMOKE_SECONDS = 120
RATE = 200
SYMBOL, NATIVE, TICKER = "XRP/ETH", "XRPETH", "XRP/ETH.BINANCE"
FLAT = ("gateway", "manager", "ingestor")
"""Parts in Python alone; the heaps of Kafka and Spark are bounded by their settings and fill as the JVM likes."""
GROWTH_MAX = 16 * 1024 * 1024
SAMPLES = 24


def memory(platform: Platform) -> dict[str, int]:
    """Resident bytes of the parts whose memory must stay flat."""
    return {name: psutil.Process(platform.parts()[name]["pid"]).memory_info().rss for name in FLAT}


@pytest.mark.parametrize("seconds", [SMOKE_SECONDS, pytest.param(SOAK_SECONDS, marks=pytest.mark.soak)])
def test_ticks_flow_for_long_without_a_loss_and_with_flat_memory(platform: Platform, seconds: int) -> None:
    platform.wait_ready()
    drive(platform, SYMBOL, RATE)
    watcher = Watcher(platform, TICKER)
    samples: list[dict[str, int]] = []
    began = time.monotonic()

    def sampled() -> bool:
        if time.monotonic() - began >= len(samples) * seconds / SAMPLES:
            samples.append(memory(platform))
        return len(samples) > SAMPLES

    try:
        wait_until(sampled, what="the time to pass", deadline_s=seconds + 300)
        drive(platform, SYMBOL, 0)
        balanced(platform, watcher, NATIVE)
    finally:
        drive(platform, SYMBOL, 0)
        watcher.close()
    assert len(watcher.ids) > RATE * seconds / 2
    assert not [event for event in watcher.events if isinstance(event, Loss)]
    assert not watcher.said_lost()
    for name in FLAT:
        early = statistics.median(sample[name] for sample in samples[SAMPLES // 3 : 2 * SAMPLES // 3])
        late = statistics.median(sample[name] for sample in samples[2 * SAMPLES // 3 :])
        assert late - early < GROWTH_MAX, f"{name} grew from {early:,} to {late:,} bytes"
