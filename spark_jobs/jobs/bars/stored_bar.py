"""A bar made anew from stored ticks, by Arrow: exact, and as fast for a day as for a minute. Pure."""

from __future__ import annotations

from decimal import Context, Decimal, Inexact
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relay.protocol.periods import NANOSECONDS
from relay.protocol.scaled import STORED_DECIMALS
from spark_jobs.jobs.bars.engine.gap_book import GapBook
from spark_jobs.jobs.bars.engine.values import GapNotice, GapState, MadeBar

__all__ = ["QUOTE_DECIMALS", "bar_of_ticks", "gap_book_of", "joined_bar", "quote_units", "stored_units"]

QUOTE_DECIMALS = 2 * STORED_DECIMALS
_QUOTE_FACTOR = int("1" + STORED_DECIMALS * "0")
_WIDE = pa.decimal256(76, STORED_DECIMALS)
_EXACT = Context(prec=80, traps=[Inexact])


def bar_of_ticks(ticks: pa.Table, gaps: GapBook, *, ticker: str, period_seconds: int, start_ns: int) -> MadeBar | None:
    """Return the final bar of a bucket with revision 0; None when nothing was traded in it.

    Args:
        ticks: of the ticker in this bucket, in the columns of ``market.ticks``, ascending by time and number.
        gaps: of the ticker, as they are known now.
        ticker, period_seconds, start_ns: the bucket.
    """
    if len(ticks) == 0:
        return None
    price, amount, is_buy = ticks["price"], ticks["amount"], ticks["taker_buy"]
    numbers = ticks["trade_number"]
    return MadeBar(
        ticker,
        period_seconds,
        start_ns,
        STORED_DECIMALS,
        _units(price[0]),
        _units(pc.max(price)),
        _units(pc.min(price)),
        _units(price[-1]),
        STORED_DECIMALS,
        _units(_sum(amount.filter(is_buy))),
        _units(_sum(amount.filter(pc.invert(is_buy)))),
        QUOTE_DECIMALS,
        _quote(ticks),
        len(ticks),
        numbers[0].as_py(),
        numbers[-1].as_py(),
        incomplete=gaps.is_incomplete(start_ns, start_ns + period_seconds * NANOSECONDS),
        is_final=True,
        revision=0,
    )


def joined_bar(first: MadeBar | None, second: MadeBar | None) -> MadeBar | None:
    """Return the bar of a bucket whose ticks came in two parts, the earlier one first; None for a part without."""
    if first is None or second is None:
        return second if first is None else first
    return first._replace(
        high=max(first.high, second.high),
        low=min(first.low, second.low),
        close=second.close,
        buy=first.buy + second.buy,
        sell=first.sell + second.sell,
        quote=first.quote + second.quote,
        trades=first.trades + second.trades,
        last_number=second.last_number,
    )


def gap_book_of(gaps: pa.Table) -> GapBook:
    """Return what the rows of a ticker's ``market.gaps``, in the order of the log, say together."""
    book = GapBook()
    for row in gaps.select(["state", "first_number", "last_number", "from_ns", "to_ns"]).to_pylist():
        book.take(
            GapNotice(GapState(row["state"]), row["first_number"], row["last_number"], row["from_ns"], row["to_ns"])
        )
    return book


def stored_units(number: Decimal | None) -> int:
    """Return a stored number, or none, in units of 10^-18."""
    # The column's scale is the one that the units have.
    return 0 if number is None else int(number.scaleb(STORED_DECIMALS, _EXACT))


def quote_units(number: Decimal | None) -> int:
    """Return a stored quote amount in units of :data:`QUOTE_DECIMALS`."""
    return stored_units(number) * _QUOTE_FACTOR


def _quote(ticks: pa.Table) -> int:
    """The sum of price x amount, in units of 10^-36: as sent, or multiplied where nothing was sent."""
    sent = _units(_sum(ticks["quote_amount"])) * _QUOTE_FACTOR
    if ticks["quote_amount"].null_count == 0:
        return sent
    rest = ticks.filter(pc.is_null(ticks["quote_amount"])).select(["price", "amount"])
    return sent + sum(_units(p) * _units(a) for p, a in zip(rest["price"], rest["amount"], strict=True))


def _sum(column: pa.ChunkedArray) -> pa.Scalar:
    """Return the exact sum of stored numbers: one of their own width wraps around without a word."""
    return pc.sum(column.cast(_WIDE))


def _units(number: Any) -> int:
    return stored_units(number.as_py())
