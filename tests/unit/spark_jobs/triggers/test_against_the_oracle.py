"""The matcher says what a plain search over all events says, in any order of arrival, any batches, with restarts."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_jobs.jobs.triggers.engine.values import MatcherRules
from tests.unit.spark_jobs.triggers import worlds
from tests.unit.spark_jobs.triggers.oracle import World, firings
from tests.unit.spark_jobs.triggers.worlds import BASE, HALF, IDS, LATENESS, TICKERS, S

RULES = MatcherRules(lateness_ns=LATENESS, hold_ns=10_000 * S)
QUICK = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@QUICK
@given(
    wanted=st.lists(worlds.wanteds(), min_size=2, max_size=2),
    count=st.integers(10, 50),
    ends=st.tuples(st.integers(30, 50), st.integers(30, 50)),
    seed=st.integers(0, 2**32),
)
def test_firings_are_those_of_the_oracle(wanted, count, ends, seed):
    last = {ticker: BASE + end * HALF for ticker, end in zip(TICKERS, ends, strict=True)}
    rng = random.Random(seed)
    world = World(worlds.ticks(rng, count), worlds.bars(rng, count), worlds.known_at(last))
    triggers = [worlds.trigger_of(name, w) for name, w in zip(IDS, wanted, strict=True)]
    sent = worlds.arrival(world, last, rng)
    out = worlds.run(triggers, sent, rng, RULES, restarts=0.1)
    for trigger, one in zip(triggers, wanted, strict=True):
        assert worlds.told(out, trigger.trigger_id) == firings(world, one)
