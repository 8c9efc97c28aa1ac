"""Coinbase Exchange: candles newest first in windows of 300, numbers as JSON numbers, no row without trades."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ingestors.engine.bars_reader import BarsWanted
from ingestors.engine.budget import BudgetLimits
from ingestors.engine.day_statistics import StatisticsPage
from ingestors.engine.outcomes import ExchangeError, HttpAnswer, Outcome, OutcomeKind
from ingestors.engine.trades_reader import TradesWanted
from ingestors.engine.values import (
    Bar,
    BarsPage,
    Capabilities,
    Listing,
    ListingStatus,
    RowOrder,
    Trade,
    TradesPage,
)
from ingestors.exchanges.http import Dialect, HostClient
from ingestors.exchanges.listing_search import ListingSearch
from ingestors.exchanges.market_list import make_ticker
from ingestors.exchanges.numbers import as_list, as_object, increment, number, read_bars, read_trades, whole
from ingestors.exchanges.port import StatisticsCall
from ingestors.exchanges.statistics_rows import by_native_symbol, read_coinbase_stats, read_statistics
from relay.protocol.periods import NANOSECONDS
from relay.protocol.times import format_ns, parse_iso_ns

__all__ = ["DEFAULT_LIMITS", "DIALECT", "CoinbaseAdapter", "product_status"]

_PERIODS = (60, 300, 900, 3_600, 21_600, 86_400)
_WINDOW_ROWS_MAX = 300
_TRADES_MAX = 1_000

DEFAULT_LIMITS = BudgetLimits(weight_per_minute=600, burst_weight=15)


def _body_kind(answer: HttpAnswer) -> OutcomeKind | None:
    message = str(answer.json.get("message", "")) if isinstance(answer.json, dict) else ""
    if answer.status == 400 and "granularity" in message.lower():
        return OutcomeKind.BAD_INTERVAL
    return None


DIALECT = Dialect(_body_kind)


class CoinbaseAdapter:
    """See :class:`~ingestors.exchanges.port.ExchangeAdapter`."""

    def __init__(self, host: HostClient, *, exchange: str = "COINBASE") -> None:
        self._host = host
        self._search = ListingSearch(window_rows_max=_WINDOW_ROWS_MAX)
        self._capabilities = Capabilities(
            exchange=exchange,
            native_periods=_PERIODS,
            page_rows_max=_WINDOW_ROWS_MAX,
            window_rows_max=_WINDOW_ROWS_MAX,
            sends_rows_before_start=True,
            order=RowOrder.DESCENDING,
        )

    @property
    def capabilities(self) -> Capabilities:
        """See the port."""
        return self._capabilities

    async def server_time_ns(self) -> int:
        """See the port."""
        answer = await self._host.get("/time")
        return parse_iso_ns(str(as_object(answer.json, "the server time").get("iso")))

    async def markets(self) -> Mapping[str, Listing]:
        """See the port."""
        answer = await self._host.get("/products")
        listings = (self._listing(entry) for entry in as_list(answer.json, "products"))
        return {str(listing.ticker): listing for listing in listings if listing is not None}

    async def fetch_bars_page(self, listing: Listing, wanted: BarsWanted) -> BarsPage:
        """See the port; both bounds of the endpoint are inclusive, and without either both would be ignored."""
        last_ns = wanted.window.end_ns - wanted.period_seconds * NANOSECONDS
        answer = await self._host.get(
            f"/products/{listing.native_symbol}/candles",
            {
                "granularity": wanted.period_seconds,
                "start": format_ns(wanted.window.start_ns),
                "end": format_ns(last_ns),
            },
            endpoint="candles",
        )
        return read_bars(as_list(answer.json, "candles"), _bar, start_ns=lambda row: whole(row[0]) * NANOSECONDS)

    async def fetch_trades_page(self, listing: Listing, wanted: TradesWanted) -> TradesPage:
        """See the port; pages by trade id only: the cursor is the newest id that is known."""
        if wanted.cursor is None:
            raise ExchangeError(Outcome(OutcomeKind.UNKNOWN, "trades are served by trade id, not from a time on"))
        # Trades come newest first below ``after``; ids have no holes, so this asks for the thousand after the cursor.
        after = whole(wanted.cursor) + _TRADES_MAX + 1
        answer = await self._host.get(
            f"/products/{listing.native_symbol}/trades", {"after": after, "limit": _TRADES_MAX}, endpoint="trades"
        )
        rows = as_list(answer.json, "trades")
        trades, bad = read_trades(rows, _trade, time_ns=lambda row: parse_iso_ns(row["time"]))
        newest = max((whole(trade.trade_id) for trade in trades), default=whole(wanted.cursor))
        return TradesPage(trades, str(newest), is_end=newest < after - 1, bad=bad)

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
        """See the port; no documented endpoint tells of all products, so each one that trades is asked for."""
        known = by_native_symbol(listings)

        async def fetch(symbol: str) -> StatisticsPage:
            answer = await self._host.get(f"/products/{symbol}/stats", endpoint="stats")
            entry = as_object(answer.json, "24 h statistics")
            return read_statistics([(symbol, entry)], known, partial(read_coinbase_stats, time_ns=now_ns()))

        trading = [listing for listing in listings.values() if listing.status is ListingStatus.ACTIVE]
        return [partial(fetch, listing.native_symbol) for listing in trading]

    async def close(self) -> None:
        """See the port."""
        await self._host.close()

    def _listing(self, entry: Mapping[str, Any]) -> Listing | None:
        exchange = self._capabilities.exchange
        ticker = make_ticker(str(entry["base_currency"]), str(entry["quote_currency"]), exchange)
        if ticker is None:
            return None
        return Listing(
            ticker=ticker,
            native_symbol=str(entry["id"]),
            status=product_status(entry),
            price_increment=increment(entry.get("quote_increment")),
            amount_increment=increment(entry.get("base_increment")),
            min_amount=increment(entry.get("base_min_size")),
            min_notional=increment(entry.get("min_market_funds")),
            history_start_ns=self._search.known_ns(str(entry["id"])),
        )


def product_status(entry: Mapping[str, Any]) -> ListingStatus:
    """Return the state of a product, Exchange or Advanced."""
    status = str(entry.get("status") or "online")
    if status == "delisted":
        return ListingStatus.DELISTED
    is_halted = any(entry.get(flag) for flag in ("trading_disabled", "is_disabled", "cancel_only", "view_only"))
    return ListingStatus.ACTIVE if status == "online" and not is_halted else ListingStatus.HALTED


def _bar(row: list[Any]) -> Bar:
    """Read time, LOW, HIGH, OPEN, CLOSE, volume."""
    return Bar(
        start_ns=whole(row[0]) * NANOSECONDS,
        open=number(row[3]),
        high=number(row[2]),
        low=number(row[1]),
        close=number(row[4]),
        volume=number(row[5]),
    )


def _trade(row: Mapping[str, Any]) -> Trade:
    return Trade(
        trade_id=str(whole(row["trade_id"])),
        time_ns=parse_iso_ns(row["time"]),
        price=number(row["price"]),
        amount=number(row["size"]),
        # ``side`` is the maker's.
        taker_buy=row["side"] == "sell",
    )
