"""Which row of one key wins: pure Arrow, shared by every writer."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from relay.protocol.ranges import Range

__all__ = ["SPAN_HOLE_BARS_MAX", "key_spans", "latest_rows"]

SPAN_HOLE_BARS_MAX = 1_000
"""Two bars of a series further apart than this lie in two spans, so that a merge does not read the years between."""


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


def _changes(ordered: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Whether each row but the last differs from the next one in any of the columns."""
    changed: pa.Array | None = None
    for name in columns:
        column = ordered[name].combine_chunks()
        differs = pc.not_equal(column.slice(0, len(column) - 1), column.slice(1))
        changed = differs if changed is None else pc.or_(changed, differs)
    return changed
