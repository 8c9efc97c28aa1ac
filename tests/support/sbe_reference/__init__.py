"""The reference implementation of Simple Binary Encoding, in one Java process that answers lines of commands."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.java_peer import SBE_TOOL
from relay_accel import sbe
from tests.support.java_reference import JavaReference

__all__ = ["SbeReference", "commands", "flat"]

SOURCE = Path(__file__).with_name("Reference.java")
FORMATS = {"char": "B", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I"} | {
    "int64": "q",
    "uint64": "Q",
    "float": "I",
    "double": "Q",
}
Row = dict[str, Any]


class SbeReference(JavaReference):
    """The process; one for all schemas of a test run."""

    def __init__(self, folder: Path, *, fetch: bool) -> None:
        super().__init__(SBE_TOOL, SOURCE, folder, fetch=fetch)

    def decoded(self, schema: Path, message: bytes) -> list[str]:
        """Every value of a message as ``name=value``, in its order."""
        found = self.ask("decode", schema, message.hex())[1:]
        return [] if found == [""] else found

    def encoded(self, message: Any, order: str) -> bytes:
        """The same values as a message has, written by the generated encoder."""
        layout = sbe.describe(type(message))
        self.tell("message", layout["name"])
        for command in commands(message, layout, order):
            self.tell(*command)
        return bytes.fromhex(self.ask("done")[1])


def _raw(row: Row, data: bytes, order: str) -> list[int]:
    count = row.get("count", 1)
    return list(struct.unpack_from(f"{order}{count}{FORMATS[row['primitive']]}", data))


def _shown(row: Row, values: list[int]) -> str:
    hexadecimal = row["primitive"] in ("float", "double")
    return ",".join(f"{value:x}" if hexadecimal else str(value) for value in values)


def flat(view: Any, layout: Row, order: str) -> Iterator[str]:
    """The values of a view as the reference tells them, out of the bytes that the view gives for each."""
    for row in layout["fields"]:
        data = None if row["kind"] == "constant" else view.sbe_raw(row["name"])
        if data is not None:
            yield from _part(row, bytes(data), order)
        elif row["kind"] != "constant":
            yield f"{row['name']}=absent"
    for inner in layout["groups"]:
        group = view[inner["name"]]
        yield f"{inner['name']}=group{len(group)}"
        for entry in group:
            yield from flat(entry, inner, order)
    for row in layout["data"]:
        value = view[row["name"]]
        yield f"{row['name']}=0x{(value.encode() if isinstance(value, str) else bytes(value)).hex()}"


def _part(row: Row, data: bytes, order: str) -> Iterator[str]:
    if row["kind"] == "composite":
        for member in row["members"]:
            yield from _part(member, data[member["offset"] : member["offset"] + member["length"]], order)
    elif row["kind"] != "constant":
        yield f"{row['name']}={_shown(row, _raw(row, data, order))}"


def commands(view: Any, layout: Row, order: str) -> Iterator[tuple[object, ...]]:
    """What makes the generated encoder write the values that a view has."""
    for row in layout["fields"]:
        if row["kind"] != "constant":
            yield from _put(row, bytes(view.sbe_raw(row["name"])), view[row["name"]], order)
    for inner in layout["groups"]:
        group = view[inner["name"]]
        yield "group", inner["name"], len(group)
        for entry in group:
            yield ("next",)
            yield from commands(entry, inner, order)
        yield ("end",)
    for row in layout["data"]:
        value = view[row["name"]]
        yield "data", row["name"], (value.encode() if isinstance(value, str) else bytes(value)).hex()


def _put(row: Row, data: bytes, value: Any, order: str) -> Iterator[tuple[object, ...]]:
    name = row["name"]
    match row["kind"]:
        case "constant":
            return
        case "composite":
            yield "composite", name
            for member in row["members"]:
                place = data[member["offset"] : member["offset"] + member["length"]]
                yield from _put(member, place, value[member["name"]], order)
            yield ("end",)
        case "enum":
            yield "enum", name, "NULL_VAL" if value is None else value.name
        case "set":
            yield "choices", name, ",".join(choice.name for choice in value)
        case _:
            values = _raw(row, data, order)
            for index, number in enumerate(values):
                shown = _shown(row, [number])
                yield ("number", name, shown) if len(values) == 1 else ("item", name, index, shown)
