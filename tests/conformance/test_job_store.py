"""One behaviour over both job tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from relay.errors import SettingsError, StorageError
from relay.protocol.ranges import Range
from relay.protocol.v1 import trigger_pb2
from spark_jobs.manager.engine.commands import (
    AddJob,
    AddRequest,
    DropTrigger,
    EndJob,
    MarkPublished,
    RememberExchange,
    SaveJob,
    SaveTrigger,
)
from spark_jobs.manager.engine.model import (
    Assignment,
    Job,
    JobKind,
    JobState,
    Outcome,
    Request,
    StoredTrigger,
    TriggerState,
)
from spark_jobs.manager.ports import JobStore
from spark_jobs.manager.store_memory import MemoryJobStore
from spark_jobs.manager.store_sqlite import SCHEMA_VERSION, SqliteJobStore

BIG = 2**62 + 1
JOB = Job(
    job_id="job",
    kind=JobKind.HISTORICAL,
    ticker="BTC/USDT.BINANCE",
    exchange="BINANCE",
    created_ns=BIG,
    period_seconds=60,
    fetch=Range(BIG, BIG + 60),
    limit=3,
    state=JobState.DISPATCHED,
    attempt=2,
    stored=(Range(1, 2),),
    logged=(Range(3, 4), Range(5, 6)),
    deadline_ns=BIG + 7,
    assignment=Assignment("one", 2**63, 1, 4, "BINANCE", 1),
)


def request(request_id: str = "request", job_id: str = "job") -> Request:
    return Request(request_id, job_id, None, "BTC/USDT.BINANCE", 60, BIG, BIG + 60, 3, BIG)


def outcome(request_id: str = "request", completed_ns: int = 10) -> Outcome:
    return Outcome(request_id, f"HISTORY_READY:{request_id}", b"\x00\xff", completed_ns)


def end(job: Job = JOB, *outcomes: Outcome, ended_ns: int = 10) -> EndJob:
    return EndJob(replace(job, state=JobState.ENDED), outcomes, ended_ns)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JobStore]:
    opened: JobStore = MemoryJobStore() if request.param == "memory" else SqliteJobStore(tmp_path / "jobs.sqlite")
    yield opened
    opened.close()


def test_an_empty_store_has_nothing(store: JobStore) -> None:
    assert (store.load().jobs, store.load().requests, store.find("request")) == ((), (), None)
    assert list(store.outbox(published_since_ns=0)) == []


def test_jobs_and_requests_come_back_as_they_were(store: JobStore) -> None:
    store.commit([AddJob(JOB), AddRequest(request()), RememberExchange("BINANCE"), RememberExchange("BINANCE")])
    state = store.load()
    assert (state.jobs, state.requests, state.exchanges) == ((JOB,), (request(),), {"BINANCE"})
    found = store.find("request")
    assert found is not None
    assert (found.request, found.outcome) == (request(), None)


def test_a_jobs_new_state_replaces_the_old_one(store: JobStore) -> None:
    store.commit([AddJob(JOB)])
    changed = replace(JOB, state=JobState.DELIVERED, assignment=None, deadline_ns=None, error_code="X")
    store.commit([SaveJob(changed)])
    assert store.load().jobs == (changed,)


def test_an_end_gives_each_request_its_outcome_and_leaves_the_unfinished(store: JobStore) -> None:
    store.commit([AddJob(JOB), AddRequest(request("a")), AddRequest(request("b"))])
    store.commit([end(JOB, outcome("a"), outcome("b"))])
    assert store.load().jobs == store.load().requests == ()
    found = store.find("b")
    assert found is not None
    assert found.outcome == outcome("b")


def test_a_request_cannot_join_a_job_that_has_ended(store: JobStore) -> None:
    store.commit([AddJob(JOB), end()])
    with pytest.raises(StorageError):
        store.commit([AddRequest(request())])
    assert store.find("request") is None


def test_a_job_ends_once(store: JobStore) -> None:
    store.commit([AddJob(JOB), end()])
    with pytest.raises(StorageError):
        store.commit([end()])
    with pytest.raises(StorageError):
        store.commit([SaveJob(JOB)])


def test_ids_are_used_once(store: JobStore) -> None:
    store.commit([AddJob(JOB), AddRequest(request())])
    with pytest.raises(StorageError):
        store.commit([AddJob(JOB)])
    with pytest.raises(StorageError):
        store.commit([AddRequest(request())])


def test_a_commit_is_all_or_nothing(store: JobStore) -> None:
    with pytest.raises(StorageError):
        store.commit([AddJob(JOB), AddRequest(request()), SaveJob(replace(JOB, job_id="missing"))])
    assert store.load().jobs == ()
    store.commit([AddJob(JOB)])


def test_the_outbox_holds_the_unpublished_and_the_lately_published(store: JobStore) -> None:
    store.commit([AddJob(JOB), AddRequest(request("a")), AddRequest(request("b")), AddRequest(request("c"))])
    store.commit([end(JOB, outcome("c", 30), outcome("b", 20), outcome("a", 10))])
    store.commit([MarkPublished(("a",), 100), MarkPublished(("b",), 200), MarkPublished(("unknown",), 1)])
    assert [o.request_id for o in store.outbox(published_since_ns=200)] == ["b", "c"]
    assert [o.request_id for o in store.outbox(published_since_ns=201)] == ["c"]
    assert [o.published_ns for o in store.outbox(published_since_ns=0)] == [100, 200, 0]


def test_pruning_forgets_old_published_ends_only(store: JobStore) -> None:
    for name, ended_ns in (("old", 10), ("unpublished", 10), ("new", 20)):
        job = replace(JOB, job_id=name)
        store.commit([AddJob(job), AddRequest(request(name, name)), end(job, outcome(name), ended_ns=ended_ns)])
    store.commit([MarkPublished(("old", "new"), 30), AddJob(replace(JOB, job_id="running"))])
    assert store.prune(ended_before_ns=20) == 1
    assert [store.find(name) is None for name in ("old", "unpublished", "new")] == [True, False, False]
    assert [job.job_id for job in store.load().jobs] == ["running"]


def trigger(trigger_id: str = "trigger") -> StoredTrigger:
    definition = trigger_pb2.CEPTriggerRequest(trigger_id=trigger_id, cooldown_ms=BIG, one_shot=True)
    return StoredTrigger(trigger_id, definition.SerializeToString(), BIG)


def test_triggers_come_back_as_they_were_in_the_order_of_their_ids(store: JobStore) -> None:
    store.commit([SaveTrigger(trigger("b")), SaveTrigger(trigger("a"))])
    assert store.load().triggers == (trigger("a"), trigger("b"))


def test_a_triggers_end_replaces_what_was_stored_and_dropping_it_forgets_it(store: JobStore) -> None:
    store.commit([SaveTrigger(trigger())])
    for state in TriggerState:
        ended = replace(trigger(), state=state, ended_ns=BIG + 1)
        store.commit([SaveTrigger(ended)])
        assert store.load().triggers == (ended,)
    store.commit([DropTrigger("trigger"), DropTrigger("unknown")])
    assert store.load().triggers == ()


def test_a_trigger_is_stored_with_the_other_changes_or_not_at_all(store: JobStore) -> None:
    with pytest.raises(StorageError):
        store.commit([SaveTrigger(trigger()), SaveJob(JOB)])
    assert store.load().triggers == ()


def test_a_database_of_the_version_before_triggers_is_opened_and_keeps_its_jobs(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    store = SqliteJobStore(path)
    store.commit([AddJob(JOB)])
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE triggers")
    connection.execute("PRAGMA user_version=2")
    connection.close()
    store = SqliteJobStore(path)
    store.commit([SaveTrigger(trigger())])
    assert (store.load().jobs, store.load().triggers) == ((JOB,), (trigger(),))
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE triggers SET definition = x'ff'",
        "UPDATE triggers SET definition = x''",
        "UPDATE triggers SET definition = 'text'",
        "UPDATE triggers SET state = 'unheard of'",
        "UPDATE triggers SET ended_ns = 'soon'",
    ],
)
def test_a_trigger_that_cannot_be_understood_is_told_with_its_id(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "jobs.sqlite"
    store = SqliteJobStore(path)
    store.commit([SaveTrigger(trigger())])
    store.close()
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    store = SqliteJobStore(path)
    with pytest.raises(StorageError, match="the row trigger of triggers cannot be understood"):
        store.load()
    store.close()


def test_what_was_committed_is_there_after_a_kill(tmp_path: Path) -> None:
    store = SqliteJobStore(tmp_path / "jobs.sqlite")
    store.commit([AddJob(JOB), AddRequest(request()), end(JOB, outcome())])
    copies = tmp_path / "after the kill"
    copies.mkdir()
    for file in tmp_path.glob("jobs.sqlite*"):
        (copies / file.name).write_bytes(file.read_bytes())
    store.close()
    reopened = SqliteJobStore(copies / "jobs.sqlite")
    assert list(reopened.outbox(published_since_ns=0)) == [outcome()]
    reopened.close()


def test_a_newer_schema_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    SqliteJobStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(SettingsError, match=f"schema version {SCHEMA_VERSION}, got {SCHEMA_VERSION + 1}"):
        SqliteJobStore(path)


def test_a_second_process_on_the_same_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    store = SqliteJobStore(path)
    store.commit([AddJob(JOB)])
    with pytest.raises(SettingsError, match="another process holds it"):
        SqliteJobStore(path)
    store.close()


def test_a_file_that_is_no_database_is_a_storage_error(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StorageError):
        SqliteJobStore(path)


def test_a_full_disk_is_a_storage_error_and_changes_nothing(
    tmp_path: Path, fill_disk: Callable[[SqliteJobStore], None]
) -> None:
    store = SqliteJobStore(tmp_path / "jobs.sqlite")
    store.commit([AddJob(JOB)])
    fill_disk(store)
    with pytest.raises(StorageError, match="free some space"):
        store.commit([AddRequest(replace(request(str(n)), ticker="T" * 4096)) for n in range(200)])
    assert store.load().requests == ()
    store.close()


@pytest.fixture
def fill_disk() -> Callable[[SqliteJobStore], None]:
    """SQLite itself says SQLITE_FULL when a database may not grow."""

    def limit(store: SqliteJobStore) -> None:
        connection = store._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")

    return limit
