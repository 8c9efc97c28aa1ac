"""Final bars: into the log first, once, under revisions that never contradict each other."""

from __future__ import annotations

import pytest

from relay.errors import RetryableError
from relay.eventlog import TopicSpec
from relay.eventlog.memory import MemoryEventLog
from relay.observability import Counters
from relay.protocol.envelope import decode_record
from relay.protocol.v1 import market_pb2
from spark_jobs.jobs.bars.engine.values import MadeBar
from spark_jobs.jobs.bars.messages import BarKey, key_of, message_of_bar
from spark_jobs.jobs.bars.outlet import BarOutlet, Decided

TOPIC = "market-ohlc"
TICKER = "BTC/USDT.BINANCE"
START = 1_700_000_040 * 10**9


class Announced:
    """Stands for the PUSH socket towards the manager."""

    def __init__(self) -> None:
        self.messages: list[tuple[bytes, market_pb2.OHLC]] = []

    def send(self, topic: bytes, message: market_pb2.OHLC) -> None:
        self.messages.append((topic, message))


class World:
    """An outlet on a log that outlives it."""

    def __init__(self) -> None:
        self.log, self.announced = MemoryEventLog(), Announced()
        self.log.ensure_topics([TopicSpec(TOPIC, 2, -1)])
        self.restart()

    def restart(self, *, source: int = 7, from_ends: bool = False) -> None:
        starts = dict(enumerate(self.log.end_offsets(TOPIC))) if from_ends else {}
        self.outlet = BarOutlet(
            log=self.log,
            topic=TOPIC,
            hints=self.announced,  # type: ignore[arg-type]
            starts=starts,
            source=source,
            counters=Counters(),
        )

    def logged(self) -> list[tuple[int, int]]:
        """(revision, close) of what is in the log."""
        records = self.log.read(TOPIC, key=TICKER.encode())
        bars = [decode_record(record.value)[1] for record in records]
        return [(bar.revision, bar.close) for bar in bars if isinstance(bar, market_pb2.OHLC)]


def bar(close: int, *, incomplete: bool = False) -> market_pb2.OHLC:
    numbers = (2, 101, 200, 50, close, 3, 5, 6, 5, 1_000, 4, 1, 4)
    return message_of_bar(MadeBar(TICKER, 60, START, *numbers, incomplete, True, 0))


def test_a_bar_is_logged_with_its_time_and_then_announced_without_a_stamp() -> None:
    world = World()
    assert world.outlet.publish([Decided(bar(150), 10)]) == 1
    assert world.logged() == [(0, 150)]
    [(topic, shown)] = world.announced.messages
    assert (topic, shown.close, shown.HasField("stamp")) == (b"BTC/USDT.BINANCE|ohlc:60", 150, False)
    record = decode_record(world.log.read(TOPIC, key=TICKER.encode())[0].value)[1]
    assert isinstance(record, market_pb2.OHLC)
    assert record.stamp.published_at > 0


def test_another_content_is_the_next_revision_and_the_same_content_is_nothing_new() -> None:
    world = World()
    world.outlet.publish([Decided(bar(150), 10)])
    assert world.outlet.publish([Decided(bar(150), 11)]) == 0
    assert world.outlet.publish([Decided(bar(151), 12), Decided(bar(152), 13)]) == 2
    assert world.logged() == [(0, 150), (1, 151), (2, 152)]
    assert world.outlet.publish([Decided(bar(152, incomplete=True), 14)]) == 1


def test_records_that_are_read_again_after_a_restart_say_nothing_again() -> None:
    world = World()
    for close, offset in ((150, 10), (151, 12)):
        world.outlet.publish([Decided(bar(close), offset)])
    world.restart()
    for close, offset in ((150, 10), (151, 12)):
        assert world.outlet.publish([Decided(bar(close), offset)]) == 0
    assert world.outlet.publish([Decided(bar(153), 20)]) == 1
    assert world.logged() == [(0, 150), (1, 151), (2, 153)]


def test_offsets_of_another_log_prove_nothing() -> None:
    world = World()
    world.outlet.publish([Decided(bar(150), 10)])
    world.restart(source=8)
    assert world.outlet.publish([Decided(bar(151), 3)]) == 1
    assert world.logged() == [(0, 150), (1, 151)]


def test_the_store_is_asked_for_revisions_from_before_what_was_read() -> None:
    world = World()
    asked: list[BarKey] = []

    def stored(keys: list[BarKey]) -> dict[BarKey, market_pb2.OHLC]:
        asked.extend(keys)
        last = bar(150)
        last.revision = 4
        return {key_of(last): last}

    world.outlet.publish([Decided(bar(150), 10)], stored=stored)  # type: ignore[arg-type]
    assert (world.logged(), len(asked)) == ([], 1)
    world.outlet.publish([Decided(bar(151), 10)], stored=stored)  # type: ignore[arg-type]
    assert (world.logged(), len(asked)) == ([(5, 151)], 1)


def test_what_the_log_does_not_take_is_an_error_and_nothing_is_said_until_the_job_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    monkeypatch.setattr(world.log, "flush", lambda _: 1)
    with pytest.raises(RetryableError):
        world.outlet.publish([Decided(bar(150), 10)])
    monkeypatch.undo()
    with pytest.raises(RetryableError):
        world.outlet.publish([Decided(bar(150), 11)])
    assert world.announced.messages == []
    world.restart()
    assert world.outlet.publish([Decided(bar(151), 12)]) == 1
