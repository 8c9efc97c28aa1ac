"""Market messages in Simple Binary Encoding: protobuf's bytes ↔ records of version 0x02, equal value for value.

A record is the version byte and one SBE message of ``market.xml``, whose template id is the message's type id. A ticker
travels as a number, which a definition says before its first use; who gives numbers and who learns them is
:mod:`relay.engine.market_symbols`. Bytes are converted by the accelerator (:mod:`relay_accel.market`) without an object
between: importing this is an ImportError without it. Specification: ``proto/spec/0018-market-data-in-sbe.md``.
"""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import Message

from relay.protocol.codes import RejectReason
from relay.protocol.envelope import SBE_VERSION_FRAME, EnvelopeError, encode
from relay.protocol.registry import SYMBOL_DEFINITION_ID, Channel, channel_types
from relay_accel import market
from relay_accel.sbe import DecodeError, EncodeError

__all__ = [
    "SymbolDefinition",
    "decode_known",
    "encode_body",
    "encode_definition",
    "encode_known",
    "encode_market",
    "read_definition",
    "ticker_of",
]

_VERSION = SBE_VERSION_FRAME[0]
_PARSERS = {type_id: kind.FromString for type_id, kind in channel_types(Channel.MARKET_DATA).items()}


class SymbolDefinition(NamedTuple):
    """From here on a number means a ticker, under one epoch of the publisher."""

    symbol_id: int
    epoch: int
    ticker: str


def ticker_of(body: bytes) -> str:
    """Return the ticker that a message needs a number for; empty where it has none.

    Args:
        body: type id and protobuf, as they go through the sockets.

    Raises:
        KeyError: the message has no form in SBE.
        EnvelopeError: UNDECODABLE: the bytes are no protobuf.
    """
    try:
        return market.ticker(body[0], body[1:])
    except DecodeError as error:
        raise _refusal(error) from error


def encode_body(body: bytes, symbol_id: int) -> bytes:
    """Return the record of a Tick, OHLC, Gap or Heartbeat; unknown protobuf fields are left out.

    Args:
        body: type id and protobuf, as they go through the sockets.
        symbol_id: of its ticker; 0 where that is empty.

    Raises:
        KeyError: the message has no form in SBE.
        EnvelopeError: UNDECODABLE: the bytes are no protobuf; INVALID_FIELD: a text of more than 65,534 bytes, or an
            enum's number that is not 0 … 254.
    """
    try:
        return market.to_sbe(body[0], body[1:], symbol_id)
    except (DecodeError, EncodeError) as error:
        raise _refusal(error) from error


def encode_known(body: bytes, symbol_ids: dict[str, int]) -> bytes | None:
    """Return the record of a message by the numbers of tickers; None where its own has none yet.

    Raises:
        KeyError, EnvelopeError: as of :func:`encode_body`.
    """
    try:
        return market.to_sbe_by(body[0], body[1:], symbol_ids)
    except (DecodeError, EncodeError) as error:
        raise _refusal(error) from error


def encode_market(message: Message, symbol_id: int) -> bytes:
    """Return the record of a message object; see :func:`encode_body`."""
    return encode_body(encode(message)[1], symbol_id)


def encode_definition(definition: SymbolDefinition) -> bytes:
    """Return the record of a definition.

    Raises:
        EnvelopeError: INVALID_FIELD: the ticker has more than 65,534 bytes.
    """
    try:
        return market.define(*definition)
    except EncodeError as error:
        raise _refusal(error) from error


def decode_known(record: bytes, tickers: dict[int, str]) -> Message | None:
    """Return the message of a record by the tickers of numbers; None for a definition, and where its number is unknown.

    Raises:
        EnvelopeError: UNDECODABLE: the bytes are no record of version 0x02, or an enum is null.
    """
    try:
        found = market.to_protobuf_by(record, tickers)
    except DecodeError as error:
        raise _refusal(error) from error
    return None if found is None else _PARSERS[found[0]](found[1])


def read_definition(record: bytes) -> SymbolDefinition | None:
    """Return the definition that a record is; None for a message. Bytes behind the record are passed over.

    Raises:
        EnvelopeError: EMPTY_FRAME, WRONG_VERSION, or UNDECODABLE for bytes that are no message of the schema.
    """
    if not record:
        raise EnvelopeError(RejectReason.EMPTY_FRAME, "expected a record of version 0x02, got no bytes")
    if record[0] != _VERSION:
        raise EnvelopeError(RejectReason.WRONG_VERSION, f"expected version 0x02, got 0x{record[0]:02x}")
    try:
        template_id, symbol_id, epoch, ticker = market.head(record)
    except DecodeError as error:
        raise _refusal(error) from error
    return SymbolDefinition(symbol_id, epoch, ticker) if template_id == SYMBOL_DEFINITION_ID else None


def _refusal(error: DecodeError | EncodeError) -> EnvelopeError:
    is_unfit = isinstance(error, EncodeError)
    return EnvelopeError(RejectReason.INVALID_FIELD if is_unfit else RejectReason.UNDECODABLE, str(error))
