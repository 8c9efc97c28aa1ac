"""The simulated exchange as a process: ready line, SIGTERM, end of its parent, wrong arguments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ingestors.simulation.cli import command
from tests.support.processes import Process, wait_until

PROGRAM = [sys.executable, "-c", "from ingestors.simulation.cli import command; command()"]


def ready_line(log: Path) -> dict[str, Any] | None:
    for line in log.read_text().splitlines() if log.exists() else []:
        if line.startswith('{"ready"'):
            value = json.loads(line)
            assert isinstance(value, dict)
            return value
    return None


def wait_ready(log: Path) -> int:
    line = wait_until(lambda: ready_line(log), what="the line that says ready")
    assert isinstance(line, dict)
    assert line["ready"] is True
    return int(line["port"])


def get(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as response:
        return json.load(response)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_it_says_ready_with_its_port_serves_and_ends_by_sigterm_with_0(tmp_path: Path) -> None:
    process = Process([*PROGRAM, "--seed", "9"], log=tmp_path / "log")
    try:
        port = wait_ready(process.log)
        assert get(port, "/control/health")["seed"] == 9
        assert len(get(port, "/binance/api/v3/klines?symbol=BTCUSDT&interval=1m")) == 500
        assert process.terminate() == 0, process.tail()
    finally:
        process.kill()


def test_it_replays_a_file_at_the_recordings_end(recorded_data: Path, tmp_path: Path) -> None:
    file = recorded_data / "binance" / "XRPETH-1m-2019-10-11_13.parquet"
    arguments = ["--replay", str(file), "--ticker", "XRP/ETH", "--exchange", "BINANCE"]
    process = Process([*PROGRAM, *arguments], log=tmp_path / "log")
    try:
        port = wait_ready(process.log)
        newest = get(port, "/binance/api/v3/klines?symbol=XRPETH&interval=1m&limit=1")[0]
        assert newest[:6] == [1570965540000, "0.00152814", "0.00152817", "0.00152787", "0.00152787", "785.00000000"]
        assert get(port, "/binance/api/v3/time") == {"serverTime": newest[0] + 60_000}
    finally:
        process.kill()


def test_it_replays_a_capture_live_from_its_start_by_control(recorded_data: Path, tmp_path: Path) -> None:
    file = recorded_data / "captures" / "COINBASE.ws.28.0.gz"
    process = Process([*PROGRAM, "--replay", str(file), "--live-speed", "step"], log=tmp_path / "log")
    try:
        port = wait_ready(process.log)
        assert get(port, "/control/clock")["trades_left"] == 97
        assert get(port, "/coinbase/products/SKL-USD/trades")[0]["trade_id"] == 1568267
        request = urllib.request.Request(f"http://127.0.0.1:{port}/control/clock", data=b'{"to": "end"}')
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer)["trades_left"] == 0
        assert get(port, "/coinbase/products/SKL-USD/trades")[0]["trade_id"] == 1568267 + 52
    finally:
        process.kill()


def test_it_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = (
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen({PROGRAM!r} + ['--parent-pid', str(os.getpid())], stdout=open({str(log)!r}, 'wb'))\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        child_pid = int(parent.stdout.readline())
        wait_ready(log)
        assert alive(child_pid)
        parent.kill()
        parent.wait()
        wait_until(lambda: not alive(child_pid), what="the end of the orphan")
    finally:
        parent.kill()
        parent.wait()
        if parent.stdout is not None:
            parent.stdout.close()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--ticker", "XRP/ETH.BINANCE"], "there is no --replay"),
        (["--replay", "a.csv"], "needs --ticker"),
        (["--replay", "a.csv", "--ticker", "XRP/ETH.BINANCE"], "there is no file a.csv"),
        (["--replay", "a.csv", "--ticker", "xrp"], "expected a ticker"),
        (["--port", "70000"], "70000"),
        (["--live-from", "2026-01-01T00:00:00Z"], "there is no --live-speed"),
        (["--live-speed", "max"], "expected a recording to replay live"),
        (["--live-speed", "fast"], "expected a speed of step, max or a factor"),
        (["--replay", "a.gz"], "there is no file a.gz"),
        (["--replay", "a.gz", "--ticker", "XRP/ETH.BINANCE"], "a capture names its own tickers"),
    ],
)
def test_wrong_arguments_say_what_to_do(arguments: list[str], text: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code != 0
    assert text in result.output
