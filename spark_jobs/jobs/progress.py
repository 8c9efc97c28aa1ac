"""How far a query is, as Spark tells it after each micro-batch: rates, lag behind the log, durations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relay.observability import Counters

__all__ = ["QueryProgress", "progress_of"]


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """One micro-batch of a query.

    Attributes:
        batch_id: number of the micro-batch in this run.
        rows: records in it.
        rows_per_second: records it took in a second of its own time, rounded.
        batch_ms: how long it took, planning and commit included.
        process_ms: of that, in the job's own code.
        lag: records that the log had and that were not yet taken when the micro-batch began, by topic.
        at: when the micro-batch began, ISO UTC.
    """

    batch_id: int
    rows: int
    rows_per_second: int
    batch_ms: int
    process_ms: int
    lag: Mapping[str, int]
    at: str

    def described(self) -> dict[str, object]:
        """Return it for ``/status``."""
        return {
            "batch_id": self.batch_id,
            "rows": self.rows,
            "rows_per_second": self.rows_per_second,
            "batch_ms": self.batch_ms,
            "process_ms": self.process_ms,
            "lag": dict(self.lag),
            "at": self.at,
        }

    def count(self, counters: Counters, *, job: str) -> None:
        """Set it as gauges, so that the metrics endpoint has it."""
        counters.set(f"{job}.progress.rows_per_second", self.rows_per_second)
        counters.set(f"{job}.progress.batch_ms", self.batch_ms)
        counters.set(f"{job}.progress.process_ms", self.process_ms)
        for topic, records in self.lag.items():
            counters.set(f"{job}.lag.{topic}", records)


def progress_of(told: Mapping[str, Any]) -> QueryProgress:
    """Read Spark's progress report.

    Args:
        told: the report as JSON gives it (``StreamingQueryProgress``); what it lacks is zero.
    """
    durations = told.get("durationMs") or {}
    lag: dict[str, int] = {}
    # Spark counts what its tasks have read; what the driver reads by itself shows in the offsets alone.
    rows, spanned = int(told.get("numInputRows", 0)), 0
    for source in told.get("sources") or ():
        begun, reached, latest = (_offsets(source.get(f"{name}Offset")) for name in ("start", "end", "latest"))
        for topic, partitions in begun.items():
            spanned += sum(max(reached.get(topic, {}).get(p, at) - at, 0) for p, at in partitions.items())
        for topic, partitions in latest.items():
            behind = sum(max(end - reached.get(topic, {}).get(p, 0), 0) for p, end in partitions.items())
            lag[topic] = lag.get(topic, 0) + behind
    batch_ms = int(durations.get("triggerExecution", 0))
    if rows:
        rows_per_second = _whole(told.get("processedRowsPerSecond"))
    else:
        rows, rows_per_second = spanned, round(spanned * 1_000 / max(batch_ms, 1))
    return QueryProgress(
        batch_id=int(told.get("batchId", 0)),
        rows=rows,
        rows_per_second=rows_per_second,
        batch_ms=batch_ms,
        process_ms=int(durations.get("addBatch", 0)),
        lag=lag,
        at=str(told.get("timestamp", "")),
    )


def _whole(value: object) -> int:
    # Spark writes rates as numbers, and as the texts NaN and Infinity when a micro-batch took no time.
    number = float(value) if isinstance(value, int | float | str) else 0.0
    return round(number) if number - number == 0 else 0


def _offsets(value: object) -> dict[str, dict[str, int]]:
    found = json.loads(value) if isinstance(value, str) else value
    return found if isinstance(found, dict) else {}
