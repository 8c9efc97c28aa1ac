"""What a market is made of: listing, trades and candles in scaled integers, and the port that serves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ingestors.simulation.grids import Grid

__all__ = ["Candle", "Listing", "MarketSource", "Trade", "Visible"]


@dataclass(frozen=True, slots=True)
class Listing:
    """Facts of one market.

    Attributes:
        symbol: unified form, ``BTC/USDT``.
        price_decimals: scale of prices.
        size_decimals: scale of sizes.
        listed_ns: when its history starts.
        halted_ns: when trading stopped for good, else None.
        alias_of: symbol whose book this market shares, else None.
    """

    symbol: str
    price_decimals: int
    size_decimals: int
    listed_ns: int
    halted_ns: int | None = None
    alias_of: str | None = None

    @property
    def base(self) -> str:
        """Base asset."""
        return self.symbol.partition("/")[0]

    @property
    def quote(self) -> str:
        """Quote asset."""
        return self.symbol.partition("/")[2]

    @property
    def quote_decimals(self) -> int:
        """Scale of price times size."""
        return self.price_decimals + self.size_decimals


@dataclass(frozen=True, slots=True)
class Trade:
    """One trade; prices and sizes in units of the listing's decimals."""

    trade_id: int
    time_ns: int
    price_units: int
    size_units: int
    taker_buy: bool


@dataclass(frozen=True, slots=True)
class Candle:
    """One candle. Optional fields are None when a recording does not hold them.

    Attributes:
        start_ns: start of the bar; off the grid where a recording has it so.
        open_units, high_units, low_units, close_units, vwap_units: at the listing's price decimals.
        volume_units, buy_volume_units: at its size decimals.
        quote_units, buy_quote_units: at its quote decimals.
        trades: count of trades.
    """

    start_ns: int
    open_units: int
    high_units: int
    low_units: int
    close_units: int
    volume_units: int
    quote_units: int | None = None
    trades: int | None = None
    buy_volume_units: int | None = None
    buy_quote_units: int | None = None
    vwap_units: int | None = None

    @property
    def is_traded(self) -> bool:
        """Whether its prices are of trades; else they repeat the close before, as exchanges fill empty bars."""
        return bool(self.trades) or self.volume_units > 0


@dataclass(frozen=True, slots=True)
class Visible:
    """What can be seen at an instant.

    Attributes:
        until_ns: trades before this time exist; later ones do not yet.
    """

    until_ns: int


class MarketSource(Protocol):
    """One market's trades, addressed by position from its first trade, and its candles."""

    @property
    def listing(self) -> Listing:
        """The market's facts."""

    @property
    def fills_empty(self) -> bool:
        """Whether a bar without a row is known to have no trade, so that an exchange may show it as a flat row."""

    def candles(self, grid: Grid, *, start_ns: int, end_ns: int, visible: Visible) -> list[Candle]:
        """Return the candles with trades that start in [start_ns, end_ns), ascending."""

    def position_at(self, time_ns: int) -> int:
        """Return how many trades lie before a time: the position of the first one at or after it."""

    def position_of(self, trade_id: int) -> int:
        """Return how many trades have a smaller id."""

    def trades(self, start: int, end: int) -> list[Trade]:
        """Return the trades at positions [start, end), cut to those that exist, ascending."""
