"""The samples of the accelerator's README run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.accelerator import accelerator
from tests.unit.relay_accel.sbe_codec.schemas import schema_of

accelerator()
README = Path(__file__).resolve().parents[3] / "accelerator" / "README.md"
SAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
TRADES = schema_of(
    """<enum name="Side" encodingType="uint8"><validValue name="BUY">0</validValue></enum>
    <composite name="Price"><type name="mantissa" primitiveType="int64"/>
      <type name="exponent" primitiveType="int8" presence="constant">-8</type></composite>""",
    """<message name="Trade" id="1"><field name="id" id="1" type="uint64"/><field name="side" id="2" type="Side"/>
    <field name="price" id="3" type="Price"/><group name="fees" id="4">
    <field name="amount" id="5" type="uint32"/></group></message>""",
)


def run(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("place", [at for at, code in enumerate(SAMPLES) if "while True" not in code])
def test_a_sample_runs(place: int, tmp_path: Path) -> None:
    (tmp_path / "trades.xml").write_bytes(TRADES)
    assert run(SAMPLES[place], tmp_path)


def test_the_reader_of_the_second_sample_gets_what_a_writer_of_the_first_one_left(tmp_path: Path) -> None:
    writer, (reader,) = SAMPLES[0], [code for code in SAMPLES if "while True" in code]
    before_reading = writer[: writer.index("print(")].replace('"ticks"', repr(tmp_path.name)) + "producer.close()\n"
    ended = f"consumer.close()\nreader = {reader.replace('ticks', tmp_path.name)!r}\nexec(reader)\nring.unlink()\n"
    assert run(before_reading + ended, tmp_path).splitlines() == ["[(7, b'hello')]"]
