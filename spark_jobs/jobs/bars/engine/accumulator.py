"""One bucket's trades, added up exactly; the order in which they come does not matter."""

from __future__ import annotations

import msgspec

from spark_jobs.jobs.bars.engine.values import BarTrade, MadeBar

__all__ = ["Accumulator"]

_Key = tuple[int, int, int]


class Accumulator(msgspec.Struct):
    """Open and close follow (time, trade number, log offset). Numbers of other scales are brought to the finest."""

    price_decimals: int
    amount_decimals: int
    quote_decimals: int
    first: _Key
    last: _Key
    open: int
    high: int
    low: int
    close: int
    buy: int = 0
    sell: int = 0
    quote: int = 0
    trades: int = 0

    @classmethod
    def of(cls, trade: BarTrade) -> Accumulator:
        """Return the bucket of one trade."""
        key, price = (trade.time_ns, trade.number, trade.offset), trade.price
        decimals = trade.price_decimals + trade.amount_decimals if trade.quote is None else trade.quote_decimals
        made = cls(trade.price_decimals, trade.amount_decimals, decimals, key, key, price, price, price, price)
        made.add(trade)
        return made

    def add(self, trade: BarTrade) -> None:
        """Add a trade that was not added before."""
        price, amount = trade.price, trade.amount
        quote, quote_decimals = trade.quote, trade.quote_decimals
        if quote is None:
            quote, quote_decimals = price * amount, trade.price_decimals + trade.amount_decimals
        if (trade.price_decimals, trade.amount_decimals, quote_decimals) != (
            self.price_decimals,
            self.amount_decimals,
            self.quote_decimals,
        ):
            self._refine(trade.price_decimals, trade.amount_decimals, quote_decimals)
            price *= 10 ** (self.price_decimals - trade.price_decimals)
            amount *= 10 ** (self.amount_decimals - trade.amount_decimals)
            quote *= 10 ** (self.quote_decimals - quote_decimals)
        key = (trade.time_ns, trade.number, trade.offset)
        if key > self.last:
            self.last, self.close = key, price
        elif key < self.first:
            self.first, self.open = key, price
        # Comparisons, not max and min: this is done for each trade at each period.
        if price > self.high:
            self.high = price
        elif price < self.low:
            self.low = price
        if trade.taker_buy:
            self.buy += amount
        else:
            self.sell += amount
        self.quote += quote
        self.trades += 1

    def bar(
        self, ticker: str, period_seconds: int, start_ns: int, *, incomplete: bool, is_final: bool, revision: int
    ) -> MadeBar:
        """Return the bar as it is now."""
        return MadeBar(
            ticker,
            period_seconds,
            start_ns,
            self.price_decimals,
            self.open,
            self.high,
            self.low,
            self.close,
            self.amount_decimals,
            self.buy,
            self.sell,
            self.quote_decimals,
            self.quote,
            self.trades,
            self.first[1],
            self.last[1],
            incomplete,
            is_final,
            revision,
        )

    def _refine(self, price_decimals: int, amount_decimals: int, quote_decimals: int) -> None:
        """Bring what is there to scales at which old and new numbers are exact."""
        if price_decimals > self.price_decimals:
            factor = 10 ** (price_decimals - self.price_decimals)
            self.open, self.high, self.low, self.close = (
                n * factor for n in (self.open, self.high, self.low, self.close)
            )
            self.price_decimals = price_decimals
        if amount_decimals > self.amount_decimals:
            factor = 10 ** (amount_decimals - self.amount_decimals)
            self.buy, self.sell = self.buy * factor, self.sell * factor
            self.amount_decimals = amount_decimals
        if quote_decimals > self.quote_decimals:
            self.quote *= 10 ** (quote_decimals - self.quote_decimals)
            self.quote_decimals = quote_decimals
