"""Which bar of one key stays, and what is said about those that yield: a total order, whatever the batching."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.ranges import Range
from relay.tables.filters import bars_of_filter, union
from relay.tables.merge import contradictions, latest_bars, series_spans
from relay.tables.schema import OHLC_COLUMNS, OHLC_KEY

BTC = "BTC/USDT.BINANCE"


def bar(close: str, *, minute: int = 0, offset: int = 0, ticker: str = BTC, **fields: object) -> dict[str, object]:
    number = Decimal(close)
    return {
        "ticker": ticker,
        "period_seconds": 60,
        "start": minute * 60_000_000,
        **dict.fromkeys(("open", "high", "low", "close", "volume"), number),
        "source": "EXCHANGE",
        "is_final": True,
        "incomplete": False,
        "revision": 0,
        "fetched_at_ns": 1,
        "log_partition": 0,
        "log_offset": offset,
        "is_fetched": True,
        **fields,
    }


def made(close: str, **fields: object) -> dict[str, object]:
    return bar(close, **{"source": "TICKS", "is_fetched": False, **fields})


def table(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=OHLC_COLUMNS)


ANY_BAR = st.builds(
    lambda is_fetched, **fields: bar("1", is_fetched=is_fetched, **fields),
    st.sampled_from([True, False, None]),
    minute=st.integers(0, 2),
    revision=st.integers(0, 2),
    incomplete=st.booleans(),
    fetched_at_ns=st.integers(0, 2),
    log_offset=st.integers(0, 3),
)


@settings(deadline=None)
@given(st.lists(ANY_BAR, min_size=1, max_size=12), st.data())
def test_any_batching_in_any_order_leaves_the_same_bars(rows, data):
    for place, row in enumerate(rows):
        row["log_partition"] = place  # no two records have one place
    whole = latest_bars(table(*rows))
    shuffled = data.draw(st.permutations(rows))
    stays = OHLC_COLUMNS.empty_table()
    while shuffled:
        size = data.draw(st.integers(1, len(shuffled)))
        batch, shuffled = shuffled[:size], shuffled[size:]
        stays = latest_bars(pa.concat_tables([stays, latest_bars(table(*batch))]))
    order = [(name, "ascending") for name in OHLC_KEY]
    assert stays.sort_by(order) == whole.sort_by(order)


def test_the_rule_says_who_stays():
    ascending = [
        made("1", revision=0, incomplete=True, offset=9),
        made("2", revision=0, offset=1),
        made("3", revision=0, offset=2),
        made("4", revision=1, incomplete=True, offset=3),
        made("5", revision=1, offset=0),
        made("6", revision=2, offset=0, fetched_at_ns=0),
        bar("7", revision=0, incomplete=True, fetched_at_ns=0),
        bar("8", source="ROLLUP", fetched_at_ns=1, offset=4),
        bar("9", is_fetched=None, fetched_at_ns=2),
    ]
    for place, winner in enumerate(ascending):
        for loser in ascending[:place]:
            for rows in permutations([winner, loser]):
                assert latest_bars(table(*rows))["close"].to_pylist() == [winner["close"]]


def test_what_yields_with_other_numbers_is_told_with_them():
    existing = table(
        made("1", minute=0), made("2", minute=1), bar("3", minute=2), bar("4", minute=3), made("9", minute=8)
    )
    incoming = table(
        bar("1", minute=0),
        bar("5", minute=1),
        made("3", minute=2),
        made("6", minute=3, revision=0),
        made("7", minute=3, revision=1, trades=3),
        made("8", minute=8, revision=1),
    )
    found = contradictions(existing, incoming).sort_by("start").to_pylist()
    told = [(row["start"].minute, row["is_replaced"], row["made_close"], row["fetched_close"]) for row in found]
    assert told == [(1, True, 2, 5), (3, False, 7, 4)]
    assert (found[1]["made_trades"], found[1]["fetched_trades"]) == (3, None)
    assert len(contradictions(OHLC_COLUMNS.empty_table(), table(bar("1")))) == 0
    assert len(contradictions(table(made("1")), table(made("2", revision=1)))) == 0


def test_tickers_whose_bars_lie_in_one_range_share_a_filter_and_many_filters_are_no_deep_tree():
    names = [f"T{number}/USDT.BINANCE" for number in range(300)]
    rows = latest_bars(table(*(made("1", ticker=name, minute=5) for name in names)))
    start_ns = 5 * 60 * 10**9
    assert series_spans(rows) == [(sorted(names), 60, Range(start_ns, start_ns + 1))]
    apart = latest_bars(table(*(made("1", ticker=name, minute=place) for place, name in enumerate(names))))
    assert _depth(union(bars_of_filter(*span) for span in series_spans(apart))) < 20


def _depth(expression: object) -> int:
    sides = [getattr(expression, name) for name in ("left", "right") if hasattr(expression, name)]
    return 1 + max(map(_depth, sides), default=0)
