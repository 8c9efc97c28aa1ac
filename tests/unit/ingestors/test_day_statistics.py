"""Log records of 24 h statistics: split by a stated rule, exact, absent stays absent; rows that make no sense."""

from __future__ import annotations

from decimal import Decimal

import pytest

from ingestors.engine.batches import BatchLimits
from ingestors.engine.day_statistics import DayStatistics, statistics_records
from ingestors.engine.values import Listing
from ingestors.exchanges.numbers import decode_json
from ingestors.exchanges.statistics_rows import (
    read_binance_row,
    read_coinbase_stats,
    read_kraken_entry,
    read_statistics,
)
from relay.protocol.envelope import encode_record
from relay.protocol.tickers import parse_ticker

NOW = 1_700_000_000 * 10**9
BTC = Listing(parse_ticker("BTC/USDT.X"), "BTCUSDT")
BINANCE_ROW = """{"symbol": "BTCUSDT", "lastPrice": "0.0000001", "priceChangePercent": "-1.250", "quoteVolume": "1e3",
 "bidPrice": null, "askPrice": "", "openPrice": "1", "highPrice": "2", "lowPrice": "1", "volume": 10000000.10,
 "closeTime": 1700000000123, "count": 7}"""


def rows(count: int) -> list[DayStatistics]:
    return [
        DayStatistics(
            parse_ticker(f"A{i:05}/USDT.X"), NOW, Decimal("1.5"), quote_volume=Decimal(i), volume=Decimal(i), trades=i
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("limits", [BatchLimits(rows_max=100), BatchLimits(bytes_max=10_000), BatchLimits()])
def test_statistics_that_exceed_a_record_are_split_and_nothing_is_left_out(limits: BatchLimits) -> None:
    parts = statistics_records("X", rows(2_500)[::-1], generated_at_ns=NOW, limits=limits)
    assert [part.part_index for part in parts] == list(range(len(parts)))
    assert {(part.part_count, part.generated_at, part.exchange_id) for part in parts} == {(len(parts), NOW, "X")}
    assert max(len(part.tickers) for part in parts) <= limits.rows_max
    assert max(len(encode_record(part)) - 2 for part in parts) <= limits.bytes_max
    assert len(parts) > 1
    assert [row.ticker for part in parts for row in part.tickers] == [f"A{i:05}/USDT.X" for i in range(2_500)]
    assert [bool(part.rates) for part in parts] == [True] + [False] * (len(parts) - 1)


@pytest.mark.parametrize(
    ("sent", "opened", "last", "told"),
    [
        (None, "3", "4", "33.333"),
        (None, "8", "7.99999", "0"),
        (None, "200", "199", "-0.5"),
        ("1.23456", "3", "4", "1.23456"),
        (None, None, "4", ""),
        (None, "3", None, ""),
        (None, "0", "4", ""),
        (None, "1e-40", "1e40", ""),
    ],
)
def test_a_change_that_is_not_sent_is_made_of_open_and_last(
    sent: str | None, opened: str | None, last: str | None, told: str
) -> None:
    numbers = {"change_percent": sent, "open": opened, "last": last}
    given = {name: Decimal(text) for name, text in numbers.items() if text is not None}
    row = DayStatistics(parse_ticker("BTC/USD.X"), NOW, **given)  # type: ignore[arg-type]
    [part] = statistics_records("X", [row], generated_at_ns=NOW, limits=BatchLimits())
    assert part.tickers[0].price_change_pct == told


def test_an_exchange_without_markets_has_one_empty_part() -> None:
    [part] = statistics_records("X", [], generated_at_ns=NOW, limits=BatchLimits())
    assert (part.part_index, part.part_count, len(part.tickers)) == (0, 1, 0)


def test_numbers_are_exact_text_and_absent_stays_absent_case_70() -> None:
    """Case 70: 0.0000001 survives; what was not sent is neither zero nor guessed."""
    page = read_statistics([("BTCUSDT", decode_json(BINANCE_ROW))], {"BTCUSDT": BTC}, read_binance_row)
    [part] = statistics_records("X", page.rows, generated_at_ns=NOW, limits=BatchLimits())
    [row] = part.tickers
    assert (row.last_price, row.price_change_pct, row.quote_volume_24h) == ("0.0000001", "-1.25", "1000")
    assert (row.volume, row.std_quote_volume, row.num_trades) == ("10000000.1", "1000", 7)
    assert row.timestamp == 1_700_000_000_123_000_000
    assert not row.HasField("bid")
    assert not row.HasField("ask")


def test_kraken_sends_no_open_of_24_hours_and_its_quote_volume_is_volume_times_vwap() -> None:
    entry = {"c": ["3", "1"], "v": ["1", "2.5"], "p": ["9", "3.2"], "t": [1, 4], "l": ["1", "2"], "h": ["5", "6"]}
    row = read_kraken_entry(entry, BTC, time_ns=NOW)
    assert (row.quote_volume, row.high, row.low, row.trades) == (Decimal(8), Decimal(6), Decimal(2), 4)
    assert (row.open, row.change_percent, row.bid) == (None, None, None)


def test_coinbase_knows_no_quote_volume_so_there_is_none_in_usd_either() -> None:
    row = read_coinbase_stats({"last": "5", "volume": "2"}, BTC, time_ns=NOW)
    [part] = statistics_records("X", [row], generated_at_ns=NOW, limits=BatchLimits())
    assert part.tickers[0].quote_volume_24h == ""
    assert not part.tickers[0].HasField("std_quote_volume")


@pytest.mark.parametrize(
    "entry",
    [
        {"last": "five"},
        {"last": "-1"},
        {"volume": "-0.1"},
        {"last": True},
        None,
        [],
    ],
)
def test_a_row_that_makes_no_sense_is_counted_and_the_others_stand(entry: object) -> None:
    def read(row: object, listing: Listing) -> DayStatistics:
        return read_coinbase_stats(row, listing, time_ns=NOW)  # type: ignore[arg-type]

    page = read_statistics([("BTCUSDT", entry), ("NOPE", {}), ("BTCUSDT", {"last": "1"})], {"BTCUSDT": BTC}, read)
    assert (len(page.rows), page.bad_count) == (1, 2)


@pytest.mark.parametrize("count", [-1, 2**70, "x"])
def test_a_count_of_trades_that_cannot_be_is_no_row(count: object) -> None:
    entry = {**decode_json(BINANCE_ROW), "count": count}  # type: ignore[dict-item]
    assert read_statistics([("BTCUSDT", entry)], {"BTCUSDT": BTC}, read_binance_row).bad_count == 1
