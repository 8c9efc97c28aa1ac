"""A folder whose lock another process holds: nobody hangs behind it, and what stayed is removed later."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.observability.shared_counters import new_counters, read_shared_counters
from relay.transport.segments import BEACON_PREFIX, LOCK_WAIT_S, remove_stale
from relay.transport.tick_ring import RING_TOPIC, RingIntake, RingWriter
from tests.support.accelerator import accelerator

ra = accelerator()
LENGTHS = {"Ring": (1024,), "Channel": (4096,), "MpscRing": (1024,), "FixedRing": (8, 8), "Broadcast": (1024,)}
KINDS = {**LENGTHS, "Counters": (8,)}
CREATOR_OFFSET, START_TIME_BIT = 512, 22
RUNS_ON = """
import fcntl, sys, threading
import relay_accel as ra
folder, kind, what, *lengths = sys.argv[1:]
lengths = [int(length) for length in lengths]
made = getattr(ra, kind).create("a", *lengths, directory=folder)
with open(folder + "/a", "r+b") as file:
    file.seek(512)
    word = int.from_bytes(file.read(8), "little") ^ 1 << 22  # Another start time: its creator is dead.
    file.seek(512)
    file.write(word.to_bytes(8, "little"))
lock = open(folder + "/.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
calling = threading.Event()
def let_go():
    calling.wait()
    fcntl.flock(lock, fcntl.LOCK_UN)
other = threading.Thread(target=let_go)
other.start()
sys.setswitchinterval(1_000)  # From here on the other runs only when this thread lets it.
calling.set()
if what == "unlink":
    assert made.unlink(timeout=50)
else:
    assert getattr(ra, kind).create("a", *lengths, directory=folder, replace_stale=True).is_named
"""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    tmp_path.chmod(0o700)
    return str(tmp_path)


@pytest.fixture
def held(folder: str) -> Iterator[int]:
    """The lock of the folder, held by somebody else until the descriptor is closed."""
    descriptor = os.open(f"{folder}/.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield descriptor
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def let_go(held: int) -> None:
    fcntl.flock(held, fcntl.LOCK_UN)


def make_dead(folder: str, name: str) -> None:
    """Give a segment's creator another start time than the process of its number has."""
    with Path(folder, name).open("r+b") as segment:
        segment.seek(CREATOR_OFFSET)
        word = int.from_bytes(segment.read(8), "little") ^ 1 << START_TIME_BIT
        segment.seek(CREATOR_OFFSET)
        segment.write(word.to_bytes(8, "little"))


@pytest.mark.parametrize("what", ["unlink", "create"])
@pytest.mark.parametrize("kind", KINDS)
def test_other_threads_run_while_one_waits_for_the_folder(folder, kind, what):
    command = [sys.executable, "-c", RUNS_ON, folder, kind, what, *map(str, KINDS[kind])]
    subprocess.run(command, check=True, timeout=60)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_is_held_for_too_long_is_told_by_name_and_changes_nothing(folder, held, kind):
    make = getattr(ra, kind).create
    made = make("a", *KINDS[kind], directory=folder)
    with pytest.raises(ra.StorageError, match=r"\.lock: held for over 0 ms by .*; let that process run on") as refused:
        made.unlink(timeout=0)
    assert refused.value.code == "LOCK_BUSY"
    assert made.is_named
    make_dead(folder, "a")
    with pytest.raises(ra.StorageError, match="held for over 1000 ms") as refused:
        make("a", *KINDS[kind], directory=folder, replace_stale=True)
    assert refused.value.code == "LOCK_BUSY"
    assert ra.segment_names(directory=folder) == ["a"]
    let_go(held)
    assert make("a", *KINDS[kind], directory=folder, replace_stale=True).is_named
    assert not made.is_named


def test_what_has_a_name_of_its_own_is_made_while_the_folder_is_held(folder, held):
    assert ra.Ring.create("a", 1024, directory=folder, replace_stale=True).is_named


def test_a_time_that_is_none_is_refused(folder):
    ring = ra.Ring.create("a", 1024, directory=folder)
    for timeout in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="expected seconds of 0 or more"):
            ring.unlink(timeout=timeout)


def test_counters_close_while_the_folder_is_held_and_the_next_start_removes_them(folder, held):
    code = (
        "from relay.observability import new_counters\n"
        f"counters, shared = new_counters('dead', shared_memory={folder!r})\n"
        "counters.add('a', 7); shared.close(); shared.close(); counters.add('a')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert len(ra.segment_names(directory=folder)) == 1
    counters, shared = new_counters("next", shared_memory=folder)
    counters.add("b")
    assert read_shared_counters(shared_memory=folder) == {("next", os.getpid()): {"b": 1}}
    assert len(ra.segment_names(directory=folder)) == 2, "it could not be removed yet"
    shared.close()
    let_go(held)
    _counters, shared = new_counters("last", shared_memory=folder)
    assert [name.split(".")[1] for name in ra.segment_names(directory=folder)] == ["last", "next"]


class Held:
    """A stale segment that cannot be removed; notes how long it was waited for."""

    is_stale = True

    def __init__(self, waits: list[float]) -> None:
        self._waits = waits

    def unlink(self, *, timeout: float) -> bool:
        self._waits.append(timeout)
        refused = ra.StorageError("held")
        refused.code = "LOCK_BUSY"
        raise refused


def test_a_start_waits_once_for_all_that_the_dead_left(folder, monkeypatch):
    for n in range(3):
        ra.Counters.create(f"{BEACON_PREFIX}{n}", 1, directory=folder)
    waits: list[float] = []
    monkeypatch.setattr("relay.transport.segments._opened", lambda *_: Held(waits))
    remove_stale({"directory": folder})
    monkeypatch.setattr("relay.observability.shared_counters._sets", lambda _: [("", Held(waits))] * 3)
    assert new_counters("a", shared_memory=folder)[1] is not None
    assert waits == [LOCK_WAIT_S, 0.0, 0.0] * 2


def test_what_a_start_could_not_remove_is_removed_by_the_next(folder, held, monkeypatch):
    left = [ra.Counters.create(f"{BEACON_PREFIX}{n}", 1, directory=folder) for n in range(3)]
    for counters in left:
        make_dead(folder, counters.name)
    monkeypatch.setattr("relay.transport.segments.LOCK_WAIT_S", 0.0)
    remove_stale({"directory": folder})
    assert all(counters.is_named for counters in left)
    let_go(held)
    remove_stale({"directory": folder})
    assert not any(counters.is_named for counters in left)


class Publisher:
    """What a relay publishes by; nothing is sent."""


def test_a_relay_and_an_ingestor_survive_a_held_folder_and_clean_up_when_it_is_free(folder, held):
    intake = RingIntake(7, Publisher(), folder=folder, is_wanted=lambda *_: False, types_of=lambda _: b"")
    writer = RingWriter(RING_TOPIC + b"7", writer_epoch=1, folder=folder)
    begun, ended = intake.look(1)
    assert (len(begun), ended) == (1, [])
    writer.close()
    begun, ended = intake.look(2)
    assert (begun, len(ended)) == ([], 1)
    ended[0].close()
    assert intake.look(3) == ([], []), "the ring that was read is not begun anew"
    assert len(ra.segment_names(directory=folder)) == 2
    let_go(held)
    assert intake.look(4) == ([], [])
    assert ra.segment_names(directory=folder) == [f"{BEACON_PREFIX}7"]
    intake.close()
    assert ra.segment_names(directory=folder) == []
