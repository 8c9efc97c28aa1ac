"""What a restart of the triggers job needs."""

from __future__ import annotations

from spark_jobs.jobs.state_store import JobState

__all__ = ["TriggersState"]


class TriggersState(JobState, frozen=True):
    """A snapshot.

    Attributes:
        control_offsets: next offset to read, by partition of the control topic.
        trigger_offsets: by partition of the trigger topic, where its end was; all before it has been announced.
        matcher: state of the matcher.
        bars: state of the bars that are made for it.
        clients: owner of each trigger that named one, by trigger_id.
    """

    control_offsets: dict[int, int]
    trigger_offsets: dict[int, int]
    matcher: bytes
    bars: bytes
    clients: dict[str, str]
