"""Triggers through a real gateway: registered, received once, found again after a cut, listed, cancelled."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from relay.errors import PeerError, RelayError, RetryableError, SettingsError
from relay.protocol.envelope import encode_record
from relay.protocol.v1 import market_pb2, request_pb2, trigger_pb2
from relay_client import AsyncClient, Client, PatternError, Trigger, TriggerEvent, TriggerLoss, when
from spark_jobs.manager.engine.commands import Answer
from spark_jobs.manager.engine.replay import ReplayCollector, read_replay
from spark_jobs.manager.engine.triggers import TriggerBook, TriggerRules
from tests.support.client_world import BTC, GatewayWorld
from tests.support.processes import wait_until

ROOT = Path(__file__).resolve().parents[3]
Request, Ack, Event = trigger_pb2.CEPTriggerRequest, trigger_pb2.CEPTriggerAck, trigger_pb2.CEPTriggerEvent
CROSSES = when(BTC).crosses_above("50000")


class Desk:
    """The manager's side: the real book, a log of firings, and a publisher that can lose them.

    Attributes:
        asked: every request that arrived.
        lose: so many answers do not come.
        fires_at_once: a registration fires at once.
    """

    def __init__(self, world: GatewayWorld) -> None:
        self.world = world
        self.book = TriggerBook(TriggerRules(), exchanges={"BINANCE"})
        self.asked: list[trigger_pb2.CEPTriggerRequest] = []
        self.records: list[bytes] = []
        self.lose = 0
        self.fires_at_once = False
        world.manager.triggers = self.answer
        world.manager.replays = self.replay
        world.manager.symbols = self.symbols

    def answer(self, message: trigger_pb2.CEPTriggerRequest) -> object | None:
        self.asked.append(message)
        commands = self.book.handle(message, (), now_ns=time.time_ns())
        [reply] = [c.message for c in commands if isinstance(c, Answer)]
        if self.fires_at_once and message.action == Request.REGISTER:
            self.fire(message.trigger_id, 0)
        if self.lose:
            self.lose -= 1
            return None
        return reply

    def fire(self, trigger_id: str, *numbers: int, is_lost: bool = False) -> None:
        for n in numbers:
            event = Event(trigger_id=trigger_id, match_id=str(n), fired_at=time.time_ns(), ticker=BTC)
            event.matched.add(timestamp=event.fired_at, price="50000.10", ticker=BTC, trade_id=str(n))
            self.records.append(encode_record(event))
            if not is_lost:
                self.world.manager.publish(f"CEP:{trigger_id}", event)

    def replay(self, asked: request_pb2.ReplayRequest) -> request_pb2.ReplayResponse:
        wanted = read_replay(asked)
        collector = ReplayCollector(wanted)
        collector.take((i, r) for i, r in enumerate(self.records) if i >= wanted.cursor and wanted.key in r)
        return collector.answer()

    @staticmethod
    def symbols(query: request_pb2.SymbolQuery) -> request_pb2.SymbolReply:
        if query.ticker != BTC:
            return request_pb2.SymbolReply(status=request_pb2.SymbolReply.NOT_FOUND)
        market = market_pb2.Market(market_id=BTC, exchange_id="BINANCE")
        return request_pb2.SymbolReply(status=request_pb2.SymbolReply.OK, markets=[market])


@pytest.fixture
def desk(world: GatewayWorld) -> Desk:
    return Desk(world)


@pytest.fixture
def client(world: GatewayWorld, desk: Desk) -> Iterator[Client]:
    del desk
    with world.client(reply_timeout_ms=500) as client:
        yield client


def numbers(events: Iterator[TriggerEvent], count: int) -> list[str]:
    return [next(events).match_id for _ in range(count)]


def test_a_firing_right_behind_the_registration_is_received_though_nobody_reads_yet(desk: Desk, client: Client) -> None:
    desk.fires_at_once = True
    trigger = client.triggers.register(CROSSES, cooldown="5m", one_shot=True, expires=timedelta(hours=1))
    assert (trigger.tickers, trigger.cooldown_ms, trigger.one_shot) == ((BTC,), 300_000, True)
    assert trigger.expires_at_ns is not None
    assert trigger.pattern() == CROSSES.build()
    desk.fire(trigger.trigger_id, 1, 0, 1)
    with client.triggers.events(trigger) as events:
        first = next(events)
        assert (first.trigger_id, first.match_id, first.ticker) == (trigger.trigger_id, "0", BTC)
        assert (first.matched[0].price, first.matched[0].trade_id) == (Decimal("50000.10"), "0")
        assert numbers(events, 1) == ["1"]
        desk.fire(trigger.trigger_id, 2)
        assert numbers(events, 1) == ["2"], "repeats are dropped"
        assert (events.next(timeout=0), events.losses()) == (None, [])
    assert list(events) == []


def test_a_lost_answer_registers_no_second_trigger_and_ids_may_be_chosen(desk: Desk, client: Client) -> None:
    desk.lose = 1
    trigger_id = str(uuid.uuid4())
    assert client.triggers.register(CROSSES, trigger_id=trigger_id).trigger_id == trigger_id
    assert [a.trigger_id for a in desk.asked] == [trigger_id] * 2
    again = client.triggers.register(CROSSES, trigger_id=trigger_id, listen=False)
    assert client.triggers.list() == [again]
    with pytest.raises(PeerError, match="another cooldown_ms; cancel it first") as conflict:
        client.triggers.register(CROSSES, trigger_id=trigger_id, cooldown="1s")
    assert conflict.value.code == "REQUEST_CONFLICT"


def test_triggers_are_listed_page_by_page_and_cancelled(desk: Desk, client: Client) -> None:
    ids = sorted(client.triggers.register(CROSSES, listen=False).trigger_id for _ in range(3))
    foreign = Request(trigger_id=str(uuid.uuid4()), client_id=str(uuid.uuid4()), pattern=CROSSES.build())
    desk.answer(foreign)
    found = client.triggers.list()
    assert [t.trigger_id for t in found] == sorted([*ids, foreign.trigger_id])
    assert client.triggers.list(client_id=foreign.client_id) == [Trigger.of(foreign)]
    assert client.triggers.cancel(found[0])
    assert client.triggers.cancel(found[1].trigger_id)
    assert not client.triggers.cancel(str(uuid.uuid4()))
    assert len(client.triggers.list()) == 2


def test_what_is_wrong_is_told_before_or_after_it_is_sent(desk: Desk, client: Client) -> None:
    triggers = client.triggers
    for wrong in (
        {"trigger_id": "1"},
        {"one_shot": 1},
        {"expires": timedelta(0)},
        {"expires": 5},
        {"expires": "soon"},
        {"timeout": -1},
        {"listen": "yes"},
    ):
        with pytest.raises(SettingsError):
            triggers.register(CROSSES, **wrong)
    with pytest.raises(PatternError, match="cooldown"):
        triggers.register(CROSSES, cooldown=5)
    for pattern in ("BTC above 5", None, trigger_pb2.Pattern(), CROSSES.within("40d")):
        with pytest.raises(PatternError):
            triggers.register(pattern)
    assert desk.asked == []
    with pytest.raises(PeerError) as unknown:
        triggers.register(when("DOGE/USDT.BINANCE").crosses("1"))
    assert unknown.value.code == "UNKNOWN_SYMBOL"
    with pytest.raises(PatternError) as late:
        triggers.register(CROSSES, expires="2020-01-01T00:00Z")
    assert (late.value.place, late.value.code) == ("expires_at", "INVALID_PATTERN")
    for wrong_ids in ("x", [], ["x"], 5, None):
        with pytest.raises(SettingsError):
            triggers.events(wrong_ids)
    with pytest.raises(SettingsError):
        triggers.events(str(uuid.uuid4()), buffer_max=0)
    with pytest.raises(PeerError, match="client_id"):
        triggers.list(client_id="me")


def test_a_registration_that_is_not_answered_says_how_to_go_on(desk: Desk, client: Client) -> None:
    desk.lose = 1_000
    with pytest.raises(RetryableError, match="register again with trigger_id='"):
        client.triggers.register(CROSSES, timeout=1)


def test_a_firing_whose_publication_was_lost_comes_out_of_the_log_with_the_next(desk: Desk, client: Client) -> None:
    trigger = client.triggers.register(CROSSES)
    events = client.triggers.events(trigger)
    body = Event(trigger_id=trigger.trigger_id, match_id="0", fired_at=time.time_ns())
    body.stamp.publisher_epoch, body.stamp.topic_sequence = 5, 1
    desk.world.manager.publish(trigger.topic, body)
    desk.fire(trigger.trigger_id, 1, is_lost=True)
    body.match_id, body.stamp.topic_sequence = "2", 3
    desk.world.manager.publish(trigger.topic, body)
    assert numbers(events, 3) == ["0", "2", "1"]


def test_firings_while_the_relay_was_away_are_found_again(desk: Desk, client: Client) -> None:
    trigger = client.triggers.register(CROSSES)
    events = client.triggers.events(trigger)
    desk.fire(trigger.trigger_id, 1)
    assert numbers(events, 1) == ["1"]
    desk.world.gateway.kill()
    desk.fire(trigger.trigger_id, 2, is_lost=True)
    desk.world.gateway = desk.world.start_gateway()
    found = next(events)
    assert (found.match_id, found.is_replayed) == ("2", True)
    desk.fire(trigger.trigger_id, 3)
    assert numbers(events, 1) == ["3"]


def test_many_triggers_share_one_iteration_and_a_start_reads_the_log_first(desk: Desk, client: Client) -> None:
    one, two = (client.triggers.register(CROSSES) for _ in range(2))
    desk.fire(one.trigger_id, 1)
    desk.fire(two.trigger_id, 2)
    with client.triggers.events([one, two.trigger_id]) as events:
        assert sorted(numbers(events, 2)) == ["1", "2"]
        desk.fire(two.trigger_id, 3)
        assert numbers(events, 1) == ["3"]
    with client.triggers.events(two, start="2020-01-01T00:00Z") as events:
        assert numbers(events, 2) == ["2", "3"]


def test_a_log_that_cannot_be_asked_is_told_beside_the_firings(desk: Desk, client: Client) -> None:
    invalid = request_pb2.ReplayResponse(status=request_pb2.ReplayResponse.INVALID, error_message="an older manager")
    desk.world.manager.replays = lambda _: invalid
    trigger = client.triggers.register(CROSSES)
    events = client.triggers.events(trigger, start="2020-01-01T00:00Z")

    def lost() -> list[object]:
        events.next(timeout=0.05)
        return list(events.losses())

    assert wait_until(lost, what="the loss") == [
        TriggerLoss(trigger.trigger_id, 1577836800 * 10**9, "an older manager")
    ]


def test_a_closed_client_ends_the_iteration_and_refuses_calls(desk: Desk, world: GatewayWorld) -> None:
    with world.client() as client:
        events = client.triggers.events(client.triggers.register(CROSSES))
    assert list(events) == []
    with pytest.raises(RelayError, match="closed"):
        client.triggers.list()
    assert len(desk.asked) == 1


def test_the_async_client_does_the_same(desk: Desk, world: GatewayWorld) -> None:
    async def use() -> list[str]:
        async with AsyncClient(settings=world.settings()) as client:
            trigger = await client.triggers.register(CROSSES)
            assert [t.trigger_id for t in await client.triggers.list()] == [trigger.trigger_id]
            desk.fire(trigger.trigger_id, 1, 1, 2)
            found = []
            async with client.triggers.events(trigger) as events:
                async for event in events:
                    found.append(event.match_id)
                    if len(found) == 2:
                        break
            assert await client.triggers.cancel(trigger)
            return found

    assert asyncio.run(use()) == ["1", "2"]


def test_the_commands_list_and_cancel(desk: Desk, client: Client, world: GatewayWorld) -> None:
    from click.testing import CliRunner

    from relay_client.cli import triggers

    trigger = client.triggers.register(CROSSES, cooldown="1m", listen=False)
    ports = [f"--request-port={world.ports['request']}", f"--subscribe-port={world.ports['subscribe']}"]
    listed = CliRunner().invoke(triggers, ["list", *ports, "--json"])
    assert (listed.exit_code, trigger.trigger_id in listed.output) == (0, True)
    shown = CliRunner().invoke(triggers, ["list", *ports])
    assert f"{trigger.trigger_id}  {BTC} crosses" in shown.output
    assert "cooldown 60000 ms" in shown.output
    assert CliRunner().invoke(triggers, ["cancel", trigger.trigger_id, *ports]).exit_code == 0
    gone = CliRunner().invoke(triggers, ["cancel", str(uuid.uuid4()), *ports])
    assert isinstance(gone.exception, PeerError)
    assert "is registered" in str(gone.exception)
    assert client.triggers.list() == []


def test_the_example_prints_what_fires(desk: Desk, world: GatewayWorld) -> None:
    desk.fires_at_once = True
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RELAY_CLIENT_REQUEST_PORT": str(world.ports["request"]),
        "RELAY_CLIENT_SUBSCRIBE_PORT": str(world.ports["subscribe"]),
    }
    command = [sys.executable, str(ROOT / "examples" / "triggers.py"), BTC, "50000"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "50000.10" in done.stdout
