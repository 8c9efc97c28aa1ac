"""Which row of one key wins: pure Arrow, shared by every writer and reader.

Of one bar (ticker, period_seconds, start) the row that is greatest by this order stays, whatever came first::

    is_fetched          what was fetched from the exchange stands before what was made from live ticks
    revision            of bars made from ticks only
    not incomplete      of bars made from ticks only
    fetched_at_ns       when it was fetched, or made
    log_partition, log_offset

It is a total order, so neither the batching nor a replay changes what stays. ``docs/decisions/0015``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from relay.protocol.ranges import Range
from relay.tables.schema import OHLC_KEY

__all__ = [
    "BAR_NUMBERS",
    "SPAN_HOLE_BARS_MAX",
    "contradictions",
    "fetched_mask",
    "key_spans",
    "latest_bars",
    "latest_rows",
    "latest_tick_bars",
    "series_spans",
]

SPAN_HOLE_BARS_MAX = 1_000
"""Two bars of a series further apart than this lie in two spans, so that a merge does not read the years between."""
BAR_NUMBERS = ("open", "high", "low", "close", "volume", "quote_volume", "buy_volume", "sell_volume", "trades")
"""What two bars of one key may contradict each other in; a number that one of them lacks contradicts nothing."""

_PLACE = ("fetched_at_ns", "log_partition", "log_offset")


def latest_rows(rows: pa.Table, *, key: Sequence[str], order: Sequence[str]) -> pa.Table:
    """Return one row for each key, the last in ``order``, sorted by key.

    Args:
        rows: rows with possibly repeated keys.
        key: columns that identify a row.
        order: columns that say which comes later, most significant first.

    Cost: one sort, O(n log n), without a Python object per row.
    """
    if len(rows) < 2:
        return rows
    ordered = rows.sort_by([(name, "ascending") for name in (*key, *order)]).combine_chunks()
    keep = pa.concat_arrays([_changes(ordered, key), pa.array([True])])
    return ordered.filter(keep)


def fetched_mask(bars: pa.Table) -> pa.ChunkedArray:
    """Return of each bar of ``market.ohlc`` whether it was fetched from the exchange, not made from live ticks."""
    return bars["is_fetched"].fill_null(True)


def latest_bars(bars: pa.Table) -> pa.Table:
    """Return the one bar of each key that stays in ``market.ohlc``, sorted by key.

    Args:
        bars: rows in the columns of ``market.ohlc``.
    """
    is_fetched = fetched_mask(bars)
    if pc.all(is_fetched, min_count=0).as_py():
        return latest_rows(bars, key=OHLC_KEY, order=_PLACE)
    ranks = {
        "rank_fetched": is_fetched,
        "rank_revision": pc.if_else(is_fetched, pa.scalar(0, pa.int32()), bars["revision"]),
        "rank_complete": pc.or_(is_fetched, pc.invert(bars["incomplete"])),
    }
    ranked = bars
    for name, rank in ranks.items():
        ranked = ranked.append_column(name, rank)
    return latest_rows(ranked, key=OHLC_KEY, order=(*ranks, *_PLACE)).select(bars.column_names)


def latest_tick_bars(rows: pa.Table) -> pa.Table:
    """Return the last revision of each bar of ``market.tick_bars``, sorted by key; the order is that of the bars."""
    ranked = rows.append_column("rank_complete", pc.invert(rows["incomplete"]))
    order = ("revision", "rank_complete", "made_at_ns", "log_partition", "log_offset")
    return latest_rows(ranked, key=OHLC_KEY, order=order).select(rows.column_names)


def contradictions(existing: pa.Table, incoming: pa.Table) -> pa.Table:
    """Return the bars made from ticks that yield to a fetched bar with other numbers.

    Args:
        existing: bars of the table, one of each key.
        incoming: bars of a batch, as they came: several of a key, and both kinds.

    Returns:
        One row for each such bar: the key, ``is_replaced`` (it was in the table; else it came and was refused), and of
        each number ``made_…`` and ``fetched_…``. Of several refused ones of a key the last.
    """
    is_fetched, was_fetched = fetched_mask(incoming), fetched_mask(existing)
    came, stood = incoming.filter(pc.invert(is_fetched)), existing.filter(pc.invert(was_fetched))
    fetched = pa.concat_tables([existing.filter(was_fetched), incoming.filter(is_fetched)])
    names = [*OHLC_KEY, *BAR_NUMBERS]
    made = pa.concat_tables(
        [
            rows.select(names).append_column("is_replaced", pa.repeat(pa.scalar(is_replaced), len(rows)))
            for rows, is_replaced in ((stood, True), (latest_bars(came), False))
        ]
    )
    # Nearly always there is nothing made from ticks: then nothing has to be sorted either.
    fetched = latest_bars(fetched if len(made) else fetched.slice(0, 0)).select(names)
    sides = [_prefixed(made, "made_"), _prefixed(fetched, "fetched_")]
    pairs = sides[0].join(sides[1], keys=list(OHLC_KEY), join_type="inner")
    differs = pa.array([False] * len(pairs), pa.bool_())
    for name in BAR_NUMBERS:
        differs = pc.or_(differs, pc.not_equal(pairs[f"made_{name}"], pairs[f"fetched_{name}"]).fill_null(False))
    return pairs.filter(differs)


def key_spans(rows: pa.Table) -> list[tuple[str, int, Range]]:
    """Return (ticker, period_seconds, range of starts) that together cover the keys of bars.

    Args:
        rows: bars sorted by (ticker, period_seconds, start), as :func:`latest_rows` gives them.
    """
    if len(rows) == 0:
        return []
    starts = rows["start"].combine_chunks().cast(pa.int64())
    steps = pc.subtract(starts.slice(1), starts.slice(0, len(starts) - 1))
    periods = rows["period_seconds"].combine_chunks().cast(pa.int64())
    too_far = pc.greater(steps, pc.multiply(periods.slice(1), SPAN_HOLE_BARS_MAX * 1_000_000))
    cuts = pc.or_(_changes(rows, ("ticker", "period_seconds")), too_far)
    firsts = [0, *(i + 1 for i in pc.indices_nonzero(cuts).to_pylist())]
    lasts = [*(i - 1 for i in firsts[1:]), len(rows) - 1]
    return [
        (
            rows["ticker"][first].as_py(),
            rows["period_seconds"][first].as_py(),
            Range(starts[first].as_py() * 1000, starts[last].as_py() * 1000 + 1),
        )
        for first, last in zip(firsts, lasts, strict=True)
    ]


def series_spans(rows: pa.Table) -> list[tuple[list[str], int, Range]]:
    """Return the spans of :func:`key_spans`, those of one period and range together with all their tickers.

    Two hundred tickers end their minute together: that is one filter then, not two hundred.
    """
    tickers: defaultdict[tuple[int, Range], list[str]] = defaultdict(list)
    for ticker, period_seconds, within in key_spans(rows):
        tickers[period_seconds, within].append(ticker)
    return [(names, period_seconds, within) for (period_seconds, within), names in tickers.items()]


def _prefixed(rows: pa.Table, prefix: str) -> pa.Table:
    return rows.rename_columns([prefix + name if name in BAR_NUMBERS else name for name in rows.column_names])


def _changes(ordered: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Whether each row but the last differs from the next one in any of the columns."""
    changed: pa.Array | None = None
    for name in columns:
        column = ordered[name].combine_chunks()
        differs = pc.not_equal(column.slice(0, len(column) - 1), column.slice(1))
        changed = differs if changed is None else pc.or_(changed, differs)
    return changed
