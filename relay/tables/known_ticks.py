"""Which ticks the table holds already: ids above a ticker's highest stored one are new, the others are looked up."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from relay.protocol.ranges import Range
from relay.protocol.times import TIME_NS_MAX
from relay.tables.filters import ticks_filter

__all__ = ["TICKS_KEY", "KnownTicks", "first_rows"]

TICKS_KEY = ("ticker", "trade_number")


_DISORDER_NS = 60_000_000_000
"""Ids and times rise together but for this."""


class KnownTicks:
    """Remembers the highest stored id of each ticker that was written since the start."""

    def __init__(self) -> None:
        self._highest: dict[str, int] = {}

    def unknown(self, table: Table, rows: pa.Table) -> pa.Table:
        """Return the rows that the table does not hold.

        A live feed sends ids upwards, so most rows need no look at the table: only backfills, repeats, and the
        first ones of a ticker after a start do.
        """
        highest = pa.array([self._highest.get(t, 2**63 - 1) for t in rows["ticker"].to_pylist()], pa.int64())
        doubtful = rows.filter(pc.less_equal(rows["trade_number"], highest))
        if len(doubtful) == 0:
            return rows
        tickers = pc.unique(doubtful["ticker"]).to_pylist()
        times = pc.min_max(doubtful["time_ns"]).as_py()
        is_new_here = any(ticker not in self._highest for ticker in tickers)
        # Of a ticker not seen since the start the ids above are needed too: they say which is the highest.
        # And one trade may have two times: a socket's microseconds, a page's milliseconds.
        end_ns = TIME_NS_MAX if is_new_here else times["max"] + _DISORDER_NS
        within = Range(max(0, times["min"] - _DISORDER_NS), end_ns)
        stored = table.scan(row_filter=ticks_filter(tickers, within), selected_fields=TICKS_KEY).to_arrow()
        self.stored(stored)
        if len(stored) == 0:
            return rows
        return rows.join(stored.select(TICKS_KEY), keys=list(TICKS_KEY), join_type="left anti").select(
            rows.column_names
        )

    def stored(self, rows: pa.Table) -> None:
        """Note that rows are stored now."""
        if len(rows) == 0:
            return
        newest = rows.group_by("ticker").aggregate([("trade_number", "max")])
        for ticker, number in zip(newest["ticker"].to_pylist(), newest["trade_number_max"].to_pylist(), strict=True):
            self._highest[ticker] = max(self._highest.get(ticker, number), number)


def first_rows(rows: pa.Table, *, key: tuple[str, ...]) -> pa.Table:
    """Return the first row of each key, in the order of the log."""
    order = [(name, "ascending") for name in (*key, "log_partition", "log_offset")]
    ordered = rows.sort_by(order)
    if len(ordered) < 2:
        return ordered
    heads, tails = ordered.slice(1), ordered.slice(0, len(ordered) - 1)
    same = None
    for name in key:
        equal = pc.equal(heads[name], tails[name])
        same = equal if same is None else pc.and_(same, equal)
    mask = pa.concat_arrays([pa.array([True]), *pc.invert(same).chunks])
    return ordered.filter(mask)
