"""How many ticks a second does one core match against 10,000 triggers over 200 tickers?"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

from benchmarks.report import Report
from relay.protocol.v1 import market_pb2
from relay_client.pattern_builder import PatternBuilder, when
from spark_jobs.jobs.triggers.engine.matcher import Matcher
from spark_jobs.jobs.triggers.engine.values import Tick, TimeMark, Trigger

__all__ = ["run"]

_TICKERS = 200
_TICKS_PER_SECOND = 5_000
_BASE_NS = 1_700_000_000 * 10**9
_GOAL_PER_SECOND = 5_000


def run(*, quick: bool) -> Report:
    """Parse ticks and match them; the baseline parses and counts them. A batch is a second of the market."""
    seconds, triggers = (4, 1_000) if quick else (30, 10_000)
    report = Report(
        "triggers",
        "How many ticks a second does one core match against 10,000 triggers over 200 tickers?",
        layout="one thread, its processor time; serialised ticks in memory; a batch and all marks for each second",
        durability="none; the state is encoded once at the end",
    )
    batches = _batches(seconds)
    ticks = sum(map(len, batches))
    _plain(batches[:2])
    plain_s = _timed_plain(batches)
    report.add("parse and count", ticks_per_second=int(ticks / plain_s))
    for name, share in (("thresholds", "threshold"), ("a mix of all conditions", "mix")):
        matcher = Matcher()
        for trigger in _triggers(triggers, share):
            matcher.add(trigger)
        started = time.process_time()
        fired = _match(matcher, batches)
        ours_s = time.process_time() - started
        started = time.process_time()
        state = matcher.encode()
        encoded_s = time.process_time() - started
        started = time.process_time()
        Matcher.decode(state)
        decoded_s = time.process_time() - started
        report.add(
            f"{triggers:,} triggers, {name}",
            ticks_per_second=int(ticks / ours_s),
            firings=fired,
            state_bytes=len(state),
            encode_ms=int(encoded_s * 1000),
            decode_ms=int(decoded_s * 1000),
        )
        report.ratio(f"time_{share}_to_plain", ours_s / plain_s)
        report.ratio(f"goal_{share}", _GOAL_PER_SECOND * ours_s / ticks, goal_max=1.0)
    return report


def _names() -> list[str]:
    return [f"C{number:03d}/USDT.BINANCE" for number in range(_TICKERS)]


def _batches(seconds: int) -> list[list[bytes]]:
    """Return a random walk of every ticker: prices of 100.00 and steps of a hundredth."""
    rng = random.Random(1)
    names, prices = _names(), [10_000] * _TICKERS
    batches: list[list[bytes]] = []
    number = 0
    for second in range(seconds):
        batch = []
        for place in range(_TICKS_PER_SECOND):
            ticker = rng.randrange(_TICKERS)
            prices[ticker] += rng.choice((-2, -1, 0, 0, 1, 2))
            number += 1
            tick = market_pb2.Tick(
                trade_id=str(number),
                ticker=names[ticker],
                timestamp=_BASE_NS + second * 10**9 + place * 10**9 // _TICKS_PER_SECOND,
                price=prices[ticker],
                price_decimals=2,
                amount=rng.randint(1, 10**6),
                amount_decimals=5,
            )
            batch.append(tick.SerializeToString())
        batches.append(batch)
    return batches


def _triggers(count: int, share: str) -> list[Trigger]:
    rng = random.Random(2)
    names = _names()
    made = []
    for number in range(count):
        ticker = names[number % _TICKERS]
        kind = "threshold" if share == "threshold" else rng.choice(["threshold"] * 14 + ["move"] * 3 + _RARE)
        pattern = _pattern(kind, ticker, names[(number * 7 + 1) % _TICKERS], rng).build()
        serialised = pattern.SerializeToString(deterministic=True)
        made.append(Trigger(f"{number:08d}-1111-4111-8111-111111111111", serialised, _BASE_NS, 60 * 10**9))
    return made


_RARE = ["volume", "pair", "silence"]


def _pattern(kind: str, ticker: str, other: str, rng: random.Random) -> PatternBuilder:
    level = f"{100 + rng.uniform(-3, 3):.2f}"
    match kind:
        case "move":
            return when(ticker).moves(f"{rng.uniform(0.2, 5):.1f}", in_last=rng.choice(["1m", "5m", "15m", "1h"]))
        case "volume":
            return when(ticker).volume_above(f"{rng.uniform(2, 6):.1f}", average_of=10, window="1s")
        case "pair":
            return when(ticker).crosses(level).then(when(other).crosses("100")).within("5m")
        case "silence":
            return when(ticker).silent_for(rng.choice(["1s", "30s", "5m"]))
        case _:
            return when(ticker).crosses(level)


def _timed_plain(batches: Sequence[Sequence[bytes]]) -> float:
    started = time.process_time()
    _plain(batches)
    return time.process_time() - started


def _plain(batches: Sequence[Sequence[bytes]]) -> None:
    counts: Counter[str] = Counter()
    for batch in batches:
        for value in batch:
            counts[market_pb2.Tick.FromString(value).ticker] += 1


def _match(matcher: Matcher, batches: Sequence[Sequence[bytes]]) -> int:
    fired, offset, names = 0, 0, _names()
    for second, batch in enumerate(batches):
        for value in batch:
            message = market_pb2.Tick.FromString(value)
            offset += 1
            matcher.on_tick(
                Tick(
                    message.ticker,
                    message.timestamp,
                    int(message.trade_id),
                    message.price,
                    message.price_decimals,
                    message.amount,
                    message.amount_decimals,
                    offset,
                )
            )
        for name in names:
            fired += len(matcher.on_mark(TimeMark(name, _BASE_NS + (second + 1) * 10**9)))
    return fired
