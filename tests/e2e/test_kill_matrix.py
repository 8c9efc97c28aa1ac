"""SIGKILL of every part at every step of a request's life: it ends once, no row lost, none doubled.

Steps::

    fetching   the ingestor waits for the exchange
    logged     all batches are in the log, the history job is held
    hinted     the history job commits while the victim dies, so that its hint goes nowhere
"""

from __future__ import annotations

import itertools
from decimal import Decimal

import pytest

from relay.protocol.ranges import Range
from relay.protocol.times import parse_iso_ns
from relay.protocol.v1 import request_pb2
from tests.support.platform import MINUTE_NS, Platform
from tests.support.processes import wait_until

pytestmark = pytest.mark.e2e

PARTS = ("gateway", "manager", "ingestor", "kafka", "history")
STEPS = ("fetching", "logged", "hinted")
IN_CI = {
    ("gateway", "logged"),
    ("manager", "hinted"),
    ("ingestor", "fetching"),
    ("kafka", "fetching"),
    ("history", "logged"),
}
TICKER = "ETH/USDT.BINANCE"
ROWS = 2_500
DAYS = itertools.count()


def next_range() -> Range:
    """A span that no other test has asked for."""
    start_ns = parse_iso_ns("2024-01-01") + next(DAYS) * 10 * 1440 * MINUTE_NS
    return Range(start_ns, start_ns + ROWS * MINUTE_NS)


def matrix() -> list:
    return [
        pytest.param(part, step, marks=() if (part, step) in IN_CI else pytest.mark.soak, id=f"{part}-{step}")
        for part in PARTS
        for step in STEPS
    ]


def as_served(platform: Platform, within: Range) -> list[tuple]:
    """The exchange's own rows of a range, asked directly."""
    rows: list[tuple] = []
    start_ms = within.start_ns // 10**6
    while start_ms < within.end_ns // 10**6:
        path = f"/binance/api/v3/klines?symbol=ETHUSDT&interval=1m&limit=1000&startTime={start_ms}"
        page = platform.simulation(path + f"&endTime={within.end_ns // 10**6 - 1}")
        rows += [(r[0] * 10**6, *map(Decimal, r[1:6]), r[8]) for r in page]
        start_ms = page[-1][0] + 60_000
    return rows


def as_stored(platform: Platform, within: Range) -> list[tuple]:
    table = platform.lake().read_bars(TICKER, 60, within=within)
    names = ("open", "high", "low", "close", "volume", "trades")
    starts = table["start"].cast("int64").to_pylist()
    return list(zip([s * 1000 for s in starts], *(table[n].to_pylist() for n in names), strict=True))


@pytest.mark.parametrize(("part", "step"), matrix())
@pytest.mark.timeout(600)
def test_a_request_ends_once_whatever_dies(platform: Platform, part: str, step: str):
    platform.wait_ready()
    within = next_range()
    if step == "fetching":
        fault = {"kind": "slow", "exchange": "binance", "path": "*klines", "count": 3, "delay_ms": 1_500}
        platform.simulation("/control/faults", fault)
        platform.simulation("/control/requests", method="DELETE")
        request_id = platform.submit(TICKER, within)
        wait_until(lambda: "klines" in str(platform.simulation("/control/requests")), what="the exchange to be asked")
        platform.kill(part)
    elif step == "logged":
        with platform.stopped("history"):
            before = completed(platform)
            request_id = platform.submit(TICKER, within)
            wait_until(lambda: completed(platform) > before, what="the batches to be in the log")
            platform.kill(part)
    else:
        with platform.stopped("history"):
            before = completed(platform)
            request_id = platform.submit(TICKER, within)
            wait_until(lambda: completed(platform) > before, what="the batches to be in the log")
            if part != "history":
                platform.kill(part)
        if part == "history":
            wait_until(lambda: platform.lake().coverage(TICKER, 60, within=within), what="a first commit")
            platform.kill(part)
    outcome = platform.outcome(request_id)
    assert outcome.status == request_pb2.HistoryReadyNotification.OK, outcome
    assert outcome.row_count == ROWS
    assert list(outcome.missing) == []
    assert as_stored(platform, within) == as_served(platform, within)
    again = platform.outcome(request_id)
    assert (again.status, again.snapshot_id, again.completed_at) == (
        outcome.status,
        outcome.snapshot_id,
        outcome.completed_at,
    )
    assert platform.submit(TICKER, within, request_id=request_id) == request_id
    platform.simulation("/control/faults", method="DELETE")
    platform.wait_ready()


def completed(platform: Platform) -> int:
    return platform.counters("manager").get("manager.work.received.WorkComplete", 0)
