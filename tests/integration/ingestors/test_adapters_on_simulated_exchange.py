"""The real adapters and the job runner against the simulated exchange, by base URL only."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from ingestors.engine.job_state import JobResult
from ingestors.simulation.faults import Fault, FaultKind, RetryAfter
from ingestors.simulation.grids import FixedGrid
from ingestors.simulation.records import Visible
from ingestors.simulation.replay import load_recording
from ingestors.simulation.server import SimulatedExchange
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range
from relay.protocol.scaled import from_scaled, plain_text
from relay.protocol.times import parse_iso_ns
from relay.protocol.v1 import market_pb2, work_pb2
from tests.support.ingestors import Bench, batches, bench, covered, history_request, markets, rows
from tests.support.simulated import APIS, GENEROUS

NOW_NS = parse_iso_ns("2024-03-05T12:00:30Z")


async def _fetch(
    name: str, request: work_pb2.DataRequest, *, api: str = "exchange", faults: Iterable[Fault] = ()
) -> tuple[JobResult, Bench, SimulatedExchange]:
    server = SimulatedExchange(clock=lambda: NOW_NS, limits=GENEROUS, faults=faults)
    async with server:
        used = bench(name, base_urls=server.base_urls, coinbase_api=api)
        return await used.run(request), used, server


def _expected(server: SimulatedExchange, name: str, symbol: str, span: Range, period_seconds: int = 60) -> list[tuple]:
    source = server.markets(name)[symbol]
    candles = source.candles(
        FixedGrid(period_seconds), start_ns=span.start_ns, end_ns=span.end_ns, visible=Visible(NOW_NS)
    )
    price, size = source.listing.price_decimals, source.listing.size_decimals
    return [
        (
            candle.start_ns,
            *(
                from_scaled(units, price)
                for units in (candle.open_units, candle.high_units, candle.low_units, candle.close_units)
            ),
            plain_text(from_scaled(candle.volume_units, size)),
        )
        for candle in candles
        if candle.trades
    ]


def _got(found: list[market_pb2.OHLCBatch]) -> list[tuple]:
    return [
        (
            row.timestamp,
            *(from_scaled(units, row.price_decimals) for units in (row.open, row.high, row.low, row.close)),
            row.volume,
        )
        for row in rows(found)
        if row.volume != "0"
    ]


@pytest.mark.parametrize(("name", "api", "symbol", "shape"), APIS)
def test_fetched_bars_equal_the_market_bar_for_bar(name: str, api: str, symbol: str, shape: str) -> None:
    span = Range(NOW_NS - 690 * 60 * NANOSECONDS, NOW_NS)
    result, used, server = asyncio.run(_fetch(name, history_request(f"{symbol}.{name}", span), api=api))
    found = batches(used.log)
    closed = Range(span.start_ns // (60 * NANOSECONDS) * 60 * NANOSECONDS + 60 * NANOSECONDS, NOW_NS - 30 * NANOSECONDS)
    assert result.success
    assert _got(found) == _expected(server, shape, symbol, closed)
    assert covered(found) == [closed]
    assert [batch.is_last for batch in found] == [False] * (len(found) - 1) + [True]


def test_kraken_beyond_its_720_rows_is_built_from_trades_case_27_case_41() -> None:
    """Cases 27 and 41: the cap is known, older bars come from trades and say so."""
    span = Range(parse_iso_ns("2024-01-10T00:00:00Z"), parse_iso_ns("2024-01-10T10:00:00Z"))
    request = history_request("BTC/USDT.KRAKEN", span)
    result, used, server = asyncio.run(_fetch("KRAKEN", request))
    found = batches(used.log)
    assert result.success
    assert _got(found) == _expected(server, "kraken", "BTC/USDT", span)
    assert {row.source for row in rows(found)} == {market_pb2.OHLC.TICKS}
    assert covered(found) == [span]


def test_a_range_across_the_720_rows_joins_trades_and_candles_without_a_seam() -> None:
    span = Range(NOW_NS - 800 * 60 * NANOSECONDS - 30 * NANOSECONDS, NOW_NS - 30 * NANOSECONDS)
    result, used, server = asyncio.run(_fetch("KRAKEN", history_request("BTC/USDT.KRAKEN", span)))
    found = batches(used.log)
    assert result.success
    assert _got(found) == _expected(server, "kraken", "BTC/USDT", span)
    assert {row.source for row in rows(found)} == {market_pb2.OHLC.TICKS, market_pb2.OHLC.EXCHANGE}


@pytest.mark.parametrize(
    ("name", "api", "symbol", "shape", "period"),
    [(*APIS[0], 600), (*APIS[2], 1_800), (*APIS[3], 14_400), (*APIS[1], 10_800)],
)
def test_an_unsupported_period_is_rolled_up_and_says_so(
    name: str, api: str, symbol: str, shape: str, period: int
) -> None:
    span = Range(parse_iso_ns("2024-03-04T00:00:00Z"), parse_iso_ns("2024-03-05T12:00:00Z"))
    request = history_request(f"{symbol}.{name}", span, period_seconds=period)
    result, used, server = asyncio.run(_fetch(name, request, api=api))
    assert result.success
    assert _got(batches(used.log)) == _expected(server, shape, symbol, span, period)
    assert {row.source for row in rows(batches(used.log))} == {market_pb2.OHLC.ROLLUP}


@pytest.mark.parametrize(("name", "api", "symbol", "shape"), APIS)
def test_a_range_that_begins_before_the_listing_is_partial_case_26(
    name: str, api: str, symbol: str, shape: str
) -> None:
    """Case 26: coverage starts with the listing."""

    async def scene() -> tuple[JobResult, Bench, SimulatedExchange]:
        server = SimulatedExchange(clock=lambda: NOW_NS, limits=GENEROUS)
        listed_ns = server.markets(shape)[symbol].listing.listed_ns
        span = Range(listed_ns - 3_600 * NANOSECONDS * 24 * 30, listed_ns + 7_200 * NANOSECONDS)
        async with server:
            used = bench(name, base_urls=server.base_urls, coinbase_api=api)
            return await used.run(history_request(f"{symbol}.{name}", span)), used, server

    result, used, server = asyncio.run(scene())
    found = batches(used.log)
    listed_ns = server.markets(shape)[symbol].listing.listed_ns
    assert (result.success, result.code) == (True, "BEFORE_LISTING")
    assert found[-1].status == market_pb2.OHLCBatch.PARTIAL
    assert rows(found)
    (proven,) = covered(found)
    assert listed_ns - 60 * NANOSECONDS < proven.start_ns <= rows(found)[0].timestamp


FAULTS = [
    Fault(FaultKind.THROTTLED, retry_after=RetryAfter.SECONDS, retry_after_seconds=35, count=2),
    Fault(FaultKind.THROTTLED, retry_after=RetryAfter.DATE, retry_after_seconds=35, count=2),
    Fault(FaultKind.THROTTLED, retry_after=RetryAfter.MISSING, count=2),
    Fault(FaultKind.HTML, status=429, count=1),
    Fault(FaultKind.HTML, status=403, count=1),
    Fault(FaultKind.HTML, status=502, count=2),
    Fault(FaultKind.ERROR, count=1),
    Fault(FaultKind.DISCONNECT, count=2),
    Fault(FaultKind.TRUNCATED, count=2),
    Fault(FaultKind.DUPLICATES),
]


@pytest.mark.parametrize(("name", "api", "symbol", "shape"), APIS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind}-{fault.retry_after}-{fault.status}")
def test_passing_faults_change_nothing_in_the_result_case_34_case_55(
    name: str, api: str, symbol: str, shape: str, fault: Fault
) -> None:
    """Cases 34 (spurious empty page), 51 (Retry-After) and 55 (HTML body with 429) over real HTTP."""
    span = Range(parse_iso_ns("2024-03-05T02:00:00Z"), parse_iso_ns("2024-03-05T08:00:00Z"))
    request = history_request(f"{symbol}.{name}", span)
    result, used, server = asyncio.run(_fetch(name, request, api=api, faults=[fault]))
    assert result.success, result
    assert _got(batches(used.log)) == _expected(server, shape, symbol, span)
    assert covered(batches(used.log)) == [span]


PAGES = [
    ("BINANCE", "exchange", "BTC/USDT", "binance", "*lines"),
    ("KRAKEN", "exchange", "BTC/USDT", "kraken", "*OHLC"),
    ("KRAKEN", "exchange", "XRP/USD", "kraken", "*Trades"),
    ("COINBASE", "exchange", "BTC/USD", "coinbase", "*candles"),
    ("COINBASE", "advanced", "BTC/USD", "coinbase-advanced", "*candles"),
]
"""Every path that history is read from; Kraken's trades serve what is older than its 720 candles."""
LIES = [
    *(Fault(kind, count=n) for kind in (FaultKind.EMPTY, FaultKind.HOLE) for n in (1, 2, 3)),
    Fault(FaultKind.IGNORE_START, count=1),
    Fault(FaultKind.EMPTY, percent=20),
    Fault(FaultKind.HOLE, percent=20),
    Fault(FaultKind.DUPLICATES),
    Fault(FaultKind.TRUNCATED, count=4),
]


@pytest.mark.parametrize(("name", "api", "symbol", "shape", "path"), PAGES, ids=lambda value: str(value).strip("*"))
@pytest.mark.parametrize("fault", LIES, ids=lambda fault: f"{fault.kind}-{fault.count}-{fault.percent}")
def test_no_lie_of_an_endpoint_loses_a_bar_or_spoils_one_case_25_case_34(
    name: str, api: str, symbol: str, shape: str, path: str, fault: Fault
) -> None:
    """Cases 25 and 34, the whole kind: each fault on each path, compared with the market itself."""
    end_ns = parse_iso_ns("2024-03-05T12:00:00Z" if "Trades" not in path else "2024-03-01T12:00:00Z")
    span = Range(end_ns - 690 * 60 * NANOSECONDS, end_ns)
    request = history_request(f"{symbol}.{name}", span)
    lie = replace(fault, path=path, exchange=shape)
    result, used, server = asyncio.run(_fetch(name, request, api=api, faults=[lie]))
    assert result.success, result
    assert _got(batches(used.log)) == _expected(server, shape, symbol, span)
    assert covered(batches(used.log)) == [span]


@pytest.mark.parametrize(("name", "api", "symbol", "shape", "path"), PAGES, ids=lambda value: str(value).strip("*"))
@pytest.mark.parametrize("kind", [FaultKind.EMPTY, FaultKind.IGNORE_START])
def test_a_lie_that_never_ends_is_not_stored_as_the_truth(
    name: str, api: str, symbol: str, shape: str, path: str, kind: FaultKind
) -> None:
    # A hole that stays, whatever window is asked for, is what an outage looks like: nobody can tell them apart.
    end_ns = parse_iso_ns("2024-03-05T11:00:00Z" if "Trades" not in path else "2024-03-01T12:00:00Z")
    span = Range(end_ns - 120 * 60 * NANOSECONDS, end_ns)
    request = history_request(f"{symbol}.{name}", span)
    lie = Fault(kind, path=path, exchange=shape)
    result, used, server = asyncio.run(_fetch(name, request, api=api, faults=[lie]))
    truth = _expected(server, shape, symbol, span)
    got = _got(batches(used.log))
    assert set(got) <= set(truth)
    proven = covered(batches(used.log))
    lost = [row for row in truth if row not in got and any(r.start_ns <= row[0] < r.end_ns for r in proven)]
    assert not lost, (result, len(truth))


def test_off_grid_rows_are_accepted_floored_and_flagged_case_16() -> None:
    """Case 16: no crash, no doubled bucket."""
    span = Range(parse_iso_ns("2024-03-05T02:00:00Z"), parse_iso_ns("2024-03-05T04:00:00Z"))
    request = history_request("BTC/USDT.BINANCE", span)
    faults = [Fault(FaultKind.OFF_GRID, path="*klines")]
    result, used, _ = asyncio.run(_fetch("BINANCE", request, faults=faults))
    starts = [row.timestamp for row in rows(batches(used.log))]
    assert result.success
    assert len(starts) == len(set(starts)) == 120
    assert all(start % (60 * NANOSECONDS) == 0 for start in starts)
    assert all(row.incomplete for row in rows(batches(used.log)))
    assert used.counters.get("history.off_grid") == 120


def test_an_endpoint_that_ignores_the_start_for_ever_ends_in_an_error_case_23() -> None:
    """Case 23: no mixed data."""
    span = Range(parse_iso_ns("2023-03-05T02:00:00Z"), parse_iso_ns("2023-03-05T04:00:00Z"))
    request = history_request("BTC/USDT.BINANCE", span)
    faults = [Fault(FaultKind.IGNORE_START, path="*klines")]
    result, used, _ = asyncio.run(_fetch("BINANCE", request, faults=faults))
    (marker,) = batches(used.log)
    assert (result.success, result.code) == (False, "NO_PROGRESS")
    assert (marker.status, marker.is_last, len(marker.rows)) == (market_pb2.OHLCBatch.ERROR, True, 0)


def test_an_unknown_symbol_leaves_an_error_marker() -> None:
    span = Range(NOW_NS - 3_600 * NANOSECONDS, NOW_NS)
    result, used, _ = asyncio.run(_fetch("BINANCE", history_request("NOPE/USDT.BINANCE", span)))
    (marker,) = batches(used.log)
    assert (result.success, marker.error_code) == (False, "UNKNOWN_SYMBOL")
    assert marker.is_last


@pytest.mark.parametrize(("name", "api", "symbol", "shape"), APIS)
def test_a_symbols_job_writes_every_market(name: str, api: str, symbol: str, shape: str) -> None:
    request = work_pb2.DataRequest(job_id="s", attempt=1, ticker=name, type=work_pb2.DataRequest.SYMBOLS)
    result, used, server = asyncio.run(_fetch(name, request, api=api))
    listed = {f"{s}.{name}" for s, x in server.markets(shape).items() if x.listing.listed_ns <= NOW_NS}
    assert {market.market_id for market in markets(used.log)} == listed
    assert result.rows == len(listed)
    assert all(market.tick_denom >= 1 and market.price_increment for market in markets(used.log))


def test_a_replayed_recording_comes_out_row_for_row(recorded_data: Path) -> None:
    recording = load_recording(recorded_data / "binance" / "XRPETH-1m-2019-10-11_13.parquet", ticker="XRP/ETH.BINANCE")
    span = Range(recording.end_ns - 24 * 3_600 * NANOSECONDS, recording.end_ns)

    async def scene() -> Bench:
        async with SimulatedExchange(recordings=[recording], limits=GENEROUS) as server:
            used = bench("BINANCE", base_urls=server.base_urls)
            assert (await used.run(history_request("XRP/ETH.BINANCE", span))).success
            return used

    used = asyncio.run(scene())
    found = rows(batches(used.log))
    source = recording.candles(
        FixedGrid(60), start_ns=span.start_ns, end_ns=span.end_ns, visible=Visible(recording.end_ns)
    )
    assert [row.timestamp for row in found] == [candle.start_ns for candle in source]
    assert [from_scaled(row.close, row.price_decimals) for row in found] == [
        from_scaled(candle.close_units, recording.listing.price_decimals) for candle in source
    ]
