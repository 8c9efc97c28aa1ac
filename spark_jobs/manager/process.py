"""The manager process: opens everything, runs the loop, closes everything."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from types import FrameType

import structlog

from relay.eventlog import EventLog
from relay.observability import StatusServer, new_counters
from relay.tables.port import TableReader
from relay.transport import Waker, new_context
from spark_jobs.manager.control_teller import ControlTeller
from spark_jobs.manager.firings_reader import FiringsReader
from spark_jobs.manager.log_watch import LogWatch
from spark_jobs.manager.lookups import TableLookups
from spark_jobs.manager.loop import close_sockets, open_sockets, run_loop
from spark_jobs.manager.replays import ReplayDesk
from spark_jobs.manager.service import ManagerService
from spark_jobs.manager.settings import ManagerSettings
from spark_jobs.manager.statistics_reader import StatisticsReader
from spark_jobs.manager.store_sqlite import SqliteJobStore

__all__ = ["StopFlag", "run_manager"]

_log = structlog.get_logger(__name__)


class StopFlag:
    """Set by SIGTERM and SIGINT, and when the parent process is gone.

    Args:
        waker: of the loop.
        parent_pid: process whose end stops this one, or None.
    """

    def __init__(self, waker: Waker, *, parent_pid: int | None) -> None:
        self._waker = waker
        self._parent_pid = parent_pid
        self._is_set = False

    def install(self) -> None:
        """Take the signals; only in the main thread."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)

    def __call__(self) -> bool:
        return self._is_set or (self._parent_pid is not None and os.getppid() != self._parent_pid)

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        self._is_set = True
        self._waker.wake()


def run_manager(
    settings: ManagerSettings,
    *,
    open_tables: Callable[[], TableReader],
    open_log: Callable[[], EventLog] | None = None,
    parent_pid: int | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or the parent's end.

    Args:
        settings: of the process.
        open_tables: opens the tables; called on the thread that reads them.
        open_log: opens the event log, for replays; called on the thread that reads it.
        parent_pid: process whose end stops this one.

    Raises:
        SettingsError: an endpoint or the job table is taken, or the job table is of a newer version.
        StorageError: the job table cannot be read.
    """
    waker, context = Waker(), new_context()
    counters, shared = new_counters("manager", shared_memory=settings.shared_memory)
    stop = StopFlag(waker, parent_pid=parent_pid)
    stop.install()
    store = SqliteJobStore(settings.store_path)
    sockets = open_sockets(context, settings)
    lookups = TableLookups(open_tables, waker)
    log_watch = LogWatch(open_log, topic_prefix=settings.topic_prefix)
    control = ControlTeller(open_log, topic_prefix=settings.topic_prefix)
    firings = FiringsReader(open_log, topic_prefix=settings.topic_prefix, waker=waker)
    replays = ReplayDesk(open_log, topic_prefix=settings.topic_prefix, waker=waker)
    statistics = StatisticsReader(open_log, topic_prefix=settings.topic_prefix, waker=waker)
    service = ManagerService(
        settings,
        store=store,
        lookups=lookups,
        replays=replays,
        statistics=statistics,
        sockets=sockets,
        counters=counters,
        now_ns=time.time_ns(),
        log_watch=log_watch,
        control=control,
        firings=firings,
    )
    status = StatusServer(
        address=settings.status_address, port=settings.status_port, counters=counters, status=service.status
    )
    _log.info("manager_started", status_port=status.port, requests=settings.request_endpoint)
    try:
        run_loop(service, sockets, waker, stop)
    finally:
        status.close()
        if shared is not None:
            shared.close()
        close_sockets(sockets)
        lookups.close()
        replays.close()
        statistics.close()
        log_watch.close()
        control.close()
        firings.close()
        store.close()
        context.term()
        waker.close()
        _log.info("manager_stopped")
