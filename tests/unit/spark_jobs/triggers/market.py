"""A small market to write scenarios in: seconds and plain prices."""

from __future__ import annotations

from decimal import Decimal

from relay.protocol.v1 import trigger_pb2
from relay_client.pattern_builder import PatternBuilder
from spark_jobs.jobs.triggers.engine.matcher import Matcher
from spark_jobs.jobs.triggers.engine.values import Bar, Firing, MatcherRules, Outcome, Tick, TimeMark, Trigger

BTC, ETH = "BTC/USDT.BINANCE", "ETH/USDT.BINANCE"
S = 10**9
BASE = 1_700_000_040 * S
"""A full minute."""
ID = "11111111-1111-4111-8111-111111111111"
RULES = MatcherRules(lateness_ns=0, hold_ns=10_000 * S)


def at(seconds: float | str) -> int:
    return BASE + int(Decimal(str(seconds)) * S)


class Market:
    """One trigger (or more) and what has happened; what fired is kept as seconds."""

    def __init__(
        self, pattern: PatternBuilder | trigger_pb2.Pattern, *, rules: MatcherRules = RULES, since: float = 0, **options
    ) -> None:
        self.matcher = Matcher(rules)
        self.outcomes: list[Outcome] = []
        self.number = 0
        self.add(pattern, since=since, **options)

    def add(self, pattern, *, trigger_id: str = ID, since: float = 0, cooldown=0, one_shot=False, expires=None) -> bool:
        built = pattern if isinstance(pattern, trigger_pb2.Pattern) else pattern.build()
        end = 0 if expires is None else at(expires)
        serialised = built.SerializeToString(deterministic=True)
        return self.matcher.add(Trigger(trigger_id, serialised, at(since), int(cooldown * S), one_shot, end))

    def tick(self, seconds, price, amount="1", *, ticker=BTC, number=None) -> Market:
        self.number += 1
        scaled, decimals = scale(price)
        size, amount_decimals = scale(amount)
        self.outcomes += self.matcher.on_tick(
            Tick(ticker, at(seconds), number or self.number, scaled, decimals, size, amount_decimals, self.number)
        )
        return self

    def prices(self, *prices, ticker=BTC, start=0) -> Market:
        """One tick a second."""
        for second, price in enumerate(prices):
            self.tick(start + second, price, ticker=ticker)
        return self

    def bar(
        self,
        start,
        o=10,
        h=10,
        low=10,
        c=10,
        v: str | None = "1",
        n: int | None = 1,
        *,
        ticker=BTC,
        period=60,
        revision=0,
    ) -> Market:
        decimals = max(scale(x)[1] for x in (o, h, low, c))
        numbers = [int(Decimal(str(x)).scaleb(decimals)) for x in (o, h, low, c)]
        volume, volume_decimals = (None, 0) if v is None else scale(v)
        self.outcomes += self.matcher.on_bar(
            Bar(ticker, period, at(start), *numbers, decimals, volume, volume_decimals, n, revision)
        )
        return self

    def mark(self, seconds, *tickers: str, period=None) -> Market:
        for ticker in tickers or (BTC, ETH):
            self.outcomes += self.matcher.on_mark(TimeMark(ticker, at(seconds), period))
        return self

    def restart(self) -> Market:
        self.matcher = Matcher.decode(self.matcher.encode(), self.matcher._rules)
        return self

    def fired(self, trigger_id: str = ID) -> list[float]:
        return [(f.fired_at_ns - BASE) / S for f in self.firings(trigger_id)]

    def firings(self, trigger_id: str = ID) -> list[Firing]:
        return [o for o in self.outcomes if isinstance(o, Firing) and o.trigger_id == trigger_id]

    def matched(self) -> list[list[float]]:
        """Return the seconds of the events of each firing."""
        return [[(m.item.time_ns - BASE) / S for m in firing.matched] for firing in self.firings()]


def scale(number) -> tuple[int, int]:
    decimal = Decimal(str(number))
    decimals = max(0, -int(decimal.as_tuple().exponent))
    return int(decimal.scaleb(decimals)), decimals
