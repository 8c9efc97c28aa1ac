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
