"""`relay up`: one data folder, one supervisor, no orphans, the same data at the next start."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from relay.protocol.ranges import Range
from relay.protocol.times import parse_iso_ns
from tests.support.platform import MINUTE_NS, RELAY, Platform
from tests.support.processes import Process, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


def everything_below(platform: Platform) -> list[int]:
    root = psutil.Process(platform.process.pid)
    return [root.pid, *(child.pid for child in root.children(recursive=True))]


def test_status_shows_every_part_and_a_second_supervisor_is_refused_with_the_holder(platform: Platform, tmp_path):
    platform.wait_ready()
    status = platform.command("status", "--json")
    assert status.returncode == 0, status.stderr
    parts = {part["name"]: part for part in json.loads(status.stdout)["parts"]}
    assert set(parts) == {"kafka", "history", "gateway", "manager", "ingestor", "simulation"}
    assert all(part["health"] == "ready" and part["memory_bytes"] > 0 for part in parts.values())
    assert all(Path(part["log"]).is_file() for part in parts.values())
    queries = parts["history"]["queries"]
    assert set(queries) == {"history", "ticks", "bars", "triggers"}
    assert all(query["running"] and not query["failures"] for query in queries.values())

    def lag() -> dict[str, int]:
        told = json.loads(platform.command("status", "--json").stdout)["parts"]
        return next(p["queries"]["history"].get("lag", {}) for p in told if p["name"] == "history")

    wait_until(lambda: "market-ohlc" in lag(), what="the first word of Spark about its lag", deadline_s=60)
    second = platform.command("up", "--no-first-request")
    assert second.returncode == 2
    assert f"pid {platform.process.pid}" in second.stderr
    elsewhere = platform.command("up", "--data", str(tmp_path / "elsewhere"), "--no-first-request")
    assert elsewhere.returncode == 2
    assert "is taken; held by" in elsewhere.stderr
    stat = platform.command("stat", "--json")
    assert stat.returncode == 0
    assert {"gateway", "manager", "ingestor", "history"} <= set(json.loads(stat.stdout))


def test_a_killed_supervisor_leaves_no_orphan_and_the_next_start_shows_bars_and_has_the_old_ones_still(tmp_path: Path):
    platform = Platform(tmp_path / "data")
    start_ns = parse_iso_ns("2025-03-01")
    within = Range(start_ns, start_ns + 120 * MINUTE_NS)
    first = platform.outcome(platform.submit("BTC/USDT.BINANCE", within))
    assert first.row_count == 120
    pids = everything_below(platform)
    os.kill(platform.process.pid, signal.SIGKILL)
    wait_until(lambda: not alive(pids[1:]), what="orphans to end", deadline_s=60)

    # A start refuses ports that are taken.
    once = platform.start("--once")
    wait_until(lambda: once.returncode is not None, what="--once to end", deadline_s=240)
    assert once.returncode == 0, once.tail()
    assert "BTC/USDT.BINANCE" in once.log.read_text()
    assert platform.lake().read_bars("BTC/USDT.BINANCE", 60, within=within).num_rows == 120
    assert len(platform.lake().coverage("BTC/USDT.BINANCE", 60, within=Range(0, 2 * 10**18))) >= 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--replay", "/nowhere.csv", "--ticker", "A/B.BINANCE"], "no such file"),
        (["--ticker", "A/B.BINANCE"], "go together"),
    ],
)
def test_wrong_arguments_are_told_before_anything_starts(tmp_path: Path, arguments, words):
    process = Process([*RELAY, "up", "--data", str(tmp_path / "data"), *arguments], log=tmp_path / "up.log")
    wait_until(lambda: process.returncode is not None, what="relay up to give up")
    assert process.returncode == 2
    assert words in process.tail()
