"""Binance's binary stream through ingestor, event log, gateway and SDK: each trade once, its numbers exact."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from ingestors.simulation.binance_sbe_socket import SIMULATED_KEY
from relay.protocol.v1 import market_pb2
from tests.integration.live.world import ExchangeThread, LivePath, Watcher, control, watching
from tests.support.accelerator import accelerator
from tests.support.kafka import RunningKafka
from tests.support.processes import wait_until
from tests.support.simulated import GENEROUS

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
accelerator()

SYMBOL, TICKER = "PEPE/USDT", "PEPE/USDT.BINANCE"


def test_binary_trades_reach_log_and_client_and_a_cut_costs_none(tmp_path: Path, kafka: RunningKafka) -> None:
    exchange = ExchangeThread(limits=GENEROUS)
    path = LivePath(tmp_path, kafka, tickers=[TICKER])
    try:
        path.serve(
            exchange.url,
            binance_transport="sbe",
            binance_api_key=SIMULATED_KEY,
            binance_sbe_socket_url=exchange.url.replace("http", "ws") + "/binance-sbe-ws",
        )
        with path.client() as client, watching(client, TICKER) as watcher:
            drive(exchange.url)
            wait_until(lambda: len(watcher.of(TICKER)) > 200, what="ticks")
            fault = {"kind": "disconnect", "exchange": "binance", "count": 1}
            control(exchange.url, "/control/socket-faults", fault)
            wait_until(lambda: path.counters("ingestor").get("live.binance.disconnects", 0) > 0, what="the cut")
            reached = len(watcher.of(TICKER)) + 300
            wait_until(lambda: len(watcher.of(TICKER)) > reached, what="ticks after the cut")
            first, last = (pick(numbers(watcher)) for pick in (min, max))
            wanted = set(range(first, last + 1))
            wait_until(lambda: wanted <= numbers(watcher), what="what the cut cost, by REST")
            received = watcher.of(TICKER)
            ticks = {int(tick.trade_id): tick for tick in received}
            assert len(ticks) == len(received)
            rows = {row["id"]: row for n in range(first, last + 1, 1_000) for row in rest_rows(exchange.url, n)}
            for number in wanted:
                tick, row = ticks[number], rows[number]
                expected = (Decimal(row["price"]), Decimal(row["qty"]), not row["isBuyerMaker"])
                assert (tick.price, tick.amount, tick.taker_buy) == expected
        wait_until(lambda: wanted <= set(logged(path)), what="all of them in the log")
        found = logged(path)
        assert len(found) == len(set(found))
        assert path.counters("ingestor").get("live.binance.messages.unreadable", 0) == 0
        status = control(f"http://127.0.0.1:{path.ports['ingestor_status']}", "/status")
        assert status["feeds"]["BINANCE"] == "sbe trade"
        assert "binance-sbe-ws" in str(control(exchange.url, "/control/requests"))
    finally:
        path.close()
        exchange.close()


def numbers(watcher: Watcher) -> set[int]:
    return {int(tick.trade_id) for tick in watcher.of(TICKER)}


def logged(path: LivePath) -> list[int]:
    return [int(tick.trade_id) for tick in path.logged() if isinstance(tick, market_pb2.Tick)]


def drive(url: str) -> None:
    control(url, "/control/drive", {"exchange": "binance", "symbols": [SYMBOL], "per_second": 400})


def rest_rows(url: str, first: int) -> list[dict[str, object]]:
    return control(url, f"/binance/api/v3/historicalTrades?symbol=PEPEUSDT&fromId={first}&limit=1000")
