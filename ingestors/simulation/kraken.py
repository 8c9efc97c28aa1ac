"""Kraken REST: paths below ``/0/public``, HTTP 200 also for errors, 720 closed rows whatever ``since`` says."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import formatdate

from ingestors.simulation.answers import Answer, Call, Handler, RefusedCall, bent, json_answer
from ingestors.simulation.candle_pages import newest_candles
from ingestors.simulation.day_window import day_window, kraken_day
from ingestors.simulation.grids import FixedGrid
from ingestors.simulation.kraken_names import PairNames, pair_names
from ingestors.simulation.kraken_shapes import asset_pair, ohlc_row, trade_row
from ingestors.simulation.limits import Limits, TokenBucket
from ingestors.simulation.listings import KRAKEN
from ingestors.simulation.records import MarketSource, Trade
from relay.protocol.periods import NANOSECONDS
from relay.protocol.times import format_ns

__all__ = ["KrakenRest"]

_INTERVAL_MINUTES = frozenset({1, 5, 15, 30, 60, 240, 1_440, 10_080, 21_600})
_CLOSED_ROWS_MAX = 720
_TRADES_MAX = 1_000
_SECONDS_BELOW = 10**12
_ABSENT_WHEN_EMPTY = frozenset({"DOGE/USD", "XRP/ETH"})
"""Markets whose intervals without trades are left out; the others show flat rows. Both exist."""


class KrakenRest:
    """The shape.

    Args:
        markets: by unified symbol.
        limits: calls for each pair.
    """

    name = KRAKEN

    def __init__(self, markets: Mapping[str, MarketSource], *, limits: Limits) -> None:
        self._pairs = [(pair_names(source.listing), source) for source in markets.values()]
        self._by_name = {name: pair for pair in self._pairs for name in pair[0].all}
        self._limits = limits
        self._buckets: dict[str, TokenBucket] = {}

    def routes(self) -> Mapping[str, Handler]:
        """Return the handlers by path."""
        return {
            "/0/public/Time": self._time,
            "/0/public/SystemStatus": self._system_status,
            "/0/public/AssetPairs": self._asset_pairs,
            "/0/public/OHLC": self._ohlc,
            "/0/public/Ticker": self._ticker,
            "/0/public/Trades": self._trades,
        }

    def admit(self, call: Call) -> Answer | None:
        """Take a token of the pair; without one the answer is an error with HTTP 200 and no Retry-After."""
        name = call.parameters.get("pair", "")
        key = self._by_name[name][0].key if name in self._by_name else call.path
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(per_second=self._limits.kraken_per_second, burst=self._limits.kraken_burst)
            self._buckets[key] = bucket
        return None if bucket.take(wall_ns=call.wall_ns) else _error("EAPI:Rate limit exceeded")

    def headers(self) -> Mapping[str, str]:
        """Return no header of its own."""
        return {}

    def failure(self, status: int, *, code: int | str | None = None, message: str | None = None) -> Answer:
        """Return ``{"error": [code]}``, with HTTP 200 unless a status is given."""
        usual = {429: "EAPI:Rate limit exceeded", 418: "EGeneral:Temporary lockout", 404: "EGeneral:Unknown method"}
        text = str(code) if code is not None else message or usual.get(status, "EService:Unavailable")
        return _error(text, status=200 if status in (0, 404) else status)

    def _time(self, call: Call) -> Answer:
        seconds = call.now_ns // NANOSECONDS
        text = formatdate(seconds, usegmt=True)
        short_year = text[:12] + text[14:].replace("GMT", "+0000")
        return _result({"unixtime": seconds, "rfc1123": short_year})

    def _system_status(self, call: Call) -> Answer:
        return _result({"status": "online", "timestamp": format_ns(call.now_ns // NANOSECONDS * NANOSECONDS)})

    def _asset_pairs(self, call: Call) -> Answer:
        pairs = [pair for pair in self._pairs if pair[1].listing.listed_ns <= call.now_ns]
        if "pair" in call.parameters:
            pairs = [self._pair(name, call) for name in call.parameters["pair"].split(",")]
        result = {_key(names, call): asset_pair(names, source.listing, now_ns=call.now_ns) for names, source in pairs}
        return _result(result)

    def _ticker(self, call: Call) -> Answer:
        pairs = [pair for pair in self._pairs if pair[1].listing.listed_ns <= call.now_ns]
        if "pair" in call.parameters:
            pairs = [self._pair(name, call) for name in call.parameters["pair"].split(",")]
        return _result({_key(names, call): kraken_day(day_window(x, now_ns=call.now_ns)) for names, x in pairs})

    def _ohlc(self, call: Call) -> Answer:
        names, source = self._pair(call.parameters.get("pair", ""), call)
        minutes = _integer(call, "interval", default=1)
        if minutes not in _INTERVAL_MINUTES:
            raise _invalid()
        since_ns = 0 if call.ignores_start else _integer(call, "since", default=0) * NANOSECONDS
        grid, visible = FixedGrid(minutes * 60), call.visible
        flat = source.listing.symbol not in _ABSENT_WHEN_EMPTY
        newest = newest_candles(
            source,
            grid,
            start_ns=0,
            end_ns=visible.until_ns,
            limit=_CLOSED_ROWS_MAX + 1,
            visible=visible,
            flat=flat,
        )
        running_ns = grid.floor_ns(call.now_ns)
        closed = [row for row in newest if row.start_ns < running_ns]
        # A running bar without a trade has no row in the sparse markets, so the cap counts closed rows only.
        newest = closed[-_CLOSED_ROWS_MAX:] + [row for row in newest if row.start_ns >= running_ns]
        rows = bent([row for row in newest if row.start_ns > since_ns], call)
        last_ns = closed[-1].start_ns if closed else since_ns
        shaped = [ohlc_row(row, source.listing) for row in rows]
        return _result({_key(names, call): shaped, "last": last_ns // NANOSECONDS})

    def _trades(self, call: Call) -> Answer:
        names, source = self._pair(call.parameters.get("pair", ""), call)
        count = _integer(call, "count", default=_TRADES_MAX)
        if not 1 <= count <= _TRADES_MAX:
            raise _invalid()
        end = source.position_at(call.visible.until_ns)
        since_ns = _since_ns(call)
        if since_ns is None or call.ignores_start:
            trades = source.trades(max(end - count, 0), end)
        else:
            trades = _page_after(source, since_ns, count=count, end=end)
        last_ns = trades[-1].time_ns if trades else since_ns or call.now_ns
        rows = [trade_row(trade, source.listing) for trade in bent(trades, call)]
        return _result({_key(names, call): rows, "last": str(last_ns)})

    def _pair(self, name: str, call: Call) -> tuple[PairNames, MarketSource]:
        if not name:
            raise _invalid()
        pair = self._by_name.get(name)
        if pair is None or pair[1].listing.listed_ns > call.now_ns:
            raise RefusedCall(_error("EQuery:Unknown asset pair"))
        return pair


def _page_after(source: MarketSource, since_ns: int, *, count: int, end: int) -> list[Trade]:
    """Return trades after the cursor; those of the last nanosecond stay together, or the cursor would skip some."""
    start = source.position_at(since_ns + 1)
    trades = source.trades(start, min(start + count, end))
    if not trades:
        return trades
    return trades + source.trades(start + len(trades), min(source.position_at(trades[-1].time_ns + 1), end))


def _since_ns(call: Call) -> int | None:
    if "since" not in call.parameters:
        return None
    since = _integer(call, "since", default=0)
    return since * NANOSECONDS if since < _SECONDS_BELOW else since


def _integer(call: Call, name: str, *, default: int) -> int:
    text = call.parameters.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise _invalid()
    return int(text)


def _key(names: PairNames, call: Call) -> str:
    return names.display if call.parameters.get("assetVersion") == "1" else names.key


def _result(result: object) -> Answer:
    return json_answer({"error": [], "result": result})


def _error(text: str, *, status: int = 200) -> Answer:
    return json_answer({"error": [text]}, status=status)


def _invalid() -> RefusedCall:
    return RefusedCall(_error("EGeneral:Invalid arguments"))
