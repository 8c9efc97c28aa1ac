"""Options that the client's commands share, and the connection that they make."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from relay_client.client import Client

__all__ = ["connection_options", "json_option", "open_client", "range_options"]

_PATIENCE_S = 2.0
_DEADLINES = "Deadline of the command. [default: 30 until the relay answers, 900 until bars are there; settings]"
F = TypeVar("F", bound=Callable[..., Any])


def connection_options(command: F) -> F:
    """Add the options that say where the relay is."""
    options = (
        click.option("--host", help="Host of the relay. [default: RELAY_CLIENT_HOST, the file, 127.0.0.1]"),
        click.option("--request-port", type=click.IntRange(1, 65_535), help="[default: 5559]"),
        click.option("--subscribe-port", type=click.IntRange(1, 65_535), help="[default: 5558]"),
        click.option("--config", type=click.Path(path_type=Path), help="Settings file (TOML, table [client])."),
        click.option("--timeout", type=click.IntRange(1, 86_400), metavar="SECONDS", help=_DEADLINES),
    )
    for option in reversed(options):
        command = option(command)
    return command


def range_options(command: F) -> F:
    """Add the options that say which bars."""
    times = "ISO 8601 with Z or an offset; a date alone is midnight UTC"
    options = (
        click.argument("ticker"),
        click.option("--start", help=f"First bar start: {times}."),
        click.option("--end", help="Bars start before it. [default: now]"),
        click.option("--last", metavar="SPAN", help="Instead of --start: 15m, 1h, 7d before the end."),
        click.option("--period", default="1m", show_default=True, help="1m, 4h, 1d, 1w or whole seconds."),
        click.option("--limit", type=click.IntRange(1), help="Only the first N bars from the start."),
    )
    for option in reversed(options):
        command = option(command)
    return command


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines; numbers as text.")


def open_client(
    *, host: str | None, request_port: int | None, subscribe_port: int | None, config: Path | None
) -> Client:
    """Return a client by command line, environment and file.

    A terminal's standard error is told when the relay lets it wait.
    """
    client = Client(host, request_port=request_port, subscribe_port=subscribe_port, config_file=config)
    if sys.stderr.isatty():
        timer = threading.Timer(_PATIENCE_S, _tell_waiting, [weakref.ref(client)])
        timer.daemon = True
        timer.start()
    return client


def _tell_waiting(known: Callable[[], Client | None]) -> None:
    """Say that the relay has not answered yet; nothing of a client that has heard of it or is gone."""
    client = known()
    if client is not None and not client.counters().get("barrier_passed"):
        click.echo("waiting for the relay (does it run? relay status; another address: --host)", err=True)
