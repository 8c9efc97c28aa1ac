"""Reads one leg of trades page by page. An answer counts only when it joins what is known.

Trade ids of a market have no holes, so a page proves itself::

    first page   begins before the leg (looked for ever farther back), or with the market's first trade
    next page    goes on at the next id, or holds the newest known trade
    the end      a page that holds the newest known trade and nothing newer; an empty one says nothing

Trades of before ids existed are believed when the same question is answered twice alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from ingestors.engine.bars_reader import ReadCounts, Settled
from ingestors.engine.plan import Leg
from ingestors.engine.rows import is_sane_time
from ingestors.engine.trade_bars import TradeBars
from ingestors.engine.values import Trade, TradesPage
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS, align_down_ns
from relay.protocol.times import format_ns

__all__ = ["TradesReader", "TradesWanted"]

_LOOKBACK_NS = 60 * NANOSECONDS
_LOOKBACK_FACTOR = 8
_TRIES_MAX = 5
"""Answers to one question that do not join, before the hole is taken as one."""
_STARTS_MAX = 16
"""Answers to the first question: eleven reach back forty years."""
_PAUSES_NS = (0, 0, NANOSECONDS, 5 * NANOSECONDS, 15 * NANOSECONDS)


@dataclass(frozen=True, slots=True)
class TradesWanted:
    """One trade request: from ``start_ns`` on, or from ``cursor`` on where a page gave one (sent back unchanged)."""

    start_ns: int
    cursor: str | None


class TradesReader:
    """State of one trade leg: :meth:`wanted` says what to ask, :meth:`on_page` takes the answer."""

    def __init__(self, leg: Leg, *, counts: ReadCounts) -> None:
        self._period_seconds = leg.fetch_period_seconds
        self._span = leg.span
        self._counts = counts
        self._bars = TradeBars(leg.span, period_seconds=leg.fetch_period_seconds, counts=counts)
        self._lookback_ns = _LOOKBACK_NS
        self._listed_ns: int | None = None
        self._last: Trade | None = None
        self._cursor: str | None = None
        self._seen: frozenset[str] = frozenset()
        self._unconfirmed: frozenset[str] = frozenset()
        self._tries = self._starts = 0
        self._by_time = False
        self._pause_ns = 0
        self.wants_listing = False
        """Whether the answers begin later than asked: the market may not have been listed yet."""

    @property
    def is_done(self) -> bool:
        """Whether the leg has been read to its end."""
        return self._bars.settled_ns >= self._span.end_ns

    def skip_to(self, time_ns: int) -> None:
        """Take everything before a bucket start as known."""
        self._bars.skip_to(time_ns)

    def note_listing(self, first_trade_ns: int) -> None:
        """Take the time of the market's first trade, which has none before it."""
        self._listed_ns = first_trade_ns

    def take_pause_ns(self) -> int:
        """Return how long to wait before the next request."""
        taken, self._pause_ns = self._pause_ns, 0
        return taken

    def wanted(self) -> TradesWanted:
        """Return the next request."""
        if self._last is None:
            return TradesWanted(max(0, self._bars.settled_ns - self._lookback_ns), None)
        if self._by_time:
            return TradesWanted(self._last.time_ns, None)
        return TradesWanted(self._bars.settled_ns, self._cursor)

    def on_page(self, page: TradesPage) -> Settled | None:
        """Take an answer; return what it settles, or None when it settles nothing yet.

        Raises:
            PeerError: NO_PROGRESS or BAD_ANSWER, no answer joins what is known; NO_DATA, there are no trades at all.
        """
        self._counts.empty_answers += not page.trades
        trades = {trade.trade_id: trade for trade in page.trades}
        fresh = [trade for trade in trades.values() if not self._is_known(trade)]
        self._counts.doubled += len(page.trades) - len(trades)
        if self._is_echo_wanted(trades):
            return None
        gaps = self._gaps(fresh, len(page.bad))
        if not self._is_joined(trades.values(), len(page.bad)):
            self._ask_again(page, bool(fresh))
            return None
        if gaps and self._tries < _TRIES_MAX:
            self._ask_again(page, bool(fresh))
            return None
        if not fresh and not page.bad:
            return self._bars.settle(self._span.end_ns)
        return self._accept(page, fresh, gaps)

    def _is_known(self, trade: Trade) -> bool:
        number, last = _number(trade), _number(self._last)
        if number is not None and last is not None:
            return number <= last
        return trade.trade_id in self._seen

    def _is_echo_wanted(self, trades: Iterable[str]) -> bool:
        """Return whether trades without ids must be asked for once more, and remember them."""
        ids = frozenset(trades)
        if all(map(_is_number, ids)) or ids == self._unconfirmed:
            return False
        self._unconfirmed = ids
        self._note_try()
        return True

    def _is_joined(self, trades: Iterable[Trade], bad: int) -> bool:
        times = [trade.time_ns for trade in trades if is_sane_time(trade.time_ns)]
        if self._last is None:
            first_ns = min(times, default=self._span.end_ns)
            return first_ns < self._bars.settled_ns or (self._listed_ns is not None and first_ns <= self._listed_ns)
        ids = {trade.trade_id for trade in trades}
        if not ids:
            return False
        if self._last.trade_id in ids or ids == self._unconfirmed:
            return True
        last, first = _number(self._last), min((n for n in map(_number, trades) if n is not None), default=None)
        return last is not None and first is not None and last < first <= last + 1 + bad

    def _gaps(self, fresh: Iterable[Trade], bad: int) -> list[tuple[Trade, Trade]]:
        """Return the neighbours between which ids lack, unless unreadable rows explain them."""
        numbered = sorted((n, trade) for trade in fresh if (n := _number(trade)) is not None)
        last = _number(self._last)
        if last is not None and self._last is not None:
            numbered.insert(0, (last, self._last))
        pairs = pairwise(numbered)
        gaps = [(left, right, n - m - 1) for (m, left), (n, right) in pairs if n > m + 1]
        return [(left, right) for left, right, _ in gaps] if sum(lost for _, _, lost in gaps) > bad else []

    def _ask_again(self, page: TradesPage, has_fresh: bool) -> None:
        """Ask in another way; give up when no answer joins.

        Raises:
            PeerError: there is nothing left to try.
        """
        self._note_try()
        if self._last is not None:
            self._by_time = not self._by_time
            if self._tries <= _TRIES_MAX:
                return
        else:
            self._starts += 1
            self.wants_listing = self._listed_ns is None and self._starts == 1
            self._lookback_ns *= _LOOKBACK_FACTOR
            if self._starts < _STARTS_MAX:
                return
            if not page.trades:
                raise PeerError("no answer held a single trade of the market", code=ErrorCode.NO_DATA)
        known = "none" if self._last is None else f"{self._last.trade_id} at {format_ns(self._last.time_ns)}"
        raise PeerError(
            f"asked for trades that join the known ones (the newest: {known}), got {len(page.trades)} trades that do "
            f"not, {max(self._tries, self._starts)} times; no progress",
            code=ErrorCode.BAD_ANSWER if has_fresh and self._last is not None else ErrorCode.NO_PROGRESS,
        )

    def _note_try(self) -> None:
        self._pause_ns = _PAUSES_NS[min(self._tries, len(_PAUSES_NS) - 1)] if self._last is not None else 0
        self._tries += 1

    def _accept(self, page: TradesPage, fresh: list[Trade], gaps: list[tuple[Trade, Trade]]) -> Settled | None:
        for bad in page.bad:
            self._bars.note_bad(bad.start_ns, bad.reason)
        for left, right in gaps:
            reason = f"trades between {left.trade_id} and {right.trade_id} are lost, in {self._tries} answers"
            self._bars.note_hole(left.time_ns, right.time_ns, reason)
        for trade in fresh:
            self._bars.add(trade)
        sane = [trade for trade in fresh if is_sane_time(trade.time_ns)]
        self._last = max(sane, key=lambda t: (_number(t) or 0, t.time_ns), default=self._last)
        self._seen = frozenset(trade.trade_id for trade in page.trades)
        self._cursor, self._by_time, self._tries = page.cursor, False, 0
        latest_ns = max((trade.time_ns for trade in sane), default=0)
        # Trades of the newest instant may go on in the next page, so only what lies before it is known.
        return self._bars.settle(align_down_ns(latest_ns, self._period_seconds))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _number(trade: Trade | None) -> int | None:
    return int(trade.trade_id) if trade is not None and _is_number(trade.trade_id) else None
