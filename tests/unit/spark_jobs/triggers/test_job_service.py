"""The triggers job on a log: each firing in the log once, then announced, whatever is killed in between."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from relay.errors import PeerError, RetryableError
from relay.eventlog import CONTROL_TOPIC, TICK_TOPIC, partition_of
from relay.protocol.envelope import encode_record
from relay.protocol.v1 import trigger_pb2, work_pb2
from relay_client.pattern_builder import CLOSE, when
from spark_jobs.jobs.bars import decode
from spark_jobs.jobs.source import clamped_starts
from spark_jobs.jobs.state_store import StateStore
from spark_jobs.jobs.triggers.definitions import definition_of
from spark_jobs.jobs.triggers.state import TriggersState
from tests.unit.spark_jobs.triggers.job_world import BTC, CLIENT, ETH, IDS, JobWorld, S, at

CROSSES = when(BTC).crosses_above("50")
CLOSES = when(BTC).bar("1s", CLOSE.above("50"))
FIRST, SECOND = IDS


@pytest.fixture
def world(tmp_path: Path) -> JobWorld:
    return JobWorld(tmp_path)


def request(**fields: object) -> trigger_pb2.CEPTriggerRequest:
    return trigger_pb2.CEPTriggerRequest(trigger_id=FIRST, **fields)  # type: ignore[arg-type]


def test_what_is_no_definition_is_passed_over_and_a_bad_one_is_refused_with_the_reason() -> None:
    good = request(client_id=CLIENT)
    assert definition_of(FIRST.encode(), encode_record(good)) == good
    about_bars = work_pb2.DataRequest(ticker=BTC)
    assert definition_of(BTC.encode(), encode_record(about_bars)) is None
    bad = [
        (SECOND.encode(), good, "trigger_id"),
        (b"x", trigger_pb2.CEPTriggerRequest(trigger_id="x"), "UUID"),
        (FIRST.encode(), request(client_id="me"), "client_id"),
        (FIRST.encode(), request(action=trigger_pb2.CEPTriggerRequest.LIST), "REGISTER or CANCEL"),
    ]
    for key, message, reason in bad:
        with pytest.raises(PeerError, match=reason):
            definition_of(key, encode_record(message))
    with pytest.raises(PeerError):
        definition_of(FIRST.encode(), b"\x01\x09\xff\xff")


def test_a_firing_goes_to_the_log_and_then_to_the_trigger_and_its_owner(world: JobWorld) -> None:
    world.define(CROSSES, client_id=CLIENT).define(CROSSES, SECOND).start()
    world.tick(0, 49).tick(1, 51).beat(2).turn()
    assert (world.seconds(FIRST), world.seconds(SECOND)) == ([1], [1])
    assert world.fired()[0].stamp.published_at > 0
    assert sorted(topic for topic, _ in world.announced) == [f"CEP:{FIRST}", f"CEP:{SECOND}", f"RESPONSE:{CLIENT}"]


def test_definitions_are_taken_from_the_stream_before_the_ticks_of_their_batch(world: JobWorld) -> None:
    world.start().define(CROSSES).tick(0, 49).tick(1, 51).beat(2).turn()
    assert world.seconds() == [1]
    world.define(None).tick(3, 49).tick(4, 51).beat(5).turn()
    assert world.seconds() == [1]


def test_what_was_before_the_registration_does_not_exist(world: JobWorld) -> None:
    past = -(3_600 + 1_200)
    world.start().define(CROSSES).tick(past, 49).tick(past + 1, 51).beat(past + 2).turn()
    world.tick(0, 49).tick(1, 51).beat(2).turn()
    assert world.seconds() == [1]


def test_bad_definitions_are_counted_and_stop_nothing(world: JobWorld) -> None:
    world.define(when(BTC).crosses_above("50"), "no-uuid").start()
    world.log.append(CONTROL_TOPIC, key=SECOND.encode(), value=b"\x01\x09\xff\xff")
    empty = trigger_pb2.CEPTriggerRequest(trigger_id=SECOND)
    world.log.append(CONTROL_TOPIC, key=SECOND.encode(), value=encode_record(empty))
    world.define(CROSSES).tick(0, 49).tick(1, 51).beat(2).turn()
    assert (world.seconds(), world.counters.get("triggers.refused")) == ([1], 3)


def test_only_records_of_named_tickers_are_decoded(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes | None] = []

    def counted(record: decode.Record) -> decode.BarEvent | None:
        decoded.append(record.key)
        return bar_event(record)

    bar_event = decode.bar_event
    monkeypatch.setattr(decode, "bar_event", counted)
    world.define(CROSSES).start().tick(0, 49).tick(0, 49, ticker=ETH).beat(1).beat(1, ticker=ETH).turn()
    assert set(decoded) == {BTC.encode()}


@pytest.mark.parametrize("loses_state", [False, True])
@pytest.mark.parametrize("killed_after", range(1, 14))
def test_a_kill_anywhere_changes_no_firing(tmp_path: Path, killed_after: int, loses_state: bool) -> None:
    world = JobWorld(tmp_path, triggers_state_seconds=3600)
    sequence = when(BTC).crosses_above("50").then(when(ETH).crosses_below("30")).within("20s")
    world.define(CROSSES).define(sequence, SECOND, client_id=CLIENT).start()
    prices = [49, 51, 48, 52, 50, 47, 53, 55, 49, 51, 40, 60, 61]
    for second, price in enumerate(prices):
        world.tick(second, price).tick(second, 80 - price, ticker=ETH).beat(second).beat(second, ticker=ETH)
        if second == killed_after // 2:
            world.service._save()
        if second == killed_after:
            if loses_state:
                world.lose_state()
            world.start()
        world.turn()
    world.beat(60).beat(60, ticker=ETH).turn()
    assert world.seconds() == [1, 3, 6, 9, 11]
    assert world.seconds(SECOND) == [1, 3, 6, 9, 11]
    assert [event.ticker for event in world.fired(SECOND)] == [ETH] * 5
    told = {(topic, event.match_id) for topic, event in world.announced}
    assert told == {
        *((f"CEP:{trigger_id}", event.match_id) for trigger_id in IDS for event in world.fired(trigger_id)),
        *((f"RESPONSE:{CLIENT}", event.match_id) for event in world.fired(SECOND)),
    }


@pytest.mark.parametrize("loses_state", [False, True])
def test_what_was_logged_but_perhaps_not_announced_is_announced_after_a_restart(
    world: JobWorld, loses_state: bool
) -> None:
    world.define(CROSSES, client_id=CLIENT).start()
    world.service._save()
    world.tick(0, 49).tick(1, 51).beat(2).turn()
    world.announced.clear()
    if loses_state:
        world.lose_state()
    world.start().turn()
    assert world.seconds() == [1]
    assert [topic for topic, _ in world.announced] == [f"CEP:{FIRST}", f"RESPONSE:{CLIENT}"]
    world.service.close()
    world.announced.clear()
    world.start().turn()
    assert world.announced == []


def test_what_the_log_does_not_take_is_neither_announced_nor_saved(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.define(CROSSES).start().tick(0, 49).tick(1, 51).beat(2)
    monkeypatch.setattr(world.log, "flush", lambda timeout_s: 1)
    with pytest.raises(RetryableError, match="has not acknowledged 1 firings"):
        world.turn()
    world.service.close()
    assert (world.announced, list((world.folder / "triggers-state").iterdir())) == ([], [])
    monkeypatch.undo()
    world.start().turn()
    # The append itself went through, though nobody had said so.
    assert (world.seconds(), len(world.announced)) == ([1], 1)


def test_a_one_shot_trigger_stays_over_however_often_it_is_told(world: JobWorld) -> None:
    world.define(CROSSES, one_shot=True).start().tick(0, 49).tick(1, 51).beat(2).turn()
    world.define(CROSSES, one_shot=True).tick(3, 49).tick(4, 51).beat(5).turn()
    world.service.close()
    world.start().define(CROSSES, one_shot=True).tick(6, 49).tick(7, 51).beat(8).turn()
    world.lose_state().start().define(CROSSES, one_shot=True).tick(9, 49).tick(10, 51).beat(11).turn()
    assert world.seconds() == [1]


@pytest.mark.parametrize("ahead_s", [0, 3, 600])
@pytest.mark.parametrize("loses_state", [False, True])
def test_a_one_shot_trigger_that_is_registered_anew_fires_anew_however_far_the_exchanges_clock_is_ahead(
    world: JobWorld, ahead_s: int, loses_state: bool
) -> None:
    now_s = (time.time_ns() - at(0)) / S + ahead_s
    first, second = now_s + 2, now_s + 6
    world.define(CROSSES, one_shot=True).start().turn()
    world.tick(first - 1, 49).tick(first, 51).beat(first + 1).turn()
    world.define(None).turn()
    made_ms = world.fired()[0].stamp.published_at // 10**6
    while time.time_ns() // 10**6 <= made_ms:
        pass  # the log's times are whole milliseconds
    world.define(CROSSES, one_shot=True)
    if loses_state:
        world.lose_state().start()
    world.turn().tick(second - 1, 49).tick(second, 51).beat(second + 1).turn()
    assert world.seconds() == pytest.approx([first, second])


def test_a_repeated_definition_changes_nothing_and_another_one_begins_anew(world: JobWorld) -> None:
    world.define(CROSSES).start().tick(0, 49).beat(1).turn()
    world.define(CROSSES).tick(2, 51).beat(3).turn()
    assert world.seconds() == [2]
    world.define(when(BTC).crosses_above("60")).tick(4, 49).tick(5, 55).tick(6, 61).beat(7).turn()
    assert world.seconds() == [2, 6]


def test_a_trigger_that_expired_long_ago_is_let_go_though_its_ticker_is_silent(world: JobWorld) -> None:
    world.define(CROSSES, expires_at=at(-2 * 86_400)).define(CROSSES, SECOND, expires_at=at(100)).start()
    world.service.close()
    assert world.counters.get("triggers.registered") == 1


def test_a_state_that_is_refused_is_no_state(world: JobWorld) -> None:
    world.define(CROSSES).start().tick(0, 49).tick(1, 51).beat(2).turn()
    world.service.close()
    states = StateStore(str(world.folder), TriggersState, job="triggers")
    state = states.load()
    assert state is not None
    states.save(msgspec.structs.replace(state, matcher=state.matcher[:-1]))
    world.start().tick(3, 49).tick(4, 51).beat(5).turn()
    assert (world.seconds(), world.counters.get("triggers.state.refused")) == ([1, 4], 1)


def test_a_bar_counts_when_all_of_it_was_seen_and_not_before(world: JobWorld) -> None:
    world.define(CLOSES).start()
    world.tick(0.5, 51).beat(0.6).turn()
    world.tick(1.5, 51).beat(2).turn()
    # The first bucket began before anything was known; the second ends with the mark and waits for the next.
    assert world.seconds() == []
    world.tick(2.5, 51).beat(2.6).turn()
    assert world.seconds() == [2]
    world.beat(3.1).turn()
    assert world.seconds() == [2, 3]


def test_a_bar_waits_for_a_hole_to_be_filled_and_is_no_event_when_it_cannot_be(world: JobWorld) -> None:
    world.define(CLOSES).start().tick(0, 51).beat(0.1).turn()
    world.tick(1.1, 51).gap("OPEN", 2, 4, 1.1, 1.9).tick(2.5, 51).beat(3.5).turn()
    assert world.seconds() == []
    world.tick(1.5, 52).gap("FILLED", 2, 4, 1.1, 1.9).beat(3.6).turn()
    assert world.seconds() == [2, 3]
    world.tick(4.1, 51).gap("OPEN", 7, 8, 4.1, 4.9).gap("UNFILLABLE", 7, 8, 4.1, 4.9).beat(5.5).turn()
    assert world.seconds() == [2, 3]
    assert world.fired()[0].matched[0].price == "52"


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_bar_that_lies_wholly_inside_a_hole_counts_when_the_hole_is_filled(world: JobWorld, is_stopped: bool) -> None:
    either = CLOSES.then(when(BTC).bar("1s", CLOSE.below("50")))
    world.define(CLOSES).define(either, SECOND).start().tick(1.5, 49).beat(1.6).turn()
    world.gap("OPEN", 2, 4, 1.5, 5.5).tick(5.5, 49)
    for second in (3, 6, 7):
        world.beat(second, state="DOWN" if is_stopped else "UP").turn()
    world.service.close()
    world.start().beat(8, attempt=2).turn()
    assert (world.seconds(), world.seconds(SECOND)) == ([], [])
    world.tick(2.2, 51).tick(2.8, 52).tick(4.4, 53).beat(9, attempt=2).turn()
    assert world.seconds() == []
    world.gap("FILLED", 2, 4, 1.5, 5.5).beat(10, attempt=2).turn()
    assert (world.seconds(), world.seconds(SECOND)) == ([3, 5], [6, 6])
    world.tick(2.9, 54).tick(3.5, 54).beat(11, attempt=2).turn()
    assert world.seconds() == [3, 5]


def test_a_hole_that_is_filled_in_part_brings_the_bars_that_are_whole_and_lets_time_go_on(world: JobWorld) -> None:
    world.define(CLOSES).start().tick(1.5, 49).beat(1.6).turn()
    world.gap("OPEN", 2, 5, 1.5, 9.5).tick(9.5, 49).beat(10).turn()
    world.gap("UNFILLABLE", 2, 2, 1.5, 4.2).beat(11).turn()
    world.tick(4.2, 51).tick(5.2, 51).beat(12).turn()
    assert world.seconds() == []
    world.gap("FILLED", 2, 5, 1.5, 9.5).beat(13).turn()
    assert world.seconds() == [6]
    world.tick(13.5, 51).beat(14.5).turn()
    assert world.seconds() == [6, 14]


def test_a_bar_that_was_final_before_a_hole_reached_back_into_it_does_not_count_again(world: JobWorld) -> None:
    world.define(CLOSES).start().tick(0.5, 49).beat(0.6).tick(1.1, 51).beat(2.5).turn()
    world.gap("OPEN", 4, 5, 1.1, 4.5).tick(4.5, 49).beat(5.5).turn()
    assert world.seconds() == [2]
    world.tick(1.7, 52).tick(3.5, 53).gap("FILLED", 4, 5, 1.1, 4.5).beat(6.5).turn()
    assert world.seconds() == [2, 4]


def test_a_feed_that_is_down_or_was_replaced_says_nothing_of_time(world: JobWorld) -> None:
    world.define(CROSSES).start().tick(0, 49).beat(0.5, attempt=2).tick(1, 51)
    world.beat(5, attempt=2, state="DOWN").beat(5, attempt=1).turn()
    assert world.seconds() == []
    world.beat(5, attempt=3).turn()
    assert world.seconds() == [1]


def test_late_events_are_waited_for_as_long_as_the_settings_say(tmp_path: Path) -> None:
    world = JobWorld(tmp_path, triggers_lateness_ms=2_000)
    world.define(CROSSES).define(CLOSES, SECOND).start()
    world.tick(0, 49).beat(1).turn()
    world.tick(3.2, 48).beat(4).tick(3.1, 51).beat(5).turn()
    assert (world.seconds(), world.seconds(SECOND)) == ([], [])
    world.beat(7).turn()
    assert world.seconds() == [3.1]


def test_what_was_left_out_is_logged_when_it_has_grown_and_not_again(world: JobWorld) -> None:
    world.define(CROSSES.then(when(ETH).crosses_above("50"))).start()
    world.tick(0, 49).beat(1).beat(1_000, ticker=ETH).tick(2, 51).beat(3).turn()
    with capture_logs() as logs:
        world.service._save()
        world.service._save()
    assert [(log["event"], log["left_behind"]) for log in logs] == [("trigger_events_left_out", 1)]


def test_a_service_that_was_closed_fires_no_more(world: JobWorld) -> None:
    world.define(CROSSES).start()
    world.service.close()
    world.tick(0, 49).tick(1, 51).beat(2)
    with pytest.raises(RetryableError, match="broken off"):
        world.turn()
    assert world.fired() == []
    assert world.start().turn().seconds() == [1]


def test_ticks_of_a_topic_that_has_grown_are_read_on_in_the_order_of_appending(world: JobWorld) -> None:
    assert (partition_of(BTC.encode(), 2), partition_of(BTC.encode(), 3)) == (1, 0)
    world.define(CLOSES).start()
    world.beat(-1).tick(0, 49).turn().service.close()
    world.tick(0.2, 49)
    world.log.grow(TICK_TOPIC, 3)
    world.tick(0.5, 51).beat(1).tick(1.2, 40).beat(2).start()
    reached = world.service.offsets
    starts = clamped_starts(world.log, reached, counters=world.counters, job="triggers")[TICK_TOPIC]
    assert (sorted(reached[TICK_TOPIC]), starts) == ([0, 1], {0: 0, 1: 2, 2: 0})
    assert world.service.catch_up(starts) == {0: 4, 1: 3, 2: 0}
    assert world.seconds() == [1]
    assert world.fired()[0].match_id
    assert world.start().turn().seconds() == [1]


def test_a_trigger_cancelled_in_another_partition_stays_cancelled(world: JobWorld) -> None:
    moving = "00000000-0000-4000-8000-000000000000"
    assert (partition_of(moving.encode(), 2), partition_of(moving.encode(), 3)) == (1, 0)
    world.define(CROSSES, moving)
    world.log.grow(CONTROL_TOPIC, 3)
    world.define(None, moving).start().tick(0, 49).tick(1, 51).beat(2).turn()
    assert world.seconds(moving) == []
