"""Which requests follow from what is covered."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.errors import SettingsError
from relay.protocol.ranges import Range, subtract, union
from relay_client.engine.plan import HistoryQuery, merge_closest, plan_requests, split_long

MINUTE = 60 * 10**9
BASE = 1_700_000_040 * 10**9
LATER = BASE + 10**6 * MINUTE


def minutes(first: int, end: int) -> Range:
    return Range(BASE + first * MINUTE, BASE + end * MINUTE)


def query(span: Range, *, limit: int | None = None) -> HistoryQuery:
    return HistoryQuery("BTC/USDT.BINANCE", 60, span.start_ns, span.end_ns, limit)


def plan(q: HistoryQuery, covered=(), *, now_ns: int = LATER, requests_max: int = 8, rows_max: int = 1_000_000):
    return plan_requests(q, covered, now_ns=now_ns, requests_max=requests_max, rows_max=rows_max)


spans = st.tuples(st.integers(0, 200), st.integers(1, 40)).map(lambda t: minutes(t[0], t[0] + t[1]))


@settings(deadline=None)
@given(spans, st.lists(spans, max_size=12), st.integers(1, 5), st.integers(1, 50))
def test_the_requests_hold_every_gap_and_nothing_outside_the_question(asked, covered, requests_max, rows_max):
    planned = plan(query(asked), covered, requests_max=requests_max, rows_max=rows_max)
    missing = subtract(asked, covered)
    assert all(not subtract(gap, planned) for gap in missing)
    assert all(asked.start_ns <= part.start_ns < part.end_ns <= asked.end_ns for part in planned)
    assert all(part.end_ns - part.start_ns <= rows_max * MINUTE for part in planned)
    assert planned == sorted(planned)
    assert sum(p.end_ns - p.start_ns for p in planned) == sum(p.end_ns - p.start_ns for p in union(planned))
    assert bool(planned) == bool(missing)


@settings(deadline=None)
@given(st.lists(spans, min_size=1, max_size=12).map(union), st.integers(1, 12))
def test_merging_keeps_the_count_and_covers_all_gaps(gaps, count_max):
    merged = merge_closest(gaps, count_max=count_max)
    assert len(merged) == min(len(gaps), count_max)
    assert all(not subtract(gap, merged) for gap in gaps)
    assert (merged[0].start_ns, merged[-1].end_ns) == (gaps[0].start_ns, gaps[-1].end_ns)


def test_bars_that_are_open_or_in_the_future_are_no_reason_to_ask():
    q = query(minutes(0, 20))
    now = minutes(10, 11).start_ns + 30 * 10**9
    assert plan(q, [minutes(0, 10)], now_ns=now) == []
    assert plan(query(minutes(12, 20)), now_ns=now) == []
    assert plan(q, [minutes(0, 9)], now_ns=now) == [minutes(9, 20)]


def test_with_a_limit_one_request_asks_for_the_rest():
    assert plan(query(minutes(0, 50), limit=30), [minutes(0, 5), minutes(7, 9)]) == [minutes(5, 50)]


def test_a_long_gap_is_split_by_closed_bars_and_its_open_end_stays_with_the_last_part():
    assert split_long(minutes(0, 25), 60, LATER, rows_max=10) == [minutes(0, 10), minutes(10, 20), minutes(20, 25)]
    assert split_long(minutes(0, 900), 60, minutes(0, 8).end_ns, rows_max=10) == [minutes(0, 900)]


@pytest.mark.parametrize(
    ("asked", "limit", "code"),
    [
        (Range(BASE + 1, BASE + MINUTE), None, "INVALID_RANGE"),
        (minutes(0, 5), 0, "INVALID_LIMIT"),
        (minutes(0, 5), 1_000_001, "INVALID_LIMIT"),
    ],
)
def test_a_question_that_no_bar_can_answer_is_refused(asked, limit, code):
    with pytest.raises(SettingsError) as raised:
        query(asked, limit=limit).check(rows_max=1_000_000)
    assert raised.value.code == code


def test_an_unaligned_start_is_rounded_up():
    assert query(Range(BASE + 1, BASE + 5 * MINUTE)).wanted == Range(BASE + MINUTE, BASE + 5 * MINUTE)
