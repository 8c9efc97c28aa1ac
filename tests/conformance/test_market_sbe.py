"""Market messages as protobuf and as SBE are the same values: any message, every field, there or not."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.accelerator import accelerator

accelerator()
from relay.engine.market_symbols import SbeMarketDecoder, SbeMarketEncoder, SbeOutcome  # noqa: E402
from relay.protocol.registry import SBE_IDS, Channel, channel_types  # noqa: E402
from relay.protocol.v1 import market_pb2  # noqa: E402
from tests.support.market_messages import any_message, body_of  # noqa: E402

CLASSES = [channel_types(Channel.MARKET_DATA)[number] for number in SBE_IDS]


def through_sbe(encoder: SbeMarketEncoder, decoder: SbeMarketDecoder, message: Message) -> Message | SbeOutcome:
    *definitions, record = encoder.encode(body_of(message))
    assert [decoder.decode(definition) for definition in definitions] == [SbeOutcome.DEFINITION] * len(definitions)
    assert record[0] == 2
    return decoder.decode(record)


@pytest.mark.parametrize("message_class", CLASSES, ids=lambda one: one.__name__)
def test_any_message_comes_back_as_it_was(message_class):
    @settings(max_examples=300)
    @given(any_message(message_class), st.integers(0, 2**64 - 1))
    def comes_back(message, epoch):
        found = through_sbe(SbeMarketEncoder(epoch), SbeMarketDecoder(), message)
        assert found == message
        assert found.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)

    comes_back()


@given(st.lists(st.one_of([any_message(one) for one in CLASSES]), max_size=12), st.integers(0, 2**64 - 1))
def test_a_stream_of_messages_comes_back_and_each_ticker_is_defined_once(messages, epoch):
    encoder, decoder = SbeMarketEncoder(epoch), SbeMarketDecoder()
    assert [through_sbe(encoder, decoder, message) for message in messages] == messages
    tickers = {message.ticker for message in messages} - {""}
    assert len(encoder) == len(decoder) == len(tickers) == decoder.outcomes[SbeOutcome.DEFINITION]


@pytest.mark.parametrize("message_class", CLASSES, ids=lambda one: one.__name__)
def test_absent_and_zero_are_kept_apart_in_every_optional_field(message_class):
    optional = [field for field in message_class.DESCRIPTOR.fields if field.has_presence]
    assert optional
    for field in optional:
        absent, zero = message_class(ticker="A"), message_class(ticker="A")
        if field.message_type is not None:
            getattr(zero, field.name).SetInParent()
        else:
            setattr(zero, field.name, field.default_value)
        if field.name == "ticker":
            absent.ClearField("ticker")
        for message in (absent, zero):
            found = through_sbe(SbeMarketEncoder(1), SbeMarketDecoder(), message)
            assert found == message, field.name
            assert found.HasField(field.name) is (message is zero), field.name


@pytest.mark.parametrize(
    "trade_id", ["", "0", "00", "01", "-1", "18446744073709551615", "18446744073709551616", "٣", "²", "a" * 65_534]
)
def test_ids_of_trades_are_the_same_text_whether_they_are_numbers_or_not(trade_id):
    tick = market_pb2.Tick(trade_id=trade_id, ticker="ΒΤC/€.BÖRSE")
    assert through_sbe(SbeMarketEncoder(1), SbeMarketDecoder(), tick) == tick
