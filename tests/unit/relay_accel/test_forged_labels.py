"""Labels that no writer of ours makes: refused when they are given, replaced when they are read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from relay.cli.stat import command as stat
from relay.observability import new_counters
from relay.observability.shared_counters import read_shared_counters
from tests.support.accelerator import accelerator

ra = accelerator()
SET_OFFSET, LENGTH_OFFSET, LABEL_OFFSET, LINE = 4096, 16, 24, 128
FORGED = {
    b"a\0b": "a\ufffdb",
    b"c\nmarket_up 1": "c\ufffdmarket_up 1",
    b"d\x1b[2J": "d\ufffd[2J",
    b"e\xff\xfe": "e\ufffd\ufffd",
    b"f\xc2\x85": "f\ufffd",
    b"g\xe2\x80\xa8g": "g\ufffdg",
    b'h"} 1': 'h"} 1',
    b"[/red]": "[/red]",
}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    place = tmp_path / "shm"
    place.mkdir(0o700)
    return str(place)


def forge(folder: str, labels: list[bytes], *, length: int | None = None) -> ra.Counters:
    """A set of this process whose labels somebody has overwritten."""
    name = f"counters.gateway.{os.getpid()}.0"
    counters = ra.Counters.create(name, len(labels), directory=folder)
    with Path(folder, name).open("r+b") as segment:
        for index, label in enumerate(labels):
            counters.allocate(1_000, "good").set(index + 1)
            segment.seek(SET_OFFSET + index * LINE + LENGTH_OFFSET)
            segment.write((len(label) if length is None else length).to_bytes(8, "little") + label)
    return counters


@pytest.mark.parametrize("label", ["a\0", "a\nb", "\x1b[2J", "a\x85", "a\u2028", "x" * 65, "ü" * 33])
def test_a_label_that_would_break_what_shows_it_is_refused_and_counted_in_the_process_alone(folder, label):
    with pytest.raises(ValueError, match="at most 64 bytes of UTF-8 without control characters"):
        ra.Counters.heap().allocate(1_000, label)
    counters, _shared = new_counters("x", shared_memory=folder)
    for name in (label, "lone \ud800", "good"):
        counters.add(name)
    assert counters.get(label) == counters.get("lone \ud800") == 1
    assert read_shared_counters(shared_memory=folder) == {("x", os.getpid()): {"good": 1}}


def test_forged_labels_are_read_with_replacements(folder):
    counters = forge(folder, list(FORGED))
    expected = {shown: index + 1 for index, shown in enumerate(FORGED.values())}
    assert {label: value for _, label, value in counters.snapshot()} == expected
    assert read_shared_counters(shared_memory=folder) == {("gateway", os.getpid()): expected}


def test_a_forged_length_shows_64_characters_at_most(folder):
    counters = forge(folder, [b"long"], length=2**64 - 1)
    assert [label for _, label, _ in counters.snapshot()] == ["long" + "\ufffd" * 60]


@pytest.fixture
def running(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform whose only part is this process."""
    part = {"name": "gateway", "pid": os.getpid(), "ready_url": ""}
    monkeypatch.setattr("relay.supervisor.data_folder.read_state", lambda _: {"parts": [part]})
    monkeypatch.setenv("RELAY_UP_SHARED_MEMORY", folder)
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize("charset", ["utf-8", "ascii"])
def test_stat_shows_forged_labels_each_on_its_line(folder, running, charset):
    _counters = forge(folder, list(FORGED))
    shown = CliRunner(charset=charset).invoke(stat, [])
    assert shown.exit_code == 0, shown.exception
    for label in FORGED.values():
        in_charset = label.encode(charset, "replace").decode(charset)
        assert sum(in_charset in line for line in shown.stdout.splitlines()) == 1, label
    assert "\x1b" not in shown.stdout


def test_stat_gives_forged_labels_to_machines(folder, running):
    _counters = forge(folder, list(FORGED))
    shown = CliRunner().invoke(stat, ["--json"])
    assert set(json.loads(shown.stdout)["gateway"]) == set(FORGED.values())
