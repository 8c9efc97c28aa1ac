"""The port that every exchange stands behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ingestors.engine.bars_reader import BarsWanted
from ingestors.engine.trades_reader import TradesWanted
from ingestors.engine.values import BarsPage, Capabilities, Listing, TradesPage

__all__ = ["ExchangeAdapter"]


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

    async def close(self) -> None:
        """Close connections."""
