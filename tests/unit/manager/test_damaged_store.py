"""A job table that is none, or holds what nobody can read: told with the file, the row and what to do."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from relay.errors import SettingsError, StorageError
from spark_jobs.manager.engine.commands import AddJob, AddRequest
from spark_jobs.manager.job_codec import encode_job
from spark_jobs.manager.store_sqlite import SCHEMA_VERSION, SqliteJobStore
from tests.conformance.test_job_store import JOB
from tests.unit.manager.world import request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.sqlite"
    store = SqliteJobStore(path)
    store.commit([AddJob(JOB), AddRequest(request(job_id=JOB.job_id, request_id="asked"))])
    store.close()
    return path


def change(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "body",
    [
        '{"a":1}',
        "no json",
        "[]",
        "",
        json.dumps({**json.loads(encode_job(JOB)), "state": "unheard of"}),
        json.dumps({**json.loads(encode_job(JOB)), "created_ns": "soon"}),
        json.dumps({**json.loads(encode_job(JOB)), "more": 1}),
    ],
)
def test_a_job_that_cannot_be_understood_is_told_with_its_file_its_id_and_what_to_do(path, body):
    change(path, "INSERT INTO jobs VALUES ('odd', 0, 0, ?)", body)
    store = SqliteJobStore(path)
    with pytest.raises(StorageError, match=r"jobs\.sqlite: the row odd of jobs cannot be understood .*put a copy"):
        store.load()
    store.close()


def test_a_request_and_a_live_job_that_cannot_be_understood_are_told_as_well(path):
    change(path, "UPDATE requests SET body = '{}'")
    store = SqliteJobStore(path)
    for read in (store.load, lambda: store.find("asked")):
        with pytest.raises(StorageError, match="the row asked of requests"):
            read()
    store.close()
    change(path, "DELETE FROM requests")
    change(path, "INSERT INTO realtime VALUES ('live', '{}')")
    store = SqliteJobStore(path)
    with pytest.raises(StorageError, match="the row live of realtime"):
        store.load()
    store.close()


@pytest.mark.parametrize("version", [0, -5, -1])
def test_a_file_with_tables_of_another_origin_is_refused_and_left_as_it_is(path, version):
    change(path, f"PRAGMA user_version={version}")
    with pytest.raises(SettingsError, match=f"got version {version} with the tables exchanges, jobs"):
        SqliteJobStore(path)
    change(path, f"PRAGMA user_version={SCHEMA_VERSION}")
    store = SqliteJobStore(path)
    assert store.load().jobs[0].job_id == JOB.job_id
    store.close()


def test_a_file_whose_tables_are_partly_gone_is_refused(path):
    change(path, "DROP TABLE realtime")
    with pytest.raises(SettingsError, match="damaged"):
        SqliteJobStore(path)


def test_a_file_of_a_newer_manager_is_refused(path):
    change(path, "PRAGMA user_version=99")
    with pytest.raises(SettingsError, match="newer manager"):
        SqliteJobStore(path)


def test_a_folder_in_place_of_the_file_and_a_place_where_none_can_be_are_told(tmp_path):
    with pytest.raises(SettingsError, match="there is a folder"):
        SqliteJobStore(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be made"):
        SqliteJobStore(tmp_path / "file" / "below" / "jobs.sqlite")


def test_an_empty_file_and_a_file_of_the_first_version_are_taken(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    SqliteJobStore(tmp_path / "empty").close()
    change(tmp_path / "empty", "DROP TABLE triggers")
    change(tmp_path / "empty", "PRAGMA user_version=2")
    SqliteJobStore(tmp_path / "empty").close()
    for table in ("triggers", "realtime"):
        change(tmp_path / "empty", f"DROP TABLE {table}")
    change(tmp_path / "empty", "PRAGMA user_version=1")
    SqliteJobStore(tmp_path / "empty").close()
