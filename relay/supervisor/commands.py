"""``relay up``, ``relay down`` and ``relay status``."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import psutil
from rich.console import Console

from relay.config import load_settings
from relay.errors import RetryableError, SettingsError
from relay.observability.console import table_console
from relay.supervisor.children import get_json
from relay.supervisor.data_folder import read_state
from relay.supervisor.own_command import own_command
from relay.supervisor.plan import RELAY
from relay.supervisor.settings import UpSettings
from relay.supervisor.status_page import describe_part, parts_table, queries_table
from relay.supervisor.supervise import Supervisor

__all__ = ["down", "status", "up"]

_FIRST_TICKER = "BTC/USDT.BINANCE"
_DATA = click.option("--data", "data_folder", type=click.Path(path_type=Path), help="Data folder.  [default: .data]")
_CONFIG = click.option("--config", type=click.Path(path_type=Path), help="Settings file (TOML, table [up]).")


@click.command("up")
@_DATA
@_CONFIG
@click.option("--live", is_flag=True, default=None, help="Fetch from the real exchanges (needs the internet).")
@click.option("--replay", "replay_file", type=click.Path(path_type=Path), help="Serve a recording instead.")
@click.option("--ticker", "replay_ticker", help="Ticker of the recording, e.g. XRP/ETH.BINANCE.")
@click.option("--seed", type=int, help="Seed of the simulated market.")
@click.option("--once", is_flag=True, help="End with 0 after the first result.")
@click.option("--no-first-request", is_flag=True, help="Only start the parts.")
def up(*, config: Path | None, once: bool, no_first_request: bool, **overrides: Any) -> None:
    """Run the whole platform on this machine, without a container engine.

    Starts the simulated exchange (or --live, or --replay FILE --ticker T), Kafka, gateway, manager, ingestor and the
    Spark job under one data folder, asks for a first piece of history, and stays until Ctrl-C. A second start
    goes on with the same data.

    \b
    Exit codes: 0 stopped (or --once: first result shown), 1 a part failed, 2 wrong settings or a taken port,
    4 not ready in time.
    """
    settings = load_settings(UpSettings, overrides=overrides, config_file=config)
    _check_replay(settings)
    console = Console(stderr=True, highlight=False)
    started_s = time.monotonic()

    def say(text: str) -> None:
        console.print(f"[dim]{time.monotonic() - started_s:6.1f} s[/dim]  {text}")

    supervisor = Supervisor(settings, say)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: supervisor.request_stop())
    code = 0
    try:
        supervisor.prepare()
        supervisor.start()
        if not supervisor.stopping and not no_first_request:
            code = _first_request(settings, supervisor, say)
        if not (once or supervisor.stopping):
            _say_what_next(settings, console)
            supervisor.archive_classes()
            supervisor.stay()
    finally:
        say("stopping")
        supervisor.stop()
    raise SystemExit(code)


@click.command("down")
@_DATA
@_CONFIG
def down(*, config: Path | None, **overrides: Any) -> None:
    """Stop a running ``relay up`` and wait until all its parts have ended."""
    settings = load_settings(UpSettings, overrides=overrides, config_file=config)
    state = read_state(settings.data_folder)
    if state is None:
        click.echo(f"nothing runs on {settings.data_folder.resolve()}")
        return
    if state["pid"] is None:
        raise RetryableError(f"the relay up on {settings.data_folder.resolve()} starts or ends just now; try again")
    with suppress(psutil.NoSuchProcess):
        psutil.Process(state["pid"]).send_signal(signal.SIGTERM)
    deadline_s = time.monotonic() + settings.stop_seconds + 10
    # The lock is free when the supervisor is gone, whoever its parent is and whether it has been waited for.
    while read_state(settings.data_folder) is not None:
        if time.monotonic() > deadline_s:
            raise RetryableError(f"relay up (pid {state['pid']}) has not ended yet; look at its terminal")
        time.sleep(0.1)
    click.echo("stopped")


@click.command("status")
@_DATA
@_CONFIG
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def status(*, config: Path | None, as_json: bool, **overrides: Any) -> None:
    """Show every part of a running platform: health, memory, restarts, log; of each streaming query rates and lag.

    Exit codes: 0 all ready, 1 something is not ready or nothing runs.
    """
    settings = load_settings(UpSettings, overrides=overrides, config_file=config)
    state = read_state(settings.data_folder)
    parts = [describe_part(part) for part in (state or {}).get("parts", [])]
    if as_json:
        click.echo(json.dumps({"running": state is not None, "parts": parts}))
    elif state is None:
        click.echo(f"nothing runs on {settings.data_folder.resolve()}; start it with: {own_command()} up")
    else:
        table_console().print(parts_table(parts))
        if (queries := queries_table(parts)) is not None:
            table_console().print(queries)
    raise SystemExit(0 if parts and all(part["health"] == "ready" for part in parts) else 1)


def _check_replay(settings: UpSettings) -> None:
    if settings.replay_file is not None and not settings.replay_file.is_file():
        raise SettingsError(f"expected a recording at {settings.replay_file}, but there is no such file")
    if (settings.replay_file is None) != (not settings.replay_ticker):
        raise SettingsError("--replay FILE and --ticker T go together")
    if settings.live and settings.replay_file is not None:
        raise SettingsError("--live and --replay exclude each other")


def _first_request(settings: UpSettings, supervisor: Supervisor, say: Any) -> int:
    """Ask for history by the client's own command: the supervisor only starts processes."""
    ticker = settings.replay_ticker or _FIRST_TICKER
    command = [*RELAY, "history", ticker, *_first_range(settings)]
    say(f"first request: relay {' '.join(command[3:])}")
    environment = {**os.environ, "RELAY_CONFIG": str(supervisor.config_file)}
    child = subprocess.Popen(command, env=environment, start_new_session=True)
    while child.poll() is None and not supervisor.stopping:
        supervisor.look_after()
        try:
            child.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    if child.poll() is None:
        child.terminate()
        child.wait()
    say("first result is there" if child.returncode == 0 else f"the first request ended with {child.returncode}")
    return 0 if supervisor.stopping else int(child.returncode)


def _first_range(settings: UpSettings) -> list[str]:
    if settings.replay_file is None:
        return ["--last", "2h", "--period", "1m"]
    url = f"http://{settings.host}:{settings.ports.simulation}/control/health"
    recording = get_json(url)["recordings"][0]
    return ["--start", recording["start"], "--end", recording["end"], "--period", f"{recording['period_seconds']}s"]


def _say_what_next(settings: UpSettings, console: Console) -> None:
    data = "" if settings.data_folder == Path(".data") else f" --data {shlex.quote(str(settings.data_folder))}"
    relay = own_command()
    console.print(
        "\n[bold]The platform is up.[/bold] In another terminal:\n"
        f"  {relay} history ETH/USDT.BINANCE --last 6h --period 5m\n"
        f"  {relay} history BTC/USD.KRAKEN --last 1d --period 15m --output bars.parquet\n"
        f"  {relay} watch BTC/USDT.BINANCE BTC/USD.KRAKEN\n"
        f"  {relay} symbols --exchange COINBASE\n"
        f"  {relay} status{data}\n"
        f"Logs: {settings.data_folder / 'logs'}   Stop: Ctrl-C"
    )
