"""FIX messages over Simple Binary Encoding: orders, sessions, market data.

Example::

    from relay_accel import fix

    data = fix.encode(
        fix.NewOrderSingle, ClOrdID="A-1", Symbol="BTCUSD", Side="1", OrdType="2",
        TransactTime=1_800_000_000_000_000_000, OrderQty={"mantissa": 5_000_000}, Price={"mantissa": 645_001_000_000},
    )
    order = fix.decode(data)
    order.Side.name, order.Price.mantissa, order.StopPx.mantissa  # 'Buy', 645001000000, None

Names are FIX's own; enums are their FIX characters and names. Prices and quantities are mantissas at the constant
exponent -7, None is null. Every message is checked as a whole, both ways: a character that is no value of its field is
refused before anybody can read it. Layout: proto/spec/0019.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from relay_accel import sbe

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "MESSAGES",
    "SCHEMA",
    "ExecutionReport",
    "Heartbeat",
    "Logon",
    "Logout",
    "MarketDataIncrementalRefresh",
    "MarketDataSnapshotFullRefresh",
    "MassQuote",
    "NewOrderSingle",
    "OrderCancelReplaceRequest",
    "OrderCancelRequest",
    "decode",
    "encode",
]

SCHEMA: sbe.Schema = sbe.load(files("relay_accel").joinpath("fix.xml").read_bytes())
"""The compiled schema; ``str()`` of it says where each byte is."""

NewOrderSingle: type[sbe.BlockView] = SCHEMA.messages["NewOrderSingle"]
OrderCancelRequest: type[sbe.BlockView] = SCHEMA.messages["OrderCancelRequest"]
OrderCancelReplaceRequest: type[sbe.BlockView] = SCHEMA.messages["OrderCancelReplaceRequest"]
ExecutionReport: type[sbe.BlockView] = SCHEMA.messages["ExecutionReport"]
Heartbeat: type[sbe.BlockView] = SCHEMA.messages["Heartbeat"]
Logon: type[sbe.BlockView] = SCHEMA.messages["Logon"]
Logout: type[sbe.BlockView] = SCHEMA.messages["Logout"]
MarketDataIncrementalRefresh: type[sbe.BlockView] = SCHEMA.messages["MarketDataIncrementalRefresh"]
MarketDataSnapshotFullRefresh: type[sbe.BlockView] = SCHEMA.messages["MarketDataSnapshotFullRefresh"]
MassQuote: type[sbe.BlockView] = SCHEMA.messages["MassQuote"]

MESSAGES: Mapping[str, type[sbe.BlockView]] = {
    chr(number): message for number, message in sorted(SCHEMA.by_template.items())
}
"""The messages by the character of FIX's MsgType: ``MESSAGES["D"]`` is :data:`NewOrderSingle`."""


def encode(
    message: type[sbe.BlockView], values: Mapping[str, Any] | sbe.BlockView | None = None, /, **fields: Any
) -> bytes:
    """Return a message as bytes, header included.

    Args:
        message: one of this module's classes.
        values: fields by FIX name, groups as sequences of mappings; or a view.
        fields: more values, over the first.

    Raises:
        EncodeError: a required field is missing, a value does not fit, a name is unknown, or a character is no value of
            its field. Cost: that of :meth:`BlockView.encode`, and one walk over the bytes.
    """
    data: bytes = message.encode(values, **fields)
    try:
        message.decode(data, validate=True)
    except sbe.DecodeError as error:
        raise sbe.EncodeError(f"{message.sbe_name}: {error}") from error
    return data


def decode(buffer: Buffer, offset: int = 0) -> sbe.BlockView:
    """Return a checked view of the message at ``offset``, of the class that its template id names.

    Raises:
        DecodeError: no message of this schema, cut off, or with an enum's value that is unknown or missing: the text
            has its path and byte.
    """
    return SCHEMA.decode(buffer, offset, validate=True)
