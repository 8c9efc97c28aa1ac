"""Makes bars of trades, in memory bounded by the buckets that are still open."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from ingestors.engine.bars_reader import ReadCounts, Settled
from ingestors.engine.rows import bar_problem, is_sane_time
from ingestors.engine.values import EXACT, Bar, BarSource, Trade
from relay.protocol.periods import NANOSECONDS, align_down_ns
from relay.protocol.ranges import Range, intersect, subtract
from relay.protocol.scaled import STORED_DECIMALS, decimals_needed

__all__ = ["TradeBars"]


@dataclass(slots=True)
class _Bucket:
    start_ns: int
    first: tuple[int, int, str]
    last: tuple[int, int, str]
    open: Decimal
    close: Decimal
    high: Decimal
    low: Decimal
    buy: Decimal = Decimal(0)
    sell: Decimal = Decimal(0)
    quote: Decimal = Decimal(0)
    trades: int = 0


class TradeBars:
    """Open buckets of one leg.

    Open and close follow (time, trade id), whatever the order of arrival.

    Args:
        span: what is wanted; trades outside are counted and dropped.
        period_seconds: of the bars.
        counts: added to.
    """

    def __init__(self, span: Range, *, period_seconds: int, counts: ReadCounts) -> None:
        self._period_seconds = period_seconds
        self._period_ns = period_seconds * NANOSECONDS
        self._span = span
        self._counts = counts
        self._buckets: dict[int, _Bucket] = {}
        self._bad: dict[int, str] = {}
        self._unplaced: list[str] = []
        self._holes: list[Range] = []
        self.settled_ns = span.start_ns
        """Everything before it has been given away."""

    def skip_to(self, time_ns: int) -> None:
        """Take everything before a bucket start as known."""
        self.settled_ns = max(self.settled_ns, min(time_ns, self._span.end_ns))

    def add(self, trade: Trade) -> None:
        """Take a trade that was not taken before."""
        if not is_sane_time(trade.time_ns):
            self.note_bad(None, f"trade {trade.trade_id}: time out of any sense")
            return
        start_ns = align_down_ns(trade.time_ns, self._period_seconds)
        if not self.settled_ns <= start_ns < self._span.end_ns:
            self._counts.outside += start_ns >= self._span.end_ns
            return
        if trade.price <= 0 or trade.amount <= 0:
            self.note_bad(trade.time_ns, f"trade {trade.trade_id}: price {trade.price}, amount {trade.amount}")
            return
        key = (trade.time_ns, *_id_order(trade.trade_id))
        bucket = self._buckets.get(start_ns)
        if bucket is None:
            price = trade.price
            bucket = self._buckets[start_ns] = _Bucket(start_ns, key, key, price, price, price, price)
        _extend(bucket, trade, key)

    def note_bad(self, time_ns: int | None, reason: str) -> None:
        """Take note of a trade that cannot be used: its bucket, or all when its time is unknown, is not proven."""
        self._counts.quarantined += 1
        if time_ns is None or not is_sane_time(time_ns):
            self._unplaced.append(reason)
        else:
            self._bad[align_down_ns(time_ns, self._period_seconds)] = reason

    def note_hole(self, first_ns: int, last_ns: int, reason: str) -> None:
        """Take note of lost trades between two known ones: every bucket that they may belong to is not proven."""
        start_ns = align_down_ns(first_ns, self._period_seconds)
        hole = Range(max(start_ns, self.settled_ns), align_down_ns(last_ns, self._period_seconds) + self._period_ns)
        for part in intersect(self._span, [hole]):
            self._holes.append(part)
            self._bad.setdefault(part.start_ns, reason)

    def settle(self, until_ns: int) -> Settled | None:
        """Return what lies before a bucket start, None when that is nothing new."""
        until_ns = min(until_ns, self._span.end_ns)
        if until_ns <= self.settled_ns:
            return None
        span = Range(self.settled_ns, until_ns)
        ready = sorted(start_ns for start_ns in self._buckets if start_ns < until_ns)
        bad = {b: reason for b, reason in self._bad.items() if span.start_ns <= b < span.end_ns}
        made = [_bar(self._buckets.pop(start_ns)) for start_ns in ready]
        for bar in made:
            problem = bar_problem(bar)
            if problem is not None and bar.start_ns not in bad:
                bad[bar.start_ns] = problem
                self._counts.quarantined += 1
        unproven = [*self._holes, *(Range(b, b + self._period_ns) for b in bad)]
        covered = subtract(span, unproven)
        # A bar with a trade left out would be a wrong bar: the whole bucket waits for a better answer.
        bars = tuple(bar for bar in made if any(r.start_ns <= bar.start_ns < r.end_ns for r in covered))
        unplaced, self._unplaced = tuple(self._unplaced), []
        self._holes = [hole for hole in self._holes if hole.end_ns > until_ns]
        self.settled_ns = until_ns
        return Settled(span, () if unplaced else bars, bad, () if unplaced else tuple(covered), unplaced)


def _id_order(trade_id: str) -> tuple[int, str]:
    """Return a key that orders numeric ids by number and others by text."""
    return (int(trade_id), "") if trade_id.isascii() and trade_id.isdigit() else (0, trade_id)


def _extend(bucket: _Bucket, trade: Trade, key: tuple[int, int, str]) -> None:
    if key <= bucket.first:
        bucket.first, bucket.open = key, trade.price
    if key >= bucket.last:
        bucket.last, bucket.close = key, trade.price
    bucket.high, bucket.low = max(bucket.high, trade.price), min(bucket.low, trade.price)
    if trade.taker_buy:
        bucket.buy = EXACT.add(bucket.buy, trade.amount)
    else:
        bucket.sell = EXACT.add(bucket.sell, trade.amount)
    bucket.quote = EXACT.fma(trade.price, trade.amount, bucket.quote)
    bucket.trades += 1


def _bar(bucket: _Bucket) -> Bar:
    return Bar(
        start_ns=bucket.start_ns,
        open=bucket.open,
        high=bucket.high,
        low=bucket.low,
        close=bucket.close,
        volume=EXACT.add(bucket.buy, bucket.sell),
        quote_volume=bucket.quote if decimals_needed((bucket.quote,)) <= STORED_DECIMALS else None,
        buy_volume=bucket.buy,
        sell_volume=bucket.sell,
        trades=bucket.trades,
        source=BarSource.TICKS,
        first_trade_id=_id_text(bucket.first),
        last_trade_id=_id_text(bucket.last),
    )


def _id_text(key: tuple[int, int, str]) -> str:
    return key[2] or str(key[1])
