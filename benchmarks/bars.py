"""Bars and log records to measure with: made from a seed, as exact as an exchange's."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from relay.protocol.envelope import encode_record
from relay.protocol.v1 import common_pb2, market_pb2
from relay.tables.schema import OHLC_COLUMNS, STORED_NUMBER, STORED_TIME

__all__ = ["BASE_NS", "MINUTE_NS", "TICKER", "bar_rows", "log_records", "stored_volume"]

TICKER = "BTC/USDT.BINANCE"
MINUTE_NS = 60 * 10**9
BASE_NS = 1_577_836_800 * 10**9


def bar_rows(count: int, *, first: int = 0, ticker: str = TICKER, offset: int = 0) -> pa.Table:
    """Return minute bars as stored rows, ``first`` minutes after BASE_NS."""
    random = np.random.default_rng(first)
    prices = 4_200_000 + np.cumsum(random.integers(-500, 500, count))

    starts_us = (BASE_NS + np.arange(first, first + count, dtype=np.int64) * MINUTE_NS) // 1000
    volumes = random.integers(1, 10**9, count)
    numbers = {
        "open": _scaled(prices, 2),
        "high": _scaled(prices + 300, 2),
        "low": _scaled(prices - 300, 2),
        "close": _scaled(prices + 20, 2),
        "volume": _scaled(volumes, 5),
        "quote_volume": _scaled(volumes * 42, 5),
        "buy_volume": _scaled(volumes // 2, 5),
        "sell_volume": pa.nulls(count, STORED_NUMBER),
    }
    columns = {
        "ticker": pa.repeat(pa.scalar(ticker), count),
        "period_seconds": pa.array(np.full(count, 60, np.int32)),
        "start": pa.array(starts_us).cast(STORED_TIME),
        **numbers,
        "trades": pa.array(random.integers(0, 5000, count)),
        "first_trade_id": pa.nulls(count, pa.string()),
        "last_trade_id": pa.nulls(count, pa.string()),
        "source": pa.repeat(pa.scalar("EXCHANGE"), count),
        "is_final": pa.array(np.ones(count, bool)),
        "incomplete": pa.array(np.zeros(count, bool)),
        "revision": pa.array(np.zeros(count, np.int32)),
        "fetched_at_ns": pa.array(np.full(count, BASE_NS + offset, np.int64)),
        "log_partition": pa.array(np.zeros(count, np.int32)),
        "log_offset": pa.array(np.full(count, offset, np.int64)),
        "is_fetched": pa.array(np.ones(count, bool)),
    }
    return pa.table({name: columns[name] for name in OHLC_COLUMNS.names}, schema=OHLC_COLUMNS)


def log_records(count: int, *, rows_each: int = 1_000, first: int = 0) -> Iterator[bytes]:
    """Yield values of log records: batches of minute bars of one long history."""
    random = np.random.default_rng(first)
    for index in range(count):
        begin = first + index * rows_each
        start_ns = BASE_NS + begin * MINUTE_NS
        prices = (4_200_000 + np.cumsum(random.integers(-500, 500, rows_each))).tolist()
        volumes = random.integers(1, 10**9, rows_each).tolist()
        yield encode_record(
            market_pb2.OHLCBatch(
                request_id=str(uuid.uuid4()),
                job_id=str(uuid.uuid4()),
                attempt=1,
                ticker=TICKER,
                period_seconds=60,
                start_time=start_ns,
                end_time=start_ns + rows_each * MINUTE_NS,
                is_last=True,
                total_rows=rows_each,
                fetched_at=start_ns + rows_each * MINUTE_NS,
                covered=[common_pb2.TimeRange(start=start_ns, end=start_ns + rows_each * MINUTE_NS)],
                rows=[
                    market_pb2.OHLC(
                        timestamp=start_ns + number * MINUTE_NS,
                        open=price,
                        high=price + 300,
                        low=price - 300,
                        close=price + 20,
                        volume=stored_volume(volume),
                        quote_volume=stored_volume(volume * 42),
                        buy_volume=stored_volume(volume // 2),
                        trades=volume % 5000,
                        price_decimals=2,
                        is_final=True,
                    )
                    for number, (price, volume) in enumerate(zip(prices, volumes, strict=True))
                ],
            )
        )


def stored_volume(units: int) -> str:
    """Return units of 10^-5 as plain decimal text."""
    return f"{units // 100_000}.{units % 100_000:05d}"


def _scaled(units: Any, scale: int) -> pa.Array:
    words = np.empty((len(units), 2), dtype=np.int64)
    words[:, 0] = units
    words[:, 1] = words[:, 0] >> 63
    exact = pa.Array.from_buffers(pa.decimal128(38, scale), len(units), [None, pa.py_buffer(words)])
    return exact.cast(STORED_NUMBER)
