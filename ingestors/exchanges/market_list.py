"""The exchange's own list of markets, kept for a while: native symbols and tickers both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from ingestors.clock import Clock
from ingestors.engine.values import Listing
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.tickers import Ticker, parse_ticker

__all__ = ["MarketList", "make_ticker"]

FRESH_NS = 3_600 * NANOSECONDS
REFRESH_FLOOR_NS = 60 * NANOSECONDS
"""An unknown ticker makes the list be fetched again, but not more often than this."""


class MarketList:
    """Listings of one exchange by ticker.

    Args:
        fetch: the adapter's ``markets``.
        clock: time.
    """

    def __init__(self, fetch: Callable[[], Awaitable[Mapping[str, Listing]]], *, clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._listings: Mapping[str, Listing] = {}
        self._fetched_ns: int | None = None
        self._turn = asyncio.Lock()

    async def all(self) -> Mapping[str, Listing]:
        """Fetch the list anew and return it."""
        self._listings = await self._fetch()
        self._fetched_ns = self._clock.monotonic_ns()
        return self._listings

    async def recent(self) -> Mapping[str, Listing]:
        """Return the list, fetched anew when it is old."""
        async with self._turn:
            if self._fetched_ns is None or self._age_ns() > FRESH_NS:
                await self.all()
            return self._listings

    async def find(self, ticker: str) -> Listing:
        """Return a ticker's listing, fetching the list when it is old or does not hold the ticker.

        Raises:
            PeerError: UNKNOWN_SYMBOL.
        """
        async with self._turn:
            # Jobs that start together share one fetch.
            is_old = self._fetched_ns is None or self._age_ns() > FRESH_NS
            if is_old or (ticker not in self._listings and self._age_ns() > REFRESH_FLOOR_NS):
                await self.all()
        listing = self._listings.get(ticker)
        if listing is None:
            raise PeerError(
                f"{ticker} is not among the {len(self._listings)} markets that the exchange lists; "
                "ask for its symbols to see which are",
                code=ErrorCode.UNKNOWN_SYMBOL,
            )
        return listing

    def _age_ns(self) -> int:
        return self._clock.monotonic_ns() - (self._fetched_ns or 0)


def make_ticker(base: str, quote: str, exchange: str) -> Ticker | None:
    """Return the ticker of two assets, or None when the ticker grammar cannot express them."""
    try:
        return parse_ticker(f"{base.upper()}/{quote.upper()}.{exchange}")
    except PeerError:
        return None
