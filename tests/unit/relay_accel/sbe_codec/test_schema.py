"""Schemas from Python: faults with their lines, and every kind of change to a sound one."""

from __future__ import annotations

import copy
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.accelerator import accelerator
from tests.support.sbe_mutations import BASE, MUTATIONS, STRICTER
from tests.unit.relay_accel.sbe_codec.schemas import SCHEMA, schema_of

ra = accelerator()
from relay_accel import sbe  # noqa: E402


def test_every_changed_schema_is_compiled_or_refused_as_it_should_be():
    wrong = []
    for name, (text, expected) in MUTATIONS.items():
        try:
            schema = sbe.load(text.encode())
        except sbe.SchemaError as error:
            found = "refused"
            assert error.faults, name
            assert all(line >= 1 and element.startswith("<") and reason for _, line, element, reason in error.faults)
        else:
            found = "accepted"
            assert len(schema.by_template) == len(schema.messages), name
        if found != expected:
            wrong.append((name, found))
    assert not wrong
    assert all(MUTATIONS[name][1] == "refused" for name in STRICTER)


def test_a_refused_schema_has_all_faults_in_its_text():
    text = BASE.replace('type="Price"', 'type="Nothing"').replace('id="21"', 'id="x"')
    with pytest.raises(sbe.SchemaError) as error:
        sbe.load(text.encode())
    assert str(error.value).split("\n") == [
        '<schema>:20: <field name="price">: there is no type Nothing',
        '<schema>:28: <field name="qty">: expected id to be a whole number from 0 to 2147483647, found "x"',
    ]
    assert error.value.code == "INVALID_SCHEMA"
    assert isinstance(error.value, ra.AccelError)


def test_a_schema_is_loaded_from_a_path_or_bytes(tmp_path):
    path = tmp_path / "schema.xml"
    path.write_bytes(SCHEMA)
    for source in (path, str(path), SCHEMA):
        assert sbe.load(source).package == "p"
    with pytest.raises(sbe.SchemaError, match="No such file"):
        sbe.load(tmp_path / "nothing.xml")
    with pytest.raises(sbe.SchemaError):
        sbe.load(tmp_path)


def test_what_a_schema_says_of_itself():
    schema = sbe.load(SCHEMA)
    assert (schema.id, schema.version, schema.byte_order, schema.header_length) == (7, 0, "little", 8)
    assert repr(schema) == "<sbe.Schema p id 7 version 0>"
    assert "message Order id 1 block 96" in str(schema)
    doubtful = SCHEMA.replace(b'presence="optional" nullValue="7"', b'nullValue="7"')
    (warning,) = sbe.load(doubtful).warnings
    assert (warning.element, warning.reason) == (
        '<type name="OptOwn">',
        "nullValue is set, but presence is not optional",
    )


def test_a_layout_is_told_as_plain_values():
    layout = sbe.describe(sbe.load(SCHEMA).messages.Order)
    fields = {field["name"]: field for field in layout["fields"]}
    assert (layout["block_length"], fields["place"]["offset"], fields["place"]["length"]) == (96, 60, 11)
    assert fields["own"]["is_optional"]
    assert fields["nine"]["value"] == 9
    assert [member["name"] for member in fields["place"]["members"]] == ["side", "price", "deep"]
    assert [group["name"] for group in layout["groups"]] == ["legs", "fills"]
    with pytest.raises(TypeError, match="class of a message"):
        sbe.describe(int)


def test_attributes_of_other_namespaces_are_kept():
    text = SCHEMA.replace(b"<messageSchema ", b'<messageSchema xmlns:x="urn:x" ').replace(
        b'name="number" id="1"', b'name="number" id="1" x:exponent="scale"'
    )
    (field, *_) = sbe.describe(sbe.load(text).messages.Order)["fields"]
    assert field["note"]["attributes"] == {"exponent": "scale"}


def test_includes_stay_in_the_folder(tmp_path: Path):
    (tmp_path / "secret.xml").write_text("<types/>")
    inside = tmp_path / "inside"
    inside.mkdir()
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="../secret.xml"/>'
    (inside / "schema.xml").write_text(f'<messageSchema package="p" id="1">{include}</messageSchema>')
    with pytest.raises(sbe.SchemaError, match="outside of the schema's folder"):
        sbe.load(inside / "schema.xml")


def test_a_type_is_one_class_in_all_messages_also_when_threads_ask_first():
    enum = '<enum name="Side" encodingType="char"><validValue name="BUY">1</validValue></enum>'
    field = '<field name="side" id="1" type="Side"/>'
    messages = "".join(f'<message name="M{number}" id="{number}">{field}</message>' for number in range(1, 30))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            schema, together = sbe.load(schema_of(enum, messages)), threading.Barrier(6)

            def ask(schema=schema, together=together):
                together.wait()
                return {sbe.describe(schema.messages[name])["fields"][0]["class"] for name in schema.messages}

            with ThreadPoolExecutor(6) as pool:
                found = [future.result() for future in [pool.submit(ask) for _ in range(6)]]
            assert len(set.union(*found)) == 1
    finally:
        sys.setswitchinterval(before)


def test_many_elements_are_counted_from_where_the_last_one_was():
    many = "<ignored/>\n" * 100_000
    with pytest.raises(sbe.SchemaError) as told:
        sbe.load(schema_of(many, '<message name="M" id="1"><field name="a" id="1" type="Nothing"/></message>'))
    line = schema_of(many, "").decode().count("\n") + 1
    assert told.value.faults[0][1:] == (line, '<field name="a">', "there is no type Nothing")


def test_an_element_has_so_many_attributes_and_no_more():
    for count, is_allowed in ((64, True), (65, False), (30_000, False)):
        words = " ".join(f"x{number}='a=b'" for number in range(count - 2))
        text = schema_of(f'<type name="T" primitiveType="uint8" {words}/>', "")
        if is_allowed:
            sbe.load(text)
        else:
            with pytest.raises(sbe.SchemaError, match="expected an element with at most 64 attributes"):
                sbe.load(text)


def test_the_messages_of_a_schema_can_be_copied():
    schema = sbe.load(SCHEMA)
    assert copy.copy(schema.messages)["Order"] is schema.messages["Order"]
