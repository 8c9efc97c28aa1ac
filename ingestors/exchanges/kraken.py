"""Kraken spot: the newest 720 candles, and trades for everything older. Cursors stay text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ingestors.engine.bars_reader import BarsWanted
from ingestors.engine.budget import BudgetLimits
from ingestors.engine.day_statistics import StatisticsPage
from ingestors.engine.outcomes import ExchangeError, HttpAnswer, Outcome, OutcomeKind
from ingestors.engine.trades_reader import TradesWanted
from ingestors.engine.values import Bar, BarsPage, Capabilities, Listing, ListingStatus, Trade, TradesPage
from ingestors.exchanges.http import Dialect, HostClient
from ingestors.exchanges.market_list import make_ticker
from ingestors.exchanges.numbers import (
    as_list,
    as_object,
    increment,
    number,
    read_bars,
    read_trades,
    seconds_ns,
    whole,
)
from ingestors.exchanges.port import StatisticsCall
from ingestors.exchanges.statistics_rows import by_native_symbol, read_kraken_entry, read_statistics
from relay.protocol.periods import NANOSECONDS
from relay.protocol.tickers import Ticker

__all__ = ["DEFAULT_LIMITS", "DIALECT", "KrakenAdapter"]

_PERIODS = (60, 300, 900, 1_800, 3_600, 14_400, 86_400, 1_296_000)
"""Without the week: the exchange's weeks begin on Thursday, ours on Monday, so weeks are rolled up from days."""
_HISTORY_ROWS = 720
_TRADES_MAX = 1_000
_ASSETS = {"XBT": "BTC", "XDG": "DOGE"}
_ERRORS = {
    "EAPI:Rate limit exceeded": OutcomeKind.THROTTLED,
    "EGeneral:Too many requests": OutcomeKind.THROTTLED,
    "EGeneral:Temporary lockout": OutcomeKind.THROTTLED,
    "EService:Unavailable": OutcomeKind.MAINTENANCE,
    "EService:Market in cancel_only mode": OutcomeKind.MAINTENANCE,
    "EService:Busy": OutcomeKind.TRANSIENT,
    "EGeneral:Internal error": OutcomeKind.TRANSIENT,
    "EQuery:Unknown asset pair": OutcomeKind.BAD_SYMBOL,
    "EGeneral:Invalid arguments": OutcomeKind.BAD_INTERVAL,
}
_STATUSES = {
    "online": ListingStatus.ACTIVE,
    "limit_only": ListingStatus.ACTIVE,
    "post_only": ListingStatus.PRE,
    "delisted": ListingStatus.DELISTED,
}

DEFAULT_LIMITS = BudgetLimits(weight_per_minute=60, burst_weight=3)


def _body_kind(answer: HttpAnswer) -> OutcomeKind | None:
    """Classify by the error list, which comes with HTTP 200 too."""
    errors = answer.json.get("error") if isinstance(answer.json, dict) else None
    if not isinstance(errors, list) or not errors:
        return None
    for text in map(str, errors):
        for prefix, kind in _ERRORS.items():
            if text.startswith(prefix):
                return kind
    # Warnings begin with W and come beside a result.
    return None if all(str(text).startswith("W") for text in errors) else OutcomeKind.UNKNOWN


DIALECT = Dialect(_body_kind)


class KrakenAdapter:
    """See :class:`~ingestors.exchanges.port.ExchangeAdapter`."""

    def __init__(self, host: HostClient, *, exchange: str = "KRAKEN") -> None:
        self._host = host
        self._listed_ns: dict[str, int | None] = {}
        self._altnames: dict[str, str] = {}
        self._capabilities = Capabilities(
            exchange=exchange,
            native_periods=_PERIODS,
            page_rows_max=_HISTORY_ROWS,
            bounds_end=False,
            sends_rows_before_start=True,
            start_inclusive=False,
            history_rows=_HISTORY_ROWS,
            trades_by_time=True,
            # Intervals without trades come as flat rows or not at all, by market.
            sends_empty_buckets=False,
        )

    @property
    def capabilities(self) -> Capabilities:
        """See the port."""
        return self._capabilities

    async def server_time_ns(self) -> int:
        """See the port."""
        result = as_object(await self._result("Time", {}), "the server time")
        return seconds_ns(result.get("unixtime"))

    async def markets(self) -> Mapping[str, Listing]:
        """See the port."""
        pairs = as_object(await self._result("AssetPairs", {}), "AssetPairs")
        self._altnames = {name: str(entry.get("altname") or name) for name, entry in pairs.items()}
        listings = (self._listing(name, entry) for name, entry in pairs.items())
        return {str(listing.ticker): listing for listing in listings if listing is not None}

    async def fetch_bars_page(self, listing: Listing, wanted: BarsWanted) -> BarsPage:
        """See the port; ``since`` is exclusive, and there is no end."""
        since = wanted.window.start_ns // NANOSECONDS - wanted.period_seconds
        result = await self._result(
            "OHLC", {"pair": listing.native_symbol, "interval": wanted.period_seconds // 60, "since": since}
        )
        rows = as_list(_of_pair(result), "OHLC rows")
        return read_bars(rows, _bar, start_ns=lambda row: whole(row[0]) * NANOSECONDS)

    async def fetch_trades_page(self, listing: Listing, wanted: TradesWanted) -> TradesPage:
        """See the port; the cursor goes back to the exchange as it came."""
        since = wanted.cursor if wanted.cursor is not None else str(wanted.start_ns - 1)
        return await self._trades(listing, since=since, count=_TRADES_MAX)

    async def history_start_ns(self, listing: Listing, *, before_ns: int) -> int | None:
        """See the port; the first trade ever."""
        del before_ns
        symbol = listing.native_symbol
        if symbol not in self._listed_ns:
            # Two answers of different shape: what one fault makes of the first trade must not be remembered.
            found = [await self._first_trade_ns(listing, count=count) for count in (1, 2)]
            if found[0] is None or found[0] != found[1]:
                return None
            self._listed_ns[symbol] = found[0]
        return self._listed_ns[symbol]

    async def _first_trade_ns(self, listing: Listing, *, count: int) -> int | None:
        page = await self._trades(listing, since="0", count=count)
        return min((trade.time_ns for trade in page.trades), default=None)

    def statistics_calls(
        self, listings: Mapping[str, Listing], *, now_ns: Callable[[], int]
    ) -> Sequence[StatisticsCall]:
        """See the port; one call, whose keys are the pairs' canonical names."""

        async def fetch() -> StatisticsPage:
            entries = as_object(await self._result("Ticker", {}), "Ticker")
            read = partial(read_kraken_entry, time_ns=now_ns())
            known = by_native_symbol(listings)
            named = ((self._altnames.get(name, name), entry) for name, entry in entries.items())
            return read_statistics(named, known, read)

        return [fetch]

    async def close(self) -> None:
        """See the port."""
        await self._host.close()

    async def _trades(self, listing: Listing, *, since: str, count: int) -> TradesPage:
        result = as_object(
            await self._result("Trades", {"pair": listing.native_symbol, "since": since, "count": count}), "Trades"
        )
        rows = as_list(_of_pair(result), "trades")
        trades, bad = read_trades(rows, _TradeRows().read, time_ns=lambda row: seconds_ns(row[2]))
        # Short pages occur in the middle of history, so only an empty one is an end.
        return TradesPage(trades, str(result.get("last", since)), is_end=not rows, bad=bad)

    async def _result(self, endpoint: str, params: Mapping[str, str | int]) -> object:
        answer = await self._host.get(f"/0/public/{endpoint}", params)
        return as_object(answer.json, "an envelope").get("result")

    def _listing(self, name: str, entry: Mapping[str, Any]) -> Listing | None:
        ticker = self._ticker(str(entry.get("wsname") or ""))
        if ticker is None:
            return None
        decimals = whole(entry.get("pair_decimals", 0))
        lots = whole(entry.get("lot_decimals", 0))
        return Listing(
            ticker=ticker,
            native_symbol=str(entry.get("altname") or name),
            status=_STATUSES.get(str(entry.get("status", "online")), ListingStatus.HALTED),
            price_increment=increment(entry.get("tick_size")) or number(f"1e-{decimals}"),
            amount_increment=number(f"1e-{lots}"),
            min_amount=increment(entry.get("ordermin")),
            min_notional=increment(entry.get("costmin")),
            history_start_ns=self._listed_ns.get(str(entry.get("altname") or name)),
        )

    def _ticker(self, wsname: str) -> Ticker | None:
        base, slash, quote = wsname.partition("/")
        if not slash:
            return None
        return make_ticker(_ASSETS.get(base, base), _ASSETS.get(quote, quote), self._capabilities.exchange)


def _of_pair(result: object) -> object:
    """Return the value under the pair's canonical name, which differs from the asked one."""
    entries = as_object(result, "a result")
    for key, value in entries.items():
        if key != "last":
            return value
    raise ExchangeError(Outcome(OutcomeKind.TRANSIENT, "expected a result with the pair's name, got none"))


def _bar(row: list[Any]) -> Bar:
    return Bar(
        start_ns=whole(row[0]) * NANOSECONDS,
        open=number(row[1]),
        high=number(row[2]),
        low=number(row[3]),
        close=number(row[4]),
        volume=number(row[6]),
        trades=whole(row[7]),
    )


class _TradeRows:
    """Reads the trades of one page; those of before trade ids existed are named by what they are and an ordinal."""

    def __init__(self) -> None:
        self._alike: dict[str, int] = {}

    def read(self, row: list[Any]) -> Trade:
        return Trade(
            trade_id=str(whole(row[6])) if len(row) > 6 else self._made_id(row),
            time_ns=seconds_ns(row[2]),
            price=number(row[0]),
            amount=number(row[1]),
            taker_buy=row[3] == "b",
        )

    def _made_id(self, row: list[Any]) -> str:
        alike = f"{row[2]}:{row[0]}:{row[1]}:{row[3]}"
        ordinal = self._alike[alike] = self._alike.get(alike, 0) + 1
        return f"{alike}:{ordinal}"
