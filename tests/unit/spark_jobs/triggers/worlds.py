"""Random worlds and patterns for the matcher: few tickers, coarse times and prices, so that edges are met."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import strategies as st

from relay_client.pattern_builder import CLOSE, HIGH, LOW, OPEN, TRADES, VOLUME, n_of, when
from spark_jobs.jobs.triggers.engine.matcher import Matcher
from spark_jobs.jobs.triggers.engine.values import (
    Bar,
    Event,
    Firing,
    MatcherRules,
    Outcome,
    Tick,
    TimeMark,
    Trigger,
)
from tests.unit.spark_jobs.triggers.oracle import STEP, Seen, Wanted, World

BTC, ETH = "BTC/USDT.BINANCE", "ETH/USDT.BINANCE"
TICKERS = (BTC, ETH)
PERIODS = (1, 2)
S = 10**9
HALF = S // 2
BASE = 1_700_000_000 * S
IDS = ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222")
LATENESS = 3 * HALF

tickers = st.sampled_from(TICKERS)
durations = st.sampled_from(["500ms", "1s", "1500ms", "2s", "3s", "5s"])
fields = st.sampled_from([OPEN, HIGH, LOW, CLOSE, VOLUME, TRADES])


@st.composite
def comparisons(draw):
    left = draw(fields)
    how = draw(st.sampled_from(["above", "at_least", "below", "at_most", "equals", "differs_from"]))
    right = draw(st.one_of(st.sampled_from(["2", "9", "10", "10.5"]), fields.filter(lambda other: other != left)))
    return getattr(left, how)(right)


def leaves(ticker_of=tickers):
    levels = st.sampled_from(["9", "10", "10.5", "11"])
    percents = st.sampled_from(["5", "10", "11.111111", "11.111112", "20"])
    counts = st.integers(1, 3)
    crossing = st.builds(
        lambda t, how, level: getattr(when(t), how)(level),
        ticker_of,
        st.sampled_from(["crosses_above", "crosses_below", "crosses"]),
        levels,
    )
    moving = st.builds(
        lambda t, how, p, d, f: getattr(when(t), how)(p, in_last=d, from_first=f),
        ticker_of,
        st.sampled_from(["rises", "falls", "moves"]),
        percents,
        durations,
        st.booleans(),
    )
    return st.one_of(
        crossing,
        crossing,
        moving,
        moving,
        st.builds(
            lambda t, m, n, d: when(t).volume_above(m, average_of=n, window=d),
            ticker_of,
            st.sampled_from(["1", "1.5", "2"]),
            counts,
            durations,
        ),
        st.builds(
            lambda t, m, n, p: when(t).volume_above(m, average_of=n, period=p),
            ticker_of,
            st.sampled_from(["0.5", "1", "2"]),
            counts,
            st.sampled_from(PERIODS),
        ),
        st.builds(
            lambda t, p, c: when(t).bar(p, *c),
            ticker_of,
            st.sampled_from(PERIODS),
            st.lists(comparisons(), min_size=1, max_size=2),
        ),
        st.builds(lambda t, d: when(t).silent_for(d), ticker_of, durations),
    )


@st.composite
def conditions(draw, ticker_of=tickers):
    kind = draw(st.integers(0, 5))
    if kind == 0:
        members = draw(st.lists(leaves(ticker_of), min_size=2, max_size=3, unique_by=lambda b: b.steps))
        return n_of(draw(st.integers(1, len(members))), *members, in_last=draw(durations))
    if kind == 1:
        leaf = draw(leaves(ticker_of))
        is_silence = STEP.FromString(leaf.steps[0]).WhichOneof("condition") == "silence"
        n, which = draw(st.integers(1, 3)), draw(st.integers(0, 2))
        of_last = None if which == 0 or is_silence else n + which
        return leaf.times(n, of_last=of_last, in_last=draw(durations) if of_last is None or which == 1 else None)
    return draw(leaves(ticker_of))


@st.composite
def patterns(draw):
    ticker_of = draw(st.sampled_from([st.just(BTC), st.just(BTC), tickers]))
    built = draw(conditions(ticker_of))
    inner = draw(st.lists(st.sampled_from(["then", "then_next", "then_not", "then_not_next"]), max_size=3))
    guarded = False
    for place, drawn in enumerate(inner):
        is_last = place == len(inner) - 1
        how = "then" if drawn == "then_next" and guarded else drawn
        is_negation = how.startswith("then_not")
        within = draw(st.none() | durations) if not is_negation else None
        if is_negation and is_last:
            within = draw(durations)
        built = getattr(built, how)(draw(conditions(ticker_of)), within=within)
        guarded = (guarded or how == "then_not") if is_negation else False
    if draw(st.booleans()):
        built = built.within(draw(durations))
    if draw(st.booleans()):
        built = built.skip_past_last_event()
    return built.build()


@st.composite
def wanteds(draw):
    return Wanted(
        pattern=draw(patterns()),
        start=BASE + draw(st.integers(-2, 6)) * HALF,
        cooldown=draw(st.sampled_from([0, 0, 0, S, 3 * S])),
        one_shot=draw(st.integers(0, 5)) == 0,
        expires=draw(st.sampled_from([0, 0, 0, BASE + 12 * S])),
    )


def ticks(rng: random.Random, count: int) -> list[Tick]:
    """Return trades of every ticker, numbered by time, some of one time, in changing scales."""
    made = []
    for ticker in TICKERS:
        for number, place in enumerate(sorted(rng.randrange(40) for _ in range(count))):
            price, amount, decimals = (
                rng.choice([80, 90, 100, 100, 105, 110, 120]),
                rng.randint(0, 4),
                rng.randint(1, 2),
            )
            shown = price * 10 ** (decimals - 1)
            made.append(Tick(ticker, BASE + place * HALF, 100 + number, shown, decimals, amount, decimals % 2, number))
    return made


def bars(rng: random.Random, count: int) -> list[Bar]:
    """Return final bars of every ticker and period, some with a revision, some without volume or trades."""
    made = []
    for ticker in TICKERS:
        for period in PERIODS:
            for place in rng.sample(range(20 // period), min(count // 2, 20 // period)):
                o, h, low, c = (rng.randint(8, 12) for _ in range(4))
                v, n = rng.choice([None, 0, 1, 2, 3, 4]), rng.choice([None, 0, 1, 2, 3])
                start = BASE + place * period * S
                revisions = range(rng.randint(1, 2))
                made += [Bar(ticker, period, start, o, h, low, c + again, 0, v, 0, n, again) for again in revisions]
    return made


def known_at(last: dict[str, int]) -> dict[tuple[str, int], int]:
    return {(ticker, period): time for ticker, time in last.items() for period in (0, *PERIODS)}


def arrival(world: World, last: dict[str, int], rng: random.Random) -> list[Event]:
    """Return the events in some order in which none is late, with marks between and repeats behind."""
    events: list[Tick | Bar] = [*world.ticks, *world.bars]
    rng.shuffle(events)
    sent: list[Event] = []
    for place, event in enumerate(events):
        sent.append(event)
        if rng.random() < 0.15:
            sent.append(rng.choice(events[: place + 1]))
        if rng.random() < 0.4:
            ticker = rng.choice(TICKERS)
            ahead = [e.time_ns for e in events[place + 1 :] if e.ticker == ticker]
            limit = min([*ahead, last[ticker]])
            sent.append(TimeMark(ticker, limit - rng.choice([0, 0, HALF, S]) + LATENESS))
    tail: list[Event] = [TimeMark(ticker, last[ticker] + LATENESS) for ticker in rng.sample(TICKERS, len(TICKERS))]
    return [*sent, *tail, *rng.sample(events, min(3, len(events)))]


def trigger_of(trigger_id: str, wanted: Wanted) -> Trigger:
    pattern = wanted.pattern.SerializeToString(deterministic=True)
    return Trigger(trigger_id, pattern, wanted.start, wanted.cooldown, wanted.one_shot, wanted.expires)


def run(
    triggers: Sequence[Trigger],
    sent: Sequence[Event],
    rng: random.Random,
    rules: MatcherRules,
    *,
    restarts: float = 0.0,
) -> list[Outcome]:
    """Feed in batches of random size, with restarts out of the state between them."""
    matcher = Matcher(rules)
    for trigger in triggers:
        matcher.add(trigger)
    out: list[Outcome] = []
    place = 0
    while place < len(sent):
        size = rng.randint(1, 10)
        out += matcher.feed(sent[place : place + size])
        place += size
        if rng.random() < restarts:
            matcher = Matcher.decode(matcher.encode(), rules)
            for trigger in triggers:
                matcher.add(trigger)
    return out


def told(outcomes: Sequence[Outcome], trigger_id: str) -> list[tuple[int, list[tuple[int, Seen]]]]:
    """Return a trigger's firings as the oracle says them."""
    return [
        (o.fired_at_ns, [(m.step, Seen(m.item.time_ns, m.item.kind, m.item.ticker, m.item.number)) for m in o.matched])
        for o in outcomes
        if isinstance(o, Firing) and o.trigger_id == trigger_id
    ]
