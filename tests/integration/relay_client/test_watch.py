"""``relay watch``."""

from __future__ import annotations

import json
import os
import signal
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq

from relay_client import Tick
from relay_client.cli.watch_view import TickerStats, WatchView
from tests.support.client_world import BTC, GatewayWorld
from tests.support.commands import run_command
from tests.support.live_world import BTC_TICK, tick
from tests.support.processes import Process, wait_until


def watch(world: GatewayWorld, folder: Path, *arguments: str) -> Process:
    command = [sys.executable, "-c", "from relay.cli import main; main()", "watch", *arguments]
    return Process(command, log=folder / "watch.log", environment=addresses(world))


def addresses(world: GatewayWorld) -> dict[str, str]:
    return {
        "RELAY_CLIENT_REQUEST_PORT": str(world.ports["request"]),
        "RELAY_CLIENT_SUBSCRIBE_PORT": str(world.ports["subscribe"]),
    }


def ended(process: Process) -> int:
    wait_until(lambda: process.returncode is not None, what="the command to end")
    return process.returncode


def test_json_lines_tell_each_tick_with_exact_numbers(world, live, tmp_path):
    process = watch(world, tmp_path, BTC, "--json", "--count", "2")
    live.until_subscribed(BTC_TICK)
    live.trade([1, 2, 3])
    assert ended(process) == 0, process.tail()
    lines = [json.loads(line) for line in process.log.read_text().splitlines() if line.startswith("{")]
    assert [(line["trade_id"], line["price"], line["amount"]) for line in lines] == [
        ("1", "42.14", "1.0000001"),
        ("2", "42.15", "1.0000002"),
    ]


def test_ctrl_c_leaves_a_whole_file_and_ends_with_130(world, live, tmp_path):
    path = tmp_path / "ticks.parquet"
    process = watch(world, tmp_path, BTC, "--output", str(path), "--json")
    live.until_subscribed(BTC_TICK)
    live.trade([1, 2, 3])
    wait_until(lambda: process.log.read_text().count("trade_id") == 3, what="three ticks")
    os.kill(process.pid, signal.SIGINT)
    assert ended(process) == 130, process.tail()
    assert pq.read_table(path).column("price").to_pylist() == [Decimal("42.14"), Decimal("42.15"), Decimal("42.16")]
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".unfinished")] == []


def test_an_unknown_ticker_ends_with_3_a_wrong_argument_with_2_and_a_silent_relay_with_4(world, live):
    def exit_code(*arguments: str) -> int:
        return run_command(["watch", *arguments], environment=addresses(world)).returncode

    assert exit_code("NO/SUCH.BINANCE") == 3
    assert exit_code() == 2
    assert exit_code(BTC, "--output", "ticks.csv") == 2
    world.gateway.kill()
    assert exit_code(BTC, "--timeout", "1") == 4


def test_after_its_seconds_it_ends_well_without_a_tick(world, live):
    done = run_command(["watch", BTC, "--seconds", "1"], environment=addresses(world))
    assert done.returncode == 0
    assert "nothing received" in done.stdout + done.stderr


def test_bars_that_do_not_come_are_told_of_at_the_end(world, live):
    done = run_command(["watch", "--topics", f"{BTC}|ohlc:60", "--seconds", "1"], environment=addresses(world))
    assert done.returncode == 0
    assert f"{BTC}|ohlc:60: no bar has come" in done.stderr
    assert "relay job bars" in done.stderr


def test_the_table_shows_price_size_rate_latency_and_state(world, live):
    with world.client() as client, client.subscribe(BTC) as subscription:
        live.until_subscribed(BTC_TICK)
        live.beat()
        live.trade([1])
        item = next(subscription)
        view = WatchView(subscription)
        view.update(item, subscription.events())
        from rich.console import Console

        console = Console(width=140, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
        console.print(view.render())
        shown = console.export_text()
        assert all(text in shown for text in (BTC, "42.14", "1.0000001", "state"))


def test_rate_and_latency_are_of_live_ticks():
    stats, message = TickerStats(), tick(1)
    message.stamp.published_at = message.received_at + 1_000_000
    for number in range(10):
        stats.add(Tick(message), message.received_at + 2_000_000 + number)
    assert stats.rate(message.received_at + 3_000_000) == 2
    assert stats.row(message.received_at)[4:6] == ["2.0/2.0 ms", "1.0/1.0 ms"]
