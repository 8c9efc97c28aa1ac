"""The ``ingestor`` command as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relay.transport import SocketKind, new_context, open_socket
from tests.support.processes import Process, wait_until

DEADLINE_SECONDS = 60
MAIN = "from ingestors.cli import command; command(prog_name='ingestor')"
PARENT = """
import subprocess, sys, os
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], *sys.argv[2:], "--parent-pid", str(os.getpid())])
print(child.pid, flush=True)
child.wait()
"""


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RELAY_")}
    return kept | {"PYTHONPATH": str(Path(__file__).resolve().parents[3])}


@pytest.fixture
def broker_endpoint() -> Iterator[str]:
    context = new_context()
    socket = open_socket(context, SocketKind.ROUTER, bind=["tcp://127.0.0.1:*"])
    yield socket.last_endpoint.decode()
    socket.close(0)
    context.term()


def _arguments(broker_endpoint: str) -> list[str]:
    # Nothing listens at the log: a process must start and stop cleanly all the same.
    return ["--exchange", "binance", "--broker-endpoint", broker_endpoint, "--log-bootstrap-servers", "127.0.0.1:1",
            "--status-port", "0"]  # fmt: skip


def _started(log: Path) -> dict[str, Any]:
    def event() -> dict[str, Any] | None:
        for line in log.read_text().splitlines():
            said = json.loads(line) if line.startswith("{") and line.endswith("}") else {}
            if said.get("event") == "ingestor_started":
                return dict(said)
        return None

    found = wait_until(event, what="the ingestor's start")
    assert isinstance(found, dict)
    return found


def test_sigterm_ends_it_with_exit_code_zero_and_its_status_was_served(broker_endpoint: str, tmp_path: Path) -> None:
    log = tmp_path / "ingestor.log"
    process = Process([sys.executable, "-c", MAIN, *_arguments(broker_endpoint)], log=log, environment=_environment())
    try:
        event = _started(log)
        with urllib.request.urlopen(f"http://127.0.0.1:{event['status_port']}/status", timeout=10) as answer:
            status = json.load(answer)
        assert status["exchanges"] == {"BINANCE": "full"}
        assert status["ready"] is False
        assert process.terminate(DEADLINE_SECONDS) == 0
    finally:
        process.kill()


def test_a_log_that_is_away_does_not_flood_the_output(broker_endpoint: str, tmp_path: Path) -> None:
    log = tmp_path / "ingestor.log"
    process = Process([sys.executable, "-c", MAIN, *_arguments(broker_endpoint)], log=log, environment=_environment())
    try:
        _started(log)
        wait_until(lambda: "Connection refused" in log.read_text(), what="the first failed connection")
    finally:
        process.terminate(DEADLINE_SECONDS)
    assert log.read_text().count("Connect to ") <= 2


def test_it_leaves_when_its_parent_was_killed(broker_endpoint: str, tmp_path: Path) -> None:
    log = tmp_path / "ingestor.log"
    with log.open("ab") as output:
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, MAIN, *_arguments(broker_endpoint)],
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            env=_environment(),
        )
    assert parent.stdout is not None
    child_pid = int(parent.stdout.readline())
    try:
        _started(log)
        parent.kill()
        parent.wait(DEADLINE_SECONDS)
        wait_until(lambda: not _is_alive(child_pid), what="the child's end")
    finally:
        if _is_alive(child_pid):
            os.kill(child_pid, signal.SIGKILL)
        parent.communicate()


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(["--exchange", "no_such_place"], "NO_SUCH_PLACE"), (["--config", "/nonexistent/relay.toml"], "settings file")],
)
def test_wrong_settings_end_it_with_exit_code_two_and_words(arguments: list[str], expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "--status-port", "0", *arguments],
        capture_output=True,
        text=True,
        env=_environment(),
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert expected in done.stderr
