"""History through a real gateway and real tables: what is asked for, what is not, and what comes back."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from relay.errors import PeerError, RetryableError
from relay.protocol.periods import align_down_ns
from relay.protocol.ranges import Range
from relay.protocol.v1 import request_pb2
from relay_client import RequestStatus
from tests.support.client_world import BASE_NS, BTC, MINUTE_NS, minutes

_Ready = request_pb2.HistoryReadyNotification


def bounds(span: Range) -> dict[str, object]:
    return {"start": span.start_ns, "end": span.end_ns, "unit": "ns"}


def test_what_is_missing_is_fetched_once_and_read(world):
    with world.client() as client:
        bars = client.history(BTC, **bounds(minutes(0, 10)))
    assert [bar.trades for bar in bars] == list(range(10))
    assert (bars.status, bars.missing, bars.warning) == (RequestStatus.OK, (), "")
    assert bars.coverage == (minutes(0, 10),)
    assert [o.snapshot_id for o in bars.requests] == [bars.snapshot_id]
    assert next(iter(bars)).close == Decimal("42.13")


def test_no_message_is_sent_when_everything_is_covered(world):
    world.manager.store(minutes(0, 10))
    with world.client() as client:
        bars = client.history(BTC, **bounds(minutes(2, 8)))
    assert [bar.trades for bar in bars] == list(range(2, 8))
    assert (world.manager.submits, bars.requests) == ([], ())


def test_a_covered_minute_without_a_bar_is_known_to_be_empty(world):
    world.manager.store(minutes(0, 10), with_bars=False)
    with world.client() as client:
        bars = client.history(BTC, **bounds(minutes(0, 10)))
    assert (len(bars), bars.status, bars.missing, world.manager.submits) == (0, RequestStatus.NOT_FOUND, (), [])


def test_several_gaps_are_several_requests_with_ids_of_their_own(world):
    for first in (2, 6, 10):
        world.manager.store(minutes(first, first + 2))
    with world.client() as client:
        bars = client.history(BTC, **bounds(minutes(0, 14)))
    assert [bar.trades for bar in bars] == list(range(14))
    asked = [Range(m.start_time, m.end_time) for m in world.manager.submits]
    assert asked == [minutes(0, 2), minutes(4, 6), minutes(8, 10), minutes(12, 14)]
    assert len({m.request_id for m in world.manager.submits}) == 4


def test_gaps_beyond_the_count_are_merged_where_least_is_between_them(world):
    for first, end in ((2, 3), (5, 8), (10, 11)):
        world.manager.store(minutes(first, end))
    with world.client(requests_max=2) as client:
        assert len(client.history(BTC, **bounds(minutes(0, 14)))) == 14
    assert [Range(m.start_time, m.end_time) for m in world.manager.submits] == [minutes(0, 5), minutes(8, 14)]


def test_an_end_in_the_future_is_told_as_missing_and_is_no_failure(world):
    now = align_down_ns(time.time_ns(), 60)
    asked = Range(now - 5 * MINUTE_NS, now + 60 * MINUTE_NS)
    with world.client() as client:
        first = client.history(BTC, **bounds(asked))
        assert first.status is RequestStatus.OK
        assert len(first) >= 5
        assert first.missing[-1].end_ns == asked.end_ns
        sent = len(world.manager.submits)
        again = client.history(BTC, start=asked.start_ns, end=first.missing[0].start_ns + 1, unit="ns")
        assert len(again) == len(first)
        # Only the open bar is missing now, unless a minute has just closed: then it is fetched.
        assert len(world.manager.submits) - sent == len(again.requests)


def test_a_limit_asks_for_the_rest_after_what_is_there_and_ends_the_range(world):
    world.manager.store(minutes(0, 4))
    with world.client() as client:
        bars = client.history(BTC, **bounds(minutes(0, 100)), limit=10)
        assert [bar.trades for bar in bars] == list(range(10))
        assert (bars.status, bars.missing) == (RequestStatus.OK, ())
        assert [(m.start_time, m.limit) for m in world.manager.submits] == [(minutes(4, 5).start_ns, 6)]
        assert len(client.history(BTC, **bounds(minutes(0, 100)), limit=10)) == 10
    assert len(world.manager.submits) == 1


def test_a_partial_end_is_a_result_with_what_is_missing_and_why(world):
    world.manager.script = lambda m: (_Ready.PARTIAL, "BANNED", [minutes(0, 4)])
    with world.client() as client:
        bars = client.history(BTC, **bounds(minutes(0, 10)))
    assert (len(bars), bars.status, bars.missing) == (4, RequestStatus.PARTIAL, (minutes(4, 10),))
    assert "because of BANNED" in bars.warning


def test_nothing_found_is_an_empty_result(world):
    world.manager.script = lambda m: (_Ready.NOT_FOUND, "UNKNOWN_SYMBOL", [])
    with world.client() as client:
        bars = client.history(BTC, **bounds(minutes(0, 10)))
    assert (len(bars), bars.status) == (0, RequestStatus.NOT_FOUND)
    assert "UNKNOWN_SYMBOL" in bars.warning


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (_Ready.ERROR, "UNSUPPORTED_PERIOD", PeerError),
        (_Ready.ERROR, "ATTEMPTS_EXHAUSTED", RetryableError),
        (_Ready.ERROR, "UNAVAILABLE", RetryableError),
        (_Ready.TIMEOUT, "DEADLINE", RetryableError),
    ],
)
def test_an_error_end_is_raised_with_its_code(world, status, code, kind):
    world.manager.script = lambda m: (status, code, [])
    with world.client() as client, pytest.raises(kind) as raised:
        client.history(BTC, **bounds(minutes(0, 10)))
    assert raised.value.code == code


def test_what_the_relay_refuses_is_raised_with_its_code(world):
    world.manager.store(minutes(0, 1))
    with world.client(rows_per_request_max=2_000_000) as client, pytest.raises(PeerError) as raised:
        client.history(BTC, start=BASE_NS, end=BASE_NS + 2 * MINUTE_NS, unit="ns", limit=1_500_000)
    assert raised.value.code == "INVALID_LIMIT"


def test_progress_is_told_until_all_requests_have_ended(world):
    seen = []
    with world.client() as client:
        client.history(BTC, **bounds(minutes(0, 10)), on_progress=seen.append)
    assert (seen[-1].requests_done, seen[-1].requests_total) == (1, 1)
    assert seen[-1].covered_ns == seen[-1].wanted_ns == 10 * MINUTE_NS
