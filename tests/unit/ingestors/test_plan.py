from __future__ import annotations

from dataclasses import replace

import pytest

from ingestors.engine.plan import LegKind, divisor_period, plan_legs
from relay.errors import PeerError
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range
from tests.support.ingestors import COINBASE_LIKE, KRAKEN_LIKE, MINUTE_NS, T0, minutes

DAY = 86_400


@pytest.mark.parametrize(
    ("wanted", "native", "expected"),
    [
        (60, (60, 300), 60),
        (180, (60, 300), 60),
        (900, (60, 300), 300),
        (7 * DAY, (3_600, DAY), DAY),
        (7 * DAY, (5 * DAY, 3 * DAY, DAY), DAY),
        (14 * DAY, (DAY, 7 * DAY), 7 * DAY),
        (30, (60,), None),
    ],
)
def test_the_largest_period_whose_grid_fits_is_rolled_up(
    wanted: int, native: tuple[int, ...], expected: int | None
) -> None:
    assert divisor_period(wanted, native) == expected


def test_weeks_begin_on_monday_so_a_thursday_grid_never_serves_them_case_10() -> None:
    """Case 10: a week is made of days that lie on both grids."""
    assert divisor_period(7 * DAY, (DAY, 3 * DAY, 6 * DAY)) == DAY


def test_kraken_is_routed_by_what_its_candles_reach_case_27_case_41() -> None:
    """Cases 27 and 41: the capability table is consulted before anything is asked."""
    server_ns = T0 + 10_000 * MINUTE_NS
    old, recent = plan_legs(minutes(0, 10_000), 60, KRAKEN_LIKE, server_ns=server_ns)
    assert (old.kind, recent.kind) == (LegKind.TRADES, LegKind.BARS)
    assert old.span.end_ns == recent.span.start_ns
    assert server_ns - recent.span.start_ns < 720 * MINUTE_NS


def test_a_short_history_without_trades_is_refused_up_front() -> None:
    capabilities = replace(KRAKEN_LIKE, trades_by_time=False)
    with pytest.raises(PeerError) as caught:
        plan_legs(minutes(0, 5_000), 60, capabilities, server_ns=T0 + 10_000 * MINUTE_NS)
    assert caught.value.code == "NO_DATA"


def test_a_period_below_every_native_one_is_made_of_trades_or_refused() -> None:
    span = Range(T0, T0 + 60 * NANOSECONDS)
    (leg,) = plan_legs(span, 5, KRAKEN_LIKE, server_ns=span.end_ns)
    assert leg.kind is LegKind.TRADES
    with pytest.raises(PeerError) as caught:
        plan_legs(span, 5, COINBASE_LIKE, server_ns=span.end_ns)
    assert caught.value.code == "UNSUPPORTED_PERIOD"
