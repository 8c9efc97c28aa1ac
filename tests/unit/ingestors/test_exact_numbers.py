from __future__ import annotations

import ast
from decimal import Decimal
from pathlib import Path

import pytest

import ingestors
from ingestors.exchanges.numbers import decode_json, number, seconds_ns, whole
from relay.errors import PeerError

FOLDER = Path(ingestors.__file__).parent
SOURCES = sorted([*(FOLDER / "engine").glob("*.py"), *(FOLDER / "exchanges").glob("*.py")])


def _floats(source: str) -> list[int]:
    """Return lines that make or name a binary float."""
    found = []
    for node in ast.walk(ast.parse(source)):
        is_name = isinstance(node, ast.Name) and node.id == "float"
        is_literal = isinstance(node, ast.Constant) and isinstance(node.value, float)
        is_division = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        if is_name or is_literal or is_division:
            found.append(node.lineno)
    return sorted(found)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_float_stands_in_adapters_or_engines(path: Path) -> None:
    assert _floats(path.read_text()) == []


def test_the_check_for_floats_finds_them() -> None:
    assert _floats("x = float('1')\ny = 1.5\nz = 1 / 3\n") == [1, 2, 3]


@pytest.mark.parametrize(
    "text",
    ["0.0000001", "1e-7", "123456789012345678", "0.123456789012345678", "12345678901234567890123", "1.10", "5"],
)
def test_json_numbers_keep_every_digit_case_70(text: str) -> None:
    """Case 70: as JSON numbers and as JSON strings."""
    assert number(decode_json(f"[{text}]")[0]) == Decimal(text)  # type: ignore[index]
    assert number(decode_json(f'["{text}"]')[0]) == Decimal(text)  # type: ignore[index]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "null", "true", "[]", '"12,5"', '""', "1e999"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(PeerError):
        number(decode_json(text))


def test_seconds_with_a_fraction_become_whole_nanoseconds() -> None:
    assert seconds_ns(decode_json("1762795433.9717445")) == 1_762_795_433_971_744_500
    assert seconds_ns(decode_json("1762795433")) == 1_762_795_433 * 10**9
    assert whole("1762795433") == 1_762_795_433


@pytest.mark.parametrize("text", ['{"a":', "[" * 100_000, "", "<html>"])
def test_what_is_no_json_raises_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        decode_json(text)
