"""What the bar engine takes and gives."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import msgspec

__all__ = ["BarRules", "BarTrade", "Beat", "GapNotice", "GapState", "MadeBar", "Recompute"]


class BarTrade(NamedTuple):
    """One trade of the log.

    Attributes:
        number: the exchange's trade id.
        time_ns: exchange time, ns since the epoch.
        price, amount: in units of ``10^-price_decimals`` and ``10^-amount_decimals``.
        quote: price x amount in units of ``10^-quote_decimals``; None when it was not sent.
        taker_buy: whether the taker bought.
        offset: place in its log partition, or -1 for a trade out of the store.
    """

    number: int
    time_ns: int
    price: int
    price_decimals: int
    amount: int
    amount_decimals: int
    quote: int | None
    quote_decimals: int
    taker_buy: bool
    offset: int


class GapState(Enum):
    """What a feed says of a hole."""

    OPEN = "OPEN"
    FILLED = "FILLED"
    UNFILLABLE = "UNFILLABLE"


class GapNotice(NamedTuple):
    """A feed's word about missing trades; numbers inclusive, None where unknown, times of the trades around.

    ``to_ns`` of an OPEN one without a last number means nothing.
    """

    state: GapState
    first: int | None
    last: int | None
    from_ns: int
    to_ns: int


class Beat(NamedTuple):
    """A ticker's own time: everything before ``reached_ns`` has been logged, or is declared missing."""

    attempt: int
    reached_ns: int
    is_down: bool


class BarRules(msgspec.Struct, frozen=True):
    """Bounds of the engine.

    Attributes:
        lateness_ns: how long after its end a bucket is waited with, by the ticker's own time.
        keep_ns: final bars whose end lies further back are made anew from stored ticks when a trade comes late.
        keeps_holes: whether buckets that an OPEN gap may touch are kept however old they are: for whoever has no store.
        spans_max: of separate ranges of known trade numbers of a ticker.
    """

    lateness_ns: int = 0
    keep_ns: int = 600_000_000_000
    keeps_holes: bool = False
    spans_max: int = 10_000


class MadeBar(NamedTuple):
    """A bar of trades: equal values mean an equal bar.

    Prices in units of ``10^-price_decimals``, volumes of ``10^-amount_decimals``, quote volume of
    ``10^-quote_decimals``.
    """

    ticker: str
    period_seconds: int
    start_ns: int
    price_decimals: int
    open: int
    high: int
    low: int
    close: int
    amount_decimals: int
    buy: int
    sell: int
    quote_decimals: int
    quote: int
    trades: int
    first_number: int
    last_number: int
    incomplete: bool
    is_final: bool
    revision: int

    def is_same(self, other: MadeBar) -> bool:
        """Return whether two final bars of one bucket say the same, whatever their revisions."""
        return self._replace(revision=0) == other._replace(revision=0)


class Recompute(NamedTuple):
    """A bucket whose bar has to be made from what is stored, once that has passed these places of the log.

    Attributes:
        ticker, period_seconds, start_ns: the bucket.
        trade_offset, gap_offset: the ticker's newest trade and gap; -1 for none.
    """

    ticker: str
    period_seconds: int
    start_ns: int
    trade_offset: int
    gap_offset: int
