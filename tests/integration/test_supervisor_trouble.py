"""The supervisor on a full disk, with parts that leave children behind, and after one that was killed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from relay.supervisor.children import Child, is_ready
from relay.supervisor.jars_store import ensure_jars
from relay.supervisor.java import find_java
from relay.supervisor.kafka_server import KafkaServer
from relay.supervisor.plan import Part
from relay.supervisor.settings import UpSettings
from relay.supervisor.supervise import Supervisor
from tests.support.processes import free_port, wait_until

WAITING = (sys.executable, "-c", "import threading; threading.Event().wait()")
WITH_CHILD = (
    sys.executable,
    "-c",
    "import subprocess, sys, threading; subprocess.Popen([sys.executable, '-c', 'import threading; "
    "threading.Event().wait()']); threading.Event().wait()",
)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def supervise(folder: Path, command: tuple[str, ...], said: list[str]) -> tuple[Supervisor, Child]:
    supervisor = Supervisor(UpSettings(data_folder=folder), said.append)
    child = Child(Part("part", command, ready_port=1), folder / "logs" / "part.log")
    supervisor._children = [child]
    return supervisor, child


@pytest.fixture
def small_disk(tmp_path: Path):
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this machine lets nobody mount a small disk")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=False)


def fill(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            pass
    assert shutil.disk_usage(folder).free == 0
    return filler


def test_a_full_disk_is_said_once_and_the_parts_start_when_there_is_space_again(small_disk):
    said: list[str] = []
    supervisor, child = supervise(small_disk / "data", WAITING, said)
    supervisor._is_state_due = True
    child.log = small_disk / "data" / "logs" / "new" / "part.log"  # not there: as good as a disk without an inode
    filler = fill(small_disk)
    for _ in range(3):
        supervisor.look_after()
    assert child.pid is None
    assert any("disk full at" in text for text in said)
    filler.unlink()
    child.log.parent.mkdir()
    wait_until(lambda: supervisor.look_after() or child.pid, what="the part to start")
    supervisor.stop()


def test_a_state_that_cannot_be_written_ends_nothing_and_is_written_later(tmp_path, monkeypatch):
    said: list[str] = []
    supervisor, child = supervise(tmp_path, WAITING, said)
    full = OSError(28, "No space left on device")
    write = supervisor._data.write_state

    def fail(parts: object) -> None:
        raise full

    monkeypatch.setattr(supervisor._data, "write_state", fail)
    for _ in range(3):
        supervisor.look_after()
    assert [text for text in said if "disk full" in text] == [said[0]]
    assert child.pid is not None
    monkeypatch.setattr(supervisor._data, "write_state", write)
    supervisor.look_after()
    assert (tmp_path / "run" / "state.json").exists()
    supervisor.stop()


def test_output_that_cannot_be_written_ends_nothing(tmp_path):
    def say(text: str) -> None:
        raise OSError(28, "No space left on device")

    supervisor = Supervisor(UpSettings(data_folder=tmp_path), say)
    supervisor._children = [Child(Part("part", ("/bin/true",), ready_port=1), tmp_path / "logs" / "part.log")]
    wait_until(lambda: supervisor.look_after() or supervisor._children[0].policy.deaths, what="the part to die")
    supervisor.stop()


def test_what_a_killed_part_leaves_behind_is_ended_before_it_starts_again(tmp_path):
    supervisor, child = supervise(tmp_path, WITH_CHILD, [])
    supervisor.look_after()
    first = child.pid
    wait_until(lambda: psutil.Process(first).children(), what="the part's own child")
    left = psutil.Process(first).children()[0].pid
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: supervisor.look_after() or (child.pid or first) != first, what="the part to start again")
    wait_until(lambda: not is_alive(left), what="what was left behind to end")
    supervisor.stop()


def test_a_guard_that_is_killed_takes_its_program_with_it():
    guard = subprocess.Popen([sys.executable, "-m", "relay.supervisor.guard", str(os.getpid()), *WAITING])
    wait_until(lambda: psutil.Process(guard.pid).children(), what="the guarded program")
    guarded = psutil.Process(guard.pid).children()[0].pid
    guard.kill()
    guard.wait()
    wait_until(lambda: not is_alive(guarded), what="the guarded program to end")


def test_a_port_that_another_process_holds_makes_no_part_ready():
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        port = listener.getsockname()[1]
        other = subprocess.Popen(WAITING)
        try:
            assert not is_ready(Part("kafka", WAITING, ready_port=port), other.pid)
            assert is_ready(Part("kafka", WAITING, ready_port=port), os.getpid())
            assert not is_ready(Part("kafka", WAITING, ready_port=port), None)
        finally:
            other.kill()
            other.wait()


def test_a_cluster_id_that_begins_with_a_dash_is_an_id_and_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    dashed = uuid.UUID(bytes=b"\xf8" + bytes(15), version=4)
    monkeypatch.setattr("relay.supervisor.kafka_server.uuid.uuid4", lambda: dashed)
    java = find_java()
    KafkaServer(java, ensure_jars("kafka", java, say=print), tmp_path / "kafka", free_port(), free_port()).prepare()
    assert "cluster.id=-" in (tmp_path / "kafka" / "data" / "meta.properties").read_text()
