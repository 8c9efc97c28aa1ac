"""Market messages in SBE: golden vectors, the schema's bits, and bytes that are no message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict

from tests.support.accelerator import accelerator

accelerator()
from relay.engine.market_symbols import SbeMarketDecoder, SbeMarketEncoder, SbeOutcome  # noqa: E402
from relay.protocol import market_sbe  # noqa: E402
from relay.protocol.codes import RejectReason  # noqa: E402
from relay.protocol.envelope import EnvelopeError  # noqa: E402
from relay.protocol.market_sbe import SymbolDefinition, encode_market, read_definition  # noqa: E402
from relay.protocol.registry import SBE_IDS, SYMBOL_DEFINITION_ID, Channel, channel_types  # noqa: E402
from relay.protocol.v1 import market_pb2  # noqa: E402
from relay_accel import sbe  # noqa: E402
from tests.support.market_messages import body_of  # noqa: E402
from tests.support.market_sbe_oracle import SCHEMA  # noqa: E402

PROTO = Path(__file__).resolve().parents[3] / "proto"
GOLDEN = PROTO / "golden" / "market"
INDEX = json.loads((GOLDEN / "index.json").read_text(encoding="utf-8"))
RECORDS = [bytes.fromhex(row["record"]) for row in INDEX["records"]]
DEFINITIONS = [record for record in RECORDS if read_definition(record)]


def learnt() -> SbeMarketDecoder:
    decoder = SbeMarketDecoder()
    assert {decoder.decode(record) for record in DEFINITIONS} == {SbeOutcome.DEFINITION}
    return decoder


def test_template_ids_are_the_type_ids_and_no_type_id_can_be_a_definition():
    assert set(SCHEMA.by_template) == {*SBE_IDS, SYMBOL_DEFINITION_ID}
    assert SYMBOL_DEFINITION_ID > 255
    assert (SCHEMA.id, SCHEMA.version, SCHEMA.warnings) == (2, 0, ())
    classes = channel_types(Channel.MARKET_DATA)
    for number in SBE_IDS:
        assert SCHEMA.by_template[number].sbe_name == classes[number].__name__


@pytest.mark.parametrize("row", INDEX["records"], ids=lambda row: row["file"])
def test_golden_records_have_their_values_and_are_written_again(row):
    record = bytes.fromhex(row["record"])
    assert record == b"\2" + (GOLDEN / row["file"]).read_bytes()
    if row["message"] == "SymbolDefinition":
        definition = SymbolDefinition(**row["json"])
        assert read_definition(record) == definition
        assert market_sbe.encode_definition(definition) == record
        return
    message = ParseDict(row["json"], getattr(market_pb2, row["message"])())
    assert message.SerializeToString().hex() == row["protobuf"]
    assert learnt().decode(record) == message
    assert MessageToDict(message, preserving_proto_field_name=True) == row["json"]


def test_a_publisher_writes_the_golden_records_in_their_order():
    encoder, written = SbeMarketEncoder(INDEX["epoch"]), []
    for row in INDEX["records"]:
        if row["message"] != "SymbolDefinition":
            written += encoder.encode(body_of(ParseDict(row["json"], getattr(market_pb2, row["message"])())))
    assert written == RECORDS
    assert list(encoder.definitions()) == DEFINITIONS


def test_bits_have_the_names_of_the_schema():
    flags = market_pb2.TradeFlags
    shown = {
        "takerBuy": market_pb2.Tick(taker_buy=True),
        "hasToClose": market_pb2.Tick(to_close=False),
        "toClose|hasToClose": market_pb2.Tick(to_close=True),
        "backfill": market_pb2.Tick(backfill=True),
        "hasFlags": market_pb2.Tick(flags=flags()),
        "isLiquidation|hasFlags": market_pb2.Tick(flags=flags(is_liquidation=True)),
        "isBlockTrade|hasFlags": market_pb2.Tick(flags=flags(is_block_trade=True)),
        "makerPostOnly|hasFlags": market_pb2.Tick(flags=flags(maker_post_only=True)),
        "isAuction|hasFlags": market_pb2.Tick(flags=flags(is_auction=True)),
        "hasQuoteAmount": market_pb2.Tick(quote_amount=0),
        "hasQuoteDecimals": market_pb2.Tick(quote_decimals=0),
        "hasSequence": market_pb2.Tick(sequence=0),
        "hasStamp": market_pb2.Tick(stamp={}),
        "hasTradeNumber": market_pb2.Tick(trade_id="0"),
        "isFinal": market_pb2.OHLC(is_final=True),
        "incomplete": market_pb2.OHLC(incomplete=True),
        "hasQuoteVolume": market_pb2.OHLC(quote_volume=""),
        "hasBuyVolume": market_pb2.OHLC(buy_volume=""),
        "hasSellVolume": market_pb2.OHLC(sell_volume=""),
        "hasTrades": market_pb2.OHLC(trades=0),
        "hasFirstTradeId": market_pb2.OHLC(first_trade_id=""),
        "hasLastTradeId": market_pb2.OHLC(last_trade_id=""),
        "hasTicker": market_pb2.Heartbeat(ticker=""),
        "hasExchangeTimeReached": market_pb2.Heartbeat(exchange_time_reached=0),
    }
    for names, message in shown.items():
        view = SCHEMA.decode(encode_market(message, 0), 1)
        assert "|".join(bit.name for bit in view.bits) == names, message
    for message in (market_pb2.OHLC(stamp={}), market_pb2.Gap(stamp={}), market_pb2.Heartbeat(stamp={})):
        assert [bit.name for bit in SCHEMA.decode(encode_market(message, 0), 1).bits] == ["hasStamp"]
    beat = encode_market(market_pb2.Heartbeat(last_trade_id=""), 0)
    assert [bit.name for bit in SCHEMA.decode(beat, 1).bits] == ["hasLastTradeId"]


def test_enums_have_the_names_and_numbers_of_protobuf():
    pairs = {
        ("OHLC", "source"): market_pb2.OHLC.Source,
        ("Gap", "cause"): market_pb2.Gap.Cause,
        ("Gap", "state"): market_pb2.Gap.State,
        ("Heartbeat", "source"): market_pb2.Heartbeat.Source,
        ("Heartbeat", "state"): market_pb2.Heartbeat.State,
    }
    for (name, field), enum in pairs.items():
        template = SCHEMA.messages[name]
        for label, number in enum.items():
            data = encode_market(getattr(market_pb2, name)(**{field: number}), 0)
            assert template.decode(data, 1)[field].name == label


@pytest.mark.parametrize("record", RECORDS, ids=[row["file"] for row in INDEX["records"]])
def test_a_record_cut_at_any_byte_is_undecodable_and_bytes_behind_it_are_passed_over(record):
    decoder = learnt()
    for length in range(len(record)):
        assert decoder.decode(record[:length]) is SbeOutcome.UNDECODABLE
    assert decoder.outcomes[SbeOutcome.UNDECODABLE] == len(record)
    assert decoder.decode(record + b"more") == decoder.decode(record)


@pytest.mark.parametrize("record", RECORDS, ids=[row["file"] for row in INDEX["records"]])
def test_after_any_flipped_bit_there_is_a_message_or_an_outcome_and_never_an_exception(record):
    for at in range(len(record)):
        for bit in range(8):
            forged = bytearray(record)
            forged[at] ^= 1 << bit
            assert learnt().decode(bytes(forged)) is not None


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"", RejectReason.EMPTY_FRAME),
        (b"\1" + RECORDS[0][1:], RejectReason.WRONG_VERSION),
        (b"\2", RejectReason.UNDECODABLE),
    ],
)
def test_what_is_no_record_is_refused_by_name(record, reason):
    with pytest.raises(EnvelopeError) as error:
        read_definition(record)
    assert error.value.reason is reason


def test_an_enum_that_is_null_is_undecodable():
    data = bytearray(encode_market(market_pb2.Gap(), 0))
    place = next(
        field["offset"] for field in sbe.describe(SCHEMA.messages["Gap"])["fields"] if field["name"] == "cause"
    )
    data[1 + 8 + place] = 255
    assert SbeMarketDecoder().decode(bytes(data)) is SbeOutcome.UNDECODABLE


@pytest.mark.parametrize(
    "message",
    [
        market_pb2.Tick(trade_id="x" * 65_535),
        market_pb2.Gap(cause=255),
        market_pb2.Heartbeat(state=-1),
        market_pb2.OHLC(ticker="x" * 65_535),
    ],
    ids=["long text", "enum 255", "enum -1", "long ticker"],
)
def test_what_does_not_fit_is_refused_and_uses_up_no_number(message):
    encoder = SbeMarketEncoder(1)
    with pytest.raises(EnvelopeError, match="send it as protobuf") as error:
        encoder.encode(body_of(message))
    assert error.value.reason is RejectReason.INVALID_FIELD
    assert (len(encoder), encoder.definitions()) == (0, ())


def test_a_message_without_a_form_in_sbe_is_refused():
    with pytest.raises(KeyError, match="got 6"):
        SbeMarketEncoder(1).encode(body_of(market_pb2.Market()))
