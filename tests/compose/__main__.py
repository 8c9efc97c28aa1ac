"""``python -m tests.compose``: build, up, history from the host, down, up again, the same data without a fetch.

Prints its figures as JSON. It uses the engine that answers; ``--own-engine`` brings one up and ends it again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import click

from relay_client import Client, History, RequestStatus, Tick
from tests.compose.engine import BASE_IMAGE, engine_answers, make_base_image, own_engine
from tests.compose.shell import Shell
from tests.compose.stack import Stack
from tests.compose.standins import fill_standins

_REPOSITORY = Path(__file__).resolve().parents[2]
_TICKER = "BTC/USDT.BINANCE"
_MINUTES = 120
_TICKS = 5
_CLIENT = f"""
import json, os
os.environ["RELAY_CLIENT_SHARED_MEMORY"] = "/run/market-relay"
from relay_client import Client, Tick
trade_ids = []
with Client(host="gateway") as client, client.subscribe({_TICKER!r}) as subscription:
    for item in subscription:
        if subscription.transport == "shm" and isinstance(item, Tick):
            trade_ids.append(item.trade_id)
        if len(trade_ids) == {_TICKS}:
            break
    print(json.dumps(trade_ids))
"""
"""A client in a container that shares the gateway's memory: prints what it got by that alone, or never ends."""


@click.command()
@click.option("--own-engine", is_flag=True, help="Start dockerd when none answers (root on Debian; implies --offline).")
@click.option("--offline", is_flag=True, help="Pull no image: stand-ins for third-party services, a base of Debian.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=_REPOSITORY / ".cache" / "compose",
    help="What is fetched, built and logged; kept, so that the next run is quick.",
)
@click.option("--output", type=click.Path(path_type=Path), help="Also write the figures here.")
def main(*, own_engine: bool, offline: bool, folder: Path, output: Path | None) -> None:
    """Run the platform in containers and check that its data outlives them.

    \b
    Exit codes: 0 all as expected, 1 something was not (the log says what), 2 no container engine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shell = Shell(folder / "compose-test.log")
    with ExitStack() as stack:
        if not engine_answers(shell):
            if not own_engine:
                click.echo("expected a container engine with Compose v2, none answers; start one, or say --own-engine")
                sys.exit(2)
            shell, offline = stack.enter_context(_engine(shell, folder)), True
        figures = _run(shell, folder, offline=offline)
    text = json.dumps(figures, indent=2)
    click.echo(text)
    if output is not None:
        output.write_text(text + "\n")


@contextmanager
def _engine(shell: Shell, folder: Path) -> Iterator[Shell]:
    _say("starting a container engine")
    with own_engine(shell, folder) as talking:
        yield talking
        _say("stopping the container engine")


def _run(shell: Shell, folder: Path, *, offline: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {"offline": offline}
    files: tuple[str, ...] = ("docker-compose.yml",)
    if offline:
        _say("preparing the base image and the stand-ins")
        with _timed(figures, "prepare_seconds"):
            make_base_image(shell, folder)
            standins = fill_standins(shell, _REPOSITORY, folder / "standins")
        files = (*files, "docker/compose.offline.yml")
        shell = shell.with_environment({"BASE_IMAGE": BASE_IMAGE, "STANDINS": str(standins)})
    platform = Stack(shell, _REPOSITORY, f"market-relay-test-{os.getpid()}", files)
    _say("building")
    with _timed(figures, "build_seconds"):
        platform.compose("build")
    try:
        _first_life(platform, figures)
        _second_life(platform, figures)
    except BaseException:
        _keep_logs(platform)
        raise
    finally:
        _say("down, with the volumes")
        platform.compose("down", "--volumes", "--remove-orphans")
    assert not platform.containers(), "down left containers"
    assert not platform.volumes(), "down --volumes left volumes"
    figures.pop("first")
    return figures


def _first_life(platform: Stack, figures: dict[str, Any]) -> None:
    _say("up")
    with _timed(figures, "up_seconds"):
        platform.compose("up", "-d", "--wait", "--no-build")
    figures["image_mebibytes"] = platform.image_mebibytes()
    _say(f"asking for {_MINUTES} bars of {_TICKER}")
    with _timed(figures, "first_request_seconds"):
        bars = _history(platform)
    _check(bars)
    assert bars.requests, "expected the first request to be fetched from the exchange"
    assert platform.pages_fetched() > 0
    with _timed(figures, "repeated_read_seconds"):
        again = _history(platform)
    assert not again.requests
    figures["rows"] = len(bars)
    _ticks(platform, figures)
    figures["memory_mebibytes"] = platform.memory_mebibytes()
    figures["memory_total_mebibytes"] = sum(figures["memory_mebibytes"].values())
    figures["first"] = bars
    _say("down; the volumes stay")
    with _timed(figures, "down_seconds"):
        platform.compose("down")
    assert platform.volumes(), "down took the volumes along"


def _second_life(platform: Stack, figures: dict[str, Any]) -> None:
    _say("up again")
    with _timed(figures, "second_up_seconds"):
        platform.compose("up", "-d", "--wait", "--no-build")
    with _timed(figures, "second_life_read_seconds"):
        bars = _history(platform)
    first: History = figures["first"]
    assert bars.to_arrow().equals(first.to_arrow()), "the bars are not the ones from before"
    assert not bars.requests, "the data was asked for again"
    assert platform.pages_fetched() == 0, "the data was fetched again"
    _say("and a range that is new")
    with _timed(figures, "second_life_request_seconds"):
        _check(_history(platform, days_ago=3), days_ago=3)


def _ticks(platform: Stack, figures: dict[str, Any]) -> None:
    """Ticks come out by TCP on the host and by shared memory in a container, and came to the gateway by a ring."""
    _say("live ticks, on the host and beside the gateway")
    with Client(settings=platform.client_settings()) as client, client.subscribe(_TICKER) as subscription:
        ticks = (item for item in subscription if isinstance(item, Tick))
        _check_ticks([tick.trade_id for tick in islice(ticks, _TICKS)])
        assert subscription.transport == "tcp", "the host has no part in the containers' memory"
        _check_ticks(json.loads(platform.run_python("ingestor", _CLIENT)))
        counters = platform.counters("gateway", 9101)
    figures["ticks_by_ring"] = counters.get("fast_path.by_ring", 0)
    assert counters.get("fast_path.rings") == 1, counters
    assert figures["ticks_by_ring"] > 0, counters


def _check_ticks(trade_ids: list[str]) -> None:
    assert len(trade_ids) == _TICKS
    numbers = [int(trade_id) for trade_id in trade_ids]
    assert numbers == list(range(numbers[0], numbers[0] + _TICKS)), numbers


def _history(platform: Stack, *, days_ago: int = 2) -> History:
    start, end = _range(days_ago)
    with Client(settings=platform.client_settings()) as client:
        return client.history(_TICKER, start=start, end=end, period="1m", timeout=300)


def _check(bars: History, *, days_ago: int = 2) -> None:
    start, _ = _range(days_ago)
    assert bars.status is RequestStatus.OK, (bars.status, bars.warning)
    assert not bars.missing, bars.missing
    assert [bar.start for bar in bars] == [start + timedelta(minutes=n) for n in range(_MINUTES)]
    assert all(bar.low <= min(bar.open, bar.close) <= max(bar.open, bar.close) <= bar.high for bar in bars)


def _range(days_ago: int) -> tuple[datetime, datetime]:
    # Whole days before the process began, so that midnight between two calls changes nothing.
    start = _STARTED.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days_ago)
    return start, start + timedelta(minutes=_MINUTES)


def _keep_logs(platform: Stack) -> None:
    for arguments in (("ps", "--all"), ("logs", "--no-color", "--tail", "200")):
        try:
            platform.compose(*arguments)
        except SystemExit as failure:
            _say(str(failure))
    _say(f"it failed; the containers' words are in {platform.shell.log}")


@contextmanager
def _timed(figures: dict[str, Any], name: str) -> Iterator[None]:
    started_s = time.monotonic()
    yield
    figures[name] = round(time.monotonic() - started_s, 1)


def _say(text: str) -> None:
    click.echo(f"{time.monotonic() - _STARTED_S:7.1f} s  {text}", err=True)


_STARTED, _STARTED_S = datetime.now(UTC), time.monotonic()

if __name__ == "__main__":
    main()
