"""The book of faults and the rate limits, without a socket."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingestors.simulation.answers import Call, bent
from ingestors.simulation.binance import BinanceRest
from ingestors.simulation.faults import Fault, FaultBook, FaultKind, parse_fault
from ingestors.simulation.kraken import KrakenRest
from ingestors.simulation.limits import Limits, TokenBucket
from ingestors.simulation.market import modelled_markets
from ingestors.simulation.records import Candle
from relay.errors import PeerError
from tests.unit.simulation.calls import NOW_NS, value_of

SECOND_NS = 10**9
KLINES = "/api/v3/klines"
ROWS = [Candle(n * 60 * SECOND_NS, 1, 1, 1, 1, 1) for n in range(30)]


def call(**changes: object) -> Call:
    return replace(Call(path=KLINES, now_ns=NOW_NS, wall_ns=NOW_NS), **changes)  # type: ignore[arg-type]


def kinds(book: FaultBook, count: int) -> list[tuple[str, ...]]:
    return [tuple(fault.kind.value for fault in book.take("binance", KLINES)) for _ in range(count)]


def test_scripted_faults_happen_in_order_and_then_never_again() -> None:
    book = FaultBook(
        [Fault(FaultKind.THROTTLED, count=2), Fault(FaultKind.HTML, count=1), Fault(FaultKind.EMPTY, count=1)]
    )
    assert kinds(book, 5) == [("throttled",), ("throttled",), ("html",), ("empty",), ()]
    assert [(state.remaining, state.happened) for state in book.states()] == [(0, 2), (0, 1), (0, 1)]


def test_bending_faults_combine_and_the_same_kind_waits() -> None:
    book = FaultBook([Fault(FaultKind.SLOW, count=1), Fault(FaultKind.EMPTY, count=1), Fault(FaultKind.EMPTY, count=1)])
    assert kinds(book, 3) == [("slow", "empty"), ("empty",), ()]


def test_a_fault_keeps_to_its_exchange_and_path() -> None:
    book = FaultBook([Fault(FaultKind.HTML, exchange="binance", path="/api/v3/k*")])
    assert book.take("kraken", KLINES) == ()
    assert book.take("binance", "/api/v3/time") == ()
    assert len(book.take("binance", KLINES)) == 1


def test_a_chance_is_drawn_from_the_seed() -> None:
    """Case 34: one request in five answers an empty page."""
    fault = Fault(FaultKind.EMPTY, percent=20)
    drawn = kinds(FaultBook([fault], seed=3), 1_000)
    assert drawn == kinds(FaultBook([fault], seed=3), 1_000)
    assert drawn != kinds(FaultBook([fault], seed=4), 1_000)
    assert 120 < drawn.count(("empty",)) < 280


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "nothing"},
        {"kind": "slow", "unknown": 1},
        {"kind": "slow", "percent": 0},
        {"kind": "slow", "count": 0},
        {},
        "slow",
        7,
    ],
)
def test_a_fault_that_is_none_is_refused_with_what_was_expected(value: object) -> None:
    with pytest.raises(PeerError, match="expected"):
        parse_fault(value)


def test_rows_are_bent_as_asked() -> None:
    def of(fault: Fault) -> list[Candle]:
        return bent(list(ROWS), call(faults=(fault,)))

    assert of(Fault(FaultKind.EMPTY)) == []
    assert of(Fault(FaultKind.HOLE)) == ROWS[:10] + ROWS[20:]
    assert of(Fault(FaultKind.HOLE, start_ns=0, end_ns=120 * SECOND_NS)) == ROWS[2:]
    assert of(Fault(FaultKind.DUPLICATES)) == sorted([*ROWS, ROWS[0], ROWS[10], ROWS[20]], key=lambda row: row.start_ns)
    assert [row.start_ns % (60 * SECOND_NS) for row in of(Fault(FaultKind.OFF_GRID))] == [28_115_000_000] * 30
    assert bent(list(ROWS), call()) == ROWS


def test_weight_is_counted_refused_and_at_last_banned() -> None:
    """Case 49: 429 until the minute is over; who goes on while refused gets 418."""
    limits = Limits(binance_weight_per_minute=10, binance_refusals_max=2, binance_ban_seconds=90)
    shape = BinanceRest(modelled_markets("binance", seed=1), limits=limits)
    wall_ns = NOW_NS // (60 * SECOND_NS) * 60 * SECOND_NS + 20 * SECOND_NS
    now = call(wall_ns=wall_ns)
    assert [shape.admit(now) for _ in range(5)] == [None] * 5
    assert shape.headers()["X-MBX-USED-WEIGHT-1M"] == "10"
    refusal = shape.admit(now)
    assert refusal is not None
    assert (refusal.status, refusal.headers) == (429, {"Retry-After": "40"})
    assert value_of(refusal)["code"] == -1003
    assert shape.admit(call(wall_ns=wall_ns + 40 * SECOND_NS)) is None
    later = [shape.admit(call(wall_ns=wall_ns + 41 * SECOND_NS)) for _ in range(8)]
    assert [answer.status if answer else 200 for answer in later] == [200] * 4 + [429, 429, 418, 418]
    assert later[-1] is not None
    assert later[-1].headers == {"Retry-After": "90"}
    assert "banned until" in value_of(later[-1])["msg"]
    still = shape.admit(call(wall_ns=wall_ns + 130 * SECOND_NS))
    assert still is not None
    assert (still.status, still.headers) == (418, {"Retry-After": "1"})
    assert shape.admit(call(wall_ns=wall_ns + 131 * SECOND_NS)) is None


def test_kraken_counts_each_pair_and_refuses_with_http_200() -> None:
    shape = KrakenRest(modelled_markets("kraken", seed=1), limits=Limits(kraken_burst=2))
    path = "/0/public/OHLC"

    def admit(pair: str, *, seconds: int = 0) -> object:
        answer = shape.admit(call(path=path, parameters={"pair": pair}, wall_ns=NOW_NS + seconds * SECOND_NS))
        return None if answer is None else (answer.status, value_of(answer), answer.headers)

    refused = (200, {"error": ["EAPI:Rate limit exceeded"]}, {})
    assert [admit("XBTUSD"), admit("XXBTZUSD"), admit("XBT/USD")] == [None, None, refused]
    assert admit("XDGUSD") is None
    assert [admit("XBTUSD", seconds=1), admit("XBTUSD", seconds=1)] == [None, refused]


def test_a_token_bucket_refills_by_time_up_to_its_burst() -> None:
    bucket = TokenBucket(per_second=10, burst=3)
    assert [bucket.take(wall_ns=0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(wall_ns=SECOND_NS // 10) for _ in range(2)] == [True, False]
    assert [bucket.take(wall_ns=100 * SECOND_NS) for _ in range(4)] == [True, True, True, False]
