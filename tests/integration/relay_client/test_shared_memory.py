"""Clients in shared memory with a real gateway: overtaken, killed, refused; what is missed is had, or said."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from relay.errors import SettingsError
from relay.protocol.v1 import market_pb2, request_pb2
from relay.transport import BroadcastReader
from relay_client.engine.commands import Command
from relay_client.engine.connection import Connection
from relay_client.engine.route import LAPS_MAX
from tests.support.accelerator import accelerator
from tests.support.client_world import BTC, GatewayWorld
from tests.support.live_world import BTC_TICK, LiveWorld, gap
from tests.support.local_client import LocalClient
from tests.support.processes import wait_until

ra = accelerator()
RING_BYTES, BULKY_COUNT = 16 << 20, 20
"""The relay's usual broadcast, and messages of its bulk that overwrite all of it."""
PAGE_BYTES, TAIL_AT = 4_096, 128
"""Where the broadcast begins in its segment, and its tail behind the records (proto/spec/0013)."""
WITH_TICKS = (BTC_TICK, f"{BTC}|gap", f"{BTC}|heartbeat")


def until_shared(subscription) -> None:
    wait_until(lambda: subscription.transport == "shm", what="data by shared memory")


def by_tcp(client) -> str:
    """Return why a subscription came by TCP, with a tick that shows that it works."""
    with client.subscribe(BTC) as subscription:
        wait_until(lambda: not subscription.transport_reason.endswith(("yet", "joined")), what="the way to be decided")
        assert subscription.transport == "tcp"
        return subscription.transport_reason


def bells(segment: str) -> list[str]:
    return [path.name for path in Path(ra.default_directory()).iterdir() if path.name.startswith(f".{segment}.bell")]


def fanout(world: GatewayWorld) -> str:
    """Name of the relay's broadcast."""
    with world.client() as client:
        return f"fanout.{client.probe().relay_epoch:x}"


class Witness:
    """A plain subscriber of the same topics: what it has got, the relay has written."""

    def __init__(self, world: GatewayWorld) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.linger, self._socket.rcvhwm, self._socket.rcvtimeo = 0, 0, 30_000
        self._socket.connect(f"tcp://127.0.0.1:{world.ports['subscribe']}")
        self._socket.subscribe(f"{BTC}|")

    def until(self, topic: str, count: int) -> None:
        while count:
            count -= self._socket.recv_multipart()[0] == topic.encode()

    def until_there(self, live: LiveWorld) -> None:
        """Wait until the subscription is in force; the beats that show it mean nothing."""
        wait_until(lambda: live.beat() or self._socket.poll(20), what="the witness to hear")

    def close(self) -> None:
        self._context.destroy(0)


@pytest.fixture
def witness(world: GatewayWorld) -> Iterator[Witness]:
    made = Witness(world)
    yield made
    made.close()


def test_what_overtook_a_client_is_repaired_and_after_some_times_it_goes_back_to_tcp(
    world: GatewayWorld, live: LiveWorld, witness: Witness, tmp_path: Path
) -> None:
    bulky = market_pb2.Heartbeat(
        source="INGESTOR", ticker=BTC, state="UP", attempt=1, source_id="x" * (RING_BYTES // BULKY_COUNT)
    )
    with LocalClient(world.ports, BTC, log=tmp_path / "client.log") as client:
        live.until_subscribed(*WITH_TICKS)
        client.until_by("shm")
        witness.until_there(live)
        live.trade([1])
        wait_until(client.ticks, what="the first tick")
        sent = 1
        for lap in range(1, LAPS_MAX + 1):
            os.kill(client.pid, signal.SIGSTOP)
            live.trade(range(sent + 1, sent + 101))
            sent += 100
            live.publish(*[bulky] * BULKY_COUNT, is_logged=False)
            live.publish(gap("OPEN", None, lap), is_logged=False)
            witness.until(f"{BTC}|gap", 1)
            os.kill(client.pid, signal.SIGCONT)
            wait_until(lambda lap=lap: client.way()[1] >= lap, what=f"lap {lap} to be told")
            wait_until(lambda end=sent: len(client.ticks()) >= end, what="all ticks, by repair")
        assert client.ticks() == list(range(1, sent + 1))
        client.until_by("tcp")
        assert client.way()[1:] == (LAPS_MAX, f"it was overtaken {LAPS_MAX} times within 10 s")
        live.trade(range(sent + 1, sent + 1_001))
        wait_until(lambda: len(client.ticks()) >= sent + 1_000, what="ticks by the socket")
        assert client.ticks()[-1_000:] == list(range(sent + 1, sent + 1_001))


def test_case_84_after_a_killed_relay_the_memory_of_the_new_one_is_joined_and_nothing_is_missing(
    world: GatewayWorld, live: LiveWorld
) -> None:
    with world.client(beat_timeout_ms=1_000) as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        until_shared(subscription)
        live.trade([1, 2])
        assert [int(next(subscription).trade_id) for _ in range(2)] == [1, 2]
        world.gateway.kill()
        live.trade([3, 4], is_lost=True)
        wait_until(lambda: subscription.transport == "tcp", what="the dead memory to be left")
        assert subscription.transport_reason
        live.subscribed()
        world.gateway = world.start_gateway()
        live.restart_gateway_subscriptions(*WITH_TICKS)
        live.trade([5])
        assert sorted(int(subscription.next(timeout=30).trade_id) for _ in range(3)) == [3, 4, 5]
        until_shared(subscription)
        live.trade([6])
        assert next(subscription).trade_id == "6"
        counted = subscription.counters()
        assert (counted["received"], counted["lost"]) == (6, 0)
        assert client.counters()["shm.joined"] >= 2


def test_memory_that_holds_what_no_relay_writes_is_left_for_tcp_without_a_loss(
    world: GatewayWorld, live: LiveWorld
) -> None:
    with world.client() as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        until_shared(subscription)
        live.trade(range(1, 101))
        assert [int(next(subscription).trade_id) for _ in range(100)] == list(range(1, 101))
        with (Path(ra.default_directory()) / fanout(world)).open("r+b") as memory:
            memory.seek(PAGE_BYTES + RING_BYTES + TAIL_AT)
            memory.write((8).to_bytes(8, "little"))
        wait_until(lambda: subscription.transport == "tcp", what="the memory to be left")
        assert subscription.transport_reason == "its memory holds what no relay writes"
        live.trade([101])
        assert next(subscription).trade_id == "101"
        assert subscription.counters()["lost"] == 0


@pytest.mark.soak
def test_case_84_a_relay_that_is_killed_again_and_again_in_the_midst_of_a_stream_costs_no_trade(
    world: GatewayWorld, live: LiveWorld
) -> None:
    """Kills fall anywhere: while the memory is joined, read, or left."""
    dice, sent, stop = random.Random(84), [0], threading.Event()

    def stream() -> None:
        while not stop.wait(0.002):
            live.trade(range(sent[0] + 1, sent[0] + 6))
            sent[0] += 5

    with world.client(beat_timeout_ms=1_500) as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.trade([1])
        sent[0] = 1
        wait_until(lambda: subscription.counters()["received"] == 1, what="the first trade")
        thread = threading.Thread(target=stream)
        thread.start()
        try:
            for _ in range(10):
                stop.wait(dice.choice([0.0, 0.05, 0.3, 1.5, 4.0]))
                world.restart_gateway()
            until_shared(subscription)
        finally:
            stop.set()
            thread.join()
        live.beat(sent[0])
        wait_until(lambda: subscription.counters()["received"] >= sent[0], what="all trades, by whatever way")
        counted = subscription.counters()
        assert (counted["received"], counted["lost"]) == (sent[0], 0)
        assert client.counters()["shm.joined"] >= 3


def test_a_killed_client_leaves_the_relay_nothing_but_a_bell_which_the_next_one_takes(
    world: GatewayWorld, live: LiveWorld, tmp_path: Path
) -> None:
    with LocalClient(world.ports, BTC, log=tmp_path / "client.log") as client:
        live.until_subscribed(*WITH_TICKS)
        client.until_by("shm")
        segment = fanout(world)
        assert len(bells(segment)) == 1
        live.trade([1])
        wait_until(lambda: client.ticks() == [1], what="the tick")
        client.kill()
    assert len(bells(segment)) == 1, "nobody took it down"
    wait_until(lambda: BTC_TICK.encode() not in live.subscribed(), what="the demand of the dead to end")
    with world.client() as other, other.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        until_shared(subscription)
        live.trade([2, 3])
        assert [int(next(subscription).trade_id) for _ in range(2)] == [2, 3]
        assert len(bells(segment)) == 1, "the place of the dead was taken"
    wait_until(lambda: not bells(segment), what="the last bell to be taken down")


def test_two_subscriptions_of_a_client_share_one_reader(world: GatewayWorld, live: LiveWorld) -> None:
    with world.client() as client, client.subscribe(BTC) as one, client.subscribe(f"{BTC}|gap") as two:
        live.until_subscribed(*WITH_TICKS)
        until_shared(one)
        assert two.transport == "shm"
        assert client.counters()["shm.joined"] == 1
        told = client.probe()
        assert (told.transports, told.encodings) == (("tcp", "shm"), ("protobuf", "sbe"))


def test_a_client_of_sbe_takes_protobuf_of_a_relay_that_does_not_announce_it_and_says_so(
    world: GatewayWorld, live: LiveWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    take = Connection.on_probe_reply

    def older(connection: Connection, reply: request_pb2.ProbeReply, now_ns: int) -> list[Command]:
        for way in reply.transports:
            way.ClearField("record_versions")
        return take(connection, reply, now_ns)

    with world.client(encoding="sbe") as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        until_shared(subscription)
        assert subscription.encoding == "sbe"
        assert not caplog.records
    monkeypatch.setattr(Connection, "on_probe_reply", older)
    with world.client(encoding="sbe") as client:
        for number in (1, 2):
            with client.subscribe(BTC) as subscription:
                live.until_subscribed(*WITH_TICKS)
                until_shared(subscription)
                assert subscription.encoding == "protobuf"
                live.trade([number])
                assert int(next(subscription).trade_id) == number
            wait_until(lambda: BTC_TICK.encode() not in live.subscribed(), what="the relay to let go")
    (said,) = [record.getMessage() for record in caplog.records if "SBE" in record.getMessage()]
    assert "does not announce it; market data come in protobuf" in said


def test_without_the_accelerator_data_come_by_tcp_and_the_reason_is_said(
    world: GatewayWorld, live: LiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "relay_accel", None)
    with world.client() as client:
        assert by_tcp(client) == "the accelerator is not installed"


@pytest.mark.parametrize("memory", ["another folder", "off"])
def test_a_client_in_another_place_or_without_memory_takes_tcp_and_says_why(
    world: GatewayWorld, live: LiveWorld, tmp_path: Path, memory: str
) -> None:
    apart = tmp_path / "apart"
    apart.mkdir(mode=0o700)
    folder, reason = (str(apart), "another host, container, user or folder") if memory != "off" else ("off", "off")
    with world.client(shared_memory=folder) as client:
        assert reason in by_tcp(client)
    with (
        world.client(shared_memory=folder, transport="shm") as strict,
        strict.subscribe(BTC) as subscription,
        pytest.raises(SettingsError, match="expected market data by shared memory"),
    ):
        subscription.next(timeout=30)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_another_users_folder_is_refused_with_the_reason(world: GatewayWorld, live: LiveWorld, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir(mode=0o700)
    os.chown(foreign, 12_345, 12_345)
    with world.client(shared_memory=str(foreign)) as client:
        assert "another host, container, user or folder" in by_tcp(client)


def test_when_sixteen_readers_sleep_already_a_further_one_takes_tcp_and_a_spinning_one_does_not(
    world: GatewayWorld, live: LiveWorld
) -> None:
    segment = fanout(world)
    epoch = int(segment.removeprefix("fanout."), 16)
    sleepers = [
        BroadcastReader(segment, relay_epoch=epoch, host_id="", folder="", is_spinning=False) for _ in range(16)
    ]
    with world.client() as client:
        assert "NO_FREE_SLOT" in by_tcp(client)
    with world.client(idle="spin") as client, client.subscribe(BTC) as subscription:
        until_shared(subscription)
    for sleeper in sleepers:
        sleeper.close()


@pytest.mark.parametrize("wrong", [{"transport": "udp"}, {"idle": "wait"}])
def test_a_way_that_there_is_none_of_is_refused(wrong: dict[str, str]) -> None:
    from relay_client import Client

    with pytest.raises(SettingsError, match="expected"):
        Client(**wrong)
