"""Head and tail of bars as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from relay.protocol.periods import format_period
from relay.protocol.scaled import plain_text
from relay_client.history import Bar

if TYPE_CHECKING:
    from relay_client.history import History

__all__ = ["bars_table"]

_EDGE_ROWS = 5
_NUMBERS = ("open", "high", "low", "close", "volume")


def bars_table(bars: History) -> Table:
    """Return a table of the first and last rows, all rows when there are few."""
    query = bars.query
    title = f"{query.ticker}  {format_period(query.period_seconds)}  {len(bars)} bars  {bars.status}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("start (UTC)", no_wrap=True)
    for name in (*_NUMBERS, "trades"):
        table.add_column(name, justify="right", no_wrap=True)
    # Seconds only where they say something: the table shall fit 80 columns.
    clock = "%Y-%m-%d %H:%M" if query.period_seconds % 60 == 0 else "%Y-%m-%d %H:%M:%S"
    if len(bars) <= 2 * _EDGE_ROWS + 1:
        _add(table, list(bars), clock)
        return table
    _add(table, bars.head(_EDGE_ROWS), clock)
    table.add_row("…", *["…"] * 6)
    _add(table, bars.tail(_EDGE_ROWS), clock)
    return table


def _add(table: Table, bars: list[Bar], clock: str) -> None:
    for bar in bars:
        numbers = [plain_text(getattr(bar, name)) for name in _NUMBERS]
        table.add_row(f"{bar.start:{clock}}", *numbers, "" if bar.trades is None else str(bar.trades))
