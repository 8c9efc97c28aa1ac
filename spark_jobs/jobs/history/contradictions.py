"""Says when a bar made from ticks yields to a fetched bar with other numbers: counted, and the first ones logged."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relay.observability import Counters
from relay.tables.merge import BAR_NUMBERS

__all__ = ["EXAMPLES_MAX", "ContradictionLog"]

EXAMPLES_MAX = 10
"""So many of one commit are logged with their numbers; the others are only counted."""

_LOG = logging.getLogger(__name__)


class ContradictionLog:
    """Counts and logs; shared by both writers.

    ::

        history.tick_bars.replaced   a bar made from ticks was in the table; a fetched one has taken its place
        history.tick_bars.refused    a bar made from ticks came; the fetched one stays
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def note_all(self, pairs: pa.Table) -> None:
        """Note what :func:`relay.tables.merge.contradictions` found."""
        replaced = pc.sum(pairs["is_replaced"]).as_py() or 0
        self.note(replaced=replaced, refused=len(pairs) - replaced, examples=pairs.slice(0, EXAMPLES_MAX))

    def note(self, *, replaced: int, refused: int, examples: pa.Table) -> None:
        """Note how many there are, and some of them in the same columns."""
        if replaced + refused == 0:
            return
        self._counters.add("history.tick_bars.replaced", replaced)
        self._counters.add("history.tick_bars.refused", refused)
        _LOG.warning("tick_bars_contradicted replaced=%d refused=%d", replaced, refused)
        for row in examples.to_pylist():
            _LOG.warning(
                "tick_bar_contradicted ticker=%s period_seconds=%d start=%s event=%s numbers=%s",
                *(row["ticker"], row["period_seconds"], row["start"].isoformat()),
                *("replaced" if row["is_replaced"] else "refused", _numbers(row)),
            )


def _numbers(row: Mapping[str, Any]) -> str:
    """Which numbers differ, each as ``name:made/fetched``."""
    found = []
    for name in BAR_NUMBERS:
        made, fetched = row[f"made_{name}"], row[f"fetched_{name}"]
        if made is not None and fetched is not None and made != fetched:
            found.append(f"{name}:{made}/{fetched}")
    return ",".join(found)
