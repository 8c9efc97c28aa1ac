"""A long bar out of short ones says what its ticks say, whatever short bars are missing, old or incomplete."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.protocol.ranges import Range
from relay.tables.schema import STORED_NUMBER, TICK_BARS_COLUMNS
from spark_jobs.jobs.bars.engine.gap_book import GapBook
from spark_jobs.jobs.bars.engine.values import MadeBar
from spark_jobs.jobs.bars.roll_up import children_of, pieces
from spark_jobs.jobs.bars.stored_bar import bar_of_ticks, joined_bar

TICKER, MINUTE = "BTC/USDT.BINANCE", 60 * 10**9
LONG_SECONDS = 1_200
WHOLE = Range(0, LONG_SECONDS * 10**9)
Trade = tuple[int, int, int]
"""Number, time in nanoseconds, price."""


def table(trades: list[Trade]) -> pa.Table:
    return pa.table(
        {
            "trade_number": pa.array([number for number, _, _ in trades], pa.int64()),
            "time_ns": pa.array([time_ns for _, time_ns, _ in trades], pa.int64()),
            "price": pa.array([Decimal(price) for _, _, price in trades], STORED_NUMBER),
            "amount": pa.array([Decimal(number % 3 + 1) / 10 for number, _, _ in trades], STORED_NUMBER),
            "quote_amount": pa.array([None] * len(trades), STORED_NUMBER),
            "taker_buy": pa.array([number % 2 == 0 for number, _, _ in trades], pa.bool_()),
        }
    )


def within(trades: list[Trade], part: Range) -> list[Trade]:
    return [trade for trade in trades if part.start_ns <= trade[1] < part.end_ns]


def made_of(trades: list[Trade], *, seconds: int, start_ns: int) -> MadeBar | None:
    return bar_of_ticks(table(trades), GapBook(), ticker=TICKER, period_seconds=seconds, start_ns=start_ns)


def children(trades: list[Trade], changes: dict[int, str]) -> list[MadeBar]:
    """The minutes' bars; a change leaves one out, marks it, or takes a trade away as if it came late."""
    found = []
    for start_ns in range(0, WHOLE.end_ns, MINUTE):
        minute = within(trades, Range(start_ns, start_ns + MINUTE))
        match change := changes.get(start_ns // MINUTE, ""):
            case "first late":
                minute = minute[1:]
            case "last late":
                minute = minute[:-1]
            case "one late":
                minute = minute[: len(minute) // 2] + minute[len(minute) // 2 + 1 :]
        bar = made_of(minute, seconds=60, start_ns=start_ns) if change != "missing" else None
        if bar is not None:
            found.append(bar._replace(incomplete=change == "incomplete"))
    return found


def rolled_up(trades: list[Trade], of: list[MadeBar]) -> MadeBar | None:
    bar: MadeBar | None = None
    for piece in pieces(of, WHOLE):
        part = piece
        if isinstance(piece, Range):
            part = made_of(within(trades, piece), seconds=LONG_SECONDS, start_ns=0)
        else:
            part = piece._replace(period_seconds=LONG_SECONDS, start_ns=0)
        bar = joined_bar(bar, part)
    return bar


CHANGES = st.dictionaries(
    st.integers(0, 19), st.sampled_from(["missing", "incomplete", "first late", "last late", "one late"]), max_size=6
)
TIMES = st.lists(st.integers(0, WHOLE.end_ns - 1), min_size=1, max_size=80)


@given(times=TIMES, changes=CHANGES, skipped=st.sets(st.integers(0, 80), max_size=3), seed=st.integers(1, 97))
def test_it_equals_the_bar_of_all_ticks(
    times: list[int], changes: dict[int, str], skipped: set[int], seed: int
) -> None:
    numbers = [n for n in range(100, 100 + len(times) + 5) if n - 100 not in skipped]
    trades = [(n, t, 1 + (n * seed) % 50) for n, t in zip(numbers, sorted(times), strict=False)]
    assert rolled_up(trades, children(trades, changes)) == made_of(trades, seconds=LONG_SECONDS, start_ns=0)


def test_where_numbers_run_on_only_the_edges_are_read_as_ticks_case_7() -> None:
    # A trade each 20 s, none from minute 8 to 11: an empty minute in the middle is known to be empty.
    trades = [(n, n * MINUTE // 3, n) for n in range(60) if not 24 <= n < 36]
    trades = [(k, time_ns, price) for k, (_, time_ns, price) in enumerate(trades, 1)]
    found = list(pieces(children(trades, {}), WHOLE))
    ranges = [piece for piece in found if isinstance(piece, Range)]
    assert ranges[0] == Range(0, MINUTE)
    assert ranges[-1] == Range(19 * MINUTE, 20 * MINUTE)
    assert sum(piece.end_ns - piece.start_ns for piece in ranges[1:-1]) == 0
    assert sum(isinstance(piece, MadeBar) for piece in found) == 20 - 4 - 2


@pytest.mark.parametrize("change", ["missing", "incomplete", "first late", "last late", "one late"])
def test_a_doubtful_minute_and_its_neighbours_are_read_as_ticks(change: str) -> None:
    trades = [(n + 1, n * MINUTE // 4, n + 1) for n in range(80)]
    whole = {p.start_ns for p in pieces(children(trades, {7: change}), WHOLE) if isinstance(p, MadeBar)}
    assert 7 * MINUTE not in whole
    assert {3 * MINUTE, 12 * MINUTE} <= whole


def test_stored_rows_become_the_bars_that_they_were_and_what_cannot_be_added_up_is_left_out() -> None:
    trades = [(n + 1, n * MINUTE // 4, n + 1) for n in range(12)]
    bars = children(trades, {})
    unit = Decimal(10) ** -18
    rows = [
        {
            "ticker": bar.ticker, "period_seconds": 60, "start": bar.start_ns // 1000,
            **{name: getattr(bar, name) * unit for name in ("open", "high", "low", "close")},
            "volume": (bar.buy + bar.sell) * unit, "buy_volume": bar.buy * unit, "sell_volume": bar.sell * unit,
            "quote_volume": bar.quote * unit * unit, "trades": bar.trades, "first_trade_id": str(bar.first_number),
            "last_trade_id": str(bar.last_number), "source": "TICKS", "incomplete": False, "revision": 0,
            "made_at_ns": 0, "log_partition": 0, "log_offset": 0,
        }
        for bar in reversed(bars)
    ]  # fmt: skip
    rows[0]["quote_volume"] = None
    schema = pa.schema([f.with_nullable(True) for f in TICK_BARS_COLUMNS])
    at = schema.get_field_index("start")
    raw = pa.Table.from_pylist(rows, schema=schema.set(at, pa.field("start", pa.int64())))
    stored = raw.set_column(
        at, TICK_BARS_COLUMNS.field("start"), raw["start"].cast(TICK_BARS_COLUMNS.field("start").type)
    )
    assert children_of(stored) == bars[:-1]
