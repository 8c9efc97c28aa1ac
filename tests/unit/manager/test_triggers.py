"""Registered triggers: what is accepted, listed, wanted, told, and when they end."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import replace

import pytest

from relay.errors import RetryableError
from relay.eventlog import CONTROL_TOPIC, LogPosition, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.protocol.envelope import decode_record
from relay.protocol.v1 import trigger_pb2
from relay_client import when
from relay_client.trigger_flows import Trigger
from spark_jobs.manager.control_teller import ControlTeller
from spark_jobs.manager.engine.commands import Answer, Command, DropTrigger, SaveTrigger, TellTrigger
from spark_jobs.manager.engine.model import TriggerState
from spark_jobs.manager.engine.triggers import LIST_MAX, TriggerBook, TriggerRules
from spark_jobs.manager.store_memory import MemoryJobStore
from tests.support.processes import wait_until

Request, Ack = trigger_pb2.CEPTriggerRequest, trigger_pb2.CEPTriggerAck
BTC, ETH = "BTC/USDT.BINANCE", "ETH/USDT.BINANCE"
SECOND = 10**9
NOW = 1_800_000_000 * SECOND
ONE, TWO = (f"{n}0000000-0000-4000-8000-000000000000" for n in (1, 2))
CLIENT = "c0000000-0000-4000-8000-000000000000"
CROSSES = when(BTC).crosses_above("50000").build()


def register(trigger_id: str = ONE, **fields: object) -> trigger_pb2.CEPTriggerRequest:
    values: dict[str, object] = {"trigger_id": trigger_id, "pattern": CROSSES, **fields}
    return Request(**values)  # type: ignore[arg-type]


def cancel(trigger_id: str = ONE) -> trigger_pb2.CEPTriggerRequest:
    return Request(action=Request.CANCEL, trigger_id=trigger_id)


class World:
    """A book with a store; what is told is noted."""

    def __init__(self, **rules: int) -> None:
        self.store, self.rules, self.now_ns = MemoryJobStore(), TriggerRules(**rules), NOW
        self.told: list[tuple[str, bool]] = []
        self.restart()

    def restart(self) -> None:
        self.book = TriggerBook(self.rules, exchanges={"BINANCE"})
        self.book.restore(self.store.load().triggers)

    def run(self, commands: Sequence[Command]) -> list[trigger_pb2.CEPTriggerAck]:
        self.store.commit([c for c in commands if isinstance(c, SaveTrigger | DropTrigger)])
        self.told += [(c.trigger_id, c.definition is not None) for c in commands if isinstance(c, TellTrigger)]
        return [c.message for c in commands if isinstance(c, Answer) and isinstance(c.message, Ack)]

    def ask(self, message: trigger_pb2.CEPTriggerRequest) -> trigger_pb2.CEPTriggerAck:
        [answer] = self.run(self.book.handle(message, (b"route",), now_ns=self.now_ns))
        return answer

    def tick(self, seconds: int = 0) -> list[tuple[str, bool]]:
        self.now_ns += seconds * SECOND
        before = len(self.told)
        self.run(self.book.on_tick(self.now_ns))
        return self.told[before:]

    def states(self) -> dict[str, TriggerState]:
        return {t.trigger_id: t.state for t in self.store.load().triggers}

    def listed(self, client_id: str = "") -> list[str]:
        found, after = [], ""
        while (page := self.ask(Request(action=Request.LIST, trigger_id=after, client_id=client_id))).active:
            assert page.status == Ack.LISTED
            assert [d.trigger_id for d in page.definitions] == list(page.active)
            found += page.active
            after = found[-1]
        return found


def test_a_registration_is_stored_and_told_whole_and_answered_with_its_topic() -> None:
    world = World()
    asked = register(cooldown_ms=5, one_shot=True, expires_at=NOW + 1, client_id=CLIENT)
    commands = world.book.handle(asked, (b"route",), now_ns=NOW)
    assert [type(c) for c in commands] == [SaveTrigger, TellTrigger, Answer]
    [answer] = world.run(commands)
    assert answer == Ack(trigger_id=ONE, status=Ack.REGISTERED, topic=f"CEP:{ONE}")
    [stored] = world.store.load().triggers
    assert Request.FromString(stored.definition) == asked


def test_the_same_registration_again_is_the_same_trigger() -> None:
    world = World()
    assert world.ask(register()) == world.ask(register())
    world.restart()
    assert world.ask(register()).status == Ack.REGISTERED
    assert world.told == [(ONE, True)]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"cooldown_ms": 1}, "cooldown_ms"),
        ({"one_shot": True, "client_id": CLIENT}, "client_id and one_shot"),
        ({"pattern": when(BTC).crosses_above("50001").build()}, "pattern"),
        ({"expires_at": NOW + 1}, "expires_at"),
    ],
)
def test_another_definition_under_a_known_id_is_refused_with_what_to_do(fields: dict[str, object], named: str) -> None:
    world = World()
    world.ask(register())
    answer = world.ask(register(**fields))
    assert answer.status == Ack.INVALID
    assert answer.error_message == (
        f"REQUEST_CONFLICT: trigger {ONE} is registered with another {named}; cancel it first, or use a new trigger_id"
    )
    assert world.ask(register()).status == Ack.REGISTERED


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (register(""), "INVALID_REQUEST_ID: expected a lower-case UUID of 36 characters as trigger_id, got ''"),
        (register(ONE.upper().replace("0", "A")), "INVALID_REQUEST_ID: "),
        (register("x" * 60_000), "INVALID_REQUEST_ID: "),
        (register(client_id="me"), "INVALID_CLIENT_ID: "),
        (register(pattern=trigger_pb2.Pattern()), "INVALID_PATTERN: steps: expected 1 to 16 steps, got 0"),
        (register(pattern=trigger_pb2.Pattern(steps=[CROSSES.steps[0]] * 900)), "INVALID_PATTERN: steps: "),
        (register(pattern=when("BTC/USDT.NOWHERE").crosses("1").build()), "UNKNOWN_EXCHANGE: BTC/USDT.NOWHERE: "),
        (register(cooldown_ms=2**63), "INVALID_PATTERN: cooldown_ms: "),
        (register(expires_at=NOW), "INVALID_PATTERN: expires_at: expected a time after now"),
        (register(expires_at=5), "INVALID_PATTERN: expires_at: "),
        (cancel("nobody"), "INVALID_REQUEST_ID: "),
        (Request(action=Request.LIST, client_id="%"), "INVALID_CLIENT_ID: "),
        (Request(action=Request.LIST, trigger_id="%"), "INVALID_REQUEST_ID: "),
        (Request(action=3, trigger_id=ONE), "INVALID_REQUEST: expected action 0 REGISTER, 1 CANCEL or 2 LIST, got 3"),  # type: ignore[arg-type]
        (Request(action=-1), "INVALID_REQUEST: "),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_said_with_code_place_and_reason(asked: trigger_pb2.CEPTriggerRequest, text: str) -> None:
    world = World()
    answer = world.ask(asked)
    assert answer.status == Ack.INVALID
    assert answer.error_message.startswith(text)
    assert len(answer.trigger_id) <= 80
    assert world.store.load().triggers == ()
    assert world.told == []


def test_what_this_version_does_not_know_is_neither_kept_nor_told() -> None:
    world = World()
    padded = Request.FromString(register().SerializeToString() + b"\xfa\x3f\x03abc")
    assert world.ask(padded).status == Ack.REGISTERED
    assert world.store.load().triggers[0].definition == register().SerializeToString(deterministic=True)


def test_a_cancelled_trigger_is_told_and_its_id_is_free() -> None:
    world = World()
    world.ask(register())
    assert [world.ask(cancel()).status for _ in range(2)] == [Ack.CANCELLED] * 2
    assert world.ask(cancel(TWO)).status == Ack.NOT_FOUND
    assert (world.told, world.listed()) == ([(ONE, True), (ONE, False)], [])
    assert world.ask(register(cooldown_ms=7)).status == Ack.REGISTERED
    assert world.states() == {ONE: TriggerState.ACTIVE}


def test_lists_are_of_all_or_of_one_owner_ascending_in_bounded_answers() -> None:
    world = World()
    ids = [str(uuid.UUID(int=random.Random(n).getrandbits(128))) for n in range(LIST_MAX + 5)]
    for n, trigger_id in enumerate(ids):
        world.ask(register(trigger_id, client_id=CLIENT if n % 100 == 0 else ""))
    first = world.ask(Request(action=Request.LIST))
    assert len(first.active) == LIST_MAX
    assert first.ByteSize() < 1_000_000
    assert world.listed() == sorted(ids)
    assert world.listed(CLIENT) == sorted(ids[::100])
    assert world.listed(TWO) == []


def test_one_answer_of_a_list_never_outgrows_a_frame() -> None:
    world = World()
    step = when(BTC).crosses_above("1" * 18 + "." + "1" * 18)
    big = step
    for _ in range(15):
        big = big.then(step)
    pattern = big.build()
    for n in range(LIST_MAX):
        world.ask(register(str(uuid.UUID(int=n)), pattern=pattern))
    page = world.ask(Request(action=Request.LIST))
    assert 1 <= len(page.active) < LIST_MAX
    assert page.ByteSize() < 900_000
    assert len(world.listed()) == LIST_MAX


def test_one_more_than_the_bound_is_refused_until_one_is_gone() -> None:
    world = World(triggers_max=1)
    world.ask(register(ONE))
    refused = world.ask(register(TWO))
    assert refused.status == Ack.INVALID
    assert refused.error_message.startswith("OVERLOADED: 1 triggers are registered already; cancel some")
    assert world.ask(register(ONE)).status == Ack.REGISTERED
    world.ask(cancel(ONE))
    assert world.ask(register(TWO)).status == Ack.REGISTERED
    world.ask(cancel(TWO))
    assert world.states() == {TWO: TriggerState.CANCELLED}, "no more ended ones than active ones are remembered"


def test_tickers_are_wanted_while_any_trigger_names_them() -> None:
    world = World()
    both = when(BTC).crosses("1").then(when(ETH).crosses("1")).build()
    world.ask(register(ONE))
    assert world.book.take_demand_change()
    world.ask(register(TWO, pattern=both))
    assert world.book.tickers == {BTC, ETH}
    world.ask(cancel(ONE))
    assert world.book.tickers == {BTC, ETH}
    world.restart()
    assert (world.book.tickers, world.book.take_demand_change()) == ({BTC, ETH}, True)
    world.ask(cancel(TWO))
    assert (world.book.tickers, world.book.take_demand_change()) == (frozenset(), True)
    assert not world.book.take_demand_change()


def test_everything_is_told_again_after_a_start_and_every_hour() -> None:
    world = World()
    world.ask(register(ONE))
    world.ask(register(TWO))
    world.ask(cancel(TWO))
    world.restart()
    assert world.tick() == [(TWO, False), (ONE, True)]
    assert world.tick(3_599) == []
    assert world.tick(1) == [(TWO, False), (ONE, True)]
    assert world.tick(8 * 86_400) == [(ONE, True)], "an end is told for a week"
    assert world.states() == {ONE: TriggerState.ACTIVE}


def test_an_expired_trigger_goes_after_a_grace_by_the_clock() -> None:
    world = World()
    world.ask(register(expires_at=NOW + 10 * SECOND))
    world.tick()
    assert world.tick(609) == []
    assert world.book.tickers == {BTC}
    assert world.tick(1) == [], "the job ends it by event time; a CANCEL could come too early"
    assert (world.states(), world.book.tickers) == ({ONE: TriggerState.EXPIRED}, frozenset())
    assert (world.tick(3_600), world.book.one_shot_since_ns) == ([], None)
    assert world.ask(register(expires_at=NOW + 10 * SECOND)).status == Ack.INVALID


def test_an_expiry_of_a_cancelled_trigger_ends_no_later_one_of_that_id() -> None:
    world = World()
    world.ask(register(expires_at=NOW + 10 * SECOND))
    world.ask(cancel())
    world.ask(register())
    world.tick(1_000)
    assert world.states() == {ONE: TriggerState.ACTIVE}


def test_a_one_shot_that_has_fired_is_over_and_registering_it_again_makes_no_second_one() -> None:
    world = World()
    world.ask(register(ONE, one_shot=True))
    world.ask(register(TWO))
    world.tick()
    assert world.book.one_shot_since_ns == NOW
    world.book.mark_fired(ONE, NOW - 1)
    world.tick()
    assert world.listed() == [ONE, TWO], "that was an earlier trigger of this id"
    for trigger_id in (ONE, TWO, CLIENT, "nonsense"):
        world.book.mark_fired(trigger_id, NOW)
    assert world.tick() == []
    assert world.listed() == [TWO]
    world.restart()
    told = len(world.told)
    assert world.ask(register(ONE, one_shot=True)).status == Ack.REGISTERED
    assert (world.told[told:], world.listed()) == ([], [TWO])
    assert world.ask(register(ONE)).status == Ack.INVALID
    assert world.ask(cancel(ONE)).status == Ack.CANCELLED
    assert world.ask(register(ONE)).status == Ack.REGISTERED
    assert world.listed() == [ONE, TWO]


def test_a_stored_pattern_that_is_no_longer_accepted_is_kept_and_told_but_wants_nothing() -> None:
    world = World()
    world.ask(register())
    [stored] = world.store.load().triggers
    world.store.commit([SaveTrigger(replace(stored, definition=Request(trigger_id=ONE).SerializeToString()))])
    world.restart()
    assert (world.listed(), world.book.tickers, world.tick()) == ([ONE], frozenset(), [(ONE, True)])


class SlowLog(MemoryEventLog):
    """A log that is away for some appends, and acknowledges nothing for some more."""

    def __init__(self, *, away: int = 0, unacknowledged: int = 0) -> None:
        super().__init__()
        self.away, self.unacknowledged = away, unacknowledged
        self.ensure_topics(platform_topics(prefix="", partitions=2, retention_hours=1))

    def append(self, topic, *, key, value):  # type: ignore[no-untyped-def]
        from concurrent.futures import Future

        if self.away:
            self.away -= 1
            raise RetryableError("the log is away")
        if self.unacknowledged:
            self.unacknowledged -= 1
            return Future[LogPosition]()
        return super().append(topic, key=key, value=value)

    def told(self) -> list[tuple[str, int]]:
        values = [r.value for p in range(2) for r in self.read(CONTROL_TOPIC, partition=p)]
        found = [decode_record(value)[1] for value in values]
        return [(m.trigger_id, m.action) for m in found if isinstance(m, Request)]


@pytest.mark.parametrize("log", [SlowLog(), SlowLog(away=1), SlowLog(unacknowledged=2)])
def test_what_the_log_does_not_take_is_told_when_it_does(log: SlowLog) -> None:
    teller = ControlTeller(lambda: log, topic_prefix="")
    try:
        teller.tell_trigger(ONE, register(ONE).SerializeToString())
        teller.tell_trigger(ONE, None)
        teller.tell_trigger(TWO, register(TWO).SerializeToString())
        wait_until(lambda: (TWO, Request.REGISTER) in log.told(), what="the definition")
        wait_until(lambda: (ONE, Request.CANCEL) in log.told(), what="the end")
        wait_until(lambda: teller.untold_count == 0, what="all to be told")
    finally:
        teller.close()


def test_a_cancel_is_told_before_another_definition_and_without_a_log_nothing_piles_up() -> None:
    log = SlowLog(away=1)
    teller = ControlTeller(lambda: log, topic_prefix="")
    try:
        for definition in (register(cooldown_ms=1), None, register(cooldown_ms=2), register(cooldown_ms=2)):
            teller.tell_trigger(ONE, definition and definition.SerializeToString())
        wait_until(lambda: log.told() and log.told()[-1] == (ONE, Request.REGISTER), what="the last definition")
        assert (ONE, Request.CANCEL) in log.told()
    finally:
        teller.close()
    mute = ControlTeller(None, topic_prefix="")
    mute.tell_trigger(ONE, b"")
    assert mute.untold_count == 0
    mute.close()


def test_everything_is_told_again_though_the_clock_was_set_back() -> None:
    world = World()
    world.ask(register())
    world.run(world.book.on_tick(NOW))
    world.told.clear()
    world.run(world.book.on_tick(NOW - 86_400 * SECOND))
    assert world.told == [(ONE, True)]


def test_expiries_of_cancelled_triggers_are_forgotten() -> None:
    world = World()
    for _ in range(3_000):
        world.ask(register(expires_at=NOW + 10**18))
        world.ask(cancel())
    world.ask(register(expires_at=NOW + 10**18))
    assert len(world.book._expiries) < 1_100
    world.run(world.book.on_tick(NOW + 10**18 + world.rules.grace_ns))
    assert len(world.book) == 0


def test_a_trigger_that_this_version_refuses_is_listed_with_the_others() -> None:
    other = register()
    other.pattern.steps[0].threshold.price = "no number"
    trigger = Trigger.of(other)
    assert (trigger.trigger_id, trigger.tickers) == (ONE, ())
    assert trigger.pattern() == other.pattern
