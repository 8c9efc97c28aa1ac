"""Binance spot: klines and aggregated trades, everything as text or whole numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ingestors.engine.bars_reader import BarsWanted
from ingestors.engine.budget import BudgetLimits
from ingestors.engine.day_statistics import StatisticsPage
from ingestors.engine.outcomes import HttpAnswer, OutcomeKind
from ingestors.engine.trades_reader import TradesWanted
from ingestors.engine.values import EXACT, Bar, BarsPage, Capabilities, Listing, ListingStatus, Trade, TradesPage
from ingestors.exchanges.http import Dialect, HostClient
from ingestors.exchanges.market_list import make_ticker
from ingestors.exchanges.numbers import (
    as_list,
    as_object,
    increment,
    number,
    optional_number,
    read_bars,
    read_trades,
    whole,
)
from ingestors.exchanges.port import StatisticsCall
from ingestors.exchanges.statistics_rows import by_native_symbol, read_binance_row, read_statistics
from relay.protocol.times import magnitude_unit

__all__ = ["DEFAULT_LIMITS", "DIALECT", "BinanceAdapter"]

_INTERVALS = {
    1: "1s",
    60: "1m",
    180: "3m",
    300: "5m",
    900: "15m",
    1_800: "30m",
    3_600: "1h",
    7_200: "2h",
    14_400: "4h",
    21_600: "6h",
    28_800: "8h",
    43_200: "12h",
    86_400: "1d",
    604_800: "1w",
}
"""Without 3d: where its grid begins is not documented, so three-day bars are rolled up from days."""
_PAGE_ROWS_MAX = 1_000
_MILLISECOND_NS = 1_000_000
_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_CODES = {
    -1003: OutcomeKind.THROTTLED,
    -1015: OutcomeKind.THROTTLED,
    -1007: OutcomeKind.TRANSIENT,
    -1008: OutcomeKind.TRANSIENT,
    -1001: OutcomeKind.TRANSIENT,
    -1000: OutcomeKind.TRANSIENT,
    -1016: OutcomeKind.MAINTENANCE,
    -1120: OutcomeKind.BAD_INTERVAL,
    -1121: OutcomeKind.BAD_SYMBOL,
    -1122: OutcomeKind.BAD_SYMBOL,
}
_STATUSES = {"TRADING": ListingStatus.ACTIVE, "PRE_TRADING": ListingStatus.PRE, "DELISTED": ListingStatus.DELISTED}
_BANNED_UNTIL = re.compile(r"banned until (\d{13})")

DEFAULT_LIMITS = BudgetLimits(weight_per_minute=1_200, burst_weight=1_200)
"""The smallest limit that was ever published; exchangeInfo tells the one in force."""


def _body_kind(answer: HttpAnswer) -> OutcomeKind | None:
    code = answer.json.get("code") if isinstance(answer.json, dict) else None
    return _CODES.get(code) if isinstance(code, int) else None


def _ban_until_ns(answer: HttpAnswer) -> int | None:
    match = _BANNED_UNTIL.search(answer.text)
    return int(match[1]) * _MILLISECOND_NS if match else None


DIALECT = Dialect(_body_kind, _ban_until_ns, used_weight_header="x-mbx-used-weight-1m")


class BinanceAdapter:
    """See :class:`~ingestors.exchanges.port.ExchangeAdapter`."""

    def __init__(self, host: HostClient, *, exchange: str = "BINANCE") -> None:
        self._host = host
        self._listed_ns: dict[str, int | None] = {}
        self._capabilities = Capabilities(
            exchange=exchange,
            native_periods=tuple(_INTERVALS),
            page_rows_max=_PAGE_ROWS_MAX,
            trades_by_time=True,
            sends_empty_buckets=True,
        )

    @property
    def capabilities(self) -> Capabilities:
        """See the port."""
        return self._capabilities

    async def server_time_ns(self) -> int:
        """See the port."""
        answer = await self._host.get("/api/v3/time")
        return _time_ns(as_object(answer.json, "the server time").get("serverTime"))

    async def markets(self) -> Mapping[str, Listing]:
        """See the port."""
        answer = await self._host.get("/api/v3/exchangeInfo", weight=20)
        info = as_object(answer.json, "exchangeInfo")
        self._learn_limits(info.get("rateLimits") or [])
        listings = (self._listing(entry) for entry in as_list(info.get("symbols"), "symbols"))
        return {str(listing.ticker): listing for listing in listings if listing is not None}

    async def fetch_bars_page(self, listing: Listing, wanted: BarsWanted) -> BarsPage:
        """See the port; both bounds of the endpoint are inclusive."""
        rows = await self._klines(
            listing.native_symbol,
            _INTERVALS[wanted.period_seconds],
            {
                "startTime": wanted.window.start_ns // _MILLISECOND_NS,
                "endTime": wanted.window.end_ns // _MILLISECOND_NS - 1,
                "limit": wanted.rows_max,
            },
        )
        return read_bars(rows, _bar, start_ns=lambda row: _time_ns(row[0]))

    async def fetch_trades_page(self, listing: Listing, wanted: TradesWanted) -> TradesPage:
        """See the port; the cursor is the first id of the next page."""
        start = {"startTime": str(-(-wanted.start_ns // _MILLISECOND_NS))}
        params = start if wanted.cursor is None else {"fromId": wanted.cursor}
        answer = await self._host.get(
            "/api/v3/aggTrades",
            {"symbol": listing.native_symbol, "limit": str(_PAGE_ROWS_MAX), **params},
            weight=4,
        )
        rows = as_list(answer.json, "aggTrades")
        trades, bad = read_trades(rows, _trade, time_ns=lambda row: _time_ns(row["T"]))
        last_id = max((int(trade.trade_id) for trade in trades), default=None)
        cursor = (wanted.cursor or "") if last_id is None else str(last_id + 1)
        return TradesPage(trades, cursor, is_end=len(rows) < _PAGE_ROWS_MAX, bad=bad)

    async def history_start_ns(self, listing: Listing, *, before_ns: int) -> int | None:
        """See the port; the first kline ever."""
        del before_ns
        symbol = listing.native_symbol
        if symbol not in self._listed_ns:
            # Two answers of different shape: what one fault makes of the first row must not be remembered.
            found = [await self._klines(symbol, "1m", {"startTime": 0, "limit": limit}) for limit in (1, 2)]
            if not all(found) or found[0][0][0] != found[1][0][0]:
                return None
            self._listed_ns[symbol] = _time_ns(found[0][0][0])
        return self._listed_ns[symbol]

    def statistics_calls(
        self, listings: Mapping[str, Listing], *, now_ns: Callable[[], int]
    ) -> Sequence[StatisticsCall]:
        """See the port; one call of weight 80."""
        del now_ns
        known = by_native_symbol(listings)

        async def fetch() -> StatisticsPage:
            answer = await self._host.get("/api/v3/ticker/24hr", weight=80)
            rows = as_list(answer.json, "24 h statistics")
            return read_statistics(((str(row.get("symbol")), row) for row in rows), known, read_binance_row)

        return [fetch]

    async def close(self) -> None:
        """See the port."""
        await self._host.close()

    async def _klines(self, symbol: str, interval: str, params: Mapping[str, int]) -> list[Any]:
        query: dict[str, str | int] = {"symbol": symbol, "interval": interval, **params}
        answer = await self._host.get("/api/v3/klines", query, weight=2)
        return as_list(answer.json, "klines")

    def _learn_limits(self, rate_limits: list[Any]) -> None:
        for limit in rate_limits:
            if limit.get("rateLimitType") != "REQUEST_WEIGHT" or limit.get("interval") != "MINUTE":
                continue
            weight = whole(limit.get("limit")) // max(1, whole(limit.get("intervalNum", 1)))
            if weight > 0:
                self._host.budget.set_limits(BudgetLimits(weight_per_minute=weight, burst_weight=weight))

    def _listing(self, entry: Mapping[str, Any]) -> Listing | None:
        ticker = make_ticker(str(entry["baseAsset"]), str(entry["quoteAsset"]), self._capabilities.exchange)
        if ticker is None:
            return None
        filters = {item.get("filterType"): item for item in entry.get("filters", ())}
        notional = filters.get("NOTIONAL") or filters.get("MIN_NOTIONAL") or {}
        return Listing(
            ticker=ticker,
            native_symbol=str(entry["symbol"]),
            status=_STATUSES.get(str(entry.get("status")), ListingStatus.HALTED),
            price_increment=increment(filters.get("PRICE_FILTER", {}).get("tickSize")),
            amount_increment=increment(filters.get("LOT_SIZE", {}).get("stepSize")),
            min_amount=increment(filters.get("LOT_SIZE", {}).get("minQty")),
            min_notional=increment(notional.get("minNotional")),
            history_start_ns=self._listed_ns.get(str(entry["symbol"])),
        )


def _time_ns(value: object) -> int:
    """Return ns of a time in ms or us: the exchange switched units once, so the magnitude decides."""
    units = whole(value)
    return units * _UNIT_NS[magnitude_unit(units)]


def _bar(row: list[Any]) -> Bar:
    volume, buy_volume = number(row[5]), optional_number(row[9])
    return Bar(
        start_ns=_time_ns(row[0]),
        open=number(row[1]),
        high=number(row[2]),
        low=number(row[3]),
        close=number(row[4]),
        volume=volume,
        quote_volume=optional_number(row[7]),
        buy_volume=buy_volume,
        sell_volume=None if buy_volume is None else EXACT.subtract(volume, buy_volume),
        trades=None if row[8] is None else whole(row[8]),
    )


def _trade(row: Mapping[str, Any]) -> Trade:
    return Trade(
        trade_id=str(whole(row["a"])),
        time_ns=_time_ns(row["T"]),
        price=number(row["p"]),
        amount=number(row["q"]),
        # m says that the buyer was the maker, so the taker sold.
        taker_buy=not row["m"],
    )
