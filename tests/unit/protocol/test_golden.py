"""Golden vectors and the registry page: what other languages read is what the code does."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict

from relay.protocol.envelope import decode, encode_record
from relay.protocol.registry import Channel, channel_types

PROTO = Path(__file__).resolve().parents[3] / "proto"
GOLDEN = sorted((PROTO / "golden").glob("*.json"))


def page_module():
    spec = importlib.util.spec_from_file_location("registry_page", PROTO / "registry_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_the_bytes_decode_to_the_json_and_the_json_encodes_to_the_bytes(path):
    vector = json.loads(path.read_text())
    for channel in vector["channels"]:
        found = decode([bytes.fromhex(f) for f in vector["frames"]], Channel(channel))
        assert found.type_id == vector["type_id"]
        assert MessageToDict(found.message, preserving_proto_field_name=True) == vector["json"]
    again = ParseDict(vector["json"], type(found.message)())
    assert encode_record(again).hex() == vector["record"] == "".join(vector["frames"])


def test_every_message_with_an_id_has_a_vector():
    assert {p.stem for p in GOLDEN} == {c.__name__ for channel in Channel for c in channel_types(channel).values()}


def test_vectors_and_registry_page_are_what_the_code_makes():
    module = page_module()
    assert (PROTO / "spec" / "0002-registry.md").read_text() == module.registry_page()
    for name, vector in module.golden_vectors().items():
        assert json.loads((PROTO / "golden" / f"{name}.json").read_text()) == vector
