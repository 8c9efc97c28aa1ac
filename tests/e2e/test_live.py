"""Live ticks through the whole platform, while its parts die: each trade once, and what is missing is said."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from relay.protocol.ranges import Range
from relay_client import Client, ClientSettings, Gap, Loss, Tick
from tests.support.platform import Platform
from tests.support.processes import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(900)]

EVERYTHING = Range(0, 4 * 10**18)
RATE = 500
PARTS = ("gateway", "manager", "ingestor", "kafka", "history")
IN_CI = ("gateway", "ingestor")


class Watcher:
    """Collects what one subscription receives."""

    def __init__(self, platform: Platform, ticker: str, **options: object) -> None:
        settings = ClientSettings(
            host="127.0.0.1", request_port=platform.ports["request"], subscribe_port=platform.ports["subscribe"]
        )
        self.client = Client(settings=settings)
        self.subscription = self.client.subscribe(ticker, timeout=180, **options)  # type: ignore[arg-type]
        self.ids: list[int] = []
        self.prices: dict[int, object] = {}
        self.events: list[object] = []
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        for item in self.subscription.items():
            if isinstance(item, Tick):
                self.ids.append(int(item.trade_id))
                self.prices[int(item.trade_id)] = item.price
            else:
                self.events.append(item)

    def said_lost(self) -> set[int]:
        """Ids that the client reported as lost, or the ingestor as never to come."""
        lost: set[int] = set()
        for event in self.events:
            if isinstance(event, Loss) and event.from_trade_id and event.to_trade_id:
                lost |= set(range(int(event.from_trade_id), int(event.to_trade_id) + 1))
            if isinstance(event, Gap) and event.state == "UNFILLABLE" and event.from_trade_id:
                lost |= set(range(int(event.from_trade_id), int(event.to_trade_id) + 1))
        return lost

    def missing(self, last: int) -> set[int]:
        """Ids between the first received one and ``last`` that neither came nor were said to be lost."""
        return set(range(self.ids[0], last + 1)) - set(self.ids) - self.said_lost()

    def lost_unnamed(self) -> int:
        """How many messages were said to be lost by their stamps alone."""
        return sum(e.count for e in self.events if isinstance(e, Loss) and not (e.from_trade_id and e.to_trade_id))

    def close(self) -> None:
        self.client.close()
        self._thread.join(30)


def is_back(platform: Platform, part: str, killed: int) -> bool:
    """Whether another process does a part's work than the one that was killed."""
    return platform.parts()[part]["pid"] not in (killed, None) and platform.is_ready(part)


def drive(platform: Platform, symbol: str, per_second: int) -> None:
    platform.simulation("/control/drive", {"exchange": "binance", "symbols": [symbol], "per_second": per_second})


def newest_id(platform: Platform, native: str) -> int:
    return int(platform.simulation(f"/binance/api/v3/trades?symbol={native}&limit=1")[0]["id"])  # type: ignore[index]


def balanced(platform: Platform, watcher: Watcher, native: str) -> None:
    """Everything that the exchange traded since the first tick came once, or was said to be lost; the lake agrees."""
    last = newest_id(platform, native)
    wait_until(
        lambda: len(watcher.missing(last)) <= watcher.lost_unnamed(),
        what=f"every trade up to {last} to come or to be said lost",
        deadline_s=240,
    )
    assert len(watcher.ids) == len(set(watcher.ids)), "a trade came twice"
    ticker = watcher.subscription.topics[0].partition("|")[0]
    gone = {
        n
        for e in watcher.events
        if isinstance(e, Gap) and e.state == "UNFILLABLE" and e.from_trade_id
        for n in range(int(e.from_trade_id), int(e.to_trade_id) + 1)
    }
    expected = set(range(watcher.ids[0], last + 1)) - gone

    def stored() -> bool:
        return expected <= set(platform.lake().read_ticks(ticker, within=EVERYTHING)["trade_number"].to_pylist())

    wait_until(stored, what="the archive to hold every trade", deadline_s=180)
    rows = platform.lake().read_ticks(ticker, within=EVERYTHING)
    numbers = rows["trade_number"].to_pylist()
    assert len(numbers) == len(set(numbers)), "a trade is stored twice"
    prices = dict(zip(numbers, rows["price"].to_pylist(), strict=True))
    assert all(prices[n] == watcher.prices[n] for n in set(watcher.ids) & set(prices))


@pytest.mark.parametrize("part", [pytest.param(p, marks=() if p in IN_CI else pytest.mark.soak) for p in PARTS])
def test_every_trade_comes_once_whatever_part_dies_while_ticks_flow(platform: Platform, part: str) -> None:
    platform.wait_ready()
    symbol, native, ticker = "SOL/USDT", "SOLUSDT", "SOL/USDT.BINANCE"
    drive(platform, symbol, RATE)
    watcher = Watcher(platform, ticker)
    try:
        wait_until(lambda: len(watcher.ids) > RATE, what="ticks", deadline_s=60)
        killed = platform.parts()[part]["pid"]
        platform.kill(part)
        wait_until(lambda: is_back(platform, part, killed), what=f"{part} to be back", deadline_s=240)
        seen = len(watcher.ids)
        wait_until(lambda: len(watcher.ids) > seen + RATE, what=f"ticks after {part} died", deadline_s=180)
        drive(platform, symbol, 0)
        balanced(platform, watcher, native)
    finally:
        drive(platform, symbol, 0)
        watcher.close()


def test_a_strict_subscription_is_in_order_over_faults_of_the_exchange(platform: Platform, tmp_path: Path) -> None:
    symbol, native, ticker = "DOGE/USDT", "DOGEUSDT", "DOGE/USDT.BINANCE"
    faults = [{"kind": kind, "exchange": "binance", "symbol": symbol, "percent": 5} for kind in ("double", "reorder")]
    cut = {"kind": "disconnect", "exchange": "binance", "symbol": symbol, "every_trades": 400}
    drive(platform, symbol, RATE)
    watcher = Watcher(platform, ticker, order="strict")
    try:
        platform.simulation("/control/socket-faults", [*faults, cut])
        wait_until(lambda: len(watcher.ids) > 3 * RATE, what="ticks", deadline_s=120)
        platform.simulation("/control/socket-faults", method="DELETE")
        drive(platform, symbol, 0)
        balanced(platform, watcher, native)
        assert watcher.ids == sorted(watcher.ids)
    finally:
        platform.simulation("/control/socket-faults", method="DELETE")
        drive(platform, symbol, 0)
        watcher.close()
