"""Groups and repeated messages as NumPy arrays."""

from __future__ import annotations

import struct

import pytest

from tests.support.accelerator import accelerator
from tests.unit.relay_accel.sbe_codec.schemas import ORDER, SCHEMA, big_endian, schema_of

accelerator()
np = pytest.importorskip("numpy")
from relay_accel import sbe  # noqa: E402

schema = sbe.load(SCHEMA)
Order, Beat = schema.messages.Order, schema.messages.Beat


def beats(count: int, schema: sbe.Schema = schema) -> bytes:
    one = schema.messages.Beat
    return b"".join(one.encode(at=n, side="1", price={"mantissa": -n}, pair=(n, -n)) for n in range(count))


@pytest.mark.parametrize("text", [SCHEMA, big_endian(SCHEMA)], ids=["little", "big"])
def test_messages_back_to_back_are_one_array_over_the_buffer(text):
    loaded = sbe.load(text)
    data = bytearray(beats(1_000, loaded))
    array = sbe.to_numpy(loaded.messages.Beat, data)
    assert array.shape == (1_000,)
    assert array["at"].tolist() == list(range(1_000))
    assert array["price"]["mantissa"].tolist() == [-n for n in range(1_000)]
    assert array["pair"].shape == (1_000, 2)
    assert array["side"][0] == b"1"
    assert np.shares_memory(array, np.frombuffer(data, np.uint8))
    assert not array.flags.writeable
    with pytest.raises(BufferError):
        data.append(0)
    assert sbe.to_numpy(loaded.messages.Beat, data, len(data) // 1_000 * 10, 5)["at"].tolist() == [10, 11, 12, 13, 14]
    assert len(sbe.to_numpy(loaded.messages.Beat, b"")) == 0
    assert len(sbe.to_numpy(loaded.messages.Beat, data, 0, 0)) == 0


def test_one_message_among_them_that_is_another_is_told_with_its_place():
    data = beats(5)
    length = len(data) // 5
    for broken, text in (
        (data[:-1], f"byte {4 * length}"),
        (data + Order.encode(ORDER), "byte"),
        (data[: 2 * length] + b"\xff" + data[2 * length + 1 :], f"byte {2 * length}"),
    ):
        with pytest.raises(sbe.DecodeError, match=text):
            sbe.to_numpy(Beat, broken)
    with pytest.raises(sbe.DecodeError, match="expected 6 whole messages"):
        sbe.to_numpy(Beat, data, 0, 6)
    with pytest.raises(TypeError, match="no fixed record"):
        sbe.to_numpy(Order, Order.encode(ORDER))
    with pytest.raises(TypeError, match="class of a message"):
        sbe.to_numpy(int, data)


def test_a_group_of_equal_entries_is_an_array_over_the_buffer():
    data = bytearray(Order.encode(ORDER))
    array = Order.decode(data).legs.to_numpy()
    assert array["qty"].tolist() == [1, 2, 2**32 - 1]
    assert array.dtype.itemsize == 5
    assert np.shares_memory(array, np.frombuffer(data, np.uint8))
    with pytest.raises(BufferError):
        data.append(0)


def test_a_group_whose_entries_have_groups_is_copied_together():
    array = Order.decode(Order.encode(ORDER)).fills.to_numpy()
    assert array["price"]["mantissa"].tolist() == [1, 2]
    assert len(Order.decode(Order.encode(ORDER, fills=[])).fills.to_numpy()) == 0


def test_longer_entries_of_a_later_version_are_strided_over():
    def version(number: int, more: str) -> sbe.Schema:
        entry = f'<field name="a" id="3" type="uint16"/>{more}'
        text = f'<message name="M" id="1"><group name="g" id="2">{entry}</group></message>'
        return sbe.load(schema_of("", text, f'id="7" version="{number}"'))

    new = version(1, '<field name="b" id="4" type="uint32" sinceVersion="1"/>')
    data = new.messages.M.encode(g=[{"a": n, "b": n} for n in range(4)])
    array = version(0, "").decode(data).g.to_numpy()
    assert array.dtype.names == ("a",)
    assert array.strides == (6,)
    assert array["a"].tolist() == [0, 1, 2, 3]


def test_rows_become_arrow():
    pa = pytest.importorskip("pyarrow")
    array = Order.decode(Order.encode(ORDER)).legs.to_numpy()
    batch = pa.RecordBatch.from_pydict(
        {name: pa.array(np.ascontiguousarray(array[name])) for name in array.dtype.names}
    )
    assert batch.column("qty").to_pylist() == [1, 2, 2**32 - 1]


def test_a_composite_that_grew_is_as_long_as_the_message_has_it_and_a_short_block_is_refused():
    types = """<composite name="Place"><type name="x" primitiveType="uint32"/>
        <type name="y" primitiveType="uint32" sinceVersion="2"/></composite>"""
    fields = """<message name="M" id="1"><field name="a" id="1" type="uint32"/>
        <field name="place" id="2" type="Place"/></message>"""
    m = sbe.load(schema_of(types, fields, 'id="7" version="2"')).messages["M"]
    older = struct.pack("<HHHHII", 8, 1, 7, 1, 5, 6)
    rows = sbe.to_numpy(m, older * 3)
    assert rows["place"]["x"].tolist() == [6, 6, 6]
    assert rows.dtype["place"].names == ("x",)
    assert sbe.to_numpy(m, struct.pack("<HHHHIII", 12, 1, 7, 2, 5, 6, 7) * 2)["place"]["y"].tolist() == [7, 7]
    for length, version in ((6, 2), (2, 1), (8, 2)):
        short = struct.pack("<HHHH", length, 1, 7, version) + bytes(length)
        with pytest.raises(sbe.DecodeError, match="of its block"):
            sbe.to_numpy(m, short * 2)
        with pytest.raises(sbe.DecodeError, match="of its block"):
            m.decode(short).to_dict()
