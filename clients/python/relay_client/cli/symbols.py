"""``relay symbols``: the markets that are known."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from relay_client.cli.options import connection_options, json_option, open_client

__all__ = ["command"]


@click.command("symbols")
@click.argument("text", default="")
@click.option("--ticker", default="", help="Exact ticker.")
@click.option("--exchange", default="", help="Exact exchange, such as BINANCE.")
@click.option("--refresh", is_flag=True, help="Ask the exchange again first.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=1_000, show_default=True)
@json_option
@connection_options
def command(
    text: str,
    ticker: str,
    exchange: str,
    limit: int,
    timeout: int | None,
    *,
    refresh: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """List markets whose ticker holds TEXT.

    \b
    relay symbols BTC --exchange BINANCE

    \b
    Exit codes: 0 told (also that there are none), 2 wrong arguments, 3 unknown exchange, 4 try again.
    """
    with open_client(**options) as client:
        found = client.symbols(text, ticker=ticker, exchange=exchange, refresh=refresh, limit=limit, timeout=timeout)
    if as_json:
        click.echo(json.dumps([asdict(symbol) for symbol in found]))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{len(found)} markets", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("ticker", "native", "type", "status", "price step", "amount step"):
        table.add_column(name)
    for s in found:
        table.add_row(s.ticker, s.native_symbol, s.market_type, s.status, s.price_increment, s.amount_increment)
    Console().print(table)
