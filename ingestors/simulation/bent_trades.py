"""What faults do to a market's trades on their way out: lost, doubled, late, without a price, spoiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.records import Trade
from ingestors.simulation.socket_faults import SocketFaultBook, SocketFaultKind

__all__ = ["Batch", "TradeBender"]

_KIND = SocketFaultKind
_SPOILING = (_KIND.DROP, _KIND.BAD_JSON, _KIND.TRUNCATED)


@dataclass(frozen=True, slots=True)
class Batch:
    """Trades that go out together.

    Attributes:
        trades: in the order of sending.
        spoiled: what happens to their messages after they are written; DROP loses them, so that a count of
            messages shows the loss.
        ends_with: close code of the disconnect that follows, else None.
    """

    trades: Sequence[Trade]
    spoiled: SocketFaultKind | None = None
    ends_with: int | None = None


@dataclass(slots=True)
class _Held:
    trade: Trade
    after: int
    until_ns: int


class TradeBender:
    """One market's trades; remembers those that are held back.

    Args:
        exchange: its name.
        feed: the market, whose counts are kept.
        faults: the book.
    """

    def __init__(self, exchange: str, feed: MarketFeed, faults: SocketFaultBook) -> None:
        self._exchange = exchange
        self._feed = feed
        self._faults = faults
        self._held: list[_Held] = []

    @property
    def is_holding(self) -> bool:
        """Whether trades wait for their turn."""
        return bool(self._held)

    def bend(self, trades: Sequence[Trade], *, wall_ns: int) -> list[Batch]:
        """Return what goes out of new trades and of held ones whose time has come."""
        if not self._faults.has_trade_faults and not self._held:
            return [Batch(trades)] if trades else []
        batches: list[Batch] = []
        whole: list[Trade] = []
        for trade in trades:
            self._one(trade, whole, batches, wall_ns)
        whole += self._due(0, wall_ns)
        if whole:
            batches.append(Batch(whole))
        return batches

    def _one(self, trade: Trade, whole: list[Trade], batches: list[Batch], wall_ns: int) -> None:
        counts = self._feed.counts
        faults = self._faults.take_for_trade(self._exchange, self._feed.source.listing.symbol, trade.trade_id)
        kinds = {fault.kind: fault for fault in faults}
        end = kinds.pop(_KIND.DISCONNECT, None)
        if end is not None:
            batches.append(Batch(tuple(whole), ends_with=end.close_code))
            whole.clear()
        if _KIND.ZERO_PRICE in kinds:
            counts.spoiled += 1
            trade = replace(trade, price_units=0)
        spoiled = next((kind for kind in _SPOILING if kind in kinds), None)
        if spoiled is not None:
            counts.dropped += spoiled == _KIND.DROP
            counts.spoiled += spoiled != _KIND.DROP
            batches += [Batch(tuple(whole)), Batch((trade,), spoiled)]
            whole.clear()
        elif _KIND.REORDER in kinds:
            fault = kinds[_KIND.REORDER]
            counts.reordered += 1
            self._held.append(_Held(trade, fault.window, wall_ns + fault.delay_ms * 10**6))
            return
        else:
            whole.append(trade)
            if _KIND.DOUBLE in kinds:
                counts.doubled += 1
                whole.append(trade)
        whole += self._due(1, wall_ns)

    def _due(self, passed: int, wall_ns: int) -> list[Trade]:
        for held in self._held:
            held.after -= passed
        due = [held.trade for held in self._held if held.after <= 0 or wall_ns >= held.until_ns]
        if due:
            self._held = [held for held in self._held if held.after > 0 and wall_ns < held.until_ns]
        return due
