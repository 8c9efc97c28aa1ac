"""Files of trades and candles: layouts, units, exact numbers, clear errors."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

from ingestors.simulation.grids import FixedGrid
from ingestors.simulation.number_text import shortest_text
from ingestors.simulation.records import Visible
from ingestors.simulation.replay import Recording, load_recording
from relay.errors import SettingsError

TICKER = "XRP/ETH.BINANCE"
TRADES = "XRPETH-trades-2019-10-11_13.parquet"
SECOND_NS = 10**9


def rows_of(recording: Recording, period_seconds: int) -> list[tuple[int, ...]]:
    candles = recording.candles(
        FixedGrid(period_seconds), start_ns=0, end_ns=recording.end_ns, visible=Visible(recording.end_ns)
    )
    price, size = recording.listing.price_decimals, recording.listing.size_decimals
    return [
        (
            row.start_ns,
            *(
                Decimal(shortest_text(units, price))
                for units in (row.open_units, row.high_units, row.low_units, row.close_units)
            ),
            Decimal(shortest_text(row.volume_units, size)),
        )
        for row in candles
    ]


def parquet_rows(path: Path) -> list[tuple[object, ...]]:
    table = pq.ParquetFile(path).read()
    starts = table.column("date").cast(pa.int64()).to_pylist()
    names = ("open", "high", "low", "close", "volume")
    numbers = [[Decimal(repr(value)) for value in table.column(name).to_pylist()] for name in names]
    return list(zip(starts, *numbers, strict=True))


@pytest.mark.parametrize("period_seconds", [60, 300])
def test_replayed_candles_equal_the_recorded_file_row_for_row(recorded_data: Path, period_seconds: int) -> None:
    path = recorded_data / "binance" / f"XRPETH-{period_seconds // 60}m-2019-10-11_13.parquet"
    recording = load_recording(path, TICKER)
    expected = parquet_rows(path)
    assert recording.period_seconds == period_seconds
    assert rows_of(recording, period_seconds) == expected
    assert recording.end_ns == int(str(expected[-1][0])) + period_seconds * SECOND_NS


@pytest.mark.parametrize("period_seconds", [60, 300])
def test_candles_made_of_the_recorded_trades_equal_the_recorded_candles(
    recorded_data: Path, period_seconds: int
) -> None:
    """Case 3: bucketed by the trades' own time."""
    folder = recorded_data / "binance"
    recording = load_recording(folder / TRADES, TICKER)
    assert rows_of(recording, period_seconds) == parquet_rows(
        folder / f"XRPETH-{period_seconds // 60}m-2019-10-11_13.parquet"
    )


def test_five_minute_candles_are_rolled_up_from_a_file_of_one_minute_candles(recorded_data: Path) -> None:
    folder = recorded_data / "binance"
    recording = load_recording(folder / "XRPETH-1m-2019-10-11_13.parquet", TICKER)
    assert rows_of(recording, 300) == parquet_rows(folder / "XRPETH-5m-2019-10-11_13.parquet")
    assert rows_of(recording, 30) == []


def test_trades_of_every_kind_of_file_are_the_same(tmp_path: Path) -> None:
    rows = [
        {"timestamp": 1570752011620, "id": 7, "side": "sell", "price": "0.00141342", "amount": "23"},
        {"timestamp": 1570752011620, "id": 8, "side": "buy", "price": "0.0000001", "amount": "0.123456789012345678"},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "a.json").write_text(json.dumps(rows))
    lines = ["timestamp,id,side,price,amount", *(",".join(map(str, row.values())) for row in rows)]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "a.parquet")
    pf.write_feather(table, tmp_path / "a.feather")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    loaded = [load_recording(path, TICKER) for path in sorted(tmp_path.iterdir())]
    assert len(loaded) == 6
    first = loaded[0].trades(0, 9)
    assert [(trade.trade_id, trade.taker_buy) for trade in first] == [(7, False), (8, True)]
    assert all(recording.trades(0, 9) == first for recording in loaded)
    listing = loaded[0].listing
    assert shortest_text(first[1].price_units, listing.price_decimals) == "0.0000001"
    assert shortest_text(first[1].size_units, listing.size_decimals) == "0.123456789012345678"
    assert first[1].price_units == 10
    assert listing.listed_ns == 1570752011620 * 10**6
    assert loaded[0].end_ns == 1570752060 * SECOND_NS


def test_doubles_enter_by_their_shortest_decimal_text(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"time": [1570752011620], "price": [0.1], "amount": [1e-7], "is_buyer_maker": [True]}),
        tmp_path / "a.parquet",
    )
    recording = load_recording(tmp_path / "a.parquet", TICKER)
    trade = recording.trades(0, 1)[0]
    assert (trade.price_units, recording.listing.price_decimals) == (1, 1)
    assert (trade.size_units, recording.listing.size_decimals) == (1, 7)
    assert not trade.taker_buy


def test_units_of_times_are_found_for_each_value(tmp_path: Path) -> None:
    """Case 42: milliseconds one day, microseconds the next, both on the right instant."""
    header = "open_time,open,high,low,close,volume\n"
    (tmp_path / "a.csv").write_text(
        header + "1735689540000,1,2,1,2,5\n1735689600000000,2,3,2,3,5\n2025-01-01T00:01:00Z,2,3,2,3,5\n"
    )
    rows = rows_of(load_recording(tmp_path / "a.csv", TICKER), 60)
    assert [row[0] // SECOND_NS for row in rows] == [1735689540, 1735689600, 1735689660]


def test_files_without_a_header_are_known_by_their_columns(tmp_path: Path) -> None:
    (tmp_path / "klines.csv").write_text(
        "1735689600000,1.0,2.5,1.0,2.0,10.5,1735689659999,15.75,3,4.5,6.75,0\n"
        "1735689660000,2.0,2.0,2.0,2.0,1,1735689719999,2,1,0,0,0\n"
    )
    (tmp_path / "trades.csv").write_text("28457,4.00000100,12.0,48.000012,1499865549590,True,True\n")
    (tmp_path / "kraken.csv").write_text("1381095255.5,122.0,0.1\n1381179030.25,123.61,0.2\n1381179031,123.6,0.2\n")
    candles = load_recording(tmp_path / "klines.csv", TICKER)
    row = candles.candles(FixedGrid(60), start_ns=0, end_ns=candles.end_ns, visible=Visible(candles.end_ns))[0]
    assert (row.trades, row.quote_units) == (3, 1_575 * 10 ** (candles.listing.quote_decimals - 2))
    trade = load_recording(tmp_path / "trades.csv", TICKER).trades(0, 1)[0]
    assert (trade.trade_id, trade.taker_buy, trade.time_ns) == (28457, False, 1499865549590 * 10**6)
    by_second = load_recording(tmp_path / "kraken.csv", "BTC/USD.KRAKEN").trades(0, 3)
    assert [(x.trade_id, x.time_ns, x.taker_buy) for x in by_second] == [
        (1, 1381095255_500_000_000, True),
        (2, 1381179030_250_000_000, True),
        (3, 1381179031_000_000_000, False),
    ]


def test_off_grid_candles_stay_where_they_were(tmp_path: Path) -> None:
    """Case 16."""
    header = "time,open,high,low,close,volume\n"
    (tmp_path / "a.csv").write_text(header + "1518048028115,1,1,1,1,5\n1518048088115,1,1,1,1,5\n")
    assert [row[0] for row in rows_of(load_recording(tmp_path / "a.csv", TICKER), 60)] == [
        1518048028115 * 10**6,
        1518048088115 * 10**6,
    ]


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a.txt", "x", "a.txt"),
        ("a.csv", "", "no rows"),
        ("a.csv", "a,b\n1,2\n", "found a, b"),
        ("a.csv", "time,price,amount,side\n5,1,1,buy\n", "row 1"),
        ("a.csv", "time,price,amount,side\n1735689600000,nan,1,buy\n", "'nan'"),
        ("a.csv", "time,price,amount,side\n1735689600000,1,1,up\n", "'up'"),
        ("a.csv", "time,price,amount,side\n1735689600000,-1,1,buy\n", "above 0"),
        ("a.csv", "time,price,amount,side\n1735689600000,1\n", "row 1 has 2"),
        ("a.csv", "time,price,amount,side\n2025-01-01 00:00:00,1,1,buy\n", "no zone"),
        ("a.csv", "time,open,high,low,close,volume\n1735689600000,1,2,3,4,5\n", "low <= open"),
        ("a.csv", "1,2\n", "2 columns of numbers"),
        ("a.parquet", "no parquet", "a.parquet"),
        ("a.feather", "no feather", "a.feather"),
        ("a.json", "{", "a.json"),
        ("a.json", "[1, 2]", "JSON objects or rows"),
        ("a.json", '{"error": [], "result": {"last": 1}}', "OHLC answer"),
    ],
)
def test_an_unreadable_file_says_what_was_expected_and_what_was_found(
    tmp_path: Path, name: str, content: str, found: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SettingsError) as raised:
        load_recording(tmp_path / name, TICKER)
    assert "expected" in str(raised.value) or "add Z" in str(raised.value)
    assert found in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nothing\.csv"):
        load_recording(tmp_path / "nothing.csv", TICKER)
