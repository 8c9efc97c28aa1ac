"""Ticks as Arrow record batches: prices and amounts are decimals, or integers with their scale; never floats."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from relay.errors import SettingsError
from relay.protocol.scaled import STORED_DECIMALS, from_scaled
from relay_client.engine.items import Tick

if TYPE_CHECKING:
    from relay_client.subscription import SubscriptionCore

__all__ = ["DECIMAL_COLUMNS", "SCALED_COLUMNS", "batches", "record_batch"]

_TIME = pa.timestamp("ns", tz="UTC")
_DECIMAL = pa.decimal128(38, STORED_DECIMALS)
_HEAD = [pa.field("ticker", pa.string(), nullable=False), pa.field("trade_id", pa.string(), nullable=False)]
_HEAD.append(pa.field("time", _TIME, nullable=False))
_TAIL = [
    pa.field("taker_buy", pa.bool_(), nullable=False),
    pa.field("received_at", _TIME, nullable=False),
    pa.field("backfill", pa.bool_(), nullable=False),
    pa.field("origin", pa.string(), nullable=False),
]
DECIMAL_COLUMNS = pa.schema(
    [*_HEAD, pa.field("price", _DECIMAL), pa.field("amount", _DECIMAL), pa.field("quote_amount", _DECIMAL), *_TAIL]
)
"""Columns with ``numbers="decimal"``: decimal(38,18), as the tables store them."""
SCALED_COLUMNS = pa.schema(
    [
        *_HEAD,
        pa.field("price", pa.int64()),
        pa.field("price_decimals", pa.int32()),
        pa.field("amount", pa.int64()),
        pa.field("amount_decimals", pa.int32()),
        *_TAIL,
    ]
)
"""Columns with ``numbers="scaled"``: units of ``10^-decimals``."""


def batches(core: SubscriptionCore, *, max_rows: int, max_seconds: float) -> Iterator[pa.RecordBatch]:
    """Yield the ticks of a subscription in batches until it ends; bars and other data are left out."""
    if max_rows < 1 or max_seconds <= 0:
        raise SettingsError(f"expected max_rows and max_seconds above zero, got {max_rows} and {max_seconds}")
    is_scaled = core.plan.is_scaled
    ticks: list[Tick] = []
    due = 0.0
    while True:
        left_s = max(0.0, due - time.monotonic()) if ticks else None
        taken = core.buffer.take(timeout_s=left_s, items_max=max_rows - len(ticks))
        fresh = [item for item in core.sort(taken or ()) if isinstance(item, Tick)]
        if fresh and not ticks:
            due = time.monotonic() + max_seconds
        ticks += fresh
        if ticks and (len(ticks) >= max_rows or taken is None or time.monotonic() >= due):
            yield record_batch(ticks, is_scaled=is_scaled)
            ticks = []
        if taken is None:
            return


def record_batch(ticks: list[Tick], *, is_scaled: bool) -> pa.RecordBatch:
    """Return ticks as one batch."""
    messages = [tick.message for tick in ticks]
    columns = {
        "ticker": [m.ticker for m in messages],
        "trade_id": [m.trade_id for m in messages],
        "time": pa.array([m.timestamp for m in messages], pa.int64()).cast(_TIME),
        "taker_buy": [m.taker_buy for m in messages],
        "received_at": pa.array([m.received_at for m in messages], pa.int64()).cast(_TIME),
        "backfill": [m.backfill for m in messages],
        "origin": [str(tick.origin) for tick in ticks],
    }
    if is_scaled:
        columns |= {
            "price": [m.price for m in messages],
            "price_decimals": [m.price_decimals for m in messages],
            "amount": [m.amount for m in messages],
            "amount_decimals": [m.amount_decimals for m in messages],
        }
        return pa.RecordBatch.from_pydict(columns, schema=SCALED_COLUMNS)
    columns |= {
        "price": [from_scaled(m.price, m.price_decimals) for m in messages],
        "amount": [from_scaled(m.amount, m.amount_decimals) for m in messages],
        "quote_amount": [
            from_scaled(m.quote_amount, m.quote_decimals) if m.HasField("quote_amount") else None for m in messages
        ],
    }
    return pa.RecordBatch.from_pydict(columns, schema=DECIMAL_COLUMNS)
