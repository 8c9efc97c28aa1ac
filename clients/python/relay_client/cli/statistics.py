"""``relay statistics``: the last 24 hours of an exchange's markets."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import click

from relay.protocol.scaled import plain_text
from relay.protocol.times import format_ns
from relay_client.cli.options import connection_options, json_option, open_client
from relay_client.statistics import ROW_COLUMNS, ExchangeStatistics, TickerStatistics

__all__ = ["command"]


@click.command("statistics")
@click.argument("exchange")
@click.option("--quote", default="", help="Only markets of this quote asset, such as USDT.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="The N most traded.")
@json_option
@connection_options
def command(exchange: str, quote: str, limit: int, timeout: int | None, *, as_json: bool, **options: Any) -> None:
    """Show the last 24 hours of the markets of EXCHANGE, the most traded (in USD) first.

    \b
    relay statistics BINANCE --quote USDT

    What an exchange does not send is empty: Kraken sends no open and so no change, Coinbase no quote volume and so none
    in USD.

    \b
    Exit codes: 0 told, 2 wrong arguments, 3 unknown exchange, 4 try again.
    """
    with open_client(**options) as client:
        found = client.statistics(exchange, timeout=timeout)
    rows = [row for row in found if not quote or row.quote == quote.upper()]
    rows.sort(key=lambda row: (row.usd_volume is None, -(row.usd_volume or 0), row.ticker))
    if as_json:
        click.echo(json.dumps(_object(found, rows[:limit])))
        return
    _show(found, rows, limit)


def _object(found: ExchangeStatistics, rows: list[TickerStatistics]) -> dict[str, object]:
    return {
        "exchange": found.exchange,
        "generated_at": format_ns(found.generated_at_ns),
        "rates": {
            rate.currency: {"usd": plain_text(rate.rate), "path": list(rate.path), "time": _text(rate.time)}
            for rate in found.rates.values()
        },
        "rows": [{name: _text(getattr(row, name)) for name in ROW_COLUMNS} for row in rows],
    }


def _show(found: ExchangeStatistics, rows: list[TickerStatistics], limit: int) -> None:
    from rich import box
    from rich.table import Table

    from relay.observability.console import table_console

    shown = "" if len(rows) <= limit else f", the {limit} most traded"
    noun = "market" if len(rows) == 1 else "markets"
    title = f"{found.exchange}: {len(rows)} {noun}{shown}; {format_ns(found.generated_at_ns)}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("ticker", "last", "change %", "high", "low", "volume", "USD volume", "trades"):
        table.add_column(name, justify="left" if name == "ticker" else "right")
    for row in rows[:limit]:
        numbers = (row.last, row.change_percent, row.high, row.low, row.volume, row.usd_volume, row.trades)
        table.add_row(row.ticker, *("" if number is None else str(_text(number)) for number in numbers))
    table_console().print(table)


def _text(value: object) -> object:
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, Decimal):
        return plain_text(value)
    return str(value.isoformat()).replace("+00:00", "Z") if hasattr(value, "isoformat") else str(value)
