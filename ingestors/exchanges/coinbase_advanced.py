"""Coinbase Advanced Trade, its public market side: candles newest first, every number as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ingestors.engine.bars_reader import BarsWanted
from ingestors.engine.budget import BudgetLimits
from ingestors.engine.day_statistics import StatisticsPage
from ingestors.engine.outcomes import ExchangeError, HttpAnswer, Outcome, OutcomeKind
from ingestors.engine.trades_reader import TradesWanted
from ingestors.engine.values import Bar, BarsPage, Capabilities, Listing, RowOrder, TradesPage
from ingestors.exchanges.coinbase import product_status
from ingestors.exchanges.http import Dialect, HostClient
from ingestors.exchanges.listing_search import ListingSearch
from ingestors.exchanges.market_list import make_ticker
from ingestors.exchanges.numbers import as_list, as_object, increment, number, read_bars, whole
from ingestors.exchanges.port import StatisticsCall
from ingestors.exchanges.statistics_rows import by_native_symbol, read_advanced_product, read_statistics
from relay.protocol.periods import NANOSECONDS
from relay.protocol.times import parse_iso_ns

__all__ = ["DEFAULT_LIMITS", "DIALECT", "CoinbaseAdvancedAdapter"]

_BASE = "/api/v3/brokerage"
_GRANULARITIES = {
    60: "ONE_MINUTE",
    300: "FIVE_MINUTE",
    900: "FIFTEEN_MINUTE",
    1_800: "THIRTY_MINUTE",
    3_600: "ONE_HOUR",
    7_200: "TWO_HOUR",
    21_600: "SIX_HOUR",
    86_400: "ONE_DAY",
}
_WINDOW_ROWS_MAX = 300
"""The documented most is 350; whether both bounds count is not said, so a window stays well below."""

DEFAULT_LIMITS = BudgetLimits(weight_per_minute=600, burst_weight=10)


def _body_kind(answer: HttpAnswer) -> OutcomeKind | None:
    body = answer.json if isinstance(answer.json, dict) else {}
    text = f"{body.get('error_details', '')} {body.get('message', '')}".lower()
    if answer.status == 400 and "granularity" in text:
        return OutcomeKind.BAD_INTERVAL
    if answer.status == 400 and "product" in text:
        return OutcomeKind.BAD_SYMBOL
    return None


DIALECT = Dialect(_body_kind)


class CoinbaseAdvancedAdapter:
    """See :class:`~ingestors.exchanges.port.ExchangeAdapter`."""

    def __init__(self, host: HostClient, *, exchange: str = "COINBASE") -> None:
        self._host = host
        self._search = ListingSearch(window_rows_max=_WINDOW_ROWS_MAX)
        self._capabilities = Capabilities(
            exchange=exchange,
            native_periods=tuple(_GRANULARITIES),
            page_rows_max=_WINDOW_ROWS_MAX,
            window_rows_max=_WINDOW_ROWS_MAX,
            order=RowOrder.DESCENDING,
        )

    @property
    def capabilities(self) -> Capabilities:
        """See the port."""
        return self._capabilities

    async def server_time_ns(self) -> int:
        """See the port."""
        answer = await self._host.get(f"{_BASE}/time")
        return parse_iso_ns(str(as_object(answer.json, "the server time").get("iso")))

    async def markets(self) -> Mapping[str, Listing]:
        """See the port; spot products only."""
        listings = (self._listing(entry) for entry in await self._products())
        return {str(listing.ticker): listing for listing in listings if listing is not None}

    async def fetch_bars_page(self, listing: Listing, wanted: BarsWanted) -> BarsPage:
        """See the port; both bounds of the endpoint are inclusive."""
        last_ns = wanted.window.end_ns - wanted.period_seconds * NANOSECONDS
        answer = await self._host.get(
            f"{_BASE}/market/products/{listing.native_symbol}/candles",
            {
                "granularity": _GRANULARITIES[wanted.period_seconds],
                "start": str(wanted.window.start_ns // NANOSECONDS),
                "end": str(last_ns // NANOSECONDS),
                "limit": str(min(wanted.rows_max, _WINDOW_ROWS_MAX)),
            },
            endpoint="candles",
        )
        rows = as_list(as_object(answer.json, "candles").get("candles"), "candles")
        return read_bars(rows, _bar, start_ns=lambda row: whole(row["start"]) * NANOSECONDS)

    async def fetch_trades_page(self, listing: Listing, wanted: TradesWanted) -> TradesPage:
        """Refuse: the endpoint cuts off a window's oldest trades, so that nothing can be proven with it."""
        del wanted
        raise ExchangeError(
            Outcome(OutcomeKind.UNKNOWN, f"{listing.native_symbol}: trades cannot be paged here; use the Exchange API")
        )

    async def history_start_ns(self, listing: Listing, *, before_ns: int) -> int | None:
        """See the port; searched for by days, hours, minutes."""
        return await self._search.find(
            listing.native_symbol,
            lambda wanted: self.fetch_bars_page(listing, wanted),
            before_ns=before_ns,
            now=self.server_time_ns,
        )

    def statistics_calls(
        self, listings: Mapping[str, Listing], *, now_ns: Callable[[], int]
    ) -> Sequence[StatisticsCall]:
        """See the port; the list of products holds the numbers."""
        known = by_native_symbol(listings)

        async def fetch() -> StatisticsPage:
            entries = await self._products()
            read = partial(read_advanced_product, time_ns=now_ns())
            spot = ((str(entry.get("product_id")), entry) for entry in entries if _is_spot(entry))
            return read_statistics(spot, known, read)

        return [fetch]

    async def close(self) -> None:
        """See the port."""
        await self._host.close()

    async def _products(self) -> list[Any]:
        answer = await self._host.get(f"{_BASE}/market/products", {"product_type": "SPOT"})
        return as_list(as_object(answer.json, "products").get("products"), "products")

    def _listing(self, entry: Mapping[str, Any]) -> Listing | None:
        if not _is_spot(entry):
            return None
        exchange = self._capabilities.exchange
        ticker = make_ticker(str(entry["base_currency_id"]), str(entry["quote_currency_id"]), exchange)
        if ticker is None:
            return None
        alias = str(entry.get("alias") or "")
        alias_base, dash, alias_quote = alias.partition("-")
        alias_ticker = make_ticker(alias_base, alias_quote, exchange) if dash else None
        return Listing(
            ticker=ticker,
            native_symbol=str(entry["product_id"]),
            status=product_status(entry),
            price_increment=increment(entry.get("price_increment") or entry.get("quote_increment")),
            amount_increment=increment(entry.get("base_increment")),
            min_amount=increment(entry.get("base_min_size")),
            min_notional=increment(entry.get("quote_min_size")),
            alias_of=None if alias_ticker is None else str(alias_ticker),
            history_start_ns=self._search.known_ns(str(entry["product_id"])),
        )


def _is_spot(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("product_type", "SPOT") == "SPOT")


def _bar(row: Mapping[str, Any]) -> Bar:
    return Bar(
        start_ns=whole(row["start"]) * NANOSECONDS,
        open=number(row["open"]),
        high=number(row["high"]),
        low=number(row["low"]),
        close=number(row["close"]),
        volume=number(row["volume"]),
    )
