"""Numbers of tickers in SBE market data: given once an epoch, learnt, replayed to who joins."""

from __future__ import annotations

from tests.support.accelerator import accelerator
from tests.support.market_messages import body_of

accelerator()
from relay.engine.market_symbols import SbeMarketDecoder, SbeMarketEncoder, SbeOutcome  # noqa: E402
from relay.protocol.market_sbe import SymbolDefinition, encode_definition, read_definition  # noqa: E402
from relay.protocol.v1 import market_pb2  # noqa: E402

A, B = market_pb2.Tick(ticker="A/USD.X", price=1), market_pb2.Tick(ticker="B/USD.X", price=2)


def test_a_definition_goes_before_the_first_use_of_a_ticker_and_no_other():
    encoder = SbeMarketEncoder(0xAAAA_BBBB_0000_0007)
    first, again, other = encoder.encode(body_of(A)), encoder.encode(body_of(A)), encoder.encode(body_of(B))
    assert (len(first), len(again), len(other)) == (2, 1, 2)
    assert read_definition(first[0]) == SymbolDefinition((7 << 32) | 1, 0xAAAA_BBBB_0000_0007, "A/USD.X")
    assert read_definition(other[0]) == SymbolDefinition((7 << 32) | 2, 0xAAAA_BBBB_0000_0007, "B/USD.X")
    assert first[1] == again[0]


def test_a_message_without_a_ticker_needs_no_definition():
    (record,) = SbeMarketEncoder(1).encode(body_of(market_pb2.Heartbeat(source_id="relay")))
    assert SbeMarketDecoder().decode(record) == market_pb2.Heartbeat(source_id="relay")


def test_who_joins_late_reads_nothing_until_the_definitions_are_replayed():
    encoder, joiner = SbeMarketEncoder(1), SbeMarketDecoder()
    records = [encoder.encode(body_of(tick))[-1] for tick in (A, B)]
    assert [joiner.decode(record) for record in records] == [SbeOutcome.UNDEFINED_SYMBOL] * 2
    assert joiner.outcomes == {SbeOutcome.UNDEFINED_SYMBOL: 2}
    assert {joiner.decode(record) for record in encoder.definitions()} == {SbeOutcome.DEFINITION}
    assert [joiner.decode(record) for record in records] == [A, B]
    assert {joiner.decode(record) for record in encoder.definitions()} == {SbeOutcome.DEFINITION}
    assert len(joiner) == 2


def test_a_new_epoch_forgets_the_numbers_of_the_one_before():
    before, after, decoder = SbeMarketEncoder(1), SbeMarketEncoder(2), SbeMarketDecoder()
    old = before.encode(body_of(A))
    assert [decoder.decode(record) for record in old] == [SbeOutcome.DEFINITION, A]
    assert [decoder.decode(record) for record in after.encode(body_of(B))] == [SbeOutcome.DEFINITION, B]
    assert decoder.decode(old[1]) is SbeOutcome.UNDEFINED_SYMBOL
    assert len(decoder) == 1


def test_definitions_that_no_publisher_makes_are_refused_and_change_nothing():
    decoder = SbeMarketDecoder(symbols_max=2)
    for number in (1, 2):
        assert decoder.decode(encode_definition(SymbolDefinition(1 << 32 | number, 1, f"T{number}")))
    refused = [
        SymbolDefinition(1 << 32 | 1, 1, "another ticker"),
        SymbolDefinition(1 << 32 | 3, 1, "one too many"),
        SymbolDefinition(2 << 32 | 1, 1, "number of another epoch"),
        SymbolDefinition(1 << 32, 1, "number zero"),
        SymbolDefinition(1 << 32 | 2, 1, ""),
    ]
    assert {decoder.decode(encode_definition(one)) for one in refused} == {SbeOutcome.REFUSED_DEFINITION}
    assert decoder.outcomes[SbeOutcome.REFUSED_DEFINITION] == len(refused)
    encoder = SbeMarketEncoder(1)
    ticks = [market_pb2.Tick(ticker="T1"), market_pb2.Tick(ticker="T2")]
    assert [decoder.decode(encoder.encode(body_of(tick))[-1]) for tick in ticks] == ticks
