"""The job table in SQLite: write-ahead log, every commit on disk before it returns."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from relay.errors import SettingsError, StorageError
from spark_jobs.manager.engine.commands import (
    AddJob,
    AddRequest,
    Change,
    DropRealtime,
    DropTrigger,
    EndJob,
    MarkPublished,
    RememberExchange,
    SaveJob,
    SaveRealtime,
    SaveTrigger,
)
from spark_jobs.manager.engine.model import Job, JobState, Outcome, StoredRequest, StoredState
from spark_jobs.manager.job_codec import (
    decode_job,
    decode_realtime,
    decode_request,
    decode_trigger,
    encode_job,
    encode_realtime,
    encode_request,
)

__all__ = ["SCHEMA_VERSION", "SqliteJobStore"]

SCHEMA_VERSION = 3
_SCHEMA = """
CREATE TABLE jobs (
  job_id TEXT PRIMARY KEY, is_ended INTEGER NOT NULL, ended_ns INTEGER NOT NULL, body TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX jobs_by_end ON jobs (is_ended, ended_ns);
CREATE TABLE requests (
  request_id TEXT PRIMARY KEY, job_id TEXT NOT NULL REFERENCES jobs (job_id), body TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX requests_by_job ON requests (job_id);
CREATE TABLE outcomes (
  request_id TEXT PRIMARY KEY REFERENCES requests (request_id), topic TEXT NOT NULL, notification BLOB NOT NULL,
  completed_ns INTEGER NOT NULL, published_ns INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX outcomes_by_publication ON outcomes (published_ns);
CREATE TABLE exchanges (exchange TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_SCHEMA_2 = "CREATE TABLE realtime (job_id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;"
_SCHEMA_3 = """
CREATE TABLE triggers (
  trigger_id TEXT PRIMARY KEY, definition BLOB NOT NULL, registered_ns INTEGER NOT NULL, state TEXT NOT NULL,
  ended_ns INTEGER NOT NULL
) WITHOUT ROWID;
"""
_SCHEMAS = (_SCHEMA, _SCHEMA_2, _SCHEMA_3)
"""What each version adds to the one before it."""


_TABLE = re.compile(r"CREATE TABLE (\w+)")
T = TypeVar("T")


class SqliteJobStore:
    """A :class:`~spark_jobs.manager.ports.JobStore` in one file, opened by one process.

    Args:
        path: database file; its folder is created.

    Raises:
        SettingsError: the file was written by a newer version, or another process holds it.
        StorageError: the file cannot be opened or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _check_place(path)
        with self._storage_errors("opening"):
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=1.0)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode=EXCLUSIVE")
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        run("PRAGMA foreign_keys=ON")
        run("BEGIN IMMEDIATE")
        version = run("PRAGMA user_version").fetchone()[0]
        self._check_version(version)
        for addition in _SCHEMAS[version:]:
            for statement in filter(str.strip, addition.split(";")):
                run(statement)
        run(f"PRAGMA user_version={SCHEMA_VERSION}")
        run("COMMIT")

    def _check_version(self, version: int) -> None:
        """Refuse files that hold something else, before anything in them is changed."""
        if version > SCHEMA_VERSION:
            raise SettingsError(
                f"expected {self._path} with schema version {SCHEMA_VERSION}, got {version} of a newer manager; "
                "start that version, or give this one another file"
            )
        tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        expected = {name for text in _SCHEMAS[: max(version, 0)] for name in _TABLE.findall(text)}
        if version < 0 or (version == 0 and tables) or not expected <= tables:
            raise SettingsError(
                f"expected an empty file or a job table of schema version 1 to {SCHEMA_VERSION} at {self._path}, got "
                f"version {version} with the tables {', '.join(sorted(tables)) or '(none)'}; it is another program's "
                "or damaged: put a copy back, or move it away to begin with an empty one"
            )

    def load(self) -> StoredState:
        """See the port.

        Raises:
            StorageError: names the row that cannot be understood.
        """
        with self._storage_errors("reading"):
            run = self._connection.execute
            jobs = [
                self._decoded(decode_job, "jobs", *row)
                for row in run("SELECT job_id, body FROM jobs WHERE is_ended = 0")
            ]
            requests = [
                self._decoded(decode_request, "requests", *row)
                for row in run(
                    "SELECT r.request_id, r.body FROM jobs j JOIN requests r ON r.job_id = j.job_id "
                    "WHERE j.is_ended = 0"
                )
            ]
            exchanges = frozenset(name for (name,) in run("SELECT exchange FROM exchanges"))
            realtime = [
                self._decoded(decode_realtime, "realtime", *row)
                for row in run("SELECT job_id, body FROM realtime ORDER BY job_id")
            ]
            triggers = [
                self._decoded(decode_trigger, "triggers", *row)
                for row in run(
                    "SELECT trigger_id, trigger_id, definition, registered_ns, state, ended_ns FROM triggers "
                    "ORDER BY trigger_id"
                )
            ]
        return StoredState(
            tuple(sorted(jobs, key=lambda j: (j.created_ns, j.job_id))),
            tuple(sorted(requests, key=lambda r: (r.submitted_ns, r.request_id))),
            exchanges,
            tuple(realtime),
            tuple(triggers),
        )

    def find(self, request_id: str) -> StoredRequest | None:
        """See the port."""
        with self._storage_errors("reading"):
            row = self._connection.execute(
                "SELECT r.body, o.topic, o.notification, o.completed_ns, o.published_ns FROM requests r "
                "LEFT JOIN outcomes o ON o.request_id = r.request_id WHERE r.request_id = ?",
                (request_id,),
            ).fetchone()
        if row is None:
            return None
        body, *outcome = row
        request = self._decoded(decode_request, "requests", request_id, body)
        return StoredRequest(request, Outcome(request_id, *outcome) if outcome[0] is not None else None)

    def commit(self, changes: Sequence[Change]) -> None:
        """See the port."""
        with self._storage_errors("writing"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                for change in changes:
                    self._apply(change)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def outbox(self, *, published_since_ns: int) -> Sequence[Outcome]:
        """See the port."""
        with self._storage_errors("reading"):
            rows = self._connection.execute(
                "SELECT request_id, topic, notification, completed_ns, published_ns FROM outcomes "
                "WHERE published_ns = 0 OR published_ns >= ? ORDER BY completed_ns, request_id",
                (published_since_ns,),
            ).fetchall()
        return [Outcome(*row) for row in rows]

    def prune(self, *, ended_before_ns: int) -> int:
        """See the port."""
        old = (
            "SELECT job_id FROM jobs WHERE is_ended = 1 AND ended_ns < ? AND NOT EXISTS (SELECT 1 FROM requests r "
            "JOIN outcomes o ON o.request_id = r.request_id WHERE r.job_id = jobs.job_id AND o.published_ns = 0)"
        )
        with self._storage_errors("writing"):
            run = self._connection.execute
            job_ids = run(old, (ended_before_ns,)).fetchall()
            run("BEGIN IMMEDIATE")
            try:
                for job_id in job_ids:
                    run(
                        "DELETE FROM outcomes WHERE request_id IN (SELECT request_id FROM requests WHERE job_id = ?)",
                        job_id,
                    )
                    run("DELETE FROM requests WHERE job_id = ?", job_id)
                    run("DELETE FROM jobs WHERE job_id = ?", job_id)
                run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    run("ROLLBACK")
                raise
        return len(job_ids)

    def close(self) -> None:
        """See the port."""
        self._connection.close()

    def _apply(self, change: Change) -> None:
        run = self._connection.execute
        match change:
            case AddJob(job):
                run("INSERT INTO jobs VALUES (?, 0, 0, ?)", (job.job_id, encode_job(job)))
            case AddRequest(request):
                self._expect_unfinished(
                    run("UPDATE jobs SET is_ended = 0 WHERE job_id = ? AND is_ended = 0", (request.job_id,)),
                    request.job_id,
                )
                run(
                    "INSERT INTO requests VALUES (?, ?, ?)",
                    (request.request_id, request.job_id, encode_request(request)),
                )
            case SaveJob(job):
                self._save(job, is_ended=0, ended_ns=0)
            case EndJob(job, outcomes, ended_ns):
                self._save(replace(job, state=JobState.ENDED), is_ended=1, ended_ns=ended_ns)
                rows = [(o.request_id, o.topic, o.notification, o.completed_ns, o.published_ns) for o in outcomes]
                self._connection.executemany("INSERT INTO outcomes VALUES (?, ?, ?, ?, ?)", rows)
            case MarkPublished(request_ids, published_ns):
                self._connection.executemany(
                    "UPDATE outcomes SET published_ns = ? WHERE request_id = ?",
                    [(published_ns, request_id) for request_id in request_ids],
                )
            case RememberExchange(exchange):
                run("INSERT OR IGNORE INTO exchanges VALUES (?)", (exchange,))
            case SaveRealtime(job=live):
                run("INSERT OR REPLACE INTO realtime VALUES (?, ?)", (live.job_id, encode_realtime(live)))
            case DropRealtime(job_id):
                run("DELETE FROM realtime WHERE job_id = ?", (job_id,))
            case SaveTrigger(trigger=t):
                row = (t.trigger_id, t.definition, t.registered_ns, t.state, t.ended_ns)
                run("INSERT OR REPLACE INTO triggers VALUES (?, ?, ?, ?, ?)", row)
            case DropTrigger(trigger_id):
                run("DELETE FROM triggers WHERE trigger_id = ?", (trigger_id,))

    def _save(self, job: Job, *, is_ended: int, ended_ns: int) -> None:
        changed = self._connection.execute(
            "UPDATE jobs SET is_ended = ?, ended_ns = ?, body = ? WHERE job_id = ? AND is_ended = 0",
            (is_ended, ended_ns, encode_job(job), job.job_id),
        )
        self._expect_unfinished(changed, job.job_id)

    def _decoded(self, decode: Callable[..., T], table: str, row_id: str, *body: Any) -> T:
        try:
            return decode(*body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(
                f"{self._path}: the row {row_id} of {table} cannot be understood ({type(error).__name__}: {error}); "
                "put a copy of the file back, or delete that row with what belongs to it (sqlite3, while no manager "
                "runs) and submit its request again"
            ) from error

    @staticmethod
    def _expect_unfinished(changed: sqlite3.Cursor, job_id: str) -> None:
        if changed.rowcount != 1:
            raise StorageError(f"expected an unfinished job, but {job_id} has ended or does not exist")

    @contextmanager
    def _storage_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise SettingsError(
                    f"{what} {self._path}: another process holds it; stop that manager or use another file"
                ) from error
            raise StorageError(f"{what} {self._path} failed: {error}; {_advice(str(error))}") from error
        except sqlite3.Error as error:
            raise StorageError(f"{what} {self._path} failed: {error}") from error


def _check_place(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"the folder of the job table {path} cannot be made: {error.strerror}; check store_path and its rights"
        ) from error
    if path.is_dir():
        raise SettingsError(
            f"expected a file for the job table at {path}, but there is a folder; set store_path to a file"
        )


def _advice(error: str) -> str:
    if "unable to open" in error or "readonly" in error:
        return "check the path and its rights"
    if "full" in error or "disk I/O" in error:
        return "free some space or mend the disk"
    return "put a copy of the file back, or give the manager another file"
