"""Writes a typed Python module for a schema: what an editor completes and a type checker checks."""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

from relay_accel.sbe_rows import described

if TYPE_CHECKING:
    from relay_accel.sbe import Schema

__all__ = ["module_text"]

_PLAIN = {"int": "int", "float": "float", "text": "str", "bytes": "bytes"} | {
    "ints": "tuple[int, ...]",
    "floats": "tuple[float, ...]",
}
# Names that the module itself uses: no class of a schema's may hide them.
_TAKEN = frozenset(
    ("SCHEMA", "Path", "TYPE_CHECKING", "enum", "sbe", "int", "float", "str", "bytes", "bool", "tuple", "memoryview")
)
# Methods of the views: they stand before fields of their names.
_OWN = {"decode", "encode", "from_dict", "to_dict", "to_tuple", "to_json", "to_numpy", "mro"}
_HEAD = '''"""Messages of schema {package} (id {id}, version {version}), written by `relay sbe generate`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING

from relay_accel import sbe

__all__ = {names}

SCHEMA = sbe.load(Path(__file__).parent{path})
'''


def module_text(schema: Schema, source: str) -> str:
    """See :func:`relay_accel.sbe.generate`."""
    layouts = [described(schema.messages[name]) for name in schema.messages]
    classes = _distinct([layout["name"] for layout in layouts])
    names = sorted({"SCHEMA", *classes})
    text = _HEAD.format(
        package="".join(letter if letter.isalnum() or letter in "._- " else "?" for letter in schema.package),
        id=schema.id,
        version=schema.version,
        names="[" + ", ".join(f'"{name}"' for name in names) + "]",
        path="".join(f" / {json.dumps(part)}" for part in source.split("/")),
    )
    types = _Types(frozenset({*classes, *_TAKEN}))
    bodies = []
    for name, layout in zip(classes, layouts, strict=True):
        bodies += [*_block(layout, types, name), ""]
    lines = ["", "if TYPE_CHECKING:"]
    for body in types.bodies.values():
        lines += [f"    {line}".rstrip() for line in [*body, ""]]
    lines += [f"    {line}".rstrip() for line in bodies]
    lines.append("else:")
    keys = [(name, layout["name"]) for name, layout in zip(classes, layouts, strict=True)]
    lines += [f"    {name} = SCHEMA.messages[{json.dumps(key)}]" for name, key in keys] or ["    pass"]
    return text + "\n".join(lines) + "\n"


class _Types:
    """Classes of types, by name, in the order they are needed.

    Args:
        taken: names that none of them may have.
    """

    def __init__(self, taken: frozenset[str]) -> None:
        self.bodies: dict[str, list[str]] = {}
        self._taken = taken

    def name_of(self, found: type) -> str:
        """Return what the class of a type is called in the module."""
        name = _safe(found.__name__)
        while name in self._taken:
            name += "Type"
        return name


def _distinct(names: Iterable[str]) -> list[str]:
    """Names of classes, each another."""
    found: list[str] = []
    for name in map(_safe, names):
        distinct = name
        while distinct in found or distinct in _TAKEN:
            distinct += "_"
        found.append(distinct)
    return found


def _block(layout: dict[str, Any], types: _Types, class_name: str) -> list[str]:
    body: list[str] = []
    entries = {group["name"]: _entry(group["name"]) for group in layout["groups"]}
    for group in layout["groups"]:
        body += [f"    {line}" if line else "" for line in _block(group, types, entries[group["name"]])]
    body += list(_attributes(layout["fields"], types))
    groups = [row["name"] for row in _named(layout["groups"])]
    body += [f"    {name}: sbe.GroupView[{entries[name]}]" for name in groups]
    data = [(row["name"], "str" if row["kind"] == "text" else "memoryview") for row in _named(layout["data"])]
    body += [f"    {name}: {kind}" for name, kind in data]
    return [f"class {class_name}(sbe.BlockView):", *(body or ["    pass"])]


def _named(rows: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Rows whose name can be an attribute; the others are reached by ``view["name"]``."""
    return (row for row in rows if _is_attribute(row["name"]))


def _is_attribute(name: str) -> bool:
    is_own = name in _OWN or name.startswith(("sbe_", "__")) or name == "_codec"
    return _is_name(name) and not is_own


def _attributes(fields: Iterable[dict[str, Any]], types: _Types) -> Iterable[str]:
    rows = list(fields)
    names = {row["name"] for row in rows}
    found = {row["name"]: _annotation(row, types) for row in rows}
    for row in _named(rows):
        annotation, rest = found[row["name"]].partition(" | ")[::2]
        if annotation in names:
            # Inside of its class an attribute hides a type of the same name.
            types.bodies[f"_{annotation}"] = [f"_{annotation} = {annotation}"]
            annotation = f"_{annotation}"
        is_absent = row["is_optional"] or row["note"]["since_version"] > 0
        yield f"    {row['name']}: {' | '.join(filter(None, [annotation, rest, 'None' if is_absent else '']))}"


def _annotation(row: dict[str, Any], types: _Types) -> str:
    kind = row["kind"]
    if kind == "constant":
        value = row["value"]
        return _enum_type(type(value), types) if isinstance(value, Enum) else type(value).__name__
    if kind in ("enum", "set"):
        unknown = {"enum": " | str" if row.get("primitive") == "char" else " | int"}.get(kind, "")
        return _enum_type(row["class"], types) + unknown
    if kind == "composite":
        name = types.name_of(row["class"])
        if name not in types.bodies:
            types.bodies[name] = []
            body = list(_attributes(row["members"], types))
            types.bodies[name] = [f"class {name}(sbe.CompositeView):", *(body or ["    pass"])]
        return name
    return _PLAIN[kind]


def _enum_type(found: type[Enum], types: _Types) -> str:
    name, base = types.name_of(found), found.__mro__[1].__name__
    if name not in types.bodies:
        members = found.__members__.items()
        # What cannot be written here is a member all the same: reached by ``Class["name"]``.
        rows = [f"    {key} = {member.value!r}" for key, member in members if _is_name(key)]
        types.bodies[name] = [f"class {name}(enum.{base}):", *(rows or ["    pass"])]
    return name


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _entry(group: str) -> str:
    """The class of a group's entries; not named like the attribute that gives the group."""
    cleaned = _cleaned(group)
    return _safe(f"{cleaned[:1].upper()}{cleaned[1:]}Entry")


def _cleaned(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def _safe(name: str) -> str:
    """A name that can be a class."""
    cleaned = _cleaned(name)
    if keyword.iskeyword(cleaned):
        return f"{cleaned}_"
    return cleaned if cleaned.isidentifier() else f"_{cleaned}"
