"""Schemas whose names and texts nobody would choose: classes are made all the same, and written modules stay Python."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys

import pytest

from tests.support.accelerator import accelerator
from tests.unit.relay_accel.sbe_codec.schemas import schema_of

accelerator()
from relay_accel import sbe  # noqa: E402

ATTRIBUTES = 'id="7" version="0"'


def message_of(types: str, name: str = "M") -> bytes:
    return schema_of(types, f'<message name="{name}" id="1"><field name="a" id="1" type="T"/></message>')


@pytest.mark.parametrize("name", ["_", "__", "_a", "mro", "name", "value", "class", "None", "ünicode"])
@pytest.mark.parametrize("kind", ["enum", "set"])
def test_members_of_any_name_are_read_and_written_by_it(kind, name):
    word = "validValue" if kind == "enum" else "choice"
    members = "".join(f'<{word} name="{n}">{v}</{word}>' for n, v in ((name, 1), ("other", 2)))
    m = sbe.load(message_of(f'<{kind} name="T" encodingType="uint8">{members}</{kind}>')).messages.M
    given = name if kind == "enum" else [name]
    view = m.decode(m.encode(a=given))
    assert int(view.a) == (1 if kind == "enum" else 2)
    assert m.encode(json.loads(view.to_json())) == m.encode(a=given)
    assert m.encode(view) == m.encode(view.to_dict()) == m.encode(a=view.a)


def test_members_whose_names_become_equal_are_told_apart():
    values = (
        '<validValue name="_a">1</validValue><validValue name="a_">2</validValue><validValue name="__a">3</validValue>'
    )
    m = sbe.load(message_of(f'<enum name="T" encodingType="uint8">{values}</enum>')).messages.M
    assert [int(m.decode(m.encode(a=name)).a) for name in ("_a", "a_", "__a")] == [1, 2, 3]


def test_a_set_without_choices_is_its_number():
    m = sbe.load(message_of('<set name="T" encodingType="uint8"></set>')).messages.M
    data = m.encode(a=3)
    view = m.decode(data)
    assert (view.a, view.to_dict(), sbe.Unpacker(m).unpack_from(data)) == (3, {"a": 3}, (3,))
    assert json.loads(view.to_json()) == {"a": 3}


PACKAGE = "x&quot;&quot;&quot;&#10;import sys; sys.exit(3)&#10;&quot;&quot;&quot;\\"
EVIL = "x = 1&#10;    import sys; sys.exit(3)&#10;    y"
NAMES = ["sbe", "SCHEMA", "Path", "enum", "int", "str", "a.b", "a_b", "1st", "class", "M", "TYPE_CHECKING", "M x"]


def test_a_written_module_runs_nothing_of_its_schema_and_keeps_its_classes_apart(tmp_path):
    types = f"""<enum name="M" encodingType="uint8"><validValue name="{EVIL}">1</validValue>
        <validValue name="1a">2</validValue><validValue name="a-b">3</validValue>
        <validValue name="fine">4</validValue></enum>
        <composite name="int"><type name="float" primitiveType="uint8"/></composite>
        <composite name="a_b"><ref name="str" type="M"/></composite>"""
    messages = "".join(
        f'<message name="{name}" id="{number}"><field name="e" id="1" type="M"/><field name="int" id="2" type="int"/>'
        f'<field name="c" id="3" type="a_b"/><field name="n" id="4" type="uint8"/>'
        f'<group name="1 g" id="5"><field name="x" id="6" type="M"/></group></message>'
        for number, name in enumerate(NAMES, 1)
    )
    text = schema_of(types, messages).replace(b'package="p"', f'package="{PACKAGE}"'.encode())
    (tmp_path / "s.xml").write_bytes(text)
    schema = sbe.load(text)
    module = tmp_path / "written.py"
    module.write_text(sbe.generate(schema, "s.xml"))
    found = runpy.run_path(str(module))
    classes = {found[name].sbe_name for name in found["__all__"] if name != "SCHEMA"}
    assert classes == set(NAMES)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", module], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert checked.returncode == 0, checked.stdout


def test_a_text_of_wide_units_ends_at_a_zero_unit_and_not_at_a_zero_byte():
    for encoding, text in (("UTF-16LE", "Aß€"), ("utf-32-be", "abc"), ("UTF_16_BE", "")):
        types = f'<type name="T" primitiveType="char" length="16" characterEncoding="{encoding}"/>'
        m = sbe.load(message_of(types)).messages.M
        data = m.encode(a=text)
        assert m.decode(data).a == m.decode(data).to_dict()["a"] == sbe.Unpacker(m).unpack_from(data)[0] == text


def test_the_null_of_an_optional_text_of_uint8_is_none_by_every_way():
    types = '<type name="T" primitiveType="uint8" length="4" characterEncoding="UTF-8" presence="optional"/>'
    m = sbe.load(message_of(types)).messages.M
    data = m.encode()
    assert bytes(m.decode(data).sbe_raw("a")) == b"\xff" * 4
    assert (m.decode(data).a, m.decode(data).to_dict(), sbe.Unpacker(m).unpack_from(data)) == (
        None,
        {"a": None},
        (None,),
    )
    assert m.decode(m.encode(a="xy")).a == "xy"
