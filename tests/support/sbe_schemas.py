"""Schemas of Simple Binary Encoding and values for their messages, made by Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

__all__ = ["Drawn", "drawn_schemas"]

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
Values = st.SearchStrategy[Any]


@dataclass
class Drawn:
    """A schema's text, and a strategy of values for each of its messages."""

    text: str
    messages: dict[str, Values]


@dataclass
class _Types:
    lines: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    values: dict[str, Values] = field(default_factory=dict)

    def add(self, name: str, line: str, size: int, values: Values) -> None:
        self.lines.append(line)
        self.sizes[name] = size
        self.values[name] = values


def _range(primitive: str) -> tuple[int, int]:
    bits = int(primitive.lstrip("uint"))
    return (0, 2**bits - 2) if primitive[0] == "u" else (-(2 ** (bits - 1)) + 1, 2 ** (bits - 1) - 1)


def _size(primitive: str) -> int:
    return {"char": 1, "float": 4, "double": 8}.get(primitive) or int(primitive.lstrip("uint")) // 8


def _numbers(primitive: str) -> Values:
    if primitive == "char":
        return st.characters(min_codepoint=32, max_codepoint=126)
    if primitive in ("float", "double"):
        return st.floats(width=32 if primitive == "float" else 64, allow_nan=False)
    return st.integers(*_range(primitive))


def _plain(draw: Any, types: _Types, name: str) -> None:
    primitive = draw(st.sampled_from([*INTEGERS, "char", "float", "double"]))
    match draw(st.sampled_from(["one", "array", "optional", "bounded", "constant"])):
        case "array":
            count = draw(st.integers(2, 5))
            line = f'<type name="{name}" primitiveType="{primitive}" length="{count}"/>'
            items: Values = st.lists(_numbers(primitive), min_size=count, max_size=count).map(tuple)
            if primitive == "char":
                items = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=count)
            elif primitive == "uint8":
                items = st.binary(min_size=count, max_size=count)
            types.add(name, line, count * _size(primitive), items)
        case "optional" if primitive in INTEGERS:
            null = draw(st.sampled_from(["", ' nullValue="7"']))
            line = f'<type name="{name}" primitiveType="{primitive}" presence="optional"{null}/>'
            types.add(name, line, _size(primitive), st.none() | _numbers(primitive).filter(lambda value: value != 7))
        case "bounded" if primitive in INTEGERS:
            line = f'<type name="{name}" primitiveType="{primitive}" minValue="3" maxValue="90"/>'
            types.add(name, line, _size(primitive), st.integers(3, 90))
        case "constant" if primitive in INTEGERS:
            types.add(
                name, f'<type name="{name}" primitiveType="{primitive}" presence="constant">42</type>', 0, st.just(42)
            )
        case _:
            types.add(name, f'<type name="{name}" primitiveType="{primitive}"/>', _size(primitive), _numbers(primitive))


def _enum(draw: Any, types: _Types, name: str) -> None:
    encoding = draw(st.sampled_from(["char", "uint8", "int8", "uint16", "int16", "int32"]))
    count = draw(st.integers(1, 4))
    values = [chr(65 + n) if encoding == "char" else str(n + 1) for n in range(count)]
    rows = "".join(f'<validValue name="V{n}">{value}</validValue>' for n, value in enumerate(values))
    line = f'<enum name="{name}" encodingType="{encoding}">{rows}</enum>'
    types.add(name, line, _size(encoding), st.none() | st.sampled_from([f"V{n}" for n in range(count)]))


def _set(draw: Any, types: _Types, name: str) -> None:
    encoding = draw(st.sampled_from(["uint8", "uint16", "uint32", "uint64"]))
    bits = sorted(draw(st.sets(st.integers(0, 8 * _size(encoding) - 1), min_size=1, max_size=4)))
    rows = "".join(f'<choice name="c{n}">{bit}</choice>' for n, bit in enumerate(bits))
    values = st.lists(st.sampled_from([f"c{n}" for n in range(len(bits))]), unique=True)
    types.add(name, f'<set name="{name}" encodingType="{encoding}">{rows}</set>', _size(encoding), values)


def _composite(draw: Any, types: _Types, name: str) -> None:
    members, rows, end = {}, [], 0
    # A reference names a type of the schema, never a primitive.
    declared = sorted(kind for kind in types.sizes if kind[0].isupper())
    for n, kind in enumerate(draw(st.lists(st.sampled_from(declared), min_size=1, max_size=4))):
        gap = draw(st.sampled_from([0, 0, 3]))
        rows.append(f'<ref name="m{n}" type="{kind}"' + (f' offset="{end + gap}"' if gap else "") + "/>")
        end += gap + types.sizes[kind]
        members[f"m{n}"] = types.values[kind]
    types.add(name, f'<composite name="{name}">{"".join(rows)}</composite>', end, st.fixed_dictionaries(members))


def _block(draw: Any, types: _Types, ids: Any, depth: int) -> tuple[str, str, dict[str, Values]]:
    """What is inside of a message or group, its attributes, and values."""
    rows, values, end = [], {}, 0
    for kind in draw(st.lists(st.sampled_from(sorted(types.sizes)), min_size=1, max_size=6)):
        number, gap = next(ids), draw(st.sampled_from([0, 0, 0, 2]))
        name, place = f"f{number}", f' offset="{end + gap}"' if gap else ""
        rows.append(f'<field name="{name}" id="{number}" type="{kind}"{place}/>')
        values[name] = types.values[kind]
        end += gap + types.sizes[kind]
    for _ in range(draw(st.integers(0, 2)) if depth < 2 else 0):
        number, dimension = next(ids), draw(st.sampled_from(["groupSizeEncoding", "wide"]))
        inside, attributes, inner = _block(draw, types, ids, depth + 1)
        head = f'<group name="g{number}" id="{number}" dimensionType="{dimension}"{attributes}>'
        rows.append(f"{head}{inside}</group>")
        values[f"g{number}"] = st.lists(st.fixed_dictionaries(inner), max_size=3)
    for _ in range(draw(st.integers(0, 2))):
        number, kind = next(ids), draw(st.sampled_from(["text8", "blob16", "text32"]))
        rows.append(f'<data name="d{number}" id="{number}" type="{kind}"/>')
        values[f"d{number}"] = st.binary(max_size=9) if kind == "blob16" else st.text(max_size=6)
    padding = draw(st.sampled_from(["", "", f' blockLength="{end + 5}"']))
    return "".join(rows), padding, values


@st.composite
def drawn_schemas(draw: Any) -> Drawn:
    """A schema with types of every kind, in either byte order, and one or two messages."""
    types = _Types()
    for primitive in ("char", "int8", "uint16", "int64", "float", "double"):
        types.sizes[primitive], types.values[primitive] = _size(primitive), _numbers(primitive)
    for n in range(draw(st.integers(1, 5))):
        _plain(draw, types, f"T{n}")
    _enum(draw, types, "E0")
    _set(draw, types, "S0")
    for n in range(draw(st.integers(0, 2))):
        _composite(draw, types, f"C{n}")
    messages, bodies = {}, []
    for n in range(draw(st.integers(1, 2))):
        inside, attributes, values = _block(draw, types, iter(range(1, 1_000)), 0)
        bodies.append(f'<message name="M{n}" id="{n + 1}"{attributes}>{inside}</message>')
        messages[f"M{n}"] = st.fixed_dictionaries(values)
    order = draw(st.sampled_from(["littleEndian", "bigEndian"]))
    head = f'<messageSchema package="drawn" id="5" version="0" byteOrder="{order}">'
    return Drawn(f"{head}<types>{FRAME}{''.join(types.lines)}</types>{''.join(bodies)}</messageSchema>", messages)


def _pair(name: str, first: str, one: str, second: str, two: str) -> str:
    return (
        f'<composite name="{name}"><type name="{first}" primitiveType="{one}"/>'
        f'<type name="{second}" primitiveType="{two}"/></composite>'
    )


def _data(name: str, length: str, more: str, encoding: str) -> str:
    return (
        f'<composite name="{name}"><type name="length" primitiveType="{length}"{more}/>'
        f'<type name="varData" primitiveType="uint8" length="0"{encoding}/></composite>'
    )


FRAME = "".join(
    [
        '<composite name="messageHeader">',
        *(
            f'<type name="{name}" primitiveType="uint16"/>'
            for name in ("blockLength", "templateId", "schemaId", "version")
        ),
        "</composite>",
        _pair("groupSizeEncoding", "blockLength", "uint16", "numInGroup", "uint8"),
        _pair("wide", "blockLength", "uint16", "numInGroup", "uint16"),
        _data("text8", "uint8", "", ' characterEncoding="UTF-8"'),
        _data("blob16", "uint16", "", ""),
        _data("text32", "uint32", ' maxValue="1073741824"', ' characterEncoding="UTF-8"'),
    ]
)
