"""SIGKILL of each part while ticks flow: received and reported lost are together what was sent, and nothing is doubled.

Without Spark, so that the rate is the live path's own. With all tests a short run at a low rate of the parts that
``tests/e2e/test_live.py`` leaves to the soak; ``make soak`` runs the matrix at 5,000 ticks a second.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relay.protocol.v1 import market_pb2
from tests.integration.live.world import LivePath, Watcher, control, watching
from tests.support.forked import ForkedRelay
from tests.support.kafka import RunningKafka
from tests.support.processes import free_port, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

SYMBOLS = ("SOL/USDT", "DOGE/USDT", "PEPE/USDT", "XRP/ETH")
TICKERS = [f"{symbol}.BINANCE" for symbol in SYMBOLS]
VICTIMS = ("gateway", "manager", "ingestor", "kafka")
IN_CI = ("manager", "kafka")
SMOKE_RATE, SMOKE_SECONDS = 400, 1
RATE, SECONDS = 5_000, 15
"""Seconds of ticks before the kill, and again after the part is back."""
RUNS = [
    *((victim, SMOKE_RATE, SMOKE_SECONDS) for victim in IN_CI),
    *(pytest.param(victim, RATE, SECONDS, marks=pytest.mark.soak) for victim in VICTIMS),
]


@pytest.fixture(scope="module")
def path(kafka: RunningKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePath]:
    folder, port = tmp_path_factory.mktemp("live"), free_port()
    simulation = ForkedRelay(["simulation", "--port", str(port)], log=folder / "simulation.log", environment={})
    url = f"http://127.0.0.1:{port}"
    live_path = LivePath(folder, kafka, tickers=TICKERS)

    def is_up() -> bool:
        assert simulation.returncode is None, simulation.tail()
        try:
            return bool(control(url, "/control/health")["ready"])
        except OSError:
            return False

    try:
        wait_until(is_up, what="the simulated exchange")
        live_path.serve(url)
        yield live_path
    finally:
        live_path.close()
        simulation.kill()


def drive(path: LivePath, per_second: int) -> None:
    order = {"exchange": "binance", "symbols": list(SYMBOLS), "per_second": per_second}
    control(path.exchange_url, "/control/drive", order)


def newest_id(path: LivePath, symbol: str) -> int:
    native = symbol.replace("/", "")
    return int(control(path.exchange_url, f"/binance/api/v3/trades?symbol={native}&limit=1")[0]["id"])


def received(watcher: Watcher, ticker: str) -> list[int]:
    return [int(tick.trade_id) for tick in watcher.of(ticker)]


def sent(path: LivePath, watcher: Watcher) -> dict[str, range]:
    """Ids of the trades since the first one that came, by ticker; nothing is traded any more."""
    return {
        f"{symbol}.BINANCE": range(min(received(watcher, f"{symbol}.BINANCE")), newest_id(path, symbol) + 1)
        for symbol in SYMBOLS
    }


@pytest.mark.parametrize(("victim", "rate", "seconds"), RUNS)
def test_received_and_reported_lost_are_what_was_sent_whatever_dies(
    path: LivePath, victim: str, rate: int, seconds: int
) -> None:
    """Cases 65 and 87: loss is measured by sequence and ids, never taken to be absent."""
    with path.client() as client, watching(client, *TICKERS, buffer_max=1_000_000) as watcher:
        try:
            drive(path, rate)
            flow(watcher, rate * seconds)
            path.kill(victim)
            path.wait_ready()
            flow(watcher, rate * seconds)
        finally:
            drive(path, 0)
        ids = sent(path, watcher)

        def is_balanced() -> bool:
            came = {ticker: set(received(watcher, ticker)) for ticker in TICKERS}
            left = sum(len(set(ids[t]) - came[t] - watcher.said_lost(t)) for t in TICKERS)
            return left <= watcher.lost_unnamed()

        wait_until(is_balanced, what="every trade to come or to be said lost", deadline_s=240)
        counts = {ticker: len(received(watcher, ticker)) for ticker in TICKERS}
        came = {ticker: set(received(watcher, ticker)) for ticker in TICKERS}
        lost = {ticker: watcher.said_lost(ticker) & set(ids[ticker]) for ticker in TICKERS}
        assert counts == {ticker: len(came[ticker]) for ticker in TICKERS}, "a trade came twice"
        assert not {ticker: lost[ticker] & came[ticker] for ticker in TICKERS if lost[ticker] & came[ticker]}
        reported = sum(map(len, lost.values())) + watcher.lost_unnamed()
        assert sum(counts.values()) + reported == sum(map(len, ids.values()))
        wait_until(lambda: in_the_log(path, ids, lost), what="every trade in the log", deadline_s=120)


def flow(watcher: Watcher, count: int) -> None:
    """Wait until so many more ticks have come."""
    wanted = len(watcher.ticks) + count
    wait_until(lambda: len(watcher.ticks) >= wanted, what=f"{count} ticks", deadline_s=240)


def in_the_log(path: LivePath, ids: dict[str, range], lost: dict[str, set[int]]) -> bool:
    """Whether the log holds every trade that was not given up."""
    logged = {(m.ticker, int(m.trade_id)) for m in path.logged() if isinstance(m, market_pb2.Tick)}
    return all((ticker, n) in logged for ticker in TICKERS for n in set(ids[ticker]) - lost[ticker])
