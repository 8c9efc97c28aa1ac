"""Which endpoint and which period serve a request: chosen from the capabilities, before the first page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ingestors.engine.values import BarSource, Capabilities
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS, align_down_ns, align_up_ns, format_period, origin_seconds
from relay.protocol.ranges import Range

__all__ = ["Leg", "LegKind", "divisor_period", "plan_legs"]

_HISTORY_ROWS_SLACK = 4
"""Rows kept away from the edge of a short history, which moves on while we ask."""


class LegKind(Enum):
    """From what the bars of a leg are made."""

    BARS = "bars"
    TRADES = "trades"


@dataclass(frozen=True, slots=True)
class Leg:
    """A part of the range that one endpoint serves.

    Attributes:
        fetch_period_seconds: period asked of the exchange; smaller than the wanted one when rolled up.
        span: aligned to the wanted period.
    """

    kind: LegKind
    fetch_period_seconds: int
    span: Range

    def source(self, period_seconds: int) -> BarSource:
        """Return what bars of the wanted period made by this leg must say about themselves."""
        if self.kind is LegKind.TRADES:
            return BarSource.TICKS
        return BarSource.EXCHANGE if self.fetch_period_seconds == period_seconds else BarSource.ROLLUP


def divisor_period(period_seconds: int, native_periods: tuple[int, ...]) -> int | None:
    """Return the largest native period whose grid divides the wanted one (itself when native), or None."""
    fitting = [native for native in native_periods if _divides(native, period_seconds)]
    return max(fitting, default=None)


def plan_legs(span: Range, period_seconds: int, capabilities: Capabilities, *, server_ns: int) -> list[Leg]:
    """Split a range into legs, ascending.

    Args:
        span: aligned to the period and closed at ``server_ns``.
        period_seconds: wanted period.
        capabilities: of the exchange.
        server_ns: the exchange's clock.

    Raises:
        PeerError: UNSUPPORTED_PERIOD, or NO_DATA when neither candles nor trades reach back so far.
    """
    native = divisor_period(period_seconds, capabilities.native_periods)
    if native is None:
        if not capabilities.trades_by_time:
            raise PeerError(
                f"{capabilities.exchange} has no period that divides {format_period(period_seconds)}; ask for "
                f"multiples of {', '.join(map(format_period, capabilities.native_periods))}",
                code=ErrorCode.UNSUPPORTED_PERIOD,
            )
        return [Leg(LegKind.TRADES, period_seconds, span)]
    if capabilities.history_rows is None:
        return [Leg(LegKind.BARS, native, span)]
    reach_rows = capabilities.history_rows - 1 - _HISTORY_ROWS_SLACK
    edge_ns = align_down_ns(server_ns, native) - reach_rows * native * NANOSECONDS
    edge_ns = min(max(align_up_ns(edge_ns, period_seconds), span.start_ns), span.end_ns)
    old, recent = Range(span.start_ns, edge_ns), Range(edge_ns, span.end_ns)
    if old and not capabilities.trades_by_time:
        raise PeerError(
            f"{capabilities.exchange} serves only the newest {capabilities.history_rows} bars of "
            f"{format_period(native)}; ask for a later start",
            code=ErrorCode.NO_DATA,
        )
    legs = [Leg(LegKind.TRADES, period_seconds, old)] if old else []
    return [*legs, Leg(LegKind.BARS, native, recent)] if recent else legs


def _divides(native_seconds: int, period_seconds: int) -> bool:
    if period_seconds % native_seconds:
        return False
    return (origin_seconds(period_seconds) - origin_seconds(native_seconds)) % native_seconds == 0
