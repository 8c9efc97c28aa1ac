"""Records of market messages by objects, the schema and the generic codec: what the converter has to give, slowly.

Needs the accelerator.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from relay.protocol.registry import type_id_of
from relay_accel import sbe
from tests.support.market_sbe_fields import READERS, WRITERS

__all__ = ["SCHEMA", "message_of", "record_of", "values_of"]

SCHEMA: sbe.Schema = sbe.load(Path(__file__).resolve().parents[2] / "proto" / "market.xml")
"""The compiled schema."""


def record_of(message: Message, symbol_id: int) -> bytes:
    """Return the record of a message.

    Raises:
        ValueError: an enum's number that does not fit.
        sbe.EncodeError: a text that does not fit.
    """
    type_id = type_id_of(message)
    return b"\2" + SCHEMA.by_template[type_id].encode(WRITERS[type_id](message, symbol_id))


def values_of(record: bytes) -> tuple[int, tuple[Any, ...]]:
    """Return template id and values of a record.

    Raises:
        sbe.DecodeError: it is no message of the schema.
    """
    if record[:1] != b"\2":
        raise sbe.DecodeError(f"expected version 2, got {record[:1]!r}")
    view = SCHEMA.decode(record, 1)
    return view.sbe_id, view.to_tuple()


def message_of(record: bytes, ticker: str) -> Message:
    """Return the message of a record.

    Raises:
        sbe.DecodeError: as of :func:`values_of`.
        KeyError: a definition.
        TypeError, ValueError: an enum that is null.
    """
    type_id, values = values_of(record)
    return READERS[type_id](values, ticker)
