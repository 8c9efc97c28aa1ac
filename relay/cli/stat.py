"""``relay stat``: the counters of every running part."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from rich.live import Live
from rich.table import Table
from rich.text import Text

from relay.observability.console import table_console
from relay.observability.counters import shown_name

__all__ = ["command"]

Values = Mapping[str, int]


@click.command("stat")
@click.option("--data", "data_folder", type=click.Path(path_type=Path), help="Data folder.  [default: .data]")
@click.option("--url", "urls", multiple=True, help="Status endpoint of a part elsewhere (http://HOST:PORT/status).")
@click.option("--part", "wanted", multiple=True, help="Only these parts.")
@click.option("--match", help="Only counters whose name has this in it.")
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C, with rates.")
@click.option(
    "--interval", type=click.FloatRange(0.1, 3_600), default=1.0, show_default=True, help="Seconds of --watch."
)
@click.option("--json", "as_json", is_flag=True, help="For machines; with --watch a line each time.")
def command(
    *,
    data_folder: Path | None,
    urls: tuple[str, ...],
    wanted: tuple[str, ...],
    match: str | None,
    watch: bool,
    interval: float,
    as_json: bool,
) -> None:
    """Show the counters of every part, under the same names as the metrics endpoint (/metrics).

    Parts of this machine are read out of shared memory where the accelerator is installed, clients among them; others
    by their status endpoints.

    A job that was started alone is no part of `relay up`: ask it by the --url of its own status port.

    Exit codes: 0 shown, 1 nothing answers, or there is no such part.
    """
    source = _Source(data_folder, urls, wanted, match)
    found = source.read()
    for words in source.unknown():
        click.echo(words, err=True)
    if not watch:
        click.echo(json.dumps(found)) if as_json else _show(found, match, is_told=bool(source.unknown()))
        raise SystemExit(0 if found else 1)
    try:
        _watch(source, found, interval, as_json=as_json)
    except KeyboardInterrupt:
        raise SystemExit(0) from None


def _show(found: Mapping[str, Values], match: str | None, *, is_told: bool) -> None:
    if any(found.values()):
        table_console().print(_table(found, {}, 0.0))
    elif found:
        click.echo(f"no counter's name has {match!r} in it" if match else "no part has counted anything yet", err=True)
    elif not is_told:
        from relay.supervisor.own_command import own_command

        click.echo(f"nothing answers; start it with: {own_command()} up, or name a part's --url", err=True)


class _Source:
    """Where counters come from, and which of them are wanted."""

    def __init__(
        self, data_folder: Path | None, urls: tuple[str, ...], wanted: tuple[str, ...], match: str | None
    ) -> None:
        from relay.config import load_settings
        from relay.supervisor.settings import UpSettings

        self._settings = load_settings(UpSettings, overrides={"data_folder": data_folder})
        self._urls, self._wanted, self._match = urls, wanted, match
        self._known: set[str] = set()

    def read(self) -> dict[str, Values]:
        """Return the counters of every part that answers."""
        from relay.supervisor.data_folder import read_state

        state: dict[str, Any] = read_state(self._settings.data_folder) or {"parts": []}
        shared = _shared(self._settings.shared_memory)
        found: dict[str, Values] = {}
        for part in state["parts"]:
            values = shared.pop(part["pid"], None)
            if values is None and part["ready_url"]:
                values = _asked(part["ready_url"].rpartition("/")[0] + "/status")
            if values is not None:
                found[part["name"]] = values
        found |= {url: values for url in self._urls if (values := _asked(url)) is not None}
        if state["parts"]:
            # Clients belong to no data folder; beside a platform they are of interest, too.
            found |= dict(shared.named_clients())
        self._known = {part["name"] for part in state["parts"]} | set(found)
        shown = {*self._wanted, *self._urls} if self._wanted else found
        return {name: self._matching(values) for name, values in found.items() if name in shown}

    def unknown(self) -> list[str]:
        """Return a line for each wanted part that the last reading knows nothing of; none when nothing runs here."""
        if not self._known:
            return []
        known = ", ".join(sorted(self._known))
        return [
            f"expected a part of {known}; got {name}. A job that was started alone answers at its own status port: "
            "relay stat --url http://127.0.0.1:PORT/status"
            for name in self._wanted
            if name not in self._known
        ]

    def _matching(self, values: Values) -> Values:
        return {name: value for name, value in values.items() if not self._match or self._match in name}


class _Shared(dict[int, Values]):
    """Counters in shared memory, by process id."""

    def __init__(self, found: Mapping[tuple[str, int], Values]) -> None:
        super().__init__({pid: values for (_, pid), values in found.items()})
        self._clients = {f"{part} {pid}": values for (part, pid), values in found.items() if part == "client"}

    def named_clients(self) -> Iterable[tuple[str, Values]]:
        return sorted(self._clients.items())


def _shared(folder: str) -> _Shared:
    from relay.observability.shared_counters import SHARED_MEMORY_OFF, read_shared_counters

    if folder == SHARED_MEMORY_OFF:
        return _Shared({})
    try:
        return _Shared(read_shared_counters(shared_memory=folder))
    except ImportError:
        return _Shared({})


def _asked(url: str) -> Values | None:
    from relay.supervisor.children import get_json

    try:
        return dict(get_json(url).get("counters", {}))
    except OSError:
        return None


def _watch(source: _Source, before: dict[str, Values], interval_s: float, *, as_json: bool) -> None:
    at_s = time.monotonic()
    with Live(_table(before, {}, 0.0), auto_refresh=False, screen=not as_json) as live:
        while True:
            time.sleep(interval_s)
            now = source.read()
            now_s = time.monotonic()
            if as_json:
                click.echo(json.dumps({"at": time.time(), "parts": now, "rates": _rates(now, before, now_s - at_s)}))
            else:
                live.update(_table(now, before, now_s - at_s), refresh=True)
            before, at_s = now, now_s


def _rates(now: Mapping[str, Values], before: Mapping[str, Values], span_s: float) -> dict[str, dict[str, float]]:
    """Return what has changed, in changes a second."""
    return {
        part: {
            name: round((value - before[part][name]) / span_s, 1)
            for name, value in values.items()
            if value != before.get(part, {}).get(name, value)
        }
        for part, values in now.items()
    }


def _table(parts: Mapping[str, Values], before: Mapping[str, Values], span_s: float) -> Table:
    table = Table("part", "counter")
    table.add_column("value", justify="right")
    if before:
        table.add_column("a second", justify="right")
    rates = _rates(parts, before, span_s) if before else {}
    for part, values in parts.items():
        for name, value in sorted(values.items(), key=lambda one: (one[0] not in rates.get(part, {}), one[0])):
            rate = rates.get(part, {}).get(name)
            row: list[str | Text] = [_cell(part), _cell(name), f"{value:,}"]
            table.add_row(*row, *([f"{rate:,.1f}" if rate is not None else ""] if before else []))
    return table


def _cell(name: str) -> Text:
    """Return a name as it is: brackets are no markup, and other processes may have written anything."""
    return Text(shown_name(name, encoding=sys.stdout.encoding or "utf-8"))
