"""Triggers at a manager with real sockets: registered through relays, told through the log, wanted from ingestors."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relay.errors import RetryableError, StorageError
from relay.eventlog import CONTROL_TOPIC, TRIGGER_TOPIC, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.protocol.envelope import decode_record, encode, encode_record
from relay.protocol.v1 import market_pb2, request_pb2, trigger_pb2, work_pb2
from relay_client import when
from spark_jobs.manager.engine.commands import SaveTrigger
from spark_jobs.manager.store_sqlite import SqliteJobStore
from tests.support.manager import BTC, Ingestor, ManagerThread, Pusher, Relay
from tests.support.processes import wait_until
from tests.support.tables import MemoryTables

Request, Ack, Event = trigger_pb2.CEPTriggerRequest, trigger_pb2.CEPTriggerAck, trigger_pb2.CEPTriggerEvent
Submit = request_pb2.SubmitResponse


class FlakyLog(MemoryEventLog):
    """A log that can be away."""

    is_away = False

    def append(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def]
        if self.is_away:
            raise RetryableError("the log is away")
        return super().append(*args, **kwargs)  # type: ignore[arg-type]

    def told(self) -> list[tuple[str, int]]:
        values = [r.value for p in range(2) for r in self.read(CONTROL_TOPIC, partition=p)]
        found = [decode_record(value)[1] for value in values]
        return [(m.trigger_id, m.action) for m in found if isinstance(m, Request)]


class FullStore(SqliteJobStore):
    """A job table on a disk that can be full."""

    is_full = False

    def commit(self, changes):  # type: ignore[no-untyped-def]
        if FullStore.is_full and any(isinstance(change, SaveTrigger) for change in changes):
            raise StorageError("the disk is full")
        super().commit(changes)


@pytest.fixture
def log() -> FlakyLog:
    log = FlakyLog()
    log.ensure_topics(platform_topics(prefix="", partitions=2, retention_hours=1))
    return log


@pytest.fixture
def manager(tmp_path: Path, log: FlakyLog) -> Iterator[ManagerThread]:
    path = tmp_path / "jobs.sqlite"
    manager = ManagerThread(lambda: FullStore(path), MemoryTables(), path, open_log=lambda: log)
    yield manager
    FullStore.is_full = False
    manager.stop()


def registration(**fields: object) -> trigger_pb2.CEPTriggerRequest:
    values: dict[str, object] = {
        "trigger_id": str(uuid.uuid4()),
        "pattern": when(BTC).crosses_above("50000").build(),
        **fields,
    }
    return Request(**values)  # type: ignore[arg-type]


def listed(relay: Relay) -> list[str]:
    return list(relay.ask(Request(action=Request.LIST), Ack).active)


def cancel(trigger_id: str) -> trigger_pb2.CEPTriggerRequest:
    return Request(action=Request.CANCEL, trigger_id=trigger_id)


def test_a_trigger_survives_a_restart_keeps_its_ticker_running_and_ends_when_cancelled(
    relay: Relay, manager: ManagerThread, log: FlakyLog, open_peer: Callable[..., Ingestor]
) -> None:
    asked = registration()
    answer = relay.ask(asked, Ack)
    assert (answer.status, answer.topic) == (Ack.REGISTERED, f"CEP:{asked.trigger_id}")
    wait_until(lambda: (asked.trigger_id, Request.REGISTER) in log.told(), what="the definition in the log")
    manager.stop()
    before = len(log.told())
    manager.start()
    wait_until(lambda: log.told()[before:] == [(asked.trigger_id, Request.REGISTER)], what="the definition told again")
    page = relay.ask(Request(action=Request.LIST), Ack)
    assert list(page.definitions) == [asked]
    ingestor = open_peer(Ingestor(manager.endpoints, slot_type=work_pb2.WorkerReady.REALTIME))
    assert ingestor.work().ticker == BTC, "nobody is subscribed, but a trigger needs it"
    assert relay.ask(registration(trigger_id=asked.trigger_id), Ack).status == Ack.REGISTERED
    assert relay.ask(cancel(asked.trigger_id), Ack).status == Ack.CANCELLED
    assert listed(relay) == []
    wait_until(lambda: log.told()[-1] == (asked.trigger_id, Request.CANCEL), what="the end in the log")
    assert relay.ask(cancel(str(uuid.uuid4())), Ack).status == Ack.NOT_FOUND


def test_a_registration_is_durable_while_the_log_is_away_and_told_when_it_is_back(
    relay: Relay, manager: ManagerThread, log: FlakyLog
) -> None:
    log.is_away = True
    asked = registration()
    assert relay.ask(asked, Ack).status == Ack.REGISTERED
    manager.stop()
    manager.start()
    assert listed(relay) == [asked.trigger_id]
    log.is_away = False
    wait_until(lambda: log.told() == [(asked.trigger_id, Request.REGISTER)], what="the definition in the log")


def test_bad_requests_are_answered_whatever_they_are(relay: Relay) -> None:
    bad = [
        registration(trigger_id="1"),
        registration(pattern=trigger_pb2.Pattern()),
        registration(action=17),
        Request(),
    ]
    for request in bad:
        answer = relay.ask(request, Ack)
        assert (answer.status, bool(answer.error_message)) == (Ack.INVALID, True)
    step = when(BTC).crosses("1").build().steps[0]
    huge = registration(pattern=trigger_pb2.Pattern(steps=[step] * 5_000))
    assert relay.ask(huge, Submit).status == Submit.INVALID
    relay.send_frames(b"client", b"1234", b"", b"\x01", b"\x09\xff\xff\xff")
    assert relay.answer(Submit).status == Submit.INVALID
    assert listed(relay) == []


def test_what_could_not_be_stored_is_not_registered(relay: Relay) -> None:
    FullStore.is_full = True
    refused = relay.ask(registration(), Submit)
    assert (refused.status, refused.error_code) == (Submit.ERROR, "STORAGE")
    assert listed(relay) == []
    FullStore.is_full = False
    assert relay.ask(registration(), Ack).status == Ack.REGISTERED


def test_firings_pass_on_their_own_topics_only_and_end_a_one_shot(
    relay: Relay, manager: ManagerThread, open_peer: Callable[..., Pusher]
) -> None:
    asked = registration(one_shot=True)
    relay.ask(asked, Ack)
    client_id, other = str(uuid.uuid4()), str(uuid.uuid4())
    event = Event(trigger_id=asked.trigger_id, match_id="m", fired_at=5)
    topics = [f"CEP:{asked.trigger_id}".encode(), f"RESPONSE:{client_id}".encode()]
    relay.listen(*topics, b"HEARTBEAT:MANAGER", b"CEP:", f"{BTC}|tick".encode())
    relay.published(b"HEARTBEAT:MANAGER")
    pusher = open_peer(Pusher(manager.endpoints))
    wrong: list[tuple[bytes, object]] = [
        (f"CEP:{other}".encode(), event),
        (b"CEP:", event),
        (b"RESPONSE:me", event),
        (f"{BTC}|tick".encode(), event),
        (topics[0], Event(match_id="m")),
        (topics[0], market_pb2.Tick()),
        (topics[1], market_pb2.OHLC()),
        (b"OUTCOME:" + other.encode(), event),
        (b"RESPONSE:\xff", event),
    ]
    for topic, message in wrong:
        pusher.push(topic, message)  # type: ignore[arg-type]
    for topic in topics:
        pusher.push(topic, event)
    for topic in topics:
        got = relay.published(topic, but=tuple(t for t, _ in wrong if t not in topics))
        assert isinstance(got, Event)
        assert (got.match_id, got.stamp.topic_sequence) == ("m", 1 if topic.startswith(b"CEP:") else 0)
    assert manager.counters.get("manager.notifications.rejected.wrong_topic") == len(wrong)
    wait_until(lambda: listed(relay) == [], what="the one-shot to end")


def test_a_late_firing_of_a_cancelled_trigger_does_not_end_the_next_one_of_its_id(
    relay: Relay, manager: ManagerThread, open_peer: Callable[..., Pusher]
) -> None:
    asked, other = registration(one_shot=True), registration(one_shot=True)
    relay.ask(asked, Ack)
    made_before_ns = time.time_ns()
    relay.ask(Request(trigger_id=asked.trigger_id, action=Request.CANCEL), Ack)
    for one in (asked, other):
        assert relay.ask(one, Ack).status == Ack.REGISTERED
    pusher = open_peer(Pusher(manager.endpoints))

    def fire(trigger_id: str, made_ns: int) -> None:
        event = Event(trigger_id=trigger_id, match_id="m", fired_at=5)
        event.stamp.published_at = made_ns
        pusher.push(f"CEP:{trigger_id}".encode(), event)

    fire(asked.trigger_id, made_before_ns)
    fire(other.trigger_id, time.time_ns())
    wait_until(lambda: other.trigger_id not in listed(relay), what="the other one-shot to end")
    assert listed(relay) == [asked.trigger_id]
    fire(asked.trigger_id, time.time_ns())
    wait_until(lambda: listed(relay) == [], what="the one-shot to end")


def test_a_one_shot_that_fired_while_the_manager_was_away_is_found_in_the_log(
    relay: Relay, manager: ManagerThread, log: FlakyLog
) -> None:
    fired, waiting = registration(one_shot=True), registration(one_shot=True)
    for asked in (fired, waiting):
        relay.ask(asked, Ack)
    manager.stop()
    event = Event(trigger_id=fired.trigger_id, match_id="m", fired_at=5)
    log.append(TRIGGER_TOPIC, key=fired.trigger_id.encode(), value=encode_record(event))
    manager.start()
    wait_until(lambda: listed(relay) == [waiting.trigger_id], what="the one-shot to end")


def test_firings_are_replayed_from_the_log_by_time(relay: Relay, log: FlakyLog) -> None:
    trigger_id = str(uuid.uuid4())
    for n in (1, 2, 3, 3):
        event = Event(trigger_id=trigger_id, match_id=str(n), fired_at=n)
        log.append(TRIGGER_TOPIC, key=trigger_id.encode(), value=encode_record(event))
    log.append(TRIGGER_TOPIC, key=b"other", value=encode_record(Event(trigger_id="other", fired_at=2)))
    topic = f"CEP:{trigger_id}"
    answer = relay.ask(request_pb2.ReplayRequest(topic=topic, start=2), request_pb2.ReplayResponse)
    assert answer.status == request_pb2.ReplayResponse.OK
    assert [Event.FromString(r[2:]).match_id for r in answer.records] == ["2", "3", "3"]
    first = relay.ask(request_pb2.ReplayRequest(topic=topic, start=1, limit=2), request_pb2.ReplayResponse)
    assert first.status == request_pb2.ReplayResponse.PARTIAL
    rest = request_pb2.ReplayRequest(topic=topic, start=1, from_sequence=first.next_from)
    assert len(relay.ask(rest, request_pb2.ReplayResponse).records) == 2
    for wrong in ({"topic": "CEP:x", "start": 1}, {"topic": topic, "from_trade_id": "1", "to_trade_id": "2"}):
        refused = relay.ask(request_pb2.ReplayRequest(**wrong), request_pb2.ReplayResponse)  # type: ignore[arg-type]
        assert refused.status == request_pb2.ReplayResponse.INVALID


def test_hundreds_of_registrations_in_one_go_are_all_answered(relay: Relay) -> None:
    requests = [registration() for _ in range(300)]
    for n, request in enumerate(requests):
        relay.send_frames(str(n).encode(), b"", *encode(request))
    for n in range(300):
        assert relay.answer(Ack, (str(n).encode(), b"")).status == Ack.REGISTERED
    assert listed(relay) == sorted(r.trigger_id for r in requests)
