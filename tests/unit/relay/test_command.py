"""The root command: exit codes and parts that are not installed."""

from __future__ import annotations

import click
import pytest

from relay.cli import main as entry
from relay.errors import AccessError, PeerError, RelayError, RetryableError, SettingsError


def run(monkeypatch: pytest.MonkeyPatch, command: click.Command) -> int:
    from importlib import import_module

    module = import_module("relay.cli.main")
    monkeypatch.setattr(module.root, "get_command", lambda ctx, name: command)
    monkeypatch.setattr("sys.argv", ["relay", "x"])
    with pytest.raises(SystemExit) as ended:
        entry()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("s"), 2),
        (PeerError("p"), 3),
        (RetryableError("r"), 4),
        (AccessError("a"), 1),
        (RelayError("e"), 1),
        (click.UsageError("u"), 2),
        (click.exceptions.Exit(5), 5),
        (click.exceptions.Abort(), 130),
        (KeyboardInterrupt(), 130),
        (SystemExit(7), 7),
    ],
)
def test_every_end_has_its_documented_code_and_one_line(monkeypatch, capsys, error, code):
    @click.command()
    def command() -> None:
        raise error

    assert run(monkeypatch, command) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_command_that_returns_ends_with_zero(monkeypatch):
    assert run(monkeypatch, click.command()(lambda: None)) == 0


def test_a_part_that_is_not_installed_is_told_with_what_to_install(monkeypatch, capsys):
    from importlib import import_module

    broken = import_module("relay.cli.main")._broken("history", ImportError("no module"))
    assert run(monkeypatch, broken) == 2
    assert "install" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(13, "Permission denied", "/x"), "/x does not allow it: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("odd"), "odd"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "expected text in UTF-8"),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed"), "expected text in UTF-8"),
    ],
)
def test_what_a_path_of_the_user_does_not_allow_is_one_line_and_no_traceback(monkeypatch, capsys, error, told):
    @click.command()
    def command() -> None:
        raise error

    assert run(monkeypatch, command) == 1
    captured = capsys.readouterr().err
    assert told in captured
    assert captured.count("\n") == 1


@pytest.mark.parametrize("name", ["up", "down", "status", "stat"])
@pytest.mark.parametrize("folder", ["file", "file/below", "/proc/none"])
def test_no_command_shows_a_traceback_for_a_data_folder_that_can_be_none(tmp_path, capsys, monkeypatch, name, folder):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("sys.argv", ["relay", name, "--data", str(tmp_path / folder)])
    with pytest.raises(SystemExit):
        entry()
    assert "Traceback" not in capsys.readouterr().err
