"""Requests, notifications and forwarding over real sockets."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable

import pytest

from relay.protocol.envelope import VERSION_FRAME, encode
from relay.protocol.ranges import Range
from relay.protocol.v1 import market_pb2, request_pb2, work_pb2
from tests.support.manager import (
    BTC,
    MINUTE_NS,
    START_NS,
    Ingestor,
    ManagerThread,
    Pusher,
    Relay,
    asked_range,
    history,
)
from tests.support.processes import wait_until
from tests.support.tables import MemoryTables, coverage_row

Submit = request_pb2.SubmitResponse
SymbolReply = request_pb2.SymbolReply
Notification = request_pb2.HistoryReadyNotification


def deliver(ingestor: Ingestor, tables: MemoryTables) -> work_pb2.DataRequest:
    """Fetch the next job, end it, and make its bars visible."""
    data = ingestor.work()
    tables.commit(coverage_row(data.job_id, asked_range(data), attempt=data.attempt, ticker=data.ticker))
    ingestor.complete(data)
    return data


def test_a_request_is_acknowledged_dispatched_and_notified(
    relay: Relay, ingestor: Ingestor, tables: MemoryTables, pusher: Pusher
) -> None:
    asked = history()
    answer = relay.submit(asked)
    assert (answer.status, answer.request_id) == (Submit.QUEUED, asked.request_id)
    assert answer.notification_topic == f"RESPONSE:{asked.client_id}"
    data = ingestor.work()
    assert relay.status(asked.request_id).status == Notification.PENDING
    ingestor.complete(data)
    tables.commit(coverage_row(data.job_id, asked_range(data)))
    pusher.hint(data.job_id)
    told = relay.notification(asked)
    assert (told.status, told.row_count, told.request_id) == (Notification.OK, 10, asked.request_id)
    assert relay.status(asked.request_id) == told


def test_a_request_without_client_id_is_notified_on_its_own_topic(
    relay: Relay, ingestor: Ingestor, tables: MemoryTables
) -> None:
    asked = history(client_id=None)
    assert relay.submit(asked).notification_topic == f"HISTORY_READY:{asked.request_id}"
    deliver(ingestor, tables)
    assert relay.notification(asked).status == Notification.OK


def test_a_lost_hint_only_delays_the_notice(relay: Relay, ingestor: Ingestor, tables: MemoryTables) -> None:
    """case 84: the result is found without any notice from the history job."""
    asked = history()
    relay.submit(asked)
    data = ingestor.work()
    ingestor.complete(data)
    wait_until(lambda: tables.scans > 2, what="reconciliation before anything is visible")
    tables.commit(coverage_row(data.job_id, asked_range(data)))
    assert relay.notification(asked).status == Notification.OK


def test_duplicate_and_foreign_hints_change_nothing(
    relay: Relay, ingestor: Ingestor, tables: MemoryTables, pusher: Pusher, manager: ManagerThread
) -> None:
    asked = history()
    relay.submit(asked)
    data = deliver(ingestor, tables)
    for _ in range(20):
        pusher.hint(data.job_id)
        pusher.hint(str(uuid.uuid4()))
    assert relay.notification(asked).status == Notification.OK
    wait_until(lambda: manager.counters.get("manager.hints.received") == 40, what="all hints")
    marker = history(20, 30, client_id=asked.client_id)
    relay.submit(marker)
    deliver(ingestor, tables)
    assert relay.notification(marker).request_id == marker.request_id
    wait_until(lambda: manager.counters.get("manager.jobs.ended") == 2, what="every end, once")


def test_a_duplicate_is_said_and_a_finished_one_is_notified_again(
    relay: Relay, ingestor: Ingestor, tables: MemoryTables
) -> None:
    asked = history()
    assert relay.submit(asked).status == Submit.QUEUED
    assert relay.submit(asked).status == Submit.DUPLICATE
    deliver(ingestor, tables)
    first = relay.notification(asked)
    again = relay.submit(asked)
    assert (again.status, again.notification_topic) == (Submit.DUPLICATE, f"RESPONSE:{asked.client_id}")
    assert relay.notification(asked) == first


def test_one_id_with_other_parameters_is_a_conflict(relay: Relay) -> None:
    asked = history()
    relay.submit(asked)
    asked.end_time += MINUTE_NS
    answer = relay.submit(asked)
    assert (answer.status, answer.error_code) == (Submit.INVALID, "REQUEST_CONFLICT")


def test_a_wrong_request_is_answered_with_its_code_and_not_stored(relay: Relay) -> None:
    asked = history(ticker="BTC/USDT.NOWHERE")
    answer = relay.submit(asked)
    assert (answer.status, answer.error_code) == (Submit.INVALID, "UNKNOWN_EXCHANGE")
    assert "BINANCE" in answer.error_message
    assert relay.status(asked.request_id).error_code == "UNKNOWN_REQUEST"


def test_an_exchange_becomes_known_by_its_first_offer(relay: Relay, manager: ManagerThread) -> None:
    asked = history(ticker="BTC/USDT.BYBIT")
    assert relay.submit(asked).error_code == "UNKNOWN_EXCHANGE"
    newcomer = Ingestor(manager.endpoints, exchange="BYBIT")
    newcomer.offer()
    newcomer.receive(work_pb2.BrokerPing)
    assert relay.submit(asked).status == Submit.QUEUED
    assert newcomer.receive(work_pb2.DataRequest).ticker == "BTC/USDT.BYBIT"
    newcomer.close()


def test_the_acknowledgement_does_not_wait_for_the_tables(relay: Relay, tables: MemoryTables) -> None:
    is_open = threading.Event()
    read, tables.coverage = tables.coverage, lambda *a, **k: is_open.wait() and read(*a, **k)  # type: ignore[method-assign]
    try:
        asked = history()
        assert relay.submit(asked).status == Submit.QUEUED
        assert relay.status(asked.request_id).status == Notification.PENDING
    finally:
        is_open.set()


def test_tables_that_are_away_delay_and_lose_nothing(relay: Relay, ingestor: Ingestor, tables: MemoryTables) -> None:
    tables.is_away = True
    asked = history()
    assert relay.submit(asked).status == Submit.QUEUED
    answer = relay.ask(request_pb2.SymbolQuery(exchange="BINANCE"), request_pb2.SymbolReply)
    assert (answer.status, answer.error_code) == (request_pb2.SymbolReply.ERROR, "STORAGE")
    tables.is_away = False
    deliver(ingestor, tables)
    assert relay.notification(asked).status == Notification.OK


def test_a_covered_range_ends_without_any_ingestor(relay: Relay, tables: MemoryTables) -> None:
    tables.commit(coverage_row("earlier", Range(START_NS, START_NS + 60 * MINUTE_NS)))
    asked = history()
    relay.submit(asked)
    assert relay.notification(asked).row_count == 10


def test_two_relays_each_get_their_answers_and_both_the_notifications(
    relay: Relay, manager: ManagerThread, open_peer: Callable[..., Relay], ingestor: Ingestor, tables: MemoryTables
) -> None:
    other = open_peer(Relay(manager.endpoints))
    other.listen()
    one, two = history(), history()
    relay.send_frames(b"same client id", b"", *encode(one))
    other.send_frames(b"same client id", b"", *encode(two))
    routing = (b"same client id", b"")
    assert relay.answer(Submit, routing).request_id == one.request_id
    assert other.answer(Submit, routing).request_id == two.request_id
    deliver(ingestor, tables)
    for listener in (relay, other):
        assert listener.notification(one).status == Notification.OK
        assert listener.notification(two).status == Notification.OK


def test_an_outcome_waits_for_a_listener_and_late_relays_get_it_again(
    manager: ManagerThread, open_peer: Callable[..., Relay], ingestor: Ingestor, tables: MemoryTables
) -> None:
    """case 83: a publisher that has just started, or a relay that has just connected, misses nothing."""
    mute = open_peer(Relay(manager.endpoints))
    asked = history()
    mute.submit(asked)
    deliver(ingestor, tables)
    wait_until(lambda: manager.counters.get("manager.outcomes.unheard"), what="an end that nobody hears")
    for _ in range(2):
        late = open_peer(Relay(manager.endpoints))
        late.listen()
        assert late.notification(asked).status == Notification.OK


@pytest.mark.parametrize(
    ("frames", "status", "reason"),
    [
        ([b"client", b"", b"\x02", b"\x10"], Submit.INVALID, "wrong_version"),
        ([b"client", b"", VERSION_FRAME, b""], Submit.INVALID, "empty_frame"),
        ([b"client", b"", VERSION_FRAME, b"\x10\xff\xff"], Submit.INVALID, "undecodable"),
        ([b"client", b"", VERSION_FRAME, b"\x7f"], Submit.INVALID, "unknown_type"),
        ([b"client", b"", VERSION_FRAME, b"\x20"], Submit.INVALID, "wrong_channel"),
        ([b"client", b"", VERSION_FRAME, b"\x07"], Submit.UNSUPPORTED, "retired_type"),
        ([b"client", b"", VERSION_FRAME, b"\x10" + bytes(65 * 1024)], Submit.INVALID, "frame_too_large"),
    ],
)
def test_malformed_requests_are_counted_and_answered(
    relay: Relay, manager: ManagerThread, frames: list[bytes], status: int, reason: str
) -> None:
    relay.send_frames(*frames)
    assert relay.answer(Submit, (b"client", b"")).status == status
    assert manager.counters.get(f"manager.requests.rejected.{reason}") == 1
    assert relay.submit(history()).status == Submit.QUEUED


def test_too_many_frames_are_answered_behind_all_of_their_routing(relay: Relay, manager: ManagerThread) -> None:
    relay.send_frames(*[b"x"] * 20, VERSION_FRAME, b"\x10")
    relay.answer(Submit, (b"x",) * 20)
    assert manager.counters.get("manager.requests.rejected.too_many_frames") == 1


def test_what_is_not_served_here_says_so_in_the_right_reply(relay: Relay) -> None:
    for kind in ("tick", "ohlc:60"):
        replay = relay.ask(request_pb2.ReplayRequest(topic=f"{BTC}|{kind}", start=1), request_pb2.ReplayResponse)
        assert (replay.status, replay.error_code) == (request_pb2.ReplayResponse.UNAVAILABLE, "UNAVAILABLE")
    stats = relay.ask(request_pb2.StatsQuery(exchange="BINANCE"), Submit)
    assert (stats.status, stats.error_code) == (Submit.UNAVAILABLE, "UNAVAILABLE")
    assert "log_bootstrap_servers" in stats.error_message


def test_other_notifications_are_forwarded_with_a_stamp_that_counts_by_topic(relay: Relay, pusher: Pusher) -> None:
    update = market_pb2.SymbolMetadataUpdated(namespace="market", table="symbol_metadata", changed=3)
    stamps = []
    relay.published(b"HEARTBEAT:MANAGER")
    for _ in range(3):
        pusher.push(b"METADATA_UPDATE", update)
        got = relay.published(b"METADATA_UPDATE")
        assert isinstance(got, market_pb2.SymbolMetadataUpdated)
        assert got.changed == 3
        stamps.append(got.stamp)
    assert [stamp.topic_sequence for stamp in stamps] == [1, 2, 3]
    assert len({stamp.publisher_epoch for stamp in stamps}) == 1


def test_a_notice_of_a_sender_that_lives_for_one_message_is_published_case_82(
    relay: Relay, manager: ManagerThread
) -> None:
    """Case 82: it is pushed and queued, and published by a socket that was there before and stays."""
    relay.listen()
    relay.published(b"HEARTBEAT:MANAGER")
    for number in range(5):
        sender = Pusher(manager.endpoints)
        sender.push(b"METADATA_UPDATE", market_pb2.SymbolMetadataUpdated(snapshot_id=number))
        sender.socket.close(5_000)
        sender.context.term()
    found = [relay.published(b"METADATA_UPDATE") for _ in range(5)]
    assert sorted(message.snapshot_id for message in found) == list(range(5))


def test_only_the_manager_ends_a_request(relay: Relay, pusher: Pusher, manager: ManagerThread) -> None:
    client_id = str(uuid.uuid4())
    forged = request_pb2.HistoryReadyNotification(request_id=str(uuid.uuid4()), client_id=client_id)
    pusher.push(f"RESPONSE:{client_id}".encode(), forged)
    pusher.push(b"OUTCOME:x", market_pb2.SymbolMetadataUpdated())
    pusher.socket.send_multipart([b"T", VERSION_FRAME, b"\x7f"])
    wait_until(lambda: manager.counters.get("manager.notifications.rejected.wrong_topic") == 2, what="rejections")
    wait_until(lambda: manager.counters.get("manager.notifications.rejected.unknown_type"), what="rejection")
    relay.published(b"HEARTBEAT:MANAGER", but=(f"RESPONSE:{client_id}".encode(), b"OUTCOME:x", b"T"))


def test_what_is_pushed_into_the_publish_socket_is_dropped_and_counted(relay: Relay, manager: ManagerThread) -> None:
    relay.published(b"HEARTBEAT:MANAGER")
    relay._publish.send_multipart([b"\x07not a subscription"])
    wait_until(
        lambda: manager.counters.get("manager.publish.rejected.pushed_into_xpub") == 1, what="the drop to be counted"
    )


def test_the_manager_beats(relay: Relay) -> None:
    first, second = relay.published(b"HEARTBEAT:MANAGER"), relay.published(b"HEARTBEAT:MANAGER")
    assert isinstance(first, market_pb2.Heartbeat)
    assert isinstance(second, market_pb2.Heartbeat)
    assert (first.source, first.state) == (market_pb2.Heartbeat.MANAGER, market_pb2.Heartbeat.UP)
    assert second.stamp.topic_sequence == first.stamp.topic_sequence + 1


def test_a_ticker_that_is_not_stored_yet_is_pending_while_its_exchanges_symbols_arrive_in_parts(
    relay: Relay, ingestor: Ingestor, tables: MemoryTables, manager: ManagerThread
) -> None:
    assert relay.ask(request_pb2.SymbolQuery(ticker=BTC), SymbolReply).status == SymbolReply.PENDING
    data = ingestor.work()
    ingestor.send(work_pb2.WorkComplete(job_id=data.job_id, attempt=data.attempt, success=True, rows=2))
    wait_until(lambda: manager.counters.get("manager.jobs.ended") == 1, what="the symbols job's end")
    tables.commit_markets([market_pb2.Market(market_id="A/B.BINANCE", exchange_id="BINANCE")])
    assert relay.ask(request_pb2.SymbolQuery(ticker=BTC), SymbolReply).status == SymbolReply.PENDING
    found = relay.ask(request_pb2.SymbolQuery(ticker="A/B.BINANCE"), SymbolReply)
    assert found.status == SymbolReply.OK
    tables.commit_markets([market_pb2.Market(market_id=BTC, exchange_id="BINANCE")])
    assert relay.ask(request_pb2.SymbolQuery(ticker=BTC), SymbolReply).status == SymbolReply.OK
    unknown = relay.ask(request_pb2.SymbolQuery(ticker="NO/COIN.BINANCE"), SymbolReply)
    assert unknown.status == SymbolReply.NOT_FOUND


def test_symbols_are_fetched_once_then_answered(
    relay: Relay, ingestor: Ingestor, tables: MemoryTables, manager: ManagerThread
) -> None:
    for _ in range(2):
        answer = relay.ask(request_pb2.SymbolQuery(ticker="BINANCE:BTC/USDT"), SymbolReply)
        assert answer.status == SymbolReply.PENDING
    data = ingestor.work()
    assert (data.type, data.ticker) == (work_pb2.DataRequest.SYMBOLS, "BINANCE")
    ingestor.complete(data)
    wait_until(lambda: manager.counters.get("manager.jobs.ended") == 1, what="the symbols job's end")
    assert relay.ask(request_pb2.SymbolQuery(ticker=BTC), SymbolReply).status == SymbolReply.PENDING
    tables.commit_markets([market_pb2.Market(market_id=BTC, exchange_id="BINANCE")])
    found = relay.ask(request_pb2.SymbolQuery(ticker="BINANCE:BTC/USDT"), SymbolReply)
    assert (found.status, [m.market_id for m in found.markets]) == (SymbolReply.OK, [BTC])
    unknown = relay.ask(request_pb2.SymbolQuery(ticker="NO/COIN.BINANCE"), SymbolReply)
    assert (unknown.status, unknown.error_code) == (SymbolReply.NOT_FOUND, "UNKNOWN_SYMBOL")
    nowhere = relay.ask(request_pb2.SymbolQuery(exchange="NOWHERE"), SymbolReply)
    assert (nowhere.status, nowhere.error_code) == (SymbolReply.NOT_FOUND, "UNKNOWN_EXCHANGE")
    wait_until(lambda: manager.counters.get("manager.jobs.unfinished") == 0, what="the gauge of the turn after the end")
