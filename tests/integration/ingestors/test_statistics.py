"""The real adapters fetch 24 h statistics of the simulated exchange, and write them to the log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from decimal import Decimal

import pytest

from ingestors.engine.job_state import JobResult
from ingestors.simulation.day_window import day_window
from ingestors.simulation.faults import Fault, FaultKind
from ingestors.simulation.server import SimulatedExchange
from relay.eventlog import TICKER_STATS_TOPIC
from relay.protocol.envelope import decode_record
from relay.protocol.scaled import from_scaled
from relay.protocol.times import parse_iso_ns
from relay.protocol.v1 import market_pb2, work_pb2
from tests.support.ingestors import Bench, bench
from tests.support.simulated import APIS, GENEROUS

NOW_NS = parse_iso_ns("2024-03-05T12:00:30Z")


async def _fetch(
    name: str, *, api: str = "exchange", faults: Iterable[Fault] = ()
) -> tuple[JobResult, Bench, SimulatedExchange]:
    server = SimulatedExchange(clock=lambda: NOW_NS, limits=GENEROUS, faults=faults)
    async with server:
        used = bench(name, base_urls=server.base_urls, coinbase_api=api)
        request = work_pb2.DataRequest(job_id="s", attempt=1, ticker=name, type=work_pb2.DataRequest.STATISTICS)
        return await used.run(request), used, server


def _written(used: Bench) -> list[market_pb2.Ticker24h]:
    records = used.log.read(TICKER_STATS_TOPIC, partition=0)
    assert {record.key.decode() for record in records} <= {used.exchange.name}
    return [decode_record(record.value)[1] for record in records]  # type: ignore[misc]


@pytest.mark.parametrize(("name", "api", "symbol", "shape"), APIS)
def test_a_statistics_job_writes_every_market_that_the_exchange_tells_about(
    name: str, api: str, symbol: str, shape: str
) -> None:
    result, used, server = asyncio.run(_fetch(name, api=api))
    [part] = _written(used)
    source = server.markets(shape)[symbol]
    listed = {s for s, x in server.markets(shape).items() if x.listing.listed_ns <= NOW_NS}
    assert result == JobResult(True, len(listed))
    assert {row.ticker for row in part.tickers} == {f"{s}.{name}" for s in listed}
    row = next(row for row in part.tickers if row.ticker == f"{symbol}.{name}")
    day = day_window(source, now_ns=NOW_NS)
    assert Decimal(row.last_price) == from_scaled(day.last_units, source.listing.price_decimals)
    assert row.base_asset + "/" + row.quote_asset == symbol
    if api == "exchange":
        assert Decimal(row.volume) == from_scaled(day.volume_units, source.listing.size_decimals)
        assert Decimal(row.high) == from_scaled(day.high_units, source.listing.price_decimals)
    assert {rate.currency for rate in part.rates} >= {symbol.partition("/")[2]}


def test_binance_volumes_in_other_currencies_come_in_usd_with_their_path() -> None:
    _, used, _ = asyncio.run(_fetch("BINANCE"))
    [part] = _written(used)
    eth = next(rate for rate in part.rates if rate.currency == "ETH")
    row = next(row for row in part.tickers if row.ticker == "XRP/ETH.BINANCE")
    price = next(row for row in part.tickers if row.ticker == "ETH/USDT.BINANCE").last_price
    assert (eth.usd_rate, eth.source_ticker, eth.timestamp) == (price, "ETH/USDT.BINANCE", NOW_NS // 10**6 * 10**6)
    exact = Decimal(row.quote_volume_24h) * Decimal(price)
    assert abs(Decimal(row.std_quote_volume) - exact) <= Decimal("0.000000005")


def test_one_whole_market_call_is_enough_where_there_is_one() -> None:
    _, used, _ = asyncio.run(_fetch("BINANCE"))
    assert used.counters.get("binance.answers.ok") == 2  # the list of markets, and the statistics


def test_a_failed_call_is_repeated_by_itself() -> None:
    faults = [Fault(FaultKind.ERROR, path="*ETH-USD/stats", status=503, count=1)]
    result, used, _ = asyncio.run(_fetch("COINBASE", faults=faults))
    assert result.success
    assert used.counters.get("calls.retried") == 1
    assert used.counters.get("coinbase.answers.ok") == 1 + result.rows


def test_a_product_that_the_exchange_refuses_is_left_out_and_counted() -> None:
    faults = [Fault(FaultKind.ERROR, path="*ETH-USD/stats", status=404)]
    result, used, _server = asyncio.run(_fetch("COINBASE", faults=faults))
    assert result.success
    assert used.counters.get("statistics.bad_rows") == 1
    assert "ETH/USD.COINBASE" not in {row.ticker for part in _written(used) for row in part.tickers}


def test_an_exchange_that_does_not_answer_fails_the_job_with_the_reason() -> None:
    result, used, _ = asyncio.run(_fetch("BINANCE", faults=[Fault(FaultKind.HTML, path="*24hr", status=503)]))
    assert not result.success
    assert result.code in ("EXCHANGE_ERROR", "MAINTENANCE")
    assert "503" in result.message
    assert _written(used) == []
