"""Market data reach a client the same by TCP and by shared memory: what comes, in which order, and what is said."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from relay.protocol.v1 import market_pb2
from relay_client import AsyncClient, Bar, Client, Gap, HistoryJoined, Loss, Repaired, Tick
from tests.support.accelerator import accelerator
from tests.support.client_world import BTC, GatewayWorld, ready_world
from tests.support.live_world import BTC_TICK, FIRST_NS, LiveWorld, gap
from tests.support.processes import wait_until

WITH_TICKS = (BTC_TICK, f"{BTC}|gap", f"{BTC}|heartbeat")
BARS = f"{BTC}|ohlc:60"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayWorld]:
    """One gateway for all tests; each has clients and a publisher of its own."""
    with ready_world(tmp_path_factory.mktemp("world")) as running:
        yield running


@pytest.fixture
def live(world: GatewayWorld) -> Iterator[LiveWorld]:
    running = LiveWorld(world)
    yield running
    running.close()


@pytest.fixture(params=["tcp", "shm", "shm, spinning", "shm, sbe"])
def way(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings of a client."""
    transport, _, special = request.param.partition(", ")
    if transport == "shm":
        accelerator()
    idle, encoding = ("spin" if special == "spinning" else "sleep"), ("sbe" if special == "sbe" else "protobuf")
    return {"transport": transport, "idle": idle, "encoding": encoding}


@pytest.fixture
def client(world: GatewayWorld, way: dict[str, str]) -> Iterator[Client]:
    with world.client(**way) as made:
        yield made


def until_by(subscription, way: dict[str, str]) -> None:
    wait_until(lambda: subscription.transport == way["transport"], what=f"data by {way['transport']}")
    assert subscription.transport_reason == ("" if way["transport"] == "shm" else "asked for")


def ids(subscription, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        item = subscription.next(timeout=30)
        assert item is not None, f"got {found}, then nothing; {subscription.counters()}, {subscription.events()}"
        found.append(int(item.trade_id))
    return found


def bar(number: int) -> market_pb2.OHLC:
    made = market_pb2.OHLC(ticker=BTC, period_seconds=60, timestamp=FIRST_NS, close=number, volume="1", revision=number)
    made.stamp.publisher_epoch, made.stamp.topic_sequence, made.stamp.published_at = 7, number, FIRST_NS
    return made


def stream(live: LiveWorld, until: Callable[[], bool], sent: list[int]) -> threading.Thread:
    """Trade without a pause, in a thread of its own."""

    def run() -> None:
        while not until():
            live.trade(range(len(sent) + 1, len(sent) + 11))
            sent.extend(range(len(sent) + 1, len(sent) + 11))

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_subscription_in_the_midst_of_a_stream_misses_nothing_repeats_nothing_and_keeps_the_order(
    client: Client, live: LiveWorld, way: dict[str, str]
) -> None:
    with client.subscribe(BTC) as held:
        live.until_subscribed(*WITH_TICKS)
        stop, sent = threading.Event(), list[int]()
        thread = stream(live, stop.is_set, sent)
        try:
            first = ids(held, 1)[0]
            until_by(held, way)
            with client.subscribe(BTC) as later:
                begun = ids(later, 300)
        finally:
            stop.set()
            thread.join()
        assert begun == list(range(begun[0], begun[0] + 300))
        assert ids(held, len(sent) - first) == list(range(first + 1, len(sent) + 1))
        counted = held.counters()
        assert counted["received"] == len(sent) - first + 1
        assert [counted[name] for name in ("repeated", "lost", "late", "lapped")] == [0, 0, 0, 0]
        assert not [event for event in held.events() if isinstance(event, Loss | Repaired)]


def test_ticks_gaps_bars_and_what_is_said_of_losses_are_the_same_in_the_same_order(
    client: Client, world: GatewayWorld, live: LiveWorld, way: dict[str, str]
) -> None:
    with client.subscribe([BTC, BARS]) as subscription:
        live.until_subscribed(*WITH_TICKS)
        wait_until(lambda: world.manager.has_subscriber(BARS), what="the bars to be subscribed")
        until_by(subscription, way)
        items = subscription.items()

        def take(count: int) -> list[str]:
            found: list[str] = []
            while len(found) < count:
                if said := tell(next(items)):
                    found.append(said)
            return found

        live.trade([1, 2])
        live.publish(gap("OPEN", 3, 4))
        live.trade([5])
        live.publish(gap("FILLED", 3, 4))
        assert take(5) == ["tick 1", "tick 2", "gap OPEN", "tick 5", "gap FILLED"]
        live.trade([6, 7], is_lost=True)
        live.trade([8])
        assert take(4) == ["tick 8", "repaired tick 6", "repaired tick 7", "Repaired 2"]
        for number in (1, 2):
            world.manager.publish(BARS, bar(number))
        assert take(2) == ["bar 1", "bar 2"]


def tell(item: object) -> str:
    match item:
        case Tick():
            return f"{'repaired ' if item.repaired else ''}tick {item.trade_id}"
        case Gap():
            return f"gap {item.state}"
        case Bar():
            return f"bar {item.revision}"
        case Repaired():
            return f"Repaired {item.count}"
    return ""


def test_demand_is_seen_at_the_publishers_and_ends_with_the_last_holder(
    client: Client, world: GatewayWorld, live: LiveWorld, way: dict[str, str]
) -> None:
    with world.client(**way) as other, other.subscribe([BTC, BARS]) as last:
        with client.subscribe([BTC, BARS]) as subscription:
            live.until_subscribed(*WITH_TICKS)
            wait_until(lambda: world.manager.has_subscriber(BARS), what="the bars to be subscribed")
            until_by(subscription, way)
            until_by(last, way)
            assert not [topic for topic in live.subscribed() if topic.startswith(b"@")]
        live.trade([1])
        assert ids(last, 1) == [1], "one has left, the other has not"
        assert world.manager.has_subscriber(BARS)
    wait_until(lambda: BTC_TICK.encode() not in live.subscribed(), what="the ticks to be given up")
    wait_until(lambda: not world.manager.has_subscriber(BARS), what="the bars to be given up")


def test_clients_of_both_forms_take_one_topic_side_by_side(
    world: GatewayWorld, live: LiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    accelerator()
    from relay_client.sbe_reading import SbeReader

    read, messages = SbeReader.read, list[object]()

    def noted(self: SbeReader, body: bytes, type_id: int) -> object:
        found = read(self, body, type_id)
        messages.append(found)
        return found

    monkeypatch.setattr(SbeReader, "read", noted)
    forms = [{"transport": "shm", "encoding": encoding} for encoding in ("sbe", "protobuf", "sbe")]
    with ExitStack() as opened:
        held = []
        for number, form in enumerate(forms):
            client = opened.enter_context(world.client(**form))
            held.append((client, opened.enter_context(client.subscribe(BTC))))
            live.until_subscribed(*WITH_TICKS)
            until_by(held[-1][1], form)
            live.trade(range(10 * number + 1, 10 * number + 11))
        found = [ids(subscription, 10 * (len(forms) - number)) for number, (_, subscription) in enumerate(held)]
        assert found == [list(range(10 * number + 1, 31)) for number in range(len(forms))]
        assert len([message for message in messages if isinstance(message, market_pb2.Tick)]) >= 30 + 10
        for client, _ in held:
            assert not [name for name in client.counters() if name.startswith(("sbe.", "rejected."))]


def test_topics_come_and_go_while_others_stay(client: Client, live: LiveWorld, way: dict[str, str]) -> None:
    eth = "ETH/USDT.BINANCE"
    live.known.add(eth)
    with client.subscribe(BTC) as subscription:
        live.until_subscribed(*WITH_TICKS)
        until_by(subscription, way)
        subscription.add(eth)
        live.until_subscribed(f"{eth}|tick")
        live.trade([1])
        assert ids(subscription, 1) == [1]
        subscription.remove(BTC)
        wait_until(lambda: BTC_TICK.encode() not in live.subscribed(), what="the relay to let go")
        assert subscription.transport == way["transport"]
    wait_until(lambda: f"{eth}|tick".encode() not in live.subscribed(), what="the relay to let go")
    with client.subscribe(BTC) as again:
        live.until_subscribed(*WITH_TICKS)
        until_by(again, way)
        live.trade([2])
        assert ids(again, 1) == [2]


def test_history_is_joined_at_the_trade_id(client: Client, live: LiveWorld, way: dict[str, str]) -> None:
    live.trade(range(1, 2_001), is_lost=True)
    with client.subscribe(BTC, start="2023-11-01T00:00:00Z") as subscription:
        live.until_subscribed(*WITH_TICKS)
        live.trade(range(2_001, 2_101))
        assert ids(subscription, 2_100) == list(range(1, 2_101))
        until_by(subscription, way)
        assert [e.is_complete for e in subscription.events() if isinstance(e, HistoryJoined)] == [True]


def test_the_async_client_takes_the_same_way(world: GatewayWorld, live: LiveWorld, way: dict[str, str]) -> None:
    async def use() -> list[int]:
        async with AsyncClient(settings=world.settings(**way)) as client, client.subscribe(BTC) as subscription:
            await asyncio.to_thread(live.until_subscribed, *WITH_TICKS)
            await asyncio.to_thread(until_by, subscription, way)
            live.trade(range(1, 101))
            return [int((await anext(subscription)).trade_id) for _ in range(100)]

    assert asyncio.run(use()) == list(range(1, 101))


def test_bytes_that_make_no_sense_are_counted_and_the_feed_goes_on(
    client: Client, world: GatewayWorld, live: LiveWorld, way: dict[str, str]
) -> None:
    with client.subscribe([BTC, BARS]) as subscription:
        live.until_subscribed(*WITH_TICKS)
        until_by(subscription, way)
        live.publisher.send_multipart([BTC_TICK.encode(), b"\x01", b"\x04\xff\xff"])
        # What the relay itself cannot read it cannot say in SBE either: it counts that, as broadcast.unfit.
        if way["encoding"] == "protobuf":
            wait_until(lambda: client.counters().get("rejected.undecodable") == 1, what="it to be counted")
        live.trade([1])
        assert ids(subscription, 1) == [1]
