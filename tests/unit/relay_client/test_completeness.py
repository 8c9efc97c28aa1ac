"""The completeness report: gaps folded, ids expected against stored, time covered."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from relay.protocol.ranges import Range
from relay_client.archive import runs_of
from relay_client.engine.completeness import KnownGap, MissingIds, fold_gaps, measure, past_of

SPAN = Range(0, 1_000)


def said(state: str, first: int | None, last: int | None, from_ns: int = 0, to_ns: int = 0) -> KnownGap:
    return KnownGap(state, "SEQUENCE", first, last, from_ns, to_ns)


def spans(*words: KnownGap) -> list[tuple[str, int | None, int | None]]:
    return [(gap.state, gap.first, gap.last) for gap in fold_gaps(words)]


def test_a_filled_gap_closes_what_lies_inside_it_whoever_opened_it() -> None:
    assert spans(said("OPEN", 5, 9), said("FILLED", 5, 9)) == []
    assert spans(said("OPEN", 5, 9), said("OPEN", 6, 7), said("FILLED", 4, 9)) == []
    assert spans(said("OPEN", 5, 9), said("FILLED", 6, 9)) == [("OPEN", 5, 9)]


def test_a_gap_without_an_end_is_closed_by_the_first_that_begins_at_or_before_it() -> None:
    assert spans(said("OPEN", 5, None), said("FILLED", 5, 4)) == []
    assert spans(said("OPEN", 5, None), said("OPEN", 5, 8), said("FILLED", 5, 4)) == [("OPEN", 5, 8)]
    assert spans(said("OPEN", 5, None), said("FILLED", 6, 9)) == [("OPEN", 5, None)]


def test_an_interruption_is_not_closed_by_a_hole_before_it_and_replaced_by_the_next() -> None:
    interrupted = [said("OPEN", 4, 5, 10, 20), said("OPEN", 7, None, 30)]
    assert spans(*interrupted, said("FILLED", 4, 5, 10, 20)) == [("OPEN", 7, None)]
    assert spans(*interrupted, said("UNFILLABLE", 4, 4, 10, 20), said("FILLED", 4, 5, 10, 20)) == [
        ("UNFILLABLE", 4, 4),
        ("OPEN", 7, None),
    ]
    again = [*interrupted, said("OPEN", 4, None)]
    assert [(gap.first, gap.last, gap.from_ns) for gap in fold_gaps(again)] == [(4, None, 10)]
    assert spans(*again, said("FILLED", 4, 5)) == []
    assert spans(*interrupted, said("OPEN", None, 99), said("UNFILLABLE", None, 99)) == [
        ("UNFILLABLE", None, 99),
    ]


def test_what_will_never_come_stays_and_the_parts_that_came_do_not() -> None:
    words = [said("OPEN", 5, 9), said("UNFILLABLE", 7, 7), said("FILLED", 5, 9)]
    assert spans(*words) == [("UNFILLABLE", 7, 7)]
    assert spans(said("OPEN", None, 41), said("UNFILLABLE", None, 41)) == [("UNFILLABLE", None, 41)]


def test_a_whole_span_is_complete() -> None:
    report = measure("X", SPAN, [(3, 5)], [])
    assert report.is_complete
    assert (report.expected, report.stored, report.covered_ns) == (3, 3, 1_000)
    assert report.covered_parts_per_million == 1_000_000


def test_missing_ids_are_told_with_the_cause_of_their_gap_or_as_unexplained() -> None:
    gaps = fold_gaps([KnownGap("UNFILLABLE", "DISCONNECT", 6, 8, 100, 300)])
    report = measure("X", SPAN, [(3, 3), (5, 5), (9, 9), (12, 12)], gaps)
    assert report.missing == (
        MissingIds(4, 4, "UNEXPLAINED"),
        MissingIds(6, 8, "DISCONNECT"),
        MissingIds(10, 11, "UNEXPLAINED"),
    )
    assert (report.missing_count, report.covered_ns) == (6, 800)
    assert not report.is_complete


def test_a_gap_that_is_still_open_takes_the_rest_of_the_time() -> None:
    report = measure("X", SPAN, [(3, 4)], fold_gaps([said("OPEN", 5, None, from_ns=600)]))
    assert (report.covered_ns, report.missing_count, report.is_complete) == (600, 0, False)


def test_the_time_before_the_first_recording_is_no_loss_but_what_is_missing_after_it_is() -> None:
    began = KnownGap("UNFILLABLE", "DISCONNECT", None, 41, 0, 600)
    first_day = measure("X", SPAN, [(42, 44)], [began])
    assert (first_day.is_complete, first_day.is_lossless, first_day.covered_ns) == (False, True, 400)
    assert not measure("X", SPAN, [(42, 44), (46, 50)], [began]).is_lossless
    assert not measure("X", SPAN, [(42, 44)], [began, said("OPEN", 45, None, from_ns=700)]).is_lossless
    assert not measure("X", SPAN, [], [began]).is_lossless


def test_time_that_is_still_to_come_is_not_measured() -> None:
    assert past_of(SPAN, 700) == Range(0, 700)
    assert past_of(SPAN, 1_500) == SPAN
    assert past_of(SPAN, -5) == Range(0, 0)
    report = measure("X", past_of(SPAN, 700), [(3, 4)], fold_gaps([said("OPEN", 5, None, from_ns=525)]))
    assert (report.covered_ns, report.covered_parts_per_million) == (525, 750_000)
    assert measure("X", past_of(SPAN, -5), [], []).covered_parts_per_million == 0


def test_a_gap_beside_the_span_does_not_count() -> None:
    gaps = fold_gaps([said("UNFILLABLE", 1, 2, 2_000, 3_000), said("UNFILLABLE", None, 0, -500, 0 + -1)])
    assert measure("X", SPAN, [(3, 3)], gaps).is_complete


def test_time_of_which_nothing_is_stored_or_known_is_not_covered() -> None:
    report = measure("X", SPAN, [], [])
    assert (report.covered_ns, report.covered_parts_per_million, report.is_complete) == (0, 0, False)


def test_time_before_the_first_recording_ever_is_not_covered_and_a_quiet_span_after_it_is() -> None:
    began = [KnownGap("UNFILLABLE", "DISCONNECT", None, 41, 1_200, 1_600)]
    assert measure("X", SPAN, [], began).covered_ns == 0
    assert measure("X", Range(1_000, 2_000), [(42, 44)], began).covered_ns == 400
    assert measure("X", Range(2_000, 3_000), [], began).covered_ns == 1_000


@given(st.sets(st.integers(0, 60), min_size=1), st.sets(st.integers(0, 60)))
def test_stored_and_missing_ids_add_up_to_what_is_expected(stored: set[int], gone: set[int]) -> None:
    gaps = fold_gaps([said("UNFILLABLE", n, n, 10, 20) for n in sorted(gone - stored)])
    report = measure("X", SPAN, runs_of(pa.chunked_array([list(stored)], pa.int64())), gaps)
    missing = [n for part in report.missing for n in range(part.first, part.last + 1)]
    assert sorted([*missing, *stored]) == list(range(min(stored), max(stored) + 1))
    explained = {n for p in report.missing if p.cause != "UNEXPLAINED" for n in range(p.first, p.last + 1)}
    assert explained == {n for n in missing if n in gone}
