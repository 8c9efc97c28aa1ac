"""Patterns: what is refused, where and why, and what a checked one looks like."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.engine.pattern_values import (
    CONDITIONS_MAX,
    EXACT_DECIMALS,
    MEMBERS_MAX,
    SOURCES_MAX,
    STEPS_MAX,
    TICK_REACH_MS_MAX,
    WINDOW_MS_MAX,
    BarTest,
    Comparison,
    Cross,
    Direction,
    Field,
    NOfM,
    Operator,
    Source,
)
from relay.engine.patterns import PatternError, check_registration, compile_pattern
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.v1 import trigger_pb2

BTC = "BTC/USDT.BINANCE"
Step = trigger_pb2.PatternStep
Bar = trigger_pb2.BarCondition
U32, U64 = 2**32 - 1, 2**64 - 1


def threshold(**changes):
    return trigger_pb2.ThresholdCondition(**({"ticker": BTC, "price": "50000"} | changes))


def move(**changes):
    return trigger_pb2.MoveCondition(**({"ticker": BTC, "percent": "5", "window_ms": 1000} | changes))


def volume(**changes):
    return trigger_pb2.VolumeCondition(**({"ticker": BTC, "multiple": "2", "period_seconds": 60, "count": 5} | changes))


def bar(*comparisons, **changes):
    found = comparisons or (Bar.Comparison(left=Bar.CLOSE, operator=Bar.GREATER, number="1"),)
    return Bar(**({"ticker": BTC, "period_seconds": 60, "comparisons": found} | changes))


def silence(**changes):
    return trigger_pb2.SilenceCondition(**({"ticker": BTC, "duration_ms": 1000} | changes))


def member(price="1"):
    return trigger_pb2.PatternCondition(threshold=threshold(price=price))


def n_of_m(*members, **changes):
    found = members or (member("1"), member("2"))
    return trigger_pb2.NOfMCondition(**({"n": 2, "conditions": found, "window_ms": 1000} | changes))


def repeat(**changes):
    return trigger_pb2.RepeatCondition(**({"n": 2, "condition": member(), "window_ms": 1000} | changes))


def pattern(*steps, **options):
    return trigger_pb2.Pattern(steps=steps, **options)


A = Step(threshold=threshold())


def then(contiguity, **changes):
    return Step(**({"contiguity": contiguity, "threshold": threshold(price="60000")} | changes))


PLACES = [
    (pattern(), "steps"),
    (pattern(*[A] * (STEPS_MAX + 1)), "steps"),
    (pattern(Step()), "steps[0]"),
    (pattern(A, Step(threshold=threshold(price="5e4"))), "steps[1].threshold.price"),
    (pattern(Step(threshold=threshold(price=""))), "steps[0].threshold.price"),
    (pattern(Step(threshold=threshold(price="1" * 21))), "steps[0].threshold.price"),
    (pattern(Step(threshold=threshold(price="0." + "1" * 19))), "steps[0].threshold.price"),
    (pattern(Step(threshold=threshold(price="٣"))), "steps[0].threshold.price"),
    (pattern(Step(threshold=threshold(price="1" * 100_000))), "steps[0].threshold.price"),
    (pattern(Step(threshold=threshold(ticker="btc"))), "steps[0].threshold.ticker"),
    (pattern(Step(threshold=threshold(direction=3))), "steps[0].threshold.direction"),
    (pattern(Step(move=move(percent="0"))), "steps[0].move.percent"),
    (pattern(Step(move=move(percent="-1"))), "steps[0].move.percent"),
    (pattern(Step(move=move(percent="0.0000001"))), "steps[0].move.percent"),
    (pattern(Step(move=move(percent="100.000001", direction=1))), "steps[0].move.percent"),
    (pattern(Step(move=move(window_ms=0))), "steps[0].move.window_ms"),
    (pattern(Step(move=move(window_ms=TICK_REACH_MS_MAX + 1))), "steps[0].move.window_ms"),
    (pattern(Step(move=move(reference=2))), "steps[0].move.reference"),
    (pattern(Step(volume=volume(window_ms=1000))), "steps[0].volume"),
    (pattern(Step(volume=volume(period_seconds=0))), "steps[0].volume"),
    (pattern(Step(volume=volume(multiple="0"))), "steps[0].volume.multiple"),
    (pattern(Step(volume=volume(count=0))), "steps[0].volume.count"),
    (pattern(Step(volume=volume(count=1001))), "steps[0].volume.count"),
    (pattern(Step(volume=volume(period_seconds=U32))), "steps[0].volume.period_seconds"),
    (pattern(Step(volume=volume(period_seconds=0, window_ms=TICK_REACH_MS_MAX // 5))), "steps[0].volume.count"),
    (pattern(Step(bar=bar(period_seconds=0))), "steps[0].bar.period_seconds"),
    (pattern(Step(bar=Bar(ticker=BTC, period_seconds=60))), "steps[0].bar.comparisons"),
    (pattern(Step(bar=bar(Bar.Comparison()))), "steps[0].bar.comparisons[0]"),
    (pattern(Step(bar=bar(Bar.Comparison(number="x")))), "steps[0].bar.comparisons[0].number"),
    (pattern(Step(bar=bar(Bar.Comparison(field=Bar.OPEN)))), "steps[0].bar.comparisons[0].field"),
    (pattern(Step(bar=bar(Bar.Comparison(field=6)))), "steps[0].bar.comparisons[0].field"),
    (pattern(Step(bar=bar(Bar.Comparison(left=9, number="1")))), "steps[0].bar.comparisons[0].left"),
    (pattern(Step(bar=bar(Bar.Comparison(operator=6, number="1")))), "steps[0].bar.comparisons[0].operator"),
    (pattern(Step(silence=silence(duration_ms=0))), "steps[0].silence.duration_ms"),
    (pattern(Step(silence=silence(duration_ms=U64))), "steps[0].silence.duration_ms"),
    (pattern(Step(n_of_m=trigger_pb2.NOfMCondition(n=1, window_ms=1))), "steps[0].n_of_m.conditions"),
    (pattern(Step(n_of_m=n_of_m(*[member()] * (MEMBERS_MAX + 1)))), "steps[0].n_of_m.conditions"),
    (pattern(Step(n_of_m=n_of_m(n=3))), "steps[0].n_of_m.n"),
    (pattern(Step(n_of_m=n_of_m(n=0))), "steps[0].n_of_m.n"),
    (pattern(Step(n_of_m=n_of_m(window_ms=0))), "steps[0].n_of_m.window_ms"),
    (pattern(Step(n_of_m=n_of_m(member("1"), member("1.0")))), "steps[0].n_of_m.conditions[1]"),
    (pattern(Step(n_of_m=n_of_m(member(), member("?")))), "steps[0].n_of_m.conditions[1].threshold.price"),
    (pattern(Step(n_of_m=n_of_m(member(), trigger_pb2.PatternCondition()))), "steps[0].n_of_m.conditions[1]"),
    (pattern(Step(repeat=repeat(n=0))), "steps[0].repeat.n"),
    (pattern(Step(repeat=repeat(n=1001))), "steps[0].repeat.n"),
    (pattern(Step(repeat=repeat(window_ms=0))), "steps[0].repeat"),
    (pattern(Step(repeat=repeat(of_events=1))), "steps[0].repeat.of_events"),
    (pattern(Step(repeat=trigger_pb2.RepeatCondition(n=1, window_ms=1))), "steps[0].repeat.condition"),
    (
        pattern(Step(repeat=repeat(of_events=5, condition=trigger_pb2.PatternCondition(silence=silence())))),
        "steps[0].repeat.of_events",
    ),
    (pattern(then(Step.NEXT)), "steps[0].contiguity"),
    (pattern(then(Step.NOT_FOLLOWED_BY)), "steps[0].contiguity"),
    (pattern(A, then(4)), "steps[1].contiguity"),
    (pattern(then(Step.FOLLOWED_BY, within_ms=1)), "steps[0].within_ms"),
    (pattern(A, then(Step.NEXT, within_ms=WINDOW_MS_MAX + 1)), "steps[1].within_ms"),
    (pattern(A, then(Step.NOT_FOLLOWED_BY)), "steps[1].within_ms"),
    (pattern(A, then(Step.NOT_FOLLOWED_BY, within_ms=5), then(Step.NEXT)), "steps[1].within_ms"),
    (pattern(A, then(Step.NOT_FOLLOWED_BY), then(Step.NEXT)), "steps[2].contiguity"),
    (
        pattern(A, then(Step.NOT_FOLLOWED_BY, within_ms=5), then(Step.NOT_NEXT, within_ms=6)),
        "steps[2].within_ms",
    ),
    (pattern(A, within_ms=WINDOW_MS_MAX + 1), "within_ms"),
    (pattern(A, after_match=2), "after_match"),
]


@pytest.mark.parametrize(("wrong", "place"), PLACES, ids=[f"{n}-{place}" for n, (_, place) in enumerate(PLACES)])
def test_a_wrong_pattern_is_refused_with_the_place_and_what_was_expected(wrong, place):
    with pytest.raises(PatternError) as caught:
        compile_pattern(wrong)
    assert caught.value.place == place
    assert caught.value.code == ErrorCode.INVALID_PATTERN
    assert str(caught.value).startswith(f"{place}: ")
    assert len(str(caught.value)) < 600
    assert isinstance(caught.value, PeerError)


def test_the_reason_says_what_was_expected_and_what_it_was():
    with pytest.raises(PatternError, match=r"expected a plain decimal number such as 50000\.5, got 'fifty'"):
        compile_pattern(pattern(Step(threshold=threshold(price="fifty"))))
    with pytest.raises(PatternError, match="matched when the window is over"):
        compile_pattern(pattern(A, then(Step.NOT_FOLLOWED_BY)))


def test_how_many_conditions_and_sources_there_are_is_bounded():
    full = [
        n_of_m(*[member(str(16 * k + n)) for n in range(MEMBERS_MAX)]) for k in range(CONDITIONS_MAX // MEMBERS_MAX)
    ]
    with pytest.raises(PatternError, match="different conditions"):
        compile_pattern(pattern(*[Step(n_of_m=condition) for condition in full]))
    steps = [Step(silence=silence(ticker=f"C{n}/USDT.BINANCE")) for n in range(SOURCES_MAX + 1)]
    assert len(compile_pattern(pattern(*steps[:-1])).sources) == SOURCES_MAX
    with pytest.raises(PatternError, match="sources"):
        compile_pattern(pattern(*steps))


def test_a_checked_pattern_holds_whole_numbers_and_every_condition_once():
    rising = Bar.Comparison(left=Bar.CLOSE, operator=Bar.GREATER, field=Bar.OPEN)
    steps = [
        Step(threshold=threshold(price="-0.5", ticker="BINANCE:BTC/USDT")),
        Step(n_of_m=n_of_m(member("2"), member("-0.50"))),
        Step(bar=bar(rising), contiguity=Step.NOT_FOLLOWED_BY),
        Step(threshold=threshold(price="2.000"), within_ms=7),
    ]
    found = compile_pattern(pattern(*steps, within_ms=9, after_match=1))
    ticks, minutes = Source(BTC, 0), Source(BTC, 60)
    unit = 10**EXACT_DECIMALS
    assert found.conditions == (
        Cross(ticks, -unit // 2, Direction.UP),
        Cross(ticks, 2 * unit, Direction.UP),
        NOfM(2, (1, 0), 10**9),
        BarTest(minutes, (Comparison(Field.CLOSE, Operator.GREATER, Field.OPEN),)),
    )
    assert found.sources == (ticks, minutes)
    assert found.tickers == (BTC,)
    assert [stage.step for stage in found.stages] == [0, 1, 3]
    assert [stage.signals for stage in found.stages] == [1, 4, 2]
    last = found.stages[-1]
    assert (last.not_between, last.within_ns, last.absent) == (8, 7_000_000, (minutes,))
    assert (found.within_ns, found.skips_past_last, found.is_strict) == (9_000_000, True, False)
    assert compile_pattern(pattern(A, then(Step.NEXT))).stages[1].absent == (ticks,)


def test_negations_at_the_end_make_a_tail():
    found = compile_pattern(pattern(A, then(Step.NOT_NEXT), then(Step.NOT_FOLLOWED_BY, within_ms=5)))
    assert found.tail is not None
    assert (found.tail.step, found.tail.not_next, found.tail.not_between, found.tail.within_ns) == (2, 2, 2, 5_000_000)
    assert found.is_strict
    assert len(found.stages) == 1


def test_a_registration_is_checked_whole():
    request = trigger_pb2.CEPTriggerRequest(pattern=pattern(A), cooldown_ms=1000, expires_at=1_800_000_000 * 10**9)
    assert check_registration(request) == compile_pattern(request.pattern)
    for change, place in (({"cooldown_ms": U64}, "cooldown_ms"), ({"expires_at": 1_800_000_000}, "expires_at")):
        wrong = trigger_pb2.CEPTriggerRequest()
        wrong.CopyFrom(request)
        for name, value in change.items():
            setattr(wrong, name, value)
        with pytest.raises(PatternError) as caught:
            check_registration(wrong)
        assert caught.value.place == place
    with pytest.raises(PatternError):
        check_registration(trigger_pb2.CEPTriggerRequest())


@settings(max_examples=150, deadline=None)
@given(
    data=st.one_of(
        st.binary(max_size=60), st.lists(st.integers(0, 255), max_size=60).map(lambda b: bytes([10, len(b), *b]))
    )
)
def test_any_bytes_are_a_pattern_or_are_refused(data):
    try:
        compile_pattern(trigger_pb2.Pattern.FromString(data))
    except (DecodeError, PatternError):
        return


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    numbers=st.lists(st.sampled_from([0, 1, 2, 7, 60, U32]), min_size=4, max_size=4),
    text=st.sampled_from(["", "1", "-1", "0.5", "nan", "1" * 40, BTC]),
)
def test_any_fields_are_checked_without_another_error(data, numbers, text):
    step = Step(contiguity=numbers[0] % 4, within_ms=numbers[1])
    kind = data.draw(st.sampled_from(["threshold", "move", "volume", "bar", "silence", "n_of_m", "repeat"]))
    inner = getattr(step, kind)
    inner.SetInParent()
    for field in inner.DESCRIPTOR.fields:
        if field.message_type is None and not field.is_repeated:
            is_text = field.cpp_type == field.CPPTYPE_STRING
            value = text if is_text else data.draw(st.sampled_from(numbers))
            setattr(inner, field.name, min(value, 3) if field.enum_type is not None else value)
    try:
        found = compile_pattern(pattern(A, step, then(numbers[2] % 4), within_ms=numbers[3]))
    except PatternError as error:
        assert error.place
        return
    assert found.stages
