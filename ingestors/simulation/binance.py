"""Binance spot REST: paths below ``/api/v3`` in the true shapes, weights and errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ingestors.simulation.answers import Answer, Call, Handler, RefusedCall, bent, json_answer
from ingestors.simulation.binance_shapes import (
    agg_trade_row,
    kline_row,
    symbol_entry,
    trade_row,
)
from ingestors.simulation.candle_pages import newest_candles, oldest_candles
from ingestors.simulation.grids import FixedGrid, Grid, MonthGrid
from ingestors.simulation.limits import Limits, WeightWindow
from ingestors.simulation.listings import BINANCE
from ingestors.simulation.records import Candle, MarketSource
from relay.protocol.periods import WEEK_ORIGIN_SECONDS, WEEK_SECONDS, parse_period

__all__ = ["BinanceRest"]

_MILLISECOND_NS, _MICROSECOND_NS = 10**6, 10**3
_FIXED_INTERVALS = ("1s", "1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "8h", "12h", "1d", "3d", "1w")
_LIMIT, _LIMIT_MAX = 500, 1_000
_MICROSECONDS_FROM = 10**14
_ZONE = re.compile(r"([+-]?)(\d{1,2})(?::(\d{2}))?", re.ASCII)
_WEIGHTS = {
    "/api/v3/ping": 1,
    "/api/v3/time": 1,
    "/api/v3/exchangeInfo": 20,
    "/api/v3/klines": 2,
    "/api/v3/aggTrades": 4,
    "/api/v3/trades": 25,
    "/api/v3/historicalTrades": 25,
}


@dataclass(frozen=True, slots=True)
class _Range:
    """Bounds of a call, nanoseconds, both inclusive; None where not given."""

    start_ns: int | None
    end_ns: int | None


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
        }

    def admit(self, call: Call) -> Answer | None:
        """Count the path's weight: 429 above the limit, 418 for who goes on."""
        if self._window.banned_seconds(wall_ns=call.wall_ns) == 0:
            self._window.spend(_WEIGHTS.get(call.path, 1), wall_ns=call.wall_ns)
        banned = self._window.banned_seconds(wall_ns=call.wall_ns)
        if banned:
            until_ms = call.wall_ns // _MILLISECOND_NS + banned * 1_000
            text = f"Way too much request weight used; IP banned until {until_ms}. "
            return self._limited(418, banned, text + "Please use WebSocket Streams for live updates to avoid bans.")
        refused = self._window.refused_seconds(wall_ns=call.wall_ns)
        if refused:
            limit = self._limits.binance_weight_per_minute
            text = f"Too much request weight used; current limit is {limit} request weight per 1 MINUTE. "
            return self._limited(429, refused, text + "Please use WebSocket Streams for live updates.")
        return None

    def _limited(self, status: int, seconds: int, message: str) -> Answer:
        answer = self.failure(status, code=-1003, message=message)
        return Answer(status, answer.body, {"Retry-After": str(seconds)})

    def headers(self) -> Mapping[str, str]:
        """Return the used weight."""
        return {"X-MBX-USED-WEIGHT": str(self._window.used), "X-MBX-USED-WEIGHT-1M": str(self._window.used)}

    def failure(self, status: int, *, code: int | str | None = None, message: str | None = None) -> Answer:
        """Return ``{"code": …, "msg": …}``."""
        status = status or 400
        usual = (-1003, "Too many requests.") if status in (418, 429) else (-1000, "An unknown error occurred.")
        return json_answer({"code": usual[0] if code is None else code, "msg": message or usual[1]}, status=status)

    def _refused(self, code: int, message: str) -> RefusedCall:
        return RefusedCall(self.failure(400, code=code, message=message))

    def _time(self, call: Call) -> Answer:
        self._only(call)
        return json_answer({"serverTime": call.now_ns // self._unit_ns(call)})

    def _exchange_info(self, call: Call) -> Answer:
        self._only(call, "symbol", "symbols", "permissions", "symbolStatus", "showPermissionSets")
        if "symbol" in call.parameters and "symbols" in call.parameters:
            raise self._refused(-1128, "Combination of optional parameters invalid.")
        wanted = re.findall(r'[^\[\]",\s]+', call.parameters.get("symbols") or call.parameters.get("symbol", ""))
        entries = [symbol_entry(self._market(call, name).listing, now_ns=call.now_ns) for name in wanted]
        if not wanted:
            listings = [source.listing for source in self._markets.values()]
            entries = [symbol_entry(x, now_ns=call.now_ns) for x in listings if x.listed_ns <= call.now_ns]
        status = call.parameters.get("symbolStatus")
        weight = self._limits.binance_weight_per_minute
        return json_answer(
            {
                "timezone": "UTC",
                "serverTime": call.now_ns // self._unit_ns(call),
                "rateLimits": [
                    {"rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1, "limit": weight},
                    {"rateLimitType": "RAW_REQUESTS", "interval": "MINUTE", "intervalNum": 5, "limit": 61_000},
                ],
                "exchangeFilters": [],
                "symbols": [entry for entry in entries if status is None or entry["status"] == status],
            }
        )

    def _klines(self, call: Call) -> Answer:
        self._only(call, "symbol", "interval", "startTime", "endTime", "timeZone", "limit")
        source, grid = self._market(call), self._grid(call)
        unit_ns = self._unit_ns(call)
        rows = [
            kline_row(row, source.listing, end_ns=grid.step_ns(grid.floor_ns(row.start_ns), 1), unit_ns=unit_ns)
            for row in bent(self._candles(call, source, grid), call)
        ]
        return json_answer(rows)

    def _candles(self, call: Call, source: MarketSource, grid: Grid) -> list[Candle]:
        bounds, limit, visible = self._range(call), self._limit(call), call.visible
        end_ns = visible.until_ns if bounds.end_ns is None else bounds.end_ns + 1
        if bounds.start_ns is None:
            return newest_candles(source, grid, start_ns=0, end_ns=end_ns, limit=limit, visible=visible, flat=True)
        return oldest_candles(
            source, grid, start_ns=bounds.start_ns, end_ns=end_ns, limit=limit, visible=visible, flat=True
        )

    def _agg_trades(self, call: Call) -> Answer:
        self._only(call, "symbol", "fromId", "startTime", "endTime", "limit")
        source, bounds = self._market(call), self._range(call)
        if "fromId" in call.parameters and (bounds.start_ns is not None or bounds.end_ns is not None):
            raise self._refused(-1128, "Combination of optional parameters invalid.")
        end = source.position_at(call.visible.until_ns)
        if bounds.end_ns is not None:
            end = min(end, source.position_at(bounds.end_ns + 1))
        if bounds.start_ns is not None:
            start: int | None = source.position_at(bounds.start_ns)
        else:
            start = self._from_id(call, source)
        return self._trade_page(call, source, start, end, agg_trade_row)

    def _trades(self, call: Call) -> Answer:
        self._only(call, "symbol", "limit")
        source = self._market(call)
        return self._trade_page(call, source, None, source.position_at(call.visible.until_ns), trade_row)

    def _historical_trades(self, call: Call) -> Answer:
        self._only(call, "symbol", "fromId", "limit")
        source = self._market(call)
        end = source.position_at(call.visible.until_ns)
        return self._trade_page(call, source, self._from_id(call, source), end, trade_row)

    def _from_id(self, call: Call, source: MarketSource) -> int | None:
        from_id = self._integer(call, "fromId")
        return None if from_id is None or call.ignores_start else source.position_of(from_id)

    def _trade_page(self, call: Call, source: MarketSource, start: int | None, end: int, row: object) -> Answer:
        assert callable(row)
        limit = self._limit(call)
        start = max(end - limit, 0) if start is None else start
        trades = bent(source.trades(start, min(start + limit, end)), call)
        return json_answer([row(trade, source.listing, unit_ns=self._unit_ns(call)) for trade in trades])

    def _only(self, call: Call, *known: str) -> None:
        read = sum(name in known for name in call.parameters)
        if read < len(call.parameters):
            sent = len(call.parameters)
            raise self._refused(
                -1104, f"Not all sent parameters were read; read '{read}' parameter(s) but was sent '{sent}'."
            )

    def _market(self, call: Call, name: str | None = None) -> MarketSource:
        name = call.parameters.get("symbol", "") if name is None else name
        if not name:
            raise self._refused(-1102, "Mandatory parameter 'symbol' was not sent, was empty/null, or malformed.")
        if re.fullmatch(r"[A-Z0-9-_.]{1,20}", name, re.ASCII) is None:
            text = "Illegal characters found in parameter 'symbol'; legal range is '^[A-Z0-9-_.]{1,20}$'."
            raise self._refused(-1100, text)
        source = self._markets.get(name)
        if source is None or source.listing.listed_ns > call.now_ns:
            raise self._refused(-1121, "Invalid symbol.")
        return source

    def _grid(self, call: Call) -> Grid:
        interval = call.parameters.get("interval", "")
        if not interval:
            raise self._refused(-1102, "Mandatory parameter 'interval' was not sent, was empty/null, or malformed.")
        offset_seconds = self._zone_seconds(call)
        if interval == "1M":
            return MonthGrid(offset_seconds)
        if interval not in _FIXED_INTERVALS:
            raise self._refused(-1120, "Invalid interval.")
        period_seconds = parse_period(interval)
        origin_seconds = WEEK_ORIGIN_SECONDS if period_seconds == WEEK_SECONDS else 0
        return FixedGrid(period_seconds, origin_seconds - offset_seconds)

    def _zone_seconds(self, call: Call) -> int:
        match = _ZONE.fullmatch(call.parameters.get("timeZone", "0").strip())
        if match is not None:
            seconds = int(match[2]) * 3_600 + int(match[3] or 0) * 60
            seconds = -seconds if match[1] == "-" else seconds
            if -12 * 3_600 <= seconds <= 14 * 3_600:
                return seconds
        raise self._refused(-1130, "Data sent for parameter 'timeZone' is not valid.")

    def _range(self, call: Call) -> _Range:
        bounds = _Range(self._instant(call, "startTime"), self._instant(call, "endTime"))
        return _Range(None, None) if call.ignores_start else bounds

    def _instant(self, call: Call, name: str) -> int | None:
        value = self._integer(call, name)
        if value is None:
            return None
        return value * (_MICROSECOND_NS if value >= _MICROSECONDS_FROM else _MILLISECOND_NS)

    def _integer(self, call: Call, name: str) -> int | None:
        text = call.parameters.get(name)
        if text is None:
            return None
        if re.fullmatch(r"[0-9]{1,20}", text, re.ASCII) is None:
            legal = "legal range is '^[0-9]{1,20}$'"
            raise self._refused(-1100, f"Illegal characters found in parameter '{name}'; {legal}.")
        return int(text)

    def _limit(self, call: Call) -> int:
        limit = self._integer(call, "limit")
        if limit == 0:
            raise self._refused(-1130, "Data sent for parameter 'limit' is not valid.")
        return min(limit or _LIMIT, _LIMIT_MAX)

    def _unit_ns(self, call: Call) -> int:
        unit = call.headers.get("x-mbx-time-unit", "MILLISECOND").upper()
        if unit not in ("MILLISECOND", "MICROSECOND"):
            raise self._refused(-1194, "Invalid value for time unit; expected either MICROSECOND or MILLISECOND.")
        return _MICROSECOND_NS if unit == "MICROSECOND" else _MILLISECOND_NS
