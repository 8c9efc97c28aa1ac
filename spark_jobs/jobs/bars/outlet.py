"""Where bars go: final ones into the log and then to the manager, running ones to the manager alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from relay.errors import RetryableError
from relay.eventlog import EventLog
from relay.eventlog.access import append_acknowledged, read_range
from relay.observability import Counters
from relay.protocol.envelope import EnvelopeError, decode_record, encode_record
from relay.protocol.topics import market_topic
from relay.protocol.v1 import market_pb2
from spark_jobs.jobs.bars.messages import BarKey, is_same_bar, key_of, revised
from spark_jobs.jobs.hints import HintSender

__all__ = ["BarOutlet", "Decided", "LastStored"]

_LAST_MAX = 500_000
_AGAIN_MAX = 5_000

LastStored = Callable[[Sequence[BarKey]], Mapping[BarKey, market_pb2.OHLC]]
"""Looks the last stored revision of bars up in ``market.tick_bars``."""


class Decided(NamedTuple):
    """A final bar without its revision, and the offset and partition of the tick topic by which it was decided."""

    bar: market_pb2.OHLC
    offset: int
    partition: int = 0


class BarOutlet:
    """Publishes bars. A bar has the revision after the last one that the log holds, and goes there before anywhere.

    Args:
        log: the event log.
        topic: of bars; the key is the ticker.
        hints: towards the manager.
        starts: by partition, from where the log's own bars are read now; the table has everything before.
        announced: by partition, up to where the process before has announced what it logged; what lies behind is
            announced by :meth:`tell_again`. Nothing for a partition that is not named.
        source: which log the deciding offsets belong to, 32 bits; kept in each record as the stamp's epoch, with the
            partition above it.
        counters: of the process.

    Raises:
        RetryableError: the log is away.
    """

    def __init__(
        self,
        *,
        log: EventLog,
        topic: str,
        hints: HintSender,
        starts: Mapping[int, int],
        source: int,
        counters: Counters,
        announced: Mapping[int, int] | None = None,
    ) -> None:
        self._source = source
        self._log, self._topic, self._hints, self._counters = log, topic, hints, counters
        self._last: dict[BarKey, market_pb2.OHLC] = {}
        self._lock = threading.Lock()
        self._is_broken = False
        self._untold: dict[BarKey, market_pb2.OHLC] = {}
        self._read_own(starts, announced or {})

    def tell_again(self) -> None:
        """Announce what was logged shortly before this began: the process before may have died in between."""
        with self._lock:
            for bar in self._untold.values():
                self._announce(bar)
        self._counters.add("bars.told_again", len(self._untold))
        self._untold.clear()

    def has_read(self, key: BarKey) -> bool:
        """Return whether the last revision of a bar is known without the table."""
        return key in self._last

    def publish(self, made: Iterable[Decided], *, stored: LastStored | None = None) -> int:
        """Log and announce final bars; return how many were new.

        A bar that says what the last one said keeps its revision and is not logged again. One that was decided before
        the last one was (records are read again after a restart) has been said already.

        Args:
            made: by the engine; or by the store, which always knows at least what the last bar knew.
            stored: for bars of the store, finds last revisions that are older than what this process has read.

        Raises:
            RetryableError: the log does not acknowledge; what was not told is told again.
        """
        with self._lock:
            if self._is_broken:
                raise RetryableError("bars were not acknowledged by the log; they are made again from the last state")
            fresh = self._revised(list(made), stored)
            self._is_broken = True
            self._append(fresh)
            self._is_broken = False
            while len(self._last) > _LAST_MAX:
                # The table has the oldest by now.
                del self._last[next(iter(self._last))]
            for bar in fresh:
                self._announce(bar)
        self._counters.add("bars.final", len(fresh))
        self._counters.add("bars.revisions", sum(1 for bar in fresh if bar.revision))
        return len(fresh)

    def show(self, bars: Iterable[market_pb2.OHLC]) -> None:
        """Announce running bars."""
        with self._lock:
            for bar in bars:
                self._announce(bar)
                self._counters.add("bars.running")

    def _announce(self, bar: market_pb2.OHLC) -> None:
        """Under the lock: the socket may move from thread to thread, but serves one at a time."""
        topic = market_topic(bar.ticker, "ohlc", period_seconds=bar.period_seconds)
        said = market_pb2.OHLC()
        said.CopyFrom(bar)
        said.ClearField("stamp")
        self._hints.send(topic.encode(), said)

    def _revised(self, made: list[Decided], stored: LastStored | None) -> list[market_pb2.OHLC]:
        unknown = [key_of(one.bar) for one in made if key_of(one.bar) not in self._last]
        if stored is not None and unknown:
            self._last.update(stored(unknown))
        fresh = []
        for bar, offset, partition in made:
            epoch = partition << 32 | self._source
            last = self._last.get(key_of(bar))
            if last is not None:
                is_old = last.stamp.publisher_epoch == epoch and offset < last.stamp.topic_sequence
                if (is_old and stored is None) or is_same_bar(bar, last):
                    continue
            bar.stamp.publisher_epoch, bar.stamp.topic_sequence = epoch, offset + 1
            self._last[key_of(bar)] = revised(bar, last)
            fresh.append(bar)
        return fresh

    def _append(self, bars: Sequence[market_pb2.OHLC]) -> None:
        made_ns = time.time_ns()
        for bar in bars:
            bar.stamp.published_at = made_ns
        records = ((bar.ticker.encode(), encode_record(bar)) for bar in bars)
        append_acknowledged(self._log, self._topic, records, what="bars")

    def _read_own(self, starts: Mapping[int, int], announced: Mapping[int, int]) -> None:
        ends = dict(enumerate(self._log.end_offsets(self._topic)))
        for record in read_range(self._log, self._topic, starts=starts, ends=ends):
            at = record.position
            self._note(record.value, is_untold=at.offset >= announced.get(at.partition, at.offset + 1))

    def _note(self, value: bytes, *, is_untold: bool) -> None:
        try:
            _, message = decode_record(value)
        except EnvelopeError:
            return
        if isinstance(message, market_pb2.OHLC) and message.is_final:
            self._last[key_of(message)] = message
            if is_untold:
                self._untold.pop(key_of(message), None)
                self._untold[key_of(message)] = message
                if len(self._untold) > _AGAIN_MAX:
                    del self._untold[next(iter(self._untold))]
