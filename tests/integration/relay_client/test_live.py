"""Subscriptions through a real gateway: each trade once, losses repaired or said."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from relay.errors import PeerError
from relay_client import Tick
from tests.support.client_world import BTC
from tests.support.live_world import BTC_TICK, LiveWorld

WITH_TICKS = (BTC_TICK, f"{BTC}|gap", f"{BTC}|heartbeat")


@pytest.fixture
def live(world) -> Iterator[LiveWorld]:
    running = LiveWorld(world)
    yield running
    running.close()


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
