"""Tables with many small files, and everything that is in them and on disk."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from relay.tables import TableSettings
from relay.tables.catalog import open_catalog, open_table
from relay.tables.offsets import SourceOffsets
from relay.tables.schema import NAMESPACE, OHLC_COLUMNS, TICKS_COLUMNS
from relay.tables.writer import IcebergTables

__all__ = ["DAY_NS", "FIRST_DAY_NS", "TICKS", "add_ticks", "bars", "contents", "files_on_disk", "lake_in", "ticks"]

DAY_NS = 86_400 * 10**9
FIRST_DAY_NS = 19_675 * DAY_NS
TICKS = SourceOffsets("ticks", "cluster", "topic")


def lake_in(folder: Path) -> TableSettings:
    """Return settings of tables in a folder."""
    return TableSettings(f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse")


def ticks(numbers: range, *, ticker: str = "BTC/USDT.BINANCE", day: int = 0) -> pa.Table:
    """Ticks of a day, a millisecond apart, in the columns of ``market.ticks``."""
    times_ns = [FIRST_DAY_NS + day * DAY_NS + number * 10**6 for number in numbers]
    rows = [
        {
            "ticker": ticker,
            "trade_number": number,
            "time": time_ns // 1000,
            "time_ns": time_ns,
            "price": Decimal(number % 977 + 1),
            "amount": Decimal("0.1"),
            "taker_buy": bool(number % 2),
            "backfill": False,
            "received_ns": time_ns + 1,
            "log_partition": 0,
            "log_offset": number,
        }
        for number, time_ns in zip(numbers, times_ns, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=TICKS_COLUMNS)


def add_ticks(tables: IcebergTables, numbers: range, *, day: int = 0, ticker: str = "BTC/USDT.BINANCE") -> None:
    """Append ticks by one commit, as the archive does: after what the table has, and fenced by it."""
    known = tables.offsets("ticks", job="ticks", cluster_id="cluster", topic_id="topic")
    rows = ticks(numbers, ticker=ticker, day=day)
    tables.append_ticks(rows, reached=known.advanced({0: numbers.stop}), batch_id=numbers.start, known=known)


def bars(minutes: range, *, close: int = 1, fetched_at_ns: int = 1, ticker: str = "BTC/USDT.BINANCE") -> pa.Table:
    """Fetched one-minute bars of the first day in the columns of ``market.ohlc``."""
    rows = [
        {
            "ticker": ticker,
            "period_seconds": 60,
            "start": (FIRST_DAY_NS + minute * 60 * 10**9) // 1000,
            **dict.fromkeys(("open", "high", "low", "close", "volume"), Decimal(close)),
            "source": "EXCHANGE",
            "is_final": True,
            "incomplete": False,
            "revision": 0,
            "fetched_at_ns": fetched_at_ns,
            "log_partition": 0,
            "log_offset": minute,
            "is_fetched": True,
        }
        for minute in minutes
    ]
    return pa.Table.from_pylist(rows, schema=OHLC_COLUMNS)


def contents(settings: TableSettings, name: str, *, key: tuple[str, ...], snapshot_id: int | None = None) -> pa.Table:
    """Return every row and column of a table, ordered by a key."""
    table = open_table(open_catalog(settings), name)
    assert table is not None
    rows = table.scan(snapshot_id=snapshot_id).to_arrow()
    return rows.sort_by([(column, "ascending") for column in key]).combine_chunks()


def files_on_disk(folder: Path, name: str) -> set[Path]:
    """Return the files that lie in a table's folder."""
    return {path for path in (folder / "warehouse" / NAMESPACE / name).rglob("*") if path.is_file()}
