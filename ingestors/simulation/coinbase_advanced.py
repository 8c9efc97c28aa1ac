"""Coinbase Advanced Trade, its public market side: every number is text, candles newest first."""

from __future__ import annotations

from collections.abc import Mapping

from ingestors.simulation.answers import Answer, Call, Handler, RefusedCall, bent, json_answer
from ingestors.simulation.candle_pages import newest_candles
from ingestors.simulation.coinbase import iso_microseconds
from ingestors.simulation.coinbase_product import product_entry
from ingestors.simulation.grids import FixedGrid
from ingestors.simulation.limits import Limits, TokenBucket
from ingestors.simulation.listings import COINBASE_ADVANCED
from ingestors.simulation.number_text import shortest_text
from ingestors.simulation.records import Candle, Listing, MarketSource, Trade
from relay.protocol.periods import NANOSECONDS

__all__ = ["CoinbaseAdvancedRest"]

_BASE = "/api/v3/brokerage"
_GRANULARITY_SECONDS = {
    "ONE_MINUTE": 60,
    "FIVE_MINUTE": 300,
    "FIFTEEN_MINUTE": 900,
    "THIRTY_MINUTE": 1_800,
    "ONE_HOUR": 3_600,
    "TWO_HOUR": 7_200,
    "SIX_HOUR": 21_600,
    "ONE_DAY": 86_400,
}
_CANDLES_MAX = 350
_TICKER_TRADES, _TICKER_TRADES_MAX = 100, 1_000


class CoinbaseAdvancedRest:
    """The shape.

    Args:
        markets: by unified symbol.
        limits: calls per second and burst.
    """

    name = COINBASE_ADVANCED

    def __init__(self, markets: Mapping[str, MarketSource], *, limits: Limits) -> None:
        self._markets = {symbol.replace("/", "-"): source for symbol, source in markets.items()}
        self._bucket = TokenBucket(per_second=limits.coinbase_per_second, burst=limits.coinbase_burst)

    def routes(self) -> Mapping[str, Handler]:
        """Return the handlers by path."""
        return {
            f"{_BASE}/time": self._time,
            f"{_BASE}/market/time": self._time,
            f"{_BASE}/market/products": self._products,
            f"{_BASE}/market/products/{{product}}": self._one_product,
            f"{_BASE}/market/products/{{product}}/candles": self._candles,
            f"{_BASE}/market/products/{{product}}/ticker": self._ticker,
        }

    def admit(self, call: Call) -> Answer | None:
        """Take a token; 429 without Retry-After when there is none."""
        return None if self._bucket.take(wall_ns=call.wall_ns) else self.failure(429)

    def headers(self) -> Mapping[str, str]:
        """Return no header of its own."""
        return {}

    def failure(self, status: int, *, code: int | str | None = None, message: str | None = None) -> Answer:
        """Return error, error_details and message."""
        usual = {404: "NOT_FOUND", 400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 418: "PERMISSION_DENIED"}
        name = str(code) if code is not None else usual.get(status, "INTERNAL")
        text = message or name.lower().replace("_", " ")
        return json_answer({"error": name, "error_details": text, "message": text}, status=status or 500)

    def _refused(self, message: str) -> RefusedCall:
        return RefusedCall(self.failure(400, message=message))

    def _time(self, call: Call) -> Answer:
        return json_answer(
            {
                "iso": iso_microseconds(call.now_ns),
                "epochSeconds": str(call.now_ns // NANOSECONDS),
                "epochMillis": str(call.now_ns // 10**6),
            }
        )

    def _products(self, call: Call) -> Answer:
        listed = [source for source in self._markets.values() if source.listing.listed_ns <= call.now_ns]
        wanted_type = call.parameters.get("product_type", "SPOT")
        entries = [self._entry(source, call) for source in listed if wanted_type == "SPOT"]
        offset = self._integer(call, "offset", default=0)
        entries = entries[offset : offset + self._integer(call, "limit", default=len(entries))]
        return json_answer({"products": entries, "num_products": len(entries), "pagination": None})

    def _one_product(self, call: Call) -> Answer:
        return json_answer(self._entry(self._market(call), call))

    def _entry(self, source: MarketSource, call: Call) -> dict[str, object]:
        listings = [other.listing for other in self._markets.values()]
        aliases = [x.symbol.replace("/", "-") for x in listings if x.alias_of == source.listing.symbol]
        return product_entry(source, aliases=aliases, now_ns=call.now_ns)

    def _candles(self, call: Call) -> Answer:
        source = self._market(call)
        period_seconds = _GRANULARITY_SECONDS.get(call.parameters.get("granularity", ""))
        if period_seconds is None:
            raise self._refused("granularity is not a valid enum value")
        if "start" not in call.parameters or "end" not in call.parameters:
            raise self._refused("start and end are required")
        grid = FixedGrid(period_seconds)
        start_ns = grid.ceil_ns(self._integer(call, "start", default=0) * NANOSECONDS)
        end_ns = self._integer(call, "end", default=0) * NANOSECONDS
        limit = self._integer(call, "limit", default=_CANDLES_MAX)
        count = (grid.floor_ns(end_ns) - start_ns) // (period_seconds * NANOSECONDS) + 1
        if count > _CANDLES_MAX or not 1 <= limit <= _CANDLES_MAX:
            raise self._refused(f"number of candles requested should be at most {_CANDLES_MAX}")
        if call.ignores_start:
            start_ns, end_ns, limit = 0, call.now_ns, _CANDLES_MAX
        rows = newest_candles(
            source, grid, start_ns=start_ns, end_ns=end_ns + 1, limit=limit, visible=call.visible, flat=False
        )
        return json_answer({"candles": [_candle_entry(row, source.listing) for row in reversed(bent(rows, call))]})

    def _ticker(self, call: Call) -> Answer:
        source = self._market(call)
        limit = self._integer(call, "limit", default=_TICKER_TRADES)
        if not 1 <= limit <= _TICKER_TRADES_MAX:
            raise self._refused("limit is out of range")
        if "start" in call.parameters and "end" not in call.parameters:
            raise self._refused("end is required with start")
        start, end = 0, source.position_at(call.visible.until_ns)
        newest = source.trades(end - 1, end)
        if "end" in call.parameters and not call.ignores_start:
            end_ns = (self._integer(call, "end", default=0) + 1) * NANOSECONDS
            end = min(end, source.position_at(end_ns))
            start = source.position_at(self._integer(call, "start", default=0) * NANOSECONDS)
        trades = bent(source.trades(max(end - limit, start), end), call)
        price = shortest_text(newest[-1].price_units, source.listing.price_decimals) if newest else ""
        rows = [_trade_entry(trade, source.listing) for trade in reversed(trades)]
        return json_answer({"trades": rows, "best_bid": price, "best_ask": price})

    def _market(self, call: Call) -> MarketSource:
        source = self._markets.get(call.parts["product"])
        if source is None or source.listing.listed_ns > call.now_ns:
            raise RefusedCall(self.failure(404, message="valid product_id is required"))
        return source

    def _integer(self, call: Call, name: str, *, default: int) -> int:
        text = call.parameters.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 12):
            raise self._refused(f"{name} is not a whole number")
        return int(text)


def _candle_entry(row: Candle, listing: Listing) -> dict[str, str]:
    price = listing.price_decimals
    return {
        "start": str(row.start_ns // NANOSECONDS),
        "low": shortest_text(row.low_units, price),
        "high": shortest_text(row.high_units, price),
        "open": shortest_text(row.open_units, price),
        "close": shortest_text(row.close_units, price),
        "volume": shortest_text(row.volume_units, listing.size_decimals),
    }


def _trade_entry(trade: Trade, listing: Listing) -> dict[str, str]:
    return {
        "trade_id": str(trade.trade_id),
        "product_id": (listing.alias_of or listing.symbol).replace("/", "-"),  # one feed answers for both names
        "price": shortest_text(trade.price_units, listing.price_decimals),
        "size": shortest_text(trade.size_units, listing.size_decimals),
        "time": iso_microseconds(trade.time_ns),
        "side": "SELL" if trade.taker_buy else "BUY",  # the maker's
        "bid": "",
        "ask": "",
        "exchange": "coinbase",
    }
