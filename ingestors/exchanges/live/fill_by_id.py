"""Fillers of exchanges that serve trades by id: Binance and Coinbase Exchange."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from ingestors.clock import Clock
from ingestors.engine.feed_values import LiveTrade
from ingestors.engine.values import Listing
from ingestors.exchanges.http import HostClient
from ingestors.exchanges.live.binance import BinanceStream
from ingestors.exchanges.live.coinbase import is_bought
from ingestors.exchanges.live.exact import Scale, make_trade, ticks_ns
from ingestors.exchanges.live.rest_trades import IdPage, page_by_id, read_rows
from ingestors.exchanges.numbers import as_list, whole
from relay.protocol.times import parse_iso_ns

__all__ = ["BinanceFiller", "CoinbaseFiller"]

_PAGE_ROWS_MAX = 1_000
_MICROSECONDS = {"X-MBX-TIME-UNIT": "MICROSECOND"}
"""As the socket sends them: one trade has one time, whichever way it came."""


class BinanceFiller:
    """See :class:`~ingestors.exchanges.live.rest_trades.LiveFiller`.

    Args:
        host: with the shared budget.
        clock: time.
        stream: whose ids the range is given in.
    """

    def __init__(self, host: HostClient, *, clock: Clock, stream: BinanceStream = "trade") -> None:
        self._host, self._clock = host, clock
        self._is_single = stream == "trade"
        self._path, self._weight = ("/api/v3/historicalTrades", 25) if self._is_single else ("/api/v3/aggTrades", 4)

    async def fill(
        self, listing: Listing, *, first: int, last: int | None, after_time_ns: int
    ) -> AsyncIterator[Sequence[LiveTrade]]:
        """See the port."""
        del after_time_ns

        async def fetch(wanted: int) -> IdPage:
            params = {"symbol": listing.native_symbol, "fromId": str(wanted), "limit": str(_PAGE_ROWS_MAX)}
            answer = await self._host.get(self._path, params, weight=self._weight, headers=_MICROSECONDS)
            rows = as_list(answer.json, "trades")
            read = _binance_trade if self._is_single else _binance_aggregate
            trades, _ = read_rows(rows, read, listing=listing, received_ns=self._clock.wall_ns())
            return IdPage(trades, is_end=len(rows) < _PAGE_ROWS_MAX)

        async for page in page_by_id(fetch, first=first, last=last):
            yield page

    async def newest(self, listing: Listing) -> int | None:
        """See the port; an aggregate names the last trade in it, and costs a sixth of asking for trades."""
        params = {"symbol": listing.native_symbol, "limit": "1"}
        answer = await self._host.get("/api/v3/aggTrades", params, weight=4)
        numbers = [whole(row["l" if self._is_single else "a"]) for row in as_list(answer.json, "aggTrades")]
        return max(numbers, default=None)


class CoinbaseFiller:
    """See :class:`~ingestors.exchanges.live.rest_trades.LiveFiller`.

    Args:
        host: with the shared budget.
        clock: time.
    """

    def __init__(self, host: HostClient, *, clock: Clock) -> None:
        self._host, self._clock = host, clock

    async def fill(
        self, listing: Listing, *, first: int, last: int | None, after_time_ns: int
    ) -> AsyncIterator[Sequence[LiveTrade]]:
        """See the port."""
        del after_time_ns

        async def fetch(wanted: int) -> IdPage:
            # Trades come newest first below ``after``; ids have no holes, so this is the thousand from the wanted on.
            after = wanted + _PAGE_ROWS_MAX
            trades = await self._trades(listing, {"after": after, "limit": _PAGE_ROWS_MAX})
            return IdPage(trades, is_end=not trades or trades[-1].number < after - 1)

        async for page in page_by_id(fetch, first=first, last=last):
            yield page

    async def newest(self, listing: Listing) -> int | None:
        """See the port."""
        trades = await self._trades(listing, {"limit": 1})
        return trades[-1].number if trades else None

    async def _trades(self, listing: Listing, params: Mapping[str, int]) -> Sequence[LiveTrade]:
        answer = await self._host.get(f"/products/{listing.native_symbol}/trades", params, endpoint="trades")
        rows = as_list(answer.json, "trades")
        return read_rows(rows, _coinbase_trade, listing=listing, received_ns=self._clock.wall_ns())[0]


def _binance_trade(row: Mapping[str, Any], scale: Scale, received_ns: int) -> LiveTrade:
    return make_trade(
        scale,
        whole(row["id"]),
        ticks_ns(whole(row["time"])),
        price=str(row["price"]),
        amount=str(row["qty"]),
        taker_buy=row["isBuyerMaker"] is False,
        received_ns=received_ns,
    )


def _binance_aggregate(row: Mapping[str, Any], scale: Scale, received_ns: int) -> LiveTrade:
    return make_trade(
        scale,
        whole(row["a"]),
        ticks_ns(whole(row["T"])),
        price=str(row["p"]),
        amount=str(row["q"]),
        taker_buy=row["m"] is False,
        received_ns=received_ns,
    )


def _coinbase_trade(row: Mapping[str, Any], scale: Scale, received_ns: int) -> LiveTrade:
    return make_trade(
        scale,
        whole(row["trade_id"]),
        parse_iso_ns(str(row["time"])),
        price=str(row["price"]),
        amount=str(row["size"]),
        taker_buy=is_bought(str(row["side"])),
        received_ns=received_ns,
    )
