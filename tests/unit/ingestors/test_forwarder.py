"""Live records on their way to the log: straight, over the spill, and in order whatever the log does."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest

from ingestors.live.forwarder import LogForwarder
from ingestors.live.spill import LogEntry, Spill
from relay.errors import RetryableError, StorageError
from relay.eventlog import LogPosition
from relay.eventlog.memory import MemoryEventLog
from relay.observability import Counters


class ScriptedLog(MemoryEventLog):
    """A log that is away, refuses, or acknowledges late, as a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.refusals = 0
        self.values: list[bytes] = []
        self.late: list[Future[LogPosition]] | None = None

    def append(self, topic: str, *, key: bytes, value: bytes) -> Future[LogPosition]:
        if self.is_away:
            raise RetryableError("away")
        done: Future[LogPosition] = Future()
        if self.refusals:
            self.refusals -= 1
            done.set_exception(StorageError("refused"))
            return done
        self.values.append(value)
        if self.late is not None:
            self.late.append(done)
        else:
            done.set_result(LogPosition(topic, 0, len(self.values)))
        return done


class World:
    def __init__(self, folder: Path, *, bytes_max: int = 1 << 20) -> None:
        self.log, self.counters = ScriptedLog(), Counters()
        self.acknowledged: list[int] = []
        self.spill = Spill(folder, bytes_max=bytes_max)
        self.forwarder = LogForwarder(
            self.log, self.spill, acknowledged=lambda e: self.acknowledged.append(e.first), counters=self.counters
        )
        self.forwarder.is_prepared = True

    def put(self, numbers: Sequence[int]) -> list[bool]:
        return [self.forwarder.append(LogEntry("t", b"k", b"%d" % n, n, n)) for n in numbers]

    def logged(self) -> list[int]:
        return [int(value) for value in self.log.values]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_records_go_straight_and_acknowledgements_come_in_the_next_turn(world: World) -> None:
    assert all(world.put(range(5)))
    assert world.acknowledged == []
    world.forwarder.turn()
    assert world.logged() == world.acknowledged == list(range(5))
    assert world.forwarder.outstanding == 0


def test_while_the_log_is_away_records_wait_and_then_come_in_order(world: World) -> None:
    world.put([0, 1])
    world.log.is_away = True
    world.put([2, 3])
    world.forwarder.turn()
    assert not world.forwarder.is_straight
    world.log.is_away = False
    world.put([4])
    assert world.logged() == [0, 1]
    world.forwarder.turn()
    world.put([5])
    world.forwarder.turn()
    assert world.logged() == list(range(6))
    world.forwarder.turn()
    assert world.acknowledged == list(range(6))
    assert world.forwarder.is_straight


def test_before_the_topic_is_known_nothing_is_asked_of_the_log(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.forwarder.is_prepared = False
    world.put([1, 2])
    world.forwarder.turn()
    assert world.logged() == []
    world.forwarder.is_prepared = True
    world.forwarder.turn()
    assert world.logged() == [1, 2]


def test_what_the_log_refused_goes_again_before_anything_newer_from_the_spill(world: World) -> None:
    world.log.refusals = 1
    world.put([1])
    world.forwarder.turn()
    assert world.logged() == [1]
    world.forwarder.turn()
    assert world.acknowledged == [1]
    assert world.counters.get("live.log.refused") == 1


def test_over_the_bound_a_record_is_told_as_lost(tmp_path: Path) -> None:
    world = World(tmp_path, bytes_max=200)
    world.log.is_away = True
    outcomes = world.put(range(20))
    kept = outcomes.index(False)
    assert 0 < kept < 20
    assert not any(outcomes[kept:])
    world.log.is_away = False
    world.forwarder.turn()
    assert world.logged() == list(range(kept))


def test_late_acknowledgements_are_counted_as_outstanding(world: World) -> None:
    world.log.late = []
    world.put([1, 2])
    world.forwarder.turn()
    assert (world.forwarder.outstanding, world.acknowledged) == (2, [])
    for future in world.log.late:
        future.set_result(LogPosition("t", 0, 0))
    world.forwarder.turn()
    assert (world.forwarder.outstanding, world.acknowledged) == (0, [1, 2])
