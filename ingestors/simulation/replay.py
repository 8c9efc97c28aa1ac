"""Recorded trades or candles served in place of the model for one ticker."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from decimal import Context, Decimal, Inexact, InvalidOperation
from itertools import pairwise
from pathlib import Path

from ingestors.simulation.candle_making import candles_of_trades, rolled_up
from ingestors.simulation.grids import Grid
from ingestors.simulation.recorded_files import read_table
from ingestors.simulation.recorded_rows import CandleRow, TradeRow, candle_rows, is_candles, trade_rows
from ingestors.simulation.records import Candle, Listing, Trade, Visible
from relay.errors import PeerError, SettingsError
from relay.protocol.periods import NANOSECONDS
from relay.protocol.scaled import decimals_needed
from relay.protocol.tickers import Ticker, parse_ticker

__all__ = ["Recording", "load_recording", "recording_of_trades"]

_MINUTE_NS = 60 * NANOSECONDS
_EXACT = Context(prec=200, traps=[Inexact, InvalidOperation])


class Recording:
    """A market made of a file's rows.

    Bars without a row stay absent: a file cannot say whether nothing was traded or nothing was recorded.

    Args:
        ticker: what it is served as.
        listing: scales; its history starts at the first row.
        end_ns: the recording's end, where the exchange's clock stands.
        trades: ascending by (time, id); candles are made of them.
        candles: ascending by start; served at their period, rolled up at multiples of it.
        period_seconds: the candles' period, 0 without candles.
        live_ns: what lies up to there was known before the recording went live; by default nothing was.
    """

    fills_empty = False

    def __init__(
        self,
        *,
        ticker: Ticker,
        listing: Listing,
        end_ns: int,
        trades: Sequence[Trade] = (),
        candles: Sequence[Candle] = (),
        period_seconds: int = 0,
        live_ns: int | None = None,
    ) -> None:
        self.ticker = ticker
        self.listing = listing
        self.end_ns = end_ns
        self.period_seconds = period_seconds
        self._trades = list(trades)
        self._candles = list(candles)
        self._times_ns = [trade.time_ns for trade in trades]
        self._starts_ns = [candle.start_ns for candle in candles]
        self._ids = [trade.trade_id for trade in trades]
        self.live_ns = self.start_ns - 1 if live_ns is None else live_ns

    @property
    def times_ns(self) -> Sequence[int]:
        """Times of the trades, ascending; none of a recording of candles."""
        return self._times_ns

    @property
    def start_ns(self) -> int:
        """Time of the first row."""
        return min([*self._times_ns[:1], *self._starts_ns[:1]], default=self.end_ns)

    def listed_by(self, time_ns: int) -> Recording:
        """Return this recording as a market that exists at a time already, also before its first row."""
        other = copy(self)
        other.listing = replace(self.listing, listed_ns=min(self.listing.listed_ns, time_ns))
        return other

    def candles(self, grid: Grid, *, start_ns: int, end_ns: int, visible: Visible) -> list[Candle]:
        """Return the candles that start in [start_ns, end_ns); none when they can't be made from the rows."""
        if self._trades:
            edges = grid.edges_ns(start_ns, end_ns)
            if not edges:
                return []
            until_ns = min(visible.until_ns, edges[-1])
            return candles_of_trades(self.trades(self.position_at(edges[0]), self.position_at(until_ns)), edges)
        return self._recorded(grid, start_ns, min(end_ns, visible.until_ns))

    def _recorded(self, grid: Grid, start_ns: int, end_ns: int) -> list[Candle]:
        step_ns = grid.step_ns(grid.floor_ns(start_ns), 1) - grid.floor_ns(start_ns)
        if step_ns == self.period_seconds * NANOSECONDS:
            return self._candles[bisect_left(self._starts_ns, start_ns) : bisect_left(self._starts_ns, end_ns)]
        if step_ns % (self.period_seconds * NANOSECONDS):
            return []
        edges = grid.edges_ns(start_ns, end_ns)
        if not edges:
            return []
        parts = self._candles[bisect_left(self._starts_ns, edges[0]) : bisect_left(self._starts_ns, edges[-1])]
        return rolled_up(parts, edges)

    def position_at(self, time_ns: int) -> int:
        """Return how many trades lie before a time."""
        return bisect_left(self._times_ns, time_ns)

    def position_of(self, trade_id: int) -> int:
        """Return how many trades have a smaller id."""
        return bisect_left(self._ids, trade_id)

    def trades(self, start: int, end: int) -> list[Trade]:
        """Return the trades at positions [start, end)."""
        return self._trades[max(start, 0) : max(end, 0)]


def load_recording(path: Path, ticker: str) -> Recording:
    """Read a file of trades or candles.

    CSV, Parquet, Feather or Arrow, JSON lines, JSON (a list of rows, Binance klines, a Kraken OHLC answer). Columns
    are found by their usual names, units of times by size. Doubles enter by their shortest decimal text.

    Args:
        path: the file.
        ticker: ``BASE/QUOTE.EXCHANGE`` that it is served as.

    Raises:
        SettingsError: the file is no such file; says what was expected and what was found.
        PeerError: INVALID_TICKER.
    """
    parsed = parse_ticker(ticker)
    table = read_table(path)
    try:
        if is_candles(table):
            return _of_candles(parsed, candle_rows(table), cursor_ns=table.cursor_ns)
        return recording_of_trades(parsed, trade_rows(table))
    except PeerError as error:
        raise SettingsError(f"{path}: {error}") from error


def recording_of_trades(ticker: Ticker, rows: Sequence[TradeRow], *, live_ns: int | None = None) -> Recording:
    """Return the recording of at least one trade; repeats of an id count once.

    Args:
        ticker: what it is served as.
        rows: in any order.
        live_ns: what lies up to there was known before the recording went live.
    """
    price_decimals = decimals_needed(row.price for row in rows)
    size_decimals = decimals_needed(row.size for row in rows)
    by_id = {
        row.trade_id: Trade(
            row.trade_id,
            row.time_ns,
            _units(row.price, price_decimals),
            _units(row.size, size_decimals),
            row.taker_buy,
        )
        for row in rows
    }
    trades = sorted(by_id.values(), key=lambda trade: (trade.time_ns, trade.trade_id))
    end_ns = (trades[-1].time_ns // _MINUTE_NS + 1) * _MINUTE_NS  # the minute of the last trade counts as complete
    listing = Listing(ticker.symbol, price_decimals, size_decimals, trades[0].time_ns)
    return Recording(ticker=ticker, listing=listing, end_ns=end_ns, trades=trades, live_ns=live_ns)


def _of_candles(ticker: Ticker, rows: Sequence[CandleRow], *, cursor_ns: int | None) -> Recording:
    prices = [
        price for row in rows for price in (row.open, row.high, row.low, row.close, row.vwap) if price is not None
    ]
    price_decimals = decimals_needed(prices)
    volumes = [volume for row in rows for volume in (row.volume, row.buy_volume) if volume is not None]
    size_decimals = decimals_needed(volumes)
    quotes = [quote for row in rows for quote in (row.quote_volume, row.buy_quote_volume) if quote is not None]
    size_decimals = max(size_decimals, decimals_needed(quotes) - price_decimals)
    listing = Listing(ticker.symbol, price_decimals, size_decimals, min(row.start_ns for row in rows))
    candles = sorted((_candle(row, listing) for row in rows), key=lambda candle: candle.start_ns)
    period_seconds = _period_seconds(candles)
    last_ns = candles[-1].start_ns
    end_ns = last_ns + period_seconds * NANOSECONDS
    if cursor_ns is not None and cursor_ns < last_ns:
        end_ns = last_ns + period_seconds * NANOSECONDS // 2  # the answer itself says that its last row still runs
    return Recording(ticker=ticker, listing=listing, end_ns=end_ns, candles=candles, period_seconds=period_seconds)


def _candle(row: CandleRow, listing: Listing) -> Candle:
    def optional(number: Decimal | None, decimals: int) -> int | None:
        return None if number is None else _units(number, decimals)

    price, size, quote = listing.price_decimals, listing.size_decimals, listing.quote_decimals
    return Candle(
        start_ns=row.start_ns,
        open_units=_units(row.open, price),
        high_units=_units(row.high, price),
        low_units=_units(row.low, price),
        close_units=_units(row.close, price),
        volume_units=_units(row.volume, size),
        quote_units=optional(row.quote_volume, quote),
        trades=row.trades,
        buy_volume_units=optional(row.buy_volume, size),
        buy_quote_units=optional(row.buy_quote_volume, quote),
        vwap_units=optional(row.vwap, price),
    )


def _units(number: Decimal, decimals: int) -> int:
    """Return the exact units; of any size, since what fits no 64 bits must reach the one who reads it as it is."""
    return int(number.scaleb(decimals, _EXACT))


def _period_seconds(candles: Sequence[Candle]) -> int:
    """Return the most common distance of neighbours, the smaller one of equals; a lone row counts as a minute."""
    distances = Counter(later.start_ns - earlier.start_ns for earlier, later in pairwise(candles))
    distances.pop(0, None)
    if not distances:
        return 60
    distance_ns = min(distances, key=lambda ns: (-distances[ns], ns))
    return max(distance_ns // NANOSECONDS, 1)
