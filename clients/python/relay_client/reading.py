"""Reads of the tables for one history: coverage before bars, and what follows from both."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range, intersect, subtract
from relay_client.engine.plan import HistoryQuery
from relay_client.history import BAR_COLUMNS, History
from relay_client.outcome import Outcome, RequestStatus

if TYPE_CHECKING:
    import pyarrow as pa

    from relay.tables.reader import LakeTables

__all__ = ["bars_before_gap", "read_history"]

_SNAPSHOT_TRIES = 20
_SNAPSHOT_WAIT_S = 0.1


def bars_before_gap(tables: LakeTables, query: HistoryQuery, covered: Sequence[Range]) -> int:
    """Return how many bars lie between the start and the first gap."""
    if not covered or covered[0].start_ns > query.wanted.start_ns:
        return 0
    return tables.count_bars(query.ticker, query.period_seconds, within=covered[0])


def read_history(tables: LakeTables, query: HistoryQuery, outcomes: Sequence[Outcome]) -> History:
    """Read bars at a head that descends from every snapshot that was told."""
    covered = tables.coverage(query.ticker, query.period_seconds, within=query.wanted)
    bars, snapshot_id, unseen = _bars_at_head(tables, query, [o.snapshot_id for o in outcomes if o.snapshot_id])
    wanted = _answered_range(query, bars)
    missing = subtract(wanted, covered)
    warnings = [_warning(o) for o in outcomes if _is_short(o, missing)]
    if unseen:
        warnings.append(f"snapshots {unseen} are no ancestors of the table's head: expired, or it was rolled back")
    status = RequestStatus.PARTIAL if any(_is_short(o, missing) for o in outcomes) else RequestStatus.OK
    if not len(bars) and not any(_is_short(o, missing) and o.status is RequestStatus.PARTIAL for o in outcomes):
        status = RequestStatus.NOT_FOUND
    return History(
        query=query,
        status=status,
        coverage=tuple(intersect(wanted, covered)),
        missing=tuple(missing),
        warning="; ".join(warnings),
        snapshot_id=snapshot_id,
        requests=tuple(outcomes),
        _bars=bars.select(BAR_COLUMNS),
    )


def _bars_at_head(tables: LakeTables, query: HistoryQuery, told: Sequence[int]) -> tuple[pa.Table, int, Sequence[int]]:
    """A catalog that is a replica may lag behind the notification: look again a few times."""
    for attempt in range(_SNAPSHOT_TRIES):
        bars, snapshot_id, unseen = tables.read_bars_since(
            query.ticker, query.period_seconds, within=query.wanted, limit=query.limit, snapshot_ids=told
        )
        if not unseen or attempt == _SNAPSHOT_TRIES - 1:
            break
        threading.Event().wait(_SNAPSHOT_WAIT_S)
    return bars, snapshot_id, unseen


def _answered_range(query: HistoryQuery, bars: pa.Table) -> Range:
    """With a limit that is reached, the range ends after its last bar, and what follows is not missing."""
    wanted = query.wanted
    if query.limit is None or len(bars) < query.limit:
        return wanted
    last_us = int(bars["start"][len(bars) - 1].value)
    return Range(wanted.start_ns, min(wanted.end_ns, last_us * 1000 + query.period_seconds * NANOSECONDS))


def _is_short(outcome: Outcome, missing: Sequence[Range]) -> bool:
    """Whether a request's end explains something that is missing; open and future bars need no excuse."""
    if outcome.error_code == ErrorCode.NOT_CLOSED_YET:
        return False
    if outcome.status is RequestStatus.PARTIAL:
        return True
    asked = Range(outcome.start_ns, outcome.end_ns)
    return outcome.status is RequestStatus.NOT_FOUND and bool(outcome.error_code) and bool(intersect(asked, missing))


def _warning(outcome: Outcome) -> str:
    return f"{outcome.error_code or outcome.status}: {outcome.error_message or 'less came than was asked for'}"
