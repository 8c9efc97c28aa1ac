"""A schema with everything that the standard has, and values for its messages."""

from __future__ import annotations

from typing import Any

__all__ = ["HEADER", "ORDER", "SCHEMA", "big_endian", "schema_of"]

HEADER = """<composite name="messageHeader">
  <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
  <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
</composite>
<composite name="groupSizeEncoding">
  <type name="blockLength" primitiveType="uint16"/><type name="numInGroup" primitiveType="uint16"/>
</composite>"""


def schema_of(types: str, messages: str, attributes: str = 'id="7" version="0"') -> bytes:
    """A schema of these types and messages, with the usual header and dimensions."""
    text = f'<messageSchema package="p" {attributes}><types>{HEADER}{types}</types>{messages}</messageSchema>'
    return text.encode()


SCHEMA = schema_of(
    """
    <composite name="text"><type name="length" primitiveType="uint16"/>
      <type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/></composite>
    <composite name="blob"><type name="length" primitiveType="uint8"/>
      <type name="varData" primitiveType="uint8" length="0"/></composite>
    <composite name="tiny"><type name="numInGroup" primitiveType="uint8"/>
      <type name="blockLength" primitiveType="uint8"/></composite>
    <type name="Code" primitiveType="char" length="4"/>
    <type name="Raw" primitiveType="uint8" length="3"/>
    <type name="Pair" primitiveType="int16" length="2"/>
    <type name="Percent" primitiveType="uint8" minValue="0" maxValue="100"/>
    <type name="OptInt" primitiveType="int32" presence="optional"/>
    <type name="OptOwn" primitiveType="int32" presence="optional" nullValue="7"/>
    <type name="OptFloat" primitiveType="double" presence="optional"/>
    <type name="OptCode" primitiveType="char" length="4" presence="optional"/>
    <type name="Nine" primitiveType="uint16" presence="constant">9</type>
    <enum name="Side" encodingType="char">
      <validValue name="BUY">1</validValue><validValue name="SELL">2</validValue></enum>
    <enum name="Kind" encodingType="uint8">
      <validValue name="LIMIT">0</validValue><validValue name="mro">1</validValue></enum>
    <set name="Flags" encodingType="uint16"><choice name="post">0</choice><choice name="hidden">9</choice></set>
    <composite name="Decimal"><type name="mantissa" primitiveType="int64"/>
      <type name="exponent" primitiveType="int8" presence="constant">-8</type></composite>
    <composite name="Place"><ref name="side" type="Side"/><ref name="price" type="Decimal" offset="2"/>
      <composite name="deep"><type name="x" primitiveType="uint8"/></composite></composite>
    """,
    """
    <message name="Order" id="1" blockLength="96" description="An order.">
      <field name="number" id="1" type="uint64"/><field name="letter" id="2" type="char"/>
      <field name="code" id="3" type="Code"/><field name="raw" id="4" type="Raw"/>
      <field name="pair" id="5" type="Pair"/>
      <field name="percent" id="6" type="Percent"/><field name="opt" id="7" type="OptInt"/>
      <field name="own" id="8" type="OptOwn"/><field name="ratio" id="9" type="OptFloat"/>
      <field name="label" id="10" type="OptCode"/><field name="nine" id="11" type="Nine"/>
      <field name="side" id="12" type="Side"/><field name="kind" id="13" type="Kind"/>
      <field name="fixed" id="14" type="Side" presence="constant" valueRef="Side.SELL"/>
      <field name="flags" id="15" type="Flags"/><field name="place" id="16" type="Place" offset="60"/>
      <field name="single" id="17" type="float"/><field name="decode" id="18" type="uint8"/>
      <group name="legs" id="20" dimensionType="tiny"><field name="qty" id="21" type="uint32"/>
        <field name="flag" id="22" type="Side"/></group>
      <group name="fills" id="30"><field name="price" id="31" type="Decimal"/>
        <group name="fees" id="32"><field name="amount" id="33" type="int16"/></group>
        <data name="venue" id="34" type="text"/></group>
      <data name="note" id="40" type="text"/><data name="blob" id="41" type="blob"/>
    </message>
    <message name="Beat" id="2"><field name="at" id="1" type="uint64"/><field name="side" id="2" type="Side"/>
      <field name="price" id="3" type="Decimal"/><field name="pair" id="4" type="Pair"/></message>
    """,
)

ORDER: dict[str, Any] = {
    "number": 2**64 - 1,
    "letter": "x",
    "code": "AB",
    "raw": b"\x00\x01\xff",
    "pair": (-1, 32_767),
    "percent": 100,
    "opt": None,
    "own": -3,
    "ratio": 0.5,
    "label": None,
    "nine": 9,
    "side": "1",
    "kind": 1,
    "fixed": "2",
    "flags": 513,
    "place": {"side": "2", "price": {"mantissa": -(2**62), "exponent": -8}, "deep": {"x": 255}},
    "single": 1.5,
    "decode": 4,
    "legs": [{"qty": 1, "flag": "1"}, {"qty": 2, "flag": None}, {"qty": 2**32 - 1, "flag": "2"}],
    "fills": [
        {"price": {"mantissa": 1, "exponent": -8}, "fees": [], "venue": "Zürich"},
        {"price": {"mantissa": 2, "exponent": -8}, "fees": [{"amount": -5}, {"amount": 6}], "venue": ""},
    ],
    "note": "für",
    "blob": b"\x00\xfe",
}


def big_endian(schema: bytes) -> bytes:
    """The same schema with numbers the other way round."""
    return schema.replace(b'version="0"', b'version="0" byteOrder="bigEndian"', 1)
