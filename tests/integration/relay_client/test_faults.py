"""What gets lost between a client and its answer, and how the request still ends once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from relay.errors import RetryableError
from relay.protocol.v1 import request_pb2
from relay_client import Client, RequestStatus
from tests.support.client_world import BTC, GatewayWorld, minutes
from tests.support.processes import wait_until

QUICK = {"status_query_ms": 300, "reply_timeout_ms": 300}


def ten_minutes(client: Client, first: int = 0):
    span = minutes(first, first + 10)
    return client.history(BTC, start=span.start_ns, end=span.end_ns, unit="ns")


def fetched_once(world: GatewayWorld) -> bool:
    return len(world.manager.fetched) == len(set(world.manager.fetched)) == 1


def test_the_request_is_sent_only_after_the_clients_own_probe_came_back_case_83(world):
    with world.client() as client:
        assert len(ten_minutes(client)) == 10
        assert client.counters()["barrier_passed"] == 1
    # The notification was published once, and was heard: nobody had to ask.
    assert world.manager.queries == []


def test_a_lost_notification_is_found_by_asking_the_status_case_84(world):
    world.manager.faults.lose_notifications = 1
    with world.client(status_query_ms=300) as client:
        assert len(ten_minutes(client)) == 10
    assert world.manager.queries
    assert fetched_once(world)


def test_a_repeated_notification_is_of_no_consequence(world):
    world.manager.faults.repeat_notifications = 5
    with world.client() as client:
        assert len(ten_minutes(client)) == 10
        assert len(ten_minutes(client, 10)) == 10
    assert len(world.manager.fetched) == 2


def test_a_lost_answer_to_a_submission_is_looked_for_by_its_id_and_fetched_once(world):
    world.manager.hold.set()
    world.manager.faults.lose_submit_replies = 1
    with world.client(**QUICK) as client, ThreadPoolExecutor(1) as pool:
        bars = pool.submit(ten_minutes, client)
        wait_until(lambda: world.manager.queries, what="the status to be asked")
        world.manager.hold.clear()
        assert len(bars.result()) == 10
    assert [m.request_id for m in world.manager.submits] == world.manager.fetched
    assert fetched_once(world)


def test_a_lost_submission_is_sent_again_with_the_same_id(world):
    world.manager.faults.lose_submits = 1
    with world.client(**QUICK) as client:
        assert len(ten_minutes(client)) == 10
    assert len(world.manager.submits) == 2
    assert len({m.request_id for m in world.manager.submits}) == 1
    assert fetched_once(world)


def test_a_manager_that_is_away_for_a_while_is_asked_again_with_the_same_id(world):
    world.manager.faults.unavailable = 2
    with world.client() as client:
        assert len(ten_minutes(client)) == 10
    assert len(world.manager.submits) == 3
    assert len({m.request_id for m in world.manager.submits}) == 1
    assert fetched_once(world)


def test_a_manager_that_stays_away_is_told_at_the_deadline(world):
    world.manager.faults.unavailable = 1_000
    span = minutes(0, 10)
    with world.client() as client, pytest.raises(RetryableError, match="later") as raised:
        client.history(BTC, start=span.start_ns, end=span.end_ns, unit="ns", timeout=2)
    assert raised.value.code == "UNAVAILABLE"


def test_a_request_that_outlives_the_deadline_goes_on_and_can_be_waited_for(world):
    world.manager.hold.set()
    with world.client() as client:
        span = minutes(0, 10)
        request = client.submit(BTC, start=span.start_ns, end=span.end_ns, unit="ns")
        assert client.request_status(request).status is RequestStatus.PENDING
        with pytest.raises(RetryableError, match=request.request_id) as raised:
            client.wait(request, timeout=1)
        assert raised.value.code == "TIMEOUT"
        world.manager.hold.clear()
        assert client.wait(request).status is RequestStatus.OK
        assert client.submit(
            BTC, start=span.start_ns, end=span.end_ns, unit="ns", request_id=request.request_id
        ).was_known
        assert len(ten_minutes(client)) == 10
    assert fetched_once(world)


def test_a_relay_killed_and_restarted_while_a_request_is_awaited_loses_nothing_case_99(world):
    world.manager.hold.set()
    world.manager.faults.lose_notifications = 1
    # The status is asked because the relay's epoch is new, not because the interval has passed.
    with world.client(status_query_ms=600_000) as client, ThreadPoolExecutor(1) as pool:
        bars = pool.submit(ten_minutes, client)
        wait_until(lambda: world.manager.submits, what="the submission")
        world.restart_gateway()
        world.manager.hold.clear()
        assert len(bars.result()) == 10
        assert client.counters()["barrier_passed"] >= 2
    assert fetched_once(world)


def test_a_request_made_while_the_relay_is_down_is_served_by_the_next_one_case_93(world):
    with world.client(**QUICK) as client, ThreadPoolExecutor(1) as pool:
        assert len(ten_minutes(client)) == 10
        world.gateway.kill()
        bars = pool.submit(ten_minutes, client, 10)
        wait_until(lambda: client.counters().get("reconnected", 0) >= 1, what="the client to notice")
        world.gateway = world.start_gateway()
        assert len(bars.result()) == 10
    assert len(world.manager.fetched) == 2


def test_questions_in_a_row_do_not_wait_for_each_other_case_94(world):
    world.manager.hold.set()
    world.manager.faults.lose_submit_replies = 1
    span = minutes(0, 10)
    with world.client(reply_timeout_ms=600_000) as client, ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(client.submit, BTC, start=span.start_ns, end=span.end_ns, unit="ns", timeout=3)
        wait_until(lambda: world.manager.submits, what="the submission")
        assert client.probe().manager_available
        assert not stuck.done()
        with pytest.raises(RetryableError):
            stuck.result()


def test_silence_is_noticed_though_no_connection_broke_case_98(tmp_path):
    """A stopped process keeps its connections; only the missing beats tell."""
    import os
    import signal

    world = GatewayWorld(tmp_path)
    try:
        world.until_ready()
        with world.client(beat_timeout_ms=1_500, **QUICK) as client:
            assert len(ten_minutes(client)) == 10
            os.kill(world.gateway.pid, signal.SIGSTOP)
            wait_until(lambda: client.counters().get("reconnected", 0) >= 1, what="the client to notice")
            os.kill(world.gateway.pid, signal.SIGCONT)
            assert len(ten_minutes(client, 10)) == 10
    finally:
        world.close()


def test_symbols_that_are_being_fetched_are_awaited_by_their_update(world):
    from relay.protocol.v1 import market_pb2

    asked = threading.Event()
    market = market_pb2.Market(market_id=BTC, exchange_id="BINANCE", base_asset="BTC", quote_asset="USDT")

    def answer(query: request_pb2.SymbolQuery) -> request_pb2.SymbolReply:
        if not asked.is_set():
            asked.set()
            update = market_pb2.SymbolMetadataUpdated(exchanges=["BINANCE"])
            world.manager.publish("METADATA_UPDATE", update)
            return request_pb2.SymbolReply(status=request_pb2.SymbolReply.PENDING)
        return request_pb2.SymbolReply(status=request_pb2.SymbolReply.OK, markets=[market])

    world.manager.symbols = answer
    with world.client() as client:
        assert [s.ticker for s in client.symbols("BTC")] == [BTC]


def test_a_relay_that_is_not_there_is_told_at_the_deadline(tmp_path: Path):
    from relay_client import ClientSettings
    from tests.support.processes import free_port

    settings = ClientSettings(request_port=free_port(), subscribe_port=free_port())
    with Client(settings=settings) as client, pytest.raises(RetryableError, match="relay status") as raised:
        client.probe(timeout=1)
    assert raised.value.code == "TIMEOUT"
