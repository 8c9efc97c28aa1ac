"""What a firing says on the wire."""

from __future__ import annotations

import hashlib

from relay.protocol.v1 import trigger_pb2
from relay_client.pattern_builder import CLOSE, when
from spark_jobs.jobs.triggers.engine.messages import event_message
from spark_jobs.jobs.triggers.engine.values import Trigger
from tests.unit.spark_jobs.triggers.market import BTC, ETH, ID, Market, at

SEQUENCE = when(BTC).crosses_above("50").then(when(ETH).silent_for("30s")).then(when(BTC).bar("1m", CLOSE.above("1")))


def happened(*, trigger_id=ID) -> Market:
    market = Market(SEQUENCE)
    if trigger_id != ID:
        market.matcher.remove(ID)
        market.add(SEQUENCE, trigger_id=trigger_id)
    market.tick(0, "49.90", number=7).tick(5, "50.010", "0.0000001", number=8).tick(1, 3, ticker=ETH)
    return market.bar(0, c="12.5", v=None).mark(100)


def test_a_firing_says_its_events_as_decimal_text():
    (firing,) = happened().firings()
    message = event_message(firing)
    assert (message.trigger_id, message.fired_at, message.ticker) == (ID, at(60), BTC)
    tick, silence, bar = message.matched
    assert tick == trigger_pb2.MatchedEvent(
        step=0, timestamp=at(5), ticker=BTC, price="50.01", volume="0.0000001", trade_id="8"
    )
    assert silence == trigger_pb2.MatchedEvent(step=1, timestamp=at(31), ticker=ETH)
    assert bar == trigger_pb2.MatchedEvent(step=2, timestamp=at(60), ticker=BTC, price="12.5", period_seconds=60)
    assert not message.HasField("stamp")


def test_the_match_id_is_the_same_for_the_same_events_and_another_for_others():
    (firing,) = happened().firings()
    lines = [ID, f"0|{BTC}|tick|8", f"1|{ETH}|silence|{30 * 10**9}|{at(31)}", f"2|{BTC}|bar|60|{at(60)}"]
    expected = hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()
    assert event_message(firing).match_id == expected
    assert happened().firings()[0].match_id == expected
    assert happened(trigger_id="other").firings("other")[0].match_id != expected


def test_a_registration_makes_a_trigger():
    request = trigger_pb2.CEPTriggerRequest(
        trigger_id=ID, pattern=SEQUENCE.build(), cooldown_ms=1500, one_shot=True, expires_at=at(9)
    )
    trigger = Trigger.of(request, since_ns=at(0))
    assert trigger[0] == ID
    assert trigger[2:] == (at(0), 1_500_000_000, True, at(9))
    assert trigger_pb2.Pattern.FromString(trigger.pattern) == request.pattern
