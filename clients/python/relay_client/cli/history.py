"""``relay history``: bars in the terminal or in a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.ranges import Range
from relay.protocol.times import format_ns
from relay_client.cli.options import connection_options, json_option, open_client, range_options

if TYPE_CHECKING:
    from relay_client.history import History
    from relay_client.outcome import Progress

__all__ = ["command"]

EXIT_PARTIAL = 5
_RANGES_SHOWN = 5


@click.command("history")
@range_options
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to FILE.csv, .parquet, .arrow or .json instead of showing.",
)
@json_option
@click.option("--chart/--no-chart", default=None, help="[default: only in a terminal]")
@click.option("--strict", is_flag=True, help=f"End with {EXIT_PARTIAL} when something is missing that could exist.")
@connection_options
def command(
    ticker: str,
    output: Path | None,
    timeout: int | None,
    *,
    as_json: bool,
    chart: bool | None,
    strict: bool,
    **options: Any,
) -> None:
    """Show bars of TICKER: what the tables hold, and what is missing there fetched first.

    \b
    relay history BTC/USDT.BINANCE --last 1h
    relay history BTC/USDT.BINANCE --start 2026-01-01 --end 2026-02-01 --period 1h --output january.parquet

    \b
    Exit codes: 0 bars, also when some are missing (said on standard error) or there are none; 2 wrong arguments;
    3 refused (unknown ticker); 4 try again (something is away, or the deadline passed); 5 with --strict when
    something is missing.
    """
    from relay_client.cli.output import check_format, write_file, write_json

    if output is not None:
        check_format(output)
    asked = {name: options.pop(name) for name in ("start", "end", "last", "period", "limit")}
    with open_client(**options) as client, _progress() as on_progress:
        bars = client.history(ticker, **asked, timeout=timeout, on_progress=on_progress)
    _check_known(bars)
    if output is not None:
        write_file(bars, output)
        click.echo(f"{len(bars)} bars written to {output}", err=True)
    if as_json:
        write_json(bars, sys.stdout)
    elif output is None:
        _show(bars, chart=sys.stdout.isatty() if chart is None else chart)
    _tell_missing(bars)
    if strict and bars.status == "PARTIAL":
        raise SystemExit(EXIT_PARTIAL)


def _check_known(bars: History) -> None:
    """Raise where nothing is stored of the ticker and its exchange says that there is no such market."""
    unknown = [outcome for outcome in bars.requests if outcome.error_code == ErrorCode.UNKNOWN_SYMBOL]
    if unknown and not len(bars):
        raise PeerError(
            f"expected a known ticker, got {bars.query.ticker}: {unknown[0].error_message or 'its exchange has none'}; "
            "look it up with `relay symbols`",
            code=ErrorCode.UNKNOWN_SYMBOL,
        )


@contextmanager
def _progress() -> Iterator[Callable[[Progress], object] | None]:
    """A bar on a terminal's standard error, else nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich_progress
    from rich.console import Console

    columns = (
        rich_progress.TextColumn("fetching"),
        rich_progress.BarColumn(),
        rich_progress.TextColumn("{task.description}"),
        rich_progress.TimeElapsedColumn(),
    )
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", start=False, visible=False)

        def update(progress: Progress) -> None:
            shown.start_task(task)
            shown.update(
                task,
                visible=True,
                total=progress.wanted_ns or None,
                completed=progress.covered_ns,
                description=f"{progress.requests_done} of {progress.requests_total} requests",
            )

        yield update


def _show(bars: History, *, chart: bool) -> None:
    from rich.console import Console

    from relay.observability.console import table_console
    from relay_client.cli.chart import draw_chart
    from relay_client.cli.table import bars_table

    console = Console()
    table_console().print(bars_table(bars))
    if chart and len(bars):
        sys.stdout.write(
            draw_chart(bars.to_arrow(), width=console.width, height=max(10, min(24, console.height // 2))) + "\n"
        )


def _tell_missing(bars: History) -> None:
    if bars.missing:
        spans = ", ".join(map(_span, bars.missing[:_RANGES_SHOWN]))
        more = len(bars.missing) - _RANGES_SHOWN
        click.echo(f"missing: {spans}" + (f" and {more} more" if more > 0 else ""), err=True)
    if bars.warning:
        click.echo(f"because: {bars.warning}", err=True)
    elif bars.missing:
        click.echo("these bars are not closed yet", err=True)


def _span(span: Range) -> str:
    return f"{format_ns(span.start_ns)} to {format_ns(span.end_ns)}"
