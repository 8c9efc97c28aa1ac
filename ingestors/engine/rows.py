"""Judging rows: which bucket a row belongs to, whether it lies in the asked range, and whether it can be stored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal

from ingestors.engine.values import Bar, BarsPage
from relay.errors import PeerError
from relay.protocol.periods import align_down_ns
from relay.protocol.ranges import Range
from relay.protocol.scaled import STORED_DECIMALS, decimals_needed, to_scaled
from relay.protocol.times import TIME_NS_MAX, TIME_NS_MIN

__all__ = ["PlacedRows", "bar_problem", "is_sane_time", "place_rows"]

_STORED_INTEGER_DIGITS = 38 - STORED_DECIMALS


@dataclass(slots=True)
class PlacedRows:
    """A page sorted out against the asked window.

    Attributes:
        bars: by bucket start, one each.
        bad: reason by bucket start.
        unplaced: reasons of rows whose bucket is unknown.
        before, after: rows older and newer than the window.
        doubled, off_grid: how many rows shared a bucket, or did not start on the grid.
        raw: rows in the answer.
    """

    bars: dict[int, Bar] = field(default_factory=dict)
    bad: dict[int, str] = field(default_factory=dict)
    unplaced: list[str] = field(default_factory=list)
    before: int = 0
    after: int = 0
    doubled: int = 0
    off_grid: int = 0
    raw: int = 0

    @property
    def buckets(self) -> list[int]:
        """Bucket starts for which the exchange sent something, ascending."""
        return sorted({*self.bars, *self.bad})


def place_rows(page: BarsPage, window: Range, period_seconds: int) -> PlacedRows:
    """Put each row into its bucket: floor to the grid, inside the window only, never two in one bucket.

    Of two rows in one bucket the one on the grid wins; of equals the one sent last.
    """
    placed = PlacedRows(raw=len(page.rows) + len(page.bad))
    on_grid: set[int] = set()
    for row in page.rows:
        bucket_ns = _bucket(placed, row.start_ns, window, period_seconds, reason="time out of any sense")
        if bucket_ns is None:
            continue
        problem = bar_problem(row)
        if problem is not None:
            placed.bad[bucket_ns] = problem
            continue
        is_on_grid = row.start_ns == bucket_ns
        placed.off_grid += not is_on_grid
        if bucket_ns in placed.bars:
            placed.doubled += 1
            if bucket_ns in on_grid and not is_on_grid:
                continue
        if is_on_grid:
            on_grid.add(bucket_ns)
        placed.bars[bucket_ns] = row if is_on_grid else replace(row, start_ns=bucket_ns, incomplete=True)
    for bad in page.bad:
        bucket_ns = _bucket(placed, bad.start_ns, window, period_seconds, reason=bad.reason)
        if bucket_ns is not None:
            placed.bad[bucket_ns] = bad.reason
    for bucket_ns in placed.bad.keys() & placed.bars.keys():
        # A second, sound row for the same bucket: the exchange repeated itself; the sound one stands.
        del placed.bad[bucket_ns]
    return placed


def is_sane_time(time_ns: int) -> bool:
    """Return whether a time lies between 1985 and 2100."""
    return TIME_NS_MIN <= time_ns <= TIME_NS_MAX


def bar_problem(bar: Bar) -> str | None:
    """Return why a bar cannot be stored exactly, or None."""
    prices = (bar.open, bar.high, bar.low, bar.close)
    if any(price <= 0 for price in prices):
        return f"price {min(prices)} is not above zero"
    if bar.high < bar.low:
        return f"high {bar.high} is below low {bar.low}"
    if bar.low > min(bar.open, bar.close) or bar.high < max(bar.open, bar.close):
        return f"open {bar.open} or close {bar.close} lies outside of low {bar.low} to high {bar.high}"
    volumes = [v for v in (bar.volume, bar.quote_volume, bar.buy_volume, bar.sell_volume) if v is not None]
    if any(volume < 0 for volume in volumes):
        return f"volume {min(volumes)} is negative"
    return _scale_problem(prices) or _stored_problem(volumes)


def _scale_problem(prices: tuple[Decimal, ...]) -> str | None:
    decimals = decimals_needed(prices)
    if decimals > STORED_DECIMALS:
        return f"price needs {decimals} decimals, at most {STORED_DECIMALS} can be stored"
    try:
        to_scaled(max(prices), decimals)
    except PeerError as error:
        return str(error)
    return None


def _stored_problem(volumes: list[Decimal]) -> str | None:
    decimals = decimals_needed(volumes)
    if decimals > STORED_DECIMALS:
        return f"volume needs {decimals} decimals, at most {STORED_DECIMALS} can be stored"
    if any(volume.adjusted() >= _STORED_INTEGER_DIGITS for volume in volumes):
        return f"volume {max(volumes)} has more than {_STORED_INTEGER_DIGITS} digits before the point"
    return None


def _bucket(placed: PlacedRows, start_ns: int | None, window: Range, period_seconds: int, *, reason: str) -> int | None:
    if start_ns is None or not is_sane_time(start_ns):
        placed.unplaced.append(reason)
        return None
    bucket_ns = align_down_ns(start_ns, period_seconds)
    if bucket_ns < window.start_ns:
        placed.before += 1
    elif bucket_ns >= window.end_ns:
        placed.after += 1
    else:
        return bucket_ns
    return None
