"""Recorded trades give the recorded candles exactly: in order, shuffled, in batches, doubled, and over restarts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spark_jobs.jobs.bars.engine.bar_book import BarBook
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, Beat, MadeBar, Recompute

TICKER = "XRP/ETH.BINANCE"
PERIODS = {60: "1m", 300: "5m"}
DECIMALS = 8
Row = tuple[int, Decimal, Decimal, Decimal, Decimal, Decimal]


@pytest.fixture(scope="module")
def trades(recorded_data: Path) -> list[BarTrade]:
    table = pq.read_table(recorded_data / "binance" / "XRPETH-trades-2019-10-11_13.parquet")
    made = []
    for offset, row in enumerate(table.to_pylist()):
        price, amount = (int(Decimal(repr(row[name])).scaleb(DECIMALS)) for name in ("price", "amount"))
        made.append(
            BarTrade(
                int(row["id"]),
                int(row["timestamp"]) * 10**6,
                price,
                DECIMALS,
                amount,
                DECIMALS,
                None,
                0,
                row["side"] == "buy",
                offset,
            )
        )
    return made


def candles(folder: Path, period_seconds: int) -> list[Row]:
    """Candles in which something was traded."""
    table = pq.read_table(folder / "binance" / f"XRPETH-{PERIODS[period_seconds]}-2019-10-11_13.parquet")
    rows = []
    for row in table.to_pylist():
        numbers = [Decimal(repr(row[name])) for name in ("open", "high", "low", "close", "volume")]
        if numbers[4]:
            rows.append((int(row["date"].timestamp() * 1000) * 10**6, *numbers))
    return rows


def row_of(bar: MadeBar) -> Row:
    prices = (Decimal(n).scaleb(-bar.price_decimals) for n in (bar.open, bar.high, bar.low, bar.close))
    return (bar.start_ns, *prices, Decimal(bar.buy + bar.sell).scaleb(-bar.amount_decimals))


def shuffled(trades: list[BarTrade]) -> list[BarTrade]:
    return random.Random(5).sample(trades, len(trades))


def doubled(trades: list[BarTrade]) -> list[BarTrade]:
    chance = random.Random(7)
    return [one for trade in trades for one in [trade] * (1 + (chance.random() < 0.2))]


def played(trades: list[BarTrade], *, restart_every: int = 0) -> Iterator[MadeBar | Recompute]:
    """Final bars of trades between a beat before the first and one after the last."""

    def new_book() -> BarBook:
        return BarBook(BarRules(), lambda _: PERIODS)

    book = new_book()
    book.on_beat(TICKER, Beat(1, min(t.time_ns for t in trades) - 600 * 10**9, False))
    for place, trade in enumerate(trades):
        if restart_every and place % restart_every == 0:
            state, book = book.encode(), new_book()
            book.restore(state)
        book.on_trade(TICKER, trade)
    yield from book.on_beat(TICKER, Beat(1, max(t.time_ns for t in trades) + 600 * 10**9, False))


@pytest.mark.parametrize("period_seconds", PERIODS)
@pytest.mark.parametrize("way", ["in order", "shuffled", "doubled", "shuffled and doubled", "over restarts"])
def test_recorded_trades_give_the_recorded_candles(
    recorded_data: Path, trades: list[BarTrade], period_seconds: int, way: str
) -> None:
    given = trades
    if "shuffled" in way:
        given = shuffled(given)
    if "doubled" in way:
        given = doubled(given)
    made = list(played(given, restart_every=1_000 if way == "over restarts" else 0))
    bars = [bar for bar in made if isinstance(bar, MadeBar) and bar.period_seconds == period_seconds]
    assert len(bars) == len([one for one in made if one.period_seconds == period_seconds])
    assert [row_of(bar) for bar in bars] == candles(recorded_data, period_seconds)
    assert sum(bar.trades for bar in bars) == len(trades)
