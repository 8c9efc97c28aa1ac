"""Bars of live ticks through the whole platform: equal to the ticks, also when the job that makes them dies."""

from __future__ import annotations

import threading
from collections import defaultdict
from decimal import Decimal

import pytest

from relay.protocol.ranges import Range
from relay_client import Bar, Client, ClientSettings, Tick
from tests.support.platform import Platform
from tests.support.processes import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

TICKER, SYMBOL = "PEPE/USDT.BINANCE", "PEPE/USDT"
EVERYTHING = Range(0, 4 * 10**18)
RATE = 50
Row = tuple[Decimal, Decimal, Decimal, Decimal, Decimal, int]


class Collected:
    """What one subscription to ticks and one-second bars of a ticker yields."""

    def __init__(self, platform: Platform) -> None:
        ports = platform.ports
        settings = ClientSettings(host="127.0.0.1", request_port=ports["request"], subscribe_port=ports["subscribe"])
        self.client = Client(settings=settings)
        self._subscription = self.client.subscribe([f"{TICKER}|tick", f"{TICKER}|ohlc:1"], timeout=180)
        self.ticks: dict[int, Tick] = {}
        self.bars: list[Bar] = []
        threading.Thread(target=self._collect, daemon=True).start()

    def _collect(self) -> None:
        for item in self._subscription.items():
            if isinstance(item, Tick):
                self.ticks[int(item.trade_id)] = item
            elif isinstance(item, Bar):
                self.bars.append(item)

    def final(self) -> dict[int, Bar]:
        """The last revision of each final bar, by start in seconds."""
        return {int(bar.start.timestamp()): bar for bar in list(self.bars) if bar.is_final}

    def of_ticks(self) -> dict[int, Row]:
        """What the received ticks make of each second."""
        seconds: dict[int, list[Tick]] = defaultdict(list)
        for tick in list(self.ticks.values()):
            seconds[tick.time_ns // 10**9].append(tick)
        made: dict[int, Row] = {}
        for second, ticks in seconds.items():
            ordered = sorted(ticks, key=lambda tick: (tick.time_ns, int(tick.trade_id)))
            prices = [Decimal(tick.price) for tick in ordered]
            volume = sum((Decimal(tick.amount) for tick in ordered), Decimal(0))
            made[second] = (prices[0], max(prices), min(prices), prices[-1], volume, len(ordered))
        return made


def row(bar: Bar) -> Row:
    return (bar.open, bar.high, bar.low, bar.close, bar.volume, bar.trades or 0)


@pytest.mark.parametrize("part", ["", *(pytest.param(part, marks=pytest.mark.soak) for part in ("history", "manager"))])
def test_bars_are_those_of_the_ticks_and_go_on_after_a_kill(platform: Platform, part: str) -> None:
    platform.wait_ready()
    platform.simulation("/control/drive", {"exchange": "binance", "symbols": [SYMBOL], "per_second": RATE})
    collected = Collected(platform)
    try:
        wait_until(lambda: len(collected.final()) > 2, what="final bars", deadline_s=120)
        assert any(not bar.is_final for bar in collected.bars)
        if part:
            platform.kill(part)
        before = max(collected.final())
        newest = max(collected.of_ticks())
        wait_until(lambda: max(collected.final()) > max(before, newest) + 3, what="bars after the kill", deadline_s=240)
        ticks, bars = collected.of_ticks(), collected.final()
        whole = range(min(ticks) + 1, max(bars) + 1)
        stored = platform.lake().read_bars(TICKER, 1, within=EVERYTHING)

        def all_stored() -> bool:
            nonlocal stored
            stored = platform.lake().read_bars(TICKER, 1, within=EVERYTHING)
            return not set(whole) - {s // 10**6 for s in stored["start"].cast("int64").to_pylist()}

        wait_until(all_stored, what="every bar in the table", deadline_s=120)
    finally:
        platform.simulation("/control/drive", {"exchange": "binance", "symbols": [SYMBOL], "per_second": 0})
        collected.client.close()
    names = ("open", "high", "low", "close", "volume", "trades")
    starts = [s // 10**6 for s in stored["start"].cast("int64").to_pylist()]
    kept = dict(zip(starts, zip(*(stored[n].to_pylist() for n in names), strict=True), strict=True))
    assert {second: kept[second] for second in whole} == {second: ticks[second] for second in whole}
    assert all(row(bars[second]) == ticks[second] for second in whole if second in bars)
    assert not any(bars[second].incomplete for second in whole if second in bars)
    seen: dict[tuple[int, int], Bar] = {}
    for bar in (bar for bar in collected.bars if bar.is_final):
        assert seen.setdefault((int(bar.start.timestamp()), bar.revision), bar) == bar, "a revision says two things"
