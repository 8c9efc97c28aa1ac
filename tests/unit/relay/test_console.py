"""Tables without a terminal."""

from __future__ import annotations

from rich.table import Table

from relay.observability.console import table_console


def test_without_a_terminal_no_cell_is_cut(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    table = Table("a", "b")
    table.add_row("x" * 150, "y" * 150)
    table_console().print(table)
    shown = capsys.readouterr().out
    assert "x" * 150 in shown
    assert "y" * 150 in shown
    assert max(map(len, shown.splitlines())) < 400


def test_who_names_a_width_gets_it(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    table_console().print("x" * 100)
    assert max(map(len, capsys.readouterr().out.splitlines())) == 60
