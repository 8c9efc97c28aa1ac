"""Results for tests, without a relay or tables."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from relay.protocol.ranges import Range
from relay.tables.schema import OHLC_COLUMNS
from relay_client import History, RequestStatus
from relay_client.engine.plan import HistoryQuery
from relay_client.history import BAR_COLUMNS

MINUTE_NS = 60 * 10**9
BASE_NS = 1_700_000_040 * 10**9
FINE = "12345678901234567890.123456789012345678"


def history(closes: list[str], *, missing: tuple[Range, ...] = (), warning: str = "") -> History:
    """One bar a minute; volumes are tiny, quote volumes are not sent."""
    rows = [
        {
            "ticker": "BTC/USDT.BINANCE",
            "period_seconds": 60,
            "start": (BASE_NS + index * MINUTE_NS) // 1000,
            "open": Decimal(closes[max(0, index - 1)]),
            "high": Decimal(close) + 1,
            "low": Decimal(close) - 1,
            "close": Decimal(close),
            "volume": Decimal("0.0000001"),
            "source": "EXCHANGE",
            "is_final": True,
            "incomplete": False,
            "revision": 0,
            "fetched_at_ns": 1,
            "log_partition": 0,
            "log_offset": 0,
        }
        for index, close in enumerate(closes)
    ]
    span = Range(BASE_NS, BASE_NS + max(1, len(closes)) * MINUTE_NS)
    return History(
        query=HistoryQuery("BTC/USDT.BINANCE", 60, span.start_ns, span.end_ns),
        status=RequestStatus.OK if rows else RequestStatus.NOT_FOUND,
        coverage=(span,),
        missing=missing,
        warning=warning,
        snapshot_id=7,
        requests=(),
        _bars=pa.Table.from_pylist(rows, schema=OHLC_COLUMNS).select(BAR_COLUMNS),
    )
