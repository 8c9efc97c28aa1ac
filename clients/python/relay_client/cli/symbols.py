"""``relay symbols``: the markets that are known."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.times import format_ns
from relay_client.cli.options import connection_options, json_option, open_client
from relay_client.symbols import Symbol, SymbolState

__all__ = ["command"]


@click.command("symbols")
@click.argument("text", default="")
@click.option("--ticker", default="", help="Exact ticker.")
@click.option("--exchange", default="", help="Exact exchange, such as BINANCE.")
@click.option("--refresh", is_flag=True, help="Ask the exchange again first.")
@click.option("--search", default="", help="Instead of TEXT, which is the exchange then.")
@click.option("--history", "is_history", is_flag=True, help="What the market of --ticker was, and when.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=1_000, show_default=True)
@json_option
@connection_options
def command(
    text: str,
    ticker: str,
    exchange: str,
    limit: int,
    timeout: int | None,
    search: str,
    *,
    refresh: bool,
    is_history: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """List markets whose ticker holds TEXT.

    \b
    relay symbols BTC --exchange BINANCE
    relay symbols BINANCE --search btc
    relay symbols --ticker BTC/USDT.BINANCE --history

    \b
    Exit codes: 0 told (also that there are none), 2 wrong arguments, 3 unknown exchange (with --history
    also an unknown ticker), 4 try again.
    """
    if search:
        exchange, text = exchange or text.upper(), search
    if is_history and not ticker:
        raise click.UsageError("expected --ticker with --history: it is told of one market")
    with open_client(**options) as client:
        if is_history:
            states = client.symbol_history(ticker, timeout=timeout)
            if not states:
                _check_known(ticker, client.symbols(ticker=ticker, limit=1, timeout=timeout))
            _show_history(states, as_json=as_json)
            return
        found = client.symbols(text, ticker=ticker, exchange=exchange, refresh=refresh, limit=limit, timeout=timeout)
    if as_json:
        click.echo(json.dumps([asdict(symbol) for symbol in found]))
        return
    from rich import box
    from rich.table import Table

    from relay.observability.console import table_console

    title = "1 market" if len(found) == 1 else f"{len(found)} markets"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("ticker", "native", "type", "status", "price step", "amount step"):
        table.add_column(name)
    for s in found:
        table.add_row(s.ticker, s.native_symbol, s.market_type, s.status, s.price_increment, s.amount_increment)
    table_console().print(table)


def _check_known(ticker: str, found: list[Symbol]) -> None:
    if not found:
        raise PeerError(
            f"expected a known ticker, got {ticker}; look it up with `relay symbols`", code=ErrorCode.UNKNOWN_SYMBOL
        )
    click.echo(f"nothing is stored yet of what {ticker} was; `relay symbols --ticker` says what it is", err=True)


def _show_history(states: list[SymbolState], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([asdict(state) for state in states]))
        return
    for state in states:
        symbol, end = state.symbol, "now" if state.valid_to_ns is None else format_ns(state.valid_to_ns)
        alias = f", alias of {symbol.alias_of}" if symbol.alias_of else ""
        steps = f"price step {symbol.price_increment or 'unknown'}, amount step {symbol.amount_increment or 'unknown'}"
        click.echo(
            f"{format_ns(state.valid_from_ns)} to {end}: {symbol.status}{alias}, {symbol.native_symbol}, {steps}"
        )
