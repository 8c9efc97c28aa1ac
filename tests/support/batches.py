"""Records of the history topic for tests: batches of fetched bars, and bars made from ticks."""

from __future__ import annotations

import uuid

from relay.protocol.envelope import encode_record
from relay.protocol.v1 import common_pb2, market_pb2

__all__ = ["BASE_NS", "BTC", "FETCHED_NS", "MINUTE_NS", "bar", "batch", "record", "tick_bar"]

MINUTE_NS = 60 * 10**9
BASE_NS = 1_700_000_040 * 10**9
FETCHED_NS = BASE_NS + 7 * 86_400 * 10**9
BTC = "BTC/USDT.BINANCE"


def bar(minute: int, *, price: int = 4_213, decimals: int = 2, **fields: object) -> market_pb2.OHLC:
    """A one-minute bar ``minute`` minutes after BASE_NS."""
    return market_pb2.OHLC(
        timestamp=BASE_NS + minute * MINUTE_NS,
        open=price,
        high=price,
        low=price,
        close=price,
        volume="1.5",
        price_decimals=decimals,
        is_final=True,
        **fields,
    )


def batch(minutes: range, *, ticker: str = BTC, fetched_at: int = 1, price: int = 4_213, **fields: object):
    """A batch of consecutive bars that covers their minutes, fetched so many ns after FETCHED_NS."""
    start, end = (BASE_NS + minutes.start * MINUTE_NS, BASE_NS + minutes.stop * MINUTE_NS)
    values: dict[str, object] = {
        "job_id": str(uuid.uuid4()),
        "attempt": 1,
        "is_last": True,
        "total_rows": len(minutes),
        "covered": [common_pb2.TimeRange(start=start, end=end)],
        **fields,
    }
    return market_pb2.OHLCBatch(
        ticker=ticker,
        period_seconds=60,
        start_time=start,
        end_time=end,
        rows=[bar(m, price=price) for m in minutes],
        fetched_at=FETCHED_NS + fetched_at,
        **values,
    )


def tick_bar(
    minute: int, *, revision: int = 0, made_at: int = 1, ticker: str = BTC, price: int = 4_213, **fields: object
) -> market_pb2.OHLC:
    """A final one-minute bar made from ticks, so many ns after FETCHED_NS."""
    values: dict[str, object] = {"source": market_pb2.OHLC.TICKS, "trades": 7, **fields}
    made = bar(minute, price=price, ticker=ticker, period_seconds=60, revision=revision, **values)
    made.stamp.published_at = FETCHED_NS + made_at
    return made


def record(message: market_pb2.OHLCBatch | market_pb2.OHLC | market_pb2.Market) -> bytes:
    """Log record value of a message."""
    return encode_record(message)
