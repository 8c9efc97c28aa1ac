"""The golden frames: packed by hand as the specification says, read and written by the codec."""

from __future__ import annotations

import ipaddress
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.support.accelerator import accelerator

accelerator()
from relay_accel import wire  # noqa: E402
from relay_accel.wire import aeron, compression, nanomq, nbmq, zigbolt  # noqa: E402

FOLDER = Path(__file__).resolve().parents[4] / "proto" / "golden" / "wire"
INDEX = json.loads((FOLDER / "index.json").read_text())
FRAMES = [row for row in INDEX if not row["type"].startswith("compression")]
MODULES = {"aeron": aeron, "zigbolt": zigbolt, "nbmq": nbmq, "nanomq": nanomq}


def raw(value: Any) -> Any:
    return bytes.fromhex(value[2:]) if isinstance(value, str) and value.startswith("0x") else value


def value_of(row: dict[str, Any]) -> wire.WireValue:
    module, name = row["type"].split(".")
    values = {field: raw(value) for field, value in row["values"].items()}
    if "entries" in values:
        values["entries"] = tuple(
            aeron.ResolutionEntry(
                **{k: raw(v) for k, v in entry.items()} | {"address": ipaddress.ip_address(entry["address"])}
            )
            for entry in values["entries"]
        )
    return getattr(MODULES[module], name)(**values)


def named(row: dict[str, Any]) -> str:
    return row["file"]


def test_every_file_is_in_the_index():
    assert sorted(row["file"] for row in INDEX) == sorted(path.name for path in FOLDER.glob("*.bin"))


@pytest.mark.parametrize("row", INDEX, ids=named)
def test_a_golden_frame_is_what_struct_packs_by_the_specification(row):
    packed = struct.pack(row["layout"], *map(raw, row["packed"]))
    assert packed == (FOLDER / row["file"]).read_bytes()


@pytest.mark.parametrize("row", FRAMES, ids=named)
def test_a_golden_frame_is_read_and_written(row):
    data, value = (FOLDER / row["file"]).read_bytes(), value_of(row)
    assert type(value).decode(data) == value
    assert type(value).decode(memoryview(b"..." + data), 3) == value
    assert value.to_bytes() == data
    buffer = bytearray(b"\xcc" * (len(data) + 8))
    assert value.encode(buffer, 4) == len(data)
    assert buffer == b"\xcc" * 4 + data + b"\xcc" * 4


@pytest.mark.parametrize("row", FRAMES, ids=named)
def test_a_golden_frame_is_refused_where_it_is_cut_and_where_the_buffer_is_too_short(row):
    data, value = (FOLDER / row["file"]).read_bytes(), value_of(row)
    for length in range(len(data)):
        with pytest.raises(wire.WireError) as refused:
            type(value).decode(data[:length])
        assert refused.value.field
        assert refused.value.expected != refused.value.got
        buffer = bytearray(length)
        with pytest.raises(wire.WireError, match=f"buffer at byte 0: expected {len(data)} bytes, got {length} bytes"):
            value.encode(buffer)
        assert buffer == bytes(length)


@pytest.mark.parametrize("row", [row for row in FRAMES if row["type"].startswith("aeron")], ids=named)
def test_any_frame_of_aeron_is_decoded_by_its_type(row):
    data, value = (FOLDER / row["file"]).read_bytes(), value_of(row)
    assert aeron.decode(data) == value
    assert list(aeron.walk(data)) == [(0, value)]


def test_golden_tokens_are_decompressed():
    (row,) = [row for row in INDEX if row["type"].startswith("compression")]
    frame, original = (FOLDER / row["file"]).read_bytes(), raw(row["values"]["original"])
    assert compression.decompress(frame, length_max=len(original)) == original
    for length in range(len(frame)):
        with pytest.raises(wire.WireError):
            compression.Compression.TOKEN.decompress(frame[:length], length_max=100)
    for bit in range(8 * len(frame)):
        flipped = bytearray(frame)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(wire.WireError):
            compression.Compression.TOKEN.decompress(flipped, length_max=100)
