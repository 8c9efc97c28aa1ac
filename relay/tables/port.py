"""What readers of the tables need: the manager decides from it, the SDK reads bars through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from relay.protocol.ranges import Range
from relay.protocol.v1 import market_pb2

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CoverageRow", "TableReader"]


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """One row of ``market.coverage``: what one batch of one attempt brought.

    Attributes:
        status: name of ``OHLCBatch.Status``.
        covered: ranges that this batch covered, united.
        rows: bars in the batch.
        source: exchange and way ("BINANCE rest klines", "KRAKEN rest trades", "… rolled up from 60 s").
        fetched_at_ns: when the exchange answered.
    """

    job_id: str
    attempt: int
    batch_index: int
    is_last: bool
    status: str
    ticker: str
    period_seconds: int
    covered: tuple[Range, ...]
    rows: int
    total_rows: int
    source: str
    fetched_at_ns: int
    error_code: str
    error_message: str


class TableReader(Protocol):
    """Reads of the three tables. Coverage is read first, then bars: covered implies visible.

    Every method raises ``RetryableError`` while the catalog or the store is away.
    """

    @property
    def catalog_changes(self) -> int:
        """How often the catalog's file was found deleted or replaced under the reader."""

    def coverage(self, ticker: str, period_seconds: int, *, within: Range) -> Sequence[Range]:
        """Return which parts of ``within`` have been fetched, united and ascending."""

    def job_coverage(self, job_ids: Sequence[str]) -> Sequence[CoverageRow]:
        """Return all coverage rows of the jobs, in one scan."""

    def log_reached(self, cluster_id: str, topic_id: str) -> Mapping[int, int]:
        """Return up to which offset of each partition of a history log every batch is in ``market.coverage``.

        A partition that is left out has not been read as far as is known; a log of another identity reaches nothing.
        """

    def bars_snapshot_id(self) -> int:
        """Return the current snapshot of ``market.ohlc``; 0 when it has none yet."""

    def count_bars(self, ticker: str, period_seconds: int, *, within: Range) -> int:
        """Return how many bars start within a range."""

    def nth_bar_start_ns(self, ticker: str, period_seconds: int, *, within: Range, n: int) -> int | None:
        """Return the start of the n-th bar (from 1) in a range, or None when there are fewer."""

    def read_bars(
        self,
        ticker: str,
        period_seconds: int,
        *,
        within: Range,
        limit: int | None = None,
        snapshot_id: int | None = None,
    ) -> pa.Table:
        """Return bars ascending by start (columns in ``relay.tables.schema``), at the snapshot or a descendant."""

    def markets(
        self, *, ticker: str = "", exchange: str = "", text: str = "", limit: int = 100
    ) -> tuple[Sequence[market_pb2.Market], int]:
        """Return markets that match, and the snapshot id of ``market.symbol_metadata``."""
