"""How far a table has come in the event log: kept in the table's own commits.

Each table compares a replay with its own stored offsets, so a lost checkpoint or a crash between two commits changes
nothing. Offsets count only for the log they came from: another cluster or topic id trims nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

__all__ = [
    "HISTORY_JOB",
    "SourceOffsets",
    "carried_offsets",
    "covered_offsets",
    "offsets_keepers",
    "stored_offsets",
]

HISTORY_JOB = "history"
"""Name under which the history job keeps its offsets."""

_JOB = "market-relay.job"
_SOURCE = "market-relay.source"
_OFFSETS = "market-relay.offsets"
_COVERED = "market-relay.covered-offsets"
_BATCH = "market-relay.batch-id"
_SOURCES_MAX = 4


@dataclass(frozen=True, slots=True)
class SourceOffsets:
    """End offsets (after the last record) of every partition of one topic.

    Attributes:
        job: fixed name of the writing job.
        cluster_id, topic_id: which log these offsets belong to.
        end_offsets: by partition.
    """

    job: str
    cluster_id: str
    topic_id: str
    end_offsets: Mapping[int, int] = field(default_factory=dict)

    def summary(self, *, batch_id: int, covered: SourceOffsets | None = None) -> dict[str, str]:
        """Return the snapshot properties that keep these offsets.

        Args:
            batch_id: information only.
            covered: offsets of the same log before which every batch has its coverage row already.
        """
        kept = {
            _JOB: self.job,
            _SOURCE: f"{self.cluster_id}/{self.topic_id}",
            _OFFSETS: _text_of(self.end_offsets),
            _BATCH: str(batch_id),
        }
        return kept if covered is None else kept | {_COVERED: _text_of(covered.end_offsets)}

    def advanced(self, end_offsets: Mapping[int, int]) -> SourceOffsets:
        """Return these offsets moved forward; never back."""
        merged = {p: max(o, self.end_offsets.get(p, 0)) for p, o in {**self.end_offsets, **end_offsets}.items()}
        return SourceOffsets(self.job, self.cluster_id, self.topic_id, merged)

    def fresh(self, rows: pa.Table, *, partition: str = "log_partition", offset: str = "log_offset") -> pa.Table:
        """Return the rows at or after these offsets.

        Args:
            rows: of records of this topic.
            partition, offset: names of the columns that tell each row's place in the log.
        """
        for number, end in self.end_offsets.items():
            old = pc.and_(pc.equal(rows[partition], number), pc.less(rows[offset], end))
            rows = rows.filter(pc.invert(old))
        return rows


def stored_offsets(table: Table, *, job: str, cluster_id: str, topic_id: str) -> SourceOffsets:
    """Return the offsets that the newest commit of a job has kept; empty when it has none for this log."""
    return SourceOffsets(job, cluster_id, topic_id, _newest(table, _OFFSETS, job, f"{cluster_id}/{topic_id}"))


def covered_offsets(table: Table, *, job: str, cluster_id: str, topic_id: str) -> SourceOffsets:
    """Return before which offsets every batch had its coverage row when the newest commit of a job was made.

    Only commits of ``market.tick_bars`` say so: records that make no coverage rows move nothing in that table.
    """
    return SourceOffsets(job, cluster_id, topic_id, _newest(table, _COVERED, job, f"{cluster_id}/{topic_id}"))


def offsets_keepers(table: Table) -> set[int]:
    """Return the snapshots that keep the offsets of each job and log: expiry must leave them.

    Of each job those of the :data:`_SOURCES_MAX` logs that were written last: one that was made anew never comes back.
    """
    found: dict[tuple[str, str, str], int] = {}
    sources: dict[str, list[str]] = {}
    for snapshot in _lineage(table):
        kept = _properties(snapshot)
        job, source = kept.get(_JOB), kept.get(_SOURCE)
        if job is None or source is None:
            continue
        known = sources.setdefault(job, [])
        if source not in known and len(known) < _SOURCES_MAX:
            known.append(source)
        for name in (_OFFSETS, _COVERED):
            if name in kept and source in known:
                found.setdefault((name, job, source), snapshot.snapshot_id)
    return set(found.values())


def carried_offsets(table: Table) -> dict[str, str]:
    """Return the snapshot properties by which a commit that changes no row goes on keeping the newest offsets.

    With them no older snapshot, and none of the files that it names, has to stay for the sake of its offsets. Those of
    other jobs and logs stay where they are.
    """
    for snapshot in _lineage(table):
        kept = _properties(snapshot)
        if _OFFSETS in kept:
            return {name: text for name, text in kept.items() if name in (_JOB, _SOURCE, _OFFSETS, _COVERED, _BATCH)}
    return {}


def _newest(table: Table, name: str, job: str, source: str) -> dict[int, int]:
    for snapshot in _lineage(table):
        kept = _properties(snapshot)
        if name in kept and kept.get(_JOB) == job and kept.get(_SOURCE) == source:
            return {int(p): int(o) for p, o in json.loads(kept[name]).items()}
    return {}


def _lineage(table: Table) -> Iterator[Snapshot]:
    """The head and what it descends from, newest first; a hole that expiry has left is gone over.

    Expiry takes from a snapshot the name of a parent that it removes, so a hole looks like a beginning: what is behind
    it is found by the sequence number, which rises with each commit.
    """
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        parent_id, number = snapshot.parent_snapshot_id, snapshot.sequence_number or 0
        snapshot = by_id.get(parent_id) if parent_id is not None else None
        if snapshot is None:
            older = (other for other in by_id.values() if (other.sequence_number or 0) < number)
            snapshot = max(older, key=lambda other: other.sequence_number or 0, default=None)


def _properties(snapshot: Snapshot) -> Mapping[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary is not None else {}


def _text_of(end_offsets: Mapping[int, int]) -> str:
    return json.dumps({str(p): o for p, o in sorted(end_offsets.items())})
