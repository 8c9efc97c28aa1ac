"""FIX messages over SBE: golden vectors, round trips, and what is refused before a view is given."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accelerator import accelerator

accelerator()
from relay_accel import fix, sbe  # noqa: E402

PROTO = Path(__file__).resolve().parents[3] / "proto"
GOLDEN = PROTO / "golden" / "fix"
VECTORS = json.loads((GOLDEN / "index.json").read_text(encoding="utf-8"))
TEMPLATES = {"D": 68, "F": 70, "G": 71, "8": 56, "0": 48, "A": 65, "5": 53, "X": 88, "W": 87, "i": 105}
NULL_MANTISSA = 2**63 - 1
CHARACTERS = {
    enum.get("name"): [value.text for value in enum] for enum in ElementTree.parse(PROTO / "fix.xml").iter("enum")
}
VALUES = {vector["message"]: vector["values"] for vector in VECTORS}


def values_of(vector: dict[str, Any]) -> dict[str, Any]:
    values = dict(vector["values"])
    if "RawData" in values:
        values["RawData"] = bytes.fromhex(values["RawData"])
    return values


def said(found: Any) -> Any:
    """Values as the vectors have them: constants left out."""
    if isinstance(found, dict):
        return {key: said(value) for key, value in found.items() if key != "exponent"}
    return [said(item) for item in found] if isinstance(found, list) else found


def bytes_of(vector: dict[str, Any]) -> bytes:
    path = GOLDEN / vector["file"]
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(fix.encode(fix.SCHEMA.messages[vector["message"]], values_of(vector)))
    return path.read_bytes()


def test_the_packaged_schema_is_the_one_of_the_specification():
    packaged = Path(sbe.__file__).with_name("fix.xml")
    assert packaged.read_bytes() == (PROTO / "fix.xml").read_bytes()


def test_template_ids_are_the_characters_of_msgtype():
    assert {kind: message.sbe_id for kind, message in fix.MESSAGES.items()} == TEMPLATES
    assert (fix.SCHEMA.id, fix.SCHEMA.version, fix.SCHEMA.byte_order, fix.SCHEMA.warnings) == (1, 1, "little", ())
    assert {message.sbe_name for message in fix.MESSAGES.values()} == {vector["message"] for vector in VECTORS}
    assert all(getattr(fix, message.sbe_name) is message for message in fix.MESSAGES.values())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["message"])
def test_golden_bytes_have_the_values_of_their_index_and_are_written_again(vector):
    data, values = bytes_of(vector), values_of(vector)
    view = fix.decode(data)
    assert (view.sbe_id, view.sbe_name, view.sbe_length) == (vector["template_id"], vector["message"], len(data))
    assert said(view.to_dict()) == values
    assert fix.encode(type(view), values) == data
    assert fix.encode(type(view), view) == data


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["message"])
def test_a_message_cut_at_any_byte_is_refused_before_a_view_is_given(vector):
    data = bytes_of(vector)
    for length in range(len(data)):
        with pytest.raises(sbe.DecodeError):
            fix.decode(data[:length])
    assert said(fix.decode(data + b"next").to_dict()) == values_of(vector)
    assert said(fix.decode(b"before" + data, 6).to_dict()) == values_of(vector)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["message"])
def test_after_any_flipped_bit_a_message_is_refused_or_has_only_values_that_the_schema_knows(vector):
    data = bytes_of(vector)
    for at in range(len(data)):
        for bit in range(8):
            forged = bytearray(data)
            forged[at] ^= 1 << bit
            try:
                view = fix.decode(forged)
            except sbe.DecodeError:
                continue
            for name, value, plain in enums_of(view):
                assert value is None or not plain, (name, value)


def enums_of(view: sbe.BlockView) -> list[tuple[str, Any, bool]]:
    """Enums of a message as name, value, and whether the value is a plain character that has no name."""
    found, layout = [], sbe.describe(type(view)) if hasattr(type(view), "_codec") else None
    rows = layout["fields"] if layout else []
    found += [(row["name"], view[row["name"]]) for row in rows if row["kind"] == "enum"]
    for group in layout["groups"] if layout else []:
        names = [row["name"] for row in group["fields"] if row["kind"] == "enum"]
        found += [(name, entry[name]) for entry in view[group["name"]] for name in names]
    return [(name, value, type(value) is str) for name, value in found]


def test_an_unknown_character_is_told_with_path_and_byte():
    data = bytearray((GOLDEN / "MarketDataIncrementalRefresh.bin").read_bytes())
    at = 8 + 28 + 4 + 2 * 33 + 1
    data[at] = ord("~")
    with pytest.raises(sbe.DecodeError) as error:
        fix.decode(data)
    text = f"NoMDEntries[2].MDEntryType at byte {at} of the message: expected a value of enum MDEntryType, got '~'"
    assert str(error.value) == text
    assert error.value.code == "INVALID_MESSAGE"
    unchecked = fix.SCHEMA.decode(data)
    assert unchecked.NoMDEntries[2].MDEntryType == "~"
    with pytest.raises(sbe.DecodeError, match="MDEntryType"):
        fix.MarketDataIncrementalRefresh.decode(data, validate=True)
    with pytest.raises(sbe.DecodeError, match="MDEntryType"):
        list(fix.SCHEMA.decode_all(data, validate=True))


def test_a_required_enum_may_not_be_left_out_and_an_optional_one_may():
    values = VALUES["NewOrderSingle"]
    assert fix.decode(fix.encode(fix.NewOrderSingle, values, TimeInForce=None)).TimeInForce is None
    with pytest.raises(sbe.EncodeError, match="NewOrderSingle: Side at byte 46"):
        fix.encode(fix.NewOrderSingle, values, Side=None)
    with pytest.raises(sbe.EncodeError, match="OrdType at byte 47 of the message: expected a value of enum OrdType"):
        fix.encode(fix.NewOrderSingle, values, OrdType="x")


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("NewOrderSingle", "OrderQty"),
        ("OrderCancelRequest", "OrderQty"),
        ("OrderCancelReplaceRequest", "OrderQty"),
        ("ExecutionReport", "OrderQty"),
        ("ExecutionReport", "LeavesQty"),
        ("ExecutionReport", "CumQty"),
    ],
)
def test_a_quantity_is_never_left_out_null_or_negative(message, name):
    vector = next(vector for vector in VECTORS if vector["message"] == message)
    kind, values, sound = fix.SCHEMA.messages[message], values_of(vector), bytes_of(vector)
    left_out = {key: value for key, value in values.items() if key != name}
    nothing, below_zero = {"mantissa": None}, {"mantissa": -1}
    for refused in (left_out, *({**values, name: wrong} for wrong in (None, nothing, below_zero))):
        with pytest.raises(sbe.EncodeError, match=name):
            fix.encode(kind, refused)
    assert fix.encode(kind, {**values, name: {"mantissa": 0}})
    (at,) = (8 + row["offset"] for row in sbe.describe(kind)["fields"] if row["name"] == name)
    for mantissa in (NULL_MANTISSA, -1, -(2**63)):
        data = bytearray(sound)
        data[at : at + 8] = mantissa.to_bytes(8, "little", signed=True)
        said_of = rf"{name}\.mantissa at byte {at} .* of int64 from 0 to {NULL_MANTISSA - 1}, got {mantissa}$"
        with pytest.raises(sbe.DecodeError, match=said_of):
            fix.decode(data)


def test_prices_are_mantissas_at_a_constant_exponent_and_null_is_the_greatest():
    data = fix.encode(fix.NewOrderSingle, VALUES["NewOrderSingle"])
    order = fix.decode(data)
    assert (order.Price.mantissa, order.Price.exponent, order.StopPx.mantissa) == (645_001_000_000, -7, None)
    assert bytes(order.sbe_raw("StopPx")) == NULL_MANTISSA.to_bytes(8, "little")
    assert bytes(order.sbe_raw("Price")) == (645_001_000_000).to_bytes(8, "little")
    assert bytes(order.sbe_raw("Symbol")) == b"BTCUSD"
    short = fix.decode(fix.encode(fix.NewOrderSingle, VALUES["NewOrderSingle"], Symbol="A", ClOrdID="1"))
    assert bytes(short.sbe_raw("Symbol")) == b"A\0\0\0\0\0"
    assert len(short.sbe_raw("ClOrdID")) == 20
    assert len(short.sbe_raw("Account")) == 12
    with pytest.raises(sbe.EncodeError, match="Symbol"):
        fix.encode(fix.NewOrderSingle, VALUES["NewOrderSingle"], Symbol="TOOLONG")


PRINTABLE = st.characters(min_codepoint=33, max_codepoint=126)


def part(row: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Any value of a field, null where the schema allows it."""
    if row["kind"] == "composite":
        quantity = st.integers(0, NULL_MANTISSA - 1)
        drawn = quantity if row["type"] == "Quantity64" else st.none() | st.integers(-(2**63), NULL_MANTISSA - 1)
        return st.fixed_dictionaries({"mantissa": drawn})
    if row["kind"] == "enum":
        drawn = st.sampled_from(CHARACTERS[row["type"]])
        return st.none() | drawn if row["presence"] == "optional" else drawn
    if row["kind"] == "text":
        drawn = st.text(PRINTABLE, min_size=1, max_size=row["count"])
    else:
        drawn = st.integers(0, 2 ** (8 * row["length"]) - 2)
    return st.none() | drawn if row["is_optional"] else drawn


def block(layout: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    rows = {row["name"]: part(row) for row in layout["fields"]}
    rows |= {inner["name"]: st.lists(block(inner), max_size=4) for inner in layout["groups"]}
    rows |= {
        row["name"]: st.text(max_size=20) if row["kind"] == "text" else st.binary(max_size=20) for row in layout["data"]
    }
    return st.fixed_dictionaries(rows)


@pytest.mark.parametrize("message", fix.MESSAGES.values(), ids=lambda message: message.sbe_name)
def test_whatever_a_message_says_comes_back(message):
    @given(block(sbe.describe(message)))
    def comes_back(values):
        data = fix.encode(message, values)
        assert said(fix.decode(data).to_dict()) == values
        assert fix.encode(message, fix.decode(data)) == data

    comes_back()
