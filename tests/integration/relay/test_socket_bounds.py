"""Every socket that listens is bounded on its own side, and an old libzmq is refused."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from relay.engine.gateway import GatewayEngine, GatewayFacts
from relay.errors import SettingsError
from relay.gateway.loop import GatewayLoop
from relay.gateway.settings import GatewaySettings
from relay.observability import Counters
from relay.protocol.envelope import EnvelopeLimits
from relay.transport import Context, Socket, SocketLimits, new_context
from spark_jobs.manager.loop import close_sockets, open_sockets
from tests.support.manager import Endpoints, settings_for
from tests.support.processes import free_port


@pytest.fixture
def context() -> Iterator[Context]:
    made = new_context()
    yield made
    made.term()


def bounds(socket: Socket) -> dict[str, int]:
    options = ("MAXMSGSIZE", "SNDHWM", "RCVHWM", "HANDSHAKE_IVL", "HEARTBEAT_IVL", "HEARTBEAT_TIMEOUT")
    return {name: int(socket.getsockopt(getattr(zmq, name))) for name in options}


def test_every_socket_that_listens_bounds_frames_queues_and_handshakes_case_101_104(
    context: Context, tmp_path: Path
) -> None:
    """Cases 88, 101 and 104: neither limit is left to the peer, and no queue is without a bound."""
    names = ("request", "subscribe", "fast_path", "manager_publish", "manager_request")
    settings = GatewaySettings(**{f"{name}_endpoint": f"tcp://127.0.0.1:{free_port()}" for name in names})
    engine = GatewayEngine(GatewayFacts(1, "relay"), EnvelopeLimits(), lambda _: None)
    loop = GatewayLoop(settings, engine, context, Counters())
    manager = open_sockets(context, settings_for(Endpoints(), tmp_path / "jobs.sqlite"))
    try:
        of_gateway = {"router": loop.router, "xpub": loop.xpub, "fast_path": loop.fast_path}
        of_manager = {name: getattr(manager, name) for name in ("requests", "work", "notifications", "publish")}
        found = {name: bounds(socket) for name, socket in (of_gateway | of_manager).items()}
        assert all(value > 0 for values in found.values() for value in values.values()), found
        assert max(found["router"]["MAXMSGSIZE"], found["xpub"]["MAXMSGSIZE"]) <= 2 * settings.request_bytes_max
        assert {values["HANDSHAKE_IVL"] for values in found.values()} == {10_000}
    finally:
        close_sockets(manager)
        loop.close()


@pytest.mark.parametrize("limits", [{"send_queue_max": 0}, {"receive_queue_max": 0}, {"send_queue_max": -1}])
def test_a_queue_without_a_bound_is_refused_with_the_reason_case_88(limits: dict[str, int]) -> None:
    with pytest.raises(SettingsError, match="no bound"):
        SocketLimits(**limits)


@pytest.mark.parametrize(("version", "is_refused"), [((4, 2, 5), True), ((4, 3, 1), True), ((4, 3, 2), False)])
def test_a_libzmq_with_known_remote_faults_is_refused_at_the_start_case_102_103(
    version: tuple[int, int, int], is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases 102 and 103: the floor is the release that mended both."""
    assert zmq.zmq_version_info() >= (4, 3, 2)
    monkeypatch.setattr(zmq, "zmq_version_info", lambda: version)
    if is_refused:
        with pytest.raises(SettingsError, match=r"libzmq of at least 4\.3\.2"):
            new_context()
    else:
        new_context().term()


def test_no_more_sockets_than_set_can_be_opened_case_104() -> None:
    small = new_context(sockets_max=16)
    opened: list[Socket] = []
    try:
        with pytest.raises(zmq.ZMQError) as refused:
            opened += [small.socket(zmq.SUB) for _ in range(17)]
        assert refused.value.errno == errno.EMFILE
    finally:
        small.destroy(0)
