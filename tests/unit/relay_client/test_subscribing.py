"""What a subscription accepts, buffers and says of its numbers."""

from __future__ import annotations

import pickle
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.errors import RetryableError, SettingsError
from relay.protocol.v1 import market_pb2
from relay_client import ClientSettings, FeedState, Overrun, Tick
from relay_client.batches import record_batch
from relay_client.buffer import BufferPolicy, ItemBuffer
from relay_client.engine.items import Origin, bar_of
from relay_client.engine.liveness import Liveness
from relay_client.engine.spans import SpanSet
from relay_client.subscribing import new_plan
from tests.support.client_world import BTC
from tests.support.live_world import tick

SECOND_NS = 1_000_000_000


def plan(topics: object = BTC, **changes: object) -> object:
    values = {
        "start": None,
        "order": "arrival",
        "numbers": "decimal",
        "buffer_max": 10,
        "policy": "drop_oldest",
        "conflate": False,
        "repair": True,
        **changes,
    }
    return new_plan(topics, settings=ClientSettings(), **values)


def ticks(*numbers: int) -> list[Tick]:
    return [Tick(tick(number)) for number in numbers]


def ids(items: object) -> list[object]:
    return [item if isinstance(item, Overrun) else int(item.trade_id) for item in items]


def test_a_bare_ticker_means_its_ticks_and_topics_come_once():
    assert [str(t) for t in plan([BTC, f"{BTC}|tick", f"{BTC}|ohlc:60"]).topics] == [f"{BTC}|tick", f"{BTC}|ohlc:60"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"topics": "nonsense"}, "expected a ticker"),
        ({"topics": []}, "expected 1 to"),
        ({"topics": f"{BTC}|heartbeat"}, "beats come by themselves"),
        ({"topics": f"{BTC}|ohlc:60", "start": datetime(2024, 1, 1, tzinfo=UTC)}, "read by history"),
        ({"start": datetime.now(UTC) + timedelta(days=1)}, "in the future"),
        ({"start": datetime(2024, 1, 1, tzinfo=UTC), "conflate": True}, "conflate without start"),
        ({"order": "any"}, "expected order"),
        ({"numbers": "float"}, "expected numbers"),
        ({"policy": "block"}, "expected policy"),
        ({"buffer_max": 0}, "expected buffer_max"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_was_expected(changes, text):
    changes = dict(changes)
    with pytest.raises(SettingsError, match=text):
        plan(changes.pop("topics", BTC), **changes)


def test_a_full_buffer_drops_the_oldest_and_says_how_many():
    buffer = ItemBuffer(3, BufferPolicy.DROP_OLDEST)
    buffer.push(ticks(1, 2))
    buffer.push(ticks(3, 4, 5))
    assert ids(buffer.take()) == [Overrun(2), 3, 4, 5]
    assert (buffer.dropped_total, ids(buffer.take(timeout_s=0))) == (2, [])


def test_a_full_buffer_can_drop_the_newest_instead():
    buffer = ItemBuffer(3, BufferPolicy.DROP_NEWEST)
    buffer.push(ticks(1, 2, 3, 4, 5))
    assert ids(buffer.take()) == [1, 2, 3, Overrun(2)]


def test_a_full_buffer_can_end_the_subscription():
    buffer = ItemBuffer(2, BufferPolicy.RAISE)
    buffer.push(ticks(1, 2, 3))
    assert [i for i in ids(buffer.take()) if not isinstance(i, Overrun)] == [1, 2]
    with pytest.raises(RetryableError, match="slower than the feed"):
        buffer.take()


def test_case_91_each_conflating_subscriber_gets_its_own_newest():
    slow, fast = (ItemBuffer(10, BufferPolicy.DROP_OLDEST, is_conflating=True) for _ in range(2))
    seen = []
    for number in (1, 2, 3):
        slow.push(ticks(number))
        fast.push(ticks(number))
        seen += ids(fast.take())
    assert (seen, ids(slow.take()), slow.conflated_total) == ([1, 2, 3], [3], 2)


def test_a_late_tick_does_not_replace_a_newer_one():
    buffer = ItemBuffer(10, BufferPolicy.DROP_OLDEST, is_conflating=True)
    buffer.push(ticks(5, 3))
    assert ids(buffer.take()) == [5]


def test_a_waiting_reader_is_woken_by_the_end():
    buffer, found = ItemBuffer(10, BufferPolicy.DROP_OLDEST), []
    reader = threading.Thread(target=lambda: found.append(buffer.take()))
    reader.start()
    buffer.close()
    reader.join()
    assert found == [None]


def test_a_tick_tells_exact_numbers_or_integers_with_their_scale():
    exact, scaled = Tick(tick(1)), Tick(tick(1), Origin.LIVE, True)
    assert (exact.price, exact.amount) == (Decimal("42.14"), Decimal("1.0000001"))
    assert (scaled.price, scaled.price_decimals, scaled.amount, scaled.amount_decimals) == (4214, 2, 10_000_001, 7)
    assert exact.quote_amount is None
    assert pickle.loads(pickle.dumps(exact)) == exact != scaled


def test_a_tick_cannot_be_changed():
    with pytest.raises(AttributeError):
        Tick(tick(1)).price = 3


def test_a_bar_keeps_absent_numbers_absent():
    message = market_pb2.OHLC(ticker=BTC, timestamp=60 * SECOND_NS, period_seconds=60, open=1, high=2, low=1, close=2)
    message.volume, message.price_decimals = "0.0000001", 7
    bar = bar_of(message)
    assert (bar.close, bar.volume, bar.quote_volume, bar.trades) == (Decimal("2E-7"), Decimal("1E-7"), None, None)


def test_a_batch_holds_decimals_or_integers_and_never_floats():
    exact = record_batch(ticks(1, 2), is_scaled=False)
    scaled = record_batch(ticks(1, 2), is_scaled=True)
    assert exact.column("price").to_pylist() == [Decimal("42.14"), Decimal("42.15")]
    assert str(exact.schema.field("amount").type) == "decimal128(38, 18)"
    assert scaled.column("price").to_pylist() == [4214, 4215]
    assert exact.column("time").cast("int64").to_pylist() == [t.time_ns for t in ticks(1, 2)]


def beat(state: str, *, attempt: int = 1, source: str = "INGESTOR") -> market_pb2.Heartbeat:
    return market_pb2.Heartbeat(source=source, state=state, attempt=attempt)


def test_a_silent_market_is_up_as_long_as_it_beats_and_a_dead_feed_is_not():
    line = Liveness(BTC, silence_ns=3 * SECOND_NS, now_ns=0)
    for second in range(100):
        line.on_beat(beat("UP"), second * SECOND_NS)
        assert line.on_tick(second * SECOND_NS + SECOND_NS // 2) is None
    assert line.state is FeedState.UP
    change = line.on_tick(110 * SECOND_NS)
    assert (change.state, change.before) == (FeedState.NO_BEATS, FeedState.UP)
    assert line.on_beat(beat("MUTE"), 111 * SECOND_NS).state is FeedState.MUTE


def test_beats_of_a_replaced_attempt_do_not_count_until_the_other_has_gone():
    line = Liveness(BTC, silence_ns=3 * SECOND_NS, now_ns=0)
    assert line.accepts(beat("UP", attempt=2), SECOND_NS)
    assert not line.accepts(beat("DOWN", attempt=1), 2 * SECOND_NS)
    assert line.accepts(beat("DOWN", source="MANAGER"), 2 * SECOND_NS)
    assert line.accepts(beat("UP", attempt=1), 9 * SECOND_NS)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 5))))
def test_a_span_set_is_a_set(steps):
    spans, plain = SpanSet(), set()
    for is_added, first, length in steps:
        numbers = set(range(first, first + length))
        if is_added and length == 1:
            assert spans.add(first) == (first not in plain)
        elif is_added:
            spans.add_span(first, first + length - 1)
        elif length == 1:
            assert spans.remove(first) == (first in plain)
        else:
            assert spans.remove_span(first, first + length - 1) == len(plain & numbers)
        plain = plain | numbers if is_added else plain - numbers
        held = {n for low, high in spans.present(0, 40) for n in range(low, high + 1)}
        absent = {n for low, high in spans.absent(0, 40) for n in range(low, high + 1)}
        assert (held, absent) == (plain, set(range(41)) - plain)


def test_a_bounded_span_set_takes_what_it_forgot_for_held():
    spans = SpanSet(spans_max=2)
    for number in (1, 3, 5):
        spans.add(number)
    assert not spans.add(0)
    assert spans.add(4)
