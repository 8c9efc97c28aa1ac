"""The port that every exchange stands behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from ingestors.engine.bars_reader import BarsWanted
from ingestors.engine.day_statistics import StatisticsPage
from ingestors.engine.trades_reader import TradesWanted
from ingestors.engine.values import BarsPage, Capabilities, Listing, TradesPage

__all__ = ["ExchangeAdapter", "StatisticsCall"]

StatisticsCall = Callable[[], Awaitable[StatisticsPage]]
"""One question of many about the last 24 hours; each is repeated by itself when it fails."""


class ExchangeAdapter(Protocol):
    """One exchange's history. Every method raises ``ExchangeError`` with a classified outcome."""

    @property
    def capabilities(self) -> Capabilities:
        """What the endpoints can do."""

    async def server_time_ns(self) -> int:
        """Return the exchange's clock: "now" as far as its bars are concerned."""

    async def markets(self) -> Mapping[str, Listing]:
        """Return all markets by ticker, as the exchange lists them now."""

    async def fetch_bars_page(self, listing: Listing, wanted: BarsWanted) -> BarsPage:
        """Ask once for the bars of a window."""

    async def fetch_trades_page(self, listing: Listing, wanted: TradesWanted) -> TradesPage:
        """Ask once for trades from a time or a cursor on."""

    async def history_start_ns(self, listing: Listing, *, before_ns: int) -> int | None:
        """Return since when there is data, or any time before ``before_ns`` at which there was; None when unknown."""

    def statistics_calls(
        self, listings: Mapping[str, Listing], *, now_ns: Callable[[], int]
    ) -> Sequence[StatisticsCall]:
        """Return the calls that fetch the 24 h statistics of the whole exchange: one where it has one for all markets.

        Args:
            listings: by ticker.
            now_ns: time of rows that name none.
        """

    async def close(self) -> None:
        """Close connections."""
