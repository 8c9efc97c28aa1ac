"""``relay stat``: the counters of every running part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

__all__ = ["command"]


@click.command("stat")
@click.option("--data", "data_folder", type=click.Path(path_type=Path), help="Data folder.  [default: .data]")
@click.option("--url", "urls", multiple=True, help="Status endpoint of a part elsewhere (http://HOST:PORT/status).")
@click.option("--part", "wanted", multiple=True, help="Only these parts.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(data_folder: Path | None, urls: tuple[str, ...], wanted: tuple[str, ...], as_json: bool) -> None:
    """Show the counters of every part, under the same names as the metrics endpoint (/metrics).

    Exit codes: 0 shown, 1 nothing answers.
    """
    from relay.config import load_settings
    from relay.supervisor.data_folder import read_state
    from relay.supervisor.settings import UpSettings

    settings = load_settings(UpSettings, overrides={"data_folder": data_folder})
    state: dict[str, Any] = read_state(settings.data_folder) or {"parts": []}
    found = {p["name"]: p["ready_url"].rpartition("/")[0] + "/status" for p in state["parts"] if p["ready_url"]}
    found |= {url: url for url in urls}
    counters = {name: _counters(url) for name, url in found.items() if not wanted or name in wanted}
    answered = {name: values for name, values in counters.items() if values is not None}
    if as_json:
        click.echo(json.dumps(answered))
    else:
        Console().print(_table(answered))
    raise SystemExit(0 if answered else 1)


def _counters(url: str) -> dict[str, int] | None:
    from relay.supervisor.children import get_json

    try:
        return dict(get_json(url).get("counters", {}))
    except OSError:
        return None


def _table(parts: dict[str, dict[str, int]]) -> Table:
    table = Table("part", "counter")
    table.add_column("value", justify="right")
    for part, values in parts.items():
        for name, value in values.items():
            table.add_row(part, name, f"{value:,}")
    return table
