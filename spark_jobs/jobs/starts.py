"""Where a query begins to read: at the tables' offsets, inside what the log still holds."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from relay.eventlog import EventLog
from relay.observability import Counters

__all__ = ["clamped_starts"]

_LOG = logging.getLogger(__name__)


def clamped_starts(
    log: EventLog, starts: Mapping[str, Mapping[int, int]], *, counters: Counters, job: str
) -> dict[str, dict[int, int]]:
    """Return starts inside what the log holds; what lies before the oldest record is lost, and said.

    Args:
        log: the event log.
        starts: offsets by topic and partition.
        counters: lost records are counted under the job's name.
        job: prefix of the counter.
    """
    clamped: dict[str, dict[int, int]] = {}
    for topic, offsets in starts.items():
        oldest, ends = log.start_offsets(topic), log.end_offsets(topic)
        clamped[topic] = {}
        for partition, offset in offsets.items():
            if offset < oldest[partition]:
                counters.add(f"{job}.records.lost_to_retention", oldest[partition] - offset)
                _LOG.error(
                    "log_records_lost_to_retention topic=%s partition=%d from=%d to=%d",
                    *(topic, partition, offset, oldest[partition]),
                )
            if offset > ends[partition]:
                _LOG.error(
                    "stored_offset_is_past_the_log topic=%s partition=%d stored=%d end=%d",
                    *(topic, partition, offset, ends[partition]),
                )
            clamped[topic][partition] = min(max(offset, oldest[partition]), ends[partition])
    return clamped
