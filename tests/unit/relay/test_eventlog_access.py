"""Stretches of a log are read in the order of appending, whatever partitions their keys lie in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count

from relay.eventlog import TopicSpec, partition_of
from relay.eventlog.access import read_range
from relay.eventlog.memory import MemoryEventLog

KEY = b"BTC/USDT.BINANCE"


def log_of(times: Iterator[int]) -> MemoryEventLog:
    log = MemoryEventLog(clock=times.__next__)
    log.ensure_topics([TopicSpec("t", 2, 1)])
    return log


def values(log: MemoryEventLog, starts: dict[int, int], ends: dict[int, int]) -> list[bytes]:
    return [record.value for record in read_range(log, "t", starts=starts, ends=ends)]


def test_a_key_that_moved_when_the_topic_grew_keeps_its_order() -> None:
    log = log_of(count(1))
    assert (partition_of(KEY, 2), partition_of(KEY, 3)) == (1, 0)
    for value in (b"a", b"b", b"c"):
        log.append("t", key=KEY, value=value)
    log.grow("t", 3)
    for value in (b"d", b"e"):
        log.append("t", key=KEY, value=value)
    assert values(log, {}, {0: 2, 1: 3, 2: 0}) == [b"a", b"b", b"c", b"d", b"e"]
    assert values(log, {1: 1}, {0: 1, 1: 2}) == [b"b", b"d"]


def test_a_clock_that_was_set_back_changes_no_partitions_order() -> None:
    log = log_of(chain((10, 5, 7), count(8)))
    for value in (b"a", b"b", b"c"):
        log.append("t", key=KEY, value=value)
    assert values(log, {}, {0: 0, 1: 3}) == [b"a", b"b", b"c"]
