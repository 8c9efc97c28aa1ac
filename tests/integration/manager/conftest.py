"""A manager over real sockets, with the tables' twin behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_jobs.manager.store_sqlite import SqliteJobStore
from tests.support.manager import Ingestor, ManagerThread, Pusher, Relay
from tests.support.tables import MemoryTables


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables()


@pytest.fixture
def start_manager(tmp_path: Path, tables: MemoryTables) -> Iterator[Callable[..., ManagerThread]]:
    """Starts managers with changed settings."""
    started: list[ManagerThread] = []

    def start(**changes: object) -> ManagerThread:
        path = tmp_path / "jobs.sqlite"
        started.append(ManagerThread(lambda: SqliteJobStore(path), tables, path, **changes))
        return started[-1]

    yield start
    for manager in started:
        manager.stop()


@pytest.fixture
def manager(start_manager: Callable[..., ManagerThread]) -> ManagerThread:
    return start_manager(reconcile_seconds=1)


@pytest.fixture
def open_peer() -> Iterator[Callable[[Relay | Pusher | Ingestor], object]]:
    """Notes peers, to close them at the end."""
    peers: list[Relay | Pusher | Ingestor] = []

    def note(peer: Relay | Pusher | Ingestor) -> object:
        peers.append(peer)
        return peer

    yield note
    for peer in peers:
        peer.close()


@pytest.fixture
def relay(manager: ManagerThread, open_peer: Callable[..., Relay]) -> Relay:
    relay = open_peer(Relay(manager.endpoints))
    relay.listen()
    return relay


@pytest.fixture
def ingestor(manager: ManagerThread, open_peer: Callable[..., Ingestor]) -> Ingestor:
    return open_peer(Ingestor(manager.endpoints))


@pytest.fixture
def pusher(manager: ManagerThread, open_peer: Callable[..., Pusher]) -> Pusher:
    return open_peer(Pusher(manager.endpoints))
