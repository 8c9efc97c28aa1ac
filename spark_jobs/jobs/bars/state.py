"""What a restart of the bars job needs."""

from __future__ import annotations

import msgspec

from spark_jobs.jobs.state_store import JobState

__all__ = ["BarsState"]


class BarsState(JobState, frozen=True):
    """A snapshot.

    Attributes:
        bar_offsets: by partition of the history topic, how far this job's own bars were known to reach.
        book: state of the engine.
        pending: buckets that wait for the store: (ticker, period_seconds, start_ns, trade_offset, gap_offset,
            partition).
        places: partition of the tickers whose newest record does not lie where their key says: the topic has grown.
    """

    bar_offsets: dict[int, int]
    book: bytes
    pending: list[tuple[str, int, int, int, int, int]]
    places: dict[str, int] = msgspec.field(default_factory=dict)
