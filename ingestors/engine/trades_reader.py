"""Reads one leg of trades page by page and makes bars of them, in memory bounded by one page and one bar."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from ingestors.engine.bars_reader import ReadCounts, Settled
from ingestors.engine.plan import Leg
from ingestors.engine.rows import bar_problem, is_sane_time
from ingestors.engine.values import EXACT, Bar, BarSource, Trade, TradesPage
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS, align_down_ns
from relay.protocol.ranges import Range, subtract
from relay.protocol.scaled import STORED_DECIMALS, decimals_needed

__all__ = ["TradesReader", "TradesWanted"]


@dataclass(frozen=True, slots=True)
class TradesWanted:
    """One trade request: from ``start_ns`` on, or from ``cursor`` on where a page gave one (sent back unchanged)."""

    start_ns: int
    cursor: str | None


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


class TradesReader:
    """State of one trade leg: :meth:`wanted` says what to ask, :meth:`on_page` takes the answer.

    Open and close follow (time, trade id), whatever the order of arrival; a repeated trade is dropped by its id.
    """

    def __init__(self, leg: Leg, *, counts: ReadCounts) -> None:
        self._period_seconds = leg.fetch_period_seconds
        self._period_ns = leg.fetch_period_seconds * NANOSECONDS
        self._span = leg.span
        self._counts = counts
        self._settled_ns = leg.span.start_ns
        self._cursor: str | None = None
        self._buckets: dict[int, _Bucket] = {}
        self._seen: frozenset[str] = frozenset()
        self._bad: dict[int, str] = {}
        self._unplaced: list[str] = []
        self._stalls = 0

    @property
    def is_done(self) -> bool:
        """Whether the leg has been read to its end."""
        return self._settled_ns >= self._span.end_ns

    def skip_to(self, time_ns: int) -> None:
        """Take everything before a bucket start as known."""
        self._settled_ns = max(self._settled_ns, min(time_ns, self._span.end_ns))

    def wanted(self) -> TradesWanted:
        """Return the next request."""
        return TradesWanted(self._settled_ns, self._cursor)

    def on_page(self, page: TradesPage) -> Settled | None:
        """Take an answer; return what it settles, or None when it settles nothing yet.

        Raises:
            PeerError: NO_PROGRESS, the cursor did not move although there are later trades.
        """
        fresh = [trade for trade in page.trades if trade.trade_id not in self._seen]
        self._counts.doubled += len(page.trades) - len(fresh)
        for bad in page.bad:
            self._note_bad(bad.start_ns, bad.reason)
        latest_ns = max((t.time_ns for t in page.trades if is_sane_time(t.time_ns)), default=None)
        is_end = self._check_progress(page, bool(fresh))
        if is_end is None:
            return None
        self._seen = frozenset(trade.trade_id for trade in page.trades)
        self._cursor = page.cursor
        for trade in {trade.trade_id: trade for trade in fresh}.values():
            self._add(trade)
        if is_end:
            return self._settle(self._span.end_ns)
        # Trades of the newest instant may go on in the next page, so only what lies before it is known.
        return self._settle(min(align_down_ns(latest_ns, self._period_seconds), self._span.end_ns) if latest_ns else 0)

    def _check_progress(self, page: TradesPage, has_fresh: bool) -> bool | None:
        """Return whether the data ends here; None to ask the same again; raise when it would repeat for ever."""
        if page.trades and has_fresh and (page.is_end or page.cursor != self._cursor):
            self._stalls = 0
            return page.is_end
        self._stalls += 1
        self._counts.empty_answers += not page.trades
        if self._stalls == 1:
            return None
        if not page.trades:
            return True
        raise PeerError(
            f"asked for trades after cursor {self._cursor}, got {len(page.trades)} trades that are known already, "
            "twice; no progress",
            code=ErrorCode.NO_PROGRESS,
        )

    def _add(self, trade: Trade) -> None:
        if not is_sane_time(trade.time_ns):
            self._note_bad(None, f"trade {trade.trade_id}: time out of any sense")
            return
        start_ns = align_down_ns(trade.time_ns, self._period_seconds)
        if not self._settled_ns <= start_ns < self._span.end_ns:
            self._counts.outside += 1
            return
        if trade.price <= 0 or trade.amount <= 0:
            self._note_bad(trade.time_ns, f"trade {trade.trade_id}: price {trade.price}, amount {trade.amount}")
            return
        key = (trade.time_ns, *_id_order(trade.trade_id))
        bucket = self._buckets.get(start_ns)
        if bucket is None:
            price = trade.price
            bucket = self._buckets[start_ns] = _Bucket(start_ns, key, key, price, price, price, price)
        _extend(bucket, trade, key)

    def _note_bad(self, time_ns: int | None, reason: str) -> None:
        self._counts.quarantined += 1
        if time_ns is None or not is_sane_time(time_ns):
            self._unplaced.append(reason)
        else:
            self._bad[align_down_ns(time_ns, self._period_seconds)] = reason

    def _settle(self, until_ns: int) -> Settled | None:
        if until_ns <= self._settled_ns:
            return None
        span = Range(self._settled_ns, until_ns)
        ready = sorted(start_ns for start_ns in self._buckets if start_ns < until_ns)
        bad = {b: reason for b, reason in self._bad.items() if span.start_ns <= b < span.end_ns}
        made = [_bar(self._buckets.pop(start_ns)) for start_ns in ready]
        for bar in made:
            problem = bar_problem(bar)
            if problem is not None and bar.start_ns not in bad:
                bad[bar.start_ns] = problem
                self._counts.quarantined += 1
        # A bar with a trade left out would be a wrong bar: the whole bucket waits in quarantine.
        bars = tuple(bar for bar in made if bar.start_ns not in bad)
        unplaced, self._unplaced = tuple(self._unplaced), []
        covered = () if unplaced else subtract(span, [Range(b, b + self._period_ns) for b in bad])
        self._settled_ns = until_ns
        return Settled(span, () if unplaced else bars, bad, tuple(covered), unplaced)


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
