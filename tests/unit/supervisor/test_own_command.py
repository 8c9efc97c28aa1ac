"""Commands that are told to the user work in the user's shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay.supervisor.own_command import own_command


@pytest.fixture
def program(tmp_path: Path) -> Path:
    program = tmp_path / "my project" / ".venv" / "bin" / "relay"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    return program


def test_a_program_that_the_shell_finds_is_called_by_its_name(program: Path) -> None:
    assert own_command(program, search_path=str(program.parent)) == "relay"


def test_another_is_called_by_its_path_from_here(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program.parents[2])
    assert own_command(program, search_path="/nowhere") == ".venv/bin/relay"


def test_one_that_is_elsewhere_is_called_by_its_whole_path_as_the_shell_reads_it(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert own_command(program, search_path="/nowhere") == f"'{program}'"


def test_another_program_of_that_name_in_the_path_does_not_count(program: Path, tmp_path: Path) -> None:
    other = tmp_path / "relay"
    other.touch(mode=0o755)
    assert own_command(program, search_path=str(tmp_path)) == f"'{program}'"


def test_without_a_program_of_its_own_the_name_must_do(tmp_path: Path) -> None:
    assert own_command(tmp_path / "relay", search_path="/nowhere") == "relay"
