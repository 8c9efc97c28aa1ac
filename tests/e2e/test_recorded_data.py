"""Real recorded market data through the whole platform: the table equals the recording, row for row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from relay.protocol.ranges import Range
from relay.protocol.v1 import request_pb2
from tests.support.platform import MINUTE_NS, Platform
from tests.support.processes import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

OK = request_pb2.HistoryReadyNotification.OK


@pytest.fixture
def replayed(tmp_path: Path) -> Iterator:
    running: list[Platform] = []

    def start(recording: Path, ticker: str) -> Platform:
        platform = Platform(tmp_path / "data", "--replay", str(recording), "--ticker", ticker)
        running.append(platform)
        return platform

    yield start
    for platform in running:
        assert platform.command("down").returncode == 0
        wait_until(lambda end=platform.process: end.returncode is not None, what="the supervisor to end")
        assert platform.close() == 0


def candles(path: Path) -> list[tuple]:
    """Start (ns) and exact numbers of a candle file; doubles by their shortest text."""
    table = pq.read_table(path)
    starts = [int(t.timestamp() * 1000) * 10**6 for t in table["date"].to_pylist()]
    columns = [[Decimal(repr(v)) for v in table[n].to_pylist()] for n in ("open", "high", "low", "close", "volume")]
    return list(zip(starts, *columns, strict=True))


def stored(platform: Platform, ticker: str, within: Range) -> list[tuple]:
    table = platform.lake().read_bars(ticker, 60, within=within)
    starts = [s * 1000 for s in table["start"].cast("int64").to_pylist()]
    columns = [table[n].to_pylist() for n in ("open", "high", "low", "close", "volume")]
    return list(zip(starts, *columns, strict=True))


def fetch(platform: Platform, ticker: str, within: Range) -> request_pb2.HistoryReadyNotification:
    return platform.outcome(platform.submit(ticker, within))


def test_binance_candles_of_three_days_arrive_row_for_row(recorded_data: Path, replayed):
    path = recorded_data / "binance" / "XRPETH-1m-2019-10-11_13.parquet"
    expected = candles(path)
    platform = replayed(path, "XRP/ETH.BINANCE")
    within = Range(expected[0][0], expected[-1][0] + MINUTE_NS)
    outcome = fetch(platform, "XRP/ETH.BINANCE", within)
    assert (outcome.status, outcome.row_count) == (OK, len(expected))
    assert stored(platform, "XRP/ETH.BINANCE", within) == expected


@pytest.mark.soak
def test_bars_by_coinbases_descending_pages_equal_the_candles_of_the_same_trades(recorded_data: Path, replayed):
    expected = candles(recorded_data / "binance" / "XRPETH-1m-2019-10-11_13.parquet")
    trades = recorded_data / "binance" / "XRPETH-trades-2019-10-11_13.parquet"
    platform = replayed(trades, "XRP/ETH.COINBASE")
    traded = [row for row in expected if row[5]]
    within = Range(traded[0][0], traded[-1][0] + MINUTE_NS)
    outcome = fetch(platform, "XRP/ETH.COINBASE", within)
    assert outcome.status == OK, outcome
    assert stored(platform, "XRP/ETH.COINBASE", within) == traded


@pytest.mark.soak
def test_krakens_recorded_rows_arrive_without_the_running_last_one(recorded_data: Path, replayed):
    path = recorded_data / "rest" / "kraken" / "http_ohlc.json"
    rows = json.loads(path.read_text())["result"]["XBTUSDT"]
    expected = [(r[0] * 10**9, *map(Decimal, r[1:5]), Decimal(r[6])) for r in rows[:-1]]
    platform = replayed(path, "BTC/USDT.KRAKEN")
    # The oldest rows of the 720 are left to the trades, which a candle recording has not.
    expected = expected[5:]
    within = Range(expected[0][0], (rows[-1][0] + 60) * 10**9)
    outcome = fetch(platform, "BTC/USDT.KRAKEN", within)
    assert outcome.row_count == 715
    assert [(m.start, m.end) for m in outcome.missing] == [(rows[-1][0] * 10**9, within.end_ns)]
    assert stored(platform, "BTC/USDT.KRAKEN", within) == expected
