"""The builder reaches every part of a pattern and refuses what is not exact."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest

from relay.protocol.v1 import trigger_pb2
from relay_client import pattern_builder
from relay_client.pattern_builder import CLOSE, HIGH, LOW, OPEN, TRADES, VOLUME, PatternError, n_of, when

BTC, ETH = "BTC/USDT.BINANCE", "ETH/USDT.BINANCE"
Step, Cross, Move, Bar = (
    trigger_pb2.PatternStep,
    trigger_pb2.ThresholdCondition,
    trigger_pb2.MoveCondition,
    trigger_pb2.BarCondition,
)


def only(builder) -> trigger_pb2.PatternStep:
    (step,) = builder.build().steps
    return step


def test_a_sequence_of_two_within_a_time():
    found = when(BTC).crosses_above("50000").then(when(ETH).crosses_below("3000")).within("5m").build()
    assert found == trigger_pb2.Pattern(
        steps=[
            Step(threshold=Cross(ticker=BTC, price="50000", direction=Cross.UP)),
            Step(threshold=Cross(ticker=ETH, price="3000", direction=Cross.DOWN)),
        ],
        within_ms=300_000,
    )


@pytest.mark.parametrize(
    ("builder", "step"),
    [
        (when(BTC).crosses("1.50"), Step(threshold=Cross(ticker=BTC, price="1.50", direction=Cross.EITHER))),
        (
            when(BTC).rises("2.5", in_last="10m"),
            Step(move=Move(ticker=BTC, percent="2.5", window_ms=600_000, direction=Cross.UP)),
        ),
        (
            when(BTC).falls(3, in_last="1h", from_first=True),
            Step(move=Move(ticker=BTC, percent="3", window_ms=3_600_000, direction=Cross.DOWN, reference=Move.FIRST)),
        ),
        (
            when(BTC).moves(Decimal("1E+1"), in_last="1d"),
            Step(move=Move(ticker=BTC, percent="10", window_ms=86_400_000, direction=Cross.EITHER)),
        ),
        (
            when(BTC).volume_above("3", average_of=20, period="1m"),
            Step(volume=trigger_pb2.VolumeCondition(ticker=BTC, multiple="3", period_seconds=60, count=20)),
        ),
        (
            when(BTC).volume_above("3", average_of=np.int64(20), window=timedelta(seconds=1.5)),
            Step(volume=trigger_pb2.VolumeCondition(ticker=BTC, multiple="3", window_ms=1500, count=20)),
        ),
        (
            when(BTC).silent_for("500ms"),
            Step(silence=trigger_pb2.SilenceCondition(ticker=BTC, duration_ms=500)),
        ),
    ],
)
def test_every_condition_on_ticks(builder, step):
    assert only(builder) == step


def test_bars_compare_every_field_in_every_way():
    comparisons = [
        (OPEN.below(CLOSE), Bar.OPEN, Bar.LESS, "field", Bar.CLOSE),
        (HIGH.at_most("5"), Bar.HIGH, Bar.LESS_OR_EQUAL, "number", "5"),
        (LOW.equals(Decimal("0.10")), Bar.LOW, Bar.EQUAL, "number", "0.1"),
        (CLOSE.differs_from(OPEN), Bar.CLOSE, Bar.NOT_EQUAL, "field", Bar.OPEN),
        (VOLUME.at_least("7"), Bar.VOLUME, Bar.GREATER_OR_EQUAL, "number", "7"),
        (TRADES.above(9), Bar.TRADES, Bar.GREATER, "number", "9"),
    ]
    found = only(when(BTC).bar("4h", *[c[0] for c in comparisons])).bar
    assert (found.ticker, found.period_seconds) == (BTC, 14_400)
    for message, (_, left, how, kind, right) in zip(found.comparisons, comparisons, strict=True):
        assert (message.left, message.operator, message.WhichOneof("right")) == (left, how, kind)
        assert getattr(message, kind) == right


def test_counting_conditions_hold_conditions():
    found = only(n_of(2, when(BTC).crosses("1"), when(ETH).silent_for("1m"), in_last="5m")).n_of_m
    assert (found.n, found.window_ms) == (2, 300_000)
    assert [c.WhichOneof("condition") for c in found.conditions] == ["threshold", "silence"]
    again = only(when(BTC).bar(60, CLOSE.above(OPEN)).times(3, of_last=5, in_last="1h")).repeat
    assert (again.n, again.of_events, again.window_ms) == (3, 5, 3_600_000)
    assert again.condition.bar.period_seconds == 60


def test_every_way_of_joining():
    one = when(BTC).crosses("1")
    found = (
        one.then(one, within="1s").then_next(one).then_not_next(one).then_not(one, within="2s").skip_past_last_event()
    ).build()
    joined = [(step.contiguity, step.within_ms) for step in found.steps]
    assert joined == [
        (Step.FOLLOWED_BY, 0),
        (Step.FOLLOWED_BY, 1000),
        (Step.NEXT, 0),
        (Step.NOT_NEXT, 0),
        (Step.NOT_FOLLOWED_BY, 2000),
    ]
    assert found.after_match == trigger_pb2.Pattern.SKIP_PAST_LAST_EVENT


def test_a_part_is_used_again_and_never_changes():
    part = when(BTC).crosses("1")
    longer = part.then(part)
    part.build().steps[0].threshold.price = "2"
    longer.build().steps[1].threshold.price = "2"
    assert len(part.build().steps) == 1
    assert [step.threshold.price for step in longer.build().steps] == ["1", "1"]
    assert part == when(BTC).crosses("1")


def test_a_float_is_refused_and_told_what_to_write():
    for call in (
        lambda: when(BTC).crosses_above(0.1),
        lambda: when(BTC).rises(2.5, in_last="1m"),
        lambda: when(BTC).volume_above(np.float64(2), average_of=5, period="1m"),
        lambda: CLOSE.above(1.5),
    ):
        with pytest.raises(PatternError, match="a float is not exact: write it as text"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: when(5),
        lambda: when("\ud800"),
        lambda: when(BTC).crosses(True),
        lambda: when(BTC).crosses(None),
        lambda: when(BTC).crosses(Decimal("NaN")),
        lambda: when(BTC).crosses(Decimal("1e999")),
        lambda: when(BTC).crosses(10**70),
        lambda: when(BTC).crosses("\ud800"),
        lambda: when(BTC).silent_for("5 minutes"),
        lambda: when(BTC).silent_for("0s"),
        lambda: when(BTC).silent_for(5),
        lambda: when(BTC).silent_for(timedelta(microseconds=1500)),
        lambda: when(BTC).silent_for(timedelta(seconds=-1)),
        lambda: when(BTC).silent_for("99999999999999s"),
        lambda: when(BTC).bar("1M", CLOSE.above("1")),
        lambda: when(BTC).bar(None, CLOSE.above("1")),
        lambda: when(BTC).bar("1m", "close > 1"),
        lambda: when(BTC).crosses("1").times(True, in_last="1s"),
        lambda: when(BTC).crosses("1").times(2**40, in_last="1s"),
        lambda: when(BTC).crosses("1").then("ETH"),
        lambda: when(BTC).crosses("1").then(when(BTC)),
        lambda: when(BTC).crosses("1").then(when(BTC).crosses("1").then(when(BTC).crosses("2"))),
        lambda: when(BTC).crosses("1").then(when(BTC).crosses("1").within("1s")),
        lambda: n_of(1, when(BTC).crosses("1").times(2, in_last="1s"), in_last="1s"),
    ],
)
def test_what_is_no_part_of_a_pattern_is_refused_where_it_is_said(call):
    with pytest.raises(PatternError, match=r"expected|refused"):
        call()


def test_what_is_wrong_in_the_whole_is_refused_when_it_is_built():
    with pytest.raises(PatternError) as caught:
        when(BTC).crosses("1").then_not(when(BTC).crosses("2")).build()
    assert caught.value.place == "steps[1].within_ms"
    with pytest.raises(PatternError) as caught:
        when(BTC).crosses("1").then(when("btc").crosses("2")).build()
    assert caught.value.place == "steps[1].threshold.ticker"


def test_the_examples_of_the_documentation_are_patterns():
    lines = [line.strip() for line in (pattern_builder.__doc__ or "").splitlines()]
    names = {"BTC": BTC, "ETH": ETH} | {name: getattr(pattern_builder, name) for name in pattern_builder.__all__}
    examples = [line for line in lines if line.startswith(("when(", "n_of("))]
    assert len(examples) == 5
    for example in examples:
        assert eval(example, names).build().steps
