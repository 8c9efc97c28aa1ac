"""Looking after the tables: compaction, then expiry of snapshots, then orphans; one face for the maintenance job."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from relay.errors import SettingsError
from relay.tables.catalog import TableSettings, open_catalog, open_table, storage_errors
from relay.tables.compaction import COMPACTED_TABLES, Compacted, CompactionRules, compact, groups_of, small_files
from relay.tables.expiry import expirable_snapshots, expire_snapshots
from relay.tables.orphans import find_orphans, remove_orphans
from relay.tables.schema import TABLE_COLUMNS

__all__ = ["KEPT_TABLES", "Compacted", "CompactionRules", "LakeUpkeep", "Outlook", "Removed", "checked_names"]

KEPT_TABLES = tuple(TABLE_COLUMNS)
"""Names of the tables that are looked after."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Files that were removed."""

    files: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Outlook:
    """What there is to do at a table.

    Attributes:
        files, small_files: data files of the head that may be compacted, and those that would be.
        files_after: how many the latter would become.
        snapshots, snapshots_old: of the table, and those that would be forgotten.
        manifests: of the head.
        orphans, orphan_bytes: files that would be removed.
    """

    name: str
    files: int
    small_files: int
    files_after: int
    snapshots: int
    snapshots_old: int
    manifests: int
    orphans: int
    orphan_bytes: int


class LakeUpkeep:
    """Does one kind of work at one table at a time; its commits are conflict-safe. One thread.

    Args:
        settings: where the tables are.

    Raises:
        RetryableError: the catalog does not answer.
    """

    def __init__(self, settings: TableSettings) -> None:
        self._catalog = open_catalog(settings)
        self._seen: dict[str, str] = {}

    def compact(
        self, name: str, rules: CompactionRules, *, closed_before_ns: int, stopping: threading.Event
    ) -> Compacted:
        """Put small files together; a table that nobody has committed to since the last time is not read again.

        Arguments and errors as for :func:`relay.tables.compaction.compact`.
        """
        if name not in COMPACTED_TABLES:
            return Compacted()
        # A day that has closed meanwhile makes work too, so that is part of what was seen.
        seen = f"{self._head(name)} {closed_before_ns // (86_400 * 10**9)}"
        if self._seen.get(name) == seen:
            return Compacted()
        done = compact(self._catalog, name, rules, closed_before_ns=closed_before_ns, stopping=stopping)
        if not done.commits and not stopping.is_set():
            self._seen[name] = seen
        return done

    def expire(self, name: str, *, older_than: datetime, count_max: int, at_least: int = 1) -> int:
        """Forget old snapshots; see :func:`relay.tables.expiry.expire_snapshots`."""
        return expire_snapshots(self._catalog, name, older_than=older_than, count_max=count_max, at_least=at_least)

    def remove_orphans(self, name: str, *, older_than: datetime) -> Removed:
        """Remove what no snapshot names; see :func:`relay.tables.orphans.find_orphans`."""
        found = find_orphans(self._catalog, name, older_than=older_than)
        files = remove_orphans(self._catalog, name, found)
        return Removed(files, sum(orphan.size_bytes for orphan in found) if files else 0)

    def outlook(
        self,
        name: str,
        rules: CompactionRules,
        *,
        closed_before_ns: int,
        snapshots_before: datetime,
        snapshots_max: int,
        orphans_before: datetime,
    ) -> Outlook | None:
        """Return what there is to do at a table, and do nothing; None for a table that does not exist."""
        with storage_errors(f"looking at market.{name}"):
            table = open_table(self._catalog, name)
            if table is None:
                return None
            snapshot = table.current_snapshot()
            is_read = snapshot is not None and name in COMPACTED_TABLES
            files = small_files(table, name, closed_before_ns=closed_before_ns)[0] if is_read else []
            groups = groups_of(files, rules)
            old = expirable_snapshots(table, older_than=snapshots_before, count_max=snapshots_max)
            manifests = len(snapshot.manifests(table.io)) if snapshot is not None else 0
        orphans = find_orphans(self._catalog, name, older_than=orphans_before)
        return Outlook(
            name,
            files=len(files),
            small_files=sum(map(len, groups)),
            files_after=len(groups),
            snapshots=len(table.metadata.snapshots),
            snapshots_old=len(old),
            manifests=manifests,
            orphans=len(orphans),
            orphan_bytes=sum(orphan.size_bytes for orphan in orphans),
        )

    def close(self) -> None:
        """Let go of the catalog's connections."""
        self._catalog.close()

    def _head(self, name: str) -> str:
        with storage_errors(f"opening market.{name}"):
            table = open_table(self._catalog, name)
        snapshot = table.current_snapshot() if table is not None else None
        return str(snapshot.snapshot_id) if snapshot is not None else ""


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the tables that are meant: those that are named, in the order in which they are looked after, or all.

    Raises:
        SettingsError: there is no table of that name.
    """
    unknown = [name for name in names if name not in KEPT_TABLES]
    if unknown:
        raise SettingsError(f"expected tables to look after out of {', '.join(KEPT_TABLES)}, got {', '.join(unknown)}")
    return tuple(name for name in KEPT_TABLES if not names or name in names)
