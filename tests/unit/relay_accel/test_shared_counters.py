"""A process's counters lie in shared memory: others read them, and what the killed left is removed."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from relay.observability import new_counters
from relay.observability.shared_counters import SHARED_MEMORY_OFF, read_shared_counters
from tests.support.accelerator import accelerator

ra = accelerator()
CREATOR_OFFSET = 512


@pytest.fixture
def folder(tmp_path: Path) -> str:
    tmp_path.chmod(0o700)
    return str(tmp_path)


def test_what_is_counted_here_is_seen_there_and_gone_when_it_is_closed(folder):
    counters, shared = new_counters("Gateway", shared_memory=folder)
    counters.add("relay.requests.forwarded")
    counters.add("relay.requests.forwarded", 4)
    counters.set("relay.connections", 7)
    counters.set("relay.connections", 6)
    expected = {"relay.connections": 6, "relay.requests.forwarded": 5}
    assert counters.snapshot() == expected
    assert read_shared_counters(shared_memory=folder) == {("gateway", os.getpid()): expected}
    shared.close()
    shared.close()
    assert read_shared_counters(shared_memory=folder) == {}
    counters.add("relay.connections")
    assert counters.get("relay.connections") == 7, "counting goes on"


def test_a_name_that_is_too_long_and_a_set_that_is_full_are_counted_in_the_process_alone(folder):
    counters, _shared = new_counters("x", shared_memory=folder)
    counters.add("y" * 65, 3)
    for n in range(600):
        counters.add(f"c{n}", n)
    assert counters.get("y" * 65) == 3
    assert counters.get("c599") == 599
    assert len(counters.snapshot()) == 601
    assert len(read_shared_counters(shared_memory=folder)["x", os.getpid()]) == 512


def test_without_shared_memory_counting_works_the_same(folder):
    (Path(folder) / "file").write_text("no folder")
    for place in (SHARED_MEMORY_OFF, f"{folder}/file", f"{folder}/missing/deep"):
        counters, shared = new_counters("x", shared_memory=place)
        counters.add("a", 2)
        assert (counters.snapshot(), shared) == ({"a": 2}, None)


def test_two_sets_of_one_process_are_shown_together(folder):
    one, _first = new_counters("client", shared_memory=folder)
    other, _second = new_counters("client", shared_memory=folder)
    one.add("a", 2)
    other.add("a", 3)
    assert read_shared_counters(shared_memory=folder) == {("client", os.getpid()): {"a": 5}}


def test_what_a_killed_process_left_is_not_shown_and_removed_at_the_next_start(folder):
    code = (
        "import sys, time; from relay.observability import new_counters\n"
        f"counters, shared = new_counters('dead', shared_memory={folder!r})\n"
        "counters.add('a', 7); print('counted', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"counted\n"
    assert read_shared_counters(shared_memory=folder) == {("dead", child.pid): {"a": 7}}
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert len(ra.segment_names(directory=folder)) == 1
    assert read_shared_counters(shared_memory=folder) == {}
    _counters, shared = new_counters("next", shared_memory=folder)
    assert ra.segment_names(directory=folder) == [f"counters.next.{os.getpid()}.{_number(folder)}"]
    shared.close()
    assert ra.segment_names(directory=folder) == []


def _number(folder: str) -> str:
    return ra.segment_names(directory=folder)[0].rpartition(".")[2]


def test_a_name_that_anothers_process_of_the_same_number_has_left_is_passed_over(folder, monkeypatch):
    taken = [ra.Counters.create(f"counters.gateway.{os.getpid()}.{n}", 8, directory=folder) for n in range(3)]
    monkeypatch.setattr("relay.observability.shared_counters._NUMBERS", iter(range(100)))
    counters, shared = new_counters("gateway", shared_memory=folder)
    assert shared is not None
    counters.add("a")
    shared.close()
    assert len(ra.segment_names(directory=folder)) == len(taken)


def _made_elsewhere(folder: str, part: str) -> ra.Counters:
    """A set whose creator lives in another pid namespace."""
    made = ra.Counters.create(f"counters.{part}.{os.getpid()}.900", 8, directory=folder)
    made.allocate(1_000, "a").add(100)
    with (Path(folder) / f"counters.{part}.{os.getpid()}.900").open("r+b") as segment:
        segment.seek(CREATOR_OFFSET)
        segment.write((1 | (2**22 - 1) << 42).to_bytes(8, "little"))
    return made


def test_counters_of_an_unknown_process_are_shown_but_not_added_to_those_of_a_living_one(folder):
    elsewhere = [_made_elsewhere(folder, part) for part in ("gateway", "manager")]
    counters, _shared = new_counters("gateway", shared_memory=folder)
    counters.add("a", 2)
    found = read_shared_counters(shared_memory=folder)
    assert found == {("gateway", os.getpid()): {"a": 2}, ("manager", os.getpid()): {"a": 100}}
    assert len(elsewhere) == 2


def test_what_an_unknown_process_left_is_removed_when_nobody_has_it_open(folder):
    _made_elsewhere(folder, "manager")
    gc.collect()
    counters, _shared = new_counters("gateway", shared_memory=folder)
    counters.add("a", 2)
    assert read_shared_counters(shared_memory=folder) == {("gateway", os.getpid()): {"a": 2}}
    assert len(ra.segment_names(directory=folder)) == 1


def test_foreign_files_in_the_folder_are_passed_over(folder, tmp_path):
    (tmp_path / "counters.a.1.0").mkdir()
    os.mkfifo(tmp_path / "counters.b.1.0", 0o600)
    (tmp_path / "counters.c.1.0").symlink_to("/dev/zero")
    (tmp_path / "counters.d.x.y").touch(0o600)
    ra.Ring.create("counters.ring.1.0", 1024, directory=folder)
    counters, _shared = new_counters("gateway", shared_memory=folder)
    counters.add("a")
    assert read_shared_counters(shared_memory=folder) == {("gateway", os.getpid()): {"a": 1}}
    assert (tmp_path / "counters.b.1.0").exists()
