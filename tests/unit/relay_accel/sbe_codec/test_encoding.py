"""Values into messages: what fits, what is refused, and a buffer that stays as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accelerator import accelerator
from tests.unit.relay_accel.sbe_codec.schemas import ORDER, SCHEMA, schema_of

accelerator()
from relay_accel import sbe  # noqa: E402

schema = sbe.load(SCHEMA)
Order, Beat = schema.messages.Order, schema.messages.Beat
LEAST = {
    "number": 1,
    "letter": "a",
    "code": "",
    "raw": b"abc",
    "pair": (0, 0),
    "percent": 0,
    "single": 0,
    "decode": 0,
    "side": "BUY",
    "kind": 0,
} | {"place": {"side": "BUY", "price": {"mantissa": 0}, "deep": {"x": 0}}}

DATA = Order.encode(ORDER)


def test_what_is_left_out_is_null_or_empty():
    order = Order.decode(Order.encode(LEAST))
    assert (order.opt, order.own, order.ratio, order.label) == (None,) * 4
    assert int(order.flags) == 0
    assert (len(order.legs), len(order.fills), order.note, bytes(order.blob)) == (0, 0, "", b"")


@pytest.mark.parametrize("way", ["dict", "keywords"])
def test_a_required_enum_that_is_left_out_is_refused_and_null_has_to_be_said(way):
    without = {key: value for key, value in LEAST.items() if key != "side"}
    with pytest.raises(sbe.EncodeError, match=r"side: expected a value of enum Side, which is required: BUY"):
        Order.encode(without) if way == "dict" else Order.encode(**without)
    with pytest.raises(sbe.EncodeError, match=r"place\.side: expected a value of enum Side, which is required"):
        Order.encode(LEAST | {"place": {"price": {"mantissa": 0}, "deep": {"x": 0}}})
    assert Order.decode(Order.encode(without, side=None)).side is None


def test_iterators_are_read_once_however_long_the_message_is():
    for count in (3, 250):
        entries = [{"qty": number, "flag": "BUY"} for number in range(count)]
        legs = Order.decode(Order.encode(LEAST, legs=(dict(entry) for entry in entries))).legs
        assert [leg.qty for leg in legs] == list(range(count))
        fills = (
            {"price": {"mantissa": 1}, "fees": ({"amount": n} for n in range(3)), "venue": "v" * 500} for _ in "ab"
        )
        data = Order.encode(LEAST, pair=iter((1, 2)), flags=iter(("post",)), fills=fills, note="n" * 3_000)
        order = Order.decode(data)
        assert (order.pair, [[fee.amount for fee in fill.fees] for fill in order.fills]) == ((1, 2), [[0, 1, 2]] * 2)


def test_keywords_stand_over_values():
    order = Order.decode(Order.encode(LEAST, number=5, side="SELL", flags=["hidden"]))
    assert (order.number, order.side.name, int(order.flags)) == (5, "SELL", 512)


def test_members_names_and_numbers_of_enums_and_flags_are_taken():
    kind = type(Order.decode(DATA).kind)
    for value in (kind(1), "mro", 1):
        assert Order.decode(Order.encode(LEAST, kind=value)).kind == 1
    side = type(Order.decode(DATA).side)
    for value in (side.BUY, "BUY", "1"):
        assert Order.decode(Order.encode(LEAST, side=value)).side is side.BUY
    for value in (513, ["post", "hidden"], Order.decode(DATA).flags):
        assert int(Order.decode(Order.encode(LEAST, flags=value)).flags) == 513


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"number": None}, "number: expected a value of uint64, which is required, got null"),
        ({"number": -1}, "number: expected a value of uint64 from 0 to 18446744073709551615, got -1"),
        ({"number": 2**64}, "number: expected a whole number of 64 bits"),
        ({"number": 1.0}, "number: expected a whole number, got 1.0"),
        ({"number": "1"}, "number: expected a whole number"),
        ({"percent": 101}, "percent: expected a value of uint8 from 0 to 100, got 101"),
        ({"letter": "ab"}, "letter: expected one character"),
        ({"letter": "€"}, "letter: expected one character"),
        ({"code": "ABCDE"}, "code: expected at most 4 bytes, got 5 bytes"),
        ({"code": "é"}, "code: expected text that ascii can hold"),
        ({"raw": b"abcd"}, "raw: expected at most 3 bytes"),
        ({"raw": 5}, "raw: expected bytes, got 5"),
        ({"pair": (1,)}, "pair: expected 2 items, got 1 items"),
        ({"pair": (1, 2, 3)}, "pair: expected 2 items"),
        ({"pair": (1, 40_000)}, "pair: expected items of int16, got 40000"),
        ({"pair": 1}, "pair: expected 2 items"),
        ({"nine": 8}, "nine: expected the constant 9, got 8"),
        ({"fixed": "1"}, "fixed: expected the constant"),
        ({"side": "HOLD"}, "side: expected a member of <enum 'Side'>, its name or its value: BUY '1', SELL '2'"),
        ({"kind": "NOTHING"}, "kind: expected a member of"),
        ({"kind": 256}, "kind: expected a member of"),
        ({"kind": 1.5}, "kind: expected a member of"),
        ({"flags": ["other"]}, "flags: expected a choice of the set, got 'other'"),
        ({"flags": 65_536}, "flags: expected bits of uint16"),
        ({"flags": -1}, "flags: expected flags"),
        ({"place": 5}, "place: expected a mapping"),
        (
            {"place": {"side": "BUY", "price": {"mantissa": 1}, "deep": {"x": 1}, "z": 1}},
            "composite Place has no such member",
        ),
        ({"place": {"side": "BUY", "deep": {"x": 1}}}, "place.price.mantissa: expected a value of int64"),
        ({"single": 1e39}, "single: expected a value of float"),
        ({"legs": 5}, "legs: expected entries"),
        ({"legs": [5]}, "legs: expected a mapping"),
        ({"legs": [{"qty": 1, "flag": "BUY"}] * 255}, "legs: expected a count or length of at most 254, got 255"),
        ({"legs": [{"qty": 1, "flag": "BUY", "other": 2}]}, "legs has no 'other'"),
        ({"note": "x" * 65_535}, "note: expected a count or length of at most 65534, got 65535"),
        ({"note": 5}, "note: expected text or bytes, got 5"),
        ({"blob": "text"}, "blob: expected bytes, got 'text'"),
        ({"nothing": 1}, "Order has no 'nothing'"),
        ({5: 1}, "Order has no 5"),
    ],
)
def test_a_value_that_does_not_fit_names_its_field(values, text):
    with pytest.raises(sbe.EncodeError) as error:
        Order.encode(LEAST | values)
    assert text in str(error.value)
    assert error.value.code == "INVALID_VALUE"


def test_a_missing_field_is_refused():
    with pytest.raises(sbe.EncodeError, match="number: expected a value of uint64, which is required"):
        Order.encode()


def test_a_message_is_written_into_a_buffer_or_not_at_all():
    buffer = bytearray(b"\xaa" * (len(DATA) + 10))
    assert Order.encode(ORDER, into=buffer, offset=5) == len(DATA)
    assert buffer[5:-5] == DATA
    assert buffer[:5] == buffer[-5:] == b"\xaa" * 5
    for offset, text in ((11, "expected room for"), (len(buffer) + 1, "expected an offset within")):
        before = bytes(buffer)
        with pytest.raises(sbe.EncodeError, match=text):
            Order.encode(ORDER, into=buffer, offset=offset)
        assert buffer == before
    before = bytes(buffer)
    with pytest.raises(sbe.EncodeError):
        Order.encode(ORDER, blob=b"x" * 255, into=buffer)
    assert buffer == before
    with pytest.raises(BufferError, match="can be written"):
        Order.encode(ORDER, into=bytes(1_000))


def test_a_value_that_writes_to_the_buffer_while_it_is_read_does_no_harm():
    buffer = bytearray(2_000)

    class Sly:
        def __iter__(self):
            buffer[:] = b"\xff" * 2_000
            return iter([{"qty": 1, "flag": "BUY"}])

    with pytest.raises(BufferError):
        Order.encode(LEAST, legs=Growing(buffer), into=buffer)
    length = Order.encode(LEAST, legs=Sly(), into=buffer)
    assert [leg.qty for leg in Order.decode(buffer).legs] == [1]
    assert length == Order.decode(buffer).sbe_length


class Growing:
    """Entries that resize the buffer while they are asked for."""

    def __init__(self, buffer: bytearray) -> None:
        self.buffer = buffer

    def __iter__(self):
        self.buffer.extend(b"x" * 100_000)
        return iter(())


def test_long_messages_find_their_length():
    order = Order.decode(Order.encode(LEAST, note="n" * 60_000, fills=[{"price": {"mantissa": 1}}] * 2_000))
    assert (len(order.note), len(order.fills)) == (60_000, 2_000)


SIDES = st.sampled_from(["1", "2", None])
PRICES = st.fixed_dictionaries({"mantissa": st.integers(-(2**63), 2**63 - 1), "exponent": st.just(-8)})
ORDERS = st.fixed_dictionaries(
    {
        "number": st.integers(0, 2**64 - 1),
        "letter": st.characters(max_codepoint=255),
        "code": st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=4),
        "raw": st.binary(min_size=3, max_size=3),
        "pair": st.tuples(st.integers(-(2**15), 2**15 - 1), st.integers(-(2**15), 2**15 - 1)),
        "percent": st.integers(0, 100),
        "opt": st.none() | st.integers(-(2**31) + 1, 2**31 - 1),
        "own": st.none() | st.integers(-(2**31), 2**31 - 1).filter(lambda value: value != 7),
        "ratio": st.none() | st.floats(allow_nan=False),
        "label": st.none() | st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1, max_size=4),
        "nine": st.just(9),
        "side": SIDES,
        "kind": st.none() | st.integers(0, 254),
        "fixed": st.just("2"),
        "flags": st.integers(0, 2**16 - 1),
        "place": st.fixed_dictionaries(
            {"side": SIDES, "price": PRICES, "deep": st.fixed_dictionaries({"x": st.integers(0, 255)})}
        ),
        "single": st.floats(width=32, allow_nan=False),
        "decode": st.integers(0, 255),
        "legs": st.lists(st.fixed_dictionaries({"qty": st.integers(0, 2**32 - 1), "flag": SIDES}), max_size=4),
        "fills": st.lists(
            st.fixed_dictionaries(
                {
                    "price": PRICES,
                    "fees": st.lists(st.fixed_dictionaries({"amount": st.integers(-(2**15), 2**15 - 1)}), max_size=3),
                    "venue": st.text(max_size=8),
                }
            ),
            max_size=3,
        ),
        "note": st.text(max_size=20),
        "blob": st.binary(max_size=20),
    }
)


@given(ORDERS)
def test_whatever_values_a_message_has_they_come_back(values):
    data = Order.encode(values)
    order = Order.decode(data)
    assert order.to_dict() == values
    assert Order.encode(order) == data
    assert order.legs.to_numpy()["qty"].tolist() == [leg["qty"] for leg in values["legs"]]


@pytest.mark.parametrize("text", ["A\0B", "\0", "AB\0"])
def test_text_with_a_zero_would_end_at_it_and_is_refused(text):
    with pytest.raises(sbe.EncodeError, match="code: expected text without a zero"):
        Order.encode(LEAST, code=text)
    assert Order.decode(Order.encode(LEAST, code=b"A\0B")).code == "A"


def test_entries_without_bytes_are_as_many_as_a_reader_takes():
    group = '<message name="M" id="1"><group name="g" id="1"></group></message>'
    m = sbe.load(schema_of("", group)).messages.M
    assert len(m.decode(m.encode(g=[{}] * 255)).g) == 255
    with pytest.raises(sbe.EncodeError, match="g: expected at most 255 entries, which have no bytes, got 256"):
        m.encode(g=[{}] * 256)
