"""The real process: kill -9 at each step, SIGTERM, a second one on the same file, a full disk."""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from relay.errors import StorageError
from relay.protocol.v1 import request_pb2, work_pb2
from spark_jobs.manager.engine.commands import AddRequest, SaveRealtime
from spark_jobs.manager.store_memory import MemoryJobStore
from tests.support.manager import BTC, Endpoints, Ingestor, ManagerThread, Relay, asked_range, history
from tests.support.processes import Process, free_port, wait_until
from tests.support.tables import FileTables, MemoryTables, coverage_row

REPOSITORY = Path(__file__).resolve().parents[3]
Submit = request_pb2.SubmitResponse
Notification = request_pb2.HistoryReadyNotification


class ManagerProcess:
    """Starts one manager process after another on the same ports and the same job table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tables = folder / "tables.jsonl"
        self.endpoints = Endpoints(*(f"tcp://127.0.0.1:{free_port()}" for _ in range(4)))
        self.status_port = free_port()
        self.settings = {
            "request_endpoint": self.endpoints.requests,
            "work_endpoint": self.endpoints.work,
            "notification_endpoint": self.endpoints.notifications,
            "publish_endpoint": self.endpoints.publish,
            "status_port": self.status_port,
            "store_path": str(folder / "jobs.sqlite"),
            "catalog_uri": "sqlite:///unused",
            "warehouse": "file:///unused",
            "reconcile_seconds": 1,
            "offer_repeat_seconds": 1,
        }
        self.started: list[Process] = []

    def start(self, *kill: str) -> Process:
        path = self.folder / "settings.json"
        path.write_text(json.dumps(self.settings))
        process = Process(
            [sys.executable, "-m", "tests.support.manager_process", str(path), str(self.tables), *kill],
            log=self.folder / "manager.log",
            environment={"PYTHONPATH": str(REPOSITORY)},
        )
        self.started.append(process)
        return process

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.status_port}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ManagerProcess]:
    manager = ManagerProcess(tmp_path)
    yield manager
    for started in manager.started:
        started.kill()


def wait_for_death(process: Process) -> None:
    wait_until(lambda: process.returncode == -signal.SIGKILL, what=f"the kill\n{process.tail()}")


def finish(process: ManagerProcess, ingestor: Ingestor, data: work_pb2.DataRequest) -> None:
    FileTables.append(process.tables, coverage_row(data.job_id, asked_range(data), attempt=data.attempt))
    ingestor.complete(data)


def test_killed_between_stored_and_answered_the_request_is_a_duplicate_and_ends_once(
    process: ManagerProcess, open_peer: Callable[..., object]
) -> None:
    relay, ingestor = Relay(process.endpoints), Ingestor(process.endpoints)
    open_peer(relay), open_peer(ingestor)
    relay.listen()
    asked = history()
    doomed = process.start("AddRequest")
    relay.send_frames(b"client", b"1234", b"", *_frames(asked))
    wait_for_death(doomed)
    assert not relay.socket.poll(0)
    process.start()
    assert relay.submit(asked).status == Submit.DUPLICATE
    data = ingestor.work()
    assert data.attempt == 1
    finish(process, ingestor, data)
    assert relay.notification(asked).status == Notification.OK


def test_killed_between_an_attempt_stored_and_sent_the_same_attempt_is_sent_later(
    process: ManagerProcess, open_peer: Callable[..., object]
) -> None:
    relay, ingestor = Relay(process.endpoints), Ingestor(process.endpoints)
    open_peer(relay), open_peer(ingestor)
    relay.listen()
    asked = history()
    doomed = process.start("SaveJob")
    relay.send_frames(b"client", b"1234", b"", *_frames(asked))
    wait_for_death(doomed)
    process.start()
    ingestor.offer()

    def got_it() -> bool:
        ingestor.offer(is_new=False)
        return bool(ingestor._peer.socket.poll(300))

    wait_until(got_it, what="any word of the new manager")
    data = ingestor.receive(work_pb2.DataRequest)
    assert data.attempt == 1
    finish(process, ingestor, data)
    assert relay.notification(asked).status == Notification.OK


def test_killed_between_an_outcome_stored_and_published_it_is_published_later(
    process: ManagerProcess, open_peer: Callable[..., object]
) -> None:
    relay, ingestor = Relay(process.endpoints), Ingestor(process.endpoints)
    open_peer(relay), open_peer(ingestor)
    relay.listen()
    asked = history()
    doomed = process.start("EndJob")
    assert relay.submit(asked).status == Submit.QUEUED
    finish(process, ingestor, ingestor.work())
    wait_for_death(doomed)
    process.start()
    assert relay.notification(asked).status == Notification.OK
    assert relay.status(asked.request_id).status == Notification.OK


def test_sigterm_ends_it_with_zero_and_the_next_start_goes_on(
    process: ManagerProcess, open_peer: Callable[..., object]
) -> None:
    relay, ingestor = Relay(process.endpoints), Ingestor(process.endpoints)
    open_peer(relay), open_peer(ingestor)
    relay.listen()
    asked = history()
    first = process.start()
    assert relay.submit(asked).status == Submit.QUEUED
    wait_until(process.is_ready, what="readiness")
    assert first.terminate() == 0
    process.start()
    finish(process, ingestor, ingestor.work())
    assert relay.notification(asked).status == Notification.OK


def test_the_command_says_what_is_wrong_and_exits_with_two(tmp_path: Path) -> None:
    config = tmp_path / "relay.toml"
    config.write_text('[manager]\ncatalog_uri = "sqlite:///x"\nwarehouse = "file:///x"\nlease = 3\n')
    command = [sys.executable, "-c", "from spark_jobs.manager.cli import command; command()", "--config", str(config)]
    started = Process(command, log=tmp_path / "log", environment={"PYTHONPATH": str(REPOSITORY)})
    wait_until(lambda: started.returncode is not None, what="its end")
    assert started.returncode == 2
    assert "manager.lease" in started.tail()


def test_it_ends_when_its_parent_is_not_the_one_it_was_told(tmp_path: Path) -> None:
    code = "import sys; from spark_jobs.manager.cli import command; command(sys.argv[1:])"
    command = [
        sys.executable, "-c", code, "--parent-pid", str(os.getppid()), "--store", str(tmp_path / "jobs.sqlite"),
        "--catalog-uri", f"sqlite:///{tmp_path}/catalog.db", "--warehouse", f"file://{tmp_path}/warehouse",
    ]  # fmt: skip
    environment = {
        f"RELAY_MANAGER_{name}_ENDPOINT": "tcp://127.0.0.1:*" for name in ("REQUEST", "WORK", "NOTIFICATION", "PUBLISH")
    }
    environment |= {"PYTHONPATH": str(REPOSITORY), "RELAY_MANAGER_STATUS_PORT": "0"}
    started = Process(command, log=tmp_path / "log", environment=environment)
    wait_until(lambda: started.returncode is not None, what="its end")
    assert started.returncode == 0, started.tail()


def test_a_full_disk_is_an_error_and_never_queued_and_the_manager_goes_on(
    tmp_path: Path, tables: MemoryTables, open_peer: Callable[..., object]
) -> None:
    class FullStore(MemoryJobStore):
        is_full = True

        def commit(self, changes):  # type: ignore[no-untyped-def]
            if self.is_full and any(isinstance(change, AddRequest) for change in changes):
                raise StorageError("the disk is full")
            super().commit(changes)

    store = FullStore()
    manager = ManagerThread(lambda: store, tables, tmp_path / "unused", reconcile_seconds=1)
    relay, ingestor = Relay(manager.endpoints), Ingestor(manager.endpoints)
    open_peer(relay), open_peer(ingestor)
    relay.listen()
    asked = history()
    try:
        answer = relay.submit(asked)
        assert (answer.status, answer.error_code) == (Submit.ERROR, "STORAGE")
        assert relay.status(asked.request_id).error_code == "UNKNOWN_REQUEST"
        store.is_full = False
        assert relay.submit(asked).status == Submit.QUEUED
        data = ingestor.work()
        tables.commit(replace(coverage_row(data.job_id, asked_range(data))))
        ingestor.complete(data)
        assert relay.notification(asked).status == Notification.OK
    finally:
        manager.stop()


def test_a_wanted_ticker_whose_job_could_not_be_stored_is_taken_up_again(
    tmp_path: Path, tables: MemoryTables, open_peer: Callable[..., object]
) -> None:
    class FullOnceStore(MemoryJobStore):
        refused = 0

        def commit(self, changes):  # type: ignore[no-untyped-def]
            if not self.refused and any(isinstance(change, SaveRealtime) for change in changes):
                self.refused += 1
                raise StorageError("the disk is full")
            super().commit(changes)

    store = FullOnceStore()
    manager = ManagerThread(lambda: store, tables, tmp_path / "unused", heartbeat_seconds=1)
    relay = Relay(manager.endpoints)
    ingestor = Ingestor(manager.endpoints, slot_type=work_pb2.WorkerReady.REALTIME)
    open_peer(relay), open_peer(ingestor)
    try:
        relay.listen(f"{BTC}|tick".encode())
        wait_until(lambda: manager.counters.get("manager.store.failed") == 1, what="the failed commit")
        data = ingestor.work()
        assert (data.type, data.ticker) == (work_pb2.DataRequest.REALTIME_TICKS, BTC)
    finally:
        manager.stop()


def _frames(asked: request_pb2.SubmitHistoricalRequest) -> tuple[bytes, bytes]:
    from relay.protocol.envelope import encode

    return encode(asked)
