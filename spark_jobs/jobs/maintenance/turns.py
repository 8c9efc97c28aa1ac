"""One turn of maintenance: at each table compaction, then expiry, then orphans.

In this order each step leaves work to the next one only: compaction leaves snapshots with the old files, expiry leaves
files that no snapshot names. A step that loses against a writer is tried again in a later turn.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from relay.errors import RelayError
from relay.observability import Counters
from relay.protocol.periods import NANOSECONDS
from relay.tables.upkeep import CompactionRules, LakeUpkeep, Outlook, checked_names
from spark_jobs.jobs.settings import JobSettings

__all__ = ["MaintenanceTurns", "Work"]

_LOG = structlog.get_logger(__name__)
_MEBIBYTE = 2**20
_WORTH_A_COMMIT = 20
"""Old snapshots that are too few for a commit of their own wait for company, or for the turn that removes orphans."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a turn does besides forgetting old snapshots."""

    is_compacting: bool = True
    is_removing_orphans: bool = True


class MaintenanceTurns:
    """Does turns, and says what a turn would do.

    Args:
        settings: of the jobs.
        counters: ``maintenance.…`` says what was done.
        open_lake: opens the tables, once for each turn.
        now: the present time in UTC.
    """

    def __init__(
        self,
        settings: JobSettings,
        counters: Counters,
        *,
        open_lake: Callable[[], LakeUpkeep] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings, self._counters, self._now = settings, counters, now
        self._open_lake = open_lake or (lambda: LakeUpkeep(settings.tables()))
        self._lake: LakeUpkeep | None = None
        self._names = checked_names(settings.maintenance_tables)
        self._rules = CompactionRules(
            target_file_bytes=settings.maintenance_target_file_mebibytes * _MEBIBYTE,
            small_file_bytes=settings.maintenance_small_file_mebibytes * _MEBIBYTE,
            small_files_min=settings.maintenance_small_files_min,
        )

    def run(self, work: Work, *, stopping: threading.Event) -> bool:
        """Do one turn; return whether every table could be looked after.

        What goes wrong at a table is counted and logged, and the others have their turn.
        """
        started = time.monotonic_ns()
        is_whole = True
        steps: dict[str, Callable[[str, Work], None]] = {
            "compaction": partial(self._compact, stopping=stopping),
            "expiry": self._expire,
            "orphans": self._remove_orphans,
        }
        for name in self._names:
            for label, step in steps.items():
                if stopping.is_set():
                    break
                try:
                    step(name, work)
                except Exception as error:  # noqa: BLE001 - a damaged file must not keep other steps and tables waiting
                    is_whole = False
                    self._counters.add("maintenance.failures")
                    code = error.code if isinstance(error, RelayError) else ""
                    text = f"{type(error).__name__}: {error}"[:500]
                    _LOG.warning("maintenance_failed", table=name, step=label, error_code=code, error=text)
                    self.close()
        self._counters.add("maintenance.turns")
        self._counters.set("maintenance.turn.last_ms", (time.monotonic_ns() - started) // 1_000_000)
        return is_whole

    def outlooks(self) -> Iterator[Outlook]:
        """Yield what a turn would do at each table; nothing is changed.

        Raises:
            RetryableError: the tables are away.
        """
        now, settings = self._now(), self._settings
        for name in self._names:
            outlook = self._opened().outlook(
                name,
                self._rules,
                closed_before_ns=self._closed_before_ns(now),
                snapshots_before=now - timedelta(hours=settings.snapshot_retention_hours),
                snapshots_max=settings.snapshots_max,
                orphans_before=now - timedelta(hours=settings.maintenance_orphan_hours),
            )
            if outlook is not None:
                yield outlook

    def close(self) -> None:
        """Let go of the catalog; the next turn opens it again."""
        lake, self._lake = self._lake, None
        if lake is not None:
            lake.close()

    def _compact(self, name: str, work: Work, *, stopping: threading.Event) -> None:
        if not work.is_compacting:
            return
        closed_before_ns = self._closed_before_ns(self._now())
        done = self._opened().compact(name, self._rules, closed_before_ns=closed_before_ns, stopping=stopping)
        self._counters.add("maintenance.files.compacted", done.files_before)
        self._counters.add("maintenance.files.written", done.files_after)
        self._counters.add("maintenance.rows.rewritten", done.rows)
        self._counters.add("maintenance.conflicts", done.conflicts)
        self._counters.add("maintenance.files.given_up", done.files_given_up)
        if done.files_before or done.files_given_up:
            _LOG.info(
                "files_compacted",
                table=name,
                before=done.files_before,
                after=done.files_after,
                rows=done.rows,
                commits=done.commits,
                conflicts=done.conflicts,
                given_up=done.files_given_up,
            )

    def _expire(self, name: str, work: Work) -> None:
        expired = self._opened().expire(
            name,
            older_than=self._now() - timedelta(hours=self._settings.snapshot_retention_hours),
            count_max=self._settings.snapshots_max,
            at_least=1 if work.is_removing_orphans else _WORTH_A_COMMIT,
        )
        if expired:
            self._counters.add("maintenance.snapshots.expired", expired)
            _LOG.info("snapshots_expired", table=name, count=expired)

    def _remove_orphans(self, name: str, work: Work) -> None:
        if not work.is_removing_orphans:
            return
        older_than = self._now() - timedelta(hours=self._settings.maintenance_orphan_hours)
        removed = self._opened().remove_orphans(name, older_than=older_than)
        self._counters.add("maintenance.orphans.removed", removed.files)
        self._counters.add("maintenance.orphans.bytes", removed.size_bytes)
        if removed.files:
            _LOG.info("orphans_removed", table=name, files=removed.files, bytes=removed.size_bytes)

    def _closed_before_ns(self, now: datetime) -> int:
        closed = now - timedelta(hours=self._settings.maintenance_open_day_hours)
        return int(closed.timestamp()) * NANOSECONDS

    def _opened(self) -> LakeUpkeep:
        if self._lake is None:
            self._lake = self._open_lake()
        return self._lake
