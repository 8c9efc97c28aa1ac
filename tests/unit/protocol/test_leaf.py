"""The protocol leaf: envelope, tickers, topics, periods, times, scaled integers, ranges."""

from __future__ import annotations

import itertools
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.errors import PeerError
from relay.protocol.envelope import EnvelopeError, EnvelopeLimits, decode, decode_record, encode, encode_record
from relay.protocol.periods import (
    NANOSECONDS,
    WEEK_SECONDS,
    align_down_ns,
    align_up_ns,
    bar_count,
    format_period,
    parse_period,
)
from relay.protocol.ranges import Range, from_wire, intersect, subtract, to_wire, union
from relay.protocol.registry import RETIRED_IDS, Channel, MessageType, channel_types, type_id_of
from relay.protocol.scaled import (
    decimals_needed,
    denominator_decimals,
    from_scaled,
    parse_number,
    plain_text,
    to_scaled,
)
from relay.protocol.stamps import Stamper
from relay.protocol.tickers import parse_ticker
from relay.protocol.times import format_ns, from_unit, magnitude_unit, parse_iso_ns
from relay.protocol.topics import is_refused_subscription, market_topic, parse_market_topic
from relay.protocol.v1 import market_pb2, request_pb2, work_pb2


@given(st.lists(st.binary(max_size=8), max_size=5))
def test_an_envelope_gives_back_message_and_routing(routing):
    message = work_pb2.WorkerReady(exchange="KRAKEN", slot_id=3)
    found = decode([*routing, *encode(message)], Channel.WORK_TO_BROKER)
    assert (found.routing, found.message, found.type_id) == (tuple(routing), message, 0x20)


def test_ids_are_read_per_channel():
    body = bytes([0x20])
    assert type(decode([b"\x01", body], Channel.WORK_TO_BROKER).message).__name__ == "WorkerReady"
    assert type(decode([b"\x01", body], Channel.USER_EVENT).message).__name__ == "UserEvent"
    with pytest.raises(EnvelopeError) as caught:
        decode([b"\x01", body], Channel.MARKET_DATA)
    assert caught.value.reason == "wrong_channel"


def test_every_id_belongs_to_a_channel_and_no_retired_one_does():
    used = {i for channel in Channel for i in channel_types(channel)}
    assert used >= {int(t) for t in MessageType}
    assert not used & RETIRED_IDS
    for channel in Channel:
        for type_id, message_class in channel_types(channel).items():
            assert type_id_of(message_class()) == type_id


@given(st.binary(max_size=200))
def test_no_record_bytes_raise_anything_but_an_envelope_error(value):
    try:
        decode_record(value)
    except EnvelopeError as error:
        assert error.reason


@given(st.data())
def test_a_record_cut_or_flipped_anywhere_decodes_or_is_refused_by_name(data):
    good = encode_record(market_pb2.Tick(ticker="BTC/USDT.BINANCE", trade_id="1", price=4213, timestamp=10**18))
    cut = good[: data.draw(st.integers(0, len(good)))]
    place = data.draw(st.integers(0, len(good) - 1))
    flipped = good[:place] + bytes([good[place] ^ (1 << data.draw(st.integers(0, 7)))]) + good[place + 1 :]
    for value in (cut, flipped):
        try:
            decode_record(value)
        except EnvelopeError as error:
            assert error.code == "INVALID_ENVELOPE" or error.reason == "retired_type"


def test_limits_count_frames_and_bytes_together():
    limits = EnvelopeLimits(message_bytes_max=2_000, frames_max=4)
    with pytest.raises(EnvelopeError, match="at most 4 frames"):
        decode([b"x"] * 5, Channel.CLIENT_REQUEST, limits=limits)
    with pytest.raises(EnvelopeError, match="in all frames"):
        decode([bytes(1_600), bytes(1_600), b"\x01", b"\x14"], Channel.CLIENT_REQUEST, limits=limits)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("BTC/USDT.BINANCE", "BTC/USDT.BINANCE"),
        ("BINANCE:BTC/USDT", "BTC/USDT.BINANCE"),
        ("BTC/USDT:USDT.BINANCE", "BTC/USDT:USDT.BINANCE"),
        ("1INCH/USD.COINBASE", "1INCH/USD.COINBASE"),
        ("A/B.X_1", "A/B.X_1"),
    ],
)
def test_tickers_are_normalised(text, normal):
    assert str(parse_ticker(text)) == normal


@pytest.mark.parametrize(
    "text",
    [
        "",
        "BTC/USDT",
        "BTCUSDT.BINANCE",
        "btc/usdt.BINANCE",
        "BTC/USDT.binance",
        "BTC/USDT.",
        "/USDT.X",
        "A/B.X\n",
        "Ａ/B.X",
        "A/B|tick.X",
        "A/B.X" * 40,
    ],
)
def test_other_texts_are_refused_with_an_example(text):
    with pytest.raises(PeerError, match=r"BTC/USDT\.BINANCE") as caught:
        parse_ticker(text)
    assert caught.value.code == "INVALID_TICKER"


def test_market_topics_round_trip_and_wrong_ones_are_refused():
    for kind, period in (("tick", None), ("ohlc", 60), ("gap", None), ("market", None), ("heartbeat", None)):
        text = market_topic("BTC/USDT.BINANCE", kind, period_seconds=period)
        assert str(parse_market_topic(text)) == text
    for text in (
        "BTC/USDT.BINANCE",
        "BTC/USDT.BINANCE|ohlc",
        "BTC/USDT.BINANCE|ohlc:0",
        "BTC/USDT.BINANCE|tick:1",
        "|x",
    ):
        with pytest.raises(PeerError):
            parse_market_topic(text)


@given(st.uuids(), st.data())
def test_every_proper_prefix_of_a_private_topic_is_refused_case_105(number, data):
    for prefix in (b"RESPONSE:", b"HISTORY_READY:", b"CEP:", b"PROBE:"):
        topic = prefix + str(number).encode()
        assert not is_refused_subscription(topic)
        assert is_refused_subscription(topic[: data.draw(st.integers(0, len(topic) - 1))])
        assert is_refused_subscription(topic + b"x")
        for demand in (b"@", b"@@", b"@@@"):
            assert is_refused_subscription(demand + topic)


@pytest.mark.parametrize("demand", [b"", b"@", b"@@"])
@pytest.mark.parametrize("topic", [b"", b"OUTCOME:x", b"RING:", b"RING:1f", b"R", b"\xff", b"x" * 201])
def test_what_no_client_may_subscribe_it_may_not_demand_either(demand, topic):
    assert is_refused_subscription(demand + topic)
    assert not is_refused_subscription(demand + b"BTC/USDT.BINANCE|tick")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("1m", 60), ("90s", 90), ("4h", 14_400), ("1d", 86_400), ("1w", WEEK_SECONDS), ("60", 60)],
)
def test_periods_are_parsed(text, seconds):
    assert parse_period(text) == seconds


@pytest.mark.parametrize("text", ["1M", "1mo", "3 months", "1y"])
def test_calendar_months_are_refused_by_name(text):
    with pytest.raises(PeerError, match="calendar months"):
        parse_period(text)


@pytest.mark.parametrize("text", ["", "0m", "-1m", "1.5m", "m", "1x", "99999999w", 0, -60, True])
def test_other_periods_are_refused(text):
    with pytest.raises(PeerError):
        parse_period(text)


def test_the_shortest_text_of_a_period():
    assert [format_period(s) for s in (1, 60, 90, 3_600, 86_400, WEEK_SECONDS)] == ["1s", "1m", "90s", "1h", "1d", "1w"]


def test_weeks_begin_on_monday_case_10():
    thursday_ns = parse_iso_ns("2026-01-01")
    assert format_ns(align_down_ns(thursday_ns, WEEK_SECONDS)) == "2025-12-29T00:00:00Z"


@given(st.integers(0, 4 * 10**18), st.sampled_from([1, 60, 90, 3_600, 86_400, WEEK_SECONDS, 2 * WEEK_SECONDS]))
def test_alignment_is_the_bucket_that_holds_the_time(time_ns, period):
    down, up = align_down_ns(time_ns, period), align_up_ns(time_ns, period)
    assert down <= time_ns < down + period * NANOSECONDS
    assert up in (down, down + period * NANOSECONDS)
    assert up >= time_ns
    assert align_up_ns(down, period) == down
    assert bar_count(down, down + 5 * period * NANOSECONDS, period) == 5
    assert bar_count(down + 1, down + 5 * period * NANOSECONDS, period) == 4


def test_times_with_an_offset_are_exact_to_the_nanosecond_case_45():
    assert parse_iso_ns("1970-01-01T00:00:00Z".replace("1970", "2000")) == 946_684_800 * 10**9
    assert parse_iso_ns("2026-01-31T13:00:00.123456789+01:00") == parse_iso_ns("2026-01-31T12:00:00.123456789Z")
    assert format_ns(parse_iso_ns("2026-01-31T12:00:00.5Z")) == "2026-01-31T12:00:00.5Z"


@pytest.mark.parametrize(
    "text", ["2026-01-31T12:00", "2026-01-31 12:00:00", "1700000000", "yesterday", "2026-02-30", "2026-13-01Z"]
)
def test_ambiguous_or_impossible_times_are_refused(text):
    with pytest.raises(PeerError) as caught:
        parse_iso_ns(text)
    assert caught.value.code == "INVALID_TIME"


@pytest.mark.parametrize(
    ("value", "unit"),
    [(1_735_689_600, "s"), (1_735_689_600_000, "ms"), (1_735_689_600_000_000, "us"), (1_735_689_600 * 10**9, "ns")],
)
def test_the_unit_is_told_by_magnitude_and_all_mean_one_instant_case_42(value, unit):
    assert magnitude_unit(value) == unit
    assert from_unit(value, unit) == 1_735_689_600 * 10**9


@pytest.mark.parametrize("value", [0, 17, 10**20, -1])
def test_a_number_that_is_no_time_of_today_in_any_unit_is_refused(value):
    with pytest.raises(PeerError):
        magnitude_unit(value)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-(10**6), max_value=10**6))
def test_numbers_survive_text_scaling_and_back(number):
    assert parse_number(plain_text(number)) == number
    decimals = decimals_needed([number])
    assert from_scaled(to_scaled(number, decimals), decimals) == number


def test_tiny_and_long_numbers_stay_exact_case_70():
    assert plain_text(parse_number("0.0000001")) == "0.0000001"
    assert plain_text(parse_number("1e-7")) == "0.0000001"
    assert to_scaled(parse_number("123456789012345678"), 0) == 123456789012345678
    assert decimals_needed([Decimal("1.50"), Decimal(3), Decimal(100)]) == 1


@pytest.mark.parametrize("text", ["", "NaN", "Infinity", "-inf", "1,5", "0x10", " 1", "1_000", "٣", "1e999", "--1"])
def test_what_is_no_plain_number_is_refused(text):
    with pytest.raises(PeerError):
        parse_number(text)


@pytest.mark.parametrize(("number", "decimals"), [(Decimal("0.001"), 2), (Decimal(10) ** 20, 0), (Decimal(1), 19)])
def test_what_fits_no_int64_is_refused_and_never_rounded(number, decimals):
    with pytest.raises(PeerError):
        to_scaled(number, decimals)


def test_denominators_are_powers_of_ten():
    assert [denominator_decimals(d) for d in (1, 10, 10**8)] == [0, 1, 8]
    for wrong in (0, 2, 20, -10, 101):
        with pytest.raises(PeerError):
            denominator_decimals(wrong)


RANGES = st.lists(st.builds(Range, st.integers(0, 60), st.integers(0, 60)), max_size=8)


@given(RANGES, RANGES)
def test_range_algebra_agrees_with_sets_of_points(some, others):
    def points(ranges):
        return {p for r in ranges for p in range(r.start_ns, r.end_ns)}

    whole = Range(10, 50)
    assert points(union(some)) == points(some)
    assert points(subtract(whole, some)) == points([whole]) - points(some)
    assert points(intersect(whole, some)) == points([whole]) & points(some)
    joined = union([*some, *others])
    assert all(a.end_ns < b.start_ns for a, b in itertools.pairwise(joined))
    assert from_wire(to_wire(joined)) == joined


def test_a_stamp_is_appended_and_counts_each_topic_by_itself():
    stamper = Stamper(9)
    body = encode(market_pb2.Heartbeat(source_id="x"))[1]
    for topic, sequence in ((b"a", 1), (b"a", 2), (b"b", 1)):
        stamped = market_pb2.Heartbeat.FromString(stamper.stamp(topic, body, now_ns=5)[1:])
        assert (stamped.stamp.publisher_epoch, stamped.stamp.topic_sequence, stamped.source_id) == (9, sequence, "x")
    private = f"RESPONSE:{uuid.uuid4()}".encode()
    ready = encode(request_pb2.HistoryReadyNotification())[1]
    assert stamper.stamp(private, ready, now_ns=5) == ready
    market = encode(market_pb2.Market(amount_increment="0.1"))[1]
    assert stamper.stamp(b"X/Y.Z|market", market, now_ns=5) == market
