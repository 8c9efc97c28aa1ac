"""24 h statistics at a manager with real sockets: scripted ingestors write to the log, relays ask and listen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relay.errors import RetryableError
from relay.eventlog import TICKER_STATS_TOPIC, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.protocol.envelope import encode_record
from relay.protocol.v1 import market_pb2, request_pb2, work_pb2
from spark_jobs.manager.store_sqlite import SqliteJobStore
from tests.support.manager import Ingestor, ManagerThread, Relay
from tests.support.processes import wait_until
from tests.support.tables import MemoryTables

Ticker24h, Submit = market_pb2.Ticker24h, request_pb2.SubmitResponse
TOPIC = b"BINANCE|ticker24h"
ASK = request_pb2.StatsQuery(exchange="BINANCE")


class FlakyLog(MemoryEventLog):
    """A log that can be away."""

    failures = 0

    def read(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def]
        if self.failures:
            self.failures -= 1
            raise RetryableError("the log is away")
        return super().read(*args, **kwargs)  # type: ignore[arg-type]


@pytest.fixture
def log() -> FlakyLog:
    log = FlakyLog()
    log.ensure_topics(platform_topics(prefix="", partitions=2, retention_hours=1))
    return log


@pytest.fixture
def start(tmp_path: Path, log: FlakyLog) -> Iterator[Callable[..., ManagerThread]]:
    started: list[ManagerThread] = []
    path = tmp_path / "jobs.sqlite"

    def make(**changes: object) -> ManagerThread:
        started.append(
            ManagerThread(lambda: SqliteJobStore(path), MemoryTables(), path, open_log=lambda: log, **changes)
        )
        return started[-1]

    yield make
    for manager in started:
        manager.stop()


@pytest.fixture
def manager(start: Callable[..., ManagerThread]) -> ManagerThread:
    return start()


@pytest.fixture
def relay(manager: ManagerThread, open_peer: Callable[..., Relay]) -> Relay:
    relay = open_peer(Relay(manager.endpoints))
    relay.listen(TOPIC, b"HEARTBEAT:MANAGER")
    return relay


@pytest.fixture
def ingestor(manager: ManagerThread, open_peer: Callable[..., Ingestor]) -> Ingestor:
    ingestor = open_peer(Ingestor(manager.endpoints))
    ingestor.offer()
    wait_until(lambda: manager.counters.get("manager.work.received.WorkerReady"), what="the offer")
    return ingestor


def write(log: MemoryEventLog, *, at: int | None = None, parts: int = 1, price: str = "1") -> int:
    """An ingestor's records; returns their time."""
    at = at or time.time_ns()
    for index in range(parts):
        row = market_pb2.TickerStats(ticker=f"A{index}/USDT.BINANCE", exchange_id="BINANCE", last_price=price)
        part = Ticker24h(exchange_id="BINANCE", generated_at=at, part_index=index, part_count=parts, tickers=[row])
        log.append(TICKER_STATS_TOPIC, key=b"BINANCE", value=encode_record(part))
    return at


def epoch_heard(relay: Relay) -> int:
    """The epoch of the manager that beats."""
    beat = relay.published(b"HEARTBEAT:MANAGER")
    assert isinstance(beat, market_pb2.Heartbeat)
    return beat.stamp.publisher_epoch


def send(relay: Relay, *clients: bytes) -> None:
    from relay.protocol.envelope import encode

    for client in clients:
        relay.send_frames(client, b"", *encode(ASK))


def asked(manager: ManagerThread, count: int) -> None:
    wait_until(lambda: manager.counters.get("manager.statistics.asked") == count, what="the queries")


def test_a_query_is_fetched_once_for_all_who_ask_and_in_the_log_before_it_is_published(
    relay: Relay, ingestor: Ingestor, manager: ManagerThread, log: FlakyLog
) -> None:
    relay.published(b"HEARTBEAT:MANAGER")
    send(relay, b"one", b"two")
    data = ingestor.receive(work_pb2.DataRequest)
    assert (data.type, data.ticker) == (work_pb2.DataRequest.STATISTICS, "BINANCE")
    send(relay, b"three")
    asked(manager, 3)
    at = write(log)
    ingestor.complete(data)
    for client in (b"one", b"two", b"three"):
        answer = relay.answer(Ticker24h, (client, b""))
        assert (answer.generated_at, len(answer.tickers)) == (at, 1)
    published = relay.published(TOPIC)
    assert isinstance(published, Ticker24h)
    assert (published.generated_at, published.stamp.topic_sequence) == (at, 1)
    assert relay.ask(ASK, Ticker24h).generated_at == at
    assert manager.counters.get("manager.jobs.ended") == 1


def test_statistics_that_are_too_old_are_fetched_again(
    start: Callable[..., ManagerThread], open_peer: Callable[..., object], log: FlakyLog
) -> None:
    manager = start(statistics_fresh_seconds=0)
    relay, ingestor = open_peer(Relay(manager.endpoints)), open_peer(Ingestor(manager.endpoints))
    assert isinstance(relay, Relay)
    assert isinstance(ingestor, Ingestor)
    for _ in range(2):
        ingestor.offer()
        wait_until(lambda: manager.counters.get("manager.slots.known"), what="the slot")
        send(relay, b"c")
        data = ingestor.receive(work_pb2.DataRequest)
        at = write(log)
        ingestor.complete(data)
        assert relay.answer(Ticker24h, (b"c", b"")).generated_at == at


def test_parts_are_published_and_asked_for_one_by_one(
    relay: Relay, ingestor: Ingestor, manager: ManagerThread, log: FlakyLog
) -> None:
    relay.published(b"HEARTBEAT:MANAGER")
    send(relay, b"c")
    data = ingestor.receive(work_pb2.DataRequest)
    write(log, parts=3)
    ingestor.complete(data)
    assert relay.answer(Ticker24h, (b"c", b"")).part_count == 3
    for index in range(3):
        published = relay.published(TOPIC)
        assert isinstance(published, Ticker24h)
        assert published.part_index == index
        part = relay.ask(request_pb2.StatsQuery(exchange="BINANCE", part_index=index), Ticker24h)
        assert [row.ticker for row in part.tickers] == [f"A{index}/USDT.BINANCE"]
    beyond = relay.ask(request_pb2.StatsQuery(exchange="BINANCE", part_index=3), Submit)
    assert (beyond.status, beyond.error_code) == (Submit.INVALID, "INVALID_REQUEST")


def test_a_failed_fetch_is_told_with_its_reason(relay: Relay, ingestor: Ingestor) -> None:
    send(relay, b"c")
    data = ingestor.receive(work_pb2.DataRequest)
    failed = work_pb2.WorkComplete(
        job_id=data.job_id, attempt=data.attempt, error_code="UNKNOWN_SYMBOL", error_message="HTTP 404"
    )
    ingestor.send(failed)
    answer = relay.answer(Submit, (b"c", b""))
    assert (answer.status, answer.error_code) == (Submit.ERROR, "UNKNOWN_SYMBOL")
    assert "HTTP 404" in answer.error_message


def test_unknown_and_unserved_exchanges_are_told_apart(relay: Relay) -> None:
    unknown = relay.ask(request_pb2.StatsQuery(exchange="NOWHERE"), Submit)
    assert (unknown.status, unknown.error_code) == (Submit.INVALID, "UNKNOWN_EXCHANGE")
    away = relay.ask(ASK, Submit)
    assert (away.status, away.error_code) == (Submit.UNAVAILABLE, "UNAVAILABLE")
    assert "no ingestor serves BINANCE" in away.error_message
    early = relay.ask(request_pb2.StatsQuery(exchange="BINANCE", part_index=1), Submit)
    assert (early.status, early.error_code) == (Submit.INVALID, "INVALID_REQUEST")


def test_a_query_that_waited_for_too_long_is_told_to_ask_again_and_the_fetch_goes_on(
    start: Callable[..., ManagerThread], open_peer: Callable[..., object], log: FlakyLog
) -> None:
    manager = start(statistics_wait_seconds=1)
    relay, ingestor = open_peer(Relay(manager.endpoints)), open_peer(Ingestor(manager.endpoints))
    assert isinstance(relay, Relay)
    assert isinstance(ingestor, Ingestor)
    ingestor.offer()
    wait_until(lambda: manager.counters.get("manager.work.received.WorkerReady"), what="the offer")
    late = relay.ask(ASK, Submit)
    assert (late.status, "ask again" in late.error_message) == (Submit.UNAVAILABLE, True)
    data = ingestor.receive(work_pb2.DataRequest)
    at = write(log)
    ingestor.complete(data)
    wait_until(lambda: manager.counters.get("manager.publish.sent") > 0, what="the publication")
    assert relay.ask(ASK, Ticker24h).generated_at == at


def test_a_log_that_is_away_when_the_fetch_ends_is_read_when_it_is_back(
    relay: Relay, ingestor: Ingestor, log: FlakyLog
) -> None:
    send(relay, b"c")
    data = ingestor.receive(work_pb2.DataRequest)
    at = write(log)
    log.failures = 1
    ingestor.complete(data)
    assert relay.answer(Ticker24h, (b"c", b"")).generated_at == at


def test_records_that_were_acknowledged_and_are_gone_are_an_error(relay: Relay, ingestor: Ingestor) -> None:
    send(relay, b"c")
    ingestor.complete(ingestor.receive(work_pb2.DataRequest))
    answer = relay.answer(Submit, (b"c", b""))
    assert (answer.status, "does not hold them" in answer.error_message) == (Submit.ERROR, True)


def test_a_restarted_manager_publishes_the_newest_again_and_answers_from_the_log(
    relay: Relay, ingestor: Ingestor, manager: ManagerThread, log: FlakyLog
) -> None:
    write(log, at=time.time_ns() - 40 * 60 * 10**9)
    at = write(log, parts=2)
    log.append(TICKER_STATS_TOPIC, key=b"BINANCE", value=b"\x01\x7fnonsense")
    before = epoch_heard(relay)
    manager.stop()
    known = manager.counters.get("manager.work.received.WorkerReady")
    manager.start()
    wait_until(lambda: epoch_heard(relay) != before, what="the subscription at the new manager")
    ingestor.offer()
    wait_until(lambda: manager.counters.get("manager.work.received.WorkerReady") > known, what="the offer")
    # The manager of before may have published these, too.
    published = next(message for _ in range(2) if (message := relay.published(TOPIC)).stamp.publisher_epoch != before)
    assert isinstance(published, Ticker24h)
    assert published.generated_at == at
    assert relay.ask(ASK, Ticker24h).part_count == 2


def test_a_job_that_runs_while_the_manager_restarts_is_published_at_its_end(
    relay: Relay, ingestor: Ingestor, manager: ManagerThread, log: FlakyLog
) -> None:
    send(relay, b"c")
    data = ingestor.receive(work_pb2.DataRequest)
    before = epoch_heard(relay)
    manager.stop()
    manager.start()
    wait_until(lambda: epoch_heard(relay) != before, what="the subscription at the new manager")
    ingestor.beat(data)
    at = write(log)
    ingestor.complete(data)
    published = relay.published(TOPIC)
    assert isinstance(published, Ticker24h)
    assert published.generated_at == at
