"""Triggers and statistics through the whole platform."""

from __future__ import annotations

import pytest

from relay_client import VOLUME, Client, ClientSettings, TriggerEvent, when
from tests.e2e.test_live import drive
from tests.support.platform import Platform
from tests.support.processes import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

TICKER, SYMBOL = "SOL/USDT.BINANCE", "SOL/USDT"
RATE = 20


def client_of(platform: Platform) -> Client:
    ports = platform.ports
    return Client(
        settings=ClientSettings(host="127.0.0.1", request_port=ports["request"], subscribe_port=ports["subscribe"])
    )


@pytest.mark.parametrize("part", ["", *(pytest.param(p, marks=pytest.mark.soak) for p in ("history", "manager"))])
def test_a_trigger_makes_its_ticker_live_and_fires_once_a_bar(platform: Platform, part: str) -> None:
    platform.wait_ready()
    drive(platform, SYMBOL, RATE)
    fired: list[TriggerEvent] = []
    with client_of(platform) as client:
        trigger = client.triggers.register(when(TICKER).bar("1s", VOLUME.above("0")))
        events = client.triggers.events(trigger)

        def has_fired(count: int) -> bool:
            event = events.next(timeout=1)
            if event is not None:
                fired.append(event)
            return len(fired) >= count

        try:
            wait_until(lambda: has_fired(3), what="the first firings", deadline_s=180)
            if part:
                platform.kill(part)
            seen = len(fired)
            wait_until(lambda: has_fired(seen + 3), what="more firings", deadline_s=240)
            assert [t.trigger_id for t in client.triggers.list()] == [trigger.trigger_id]
        finally:
            client.triggers.cancel(trigger)
            drive(platform, SYMBOL, 0)
        assert client.triggers.list() == []
    times = [event.fired_at for event in fired]
    assert times == sorted(set(times)), "a bar fired twice, or out of order"
    assert all(event.matched[0].ticker == TICKER for event in fired)
    if not part:
        assert (times[-1] - times[0]).total_seconds() == len(times) - 1


def test_statistics_of_an_exchange_come_when_they_are_asked_for(platform: Platform) -> None:
    platform.wait_ready()
    with client_of(platform) as client:
        found = client.statistics("BINANCE", timeout=60)
    rows = {row.ticker: row for row in found}
    last = rows["BTC/USDT.BINANCE"].last
    assert last is not None
    assert last > 0
    assert found.rates
