"""Writes ``proto/spec/0002-registry.md`` and the golden vectors out of the code; a test holds them equal.

Run: ``python proto/registry_page.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from relay.protocol.codes import ErrorCode, RejectReason
from relay.protocol.envelope import encode, encode_record
from relay.protocol.registry import RETIRED_IDS, SBE_IDS, SYMBOL_DEFINITION_ID, Channel, channel_types

PROTO = Path(__file__).resolve().parent
TEXTS = {"ticker": "BTC/USDT.BINANCE", "exchange": "BINANCE", "topic": "BTC/USDT.BINANCE|tick", "volume": "0.0000001"}


def registry_page() -> str:
    """Return the page's text."""
    lines = [
        "# 0002 — Registry",
        "",
        "Made from the code by `python proto/registry_page.py`. Ids and codes are never reused.",
        "",
        "## Type ids by channel",
        "",
        "| channel | ids |",
        "|---|---|",
    ]
    for channel in Channel:
        found = ", ".join(f"0x{i:02X} {c.__name__}" for i, c in sorted(channel_types(channel).items()))
        lines.append(f"| {channel} | {found} |")
    retired = ", ".join(f"0x{i:02X}" for i in sorted(RETIRED_IDS))
    lines += ["", f"Retired (answered with UNSUPPORTED): {retired}.", ""]
    names = channel_types(Channel.MARKET_DATA)
    templates = ", ".join(f"{int(i)} {names[i].__name__}" for i in SBE_IDS)
    lines += [
        "## Template ids of version 0x02",
        "",
        f"{templates}, {SYMBOL_DEFINITION_ID} SymbolDefinition ([0018](0018-market-data-in-sbe.md)).",
        "",
        "## Error codes",
        "",
    ]
    lines += [f"- `{code}`" for code in ErrorCode]
    lines += ["", "## Reject reasons", "", "Counted as `rejected.{reason}`.", ""]
    lines += [f"- `{reason}`" for reason in RejectReason]
    return "\n".join(lines) + "\n"


def golden_vectors() -> dict[str, dict[str, object]]:
    """Return one vector for each message class that has a type id: every field set, bytes and JSON."""
    vectors: dict[str, dict[str, object]] = {}
    for channel in Channel:
        for type_id, message_class in channel_types(channel).items():
            name = message_class.__name__
            message = filled(message_class())
            vector = vectors.setdefault(
                name,
                {
                    "type_id": type_id,
                    "channels": [],
                    "frames": [frame.hex() for frame in encode(message)],
                    "record": encode_record(message).hex(),
                    "json": MessageToDict(message, preserving_proto_field_name=True),
                },
            )
            channels = vector["channels"]
            assert isinstance(channels, list)  # noqa: S101 - made so above
            channels.append(str(channel))
    return vectors


def filled(message: Message, depth: int = 0) -> Message:
    """Set every field to a value that shows its number; repeated fields get two items."""
    for field in message.DESCRIPTOR.fields:
        count = 2 if field.is_repeated else 1
        for index in range(count):
            if field.message_type is not None:
                target = getattr(message, field.name)
                if depth < 3:
                    filled(target.add() if field.is_repeated else target, depth + 1)
                    if not field.is_repeated:
                        target.SetInParent()
                continue
            value = _value(field, index)
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)
    return message


def _value(field: object, index: int) -> object:
    number = field.number  # type: ignore[attr-defined]
    name = field.name  # type: ignore[attr-defined]
    kind = field.cpp_type  # type: ignore[attr-defined]
    if field.enum_type is not None:  # type: ignore[attr-defined]
        values = field.enum_type.values  # type: ignore[attr-defined]
        return values[(number + index) % len(values)].number
    if kind == field.CPPTYPE_STRING:  # type: ignore[attr-defined]
        if field.type == field.TYPE_BYTES:  # type: ignore[attr-defined]
            return bytes([number, index])
        return TEXTS.get(name, f"{name}-{number}-{index}")
    if kind == field.CPPTYPE_BOOL:  # type: ignore[attr-defined]
        return True
    wide = kind in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64)  # type: ignore[attr-defined]
    return (1_800_000_000_000_000_000 if wide else 1_000) + number + index


if __name__ == "__main__":
    (PROTO / "spec" / "0002-registry.md").write_text(registry_page())
    for name, vector in golden_vectors().items():
        (PROTO / "golden" / f"{name}.json").write_text(json.dumps(vector, indent=1, sort_keys=True) + "\n")
