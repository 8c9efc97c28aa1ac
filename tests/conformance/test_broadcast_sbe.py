"""Market data written into the relay's broadcast in SBE: beside protobuf or alone, natively passed topics or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.protocol.v1 import market_pb2
from tests.conformance.test_passage import VERSION, Beside, Way
from tests.support.accelerator import accelerator

accelerator()
from relay.engine.market_symbols import SYMBOLS_MAX, SbeMarketDecoder, SbeOutcome  # noqa: E402
from relay.transport.sbe_records import DEFINITION_EVERY, SbeRecords  # noqa: E402

T = b"t"


def tick(number: int) -> market_pb2.Tick:
    return market_pb2.Tick(ticker="t", trade_id=str(number), price=number)


def body(number: int) -> bytes:
    return b"\x04" + tick(number).SerializeToString()


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    made = Beside(tmp_path, T)
    made.broadcast.want(T, on=False)
    yield made
    made.reader.close()
    made.broadcast.close()


@pytest.fixture(params=["python", "native"])
def way(request: pytest.FixtureRequest, beside: Beside) -> Iterator[Way]:
    made = Way(is_native=request.param == "native", broadcast=beside.broadcast)
    yield made
    made.context.destroy(0)


def pass_on(way: Way, numbers: range) -> None:
    messages = [(T, VERSION, body(number)) for number in numbers]
    assert way.pass_on(messages) == [list(message) for message in messages], "the socket's messages stay untouched"


def test_a_topic_is_written_in_the_forms_that_are_demanded(way: Way, beside: Beside) -> None:
    decoder = SbeMarketDecoder()

    def heard() -> list[object]:
        found: list[object] = []
        for topic, version, rest in beside.records():
            assert topic == T
            found.append(rest if version == VERSION else decoder.decode(version + rest))
        return found

    def want(*, on: bool, is_sbe: bool) -> None:
        beside.broadcast.want(T, on=on, is_sbe=is_sbe)
        way.passage.forget(T)

    want(on=True, is_sbe=True)
    assert heard() == [], "a ticker that nothing was said of has no number"
    pass_on(way, range(3))
    assert heard() == [SbeOutcome.DEFINITION, tick(0), tick(1), tick(2)]
    want(on=True, is_sbe=False)
    pass_on(way, range(3, 5))
    assert heard() == [body(3), tick(3), body(4), tick(4)]
    want(on=True, is_sbe=True)
    assert heard() == [SbeOutcome.DEFINITION], "who joins later is told the ticker's number"
    want(on=False, is_sbe=True)
    pass_on(way, range(5, 8))
    assert heard() == [body(5), body(6), body(7)]
    asked = len(way.asked)
    pass_on(way, range(8, 10))
    assert len(way.asked) == asked + (0 if way.passage.is_native else 2), "natively again"
    want(on=False, is_sbe=False)
    heard()
    pass_on(way, range(10, 12))
    assert heard() == []


def test_what_has_no_form_in_sbe_is_counted_and_passes_by_the_socket(way: Way, beside: Beside) -> None:
    beside.broadcast.want(T, on=True, is_sbe=True)
    beside.records()
    unfit = [(T, VERSION, b"\x04\xff\xff"), (T, VERSION, b"\xff"), (T, VERSION, b"\x05" + b"\x98\x01\x80")]
    assert len(way.pass_on(unfit)) == len(unfit)
    assert beside.records() == []
    assert beside.broadcast.unfit == len(unfit)
    pass_on(way, range(1))
    assert len(beside.records()) == 2, "the definition, and the message"


def test_a_definition_is_said_again_after_so_many_records() -> None:
    records = SbeRecords(7)
    records.begin(T)
    counts = [len(records.of(T, body(number))) for number in range(2 * DEFINITION_EVERY + 1)]
    assert [number for number, count in enumerate(counts) if count == 2] == [
        0,
        DEFINITION_EVERY,
        2 * DEFINITION_EVERY,
    ]
    late = SbeMarketDecoder()
    again = records.begin(T)
    assert [late.decode(record) for record in [*again, *records.of(T, body(1))]] == [SbeOutcome.DEFINITION, tick(1)]


def test_who_only_asks_for_tickers_uses_up_no_numbers_and_each_topic_defines_its_own() -> None:
    records = SbeRecords(7)
    flood = [b"T%d/X.BINANCE|tick" % number for number in range(SYMBOLS_MAX + 100)]
    assert [records.begin(topic) for topic in flood] == [[]] * len(flood)
    for topic in flood:
        records.end(topic)
    bars = b"t|ohlc:60"
    assert (records.begin(T), records.begin(bars)) == ([], [])
    for topic, message in ((T, body(1)), (bars, b"\x05" + market_pb2.OHLC(ticker="t").SerializeToString())):
        reader = SbeMarketDecoder()
        outcomes = [reader.decode(record) for record in records.of(topic, message)]
        assert outcomes[0] is SbeOutcome.DEFINITION
        assert outcomes[1].ticker == "t"
    assert records.unfit == 0


def test_a_topic_whose_ticker_is_no_text_gets_no_number_and_its_messages_none_either() -> None:
    records = SbeRecords(7)
    assert records.begin(b"\xff|tick") == []
    assert len(records) == 1
    records.end(b"\xff|tick")
    assert len(records) == 0
