"""The README of the client: its samples are Python, its patterns and its trigger id are good."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from relay.protocol.topics import is_uuid_text

README = (Path(__file__).resolve().parents[3] / "clients" / "python" / "README.md").read_text(encoding="utf-8")
SAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_python(sample: str) -> None:
    compile(sample, "README.md", "exec")


def test_its_patterns_can_be_registered() -> None:
    (sample,) = (text for text in SAMPLES if "patterns = [" in text)
    names: dict[str, Any] = {}
    exec(sample, names)
    assert len([pattern.build() for pattern in names["patterns"]]) == 8


def test_its_trigger_id_is_one() -> None:
    (sample,) = re.findall(r"`(str\(uuid\.uuid5\(.*?\)\))`", README)
    assert is_uuid_text(eval(sample, {"uuid": uuid}))
