"""A real manager process for tests: tables out of a file, and a kill after a chosen commit.

``python -m tests.support.manager_process SETTINGS.json TABLES.jsonl [AddRequest|SaveJob|EndJob]``
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from spark_jobs.manager.engine.commands import Change
from spark_jobs.manager.process import run_manager
from spark_jobs.manager.settings import ManagerSettings
from spark_jobs.manager.store_sqlite import SqliteJobStore
from tests.support.tables import FileTables


def die_after_committing(kind: str) -> None:
    """Kill this process once a change of that kind is on disk, before anything is said about it."""
    commit = SqliteJobStore.commit

    def commit_and_die(store: SqliteJobStore, changes: Sequence[Change]) -> None:
        commit(store, changes)
        if any(type(change).__name__ == kind for change in changes):
            os.kill(os.getpid(), signal.SIGKILL)

    SqliteJobStore.commit = commit_and_die  # type: ignore[method-assign]


if __name__ == "__main__":
    settings_path, tables_path, *kill = sys.argv[1:]
    for name in kill:
        die_after_committing(name)
    run_manager(
        ManagerSettings(**json.loads(Path(settings_path).read_text())),
        open_tables=lambda: FileTables(Path(tables_path)),
    )
