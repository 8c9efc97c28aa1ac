"""Fields of a message as a tuple, without a view: the same values as the view has, whoever wrote the message."""

from __future__ import annotations

import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accelerator import accelerator
from tests.unit.relay_accel.sbe_codec.schemas import ORDER, SCHEMA, big_endian, schema_of

ra = accelerator()
from relay_accel import sbe  # noqa: E402

schema = sbe.load(SCHEMA)
Order, Beat = schema.messages.Order, schema.messages.Beat
DATA = Order.encode(ORDER)
FIELDS = [row["name"] for row in sbe.describe(Order)["fields"]]
OF_ALL = sbe.Unpacker(Order)


@pytest.mark.parametrize("text", [SCHEMA, big_endian(SCHEMA)], ids=["little", "big"])
def test_all_fields_of_the_root_are_those_of_the_view(text):
    order_class = sbe.load(text).messages["Order"]
    data = order_class.encode(ORDER)
    unpacker = sbe.Unpacker(order_class)
    assert unpacker.fields == tuple(FIELDS)
    found = unpacker.unpack_from(data)
    assert found == order_class.decode(data).to_tuple()[: len(FIELDS)]
    assert [type(value) for value in found] == [
        type(value) for value in order_class.decode(data).to_tuple()[: len(FIELDS)]
    ]


@given(
    st.lists(st.sampled_from(FIELDS), max_size=30), st.integers(0, 3), st.sampled_from([bytes, bytearray, memoryview])
)
def test_any_choice_of_fields_at_any_offset_of_any_buffer(names, offset, kind):
    view = Order.decode(DATA).to_tuple()
    found = sbe.Unpacker(Order, names).unpack_from(kind(b"\xaa" * offset + DATA), offset)
    assert found == tuple(view[FIELDS.index(name)] for name in names)


@given(st.binary(min_size=96, max_size=96))
def test_whatever_the_root_holds_it_gives_what_the_view_gives(block):
    message = DATA[: schema.header_length] + block + bytes(64)
    view = Order.decode(message)
    try:
        expected = tuple(view[name] for name in FIELDS)
    except sbe.DecodeError:
        with pytest.raises(sbe.DecodeError):
            OF_ALL.unpack_from(message)
        return
    expected = tuple(one.to_tuple() if isinstance(one, sbe.CompositeView) else one for one in expected)
    assert repr(OF_ALL.unpack_from(message)) == repr(expected)  # repr: NaN is not equal to itself


def test_what_is_newer_than_the_message_is_none_and_longer_blocks_are_skipped():
    fields = """<message name="M" id="1"><field name="a" id="1" type="uint32"/>
        <field name="b" id="2" type="uint16" sinceVersion="1"/></message>"""
    unpacker = sbe.Unpacker(sbe.load(schema_of("", fields, 'id="7" version="1"')).messages["M"])
    assert unpacker.unpack_from(struct.pack("<HHHHIH", 6, 1, 7, 1, 7, 8)) == (7, 8)
    assert unpacker.unpack_from(struct.pack("<HHHHI", 4, 1, 7, 0, 7)) == (7, None)
    assert unpacker.unpack_from(struct.pack("<HHHHIHI", 10, 1, 7, 2, 7, 8, 9)) == (7, 8)


def test_messages_of_another_kind_or_cut_off_are_refused():
    with pytest.raises(sbe.DecodeError, match="expected a message Order, the template id is that of Beat"):
        OF_ALL.unpack_from(Beat.encode(at=1, side="1", price={"mantissa": 1}, pair=(1, 2)))
    for length in range(schema.header_length + sbe.describe(Order)["block_length"]):
        with pytest.raises(sbe.DecodeError):
            OF_ALL.unpack_from(DATA[:length])
    with pytest.raises(sbe.DecodeError, match="from byte 1000 on"):
        OF_ALL.unpack_from(DATA, 1000)


def test_wrong_arguments_are_told():
    with pytest.raises(KeyError, match="expected a field of Order's root, there is no legs"):
        sbe.Unpacker(Order, ["number", "legs"])
    with pytest.raises(TypeError, match="expected the class of a message"):
        sbe.Unpacker(sbe.BlockView)
    with pytest.raises(TypeError):
        OF_ALL.unpack_from("text")
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(OF_ALL)
    with pytest.raises(OverflowError):
        OF_ALL.unpack_from(DATA, -1)
