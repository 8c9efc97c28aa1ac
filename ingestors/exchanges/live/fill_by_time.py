"""Fillers of exchanges that serve trades by time: Kraken with its text cursors, Coinbase Advanced by windows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from ingestors.clock import Clock
from ingestors.engine.feed_values import LiveTrade
from ingestors.engine.outcomes import ExchangeError, Outcome, OutcomeKind
from ingestors.engine.values import Listing
from ingestors.exchanges.http import HostClient
from ingestors.exchanges.live.coinbase import is_bought
from ingestors.exchanges.live.exact import Scale, make_trade
from ingestors.exchanges.live.rest_trades import PAGES_MAX, not_shown, read_rows
from ingestors.exchanges.numbers import as_list, as_object, seconds_ns, whole
from relay.protocol.periods import NANOSECONDS
from relay.protocol.times import parse_iso_ns

__all__ = ["CoinbaseAdvancedFiller", "KrakenFiller"]

_PAGE_ROWS_MAX = 1_000
_STEPS_BACK_NS: tuple[int, ...] = tuple(60 * 4**n * NANOSECONDS for n in range(12))
"""How far before the newest trade the first one is looked for: a minute, four, sixteen, … up to thirty years."""
_WINDOW_SECONDS_MAX = 3_600


class KrakenFiller:
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
        """See the port; cursors go back to the exchange as they came."""
        since, reached = str(after_time_ns - 1), first - 1
        if after_time_ns <= 0:
            since = await self._since_before(listing, first)
        if last is None:
            # Asked for before paging: a busy market trades faster than the budget allows to page after it.
            last = await self.newest(listing)
            if last is None or last < first:
                return
        for _ in range(PAGES_MAX):
            trades, cursor = await self._trades(listing, since)
            rows = [t for t in trades if reached < t.number <= last]
            if rows:
                yield rows
                reached = rows[-1].number
            if trades and trades[-1].number >= last:
                return
            if not trades or cursor == since:
                # Short pages occur in the middle of history, so only an empty one is an end.
                raise not_shown(reached, last)
            since = cursor
        raise ExchangeError(Outcome(OutcomeKind.UNKNOWN, f"expected the end within {PAGES_MAX} pages, got to {since}"))

    async def newest(self, listing: Listing) -> int | None:
        """See the port."""
        trades, _ = await self._trades(listing, None)
        return trades[-1].number if trades else None

    async def _since_before(self, listing: Listing, first: int) -> str:
        """Return a cursor before a trade whose time is not known, without paging through all of history."""
        newest, _ = await self._trades(listing, None)
        if not newest or newest[0].number <= first:
            return str(newest[0].time_ns - 1) if newest else "0"
        for step_ns in _STEPS_BACK_NS:
            since = str(max(0, newest[-1].time_ns - step_ns))
            trades, _ = await self._trades(listing, since, count=1)
            if trades and trades[0].number <= first:
                return since
        return "0"

    async def _trades(
        self, listing: Listing, since: str | None, *, count: int = _PAGE_ROWS_MAX
    ) -> tuple[Sequence[LiveTrade], str]:
        params: dict[str, str | int] = {"pair": listing.native_symbol, "count": count}
        if since is not None:
            params["since"] = since
        answer = await self._host.get("/0/public/Trades", params)
        result = as_object(as_object(answer.json, "an envelope").get("result"), "Trades")
        rows = next((value for key, value in result.items() if key != "last"), None)
        received_ns = self._clock.wall_ns()
        trades, _ = read_rows(as_list(rows, "trades"), _kraken_trade, listing=listing, received_ns=received_ns)
        return trades, str(result.get("last", since))


class CoinbaseAdvancedFiller:
    """See :class:`~ingestors.exchanges.live.rest_trades.LiveFiller`.

    The endpoint sends the newest trades of a window of whole seconds and cuts the oldest off, so a window that comes
    back full is halved. More than a page within one second cannot be had whole.

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
        newest = await self._trades(listing, {"limit": 1})
        if not newest:
            return
        end = newest[-1].number if last is None else last
        start_ns = after_time_ns if after_time_ns > 0 else await self._start_before(listing, first, newest[-1].time_ns)
        start, seconds, reached = start_ns // NANOSECONDS, 60, first - 1
        for _ in range(PAGES_MAX):
            if reached >= end or start > newest[-1].time_ns // NANOSECONDS:
                break
            window = {"start": start, "end": start + seconds, "limit": _PAGE_ROWS_MAX}
            trades = await self._trades(listing, window)
            if len(trades) >= _PAGE_ROWS_MAX and trades[0].number > reached + 1:
                if seconds > 1:
                    seconds //= 2
                    continue
                # Both bounds count, so the smallest window that moves on holds two seconds.
                head = await self._trades(listing, {**window, "end": start})
                trades = [*(t for t in head if t.number < trades[0].number), *trades]
            rows = [t for t in trades if reached < t.number <= end]
            if rows:
                yield rows
                reached = rows[-1].number
            if trades and trades[-1].number >= end:
                return
            start += seconds
            if len(trades) < _PAGE_ROWS_MAX // 2:
                seconds = min(seconds * 2, _WINDOW_SECONDS_MAX)
        if reached < end:
            raise not_shown(reached, end)

    async def newest(self, listing: Listing) -> int | None:
        """See the port."""
        trades = await self._trades(listing, {"limit": 1})
        return trades[-1].number if trades else None

    async def _start_before(self, listing: Listing, first: int, newest_ns: int) -> int:
        """Return a time before a trade whose time is not known."""
        for step_ns in _STEPS_BACK_NS:
            end = max(0, newest_ns - step_ns) // NANOSECONDS
            trades = await self._trades(listing, {"start": 0, "end": end, "limit": 1})
            if not trades or trades[-1].number <= first:
                return end * NANOSECONDS
        return 0

    async def _trades(self, listing: Listing, params: Mapping[str, int]) -> Sequence[LiveTrade]:
        path = f"/api/v3/brokerage/market/products/{listing.native_symbol}/ticker"
        answer = await self._host.get(path, {name: str(value) for name, value in params.items()}, endpoint="ticker")
        rows = as_list(as_object(answer.json, "a ticker").get("trades"), "trades")
        return read_rows(rows, _advanced_trade, listing=listing, received_ns=self._clock.wall_ns())[0]


def _kraken_trade(row: Sequence[Any], scale: Scale, received_ns: int) -> LiveTrade:
    return make_trade(
        scale,
        whole(row[6]),
        # Finer than the socket's microseconds here: one trade has one time, whichever way it came.
        seconds_ns(row[2]) // 1_000 * 1_000,
        price=str(row[0]),
        amount=str(row[1]),
        taker_buy=row[3] == "b",
        received_ns=received_ns,
    )


def _advanced_trade(row: Mapping[str, Any], scale: Scale, received_ns: int) -> LiveTrade:
    return make_trade(
        scale,
        whole(row["trade_id"]),
        parse_iso_ns(str(row["time"])),
        price=str(row["price"]),
        amount=str(row["size"]),
        taker_buy=is_bought(str(row["side"])),
        received_ns=received_ns,
    )
