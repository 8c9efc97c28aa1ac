"""The golden records and decimals, read and written by the Python face; `codec/tests/golden_records.rs` makes them."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path

import pytest

from tests.support.accelerator import accelerator

accelerator()
np = pytest.importorskip("numpy")
from relay_accel import Decimal64, sbe  # noqa: E402
from relay_accel.records import ORDER_MESSAGES, TICK_MESSAGES  # noqa: E402

FOLDER = Path(__file__).resolve().parents[4] / "proto" / "golden" / "records"
INDEX = json.loads((FOLDER / "index.json").read_text())
REASONS = {"text": "expected a decimal number", "inexact": "is not exact with", "range": "expected a number from"}


def plain(record) -> dict[str, object]:
    named = record._asdict().items()
    return {name: value.name.capitalize() if isinstance(value, Enum) else value for name, value in named}


def test_every_file_of_the_folder_is_in_its_index():
    assert sorted(INDEX) == sorted(path.name for path in FOLDER.glob("*.bin"))


@pytest.mark.parametrize(("file", "codec"), [("ticks.bin", TICK_MESSAGES), ("orders.bin", ORDER_MESSAGES)])
def test_golden_records_are_read_and_written_as_the_index_says(file, codec):
    data = (FOLDER / file).read_bytes()
    records = codec.decode_all(data)
    assert [plain(record) for record in records] == INDEX[file]
    assert codec.encode_all(records) == data
    rows = codec.to_numpy(data)
    assert [codec.value(*row) for row in rows.tolist()] == records
    assert bytes(codec.from_numpy(rows)) == data


def test_golden_decimals_are_exact_or_refused_for_their_reason():
    mantissas = np.frombuffer((FOLDER / "decimals.bin").read_bytes(), "<i8").tolist()
    for row in INDEX["decimals.bin"]:
        form = Decimal64(row["exponent"])
        if "refused" in row:
            with pytest.raises(sbe.EncodeError, match=REASONS[row["refused"]]):
                form.mantissa(row["text"])
            continue
        mantissa = mantissas.pop(0)
        assert form.mantissa(row["text"]) == mantissa
        assert form.text(mantissa) == row["shortest"]
    assert mantissas == [Decimal64.NULL]
