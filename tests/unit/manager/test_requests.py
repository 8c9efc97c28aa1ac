"""What a submitted request must look like, and what it means."""

from __future__ import annotations

import uuid

import pytest

from relay.errors import PeerError
from relay.protocol.v1 import request_pb2
from spark_jobs.manager.engine.requests import (
    RequestRules,
    check_admission,
    fetch_range,
    is_same_request,
    notification_topic,
    read_request,
)
from tests.unit.manager.world import BTC, MINUTE, NOW, START, minutes, request


def message(**fields: object) -> request_pb2.SubmitHistoricalRequest:
    values: dict[str, object] = {
        "request_id": str(uuid.uuid4()),
        "ticker": BTC,
        "start_time": START,
        "end_time": START + 10 * MINUTE,
        "period_seconds": 60,
        **fields,
    }
    return request_pb2.SubmitHistoricalRequest(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"request_id": "abc"}, "INVALID_REQUEST_ID"),
        ({"request_id": str(uuid.uuid4()).upper()}, "INVALID_REQUEST_ID"),
        ({"client_id": "abc"}, "INVALID_CLIENT_ID"),
        ({"client_id": ""}, "INVALID_CLIENT_ID"),
        ({"ticker": "btcusdt"}, "INVALID_TICKER"),
        ({"ticker": ""}, "INVALID_TICKER"),
        ({"period_seconds": 0}, "INVALID_PERIOD"),
        ({"period_seconds": 2**32 - 1}, "INVALID_PERIOD"),
        ({"start_time": START // 1_000_000}, "INVALID_TIME"),
        ({"end_time": 2**64 - 1}, "INVALID_TIME"),
        ({"end_time": START}, "INVALID_RANGE"),
        ({"end_time": START - MINUTE}, "INVALID_RANGE"),
        ({"start_time": START + 1, "end_time": START + 2}, "INVALID_RANGE"),
        ({"limit": 0}, "INVALID_LIMIT"),
    ],
)
def test_a_wrong_field_is_refused_by_its_code(fields: dict[str, object], code: str) -> None:
    with pytest.raises(PeerError) as refused:
        read_request(message(**fields), job_id="j", now_ns=NOW)
    assert refused.value.code == code


def test_the_old_ticker_form_is_normalised() -> None:
    assert read_request(message(ticker="BINANCE:BTC/USDT"), job_id="j", now_ns=NOW).ticker == BTC


def test_too_many_rows_are_refused_with_the_advice_to_split() -> None:
    asked = request(0, 9_000)
    with pytest.raises(PeerError, match="split it into 3 requests") as refused:
        check_admission(asked, exchanges={"BINANCE"}, rules=RequestRules(rows_max=4_000), now_ns=NOW)
    assert refused.value.code == "TOO_MANY_ROWS"
    check_admission(
        request(0, 9_000, limit=4_000), exchanges={"BINANCE"}, rules=RequestRules(rows_max=4_000), now_ns=NOW
    )


def test_rows_of_the_future_are_not_counted() -> None:
    check_admission(request(0, 10**6), exchanges={"BINANCE"}, rules=RequestRules(rows_max=10_000), now_ns=NOW)


def test_an_unknown_exchange_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PeerError, match="BINANCE, KRAKEN") as refused:
        check_admission(
            request(ticker="BTC/USDT.NOWHERE"), exchanges={"KRAKEN", "BINANCE"}, rules=RequestRules(), now_ns=NOW
        )
    assert refused.value.code == "UNKNOWN_EXCHANGE"


def test_weekly_bars_are_fetched_from_monday() -> None:
    """case 10: whole weeks begin on Monday."""
    week_ns = 604_800 * 10**9
    monday_ns = 1_700_438_400 * 10**9
    asked = read_request(
        message(period_seconds=604_800, start_time=monday_ns - 1, end_time=monday_ns + week_ns), job_id="j", now_ns=NOW
    )
    fetch = fetch_range(asked, now_ns=monday_ns + 2 * week_ns)
    assert (fetch.start_ns, fetch.end_ns) == (monday_ns, monday_ns + week_ns)


def test_the_open_bar_is_never_fetched() -> None:
    """case 17: judged by the clock."""
    assert fetch_range(request(0, 10), now_ns=START + 4 * MINUTE - 1) == minutes(0, 3)


def test_other_parameters_under_one_id_are_another_request() -> None:
    asked = request()
    assert is_same_request(asked, request(request_id=asked.request_id, client_id=asked.client_id))
    assert not is_same_request(asked, request(client_id=asked.client_id, limit=3))
    assert not is_same_request(asked, request())


def test_the_clients_topic_wins_over_the_requests_own() -> None:
    asked = request()
    assert notification_topic(asked) == f"RESPONSE:{asked.client_id}"
    own = request(client_id=None)
    assert notification_topic(own) == f"HISTORY_READY:{own.request_id}"
