"""Real recorded trades through exchange sockets, ingestor, gateway and SDK: each once, with the numbers of the file."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ingestors.simulation.captures import load_captures
from ingestors.simulation.replay import Recording, load_recording
from ingestors.simulation.replay_clock import LiveReplay, Pace
from ingestors.simulation.socket_values import SocketLimits
from relay.protocol.scaled import from_scaled
from relay.protocol.v1 import market_pb2
from relay_client import Gap, Loss, Tick
from tests.integration.live.world import ExchangeThread, LivePath, control, watching
from tests.support.kafka import RunningKafka
from tests.support.processes import wait_until
from tests.support.simulated import GENEROUS

pytestmark = pytest.mark.kafka

CAPTURES = ("BINANCE.ws.1.0.gz", "COINBASE.ws.28.0.gz", "KRAKEN.ws.48.0.gz")
COUNTS = {"BINANCE": 2, "COINBASE": 97, "KRAKEN": 10}
TRADES = "XRPETH-trades-2019-10-11_13.parquet"
XRP = "XRP/ETH.BINANCE"
Row = tuple[Decimal, Decimal, bool]


def messages(path: Path) -> Iterator[Any]:
    """What a captured socket received; the numbers as they are written."""
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        found = re.fullmatch(r"\d+\.\d+: (.*)", line)
        if found:
            yield json.loads(found[1], parse_float=Decimal)


def of_file(path: Path) -> dict[str, list[Row]]:
    """Price, amount and taker's side of the live trades of a capture by ticker, read by nothing of the product."""
    trades = defaultdict(list)
    for value in messages(path):
        if isinstance(value, list) and value[2] == "trade":
            rows = [(Decimal(row[0]), Decimal(row[1]), row[3] == "b") for row in value[1]]
            trades[f"{value[3]}.KRAKEN"] += rows
        elif isinstance(value, dict) and value.get("type") == "match":
            row = (Decimal(value["price"]), Decimal(value["size"]), value["side"] == "sell")
            trades[f"{value['product_id'].replace('-', '/')}.COINBASE"].append(row)
        elif isinstance(value, dict) and value.get("data", {}).get("e") == "aggTrade":
            data = value["data"]
            name = {"NKNUSDT": "NKN/USDT", "LRCBTC": "LRC/BTC"}[data["s"]]
            trades[f"{name}.BINANCE"].append((Decimal(data["p"]), Decimal(data["q"]), not data["m"]))
    return dict(trades)


def row_of(tick: Tick) -> Row:
    assert isinstance(tick.price, Decimal)
    assert isinstance(tick.amount, Decimal)
    return tick.price, tick.amount, tick.taker_buy


def turnover(rows: list[Row]) -> Decimal:
    return sum((price * amount for price, amount, _ in rows), Decimal())


def logged_rows(path: LivePath) -> dict[str, list[Row]]:
    """The rows of the ticks that the log holds, by ticker."""
    found = defaultdict(list)
    for tick in path.logged():
        if isinstance(tick, market_pb2.Tick):
            price, amount = from_scaled(tick.price, tick.price_decimals), from_scaled(tick.amount, tick.amount_decimals)
            found[tick.ticker].append((price, amount, tick.taker_buy))
    return found


def repeated(path: Path) -> dict[str, str]:
    """Id of the trade that Coinbase repeats at the beginning, by ticker: the last one of before the capture."""
    last = [value for value in messages(path) if isinstance(value, dict) and value.get("type") == "last_match"]
    return {f"{value['product_id'].replace('-', '/')}.COINBASE": str(value["trade_id"]) for value in last}


@pytest.fixture(scope="module")
def captures(recorded_data: Path) -> list[Path]:
    return [recorded_data / "captures" / name for name in CAPTURES]


@pytest.fixture(scope="module")
def path(captures: list[Path], kafka: RunningKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePath]:
    tickers = [ticker for capture in captures for ticker in of_file(capture)]
    live_path = LivePath(tmp_path_factory.mktemp("live"), kafka, tickers=[XRP, *tickers])
    yield live_path
    live_path.close()


@contextlib.contextmanager
def exchange(path: LivePath, recordings: Iterable[Recording]) -> Iterator[str]:
    """An exchange that sends recordings as it is told, served by an ingestor that asks for aggregates by their ids."""
    running = ExchangeThread(
        recordings=recordings,
        replay=LiveReplay(Pace.STEP),
        limits=GENEROUS,
        socket_limits=SocketLimits(binance_messages_per_second=10**6),
    )
    try:
        path.serve(running.url, binance_stream="aggTrade")
        yield running.url
    finally:
        running.close()


def test_every_captured_trade_reaches_the_client_and_the_log_once_with_its_exact_numbers(
    captures: list[Path], path: LivePath
) -> None:
    """Cases 61, 62 and 70: repeated last trades, two trades of one moment without ids, small numbers as text."""
    expected = {ticker: rows for capture in captures for ticker, rows in of_file(capture).items()}
    before = {ticker: number for ticker, number in repeated(captures[1]).items() if ticker in expected}
    recordings = [recording for capture in captures for recording in load_captures(capture)]
    with exchange(path, recordings) as url, path.client() as client, watching(client, *expected) as watcher:
        wait_until(lambda: len(watcher.ticks) >= len(before), what="the repeated trades")
        assert {tick.ticker: tick.trade_id for tick in watcher.ticks} == before
        control(url, "/control/clock", {"to": "end"})
        wait_until(lambda: len(watcher.ticks) >= len(before) + sum(COUNTS.values()), what="all trades")
        came = {ticker: [row_of(tick) for tick in watcher.of(ticker)][ticker in before :] for ticker in expected}
        assert came == expected
        assert len(watcher.ticks) == len(before) + sum(COUNTS.values())

        def in_the_log() -> bool:
            logged = logged_rows(path)
            return {ticker: logged[ticker][ticker in before :] for ticker in expected} == expected

        wait_until(in_the_log, what="the same trades in the log")
        assert not [event for event in watcher.events if isinstance(event, Loss)]
    for name, count in COUNTS.items():
        rows = [row for ticker, found in expected.items() if ticker.endswith(name) for row in found]
        ours = [row for ticker, found in came.items() if ticker.endswith(name) for row in found]
        assert len(ours) == count
        assert turnover(ours) == turnover(rows)


@pytest.fixture(scope="module")
def trades(recorded_data: Path) -> dict[int, Row]:
    """The recorded trades by id; the file's doubles hold what was printed."""
    rows = pq.ParquetFile(recorded_data / "binance" / TRADES).read().to_pylist()
    return {
        row["id"]: (Decimal(repr(row["price"])), Decimal(repr(row["amount"])), row["side"] == "buy") for row in rows
    }


def test_recorded_trades_over_a_bad_socket_come_in_sequence_when_strict_and_as_the_same_set_when_not(
    recorded_data: Path, trades: dict[int, Row], path: LivePath
) -> None:
    """Case 59: 5 % doubled, 5 % reordered, connections that end; whatever comes late is flagged."""
    faults = [
        {"kind": "double", "percent": 5},
        {"kind": "reorder", "percent": 5, "window": 3, "delay_ms": 20},
        {"kind": "disconnect", "every_trades": 3_000},
    ]
    recording = load_recording(recorded_data / "binance" / TRADES, XRP)
    with (
        exchange(path, [recording]) as url,
        path.client() as client,
        watching(client, XRP, order="strict") as strict,
        watching(client, XRP) as swift,
    ):
        control(url, "/control/clock", {"trades": 1})
        control(url, "/control/socket-faults", faults)
        control(url, "/control/clock", {"speed": "max"})
        for watcher in (strict, swift):
            wait_until(lambda w=watcher: len(w.ticks) >= len(trades), what="all trades", deadline_s=240)
        counted = control(url, "/control/sockets")["exchanges"]["binance"]["markets"]["XRP/ETH"]
    assert counted["doubled"] > 400
    assert counted["reordered"] > 400
    assert [int(tick.trade_id) for tick in strict.ticks] == list(trades)
    assert sorted(int(tick.trade_id) for tick in swift.ticks) == list(trades)
    for watcher in (strict, swift):
        assert all(row_of(tick) == trades[int(tick.trade_id)] for tick in watcher.ticks)
        assert turnover([row_of(tick) for tick in watcher.ticks]) == turnover(list(trades.values()))
        assert not [event for event in watcher.events if isinstance(event, Loss)]
    newest, late = 0, []
    for tick in swift.ticks:
        late += [tick] if int(tick.trade_id) < newest else []
        newest = max(newest, int(tick.trade_id))
    assert late
    assert all(tick.backfill or tick.repaired for tick in late)
    # What the exchange had traded before that day's subscription is another gap, without a first id.
    said = [event for event in swift.events if isinstance(event, Gap) and event.from_trade_id]
    assert {gap.state for gap in said} == {"OPEN", "FILLED"}
