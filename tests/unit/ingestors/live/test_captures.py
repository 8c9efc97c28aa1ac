"""Recorded sockets, read whole: every trade with the numbers that the file has."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

from ingestors.engine.feed_values import BadTrade, Trades
from ingestors.exchanges.live.binance import BinanceProtocol
from ingestors.exchanges.live.coinbase import CoinbaseProtocol
from relay.protocol.scaled import from_scaled
from tests.support.live import captured, listing


def test_the_recorded_binance_socket_gives_its_aggregates(recorded_data: Path) -> None:
    texts = list(captured(recorded_data / "captures" / "BINANCE.ws.1.0.gz"))
    rows = [v["data"] for v in map(json.loads, texts) if v.get("data", {}).get("e") == "aggTrade"]
    protocol = BinanceProtocol(stream="aggTrade")
    protocol.subscribe([listing(f"{row['s'][:-1]}/X.BINANCE", row["s"]) for row in rows])
    events = [event for text in texts for event in protocol.on_message(text, 1)]
    trades = [trade for event in events if isinstance(event, Trades) for trade in event.trades]
    assert rows
    assert not [event for event in events if isinstance(event, BadTrade)]
    assert [trade.number for trade in trades] == [row["a"] for row in rows]
    assert [trade.taker_buy for trade in trades] == [not row["m"] for row in rows]
    ours = sum(from_scaled(t.price, t.price_decimals) * from_scaled(t.amount, t.amount_decimals) for t in trades)
    assert ours == sum(Decimal(row["p"]) * Decimal(row["q"]) for row in rows)


def test_the_recorded_coinbase_socket_gives_its_97_matches_and_10_repeats(recorded_data: Path) -> None:
    texts = list(captured(recorded_data / "captures" / "COINBASE.ws.28.0.gz"))
    rows = [v for v in map(json.loads, texts) if v.get("type") in ("match", "last_match")]
    protocol = CoinbaseProtocol()
    protocol.subscribe([listing(f"{row['product_id'].replace('-', '/')}.COINBASE") for row in rows])
    events = [event for text in texts for event in protocol.on_message(text, 1)]
    found = [event for event in events if isinstance(event, Trades)]
    trades = [trade for event in found for trade in event.trades]
    assert [sum(event.is_snapshot is kind for event in found) for kind in (False, True)] == [97, 10]
    assert not [event for event in events if isinstance(event, BadTrade)]
    assert [(t.number, t.sequence) for t in trades] == [(row["trade_id"], row["sequence"]) for row in rows]
    ours = sum(from_scaled(t.price, t.price_decimals) * from_scaled(t.amount, t.amount_decimals) for t in trades)
    assert ours == sum(Decimal(row["price"]) * Decimal(row["size"]) for row in rows)
