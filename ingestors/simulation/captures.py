"""Raw exchange traffic as it was captured, made into recordings: one line a message with the time it was received.

A line is ``<url> <-> <time>`` (connected), ``<url> <- <time>: <sent>`` or ``<time>: <received>``. Read are Binance's
``aggTrade`` events (their aggregate ids), Coinbase's ``match`` and ``last_match``, and Kraken's trades of WebSocket
version 1, which have no ids: they are counted from 1 in the order of arrival.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

import msgspec

from ingestors.simulation.recorded_rows import TradeRow
from ingestors.simulation.replay import Recording, recording_of_trades
from relay.errors import PeerError, SettingsError
from relay.protocol.periods import NANOSECONDS
from relay.protocol.scaled import parse_number
from relay.protocol.tickers import parse_ticker
from relay.protocol.times import parse_iso_ns

__all__ = ["is_capture", "load_captures"]

_HOSTS = {"binance": "BINANCE", "coinbase": "COINBASE", "kraken": "KRAKEN"}
_QUOTES = ("USDT", "USDC", "FDUSD", "TUSD", "BUSD", "BTC", "ETH", "BNB", "EUR", "USD", "GBP", "TRY")
_KRAKEN_ASSETS = {"XBT": "BTC", "XDG": "DOGE"}
_WANTED = (b'"aggTrade"', b'match"', b'"trade"')
_EXPECTED = "expected captured traffic of Binance, Coinbase or Kraken (gzip, one line a message)"


def is_capture(path: Path) -> bool:
    """Return whether a file's name is one of a capture."""
    return path.suffix == ".gz"


def load_captures(path: Path) -> list[Recording]:
    """Return a recording for each market that has trades in the file; they go live after the last repeated trade.

    Raises:
        SettingsError: the file is no capture or holds no trades.
    """
    if not path.is_file():
        raise SettingsError(f"{_EXPECTED}; there is no file {path}")
    try:
        with gzip.open(path) as lines:
            first = lines.readline()
            exchange = next((name for host, name in _HOSTS.items() if host.encode() in first), None)
            if exchange is None or b"<->" not in first:
                raise SettingsError(f"{_EXPECTED}; {path} begins with {first[:60]!r}")
            rows, live_ns = _rows_of(exchange, lines)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, PeerError, LookupError, ValueError) as error:
        raise SettingsError(f"{_EXPECTED}; {path} cannot be read: {error}") from error
    if not rows:
        raise SettingsError(f"{_EXPECTED}; {path} holds no trades")
    return [
        recording_of_trades(parse_ticker(f"{symbol}.{exchange}"), trades, live_ns=live_ns)
        for symbol, trades in rows.items()
    ]


def _rows_of(exchange: str, lines: Iterable[bytes]) -> tuple[dict[str, list[TradeRow]], int]:
    rows: dict[str, list[TradeRow]] = {}
    repeats_ns: list[int] = []
    for value in _received(lines):
        for symbol, row, is_repeat in _trades_of(exchange, value):
            own = rows.setdefault(symbol, [])
            own.append(row if row.trade_id else TradeRow(len(own) + 1, row.time_ns, row.price, row.size, row.taker_buy))
            if is_repeat:
                repeats_ns.append(row.time_ns)
    first_ns = min((row.time_ns for own in rows.values() for row in own), default=1)
    return rows, max(repeats_ns, default=first_ns - 1)


def _received(lines: Iterable[bytes]) -> Iterator[object]:
    """Return the messages that may hold trades; numbers keep their digits."""
    decoder = msgspec.json.Decoder(float_hook=Decimal)
    for line in lines:
        head, _, text = line.partition(b": ")
        if head.replace(b".", b"", 1).isdigit() and any(word in text for word in _WANTED):
            yield decoder.decode(text)


def _trades_of(exchange: str, value: object) -> Iterator[tuple[str, TradeRow, bool]]:
    if exchange == "KRAKEN":
        if isinstance(value, list) and value[-2] == "trade":
            base, _, quote = value[-1].partition("/")
            symbol = f"{_KRAKEN_ASSETS.get(base, base)}/{_KRAKEN_ASSETS.get(quote, quote)}"
            for price, size, time, side, *_ in value[1]:
                yield symbol, _row(0, _seconds_ns(time), price, size, taker_buy=side == "b"), False
    elif isinstance(value, dict) and exchange == "COINBASE":
        if value.get("type") in ("match", "last_match"):
            buys = value["side"] == "sell"  # the maker's
            row = _row(value["trade_id"], parse_iso_ns(value["time"]), value["price"], value["size"], taker_buy=buys)
            yield value["product_id"].replace("-", "/"), row, value["type"] == "last_match"
    elif isinstance(value, dict):
        event = value.get("data", value)
        if event.get("e") == "aggTrade":
            row = _row(event["a"], event["T"] * 10**6, event["p"], event["q"], taker_buy=not event["m"])
            yield _unified(event["s"]), row, False


def _row(trade_id: int, time_ns: int, price: str, size: str, *, taker_buy: bool) -> TradeRow:
    return TradeRow(trade_id, time_ns, parse_number(price), parse_number(size), taker_buy)


def _seconds_ns(text: str) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole) * NANOSECONDS + int(fraction.ljust(9, "0")[:9])


def _unified(name: str) -> str:
    for quote in _QUOTES:
        if name.endswith(quote) and len(name) > len(quote):
            return f"{name[: -len(quote)]}/{quote}"
    raise SettingsError(f"expected a symbol that ends in one of {', '.join(_QUOTES)}, got {name}")
