"""Results in every form: exact, typed, and into files."""

from __future__ import annotations

import csv
import json
import sys
from decimal import Decimal
from io import StringIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from relay.errors import SettingsError, StorageError
from relay_client.cli.chart import Candle, draw_candles, draw_chart
from relay_client.cli.output import check_format, write_file, write_json
from relay_client.cli.table import bars_table
from tests.unit.relay_client.bars import BASE_NS, FINE, history


def test_bars_are_typed_exact_and_absent_is_none_case_70():
    (bar,) = history([FINE])
    assert (bar.close, str(bar.volume)) == (Decimal(FINE), "1E-7")
    assert f"{bar.volume:f}" == "0.0000001"
    assert (bar.quote_volume, bar.trades) == (None, None)
    assert bar.start.isoformat() == "2023-11-14T22:14:00+00:00"


def test_arrow_pandas_polars_and_duckdb_hold_the_same_exact_numbers():
    bars = history(["42.13", "42.14", FINE])
    closes = [Decimal("42.13"), Decimal("42.14"), Decimal(FINE)]
    assert bars.to_arrow()["close"].to_pylist() == closes
    assert bars.to_pandas()["close"].tolist() == closes
    assert bars.to_pandas(numbers="decimal")["close"].tolist() == closes
    assert bars.to_polars()["close"].to_list() == closes
    assert [row[0] for row in bars.to_duckdb().project("close").fetchall()] == closes


def test_pandas_is_indexed_by_utc_start_and_can_be_asked_for_floats():
    frame = history(["42.13", "42.14"]).to_pandas(numbers="float")
    assert str(frame.index.tz) == "UTC"
    assert frame.index[0].value == BASE_NS
    assert str(frame["close"].dtype) == "float64"
    with pytest.raises(SettingsError, match="'exact', 'decimal' or 'float'"):
        history(["1"]).to_pandas(numbers="money")


@pytest.mark.parametrize("name", ["pandas", "polars", "duckdb"])
def test_a_missing_extra_is_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SettingsError, match=rf"market-relay-client\[{name}\]") as raised:
        getattr(history(["1"]), f"to_{name}")()
    assert raised.value.code == "MISSING_EXTRA"


def test_an_empty_result_works_in_every_form():
    empty = history([])
    assert (len(empty), list(empty), len(empty.to_pandas()), len(empty.to_polars())) == (0, [], 0, 0)
    assert "0 bars, NOT_FOUND" in repr(empty)


@settings(deadline=None)
@given(st.integers(0, 30), st.integers(0, 40))
def test_head_and_tail_are_the_ends(count, wanted):
    bars = history([str(10 + i) for i in range(count)])
    everything = list(bars)
    assert bars.head(wanted) == everything[:wanted]
    assert bars.tail(wanted) == everything[max(0, count - wanted) :]


def test_csv_and_json_carry_plain_decimals(tmp_path):
    bars = history(["42.130", FINE])
    write_file(bars, tmp_path / "bars.csv")
    rows = list(csv.DictReader((tmp_path / "bars.csv").open()))
    assert [(r["close"], r["volume"], r["quote_volume"]) for r in rows] == [
        ("42.13", "0.0000001", ""),
        (FINE, "0.0000001", ""),
    ]
    write_file(bars, tmp_path / "bars.json")
    told = json.loads((tmp_path / "bars.json").read_text())
    assert [(b["close"], b["quote_volume"]) for b in told["bars"]] == [("42.13", None), (FINE, None)]
    assert (told["status"], told["missing"], told["start"]) == ("OK", [], "2023-11-14T22:14:00Z")
    out = StringIO()
    write_json(history([]), out)
    assert json.loads(out.getvalue())["bars"] == []


def test_parquet_and_arrow_hold_the_table_as_it_is(tmp_path):
    bars = history(["42.13", FINE])
    write_file(bars, tmp_path / "bars.parquet")
    write_file(bars, tmp_path / "bars.arrow")
    assert pq.read_table(tmp_path / "bars.parquet").equals(bars.to_arrow())
    with pa.OSFile(str(tmp_path / "bars.arrow")) as file:
        assert pa.ipc.open_file(file).read_all().equals(bars.to_arrow())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bars.arrow", "bars.parquet"]


def test_a_file_that_cannot_be_written_or_has_no_known_format_is_told(tmp_path):
    with pytest.raises(StorageError, match="cannot write"):
        write_file(history(["1"]), tmp_path / "nowhere" / "bars.csv")
    with pytest.raises(SettingsError, match=r"\.csv, \.parquet"):
        check_format(tmp_path / "bars.xls")


def test_the_table_shows_head_and_tail_and_all_rows_when_they_are_few():
    def shown(count: int) -> str:
        console = Console(width=120, file=StringIO())
        console.print(bars_table(history([str(1000 + i) for i in range(count)])))
        return console.file.getvalue()

    assert all(str(1000 + i) in shown(11) for i in range(11))
    assert "…" in shown(12)
    assert "1011" in shown(12)


def test_candles_rise_filled_and_fall_shaded():
    rising = Candle(Decimal(1), Decimal(4), Decimal(0), Decimal(3))
    falling = Candle(Decimal(3), Decimal(4), Decimal(0), Decimal(1))
    assert draw_candles([rising, falling], height=5) == ["││", "█░", "█░", "█░", "││"]


def test_a_column_of_several_bars_has_the_prices_of_those_with_trades():
    table = history([str(n) for n in (100, *[50] * 39)]).to_arrow()
    volumes = pa.array([Decimal(n % 4 == 3) for n in range(40)], table.schema.field("volume").type)
    table = table.set_column(table.schema.get_field_index("volume"), "volume", volumes)
    assert draw_chart(table, width=14, height=5).split()[0] == "51"


@settings(deadline=None)
@given(
    st.lists(st.decimals(1, 10**6, places=3).map(str), min_size=1, max_size=400),
    st.integers(40, 200),
    st.integers(5, 40),
)
def test_a_chart_fits_its_terminal(closes, width, height):
    lines = draw_chart(history(closes).to_arrow(), width=width, height=height).splitlines()
    assert len(lines) == height
    assert all(len(line) <= width for line in lines)
    assert any("█" in line or "░" in line for line in lines)
