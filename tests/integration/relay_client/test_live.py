"""Subscriptions through a real gateway: each trade once, losses repaired or said."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from relay.errors import PeerError, RelayError, RetryableError, SettingsError
from relay.protocol.v1 import market_pb2, request_pb2
from relay_client import AsyncClient, CallbackFailed, Gap, HistoryJoined, Loss, Overrun, StateChanged, Tick
from tests.support.client_world import BTC
from tests.support.live_world import BTC_TICK, gap
from tests.support.processes import wait_until

ETH = "ETH/USDT.BINANCE"
WITH_TICKS = (BTC_TICK, f"{BTC}|gap", f"{BTC}|heartbeat")
LONG_AGO = datetime(2023, 11, 1, tzinfo=UTC)


def numbers(subscription, count: int) -> list[int]:
    """Ids of the next ticks."""
    found = []
    while len(found) < count:
        item = subscription.next(timeout=30)
        assert item is not None, f"got {found}, then nothing; {subscription.counters()}, {subscription.events()}"
        found.append(int(item.trade_id))
    return found


def test_ticks_of_a_subscribed_ticker_come_with_exact_numbers(world, live):
    with world.client() as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.trade([7])
        tick = next(subscription)
        assert isinstance(tick, Tick)
        assert (tick.ticker, tick.trade_id, tick.price, tick.amount) == (
            BTC,
            "7",
            Decimal("42.20"),
            Decimal("1.0000007"),
        )
        assert not tick.repaired


def test_what_is_lost_on_the_way_is_repaired_and_flagged(world, live):
    with world.client() as client, client.subscribe(BTC_TICK) as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.trade([1, 2])
        live.trade([3, 4, 5], is_lost=True)
        live.trade([6])
        assert numbers(subscription, 3) == [1, 2, 6]
        ticks = [subscription.next(timeout=30) for _ in range(3)]
        assert [(t.trade_id, t.repaired) for t in ticks] == [("3", True), ("4", True), ("5", True)]


def test_an_unknown_ticker_is_an_error_and_not_silence(world, live):
    with world.client() as client, pytest.raises(PeerError, match="expected a known ticker") as caught:
        client.subscribe("NO/SUCH.BINANCE")
    assert caught.value.code == "UNKNOWN_SYMBOL"


def events(subscription, kind: type) -> list:
    """Wait for events of a kind; data met on the way is dropped."""
    found = []

    def seen() -> bool:
        subscription.next(timeout=0.05)
        found.extend(event for event in subscription.events() if isinstance(event, kind))
        return bool(found)

    wait_until(seen, what=f"a {kind.__name__}")
    return found


def test_a_relay_or_manager_that_is_away_is_an_error_to_try_again(world):
    world.gateway.kill()
    with world.client() as client, pytest.raises(RetryableError):
        client.subscribe(BTC, timeout=1)


def test_what_the_log_does_not_have_is_reported_as_lost(world, live):
    with world.client(repair_timeout_ms=300) as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.trade([1])
        live.trade([2, 3], is_lost=True, is_logged=False)
        live.trade([4])
        (loss,) = events(subscription, Loss)
        assert (loss.topic, loss.count, loss.from_trade_id, loss.to_trade_id) == (BTC_TICK, 2, "2", "3")
        assert subscription.counters()["lost"] == 2


def test_cases_78_and_84_after_a_killed_relay_all_topics_go_on_and_nothing_is_missing(world, live):
    live.known.add(ETH)
    topics = [BTC_TICK, f"{ETH}|tick"]
    with world.client(beat_timeout_ms=1_000) as client, client.subscribe(topics) as subscription:
        live.until_subscribed(*topics)
        live.trade([1, 2])
        assert numbers(subscription, 2) == [1, 2]
        world.restart_gateway()
        live.trade([3, 4], is_lost=True)
        live.subscribed()
        live.restart_gateway_subscriptions(*topics)
        live.trade([5])
        assert sorted(numbers(subscription, 3)) == [3, 4, 5]
        counted = subscription.counters()
        assert (counted["received"], counted["lost"]) == (5, 0)


def test_a_tail_lost_while_the_relay_was_away_comes_without_a_further_trade(world, live):
    with world.client(beat_timeout_ms=1_000) as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.trade([1])
        assert numbers(subscription, 1) == [1]
        world.gateway.kill()
        live.trade([2, 3], is_lost=True)
        assert events(subscription, StateChanged)
        world.gateway = world.start_gateway()
        assert numbers(subscription, 2) == [2, 3]


def test_history_is_joined_with_the_live_ticks_at_the_trade_id(world, live):
    live.trade(range(1, 7_001), is_lost=True)
    with world.client() as client, client.subscribe(BTC, start=LONG_AGO) as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.trade(range(7_001, 7_101))
        assert numbers(subscription, 7_100) == list(range(1, 7_101))
        assert [e.is_complete for e in events(subscription, HistoryJoined)] == [True]


def test_case_67_a_start_for_a_topic_that_is_live_already_is_refused(world, live):
    with (
        world.client() as client,
        client.subscribe(BTC) as subscription,
        pytest.raises(SettingsError, match="live already"),
    ):
        subscription.add(BTC, start=LONG_AGO)


def test_a_subscription_used_after_a_fork_says_that_nothing_comes_to_it(world, live):
    with world.client() as client, client.subscribe(f"{BTC}|gap") as subscription:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                next(subscription)
            except RelayError as error:
                os.write(writer, str(error).encode())
            finally:
                subscription.close()
                os.write(writer, b"; closed")
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as told:
            said = told.read()
        os.waitpid(pid, 0)
        assert f"was made in process {os.getpid()} and is used in {pid}" in said
        assert said.endswith("; closed")
        assert subscription.next(timeout=0) is None


def test_topics_are_added_and_removed_while_it_runs(world, live):
    live.known.add(ETH)
    with world.client() as client, client.subscribe(BTC) as subscription:
        subscription.add(ETH)
        live.until_subscribed(BTC_TICK, f"{ETH}|tick")
        with pytest.raises(PeerError):
            subscription.add("NO/SUCH.BINANCE")
        subscription.remove(BTC)
        wait_until(lambda: BTC_TICK.encode() not in live.subscribed(), what="the relay to let go")
        assert subscription.topics == [f"{ETH}|tick"]


def test_a_longer_topic_that_the_wire_also_matches_is_not_delivered(world, live):
    with world.client() as client, client.subscribe(f"{BTC}|ohlc:60") as subscription:
        live.until_subscribed(f"{BTC}|ohlc:60")
        for seconds in (600, 60):
            bar = market_pb2.OHLC(ticker=BTC, period_seconds=seconds, timestamp=0, volume="1")
            world.manager.publish(f"{BTC}|ohlc:{seconds}", bar)
        assert next(subscription).period_seconds == 60


def test_gaps_and_states_are_events_beside_the_ticks(world, live):
    with world.client() as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.publish(gap("OPEN", 1, 2))
        live.beat(2)
        live.trade([3])
        assert numbers(subscription, 1) == [3]
        told = subscription.events()
        assert [(e.state, e.from_trade_id) for e in told if isinstance(e, Gap)] == [("OPEN", "1")]
        assert subscription.states == {BTC: "UP"}


def test_gaps_are_data_of_a_gap_topic(world, live):
    with world.client() as client, client.subscribe(f"{BTC}|gap") as subscription:
        live.until_subscribed(f"{BTC}|gap")
        live.publish(gap("UNFILLABLE", None, 7))
        assert (next(subscription).state, subscription.events()) == ("UNFILLABLE", [])


def test_a_slow_reader_loses_the_oldest_is_told_and_holds_nobody_up(world, live):
    with (
        world.client() as client,
        client.subscribe(BTC, buffer_max=10) as slow,
        client.subscribe(BTC) as fast,
    ):
        live.until_subscribed(*WITH_TICKS)
        live.trade(range(1, 101))
        assert numbers(fast, 100) == list(range(1, 101))
        assert numbers(slow, 10) == list(range(91, 101))
        assert [e.count for e in slow.events() if isinstance(e, Overrun)] == [90]


def test_a_conflating_subscription_yields_the_newest_only(world, live):
    with (
        world.client() as client,
        client.subscribe(BTC, conflate=True) as newest,
        client.subscribe(BTC) as every,
    ):
        live.until_subscribed(*WITH_TICKS)
        live.trade(range(1, 51))
        assert numbers(every, 50) == list(range(1, 51))
        assert numbers(newest, 1) == [50]


def test_a_callback_runs_in_a_thread_of_its_own_and_its_errors_are_contained(world, live):
    with world.client() as client:
        seen, told = [], []

        def callback(tick: Tick) -> None:
            seen.append((int(tick.trade_id), threading.current_thread().name))
            if tick.trade_id == "1":
                raise ValueError("mine")

        client.subscribe(BTC).on(callback, on_event=told.append)
        live.until_subscribed(*WITH_TICKS)
        live.trade([1, 2])
        wait_until(lambda: len(seen) == 2, what="both callbacks")
        assert seen == [(1, "relay-subscription"), (2, "relay-subscription")]
        wait_until(lambda: any(isinstance(e, CallbackFailed) for e in told), what="the event")


def test_a_direct_callback_runs_in_the_clients_thread_gets_what_waited_and_ends_with_the_close(world, live):
    with world.client() as client:
        subscription = client.subscribe(BTC)
        live.until_subscribed(*WITH_TICKS)
        live.trade([1])
        wait_until(lambda: subscription.counters()["received"] == 1, what="the first tick to be buffered")
        seen, told = [], []

        def callback(tick: Tick) -> None:
            seen.append((int(tick.trade_id), threading.current_thread().name))
            if tick.trade_id == "2":
                raise ValueError("mine")

        subscription.on(callback, on_event=told.append, direct=True)
        assert seen == [(1, threading.current_thread().name)]
        with pytest.raises(SettingsError, match="one callback"):
            subscription.on(callback)
        live.trade([2, 3])
        wait_until(lambda: len(seen) == 3, what="both callbacks")
        assert seen[1:] == [(2, "relay-client"), (3, "relay-client")]
        assert any(isinstance(event, CallbackFailed) for event in told)
        subscription.close()
        live.trade([4])
        wait_until(lambda: BTC_TICK.encode() not in live.subscribed(), what="the relay to let go")
        assert len(seen) == 3
        with client.subscribe(BTC, conflate=True) as newest, pytest.raises(SettingsError, match="without conflate"):
            newest.on(callback, direct=True)


def test_batches_come_when_they_are_full_or_their_time_is_over(world, live):
    with world.client() as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.trade(range(1, 26))
        batches = subscription.batches(max_rows=10, max_seconds=0.2)
        rows = [next(batches) for _ in range(3)]
        assert [batch.num_rows for batch in rows] == [10, 10, 5]
        assert rows[0].column("price").to_pylist()[0] == Decimal("42.14")


def test_strict_order_delivers_by_trade_id(world, live):
    with world.client() as client, client.subscribe(BTC, order="strict") as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.trade([1])
        live.trade([2], is_lost=True)
        live.trade([3, 4])
        assert numbers(subscription, 4) == [1, 2, 3, 4]


def test_the_async_client_iterates_and_closes(world, live):
    async def use() -> list[int]:
        found = []
        async with AsyncClient(settings=world.settings()) as client:
            async with client.subscribe(BTC) as subscription:
                await asyncio.to_thread(live.until_subscribed, *WITH_TICKS)
                live.trade([1, 2, 3])
                async for tick in subscription:
                    found.append(int(tick.trade_id))
                    if len(found) == 3:
                        break
            with pytest.raises(PeerError):
                await client.subscribe("NO/SUCH.BINANCE")
        return found

    assert asyncio.run(use()) == [1, 2, 3]


def test_an_async_iteration_ends_when_its_client_is_closed(world, live):
    async def use() -> list[int]:
        client = AsyncClient(settings=world.settings())
        found = []

        async def read() -> None:
            async for tick in client.subscribe(BTC):
                found.append(int(tick.trade_id))
                await client.close()

        reading = asyncio.create_task(read())
        await asyncio.to_thread(live.until_subscribed, *WITH_TICKS)
        live.trade([1])
        await reading
        return found

    assert asyncio.run(use()) == [1]


@pytest.mark.parametrize("closed", ["subscription", "client"])
def test_closing_while_another_thread_iterates_ends_the_iteration(world, live, closed):
    client = world.client()
    subscription = client.subscribe(BTC)
    live.until_subscribed(*WITH_TICKS)
    found = []
    reader = threading.Thread(target=lambda: found.extend(subscription))
    reader.start()
    live.trade([1])
    wait_until(lambda: found, what="the first tick")
    (subscription if closed == "subscription" else client).close()
    reader.join(30)
    assert not reader.is_alive()
    client.close()
    with pytest.raises(RelayError, match="closed"):
        client.subscribe(BTC)


def test_a_dropped_subscription_lets_go_of_its_topics(world, live):
    with world.client() as client:
        subscription = client.subscribe(BTC)
        live.until_subscribed(*WITH_TICKS)
        del subscription
        gc.collect()
        wait_until(lambda: BTC_TICK.encode() not in live.subscribed(), what="the relay to let go")


def test_a_hand_over_to_another_publisher_repeats_nothing(world, live):
    with world.client() as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.trade([1, 2, 3])
        live.start_publisher()
        live.until_subscribed(*WITH_TICKS)
        live.trade([2, 3, 4])
        assert numbers(subscription, 4) == [1, 2, 3, 4]
        assert subscription.counters()["repeated"] == 2


def test_bytes_that_make_no_sense_are_counted_and_the_feed_goes_on(world, live):
    with world.client() as client, client.subscribe([BTC, f"{BTC}|ohlc:60"]) as subscription:
        live.until_subscribed(BTC_TICK, f"{BTC}|ohlc:60")
        world.manager.publish(f"{BTC}|ohlc:60", market_pb2.OHLC(ticker=BTC, volume="many"))
        live.publisher.send_multipart([BTC_TICK.encode(), b"\x01", b"\x04\xff\xff"])
        wait_until(lambda: client.counters().get("rejected.undecodable") == 2, what="both to be counted")
        live.trade([1])
        assert numbers(subscription, 1) == [1]


def test_case_93_a_replay_whose_answer_got_lost_is_asked_for_again(world, live):
    lost = []

    def answer(asked):
        if not lost:
            lost.append(asked)
            return None
        return live.log.answer(asked)

    world.manager.replays = answer
    with world.client(reply_timeout_ms=200) as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.trade([1])
        live.trade([2], is_lost=True)
        live.trade([3])
        assert numbers(subscription, 3) == [1, 3, 2]
        assert lost


def test_a_replay_whose_pages_lead_nowhere_is_given_up_and_reported(world, live):
    asked = []

    def answer(question):
        asked.append(question.from_sequence)
        return request_pb2.ReplayResponse(status=request_pb2.ReplayResponse.PARTIAL, next_from=5)

    topic = f"{BTC}|ohlc:60"
    world.manager.replays = answer
    with world.client() as client, client.subscribe(topic) as subscription:
        live.until_subscribed(topic)
        for sequence in (1, 4):
            bar = market_pb2.OHLC(ticker=BTC, period_seconds=60, timestamp=sequence, volume="1")
            bar.stamp.publisher_epoch, bar.stamp.topic_sequence, bar.stamp.published_at = 7, sequence, 10**18
            world.manager.publish(topic, bar)
        (loss,) = events(subscription, Loss)
        assert (loss.count, asked) == (2, [0, 5])
