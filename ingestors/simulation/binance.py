"""Binance spot REST: paths below ``/api/v3`` in the true shapes, weights and errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from ingestors.simulation.answers import Answer, Call, Handler, bent, json_answer
from ingestors.simulation.binance_parameters import (
    bounds_of,
    check_known,
    failure,
    grid_of,
    integer_of,
    limit_of,
    refused,
    symbol_of,
    unit_ns_of,
)
from ingestors.simulation.binance_shapes import agg_trade_row, kline_row, symbol_entry, trade_row
from ingestors.simulation.candle_pages import newest_candles, oldest_candles
from ingestors.simulation.day_window import binance_day, day_window
from ingestors.simulation.grids import Grid
from ingestors.simulation.limits import Limits, WeightWindow
from ingestors.simulation.listings import BINANCE
from ingestors.simulation.records import Candle, Listing, MarketSource, Trade

__all__ = ["BinanceRest"]

_MILLISECOND_NS = 10**6
_WEIGHTS = {
    "/api/v3/ping": 1,
    "/api/v3/time": 1,
    "/api/v3/exchangeInfo": 20,
    "/api/v3/klines": 2,
    "/api/v3/aggTrades": 4,
    "/api/v3/trades": 25,
    "/api/v3/historicalTrades": 25,
    "/api/v3/ticker/24hr": 80,
}


class _TradeRow(Protocol):
    def __call__(self, trade: Trade, listing: Listing, *, unit_ns: int) -> dict[str, object]: ...


class BinanceRest:
    """The shape.

    Args:
        markets: by unified symbol.
        limits: weight per minute and ban.
    """

    name = BINANCE

    def __init__(self, markets: Mapping[str, MarketSource], *, limits: Limits) -> None:
        self._markets = {symbol.replace("/", ""): source for symbol, source in markets.items()}
        self._limits = limits
        self._window = WeightWindow(limits)

    def routes(self) -> Mapping[str, Handler]:
        """Return the handlers by path."""
        return {
            "/api/v3/ping": lambda _: json_answer({}),
            "/api/v3/time": self._time,
            "/api/v3/exchangeInfo": self._exchange_info,
            "/api/v3/klines": self._klines,
            "/api/v3/aggTrades": self._agg_trades,
            "/api/v3/trades": self._trades,
            "/api/v3/historicalTrades": self._historical_trades,
            "/api/v3/ticker/24hr": self._day,
        }

    def admit(self, call: Call) -> Answer | None:
        """Count the path's weight: 429 above the limit, 418 for who goes on."""
        if self._window.banned_seconds(wall_ns=call.wall_ns) == 0:
            self._window.spend(_WEIGHTS.get(call.path, 1), wall_ns=call.wall_ns)
        banned = self._window.banned_seconds(wall_ns=call.wall_ns)
        if banned:
            until_ms = call.wall_ns // _MILLISECOND_NS + banned * 1_000
            text = f"Way too much request weight used; IP banned until {until_ms}. "
            return _limited(418, banned, text + "Please use WebSocket Streams for live updates to avoid bans.")
        seconds = self._window.refused_seconds(wall_ns=call.wall_ns)
        if seconds:
            limit = self._limits.binance_weight_per_minute
            text = f"Too much request weight used; current limit is {limit} request weight per 1 MINUTE. "
            return _limited(429, seconds, text + "Please use WebSocket Streams for live updates.")
        return None

    def headers(self) -> Mapping[str, str]:
        """Return the used weight."""
        return {"X-MBX-USED-WEIGHT": str(self._window.used), "X-MBX-USED-WEIGHT-1M": str(self._window.used)}

    def failure(self, status: int, *, code: int | str | None = None, message: str | None = None) -> Answer:
        """Return ``{"code": …, "msg": …}``."""
        usual = (-1003, "Too many requests.") if status in (418, 429) else (-1000, "An unknown error occurred.")
        return failure(status or 400, usual[0] if code is None else code, message or usual[1])

    def _time(self, call: Call) -> Answer:
        check_known(call)
        return json_answer({"serverTime": call.now_ns // unit_ns_of(call)})

    def _exchange_info(self, call: Call) -> Answer:
        check_known(call, "symbol", "symbols", "permissions", "symbolStatus", "showPermissionSets")
        if "symbol" in call.parameters and "symbols" in call.parameters:
            raise refused(-1128, "Combination of optional parameters invalid.")
        listings = [source.listing for source in self._markets.values() if source.listing.listed_ns <= call.now_ns]
        if "symbol" in call.parameters:
            listings = [self._market(symbol_of(call), call).listing]
        elif "symbols" in call.parameters:
            names = re.findall(r'[^\[\]",\s]+', call.parameters["symbols"])
            listings = [self._market(name, call).listing for name in names]
        entries = [symbol_entry(listing, now_ns=call.now_ns) for listing in listings]
        status = call.parameters.get("symbolStatus")
        weight = self._limits.binance_weight_per_minute
        return json_answer(
            {
                "timezone": "UTC",
                "serverTime": call.now_ns // unit_ns_of(call),
                "rateLimits": [
                    {"rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1, "limit": weight},
                    {"rateLimitType": "RAW_REQUESTS", "interval": "MINUTE", "intervalNum": 5, "limit": 61_000},
                ],
                "exchangeFilters": [],
                "symbols": [entry for entry in entries if status is None or entry["status"] == status],
            }
        )

    def _klines(self, call: Call) -> Answer:
        check_known(call, "symbol", "interval", "startTime", "endTime", "timeZone", "limit")
        source, grid = self._market(symbol_of(call), call), grid_of(call)
        unit_ns = unit_ns_of(call)
        rows = [
            kline_row(row, source.listing, end_ns=grid.step_ns(grid.floor_ns(row.start_ns), 1), unit_ns=unit_ns)
            for row in bent(_candles(call, source, grid), call)
        ]
        return json_answer(rows)

    def _agg_trades(self, call: Call) -> Answer:
        check_known(call, "symbol", "fromId", "startTime", "endTime", "limit")
        source, bounds = self._market(symbol_of(call), call), bounds_of(call)
        if "fromId" in call.parameters and (bounds.start_ns is not None or bounds.end_ns is not None):
            raise refused(-1128, "Combination of optional parameters invalid.")
        end = source.position_at(call.visible.until_ns)
        if bounds.end_ns is not None:
            end = min(end, source.position_at(bounds.end_ns + 1))
        start = _from_id(call, source) if bounds.start_ns is None else source.position_at(bounds.start_ns)
        return _trade_page(call, source, start=start, end=end, row=agg_trade_row)

    def _trades(self, call: Call) -> Answer:
        check_known(call, "symbol", "limit")
        source = self._market(symbol_of(call), call)
        return _trade_page(call, source, start=None, end=source.position_at(call.visible.until_ns), row=trade_row)

    def _historical_trades(self, call: Call) -> Answer:
        check_known(call, "symbol", "fromId", "limit")
        source = self._market(symbol_of(call), call)
        end = source.position_at(call.visible.until_ns)
        return _trade_page(call, source, start=_from_id(call, source), end=end, row=trade_row)

    def _day(self, call: Call) -> Answer:
        check_known(call, "symbol", "type")
        if "symbol" in call.parameters:
            return json_answer(binance_day(day_window(self._market(symbol_of(call), call), now_ns=call.now_ns)))
        listed = [source for source in self._markets.values() if source.listing.listed_ns <= call.now_ns]
        return json_answer([binance_day(day_window(source, now_ns=call.now_ns)) for source in listed])

    def _market(self, name: str, call: Call) -> MarketSource:
        source = self._markets.get(name)
        if source is None or source.listing.listed_ns > call.now_ns:
            raise refused(-1121, "Invalid symbol.")
        return source


def _limited(status: int, seconds: int, message: str) -> Answer:
    return Answer(status, failure(status, -1003, message).body, {"Retry-After": str(seconds)})


def _candles(call: Call, source: MarketSource, grid: Grid) -> list[Candle]:
    """Range rule: no start = the newest up to the end; with a start = the oldest from it, capped at the end."""
    bounds, limit, visible = bounds_of(call), limit_of(call), call.visible
    end_ns = visible.until_ns if bounds.end_ns is None else bounds.end_ns + 1
    choose = newest_candles if bounds.start_ns is None else oldest_candles
    return choose(source, grid, start_ns=bounds.start_ns or 0, end_ns=end_ns, limit=limit, visible=visible, flat=True)


def _from_id(call: Call, source: MarketSource) -> int | None:
    from_id = integer_of(call, "fromId")
    return None if from_id is None or call.ignores_start else source.position_of(from_id)


def _trade_page(call: Call, source: MarketSource, *, start: int | None, end: int, row: _TradeRow) -> Answer:
    limit, unit_ns = limit_of(call), unit_ns_of(call)
    first = max(end - limit, 0) if start is None else start
    trades = bent(source.trades(first, min(first + limit, end)), call)
    return json_answer([row(trade, source.listing, unit_ns=unit_ns) for trade in trades])
