"""``python -m benchmarks [NAME …]``: measure, write JSON, print a table."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from benchmarks.report import RESULTS

NAMES = (
    "submit_ack",
    "fan_out",
    "fan_out_local",
    "churn",
    "decode_merge",
    "read_bars",
    "history_latency",
    "memory",
    "live_parse",
    "websocket_library",
    "live_latency",
    "sdk_ticks",
    "triggers",
    "live_bars",
    "bar_states",
    "job_costs",
    "maintenance",
    "rings",
    "codecs",
)


@click.command("benchmarks")
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
@click.option("--quick", is_flag=True, help="A short smoke of each; its numbers mean little.")
@click.option(
    "--output", default=RESULTS, type=click.Path(path_type=Path, file_okay=False), help="Folder for the JSON files."
)
def command(names: tuple[str, ...], quick: bool, output: Path) -> None:
    """Measure the platform; without names all of it, one after another."""
    for name in names or NAMES:
        report = importlib.import_module(f"benchmarks.{name}").run(quick=quick)
        path = report.save(quick=quick, folder=output)
        click.echo("\n".join(report.lines()))
        click.echo(f"  written: {path}")


if __name__ == "__main__":
    command(prog_name="python -m benchmarks")
