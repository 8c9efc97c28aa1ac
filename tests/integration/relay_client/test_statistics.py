"""24 h statistics through a real gateway: typed rows, parts, errors, the command."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from relay.errors import PeerError, RetryableError, SettingsError
from relay.protocol.v1 import market_pb2, request_pb2
from relay_client import AsyncClient, ExchangeStatistics
from tests.support.client_world import GatewayWorld
from tests.support.commands import run_command
from tests.support.processes import wait_until

AT = 1_700_000_000 * 10**9
Submit = request_pb2.SubmitResponse


def parts(at: int = AT) -> list[market_pb2.Ticker24h]:
    full = market_pb2.TickerStats(
        ticker="BTC/USDT.BINANCE",
        exchange_id="BINANCE",
        base_asset="BTC",
        quote_asset="USDT",
        last_price="60000.10",
        price_change_pct="-1.25",
        quote_volume_24h="1234567890.12345678",
        timestamp=at,
        high="61000",
        volume="20000.00000001",
        std_quote_volume="1234567890.12345678",
        num_trades=42,
    )
    bare = market_pb2.TickerStats(
        ticker="SHIB/DOGE.BINANCE", exchange_id="BINANCE", base_asset="SHIB", quote_asset="DOGE", timestamp=at
    )
    rate = market_pb2.QuoteCurrencyRate(
        currency="BTC", usd_rate="60000", source_ticker="BTC/EUR.BINANCE,EUR/USDT.BINANCE", timestamp=at
    )
    first = market_pb2.Ticker24h(
        exchange_id="BINANCE", generated_at=at, tickers=[full], rates=[rate], part_index=0, part_count=2
    )
    second = market_pb2.Ticker24h(exchange_id="BINANCE", generated_at=at, tickers=[bare], part_index=1, part_count=2)
    return [first, second]


def refused(status: Submit.Status, code: str, text: str) -> Submit:
    return Submit(status=status, error_code=code, error_message=text)


def test_statistics_come_as_typed_rows_with_exact_numbers(world: GatewayWorld) -> None:
    asked: list[request_pb2.StatsQuery] = []

    def answer(query: request_pb2.StatsQuery) -> object:
        asked.append(query)
        return parts()[query.part_index]

    world.manager.statistics = answer
    with world.client() as client:
        found = client.statistics("binance")
    assert [(query.exchange, query.part_index) for query in asked] == [("BINANCE", 0), ("BINANCE", 1)]
    assert (found.exchange, len(found), found.generated_at_ns) == ("BINANCE", 2, AT)
    full, bare = found
    assert (full.last, full.change_percent, full.trades) == (Decimal("60000.10"), Decimal("-1.25"), 42)
    assert full.quote_volume == full.usd_volume == Decimal("1234567890.12345678")
    assert (full.open, full.bid) == (None, None)
    assert full.time == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert (bare.last, bare.usd_volume, bare.trades) == (None, None, None)
    assert found.rates["BTC"].path == ("BTC/EUR.BINANCE", "EUR/USDT.BINANCE")
    frame = found.to_pandas()
    assert frame.loc["BTC/USDT.BINANCE", "volume"] == Decimal("20000.00000001")
    assert found.to_arrow()["usd_volume"].null_count == 1


def test_new_statistics_between_two_parts_are_read_from_their_beginning(world: GatewayWorld) -> None:
    answers = [parts(AT)[0], parts(AT + 1)[1], *parts(AT + 1)]
    world.manager.statistics = lambda query: answers.pop(0)
    with world.client() as client:
        assert client.statistics("BINANCE").generated_at_ns == AT + 1


def test_the_async_client_asks_the_same(world: GatewayWorld) -> None:
    world.manager.statistics = lambda query: parts()[query.part_index]

    async def scene() -> int:
        async with AsyncClient(settings=world.settings()) as client:
            return len(await client.statistics("BINANCE"))

    assert asyncio.run(scene()) == 2


def test_errors_say_what_can_be_done(world: GatewayWorld) -> None:
    answers: dict[str, object] = {
        "NOWHERE": refused(Submit.INVALID, "UNKNOWN_EXCHANGE", "unknown exchange 'NOWHERE'"),
        "KRAKEN": refused(Submit.ERROR, "EXCHANGE_ERROR", "HTTP 503"),
        "BINANCE": refused(Submit.UNAVAILABLE, "UNAVAILABLE", "no ingestor serves BINANCE"),
    }
    world.manager.statistics = lambda query: answers[query.exchange]
    with world.client() as client:
        with pytest.raises(PeerError, match="NOWHERE") as unknown:
            client.statistics("NOWHERE")
        assert unknown.value.code == "UNKNOWN_EXCHANGE"
        with pytest.raises(RetryableError, match="503"):
            client.statistics("KRAKEN")
        with pytest.raises(RetryableError, match="no ingestor serves BINANCE"):
            client.statistics("BINANCE", timeout=1)
        with pytest.raises(SettingsError, match="such as BINANCE"):
            client.statistics("BTC/USDT.BINANCE")
        with pytest.raises(SettingsError, match="exchange"):
            client.statistics(7)  # type: ignore[arg-type]


def symbols(query: request_pb2.SymbolQuery) -> request_pb2.SymbolReply:
    if query.exchange == "BINANCE":
        return request_pb2.SymbolReply(status=request_pb2.SymbolReply.NOT_FOUND, error_code="UNKNOWN_SYMBOL")
    return request_pb2.SymbolReply(status=request_pb2.SymbolReply.NOT_FOUND, error_code="UNKNOWN_EXCHANGE")


def test_a_subscription_yields_whole_statistics_once_each(world: GatewayWorld) -> None:
    world.manager.symbols = symbols
    topic = "BINANCE|ticker24h"
    with world.client() as client:
        with pytest.raises(PeerError, match="UNKNOWN_EXCHANGE"):
            client.subscribe("NOWHERE|ticker24h")
        with pytest.raises(SettingsError, match="such as BINANCE"):
            client.subscribe("b|ticker24h")
        with client.subscribe(topic) as subscription:
            world.manager.publish(topic, market_pb2.Ticker24h(exchange_id="BINANCE", generated_at=1, part_count=2))
            wait_until(lambda: world.manager.has_subscriber(topic), what="the subscription to arrive")
            for part in (parts(AT)[0], *parts(AT + 1), *parts(AT + 1), *reversed(parts(AT + 2))):
                world.manager.publish(topic, part)
            found = [subscription.next(timeout=20) for _ in range(2)]
            assert [(type(item), item.generated_at_ns, len(item)) for item in found] == [
                (ExchangeStatistics, AT + 1, 2),
                (ExchangeStatistics, AT + 2, 2),
            ]
            assert subscription.next(timeout=0) is None


def test_the_command_shows_a_table_or_json(world: GatewayWorld) -> None:
    world.manager.statistics = lambda query: parts()[query.part_index]
    environment = {
        "RELAY_CLIENT_REQUEST_PORT": str(world.ports["request"]),
        "RELAY_CLIENT_SUBSCRIBE_PORT": str(world.ports["subscribe"]),
        "COLUMNS": "200",
    }
    shown = run_command(("statistics", "BINANCE"), environment=environment)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "2 markets" in shown.stdout
    assert "1234567890.12345678" in shown.stdout
    told = json.loads(
        run_command(("statistics", "BINANCE", "--quote", "usdt", "--json"), environment=environment).stdout
    )
    assert [row["ticker"] for row in told["rows"]] == ["BTC/USDT.BINANCE"]
    assert (told["rows"][0]["last"], told["rows"][0]["open"]) == ("60000.1", None)
    assert told["rates"]["BTC"]["path"] == ["BTC/EUR.BINANCE", "EUR/USDT.BINANCE"]
    wrong = run_command(("statistics", "a b"), environment=environment)
    assert wrong.returncode == 2
