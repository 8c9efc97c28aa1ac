"""Aeron's two processes in the benchmark of rings: what they tell, what they need, and that they leave nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import rings, rings_aeron
from benchmarks.java_peer import AERON, MissingPeerError
from benchmarks.rings_work import Work
from tests.support.processes import wait_until

ROOT = Path(__file__).resolve().parents[3]
COUNTS = {
    Work("few", "single", 64, 500): ("single", 500),
    Work("few at once", "batched", 1024, 700): ("batched", 700),
    Work("few round trips", "round_trip", 64, 200): ("round_trip", 200),
}
ENDLESS = """
import sys
from pathlib import Path
from benchmarks import rings_aeron
from benchmarks.rings_work import Work
classes, rings_aeron.SHARED_MEMORY = map(Path, sys.argv[1:])
rings_aeron.AeronPair(classes).figures({Work("endless", "single", 64, 1 << 30): ("single", 1 << 30)}, 1)
"""


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place of the test's own in shared memory, and works that warm up shortly."""
    with tempfile.TemporaryDirectory(prefix="rings-test-", dir=rings_aeron.SHARED_MEMORY) as folder:
        monkeypatch.setattr(rings_aeron, "SHARED_MEMORY", Path(folder))
        monkeypatch.setattr(rings_aeron, "WARM_UP_MESSAGES", 1_000)
        monkeypatch.setattr(rings_aeron, "WARM_UP_ROUND_TRIPS", 200)
        yield Path(folder)


def made(folder: Path) -> rings_aeron.AeronPair:
    try:
        return rings_aeron.AeronPair(folder)
    except MissingPeerError as missing:
        pytest.skip(str(missing))


def processes_of(folder: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_text()
        except OSError:
            continue
        if "AeronIpc\0" in command and str(folder) in command:
            found.append(path.parent.name)
    return found


def test_each_stretch_of_each_work_has_its_figures_and_no_file_is_left(tmp_path, shared):
    found = made(tmp_path).figures(COUNTS, 3)
    assert {work.name: [len(figure) for figure in figures] for work, figures in found.items()} == {
        "few": [1, 1, 1],
        "few at once": [1, 1, 1],
        "few round trips": [2, 2, 2],
    }
    assert all(number > 0 for figures in found.values() for figure in figures for number in figure)
    assert not list(shared.iterdir())
    assert not processes_of(shared)


def test_both_processes_end_and_remove_their_files_when_their_parent_is_killed(tmp_path, shared):
    made(tmp_path)
    (tmp_path / "classes").mkdir()
    parent = subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path / "classes"), str(shared)], cwd=ROOT)
    try:
        wait_until(lambda: len(processes_of(shared)) == 2 and list(shared.rglob("*.logbuffer")), what="two at work")
    finally:
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    wait_until(lambda: not processes_of(shared) and not list(shared.iterdir()), what="the end of both")


def test_a_missing_jar_is_told_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv(AERON.variable, str(tmp_path / "none.jar"))
    pair, told = rings.aeron_pair(tmp_path)
    assert pair is None
    assert told.startswith("not measured: no aeron-all")
    assert "set MARKET_RELAY_AERON_JAR" in told


def test_another_file_than_the_jar_is_refused(tmp_path, monkeypatch):
    (tmp_path / "other.jar").write_bytes(b"PK")
    monkeypatch.setenv(AERON.variable, str(tmp_path / "other.jar"))
    with pytest.raises(ValueError, match="it is another file"):
        rings.aeron_pair(tmp_path)


def test_too_little_shared_memory_is_told(tmp_path, shared, monkeypatch):
    made(tmp_path)
    monkeypatch.setattr(rings_aeron, "SHARED_BYTES_MIN", 1 << 60)
    assert "MiB free" in rings.aeron_pair(tmp_path)[1]
