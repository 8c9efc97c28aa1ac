"""Coinbase Exchange REST: candles newest first as JSON numbers, trades by cursor headers with the maker's side."""

from __future__ import annotations

from collections.abc import Mapping

from ingestors.simulation.answers import Answer, Call, Handler, RefusedCall, bent, json_answer
from ingestors.simulation.candle_pages import newest_candles
from ingestors.simulation.day_window import coinbase_day, day_window
from ingestors.simulation.grids import FixedGrid
from ingestors.simulation.limits import Limits, TokenBucket
from ingestors.simulation.listings import COINBASE
from ingestors.simulation.number_text import fixed_text, json_number, seconds_number, shortest_text
from ingestors.simulation.records import Candle, Listing, MarketSource, Trade
from relay.errors import PeerError
from relay.protocol.periods import NANOSECONDS
from relay.protocol.times import format_ns, parse_iso_ns

__all__ = ["CoinbaseRest", "iso_microseconds"]

_GRANULARITIES = frozenset({60, 300, 900, 3_600, 21_600, 86_400})
_CANDLES_MAX = 300
_TRADES_MAX = 1_000
_EARLIER_ROW_EVERY = 5


class CoinbaseRest:
    """The shape.

    Args:
        markets: by unified symbol.
        limits: calls per second and burst.
    """

    name = COINBASE

    def __init__(self, markets: Mapping[str, MarketSource], *, limits: Limits) -> None:
        self._markets = {symbol.replace("/", "-"): source for symbol, source in markets.items()}
        self._bucket = TokenBucket(per_second=limits.coinbase_per_second, burst=limits.coinbase_burst)

    def routes(self) -> Mapping[str, Handler]:
        """Return the handlers by path."""
        return {
            "/time": self._time,
            "/products": self._products,
            "/products/{product}": self._one_product,
            "/products/{product}/candles": self._candles,
            "/products/{product}/trades": self._trades,
            "/products/{product}/stats": self._stats,
        }

    def admit(self, call: Call) -> Answer | None:
        """Take a token; 429 without Retry-After when there is none."""
        return None if self._bucket.take(wall_ns=call.wall_ns) else self.failure(429)

    def headers(self) -> Mapping[str, str]:
        """Return no header of its own."""
        return {}

    def failure(self, status: int, *, code: int | str | None = None, message: str | None = None) -> Answer:
        """Return ``{"message": …}``."""
        usual = {404: "NotFound", 429: "Public rate limit exceeded", 418: "Forbidden"}
        text = message or (str(code) if code is not None else usual.get(status, "Internal server error"))
        return json_answer({"message": text}, status=status or 500)

    def _time(self, call: Call) -> Answer:
        return json_answer({"iso": iso_microseconds(call.now_ns), "epoch": seconds_number(call.now_ns, 3)})

    def _products(self, call: Call) -> Answer:
        listings = [source.listing for source in self._markets.values()]
        return json_answer([_product(x, now_ns=call.now_ns) for x in listings if x.listed_ns <= call.now_ns])

    def _one_product(self, call: Call) -> Answer:
        return json_answer(_product(self._market(call).listing, now_ns=call.now_ns))

    def _candles(self, call: Call) -> Answer:
        source = self._market(call)
        granularity = call.parameters.get("granularity", "60")
        if not granularity.isascii() or not granularity.isdigit() or int(granularity) not in _GRANULARITIES:
            raise _refused("Unsupported granularity")
        grid = FixedGrid(int(granularity))
        start_ns, end_ns = _range(call, grid)
        if start_ns // (grid.period_seconds * NANOSECONDS) % _EARLIER_ROW_EVERY == 0:
            start_ns = grid.step_ns(start_ns, -1)  # rows before the start may be returned
        rows = newest_candles(
            source,
            grid,
            start_ns=start_ns,
            end_ns=end_ns + 1,
            limit=_CANDLES_MAX + 1,
            visible=call.visible,
            flat=False,
        )
        return json_answer([_candle_row(row, source.listing) for row in reversed(bent(rows, call))])

    def _trades(self, call: Call) -> Answer:
        source = self._market(call)
        limit = _integer(call, "limit", default=_TRADES_MAX)
        if not 1 <= limit <= _TRADES_MAX:
            raise _refused("Invalid limit")
        end, start = source.position_at(call.visible.until_ns), 0
        if "after" in call.parameters and not call.ignores_start:
            end = min(end, source.position_of(_integer(call, "after", default=0)))
        if "before" in call.parameters and not call.ignores_start:
            start = source.position_of(_integer(call, "before", default=0) + 1)
        trades = source.trades(max(end - limit, start), end)
        headers = {}
        if trades:
            headers = {"CB-BEFORE": str(trades[-1].trade_id), "CB-AFTER": str(trades[0].trade_id)}
        rows = [_trade_row(trade, source.listing) for trade in reversed(bent(trades, call))]
        return json_answer(rows, headers=headers)

    def _stats(self, call: Call) -> Answer:
        return json_answer(coinbase_day(day_window(self._market(call), now_ns=call.now_ns)))

    def _market(self, call: Call) -> MarketSource:
        source = self._markets.get(call.parts["product"])
        if source is None or source.listing.listed_ns > call.now_ns:
            raise RefusedCall(self.failure(404))
        return source


def iso_microseconds(time_ns: int) -> str:
    """Return ISO 8601 text in UTC with six decimals."""
    seconds, rest = divmod(time_ns, NANOSECONDS)
    return f"{format_ns(seconds * NANOSECONDS)[:-1]}.{rest // 1_000:06d}Z"


def _range(call: Call, grid: FixedGrid) -> tuple[int, int]:
    """Return first and last wanted start; start or end alone are both ignored, more than 300 bars are refused."""
    start, end = call.parameters.get("start"), call.parameters.get("end")
    if not start or not end or call.ignores_start:
        last_ns = grid.floor_ns(call.now_ns)
        return grid.step_ns(last_ns, 1 - _CANDLES_MAX), last_ns
    start_ns, end_ns = grid.floor_ns(_instant_ns(start, "start")), grid.floor_ns(_instant_ns(end, "end"))
    if end_ns < start_ns:
        raise _refused("end must be after start")
    if (end_ns - start_ns) // (grid.period_seconds * NANOSECONDS) + 1 > _CANDLES_MAX:
        raise _refused(
            "granularity too small for the requested time range. Count of aggregations requested exceeds 300"
        )
    return start_ns, end_ns


def _instant_ns(text: str, name: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 12:
        return int(text) * NANOSECONDS
    for form in (text, f"{text}Z"):
        try:
            return parse_iso_ns(form)
        except PeerError:
            continue
    raise _refused(f"Invalid {name}")


def _integer(call: Call, name: str, *, default: int) -> int:
    text = call.parameters.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise _refused(f"Invalid {name}")
    return int(text)


def _candle_row(row: Candle, listing: Listing) -> list[object]:
    """Return time, LOW, HIGH, OPEN, CLOSE, volume."""
    prices = (row.low_units, row.high_units, row.open_units, row.close_units)
    return [
        row.start_ns // NANOSECONDS,
        *(json_number(price, listing.price_decimals) for price in prices),
        json_number(row.volume_units, listing.size_decimals),
    ]


def _trade_row(trade: Trade, listing: Listing) -> dict[str, object]:
    return {
        "trade_id": trade.trade_id,
        "side": "sell" if trade.taker_buy else "buy",  # the maker's
        "size": fixed_text(trade.size_units, listing.size_decimals, 8),
        "price": fixed_text(trade.price_units, listing.price_decimals, 2),
        "time": iso_microseconds(trade.time_ns),
    }


def _product(listing: Listing, *, now_ns: int) -> dict[str, object]:
    halted = listing.halted_ns is not None and listing.halted_ns <= now_ns
    name = listing.symbol.replace("/", "-")
    return {
        "id": name,
        "base_currency": listing.base,
        "quote_currency": listing.quote,
        "quote_increment": shortest_text(1, listing.price_decimals),
        "base_increment": shortest_text(1, listing.size_decimals),
        "display_name": name,
        "min_market_funds": "1",
        "margin_enabled": False,
        "post_only": False,
        "limit_only": False,
        "cancel_only": False,
        "status": "delisted" if halted else "online",
        "status_message": "",
        "trading_disabled": halted,
        "fx_stablecoin": False,
        "max_slippage_percentage": "0.02000000",
        "auction_mode": False,
        "high_bid_limit_percentage": "",
    }


def _refused(message: str) -> RefusedCall:
    return RefusedCall(json_answer({"message": message}, status=400))
