"""The example of records runs as it stands, and so does the one of the README."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.support.accelerator import accelerator

accelerator()
pytest.importorskip("numpy")

ROOT = Path(__file__).resolve().parents[4]


def test_the_example_prints_what_went_through_the_ring(capsys):
    runpy.run_path(str(ROOT / "examples" / "records.py"))["main"](1_000)
    assert capsys.readouterr().out == "BTC 67000.2500 SELL\n1000 rows, ['0.5']\n"


def test_the_example_of_the_readme_runs(capsys, tmp_path):
    section = (ROOT / "accelerator" / "README.md").read_text().partition("## Records\n")[2]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    script = tmp_path / "readme.py"
    script.write_text(found[1])
    runpy.run_path(str(script))
    assert "symbol='BTC'" in capsys.readouterr().out
