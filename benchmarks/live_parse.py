"""How many trades a second does one core read off each exchange's socket messages, exactly, and Binance's in SBE?"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from decimal import Decimal

from benchmarks.report import Report
from ingestors.engine.feed_values import Trades
from ingestors.engine.values import Listing
from ingestors.exchanges.live.binance import BinanceProtocol
from ingestors.exchanges.live.coinbase import CoinbaseProtocol
from ingestors.exchanges.live.coinbase_advanced import CoinbaseAdvancedProtocol
from ingestors.exchanges.live.kraken import KrakenProtocol
from ingestors.exchanges.live.port import LiveProtocol
from ingestors.simulation.binance_sbe_socket import trades_event
from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.records import Listing as SimulatedListing
from ingestors.simulation.records import Trade
from ingestors.simulation.replay import Recording
from relay.protocol.tickers import parse_ticker
from relay.protocol.times import parse_iso_ns

__all__ = ["run"]

_GOAL_PER_SECOND = 50_000
_ROUNDS = 5
_UUID = "132fb6ae-456b-4654-b4e0-d681ac05cea1"

_TIME_US = 1_633_998_512_000_000
_SOURCE = SimulatedListing("NKN/USDT", 8, 8, 0)
_FEED = MarketFeed("NKNUSDT", Recording(ticker=parse_ticker("NKN/USDT.BINANCE"), listing=_SOURCE, end_ns=1, trades=()))

Plain = Callable[[bytes], list[tuple[object, ...]]]


def run(*, quick: bool) -> Report:
    """Parse messages in the shapes of the captures; the baseline is json.loads with Decimal in the same run."""
    count = 2_000 if quick else 50_000
    report = Report(
        "live_parse",
        "How many trades a second does one core read off each exchange's socket messages, exactly?",
        layout="one thread; messages in memory, best of five rounds, ours and plain in turns",
        durability="none",
    )
    for name, protocol, texts, each, plain in _cases(count):
        ours, baseline = [], []
        for _ in range(_ROUNDS):
            # In turns, so that whatever else the machine does meets both.
            ours.append(_timed(lambda: _ours(protocol(), texts)))  # noqa: B023 - called at once
            baseline.append(_timed(lambda: [plain(text) for text in texts]))  # noqa: B023
        ours_s, plain_s = min(ours), min(baseline)
        trades = len(texts) * each
        report.add(f"{name}, {each} a message", trades_per_second=int(trades / ours_s))
        report.add(f"{name}, json.loads and Decimal", trades_per_second=int(trades / plain_s))
        report.ratio(f"time_{name}_to_plain".replace(" ", "_"), ours_s / plain_s)
        report.ratio(f"goal_{name}".replace(" ", "_"), _GOAL_PER_SECOND * ours_s / trades, goal_max=1.0)
    for each in (1, 5):
        _add_sbe(report, count // each, each)
    return report


def _add_sbe(report: Report, messages: int, each: int) -> None:
    """The same trades as SBE and as JSON, by the two protocols of the adapter; JSON has a message for each trade.

    Nothing where the accelerator is not installed.
    """
    try:
        from ingestors.exchanges.live.binance_sbe import BinanceSbeProtocol
    except ImportError:
        return

    ticker, step = parse_ticker("NKN/USDT.BINANCE"), Decimal("0.00001")
    listing = Listing(ticker, "NKNUSDT", price_increment=step, amount_increment=Decimal(1))
    instants = [range(n * each, (n + 1) * each) for n in range(messages)]
    binary = [_binary(numbers) for numbers in instants]
    texts = [_single(n, numbers[0]) for numbers in instants for n in numbers]
    times: dict[str, list[float]] = {"SBE": [], "JSON": []}
    for _ in range(_ROUNDS):
        times["SBE"].append(_timed(lambda: _ours(_subscribed(BinanceSbeProtocol(), listing), binary)))
        times["JSON"].append(_timed(lambda: _ours(_subscribed(BinanceProtocol(), listing), texts)))
    for name, taken in times.items():
        report.add(f"Binance {name}, {each} an instant", trades_per_second=int(messages * each / min(taken)))
    report.ratio(f"time_Binance_SBE_to_JSON_{each}_an_instant", min(times["SBE"]) / min(times["JSON"]))
    report.ratio(f"bytes_Binance_SBE_to_JSON_{each}_an_instant", sum(map(len, binary)) / sum(map(len, texts)))


def _ours(protocol: LiveProtocol, texts: Sequence[bytes]) -> None:
    found = 0
    for text in texts:
        for event in protocol.on_message(text, 1):
            assert type(event) is Trades
            found += len(event.trades)
    assert found >= len(texts)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _listing(ticker: str, native: str) -> Listing:
    return Listing(
        parse_ticker(ticker), native, price_increment=Decimal("0.01"), amount_increment=Decimal("0.00000001")
    )


def _subscribed(protocol: LiveProtocol, listing: Listing) -> LiveProtocol:
    protocol.subscribe([listing])
    return protocol


def _cases(count: int) -> list[tuple[str, Callable[[], LiveProtocol], list[bytes], int, Plain]]:
    binance, kraken = _listing("NKN/USDT.BINANCE", "NKNUSDT"), _listing("ADA/BTC.KRAKEN", "ADAXBT")
    product = _listing("DASH/BTC.COINBASE", "DASH-BTC")
    return [
        (
            "Binance",
            lambda: _subscribed(BinanceProtocol(stream="aggTrade"), binance),
            [_binance(n) for n in range(count)],
            1,
            _plain_binance,
        ),
        *(
            (
                "Kraken" if each == 1 else "Kraken batches",
                lambda: _subscribed(KrakenProtocol(), kraken),
                [_kraken(range(n * each, (n + 1) * each)) for n in range(count // each)],
                each,
                _plain_kraken,
            )
            for each in (1, 20)
        ),
        (
            "Coinbase",
            lambda: _subscribed(CoinbaseProtocol(), product),
            [_coinbase(n) for n in range(count)],
            1,
            _plain_coinbase,
        ),
        *(
            (
                "Coinbase Advanced" if each == 1 else "Coinbase Advanced batches",
                lambda: _subscribed(CoinbaseAdvancedProtocol(), product),
                [_advanced(n, range(n * each, (n + 1) * each)) for n in range(count // each)],
                each,
                _plain_advanced,
            )
            for each in (1, 20)
        ),
    ]


def _time(n: int) -> str:
    return f"2021-04-17T16:43:{n // 1_000 % 60:02d}.{n * 977 % 1_000_000:06d}Z"


def _binance(n: int) -> bytes:
    return (
        f'{{"stream":"nknusdt@aggTrade","data":{{"e":"aggTrade","E":{1633998512000 + n},"s":"NKNUSDT","a":{n},'
        f'"p":"0.35{n % 1000:03d}000","q":"{n % 977 + 1}.00000000","f":{n},"l":{n},"T":{1633998512000 + n},'
        f'"m":{"true" if n % 2 else "false"},"M":true}}}}'
    ).encode()


def _single(n: int, instant: int) -> bytes:
    """A single trade in JSON, in the shape that the adapter asks for."""
    return (
        f'{{"stream":"nknusdt@trade","data":{{"e":"trade","E":{_TIME_US + instant},"s":"NKNUSDT","t":{n},'
        f'"p":"0.35{n % 1000:03d}000","q":"{n % 977 + 1}.00000000","T":{_TIME_US + instant},'
        f'"m":{"true" if n % 2 else "false"},"M":true}}}}'
    ).encode()


def _binary(numbers: range) -> bytes:
    """The same trades in one message."""
    trades = [Trade(n, 0, 35_000_000 + n % 1000 * 1_000, (n % 977 + 1) * 10**8, n % 2 == 0) for n in numbers]
    time_us = _TIME_US + numbers[0]
    return bytes(trades_event(_FEED, trades, event_us=time_us, time_us=time_us))


def _kraken(numbers: range) -> bytes:
    rows = (
        f'{{"symbol":"ADA/BTC","side":"buy","price":0.0000{n % 1000 + 2000},"qty":{n % 977}.12345678,'
        f'"ord_type":"market","trade_id":{n},"timestamp":"{_time(n)}"}}'
        for n in numbers
    )
    return f'{{"channel":"trade","type":"update","data":[{",".join(rows)}]}}'.encode()


def _coinbase(n: int) -> bytes:
    return (
        f'{{"type":"match","trade_id":{n},"maker_order_id":"{_UUID}","taker_order_id":"{_UUID}","side":"sell",'
        f'"size":"{n % 97}.12300000","price":"0.00{n % 1000 + 5000}","product_id":"DASH-BTC","sequence":{n * 23},'
        f'"time":"{_time(n)}"}}'
    ).encode()


def _advanced(sequence: int, numbers: range) -> bytes:
    rows = (
        f'{{"trade_id":"{n}","product_id":"DASH-BTC","price":"0.00{n % 1000 + 5000}","size":"{n % 97}.123",'
        f'"side":"BUY","time":"{_time(n)}"}}'
        for n in reversed(numbers)
    )
    return (
        f'{{"channel":"market_trades","client_id":"","timestamp":"2023-02-09T20:19:35.39625135Z",'
        f'"sequence_num":{sequence},"events":[{{"type":"update","trades":[{",".join(rows)}]}}]}}'
    ).encode()


def _plain_binance(text: bytes) -> list[tuple[object, ...]]:
    row = json.loads(text)["data"]
    return [(row["a"], row["T"] * 10**6, Decimal(row["p"]), Decimal(row["q"]), not row["m"])]


def _plain_kraken(text: bytes) -> list[tuple[object, ...]]:
    rows = json.loads(text, parse_float=Decimal)["data"]
    return [(r["trade_id"], parse_iso_ns(r["timestamp"]), r["price"], r["qty"], r["side"] == "buy") for r in rows]


def _plain_coinbase(text: bytes) -> list[tuple[object, ...]]:
    row = json.loads(text)
    size = Decimal(row["size"])
    return [(row["trade_id"], parse_iso_ns(row["time"]), Decimal(row["price"]), size, row["side"] == "sell")]


def _plain_advanced(text: bytes) -> list[tuple[object, ...]]:
    rows = [row for event in json.loads(text)["events"] for row in event["trades"]]
    return [
        (int(r["trade_id"]), parse_iso_ns(r["time"]), Decimal(r["price"]), Decimal(r["size"]), r["side"] == "SELL")
        for r in reversed(rows)
    ]
