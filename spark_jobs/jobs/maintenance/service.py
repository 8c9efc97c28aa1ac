"""Maintenance by schedule: a thread of the driver, or the whole of a process of its own."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import structlog

from relay.observability import Counters, StatusServer
from spark_jobs.jobs.checkpoints import lock_checkpoints
from spark_jobs.jobs.maintenance.turns import MaintenanceTurns, Work
from spark_jobs.jobs.settings import JobSettings

__all__ = ["MAINTENANCE", "MaintenanceThread", "WorkSchedule", "keep_maintaining", "maintain_once", "say_outlook"]

MAINTENANCE = "maintenance"
_LOG = structlog.get_logger(__name__)


class WorkSchedule:
    """Which work is due; the first turn does everything."""

    def __init__(self, settings: JobSettings) -> None:
        self._compaction_s, self._orphans_s = (
            settings.maintenance_compaction_seconds,
            settings.maintenance_orphans_seconds,
        )
        self._compacted_at = self._cleaned_at = float("-inf")

    def due(self, now: float) -> Work:
        """Return what is due at a time of the monotonic clock; that is taken for done then."""
        work = Work(
            is_compacting=bool(self._compaction_s) and now - self._compacted_at >= self._compaction_s,
            is_removing_orphans=bool(self._orphans_s) and now - self._cleaned_at >= self._orphans_s,
        )
        if work.is_compacting:
            self._compacted_at = now
        if work.is_removing_orphans:
            self._cleaned_at = now
        return work


class MaintenanceThread:
    """Does turns until it is closed; the first one some minutes after the start, which has more urgent things to do."""

    def __init__(self, settings: JobSettings, counters: Counters) -> None:
        self._settings = settings
        self._turns, self._schedule = MaintenanceTurns(settings, counters), WorkSchedule(settings)
        self._counters = counters
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=MAINTENANCE, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; a group of files that is being rewritten is given up."""
        self._closing.set()
        self._thread.join(timeout=10.0)

    def _run(self) -> None:
        while not self._closing.wait(self._settings.maintenance_expiry_seconds):
            try:
                self._turns.run(self._schedule.due(time.monotonic()), stopping=self._closing)
            except Exception:  # noqa: BLE001 - a dead thread would let files and snapshots grow without a word
                self._counters.add("maintenance.failures")
                _LOG.exception("maintenance_turn_failed")
        self._turns.close()


def keep_maintaining(settings: JobSettings, *, stopping: threading.Event) -> int:
    """Do turns by schedule until ``stopping`` is set by a signal or otherwise; returns the exit code.

    Needs no Spark session.

    Raises:
        SettingsError: another process does maintenance on the same checkpoint folder.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    counters = Counters()
    lock = lock_checkpoints(settings.checkpoint_folder, job=MAINTENANCE)
    status = StatusServer(
        address=settings.status_address,
        port=settings.status_port,
        counters=counters,
        status=lambda: {"ready": not stopping.is_set(), "jobs": [MAINTENANCE]},
    )
    maintenance = MaintenanceThread(settings, counters)
    try:
        stopping.wait()
    finally:
        maintenance.close()
        status.close()
        lock.close()
    return 0


def maintain_once(settings: JobSettings, *, stopping: threading.Event) -> int:
    """Do one turn with all its work; returns the exit code, 1 when a table could not be looked after.

    Raises:
        SettingsError: another process does maintenance on the same checkpoint folder.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    counters = Counters()
    lock = lock_checkpoints(settings.checkpoint_folder, job=MAINTENANCE)
    turns = MaintenanceTurns(settings, counters)
    try:
        is_whole = turns.run(Work(), stopping=stopping)
    finally:
        turns.close()
        lock.close()
    _LOG.info("maintenance_done", **{name.replace(".", "_"): count for name, count in counters.snapshot().items()})
    return 0 if is_whole else 1


def say_outlook(settings: JobSettings, *, say: Callable[[str], None]) -> int:
    """Say what a turn would do, one line a table; returns the exit code.

    Raises:
        RetryableError: the tables are away.
    """
    turns = MaintenanceTurns(settings, Counters())
    try:
        for table in turns.outlooks():
            say(
                f"market.{table.name}: {table.small_files} of {table.files} files become {table.files_after}; "
                f"{table.snapshots_old} of {table.snapshots} snapshots are forgotten; {table.orphans} orphans "
                f"({table.orphan_bytes / 1e6:.1f} MB) are removed; {table.manifests} manifests stay"
            )
    finally:
        turns.close()
    return 0
