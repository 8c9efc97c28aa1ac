"""The buckets of one ticker at one period."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from relay.protocol.periods import NANOSECONDS, origin_seconds
from spark_jobs.jobs.bars.engine.accumulator import Accumulator
from spark_jobs.jobs.bars.engine.gap_book import ENDLESS_NS, GapBook
from spark_jobs.jobs.bars.engine.values import BarTrade, MadeBar, Recompute

__all__ = ["Series"]


class _Published(NamedTuple):
    """What tells a bucket's last final bar from another: trades are only ever added."""

    trades: int
    incomplete: bool
    revision: int


class _Bucket(msgspec.Struct):
    sums: Accumulator
    published: _Published | None = None

    @property
    def next_revision(self) -> int:
        """Revision of the bar that comes next."""
        return 0 if self.published is None else self.published.revision + 1


_PACKED = msgspec.json.Encoder()
_UNPACKED = msgspec.json.Decoder(_Bucket)


class Series(msgspec.Struct):
    """State of one (ticker, period).

    A bucket is open until its bar is final, then closed and kept for a while, so that a late trade makes a revision.
    A bucket that is neither and ends at or before the floor is known to the store alone. Closed ones are many and
    seldom touched, so they are kept as the state has them: little memory, and a state is saved without a look at them.

    Attributes:
        ticker, period_seconds: whose.
        active_ns: a bucket that began earlier was not seen whole here; its bar is made from stored ticks.
        floor_ns: buckets that end here or earlier are no longer kept. Before the first beat that is everything: only
            the beat says that what came earlier in time has come.
    """

    ticker: str
    period_seconds: int
    active_ns: int = ENDLESS_NS
    floor_ns: int = ENDLESS_NS
    open: dict[int, _Bucket] = msgspec.field(default_factory=dict)
    closed: dict[int, msgspec.Raw] = msgspec.field(default_factory=dict)
    touched: set[int] = msgspec.field(default_factory=set)
    """Closed buckets whose bar may have changed."""
    stored: set[int] = msgspec.field(default_factory=set)
    """Buckets whose bar has to be made from the store."""
    moving: set[int] = msgspec.field(default_factory=set)
    """Open buckets that have changed since they were last shown."""

    @property
    def period_ns(self) -> int:
        """Length of a bucket."""
        return self.period_seconds * NANOSECONDS

    def start_of(self, time_ns: int) -> int:
        """Return the start of the bucket that holds a time."""
        period_ns, origin_ns = _grid(self.period_seconds)
        return time_ns - (time_ns - origin_ns) % period_ns

    def first_open(self, time_ns: int) -> int:
        """Return the start of the first bucket, from the one that holds a time on, whose first bar may still come."""
        start = max(self.start_of(time_ns), self.start_of(self.active_ns - 1) + self.period_ns, self.floor_ns)
        while start in self.closed:
            start += self.period_ns
        return start

    def add(self, trade: BarTrade, *, limit_ns: int) -> None:
        """Add a trade; buckets that end after ``limit_ns`` are still going on."""
        start = self.start_of(trade.time_ns)
        bucket = self.open.get(start)
        if bucket is not None:
            bucket.sums.add(trade)
            self.moving.add(start)
            return
        packed = self.closed.get(start)
        if packed is not None:
            bucket = _UNPACKED.decode(packed)
            bucket.sums.add(trade)
            if start + self.period_ns > limit_ns:
                del self.closed[start]
                self.open[start] = bucket
                self.touched.discard(start)
                self.moving.add(start)
            else:
                self.closed[start] = _packed(bucket)
                self.touched.add(start)
        elif start + self.period_ns <= self.floor_ns:
            self.stored.add(start)
        else:
            self.open[start] = _Bucket(Accumulator.of(trade))
            self.moving.add(start)

    def reconsider(self, from_ns: int, to_ns: int) -> None:
        """What is known of the time between has changed: bars there may be complete now, or no longer."""
        self.touched.update(s for s in self.closed if s <= to_ns and s + self.period_ns > from_ns)
        ends = {self.start_of(from_ns), self.start_of(to_ns)}
        self.stored.update(start for start in ends if start + self.period_ns <= self.floor_ns)

    def begin(self, time_ns: int) -> None:
        """The first beat: what is later than this has not come yet."""
        if self.active_ns == ENDLESS_NS:
            self.active_ns = time_ns + 1
            self.floor_ns = self.start_of(self.active_ns)

    def doubt(self) -> None:
        """Records are missing from here on: what is not final has to come from the store, as at a first beat."""
        self.stored.update(self.open, self.touched)
        self.open.clear()
        self.closed.clear()
        self.touched.clear()
        self.moving.clear()
        self.active_ns = self.floor_ns = ENDLESS_NS

    def settle(
        self, gaps: GapBook, *, limit_ns: int, keep_ns: int, is_down: bool, offsets: tuple[int, int]
    ) -> list[MadeBar | Recompute]:
        """Return what is final now: bars, revisions, and buckets to be made from the store; by start.

        Args:
            gaps: of the ticker.
            limit_ns: buckets that end here or earlier are over.
            keep_ns: closed buckets that end so long before the limit are forgotten.
            is_down: nobody listens to the exchange any more: what was not seen is not waited for.
            offsets: of the ticker's newest trade and gap in the log.
        """
        made: list[MadeBar | Recompute] = []
        for start in sorted(self.open):
            end = start + self.period_ns
            if end > limit_ns or (gaps.is_open(start, end) and not is_down):
                continue
            self.moving.discard(start)
            if start < self.active_ns:
                del self.open[start]
                self.floor_ns = max(self.floor_ns, end)
                self.stored.add(start)
            else:
                made += self._publish(start, self.open.pop(start), gaps)
        for start in sorted(self.touched):
            if is_down or not gaps.is_open(start, start + self.period_ns):
                self.touched.discard(start)
                made += self._publish(start, _UNPACKED.decode(self.closed[start]), gaps)
        for start in sorted(self.stored):
            end = start + self.period_ns
            if end <= limit_ns and (is_down or not gaps.is_open(start, end)):
                self.stored.discard(start)
                made.append(Recompute(self.ticker, self.period_seconds, start, *offsets))
        self._forget(limit_ns - keep_ns)
        return sorted(made, key=lambda one: one.start_ns)

    def running(self, gaps: GapBook) -> list[MadeBar]:
        """Return the open buckets that have changed since the last call, by start."""
        made = []
        for start in sorted(self.moving):
            bucket = self.open[start]
            incomplete = start < self.active_ns or gaps.is_incomplete(start, start + self.period_ns)
            made.append(self._bar(start, bucket, incomplete=incomplete, is_final=False))
        self.moving.clear()
        return made

    def _publish(self, start: int, bucket: _Bucket, gaps: GapBook) -> list[MadeBar | Recompute]:
        """Close a bucket; return its bar, unless the same was published before."""
        before, incomplete = bucket.published, gaps.is_incomplete(start, start + self.period_ns)
        if before is not None and (before.trades, before.incomplete) == (bucket.sums.trades, incomplete):
            self.closed[start] = _packed(bucket)
            return []
        bar = self._bar(start, bucket, incomplete=incomplete, is_final=True)
        bucket.published = _Published(bar.trades, incomplete, bar.revision)
        self.closed[start] = _packed(bucket)
        return [bar]

    def _bar(self, start: int, bucket: _Bucket, *, incomplete: bool, is_final: bool) -> MadeBar:
        return bucket.sums.bar(
            self.ticker,
            self.period_seconds,
            start,
            incomplete=incomplete,
            is_final=is_final,
            revision=bucket.next_revision,
        )

    def _forget(self, before_ns: int) -> None:
        floor_ns = self.start_of(before_ns)
        if floor_ns <= self.floor_ns:
            return
        self.floor_ns = floor_ns
        for start in [s for s in self.closed if s + self.period_ns <= floor_ns]:
            if start not in self.touched:
                del self.closed[start]


def _packed(bucket: _Bucket) -> msgspec.Raw:
    return msgspec.Raw(_PACKED.encode(bucket))


@lru_cache(1_024)
def _grid(period_seconds: int) -> tuple[int, int]:
    """Return a period's length and the origin of its grid, in ns."""
    return period_seconds * NANOSECONDS, origin_seconds(period_seconds) * NANOSECONDS
