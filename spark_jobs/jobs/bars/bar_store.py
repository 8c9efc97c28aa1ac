"""Bars that have to be made from stored ticks: a thread that waits until the archive is far enough, and makes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from relay.errors import RelayError
from relay.observability import Counters
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range
from relay.protocol.v1 import market_pb2
from relay.tables.offsets import SourceOffsets
from relay.tables.schema import GAPS_TABLE, STORED_TIME, TICKS_TABLE
from spark_jobs.jobs.bars.engine.gap_book import GapBook
from spark_jobs.jobs.bars.engine.values import MadeBar, Recompute
from spark_jobs.jobs.bars.messages import BarKey, key_of, message_of_bar, message_of_row
from spark_jobs.jobs.bars.outlet import BarOutlet, Decided
from spark_jobs.jobs.bars.roll_up import CHILD_SECONDS, children_of, pieces
from spark_jobs.jobs.bars.stored_bar import bar_of_ticks, gap_book_of, joined_bar

__all__ = ["BarLake", "BarStore", "Placed", "stored_bars"]

_LOG = structlog.get_logger(__name__)
_ARCHIVE_JOB = "ticks"
_LOOK_S = 1.0
_TURN_MAX = 256
_TOGETHER_SECONDS_MAX = 300
_PART_NS = 6 * 3_600 * NANOSECONDS
"""A bucket's ticks are read by parts of so much time: a week of them need not fit the memory."""


class BarLake(Protocol):
    """What is read of the tables; one thread at a time."""

    def offsets(self, name: str, *, job: str, cluster_id: str, topic_id: str) -> SourceOffsets:
        """Return up to where a job has stored a table."""

    def log_reached(self, cluster_id: str, topic_id: str) -> Mapping[int, int]:
        """Return up to where the history topic is in the tables whole."""

    def read_ticks_of(self, tickers: Sequence[str], *, within: Range) -> pa.Table:
        """Return the stored ticks of some tickers, ascending by ticker, time and number."""

    def read_gaps_of(self, tickers: Sequence[str]) -> pa.Table:
        """Return what was said about the gaps of some tickers, each ticker's in the order it was said."""

    def last_tick_bars_of(self, keys: pa.Table) -> pa.Table:
        """Return the last revisions of bars made from ticks."""

    def tick_bars_within(self, ticker: str, period_seconds: int, *, within: Range) -> pa.Table:
        """Return the last revisions of a ticker's bars of one period that start in a range."""

    def close(self) -> None:
        """Let go of the catalog."""


class Placed(NamedTuple):
    """A bucket to be made from the store, and the partition that its ticker's records lie in."""

    bucket: Recompute
    partition: int


def stored_bars(lake: BarLake, keys: Sequence[BarKey]) -> Mapping[BarKey, market_pb2.OHLC]:
    """Return the last stored revisions of bars, by key."""
    tickers, periods, starts = zip(*keys, strict=True)
    wanted = pa.table(
        {
            "ticker": pa.array(tickers, pa.string()),
            "period_seconds": pa.array(periods, pa.int32()),
            "start": pa.array([start // 1000 for start in starts], pa.int64()).cast(STORED_TIME),
        }
    )
    found = lake.last_tick_bars_of(wanted)
    at = found.schema.get_field_index("start")
    rows = found.set_column(at, "start", found["start"].cast(pa.int64())).to_pylist()
    return {key_of(message): message for message in map(message_of_row, rows)}


class BarStore:
    """Makes bars from what is stored, on a thread of its own.

    Args:
        open_lake: opens the tables; called on the thread.
        outlet: where the bars go.
        cluster_id, topic_id: the log that the archive's offsets must be of.
        counters: of the process.
        waiting: what waited when the state was saved.
    """

    def __init__(
        self,
        *,
        open_lake: Callable[[], BarLake],
        outlet: BarOutlet,
        cluster_id: str,
        topic_id: str,
        counters: Counters,
        waiting: Iterable[Placed] = (),
    ) -> None:
        self._open_lake, self._outlet, self._counters = open_lake, outlet, counters
        self._log_id = (cluster_id, topic_id)
        self._waiting: dict[BarKey, Placed] = {_key(one): one for one in waiting}
        self._needed: dict[int, tuple[int, int]] = {}
        self._lock, self._wanted, self._closing = threading.Lock(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="bar-store", daemon=True)
        self._thread.start()

    def ask(self, buckets: Iterable[Placed]) -> None:
        """Have buckets made; a bucket that waits already waits for the later place."""
        with self._lock:
            for one in buckets:
                self._waiting[_key(one)] = one
        self._wanted.set()

    def hold(self, partition: int, *, trade_offset: int, gap_offset: int) -> None:
        """Make nothing before the archive has this trade and gap: what comes next lies in another partition."""
        with self._lock:
            trade, gap = self._needed.get(partition, (-1, -1))
            self._needed[partition] = max(trade, trade_offset), max(gap, gap_offset)

    def is_waiting(self, key: BarKey) -> bool:
        """Return whether a bucket is not made yet."""
        return key in self._waiting

    def waiting(self) -> list[Placed]:
        """Return what is not made yet."""
        with self._lock:
            return list(self._waiting.values())

    def close(self) -> None:
        """End the thread after the bucket in hand; one that hangs is left behind."""
        self._closing.set()
        self._wanted.set()
        self._thread.join(timeout=10.0)

    def _run(self) -> None:
        lake: BarLake | None = None
        while not self._closing.is_set():
            if not self._waiting:
                self._wanted.wait()
                self._wanted.clear()
                continue
            try:
                lake = lake or self._open_lake()
                made = self._turn(lake)
            except RelayError as error:
                made = 0
                self._counters.add("bars.store.failed")
                _LOG.warning("bars_not_made_from_store", error_code=error.code, error=str(error))
            except Exception:  # noqa: BLE001 - a dead thread would leave every later bar unmade
                made = 0
                self._counters.add("bars.store.failed")
                _LOG.exception("bar_store_broke")
            self._counters.set("bars.store.waiting", len(self._waiting))
            if not made:
                self._closing.wait(_LOOK_S)
        if lake is not None:
            lake.close()

    def _turn(self, lake: BarLake) -> int:
        """Make what the archive is far enough for; return how many buckets that were."""
        ticks, gaps = (
            lake.offsets(name, job=_ARCHIVE_JOB, cluster_id=self._log_id[0], topic_id=self._log_id[1]).end_offsets
            for name in (TICKS_TABLE, GAPS_TABLE)
        )
        with self._lock:
            self._needed = {
                p: (trade, gap)
                for p, (trade, gap) in self._needed.items()
                if trade >= ticks.get(p, 0) or gap >= gaps.get(p, 0)
            }
            if self._needed:
                return 0
        ready = [
            one
            for one in self.waiting()
            if one.bucket.trade_offset < ticks.get(one.partition, 0)
            and one.bucket.gap_offset < gaps.get(one.partition, 0)
        ][:_TURN_MAX]
        places = {_key(one): one.partition for one in ready}
        decided = [
            one._replace(partition=places[key_of(one.bar)])
            for group in _groups(ready)
            for one in self._make(lake, group)
        ]
        if self._closing.is_set():
            return 0
        self._outlet.publish(decided, stored=lambda keys: stored_bars(lake, keys))
        with self._lock:
            for one in ready:
                if self._waiting.get(_key(one)) is one:
                    del self._waiting[_key(one)]
        self._counters.add("bars.store.made", len(decided))
        return len(ready)

    def _make(self, lake: BarLake, group: Sequence[Recompute]) -> list[Decided]:
        """Make one bucket of several tickers; a long one by itself, in parts, so that a week does not lie in memory."""
        tickers, start_ns = [bucket.ticker for bucket in group], group[0].start_ns
        period_seconds = group[0].period_seconds
        end_ns, said = start_ns + period_seconds * NANOSECONDS, lake.read_gaps_of(tickers)
        gaps = {ticker: gap_book_of(_of_ticker(said, ticker)) for ticker in tickers}
        bars: dict[str, MadeBar] = {}
        unfit: dict[str, Exception] = {}
        for part_ns in range(start_ns, end_ns, _PART_NS):
            if self._closing.is_set():
                return []
            part = Range(part_ns, min(part_ns + _PART_NS, end_ns))
            for piece in self._pieces(lake, group, part):
                ticks = piece if isinstance(piece, MadeBar) else lake.read_ticks_of(tickers, within=piece)
                for ticker in tickers:
                    try:
                        bar = joined_bar(bars.get(ticker), _part_of(group[0], ticker, ticks, gaps[ticker]))
                    except (ValueError, ArithmeticError) as error:
                        unfit[ticker] = error
                        continue
                    if bar is not None:
                        bars[ticker] = bar
        return self._decided(group, bars, unfit)

    def _pieces(self, lake: BarLake, group: Sequence[Recompute], part: Range) -> Iterable[MadeBar | Range]:
        """Return what a part is made of: short bars that provably hold all their trades, and ticks for the rest."""
        bucket = group[0]
        if bucket.period_seconds <= _TOGETHER_SECONDS_MAX or bucket.period_seconds % CHILD_SECONDS:
            return [part]
        children = children_of(lake.tick_bars_within(bucket.ticker, CHILD_SECONDS, within=part))
        found = list(pieces(children, part))
        self._counters.add("bars.store.rolled_up", sum(isinstance(piece, MadeBar) for piece in found))
        return found

    def _decided(
        self, group: Sequence[Recompute], bars: Mapping[str, MadeBar], unfit: dict[str, Exception]
    ) -> list[Decided]:
        decided = []
        for bucket in group:
            bar = bars.get(bucket.ticker)
            if bar is not None and bucket.ticker not in unfit:
                try:
                    decided.append(Decided(message_of_bar(bar), max(bucket.trade_offset, bucket.gap_offset)))
                except (ValueError, ArithmeticError) as error:
                    unfit[bucket.ticker] = error
            if bucket.ticker in unfit:
                # It will not fit the next time either, and the others wait behind it.
                self._counters.add("bars.unfit")
                error_text = str(unfit[bucket.ticker])
                _LOG.error("bar_left_out", ticker=bucket.ticker, start_ns=bucket.start_ns, error=error_text)
        return decided


def _groups(ready: Iterable[Placed]) -> list[list[Recompute]]:
    """Buckets that are read in one scan: short ones of one time, all tickers; a long one by itself."""
    groups: dict[tuple[object, ...], list[Recompute]] = {}
    for bucket, _ in ready:
        alone = bucket.ticker if bucket.period_seconds > _TOGETHER_SECONDS_MAX else ""
        groups.setdefault((bucket.period_seconds, bucket.start_ns, alone), []).append(bucket)
    return list(groups.values())


def _part_of(bucket: Recompute, ticker: str, of: pa.Table | MadeBar, gaps: GapBook) -> MadeBar | None:
    """Return the bar of a bucket as one piece of it makes it."""
    period_seconds, start_ns = bucket.period_seconds, bucket.start_ns
    if isinstance(of, MadeBar):
        is_incomplete = gaps.is_incomplete(start_ns, start_ns + period_seconds * NANOSECONDS)
        return of._replace(
            period_seconds=period_seconds, start_ns=start_ns, incomplete=is_incomplete, is_final=True, revision=0
        )
    return bar_of_ticks(_of_ticker(of, ticker), gaps, ticker=ticker, period_seconds=period_seconds, start_ns=start_ns)


def _of_ticker(rows: pa.Table, ticker: str) -> pa.Table:
    return rows.filter(pc.equal(rows["ticker"], ticker))


def _key(one: Placed) -> BarKey:
    return (one.bucket.ticker, one.bucket.period_seconds, one.bucket.start_ns)
