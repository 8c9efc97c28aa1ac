"""Recorded trades over a bad way: the same sequence in strict order, the same set otherwise."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.unit.relay_client.feed_model import FeedModel

TRADES = "XRPETH-trades-2019-10-11_13.parquet"
_SCALE = 10**8


@pytest.fixture(scope="module")
def recorded(recorded_data: Path) -> dict[int, tuple[int, int]]:
    """Price and amount of each trade id, in units of 10^-8; the file's doubles hold what was printed."""
    rows = pq.read_table(recorded_data / "binance" / TRADES).to_pylist()
    return {row["id"]: (round(row["price"] * _SCALE), round(row["amount"] * _SCALE)) for row in rows}


@pytest.mark.parametrize("is_strict", [True, False])
def test_recorded_trades_arrive_once_although_some_are_lost_doubled_and_reordered(recorded, is_strict):
    model, dice = FeedModel(is_strict=is_strict), random.Random(12_477)
    delayed, lost = [], set()
    for index, (number, (price, amount)) in enumerate(recorded.items()):
        message = model.stamped(number, is_logged=False)
        message.price, message.amount, message.price_decimals, message.amount_decimals = price, amount, 8, 8
        model.log.append(message)
        fate = dice.random() if index else 1.0
        if fate < 0.05:
            delayed.append(message)
        elif fate < 0.07:
            lost.add(number)
        else:
            for _ in range(2 if fate < 0.12 else 1):
                model.feed.take(message, model.now_ns)
        if delayed and dice.random() < 0.5:
            model.feed.take(delayed.pop(0), model.now_ns)
        if index % 3_000 == 2_999:
            model.hand_over()
        if index % 1_000 == 999:
            model.feed.on_relay_away()
            model.feed.on_in_force(model.now_ns, was_cut=True)
            model.run(1)
    for message in delayed:
        model.feed.take(message, model.now_ns)
    model.beat(max(recorded))
    model.run(5)
    ids = model.delivered
    assert ids == list(recorded) if is_strict else (sorted(ids) == list(recorded) and len(set(ids)) == len(ids))
    assert {int(t.trade_id) for t in model.ticks if t.repaired} >= lost
    assert model.losses == []
    turnover = sum(t.message.price * t.message.amount for t in model.ticks)
    assert turnover == sum(price * amount for price, amount in recorded.values())
