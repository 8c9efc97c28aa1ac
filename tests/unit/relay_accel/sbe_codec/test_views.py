"""Messages as views: attributes, groups, data, dicts; what is newer, unknown or broken."""

from __future__ import annotations

import gc
import mmap
import struct
import weakref
from enum import IntEnum, IntFlag, StrEnum

import pytest

from tests.support.accelerator import accelerator
from tests.unit.relay_accel.sbe_codec.schemas import ORDER, SCHEMA, big_endian, schema_of

ra = accelerator()
from relay_accel import sbe  # noqa: E402

schema = sbe.load(SCHEMA)
Order, Beat = schema.messages.Order, schema.messages.Beat
DATA = Order.encode(ORDER)


@pytest.mark.parametrize("text", [SCHEMA, big_endian(SCHEMA)], ids=["little", "big"])
def test_what_is_encoded_comes_back_by_attribute_dict_and_tuple(text):
    order_class = sbe.load(text).messages["Order"]
    data = order_class.encode(ORDER)
    order = order_class.decode(data)
    assert order.to_dict() == ORDER
    assert order.to_tuple()[0] == ORDER["number"]
    assert [leg[0] for leg in order.to_tuple()[18]] == [leg["qty"] for leg in ORDER["legs"]]
    assert order_class.encode(order) == data
    assert order_class.encode(order.to_dict()) == data
    assert order_class.from_dict(ORDER).to_dict() == ORDER
    assert order.sbe_length == len(data)


def test_attributes_have_the_types_of_the_schema():
    order = Order.decode(DATA)
    assert order.number == 2**64 - 1
    assert order.letter == "x"
    assert order.code == "AB"
    assert order.raw == b"\x00\x01\xff"
    assert order.pair == (-1, 32_767)
    assert order.opt is None
    assert order.own == -3
    assert order.nine == 9
    assert isinstance(order.side, StrEnum)
    assert order.side.name == "BUY"
    assert isinstance(order.kind, IntEnum)
    assert order.fixed.name == "SELL"
    assert isinstance(order.flags, IntFlag)
    assert {flag.name for flag in order.flags} == {"post", "hidden"}
    assert isinstance(order.place, sbe.CompositeView)
    assert order.place.price.mantissa == -(2**62)
    assert order.place.price.exponent == -8
    assert order.place["deep"]["x"] == 255
    assert order.note == "für"
    assert isinstance(order.blob, memoryview)
    assert order.blob.readonly
    assert bytes(order.blob) == b"\x00\xfe"
    assert bytes(order.sbe_raw("code")) == b"AB\0\0"
    assert (order.sbe_version, order.sbe_block_length) == (0, 96)


def test_groups_are_sequences():
    order = Order.decode(DATA)
    legs, fills = order.legs, order.fills
    assert len(legs) == 3
    assert [leg.qty for leg in legs] == [1, 2, 2**32 - 1]
    assert legs[-1].qty == 2**32 - 1
    assert [leg.qty for leg in legs[::2]] == [1, 2**32 - 1]
    assert legs.to_dicts() == ORDER["legs"]
    assert legs.to_tuples() == [(1, "1"), (2, None), (2**32 - 1, "2")]
    assert fills[1].venue == ""
    assert [fee.amount for fee in fills[1].fees] == [-5, 6]
    assert fills[0].to_dict() == ORDER["fills"][0]
    assert fills[0].sbe_length + fills[1].sbe_length + 4 == 4 + sum((8 + 4 + 2 + len("Zürich".encode()), 8 + 4 + 4 + 2))
    for index in (3, -4):
        with pytest.raises(IndexError, match="group of 3"):
            legs[index]


def test_a_field_that_is_named_like_a_method_is_reached_by_its_name():
    order = Order.decode(DATA)
    assert order["decode"] == 4
    assert callable(order.decode)
    assert order["side"] == order.side
    with pytest.raises(KeyError):
        order["nothing"]


def test_json_has_names_and_base64():
    text = Order.decode(DATA).to_json()
    for part in ('"side": "BUY"', '"flags": ["post", "hidden"]', '"raw": "AAH/"', '"note": "für"', '"opt": null'):
        assert part in text


def test_classes_are_made_once_and_annotated():
    assert schema.messages.Order is Order
    assert schema.messages["Order"] is schema.by_template[1]
    assert set(schema.messages) == {"Order", "Beat"}
    assert Order.__annotations__["place"] == "Place"
    assert Order.__annotations__["opt"] == "int | None"
    assert Order.__annotations__["legs"] == "GroupView[legs]"
    assert (Order.sbe_id, Order.sbe_name, Order.__doc__) == (1, "Order", "An order.")
    beat = Beat.decode(Beat.encode(at=1, side="1", price={"mantissa": 1}, pair=(1, 2)))
    assert type(Order.decode(DATA).side) is type(beat.side), "one class for an enum of all messages"
    with pytest.raises(AttributeError, match="no Nothing"):
        _ = schema.messages.Nothing
    with pytest.raises(TypeError, match="made by decode"):
        Order(object())


def test_views_cannot_be_changed_and_attributes_belong_to_their_class():
    order = Order.decode(DATA)
    with pytest.raises(AttributeError):
        order.number = 1
    with pytest.raises(AttributeError):
        order.other = 1
    beat = Beat.decode(Beat.encode(at=1, side="2", price={"mantissa": 5}, pair=[1, 2]))
    with pytest.raises(TypeError, match="another class"):
        Order.__dict__["number"].__get__(beat)
    with pytest.raises(TypeError, match="another class"):
        Order.__dict__["number"].__get__(7)
    assert repr(Order.number) == "<sbe attribute number>"
    with pytest.raises(TypeError, match="class of a message"):
        type(order.legs[0]).decode(DATA)


def test_a_schema_decodes_by_template_and_refuses_others():
    beat = Beat.encode(at=7, side="1", price={"mantissa": 5}, pair=(1, 2))
    assert type(schema.decode(beat)) is Beat
    with pytest.raises(sbe.DecodeError, match="expected a message Order"):
        Order.decode(beat)
    with pytest.raises(sbe.DecodeError, match="template id 9"):
        schema.decode(struct.pack("<4H", 0, 9, 7, 0))
    with pytest.raises(sbe.DecodeError, match="schema id 7, the message has 8") as error:
        schema.decode(struct.pack("<4H", 0, 2, 8, 0))
    assert error.value.code == "INVALID_MESSAGE"
    assert isinstance(error.value, ra.AccelError)
    with pytest.raises(sbe.DecodeError, match="ends at"):
        Order.decode(DATA, len(DATA) + 1)


def test_a_message_cut_at_any_byte_is_refused():
    for length in range(len(DATA)):
        with pytest.raises(sbe.DecodeError):
            schema.decode(DATA[:length]).to_dict()
    assert schema.decode(DATA + b"more").to_dict() == ORDER


def test_any_byte_may_be_anything():
    for at in range(len(DATA)):
        for value in (0, 0xFF):
            forged = bytearray(DATA)
            forged[at] = value
            try:
                view = schema.decode(forged)
                view.to_dict()
                view.to_json()
                [view.to_tuple() for view in getattr(view, "legs", ())]
            except sbe.DecodeError:
                continue


def test_values_that_the_schema_does_not_know_are_shown_as_they_are():
    data = bytearray(DATA)
    kind_at = 8 + next(field["offset"] for field in sbe.describe(Order)["fields"] if field["name"] == "kind")
    side_at = 8 + next(field["offset"] for field in sbe.describe(Order)["fields"] if field["name"] == "side")
    flags_at = 8 + next(field["offset"] for field in sbe.describe(Order)["fields"] if field["name"] == "flags")
    data[kind_at], data[side_at], data[flags_at] = 99, ord("7"), 0xFF
    order = Order.decode(data)
    assert order.kind == 99
    assert not isinstance(order.kind, IntEnum)
    assert order.side == "7"
    assert int(order.flags) == 0x2FF
    assert '"flags": 767' in order.to_json()
    assert Order.encode(order) == bytes(data)
    data[kind_at] = 255
    assert Order.decode(data).kind is None
    data[side_at - 0] = 0
    assert Order.decode(data).side is None


def test_text_that_is_no_text_names_its_field():
    data = bytearray(DATA)
    code_at = 8 + next(field["offset"] for field in sbe.describe(Order)["fields"] if field["name"] == "code")
    data[code_at] = 0xC3
    with pytest.raises(sbe.DecodeError, match="code: the bytes are no text in ASCII"):
        _ = Order.decode(data).code
    assert bytes(Order.decode(data).sbe_raw("code")) == b"\xc3B\0\0"


def test_a_buffer_cannot_be_resized_or_released_while_a_view_of_it_lives():
    data = bytearray(DATA)
    order = Order.decode(data)
    fee, place, blob = order.fills[1].fees[0], order.place.price, order.blob
    del order
    for held in ("fee", "place", "blob"):
        with pytest.raises(BufferError):
            data.append(0)
        assert held
    assert fee.amount == -5
    assert place.mantissa == -(2**62)
    del fee, place, blob
    data.append(0)
    with mmap.mmap(-1, mmap.PAGESIZE) as area:
        area[: len(DATA)] = DATA
        order = Order.decode(area)
        with pytest.raises(BufferError):
            area.close()
        assert order.note == "für"
        del order
    view = memoryview(DATA)
    order = Order.decode(view)
    with pytest.raises(BufferError):
        view.release()
    del order


def test_a_view_shows_what_the_buffer_has_now_and_never_reads_beyond_it():
    data = bytearray(DATA)
    order = Order.decode(data)
    legs = order.legs
    data[8:16] = bytes(8)
    assert order.number == 0
    data[8 + 96] = 255
    with pytest.raises(sbe.DecodeError):
        legs.to_dicts()
    data[8 + 96] = 1
    with pytest.raises(sbe.DecodeError, match="decode the message again"):
        legs[2]


def test_buffers_of_any_kind_are_read_and_strided_ones_refused():
    array = pytest.importorskip("numpy")
    assert Order.decode(array.frombuffer(DATA, array.uint8)).to_dict() == ORDER
    padded = DATA + bytes(-len(DATA) % 4)
    assert Order.decode(memoryview(padded).cast("i")).note == "für"
    assert bytes(Order.decode(memoryview(padded).cast("i")).blob) == b"\x00\xfe"
    with pytest.raises(BufferError, match="contiguous"):
        Order.decode(memoryview(bytes(2 * len(DATA)))[::2])
    with pytest.raises(TypeError):
        Order.decode("text")


def test_a_schema_that_nobody_has_any_more_is_freed():
    loaded = sbe.load(SCHEMA)
    order_class = loaded.messages.Order
    assert order_class.decode(DATA).legs[0].qty == 1
    gone = weakref.ref(order_class)
    del loaded, order_class
    gc.collect()
    assert gone() is None


TYPES = """<composite name="text"><type name="length" primitiveType="uint8"/>
  <type name="varData" primitiveType="char" length="0"/></composite>
  <composite name="Point"><type name="x" primitiveType="uint8"/></composite>"""
V0 = schema_of(
    TYPES,
    """<message name="M" id="1"><field name="a" id="1" type="uint8"/>
      <group name="g" id="10"><field name="b" id="11" type="uint8"/></group>
      <data name="d" id="20" type="text"/></message>""",
)
V2 = schema_of(
    TYPES,
    """<message name="M" id="1"><field name="a" id="1" type="uint8"/>
      <field name="a2" id="2" type="uint16" sinceVersion="1"/><field name="p" id="3" type="Point" sinceVersion="2"/>
      <group name="g" id="10"><field name="b" id="11" type="uint8"/>
        <field name="b2" id="12" type="uint8" sinceVersion="2"/></group>
      <group name="g2" id="13" sinceVersion="1"><field name="c" id="14" type="uint8"/></group>
      <data name="d" id="20" type="text"/><data name="d2" id="21" type="text" sinceVersion="2"/></message>""",
    'id="7" version="2"',
)


def test_an_older_message_lacks_what_is_newer():
    old = sbe.load(V0).messages.M.encode(a=1, g=[{"b": 2}, {"b": 3}], d="dd")
    view = sbe.load(V2).decode(old)
    assert view.to_dict() == {
        "a": 1, "a2": None, "p": None, "g": [{"b": 2, "b2": None}, {"b": 3, "b2": None}], "g2": [], "d": "dd", "d2": "",
    }  # fmt: skip
    assert len(view.g2) == 0
    assert view.d2 == ""
    assert view.sbe_length == len(old)
    assert view.g.to_numpy().dtype.names == ("b",)


def test_constants_are_there_however_short_an_older_message_is():
    types = """<composite name="Price"><type name="mantissa" primitiveType="int32"/>
        <type name="venue" primitiveType="uint16" sinceVersion="1"/>
        <type name="exponent" primitiveType="int8" presence="constant">-8</type></composite>
        <composite name="Unit"><type name="power" primitiveType="int8" presence="constant">3</type></composite>"""
    messages = """<message name="M" id="1"><field name="price" id="1" type="Price"/>
        <field name="unit" id="2" type="Unit"/></message>"""
    m = sbe.load(schema_of(types, messages, 'id="7" version="1"')).messages["M"]
    older = m.decode(struct.pack("<HHHHi", 4, 1, 7, 0, 5))
    expected = {"mantissa": 5, "venue": None, "exponent": -8}
    assert older.to_dict() == {"price": expected, "unit": {"power": 3}}
    assert (older.price.venue, older.price.exponent, older.unit.power) == (None, -8, 3)
    assert sbe.Unpacker(m).unpack_from(struct.pack("<HHHHi", 4, 1, 7, 0, 5)) == ((5, None, -8), (3,))
    assert older.sbe_raw("unit") is not None
    assert bytes(older.sbe_raw("unit")) == b""
    with pytest.raises(sbe.DecodeError, match="mantissa"):
        m.decode(struct.pack("<HHHHh", 2, 1, 7, 0, 5)).to_dict()


def test_a_newer_message_is_read_past_what_is_unknown():
    values = {"a": 1, "a2": 9, "p": {"x": 1}, "g": [{"b": 2, "b2": 8}, {"b": 3, "b2": 7}], "g2": [], "d": "", "d2": ""}
    # Only blocks may grow for a reader that does not know the version: a new group stands where it expects data.
    new = sbe.load(V2).messages.M.encode(values)
    view = sbe.load(V0).decode(new)
    assert view.sbe_version == 2
    assert view.a == 1
    assert [entry.b for entry in view.g] == [2, 3]
    assert view.g.to_numpy()["b"].tolist() == [2, 3]
    assert view.sbe_block_length == 4


def test_a_block_that_is_shorter_than_its_version_says_is_an_error():
    data = bytearray(sbe.load(V2).messages.M.encode(a=1, a2=2, p={"x": 3}))
    data[0] = 2
    view = sbe.load(V2).decode(data)
    assert view.a == 1
    with pytest.raises(sbe.DecodeError, match="field a2 ends at byte 3 of its block, but the message's block has 2"):
        _ = view.a2


def test_messages_back_to_back_are_told_apart_with_and_without_frames():
    beats = [Beat.encode(at=n, side="1", price={"mantissa": n}, pair=(n, n)) for n in range(3)]
    stream = beats[0] + DATA + beats[1] + beats[2]
    assert [type(view).__name__ for view in schema.decode_all(stream)] == ["Beat", "Order", "Beat", "Beat"]
    framed = b"".join(schema.framed(message) for message in (beats[0], DATA + b"\0\0\0", beats[1]))
    assert framed[:6] == struct.pack(">IH", len(beats[0]) + 6, 0xEB50)
    views = list(schema.decode_all(framed, framing="sofh"))
    assert [type(view).__name__ for view in views] == ["Beat", "Order", "Beat"]
    for broken, text in (
        (framed[:-1], "message length"),
        (framed[:4], "6 bytes"),
        (b"\0\0\0\5" + framed[4:], "message length"),
        (b"\0\0\0\xff\x5b\xe0" + framed[6:], "encoding type 0xeb50"),
        (struct.pack(">IH", 16, 0xEB50) + beats[0], "longer than its frame of 10 bytes"),
    ):
        with pytest.raises(sbe.DecodeError, match=text):
            list(schema.decode_all(broken, framing="sofh"))
    with pytest.raises(sbe.DecodeError):
        list(schema.decode_all(stream + b"\1"))
