"""``relay sbe``: layouts in the terminal, and typed modules that a type checker accepts."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from relay.cli.sbe import command
from relay.errors import SettingsError
from tests.support.accelerator import accelerator
from tests.unit.relay_accel.sbe_codec.schemas import ORDER, SCHEMA

accelerator()

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "schemas" / "orders.xml"
    path.parent.mkdir()
    path.write_bytes(SCHEMA)
    return path


def test_the_layout_is_shown(schema):
    result = CliRunner().invoke(command, ["show", str(schema), "--warnings"])
    assert result.exit_code == 0
    assert "message Order id 1 block 96" in result.output
    assert "     60 place id 16 composite Place" in result.output


def test_a_refused_schema_is_one_error_with_a_line_for_each_fault(schema):
    schema.write_text(schema.read_text().replace('type="OptInt"', 'type="Nothing"'))
    result = CliRunner().invoke(command, ["show", str(schema)])
    assert isinstance(result.exception, SettingsError)
    assert "there is no type Nothing" in str(result.exception)


@pytest.fixture
def module(schema, tmp_path):
    path = tmp_path / "orders.py"
    result = CliRunner().invoke(command, ["generate", str(schema), "--output", str(path)])
    assert result.exit_code == 0, result.output
    return path


def test_the_written_module_has_the_schemas_classes(schema, module):
    found = runpy.run_path(str(module))
    assert found["Order"].decode(found["Order"].encode(ORDER)).to_dict() == ORDER
    assert found["SCHEMA"].messages.Order is found["Order"]
    printed = CliRunner().invoke(command, ["generate", str(schema)]).output
    for line in (
        "    class Order(sbe.BlockView):",
        "        class LegsEntry(sbe.BlockView):",
        "            qty: int",
        "        opt: int | None",
        "        side: Side | str | None",
        "        legs: sbe.GroupView[LegsEntry]",
        "        blob: memoryview",
    ):
        assert line in printed.splitlines()


@pytest.mark.soak
@pytest.mark.timeout(1_200)
def test_a_type_checker_accepts_the_written_module_and_knows_its_fields(module, tmp_path):
    use = tmp_path / "use.py"
    use.write_text(
        "import orders\n"
        "def told(data: bytes) -> tuple[int, int | None, str, int]:\n"
        "    order = orders.Order.decode(data)\n"
        "    first: int = order.legs[0].qty\n"
        "    fee: int = order.fills[0].fees[0].amount\n"
        "    scale: int = order.place.price.exponent\n"
        "    return order.number, order.opt, order.note, first + fee + scale\n"
        "wrong: str = orders.Order.decode(b'').number\n"
    )
    options = ["--strict", "--no-incremental", "--cache-dir", str(tmp_path / "cache")]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    errors = [line for line in checked.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1, checked.stdout + checked.stderr
    assert errors[0].startswith("use.py:8:")


@pytest.mark.parametrize(("schema_file", "module"), [("tests/car.xml", "car.rs"), ("../../proto/fix.xml", "fix.rs")])
def test_a_rust_module_is_the_one_that_is_checked_in(schema_file, module, tmp_path):
    crate = ROOT / "accelerator" / "codec"
    written = tmp_path / module
    arguments = ["generate", str(crate / schema_file), "--language", "rust", "--output", str(written)]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    assert written.read_text() == (crate / "tests" / "generated" / module).read_text()


def test_a_rust_module_goes_to_the_terminal_without_a_file(schema):
    printed = CliRunner().invoke(command, ["generate", str(schema), "--language", "rust"]).output
    assert "pub struct OrderDecoder<'a> {" in printed
