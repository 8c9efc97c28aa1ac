"""Looking markets up while a fetch is being stored."""

from __future__ import annotations

from relay.protocol.v1 import market_pb2, request_pb2
from spark_jobs.manager import lookups
from spark_jobs.manager.lookups import SymbolsQuestion

BTC, PEPE = (market_pb2.Market(market_id=f"{base}/USDT.BINANCE", exchange_id="BINANCE") for base in ("BTC", "PEPE"))


class GrowingTables:
    """Holds more with each read."""

    def __init__(self, *states: list[market_pb2.Market]) -> None:
        self.states = list(states)

    def markets(self, *, ticker: str = "", exchange: str = "", text: str = "", limit: int = 0):
        held = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return [market for market in held if not ticker or market.market_id == ticker][:limit], len(held)


def find(*states: list[market_pb2.Market]) -> lookups.SymbolsFound:
    query = request_pb2.SymbolQuery(ticker="PEPE/USDT.BINANCE")
    return lookups._find_symbols(GrowingTables(*states), SymbolsQuestion(query, "BINANCE", ()))


def test_a_market_stored_between_two_looks_is_found_and_never_missing_from_a_whole_count():
    assert [market.market_id for market in find([BTC], [BTC, PEPE]).markets] == ["PEPE/USDT.BINANCE"]
    half = find([BTC], [BTC], [BTC])
    assert (half.markets, half.stored_count) == ((), 1)
    late = find([BTC], [BTC], [BTC, PEPE])
    assert late.markets
