"""The state as bytes: whole or refused."""

from __future__ import annotations

import json
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.errors import StorageError
from relay_client.pattern_builder import CLOSE, n_of, when
from spark_jobs.jobs.triggers.engine.matcher import Matcher
from spark_jobs.jobs.triggers.engine.state import StateError
from spark_jobs.jobs.triggers.engine.values import TimeMark
from tests.unit.spark_jobs.triggers.market import BASE, BTC, ETH, Market, S

A = when(BTC).crosses_above("50")
HEAD = 20


def filled() -> Market:
    """Return a market with something in every part of the state."""
    market = Market(A.then_next(when(BTC).crosses_below("50")).then(when(ETH).crosses("60")))
    market.add(n_of(2, A, when(BTC).rises("1", in_last="1h"), in_last="5m"), trigger_id="n")
    market.add(when(BTC).falls("1", in_last="1h", from_first=True).times(3, in_last="1h"), trigger_id="r")
    market.add(A.then_not(when(BTC).bar("1m", CLOSE.above("99")), within="1h"), trigger_id="t")
    market.add(when(BTC).volume_above("1", average_of=2, period="1m"), trigger_id="v")
    market.add(A, trigger_id="o", one_shot=True)
    market.prices(49, 51, 49, 51, 48).bar(-60).bar(0, v=None).tick(0, 59, ticker=ETH)
    return market.mark(3).mark(30, BTC, period=60).mark(70, BTC, period=60).mark(4, BTC)


def framed(body: bytes) -> bytes:
    return b"MRCEP2\n\0" + len(body).to_bytes(8, "little") + zlib.crc32(body).to_bytes(4, "little") + body


STATE = filled().matcher.encode()


def test_a_state_that_was_read_is_written_the_same():
    assert Matcher.decode(STATE).encode() == STATE
    assert Matcher.decode(Matcher().encode()).triggers == {}


@pytest.mark.parametrize(("is_between", "fired"), [(True, []), (False, [5])])
def test_a_state_of_the_form_before_is_gone_on_from(is_between, fired):
    """It had no trails; what lay between hits was in the queue of each trigger."""
    market = Market(A.then_next(when(ETH).crosses_above("60"))).prices(49, 51)
    market.tick(0, 59, ticker=ETH).tick(5, 61, ticker=ETH).mark(2, BTC)
    body = json.loads(market.matcher.encode()[HEAD:])
    del body["ticks"][0]["trail"]
    if is_between:
        body["runs"][0]["queue"].append([[BASE + 2 * S, 2, BTC, 3, 40, 0, 1, 0, 3], 0])
    market.matcher = Matcher.decode(b"MRCEP1\n\0" + framed(json.dumps(body).encode())[8:], market.matcher._rules)
    assert market.mark(9).fired() == fired
    assert market.restart().matcher.encode()[:8] == b"MRCEP2\n\0"


def test_a_restart_goes_on_as_if_there_had_been_none():
    through, stopped = filled(), filled().restart()
    for market in (through, stopped):
        market.prices(52, 49, 47, 55, start=10).tick(20, 61, ticker=ETH).bar(60, v="9").mark(4000)
    assert stopped.outcomes == through.outcomes
    assert len(through.outcomes) > 4


@pytest.mark.parametrize("length", [0, 1, 7, 8, 15, 16, 19, 20, 21, len(STATE) // 2, len(STATE) - 1])
def test_a_state_that_is_cut_short_is_refused(length):
    with pytest.raises(StateError, match=r"begin with|cut short"):
        Matcher.decode(STATE[:length])


def test_a_state_with_something_behind_it_is_refused():
    with pytest.raises(StateError):
        Matcher.decode(STATE + b" ")


def test_a_flipped_bit_anywhere_is_refused():
    rng = random.Random(5)
    for place in [*range(HEAD + 4), *rng.sample(range(HEAD, len(STATE)), 300)]:
        broken = bytearray(STATE)
        broken[place] ^= 1 << rng.randrange(8)
        with pytest.raises(StorageError):
            Matcher.decode(bytes(broken))


@settings(max_examples=60, deadline=None)
@given(data=st.one_of(st.binary(max_size=80), st.binary(max_size=80).map(framed)))
def test_any_bytes_are_refused(data):
    with pytest.raises(StateError):
        Matcher.decode(data)


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_part_that_is_something_else_is_refused_or_harmless(data):
    """With a checksum that fits: whoever writes such a state gets an error or a matcher, nothing else."""
    body = json.loads(STATE[HEAD:])
    path = data.draw(st.sampled_from([p for p in places(body) if p]))
    target = body
    for key in path[:-1]:
        target = target[key]
    new = data.draw(
        st.one_of(st.none(), st.integers(-3, 3), st.integers(10**30, 10**31), st.booleans(), st.just(""), st.just([]))
    )
    if data.draw(st.booleans()):
        target[path[-1]] = new
    else:
        del target[path[-1]]
    try:
        matcher = Matcher.decode(framed(json.dumps(body).encode()))
    except StateError:
        return
    for ticker in (BTC, ETH):
        matcher.on_mark(TimeMark(ticker, BASE + 10_000 * S))


def test_parts_that_do_not_fit_each_other_are_refused():
    body = json.loads(STATE[HEAD:])

    def changed(change) -> bytes:
        copy = json.loads(STATE[HEAD:])
        change(copy)
        return framed(json.dumps(copy).encode())

    changes = [
        lambda s: s["ticks"].clear(),
        lambda s: s["ticks"].append(s["ticks"][0]),
        lambda s: s["runs"].append(s["runs"][0]),
        lambda s: s["runs"][0]["partials"]["places"].pop(),
        lambda s: s["runs"][0]["partials"]["places"].__setitem__(1, [{"matched": [], "entered": 0}]),
        lambda s: s["runs"][0]["fresh"].__setitem__("9", False),
        lambda s: s["runs"][1]["derived"].clear(),
        lambda s: s["ticks"][0]["window"]["lows"]["times"].append(1),
        lambda s: s["ticks"][0]["window"]["history"]["prices"].append(1),
        lambda s: s["ticks"][0]["intake"]["evaluated"]["lasts"].append(1),
        lambda s: s["runs"][0]["trigger"].__setitem__(1, "AAAA"),
    ]
    assert Matcher.decode(changed(lambda _: None)).encode() == STATE
    assert {run["trigger"][0] for run in body["runs"]} >= {"n", "r", "t", "v"}
    for change in changes:
        with pytest.raises(StateError):
            Matcher.decode(changed(change))
