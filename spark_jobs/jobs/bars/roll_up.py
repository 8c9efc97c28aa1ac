"""A long bar out of final short ones, where these provably hold every trade, and out of ticks where they do not. Pure.

A minute without a bar may be one without trades or one that nobody has made yet; time alone does not tell. Trade
numbers do: bars whose numbers run on without a hole, inside and from one to the next, miss nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range
from relay.protocol.scaled import STORED_DECIMALS
from spark_jobs.jobs.bars.engine.values import MadeBar
from spark_jobs.jobs.bars.stored_bar import QUOTE_DECIMALS, quote_units, stored_units

__all__ = ["CHILD_SECONDS", "children_of", "pieces"]

CHILD_SECONDS = 60
"""Period of the bars that long ones are made of; the settings make it of every live ticker by default."""


def children_of(rows: pa.Table) -> list[MadeBar]:
    """Return final bars as they are stored, ascending by start; one that cannot be added up exactly is left out.

    Args:
        rows: of one ticker and period in the columns of ``market.tick_bars``, the last revision of each bar.
    """
    at = rows.schema.get_field_index("start")
    found = rows.set_column(at, "start", rows["start"].cast(pa.int64())).sort_by("start").to_pylist()
    exact = (row for row in found if row["quote_volume"] is not None)
    return [_bar_of(row) for row in exact if row["first_trade_id"] and row["last_trade_id"]]


def pieces(children: Sequence[MadeBar], within: Range) -> Iterator[MadeBar | Range]:
    """Yield what a stretch of time is made of, in its order: bars that stand for their trades, else ranges of ticks.

    Args:
        children: final bars that start in the range, ascending by start.
        within: the stretch; its first and last bar are never proven, for their neighbours are not seen.
    """
    reached_ns = within.start_ns
    for before, bar, after in zip(children, children[1:], children[2:], strict=False):
        if not (_is_whole(bar) and _follows(before, bar) and _follows(bar, after)):
            continue
        if reached_ns < bar.start_ns:
            yield Range(reached_ns, bar.start_ns)
        yield bar
        # The next bar's first number follows this one's last, so between them nothing was traded; but only the next
        # bar's own time is certain to hold its trades.
        reached_ns = after.start_ns
    if reached_ns < within.end_ns:
        yield Range(reached_ns, within.end_ns)


def _bar_of(row: Mapping[str, Any]) -> MadeBar:
    return MadeBar(
        ticker=row["ticker"],
        period_seconds=row["period_seconds"],
        start_ns=row["start"] * 1000,
        price_decimals=STORED_DECIMALS,
        open=stored_units(row["open"]),
        high=stored_units(row["high"]),
        low=stored_units(row["low"]),
        close=stored_units(row["close"]),
        amount_decimals=STORED_DECIMALS,
        buy=stored_units(row["buy_volume"]),
        sell=stored_units(row["sell_volume"]),
        quote_decimals=QUOTE_DECIMALS,
        quote=quote_units(row["quote_volume"]),
        trades=row["trades"],
        first_number=int(row["first_trade_id"]),
        last_number=int(row["last_trade_id"]),
        incomplete=row["incomplete"],
        is_final=True,
        revision=row["revision"],
    )


def _is_whole(bar: MadeBar) -> bool:
    return not bar.incomplete and bar.trades == bar.last_number - bar.first_number + 1


def _follows(before: MadeBar, bar: MadeBar) -> bool:
    is_later = before.start_ns + before.period_seconds * NANOSECONDS <= bar.start_ns
    return is_later and before.last_number + 1 == bar.first_number
