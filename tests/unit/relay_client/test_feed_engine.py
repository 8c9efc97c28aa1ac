"""One ticker's feed: loss is found, repaired or reported; nothing comes twice."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.v1 import market_pb2
from relay_client import HistoryJoined, Repaired, Skipped
from relay_client.engine.live_values import FeedRules
from tests.support.live_world import FIRST_NS, tick
from tests.unit.relay_client.feed_model import FeedModel

START_NS = FIRST_NS + 1


def test_trades_in_order_pass_and_ask_for_nothing():
    model = FeedModel()
    model.trade(*range(10, 20))
    model.run(5)
    assert (model.delivered, model.questions, len(model.out)) == (list(range(10, 20)), [], 10)


def test_a_jump_of_the_sequence_is_repaired_from_the_log_and_flagged():
    model = FeedModel()
    model.trade(1, 2)
    model.trade(3, 4, is_lost=True)
    model.trade(5)
    model.run(1)
    assert model.delivered == [1, 2, 5, 3, 4]
    assert [t.repaired for t in model.ticks] == [False, False, False, True, True]
    assert [e.count for e in model.out if isinstance(e, Repaired)] == [2]
    assert (model.counters.repaired, model.counters.lost) == (2, 0)


def test_case_87_what_the_log_does_not_have_is_reported_with_its_count_and_place():
    model = FeedModel()
    model.trade(1, 2)
    model.trade(3, 4, 5, is_lost=True, is_logged=False)
    model.trade(6)
    model.run(60)
    (loss,) = model.losses
    assert (loss.count, loss.from_sequence, loss.to_sequence) == (3, 3, 5)
    assert (loss.from_trade_id, loss.to_trade_id) == ("3", "5")
    assert model.counters.received + model.counters.lost == len(model.sent)


def test_case_65_a_replay_that_says_ok_but_brings_nothing_is_no_repair():
    model = FeedModel()
    model.trade(1)
    model.trade(2, is_lost=True, is_logged=False)
    model.trade(3)
    model.now_ns += 10**9
    question = model.feed.next_question(model.now_ns)
    assert question is not None
    model.feed.on_records(question, [], 0, model.now_ns)  # status OK, no records
    assert (model.delivered, model.losses) == ([1, 3], [])
    model.run(60)
    assert [loss.count for loss in model.losses] == [1]


def test_a_trade_that_reaches_the_log_late_is_asked_for_again():
    model = FeedModel()
    model.trade(1)
    late = model.stamped(2, is_logged=False)
    model.trade(3)
    model.run(2)
    assert model.delivered == [1, 3]
    model.log.append(late)
    model.run(5)
    assert (model.delivered, model.losses) == ([1, 3, 2], [])


def test_a_trade_that_was_reported_lost_and_comes_after_all_is_lost_no_more():
    model = FeedModel()
    model.trade(1)
    late = model.stamped(2, is_logged=False)
    model.trade(3)
    model.run(60)
    assert model.counters.lost == 1
    model.feed.take(late, model.now_ns)
    assert (model.delivered, model.counters.lost) == ([1, 3, 2], 0)


def test_messages_that_overtake_each_other_are_no_loss():
    model = FeedModel()
    first, second, third = (model.stamped(n) for n in (1, 2, 3))
    for message in (first, third, second):
        model.feed.take(message, model.now_ns)
    model.run(1)
    assert (model.delivered, model.questions, model.losses) == ([1, 3, 2], [], [])


def test_a_trade_repeated_under_another_epoch_is_dropped():
    model = FeedModel()
    model.trade(1, 2, 3)
    model.hand_over()
    model.trade(2, 3, 4)
    model.run(1)
    assert (model.delivered, model.counters.repeated) == ([1, 2, 3, 4], 2)


def test_the_tail_that_a_dead_publisher_left_is_found_by_the_ids_of_the_next_one():
    model = FeedModel()
    model.trade(1, 2)
    model.trade(3, 4, is_lost=True)
    model.hand_over()
    model.trade(5)
    model.run(1)
    assert sorted(model.delivered) == [1, 2, 3, 4, 5]


def test_a_backfill_of_the_next_publisher_does_not_hide_the_tail_that_the_dead_one_left():
    model = FeedModel()
    model.trade(1, 2)
    model.gap("OPEN", 3, 3)
    model.trade(4, is_lost=True, is_logged=False)
    model.hand_over()
    model.backfill(3)
    model.trade(5)
    model.run(60)
    assert model.delivered == [1, 2, 3, 5]
    assert [(loss.count, loss.from_trade_id) for loss in model.losses] == [(1, "4")]


def test_returning_to_a_known_epoch_is_no_resync():
    model = FeedModel()
    model.trade(1, 2)
    model.hand_over()
    model.trade(3)
    model.run(5)
    asked = len(model.questions)
    model.epoch, model.sequence = 1, 2
    model.trade(4)
    model.run(5)
    assert (model.delivered, len(model.questions)) == ([1, 2, 3, 4], asked)


def test_a_lost_tail_is_found_by_the_beat():
    model = FeedModel()
    model.trade(1, 2)
    model.trade(3, is_lost=True)
    model.beat(3)
    model.run(0.3)
    assert model.delivered == [1, 2]
    model.run(2)
    assert model.delivered == [1, 2, 3]


def test_a_lost_tail_is_reported_once_although_the_next_stamp_shows_it_again():
    model = FeedModel()
    model.trade(1, 2)
    model.trade(3, 4, is_lost=True, is_logged=False)
    model.beat(4)
    model.run(30)
    model.trade(5)
    model.run(60)
    assert [loss.count for loss in model.losses] == [2]
    assert model.counters.lost == 2


def test_what_is_lost_before_the_first_trade_is_found_by_the_beat_before_it():
    model = FeedModel()
    model.beat(10)
    model.trade(11, is_lost=True)
    model.trade(12)
    model.run(1)
    assert sorted(model.delivered) == [11, 12]


def test_ids_in_a_declared_gap_are_no_loss_of_the_way():
    model = FeedModel()
    model.trade(1, 2)
    model.gap("OPEN", 3, 5)
    model.hand_over()
    model.trade(6)
    model.beat(6)
    model.run(60)
    assert (model.delivered, model.losses, model.counters.lost) == ([1, 2, 6], [], 0)


def test_after_a_cut_the_tail_is_looked_for_without_a_further_trade_or_beat():
    model = FeedModel()
    model.trade(1, 2)
    model.feed.on_relay_away()
    model.trade(3, 4, is_lost=True)
    model.run(60)
    assert model.questions == []
    model.feed.on_in_force(model.now_ns, was_cut=True)
    model.run(1)
    assert (model.delivered, model.losses) == ([1, 2, 3, 4], [])


def test_a_loss_found_before_the_relay_went_is_not_given_up_while_it_is_away():
    model = FeedModel()
    model.trade(1)
    model.trade(2, is_lost=True)
    model.trade(3)
    model.feed.on_relay_away()
    model.run(600)
    model.feed.on_in_force(model.now_ns, was_cut=True)
    model.run(1)
    assert (sorted(model.delivered), model.losses) == ([1, 2, 3], [])


def test_a_loss_of_many_pages_is_repaired_page_by_page():
    model = FeedModel()
    model.trade(1)
    model.trade(*range(2, 12_002), is_lost=True)
    model.trade(12_002)
    model.run(5)
    assert sorted(model.delivered) == list(range(1, 12_003))
    assert len(model.questions) == 3


def test_losses_close_together_are_repaired_by_one_replay():
    model = FeedModel()
    for number in range(1, 2_000):
        model.trade(number, is_lost=number % 3 == 0)
    model.run(1)
    assert sorted(model.delivered) == model.sent
    assert len(model.questions) == 1


def test_without_repair_a_loss_is_reported_at_once():
    model = FeedModel(rules=FeedRules(is_repairing=False))
    model.trade(1)
    model.trade(2, is_lost=True)
    model.trade(3)
    assert ([loss.count for loss in model.losses], model.questions) == ([1], [])


def test_strict_order_holds_trades_until_the_missing_one_has_come():
    model = FeedModel(is_strict=True)
    model.trade(1)
    model.trade(2, is_lost=True)
    model.trade(3, 4)
    assert model.delivered == [1]
    model.run(1)
    assert model.delivered == [1, 2, 3, 4]


def test_strict_order_goes_on_behind_a_loss_and_behind_what_is_unfillable():
    model = FeedModel(is_strict=True)
    model.trade(1)
    model.trade(2, is_lost=True, is_logged=False)
    model.trade(3)
    model.gap("UNFILLABLE", 4, 6)
    model.trade(7)
    model.run(60)
    assert model.delivered == [1, 3, 7]
    assert [loss.count for loss in model.losses] == [1]
    assert not any(isinstance(item, Skipped) for item in model.out)


def test_strict_order_waits_for_a_backfill_that_the_ingestor_announced():
    model = FeedModel(is_strict=True)
    model.trade(1)
    model.gap("OPEN", 2, 3)
    model.trade(4)
    model.run(5)
    assert model.delivered == [1]
    model.trade(2, 3)
    assert model.delivered == [1, 2, 3, 4]


def test_strict_order_stops_waiting_after_its_time_and_says_so():
    model = FeedModel(is_strict=True, rules=FeedRules(order_wait_ns=5 * 10**9))
    model.trade(1)
    model.gap("OPEN", 2, 3)
    model.trade(4)
    model.run(10)
    (skipped,) = [item for item in model.out if isinstance(item, Skipped)]
    assert (skipped.count, skipped.from_trade_id, skipped.to_trade_id) == (2, "2", "3")
    model.trade(2)
    assert (model.delivered, model.counters.late) == ([1, 4], 1)


def test_strict_order_holds_no_more_than_its_bound():
    model = FeedModel(is_strict=True, rules=FeedRules(order_max=10))
    model.trade(1)
    model.gap("OPEN", 2, 2)
    model.trade(*range(3, 20))
    assert model.delivered == [1, *range(3, 20)]


def test_history_comes_first_and_is_joined_with_the_live_trades_without_gap_or_double():
    model = FeedModel(start_ns=START_NS)
    model.trade(*range(1, 8), is_lost=True)
    model.trade(8, 9)
    assert model.delivered == []
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(1)
    model.trade(10)
    assert model.delivered == list(range(1, 11))
    assert [t.origin for t in model.ticks] == ["history"] * 7 + ["live"] * 3
    (joined,) = [item for item in model.out if isinstance(item, HistoryJoined)]
    assert (joined.count, joined.is_complete) == (7, True)


def test_a_trade_that_the_log_does_not_have_yet_is_waited_for_before_the_live_ones():
    model = FeedModel(start_ns=START_NS)
    model.trade(1, 2, is_lost=True)
    late = model.stamped(3, is_logged=False)
    model.trade(4, is_logged=False)
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(1)
    assert model.delivered == [1, 2]
    model.log.append(late)
    model.run(5)
    assert model.delivered == [1, 2, 3, 4]


def test_history_of_a_quiet_market_ends_with_the_beat():
    model = FeedModel(start_ns=START_NS)
    model.trade(1, 2, is_lost=True)
    model.beat(2)
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(0.2)
    assert any(isinstance(item, HistoryJoined) for item in model.out)


def test_history_that_overtakes_the_live_trades_waits_for_those_before_it():
    model = FeedModel(start_ns=START_NS)
    model.trade(1, 2, is_lost=True)
    model.trade(3, 4)
    on_its_way = [model.stamped(5), model.stamped(6)]
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(0.2)
    assert model.delivered == [1, 2, 3, 4, 5, 6]
    for message in on_its_way:
        model.feed.take(message, model.now_ns)
    model.trade(7)
    assert model.delivered == [1, 2, 3, 4, 5, 6, 7]
    assert [t.origin for t in model.ticks] == [*["history"] * 2, *["live"] * 2, *["history"] * 2, "live"]
    assert (model.counters.received, model.counters.history, model.counters.repeated) == (7, 4, 2)


def test_history_that_overtakes_trades_whose_ids_are_no_numbers_comes_behind_them():
    model = FeedModel(start_ns=START_NS)
    messages = [model.stamped(number, is_logged=False) for number in range(1, 5)]
    for message in messages:
        message.trade_id = f"t{message.trade_id}"
        model.log.append(message)
    model.feed.take(messages[1], model.now_ns)
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(5)
    assert [t.trade_id for t in model.ticks] == ["t1", "t2", "t3", "t4"]


def test_a_trade_lost_among_those_that_are_held_comes_in_its_place():
    model = FeedModel(start_ns=START_NS)
    model.trade(1, is_lost=True)
    missing = model.stamped(2, is_logged=False)
    model.trade(3, is_logged=False)
    model.trade(4, is_lost=True)
    model.trade(5)
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(0.05)
    model.log.append(missing)
    model.run(5)
    assert model.delivered == [1, 2, 3, 4, 5]


@given(st.lists(st.sampled_from("pppdddr"), max_size=60), st.integers(2, 200))
def test_history_and_live_trades_are_in_order_whichever_is_quicker(steps: list[str], hold_max: int):
    model = FeedModel(start_ns=START_NS, rules=FeedRules(hold_max=hold_max))
    model.trade(1, 2, is_lost=True)
    on_its_way: list[market_pb2.Tick] = []
    model.feed.on_in_force(model.now_ns, was_cut=False)
    for step in steps:
        if step == "p":
            on_its_way.append(model.stamped(len(model.sent) + 1))
        elif step == "d" and on_its_way:
            model.feed.take(on_its_way.pop(0), model.now_ns)
        else:
            model.run(0.05)
    for message in on_its_way:
        model.feed.take(message, model.now_ns)
    model.run(10)
    assert model.delivered == list(range(1, len(model.sent) + 1))
    assert (model.counters.received, model.counters.lost) == (len(model.sent), 0)
    assert model.counters.history == sum(t.origin == "history" for t in model.ticks)


def test_a_backfill_from_long_ago_does_not_end_history():
    model = FeedModel(start_ns=START_NS)
    model.trade(*range(1, 50), *range(51, 12_001), is_lost=True)
    model.backfill(50)
    model.trade(12_001)
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(5)
    model.trade(12_002)
    assert sorted(model.delivered) == list(range(1, 12_003))
    assert (model.counters.received, model.counters.lost) == (12_002, 0)


def test_a_backfill_alone_does_not_tell_where_history_ends():
    model = FeedModel(start_ns=START_NS)
    model.trade(1, is_lost=True)
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.gap("OPEN", 2, 2)
    model.trade(3, is_lost=True, is_logged=False)
    model.backfill(2)
    model.run(0.1)
    model.trade(4)
    model.run(60)
    assert model.delivered == [1, 2, 4]
    assert [(loss.count, loss.from_trade_id) for loss in model.losses] == [(1, "3")]


def test_trades_that_history_repeats_are_no_sign_of_the_live_ones():
    model = FeedModel(start_ns=START_NS)
    messages = model.named("t1", "t2", "t2", "t3", "t4", "t5")
    model.feed.take(messages[4], model.now_ns)
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(5)
    assert [t.trade_id for t in model.ticks] == ["t1", "t2", "t3", "t4", "t5"]


def test_live_trades_without_numbers_held_beyond_the_bound_are_read_as_history():
    for hold_max in range(2, 9):
        model = FeedModel(start_ns=START_NS, rules=FeedRules(hold_max=hold_max))
        names = [f"t{number}" for number in range(1, 12)]
        for message in model.named(*names)[2:9]:
            model.feed.take(message, model.now_ns)
        model.feed.on_in_force(model.now_ns, was_cut=False)
        model.run(5)
        assert [t.trade_id for t in model.ticks] == names
        assert (model.counters.received, model.counters.lost) == (11, 0)


def test_a_repaired_trade_without_a_number_waits_for_history():
    model = FeedModel(start_ns=START_NS)
    messages = model.named("t1", "t2", "t3", "t4")
    for message in (messages[1], messages[3]):
        model.feed.take(message, model.now_ns)
    model.run(1)
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(5)
    assert [t.trade_id for t in model.ticks] == ["t1", "t2", "t4", "t3"]


def test_what_a_publisher_took_with_it_while_history_was_read_is_reported():
    model = FeedModel(start_ns=START_NS)
    model.trade(1, 2, is_lost=True)
    model.trade(3)
    model.trade(4, 5, is_lost=True, is_logged=False)
    model.hand_over()
    model.trade(6)
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(60)
    assert model.delivered == [1, 2, 3, 6]
    assert [(loss.count, loss.from_trade_id, loss.to_trade_id) for loss in model.losses] == [(2, "4", "5")]
    assert model.counters.received + model.counters.lost == len(model.sent)


def test_a_backfill_that_is_held_beyond_the_bound_is_looked_for_although_its_gap_was_declared():
    model = FeedModel(start_ns=START_NS, rules=FeedRules(hold_max=2))
    model.trade(1, is_lost=True)
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(0.05)
    model.gap("OPEN", 2, 2)
    model.trade(3)
    model.backfill(2)
    model.trade(4)
    model.gap("FILLED", 2, 2)
    model.run(60)
    assert sorted(model.delivered) == [1, 2, 3, 4]
    assert (model.counters.received, model.counters.lost) == (4, 0)


def test_a_backfill_is_no_sign_that_a_lost_trade_beside_it_has_come():
    model = FeedModel()
    model.trade(1)
    model.trade(2, is_lost=True)
    model.gap("OPEN", 3, 3)
    model.trade(4)
    model.backfill(3)
    model.run(60)
    assert sorted(model.delivered) == [1, 2, 3, 4]
    assert (model.counters.repaired, model.counters.lost) == (1, 0)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from("tttldbchr"), max_size=30),
    st.sampled_from([2, 3, 5, 100_000]),
    st.integers(1, 5),
    st.integers(0, 20),
)
def test_history_is_joined_whatever_happens_meanwhile(steps: str, hold_max: int, page: int, begun: int):
    model = FeedModel(start_ns=START_NS, rules=FeedRules(hold_max=hold_max), page=page)
    gaps, newest = [2, 5, 7], 9
    model.trade(1, 3, 4, 6, 8, 9, is_lost=True)
    for number, step in enumerate([*"r" * (begun == 0), *steps, "r", "b", "b", "b"]):
        if number == begun:
            model.feed.on_in_force(model.now_ns, was_cut=False)
        if step in "tl":
            newest += 1
            model.trade(newest, is_lost=step == "l")
        elif step == "d":
            gaps.append(newest + 1)
            model.gap("OPEN", newest + 1, newest + 1)
            newest += 2
            model.trade(newest)
        elif step == "b" and gaps:
            model.gap("OPEN", gaps[0], gaps[0])
            model.backfill(gaps[0])
            model.gap("FILLED", gaps[0], gaps[0])
            del gaps[0]
        elif step == "c" and number > begun:
            model.feed.on_relay_away()
            model.feed.on_in_force(model.now_ns, was_cut=True)
        elif step == "h":
            model.hand_over()
        else:
            model.run(0.05)
    if len(steps) + 5 <= begun:
        model.feed.on_in_force(model.now_ns, was_cut=False)
    model.trade(newest + 1)
    model.beat(newest + 1)
    model.run(200)
    assert sorted(model.delivered) == sorted(set(range(1, newest + 2)) - set(gaps))
    counters = model.counters
    assert (counters.received, counters.lost) == (len(model.delivered), 0)
    assert counters.history == sum(t.origin == "history" for t in model.ticks)
    assert counters.repaired == sum(t.origin == "repair" for t in model.ticks)


def test_live_trades_held_beyond_the_bound_are_read_as_history():
    model = FeedModel(start_ns=START_NS, rules=FeedRules(hold_max=5))
    model.trade(1, 2, is_lost=True)
    model.trade(*range(3, 20))
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.run(2)
    model.trade(20)
    assert model.delivered == list(range(1, 21))
    assert (model.counters.received, model.counters.lost) == (20, 0)


def test_history_that_cannot_be_read_says_so_and_live_goes_on():
    model = FeedModel(start_ns=START_NS, is_log_away=True)
    model.feed.on_in_force(model.now_ns, was_cut=False)
    model.trade(5)
    model.run(60)
    assert model.delivered == [5]
    (joined,) = [item for item in model.out if isinstance(item, HistoryJoined)]
    assert (joined.is_complete, joined.text) == (False, "the log is away")


def test_ids_that_are_no_numbers_are_deduplicated_and_repaired_by_sequence():
    model = FeedModel()
    messages = []
    for index, name in enumerate(("a-1", "a-2", "a-3"), start=1):
        message = tick(0)
        message.trade_id = name
        message.stamp.publisher_epoch, message.stamp.topic_sequence = 1, index
        model.log.append(message)
        messages.append(message)
    for message in (messages[0], messages[2], messages[2]):
        model.feed.take(message, model.now_ns)
    model.run(1)
    assert [t.trade_id for t in model.ticks] == ["a-1", "a-3", "a-2"]


FATES = st.sampled_from(["arrives", "arrives", "arrives", "is lost", "is lost for ever", "is doubled", "is delayed"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("trade"), FATES),
        st.tuples(st.just("hand_over"), st.integers(0, 4)),
        st.tuples(st.just("beat"), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 20.0])),
        st.tuples(st.just("cut"), st.booleans()),
    ),
    min_size=1,
    max_size=60,
)


class Sender:
    """Executes the steps of one run."""

    def __init__(self, *, is_strict: bool) -> None:
        self.model = FeedModel(is_strict=is_strict)
        self.model.trade(1)
        self.newest = 1
        self.delayed: list[market_pb2.Tick] = []
        self.for_ever: set[int] = set()

    def trade(self, fate: str) -> None:
        self.newest += 1
        message = self.model.stamped(self.newest, is_logged=fate != "is lost for ever")
        if fate == "is lost for ever":
            self.for_ever.add(self.newest)
        elif fate == "is delayed":
            self.delayed.append(message)
        elif fate != "is lost":
            for _ in range(2 if fate == "is doubled" else 1):
                self.model.feed.take(message, self.model.now_ns)

    def hand_over(self, count: int) -> None:
        """The next publisher repeats what it cannot know to be logged, and fetches what never was."""
        self.model.hand_over()
        repeated = range(max(1, self.newest - count + 1), self.newest + 1)
        self.model.trade(*repeated)
        self.for_ever -= set(repeated)

    def beat(self, _: object = None) -> None:
        self.model.beat(self.newest)

    def wait(self, seconds: float) -> None:
        self.model.run(seconds)
        for message in self.delayed:
            self.model.feed.take(message, self.model.now_ns)
        self.delayed.clear()

    def cut(self, _: object = None) -> None:
        self.model.feed.on_relay_away()
        self.model.run(0.2)
        self.model.feed.on_in_force(self.model.now_ns, was_cut=True)


@settings(max_examples=300, deadline=None)
@given(steps=STEPS, is_strict=st.booleans())
def test_whatever_happens_on_the_way_received_and_reported_lost_are_what_was_sent(steps, is_strict):
    sender = Sender(is_strict=is_strict)
    for step, how in steps:
        getattr(sender, step)(how)
    sender.wait(0)
    sender.beat()
    sender.wait(200)
    model, for_ever = sender.model, sender.for_ever
    delivered = model.delivered
    assert len(set(delivered)) == len(delivered)
    absent = set(range(1, sender.newest + 1)) - for_ever - set(delivered)
    # In strict order, what comes after it was reported lost has missed its place.
    assert len(absent) == model.counters.late
    assert model.counters.received == len(delivered) + model.counters.late
    assert model.counters.lost == len(for_ever) <= sum(loss.count for loss in model.losses)
    assert delivered == sorted(delivered) if is_strict else not model.counters.late
