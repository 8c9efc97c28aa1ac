"""``relay watch``: live ticks in the terminal, as JSON lines, or into a Parquet file."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from relay.errors import SettingsError
from relay.protocol.scaled import plain_text
from relay.protocol.times import format_ns
from relay_client.cli.event_words import event_words
from relay_client.cli.options import connection_options, json_option, open_client
from relay_client.cli.silence_words import Silence
from relay_client.engine.items import Tick
from relay_client.history import Bar

if TYPE_CHECKING:
    from relay_client.cli.tick_file import TickFile
    from relay_client.cli.watch_view import WatchView
    from relay_client.subscription import Subscription

__all__ = ["command"]

_TURN_S = 0.1
_BAR_NUMBERS = ("open", "high", "low", "close", "volume")


@click.command("watch")
@click.argument("tickers", nargs=-1)
@click.option("--topics", multiple=True, metavar="TOPIC,…", help="Further topics, such as BTC/USDT.BINANCE|ohlc:60.")
@click.option("--start", metavar="TIME", help="Ticks since then first: ISO 8601 with Z or an offset.")
@click.option("--strict", is_flag=True, help="In the order of trade ids; waits for what is missing.")
@click.option("--count", type=click.IntRange(1), help="End after N ticks or bars.")
@click.option("--seconds", type=click.IntRange(1, 31_536_000), help="End after S seconds.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the ticks to FILE.parquet.")
@json_option
@connection_options
def command(
    tickers: tuple[str, ...],
    topics: tuple[str, ...],
    start: str | None,
    count: int | None,
    seconds: int | None,
    output: Path | None,
    timeout: int | None,
    *,
    strict: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Watch the live trades of TICKERS: a table in a terminal, or one JSON line a tick.

    \b
    relay watch BTC/USDT.BINANCE ETH/USDT.BINANCE
    relay watch BTC/USDT.BINANCE --json --count 1000
    relay watch BTC/USDT.BINANCE --output ticks.parquet --seconds 3600

    \b
    Losses, gaps and states are said on standard error. Ctrl-C ends it; a file is whole then, too.
    Exit codes: 0 done, 2 wrong arguments, 3 refused (unknown ticker), 4 try again, 130 Ctrl-C.
    """
    asked = [*tickers, *(topic for text in topics for topic in text.split(",") if topic)]
    if not asked:
        raise click.UsageError("expected at least one TICKER or --topics, got none")
    if output is not None and output.suffix != ".parquet":
        raise SettingsError(f"expected a file name that ends in .parquet, got {output.name!r}")
    with (
        open_client(**options) as client,
        client.subscribe(asked, start=start, order="strict" if strict else "arrival", timeout=timeout) as subscription,
        _file(output) as file,
        _view(subscription, is_shown=not as_json and sys.stdout.isatty()) as view,
    ):
        is_told = as_json or (view is None and file is None)
        items = _noted(_taken(subscription, count, seconds), Silence(asked), view)
        _watch(items, subscription, view, file, is_told=is_told, as_json=as_json)


def _taken(subscription: Subscription, count: int | None, seconds: int | None) -> Iterator[Any]:
    """Yield data until the bounds are reached or the subscription ends; None after each quiet moment."""
    end = None if seconds is None else time.monotonic() + seconds
    found = 0
    while (count is None or found < count) and (end is None or time.monotonic() < end):
        item = subscription.next(timeout=_TURN_S)
        if item is None and subscription.is_closed:
            return
        found += item is not None
        yield item


def _noted(items: Iterator[Any], silence: Silence, view: WatchView | None) -> Iterator[Any]:
    """Pass items on, and say what does not come: while it is missing, else at the end."""
    began = time.monotonic()
    for item in items:
        silence.take(item)
        for words in silence.words(time.monotonic() - began):
            if view is not None:
                view.say(words)
            else:
                click.echo(words, err=True)
        yield item
    for words in silence.words(math.inf):
        click.echo(words, err=True)


def _watch(
    items: Iterator[Any],
    subscription: Subscription,
    view: WatchView | None,
    file: TickFile | None,
    *,
    is_told: bool,
    as_json: bool,
) -> None:
    for item in items:
        if item is not None and file is not None and isinstance(item, Tick):
            file.append(item)
        if item is not None and is_told:
            click.echo(json.dumps(_as_json(item)) if as_json else _as_text(item))
        events = subscription.events()
        if view is not None:
            view.update(item, events)
            continue
        for words in filter(None, map(event_words, events)):
            click.echo(words, err=True)
    counted = ", ".join(f"{name} {number}" for name, number in subscription.counters().items() if number)
    click.echo(counted or "nothing received", err=True)


@contextmanager
def _view(subscription: Subscription, *, is_shown: bool) -> Iterator[WatchView | None]:
    if not is_shown:
        yield None
        return
    from relay_client.cli.watch_view import WatchView

    with WatchView(subscription) as view:
        yield view


def _file(path: Path | None) -> Any:
    if path is None:
        return nullcontext(None)
    from relay_client.cli.tick_file import TickFile

    return TickFile(path)


def _as_json(item: Any) -> dict[str, object]:
    """Return a tick or bar for machines: numbers as exact decimal text."""
    if isinstance(item, Tick):
        return {
            "ticker": item.ticker,
            "trade_id": item.trade_id,
            "time": format_ns(item.time_ns),
            "price": item.price_text,
            "amount": item.amount_text,
            "taker_buy": item.taker_buy,
            "received_at": format_ns(item.received_ns) if item.received_ns else None,
            "backfill": item.backfill,
            "origin": str(item.origin),
        }
    if isinstance(item, Bar):
        numbers = {name: plain_text(getattr(item, name)) for name in ("open", "high", "low", "close", "volume")}
        head = {"ticker": item.ticker, "period_seconds": item.period_seconds, "start": item.start.isoformat()}
        return {**head, **numbers, "trades": item.trades, "is_final": item.is_final, "revision": item.revision}
    return {name: str(getattr(item, name)) for name in item.__slots__}


def _as_text(item: Any) -> str:
    if isinstance(item, Tick):
        side = "buy " if item.taker_buy else "sell"
        how = "" if str(item.origin) == "live" and not item.backfill else f"  {item.origin}"
        return f"{format_ns(item.time_ns)}  {item.ticker}  {side} {item.amount_text} at {item.price_text}{how}"
    if isinstance(item, Bar):
        numbers = "  ".join(f"{name} {plain_text(getattr(item, name))}" for name in _BAR_NUMBERS)
        state = f"final, revision {item.revision}" if item.is_final else "running"
        period = f"{item.period_seconds} s"
        return f"{item.start:%Y-%m-%dT%H:%M:%SZ}  {item.ticker}  {period}  {numbers}  {state}"
    return str(item)
