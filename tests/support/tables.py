"""In-memory twin of the table reader, and one that reads a JSON file so that another process can be shown things."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from relay.errors import RetryableError
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range, intersect
from relay.protocol.v1 import market_pb2
from relay.tables.port import CoverageRow

__all__ = ["FileTables", "MemoryTables", "coverage_row"]


def coverage_row(job_id: str, *covered: Range, attempt: int = 1, **fields: object) -> CoverageRow:
    """Return a coverage row of one attempt that ends with it; ``rows`` are the minutes covered."""
    rows = sum((r.end_ns - r.start_ns) // (60 * NANOSECONDS) for r in covered)
    values: dict[str, object] = {
        "batch_index": 0,
        "is_last": True,
        "status": "OK",
        "ticker": "BTC/USDT.BINANCE",
        "period_seconds": 60,
        "rows": rows,
        "total_rows": rows,
        "source": "BINANCE rest klines",
        "fetched_at_ns": 1,
        "error_code": "",
        "error_message": "",
        **fields,
    }
    return CoverageRow(job_id=job_id, attempt=attempt, covered=covered, **values)  # type: ignore[arg-type]


class MemoryTables:
    """A table reader that shows what it was given; thread-safe.

    Attributes:
        is_away: reads raise RetryableError.
        scans: how often coverage rows of jobs were read.
        catalog_changes: as a reader of a file would tell.
        reached: end offsets by partition, of each log by cluster and topic id.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[CoverageRow] = []
        self._bars: dict[tuple[str, int], set[int]] = {}
        self._markets: list[market_pb2.Market] = []
        self._snapshot_id = 0
        self.is_away = False
        self.scans = 0
        self.catalog_changes = 0
        self.reached: dict[tuple[str, str], Mapping[int, int]] = {}

    def commit(self, row: CoverageRow, *, with_bars: bool = True) -> None:
        """Make a coverage row visible, with a bar in each of its periods."""
        with self._lock:
            if with_bars:
                step_ns = row.period_seconds * NANOSECONDS
                bars = self._bars.setdefault((row.ticker, row.period_seconds), set())
                for piece in row.covered:
                    bars.update(range(piece.start_ns, piece.end_ns, step_ns))
            self._snapshot_id += 1
            self._rows.append(row)

    def commit_markets(self, markets: Iterable[market_pb2.Market]) -> None:
        """Make markets visible."""
        with self._lock:
            self._markets.extend(markets)
            self._snapshot_id += 1

    def coverage(self, ticker: str, period_seconds: int, *, within: Range) -> Sequence[Range]:
        self._check()
        with self._lock:
            return intersect(
                within,
                (
                    r
                    for row in self._rows
                    if (row.ticker, row.period_seconds) == (ticker, period_seconds)
                    for r in row.covered
                ),
            )

    def job_coverage(self, job_ids: Sequence[str]) -> Sequence[CoverageRow]:
        self._check()
        with self._lock:
            self.scans += 1
            return [row for row in self._rows if row.job_id in set(job_ids)]

    def log_reached(self, cluster_id: str, topic_id: str) -> Mapping[int, int]:
        self._check()
        return self.reached.get((cluster_id, topic_id), {})

    def bars_snapshot_id(self) -> int:
        self._check()
        return self._snapshot_id

    def count_bars(self, ticker: str, period_seconds: int, *, within: Range) -> int:
        return len(self._starts(ticker, period_seconds, within))

    def nth_bar_start_ns(self, ticker: str, period_seconds: int, *, within: Range, n: int) -> int | None:
        starts = self._starts(ticker, period_seconds, within)
        return starts[n - 1] if len(starts) >= n else None

    def read_bars(
        self,
        ticker: str,
        period_seconds: int,
        *,
        within: Range,
        limit: int | None = None,
        snapshot_id: int | None = None,
    ) -> pa.Table:
        raise NotImplementedError("the manager reads no bars")

    def markets(
        self, *, ticker: str = "", exchange: str = "", text: str = "", limit: int = 100
    ) -> tuple[Sequence[market_pb2.Market], int]:
        self._check()
        with self._lock:
            found = [
                m
                for m in self._markets
                if (not ticker or m.market_id == ticker)
                and (not exchange or m.exchange_id == exchange)
                and text.lower() in m.market_id.lower()
            ]
            return found[:limit], self._snapshot_id if self._markets else 0

    def _starts(self, ticker: str, period_seconds: int, within: Range) -> list[int]:
        self._check()
        with self._lock:
            bars = self._bars.get((ticker, period_seconds), set())
            return sorted(s for s in bars if within.start_ns <= s < within.end_ns)

    def _check(self) -> None:
        if self.is_away:
            raise RetryableError("the tables are away", code="STORAGE")


class FileTables(MemoryTables):
    """Shows the coverage rows of a JSON lines file, as it is now."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._seen = 0

    @staticmethod
    def append(path: Path, row: CoverageRow) -> None:
        """Show one more row."""
        with path.open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")

    def _check(self) -> None:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        for line in lines[self._seen :]:
            values = json.loads(line)
            values["covered"] = tuple(Range(**r) for r in values["covered"])
            self.commit(CoverageRow(**values))
        self._seen = len(lines)
