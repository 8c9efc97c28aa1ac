from __future__ import annotations

import pytest

from ingestors.engine.outcomes import HttpAnswer, Outcome, OutcomeKind, classify, parse_retry_after
from ingestors.engine.retry import GiveUp, Park, RetryPolicy, TryAgain
from ingestors.exchanges import binance, coinbase, coinbase_advanced, kraken
from ingestors.exchanges.http import Dialect
from ingestors.exchanges.numbers import decode_json
from relay.protocol.periods import NANOSECONDS
from tests.support.ingestors import no_jitter

WALL_NS = 1_750_000_000 * NANOSECONDS
HTML = "<html><body>Too much</body></html>"


def _classify(dialect: Dialect, status: int, body: str, **headers: str) -> Outcome:
    try:
        decoded = decode_json(body)
    except ValueError:
        decoded = None
    answer = HttpAnswer(status, headers.get("retry_after"), headers.get("date"), decoded, body)
    return classify(answer, wall_ns=WALL_NS, body_kind=dialect.body_kind, ban_until_ns=dialect.ban_until_ns(answer))


@pytest.mark.parametrize("dialect", [binance.DIALECT, kraken.DIALECT, coinbase.DIALECT, coinbase_advanced.DIALECT])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, OutcomeKind.THROTTLED),
        (403, OutcomeKind.THROTTLED),
        (418, OutcomeKind.BANNED),
        (500, OutcomeKind.TRANSIENT),
        (502, OutcomeKind.TRANSIENT),
        (520, OutcomeKind.TRANSIENT),
        (503, OutcomeKind.MAINTENANCE),
        (408, OutcomeKind.TRANSIENT),
        (404, OutcomeKind.BAD_SYMBOL),
        (451, OutcomeKind.UNKNOWN),
    ],
)
def test_the_status_decides_when_the_body_is_html_case_55(dialect: Dialect, status: int, kind: OutcomeKind) -> None:
    """Case 55: status first, body optional."""
    assert _classify(dialect, status, HTML).kind is kind


@pytest.mark.parametrize(
    ("dialect", "status", "body", "kind"),
    [
        (binance.DIALECT, 400, '{"code":-1121,"msg":"Invalid symbol."}', OutcomeKind.BAD_SYMBOL),
        (binance.DIALECT, 400, '{"code":-1120,"msg":"Invalid interval."}', OutcomeKind.BAD_INTERVAL),
        (binance.DIALECT, 400, '{"code":-1003,"msg":"Too many requests"}', OutcomeKind.THROTTLED),
        (binance.DIALECT, 500, '{"code":-1016,"msg":"shutting down"}', OutcomeKind.MAINTENANCE),
        (binance.DIALECT, 400, '{"code":-1007,"msg":"Timeout"}', OutcomeKind.TRANSIENT),
        (kraken.DIALECT, 200, '{"error":["EAPI:Rate limit exceeded"]}', OutcomeKind.THROTTLED),
        (kraken.DIALECT, 200, '{"error":["EGeneral:Temporary lockout"]}', OutcomeKind.THROTTLED),
        (kraken.DIALECT, 200, '{"error":["EService:Unavailable"]}', OutcomeKind.MAINTENANCE),
        (kraken.DIALECT, 200, '{"error":["EService:Busy"]}', OutcomeKind.TRANSIENT),
        (kraken.DIALECT, 200, '{"error":["EQuery:Unknown asset pair"]}', OutcomeKind.BAD_SYMBOL),
        (kraken.DIALECT, 200, '{"error":["EGeneral:Invalid arguments:interval"]}', OutcomeKind.BAD_INTERVAL),
        (kraken.DIALECT, 200, '{"error":["EOther:new"]}', OutcomeKind.UNKNOWN),
        (kraken.DIALECT, 200, '{"error":["WAPI:old"],"result":{}}', OutcomeKind.OK),
        (kraken.DIALECT, 200, '{"error":[],"result":{}}', OutcomeKind.OK),
        (coinbase.DIALECT, 404, '{"message":"NotFound"}', OutcomeKind.BAD_SYMBOL),
        (coinbase.DIALECT, 400, '{"message":"Unsupported granularity"}', OutcomeKind.BAD_INTERVAL),
        (coinbase_advanced.DIALECT, 400, '{"error":"INVALID_ARGUMENT","message":"product"}', OutcomeKind.BAD_SYMBOL),
    ],
)
def test_an_exchange_says_more_in_its_own_words(dialect: Dialect, status: int, body: str, kind: OutcomeKind) -> None:
    assert _classify(dialect, status, body).kind is kind


def test_retry_after_is_read_as_seconds_as_a_date_and_as_missing() -> None:
    date, later = "Tue, 10 Jun 2025 10:00:00 GMT", "Tue, 10 Jun 2025 10:00:35 GMT"
    assert parse_retry_after("35", date=None, wall_ns=0) == 35 * NANOSECONDS
    assert parse_retry_after(later, date=date, wall_ns=0) == 35 * NANOSECONDS
    assert parse_retry_after(date, date=later, wall_ns=0) == 0
    assert parse_retry_after(None, date=date, wall_ns=0) is None
    assert parse_retry_after("soon", date=date, wall_ns=0) is None


def test_a_ban_lasts_as_long_as_the_header_or_the_text_says() -> None:
    until_ms = (WALL_NS + 300 * NANOSECONDS) // 1_000_000
    text = f'{{"code":-1003,"msg":"Way too much; IP banned until {until_ms}."}}'
    assert _classify(binance.DIALECT, 418, "", retry_after="720").wait_ns == 720 * NANOSECONDS
    told = _classify(binance.DIALECT, 429, text)
    assert (told.kind, told.wait_ns) == (OutcomeKind.BANNED, 300 * NANOSECONDS)
    assert _classify(binance.DIALECT, 418, HTML).wait_ns == 120 * NANOSECONDS


def test_throttling_never_ends_a_job_and_a_ban_parks_it_case_52() -> None:
    """Case 52: 418 with Retry-After 720 is kept whole, whatever other caps are."""
    policy = RetryPolicy(jitter=no_jitter)
    for _ in range(1_000):
        assert policy.judge(Outcome(OutcomeKind.THROTTLED)) == TryAgain(0)
    assert policy.judge(Outcome(OutcomeKind.BANNED, wait_ns=720 * NANOSECONDS)) == Park(720 * NANOSECONDS)


def test_passing_trouble_is_tried_again_with_growing_waits_and_then_given_up() -> None:
    policy = RetryPolicy(jitter=no_jitter)
    decisions = [policy.judge(Outcome(OutcomeKind.TRANSIENT, "x")) for _ in range(5)]
    waits = [decision.wait_ns for decision in decisions if isinstance(decision, TryAgain)]
    assert len(waits) == 4
    assert waits == sorted(waits)
    assert decisions[-1] == GiveUp("EXCHANGE_ERROR", "x")
    assert policy.judge(Outcome(OutcomeKind.BAD_SYMBOL, "y")) == GiveUp("UNKNOWN_SYMBOL", "y")
