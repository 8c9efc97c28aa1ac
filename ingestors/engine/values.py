"""What adapters hand to the engines: bars, trades, pages, and what an exchange can do. Exact numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from enum import Enum, IntEnum

from relay.protocol.tickers import Ticker

__all__ = [
    "EXACT",
    "BadRow",
    "Bar",
    "BarSource",
    "BarsPage",
    "Capabilities",
    "Fidelity",
    "Listing",
    "ListingStatus",
    "RowOrder",
    "Trade",
    "TradesPage",
]

EXACT = Context(prec=130, traps=[Inexact, InvalidOperation])
"""Arithmetic that raises instead of rounding."""


class BarSource(IntEnum):
    """Where a bar comes from; the numbers are those of the wire."""

    EXCHANGE = 0
    TICKS = 1
    ROLLUP = 2


class ListingStatus(IntEnum):
    """State of a market; the numbers are those of the wire."""

    ACTIVE = 0
    HALTED = 1
    DELISTED = 2
    PRE = 3


class Fidelity(Enum):
    """How much of what the exchange sends reaches us."""

    FULL = "full"
    LOWER = "lower"


class RowOrder(Enum):
    """In which order an endpoint sends its rows."""

    ASCENDING = "ascending"
    DESCENDING = "descending"


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar as fetched. What the exchange does not send is None, never zero.

    Attributes:
        start_ns: open time; off the grid when the exchange sent it so.
        incomplete: the row does not cover its whole bucket.
    """

    start_ns: int
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal
    quote_volume: Decimal | None = None
    buy_volume: Decimal | None = None
    sell_volume: Decimal | None = None
    trades: int | None = None
    source: BarSource = BarSource.EXCHANGE
    first_trade_id: str | None = None
    last_trade_id: str | None = None
    incomplete: bool = False

    @property
    def is_traded(self) -> bool:
        """Whether its prices are of trades; else they repeat the close before, as some exchanges fill empty buckets."""
        return bool(self.trades) or self.volume > 0


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is not to be stored, with its reason; ``start_ns`` is None when its time makes no sense."""

    start_ns: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Trade:
    """One trade; ``taker_buy`` says which side took."""

    trade_id: str
    time_ns: int
    price: Decimal
    amount: Decimal
    taker_buy: bool


@dataclass(frozen=True, slots=True)
class BarsPage:
    """One answer of a candle endpoint, rows in whatever order they came."""

    rows: tuple[Bar, ...]
    bad: tuple[BadRow, ...] = ()


@dataclass(frozen=True, slots=True)
class TradesPage:
    """One answer of a trade endpoint.

    Attributes:
        trades: in whatever order they came.
        cursor: where the next page begins, exactly as the exchange wrote it.
        is_end: nothing newer existed when the exchange answered.
    """

    trades: tuple[Trade, ...]
    cursor: str
    is_end: bool
    bad: tuple[BadRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an exchange's history endpoints can do; consulted before the first page.

    Attributes:
        exchange: upper-case name, the last part of a ticker.
        native_periods: seconds, ascending; only those whose grid is ours.
        page_rows_max: most rows of one candle answer.
        window_rows_max: most buckets one request may span; None when the endpoint finds the next rows itself.
        bounds_end: the endpoint takes an end; otherwise later rows are natural.
        sends_rows_before_start: the endpoint may send rows older than asked.
        start_inclusive, end_inclusive: of the endpoint's own bounds; the adapter turns [start, end) into them.
        order: of the endpoint's rows.
        history_rows: candles reach back this many rows only; None when they reach back to the listing.
        trades_by_time: trades can be paged from any time on.
        sends_empty_buckets: a bucket without trades has a row too, so that a hole is an outage.
    """

    exchange: str
    native_periods: tuple[int, ...]
    page_rows_max: int
    window_rows_max: int | None = None
    bounds_end: bool = True
    sends_rows_before_start: bool = False
    start_inclusive: bool = True
    end_inclusive: bool = True
    order: RowOrder = RowOrder.ASCENDING
    history_rows: int | None = None
    trades_by_time: bool = False
    sends_empty_buckets: bool = False
    fidelity: Fidelity = Fidelity.FULL


@dataclass(frozen=True, slots=True)
class Listing:
    """A market as its exchange lists it; increments are None where it names none."""

    ticker: Ticker
    native_symbol: str
    status: ListingStatus = ListingStatus.ACTIVE
    price_increment: Decimal | None = None
    amount_increment: Decimal | None = None
    min_amount: Decimal | None = None
    min_notional: Decimal | None = None
    alias_of: str | None = None
    history_start_ns: int | None = None
