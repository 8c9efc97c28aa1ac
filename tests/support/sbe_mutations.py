"""Schemas of Simple Binary Encoding with one thing changed each, and what becomes of them.

The verdicts are those of the reference tool; ``STRICTER`` names what it accepts and this codec refuses, and why.
"""

from __future__ import annotations

__all__ = ["BASE", "MUTATIONS", "STRICTER"]

BASE = """<?xml version="1.0" encoding="UTF-8"?>
<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="p" id="7" version="2"\
 byteOrder="littleEndian">
<types>
<composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/><type name="templateId"\
 primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/><type name="version"\
 primitiveType="uint16"/></composite>
<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/><type name="numInGroup"\
 primitiveType="uint16"/></composite>
<composite name="varData"><type name="length" primitiveType="uint32" maxValue="1073741824"/><type\
 name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/></composite>
<type name="Price" primitiveType="int64"/>
<type name="Small" primitiveType="uint8" minValue="1" maxValue="100"/>
<type name="Opt" primitiveType="uint16" presence="optional" nullValue="9"/>
<type name="Text" primitiveType="char" length="6" semanticType="String"/>
<type name="Const" primitiveType="uint16" presence="constant">42</type>
<type name="ConstText" primitiveType="char" length="3" presence="constant">abc</type>
<enum name="Side" encodingType="char"><validValue name="Buy">1</validValue><validValue\
 name="Sell">2</validValue></enum>
<enum name="Num" encodingType="uint8"><validValue name="One">1</validValue><validValue name="Two"\
 sinceVersion="1">2</validValue></enum>
<set name="Flags" encodingType="uint8"><choice name="a">0</choice><choice name="b">7</choice></set>
<composite name="Dec"><type name="mantissa" primitiveType="int64"/><type name="exponent" primitiveType="int8"\
 presence="constant">-7</type></composite>
<composite name="Outer"><ref name="side" type="Side"/><type name="n" primitiveType="uint32" offset="4"/>\
<composite name="inner"><type name="x" primitiveType="int8"/></composite></composite>
</types>
<sbe:message name="Order" id="1" blockLength="64">
<field name="price" id="1" type="Price"/>
<field name="side" id="2" type="Side"/>
<field name="fixed" id="3" type="Num" presence="constant" valueRef="Num.One"/>
<field name="opt" id="4" type="Opt"/>
<field name="text" id="5" type="Text" semanticType="String"/>
<field name="dec" id="6" type="Dec"/>
<field name="outer" id="7" type="Outer" offset="30"/>
<field name="late" id="8" type="uint8" sinceVersion="2"/>
<group name="legs" id="20" dimensionType="groupSizeEncoding"><field name="qty" id="21" type="uint32"/><data\
 name="note" id="22" type="varData"/></group>
<data name="memo" id="30" type="varData"/>
</sbe:message>
<sbe:message name="Empty" id="2"/>
</sbe:messageSchema>"""

STRICTER = {
    "byteorder": "an order that nobody knows is no reason to guess one",
    "const_range": "the value does not fit the bytes",
    "data_len_uint64": "no message is that long",
    "data_vardata_uint16": "a length in bytes of items of two",
    "doctype": "a document type can hold entities without end",
    "enum_dup_name": "a name would mean two values",
    "field_const_comp": "there is no such value",
    "field_id_neg": "ids are not negative",
    "field_var_type": "the fields behind it would have no place",
    "header_float_version": "a version is a whole number",
    "header_int16_template": "the tool asks it of the block length alone",
    "msg_block_huge": "the header cannot say it",
    "msg_id_big": "the header cannot say it",
    "set_bit_neg": "there is no such bit",
    "set_dup_name": "a name would mean two bits",
    "set_named_signed": "bits have no sign",
    "type_length_neg": "there are no such arrays",
    "type_length_zero": "an array of nothing holds nothing",
    "type_max_range": "the value does not fit the bytes",
    "type_null_range": "the value does not fit the bytes",
}

_ACCEPTED = [
    ("id_big", ' id="7"', ' id="70000"'),
    (
        "header_uint32_block",
        '<type name="blockLength" primitiveType="uint16"/><type name="templateId"',
        '<type name="blockLength" primitiveType="uint32"/><type name="templateId"',
    ),
    ("header_uint8_template", 'name="templateId" primitiveType="uint16"', 'name="templateId" primitiveType="uint8"'),
    (
        "group_num_int16_min",
        'name="numInGroup" primitiveType="uint16"',
        'name="numInGroup" primitiveType="int16" minValue="1" maxValue="10"',
    ),
    (
        "group_num_int16_min0",
        'name="numInGroup" primitiveType="uint16"',
        'name="numInGroup" primitiveType="int16" minValue="0" maxValue="10"',
    ),
    (
        "group_num_uint32_max",
        'name="numInGroup" primitiveType="uint16"',
        'name="numInGroup" primitiveType="uint32" maxValue="1000"',
    ),
    ("group_num_uint64", 'name="numInGroup" primitiveType="uint16"', 'name="numInGroup" primitiveType="uint64"'),
    ("group_empty", '<group name="legs"', '<group name="none" id="50"/><group name="legs"'),
    ("data_vardata_char", '<type name="varData" primitiveType="uint8"', '<type name="varData" primitiveType="char"'),
    ("data_vardata_length1", 'length="0" characterEncoding="UTF-8"', 'characterEncoding="UTF-8"'),
    ("data_vardata_length5", 'length="0" characterEncoding="UTF-8"', 'length="5" characterEncoding="UTF-8"'),
    ("type_null_required", 'presence="optional" nullValue="9"', 'nullValue="9"'),
    ("type_null_max", 'nullValue="9"', 'nullValue="65535"'),
    ("type_min_gt_max", 'minValue="1" maxValue="100"', 'minValue="100" maxValue="1"'),
    (
        "type_dup",
        '<type name="Price" primitiveType="int64"/>',
        '<type name="Price" primitiveType="int64"/><type name="Price" primitiveType="int32"/>',
    ),
    (
        "type_primitive_name",
        '<type name="Price" primitiveType="int64"/>',
        '<type name="Price" primitiveType="int64"/><type name="uint8" primitiveType="uint8"/>',
    ),
    ("type_bad_name", '<type name="Small"', '<type name="Sm all!"'),
    ("type_unknown_element", '<type name="Small"', '<wat name="x"/><type name="Small"'),
    ("const_char_short", ">abc</type>", ">a</type>"),
    ("const_char_nolen", ' length="3" presence="constant">abc', ' presence="constant">abc'),
    (
        "const_valueref_type",
        'primitiveType="uint16" presence="constant">42<',
        'primitiveType="uint8" presence="constant" valueRef="Num.One"><',
    ),
    ("enum_int32", '<enum name="Num" encodingType="uint8">', '<enum name="Num" encodingType="int32">'),
    ("enum_named", '<enum name="Num" encodingType="uint8">', '<enum name="Num" encodingType="Small">'),
    ("enum_named_wide", '<enum name="Num" encodingType="uint8">', '<enum name="Num" encodingType="Price">'),
    ("enum_dup_value", '<validValue name="Sell">2<', '<validValue name="Sell">1<'),
    ("enum_empty", '<validValue name="Buy">1</validValue><validValue name="Sell">2</validValue>', ""),
    (
        "enum_null",
        '<enum name="Num" encodingType="uint8">',
        '<enum name="Num" encodingType="uint8" presence="optional" nullValue="0">',
    ),
    (
        "enum_optional_nonull",
        '<enum name="Num" encodingType="uint8">',
        '<enum name="Num" encodingType="uint8" presence="optional">',
    ),
    (
        "enum_null_required",
        '<enum name="Num" encodingType="uint8">',
        '<enum name="Num" encodingType="uint8" nullValue="77">',
    ),
    ("enum_value_ctrl", '<validValue name="Buy">1<', '<validValue name="Buy">&#127;<'),
    ("set_dup_bit", '<choice name="b">7<', '<choice name="b">0<'),
    ("set_named", '<set name="Flags" encodingType="uint8">', '<set name="Flags" encodingType="Small">'),
    ("set_empty", '<choice name="a">0</choice><choice name="b">7</choice>', ""),
    (
        "comp_empty",
        (
            '<type name="mantissa" primitiveType="int64"/><type name="exponent" primitiveType="int8" '
            'presence="constant">-7</type>'
        ),
        "",
    ),
    ("field_dup_id_group", 'name="qty" id="21"', 'name="qty" id="1"'),
    ("field_dup_name_group", 'name="qty" id="21"', 'name="price" id="21"'),
    ("field_offset_zero", 'offset="30"', 'offset="0"'),
    ("field_optional", 'id="1" type="Price"', 'id="1" type="Price" presence="optional"'),
    ("field_enum_optional", 'id="2" type="Side"', 'id="2" type="Side" presence="optional"'),
    ("field_comp_optional", 'id="6" type="Dec"', 'id="6" type="Dec" presence="optional"'),
    ("field_const_plain_ref", 'id="1" type="Price"', 'id="1" type="Small" presence="constant" valueRef="Num.One"'),
    ("field_const_type", 'id="1" type="Price"', 'id="1" type="Const"'),
    ("field_const_type_said", 'id="1" type="Price"', 'id="1" type="Const" presence="constant"'),
    ("field_const_type_required", 'id="1" type="Price"', 'id="1" type="Const" presence="required"'),
    ("field_valueref_notconst", 'presence="constant" valueRef="Num.One"', 'valueRef="Num.One"'),
    ("field_semantic_only_field", 'id="1" type="Price"', 'id="1" type="Price" semanticType="Price"'),
    ("field_since_order", 'id="2" type="Side"', 'id="2" type="Side" sinceVersion="2"'),
    ("msg_bad_name", 'name="Empty"', 'name="Em pty"'),
    (
        "msg_unknown_child",
        '<sbe:message name="Empty" id="2"/>',
        '<sbe:message name="Empty" id="2"><wat/></sbe:message>',
    ),
]

_REFUSED = [
    ("package_missing", ' package="p"', ""),
    ("id_missing", ' id="7"', ""),
    ("id_text", ' id="7"', ' id="x"'),
    ("version_missing", ' version="2"', ""),
    ("version_text", 'version="2" byte', 'version="x" byte'),
    ("byteorder", "littleEndian", "middleEndian"),
    ("header_missing", 'name="messageHeader"', 'name="header"'),
    ("header_type", 'byteOrder="littleEndian"', 'headerType="varData"'),
    ("header_no_version", '<type name="version" primitiveType="uint16"/>', ""),
    (
        "header_int16_block",
        '<type name="blockLength" primitiveType="uint16"/><type name="templateId"',
        '<type name="blockLength" primitiveType="int16"/><type name="templateId"',
    ),
    ("header_int16_template", 'name="templateId" primitiveType="uint16"', 'name="templateId" primitiveType="int16"'),
    ("header_float_version", 'name="version" primitiveType="uint16"', 'name="version" primitiveType="float"'),
    ("group_dim_unknown", 'dimensionType="groupSizeEncoding"', 'dimensionType="nope"'),
    ("group_dim_not_composite", 'dimensionType="groupSizeEncoding"', 'dimensionType="Price"'),
    ("group_dim_no_num", '<type name="numInGroup" primitiveType="uint16"/>', ""),
    ("group_num_int16", 'name="numInGroup" primitiveType="uint16"', 'name="numInGroup" primitiveType="int16"'),
    ("group_num_uint32", 'name="numInGroup" primitiveType="uint16"', 'name="numInGroup" primitiveType="uint32"'),
    (
        "group_num_min_gt_max",
        'name="numInGroup" primitiveType="uint16"',
        'name="numInGroup" primitiveType="uint16" minValue="10" maxValue="1"',
    ),
    (
        "group_block_int",
        '<type name="blockLength" primitiveType="uint16"/><type name="numInGroup"',
        '<type name="blockLength" primitiveType="int16"/><type name="numInGroup"',
    ),
    (
        "group_after_data",
        '<data name="memo" id="30" type="varData"/>',
        (
            '<data name="memo" id="30" type="varData"/><group name="g" id="40"><field name="q" id="41'
            '" type="int8"/></group>'
        ),
    ),
    (
        "field_after_group",
        '<data name="memo" id="30" type="varData"/>',
        '<field name="q" id="41" type="int8"/><data name="memo" id="30" type="varData"/>',
    ),
    ("group_blocklength_small", '<group name="legs" id="20"', '<group name="legs" id="20" blockLength="2"'),
    ("group_no_name", '<group name="legs" ', "<group "),
    ("group_no_id", '<group name="legs" id="20"', '<group name="legs"'),
    ("data_no_length", '<type name="length" primitiveType="uint32" maxValue="1073741824"/>', ""),
    (
        "data_len_int",
        'name="length" primitiveType="uint32" maxValue="1073741824"',
        'name="length" primitiveType="int16"',
    ),
    (
        "data_len_no_max",
        'name="length" primitiveType="uint32" maxValue="1073741824"',
        'name="length" primitiveType="uint32"',
    ),
    ("data_len_max_big", 'maxValue="1073741824"', 'maxValue="4294967294"'),
    (
        "data_len_uint64",
        'name="length" primitiveType="uint32" maxValue="1073741824"',
        'name="length" primitiveType="uint64"',
    ),
    ("data_no_vardata", '<type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/>', ""),
    ("data_not_composite", 'id="30" type="varData"', 'id="30" type="Price"'),
    ("data_unknown", 'id="30" type="varData"', 'id="30" type="nope"'),
    ("data_optional", 'id="30" type="varData"', 'id="30" type="varData" presence="optional"'),
    (
        "data_vardata_uint16",
        '<type name="varData" primitiveType="uint8"',
        '<type name="varData" primitiveType="uint16"',
    ),
    ("type_no_name", '<type name="Price" ', "<type "),
    ("type_no_primitive", '<type name="Price" primitiveType="int64"/>', '<type name="Price"/>'),
    ("type_bad_primitive", 'name="Price" primitiveType="int64"', 'name="Price" primitiveType="int63"'),
    ("type_length_text", 'name="Text" primitiveType="char" length="6"', 'name="Text" primitiveType="char" length="x"'),
    ("type_length_neg", 'name="Text" primitiveType="char" length="6"', 'name="Text" primitiveType="char" length="-6"'),
    ("type_length_zero", 'name="Text" primitiveType="char" length="6"', 'name="Text" primitiveType="char" length="0"'),
    (
        "type_length_huge",
        'name="Text" primitiveType="char" length="6"',
        'name="Text" primitiveType="char" length="2000000000"',
    ),
    (
        "type_presence",
        'name="Opt" primitiveType="uint16" presence="optional"',
        'name="Opt" primitiveType="uint16" presence="maybe"',
    ),
    ("type_null_text", 'nullValue="9"', 'nullValue="x"'),
    ("type_null_range", 'nullValue="9"', 'nullValue="70000"'),
    ("type_min_text", 'minValue="1"', 'minValue="x"'),
    ("type_max_range", 'maxValue="100"', 'maxValue="300"'),
    ("type_since_late", '<type name="Small"', '<type sinceVersion="3" name="Small"'),
    (
        "field_type_since_late",
        '<type name="Price" primitiveType="int64"/>',
        '<type name="Price" primitiveType="int64" sinceVersion="3"/>',
    ),
    ("const_no_value", ">42</type>", "></type>"),
    ("const_text_number", ">42</type>", ">x</type>"),
    ("const_range", ">42</type>", ">70000</type>"),
    ("const_space", ">42</type>", "> 42 </type>"),
    ("const_char_long", ">abc</type>", ">abcdef</type>"),
    ("const_valueref", 'presence="constant">42<', 'presence="constant" valueRef="Num.One"><'),
    (
        "type_valueref_notconst",
        '<type name="Small" primitiveType="uint8"',
        '<type name="Small" valueRef="Num.One" primitiveType="uint8"',
    ),
    ("enum_no_encoding", '<enum name="Side" encodingType="char">', '<enum name="Side">'),
    ("enum_uint32", '<enum name="Num" encodingType="uint8">', '<enum name="Num" encodingType="uint32">'),
    ("enum_int64", '<enum name="Num" encodingType="uint8">', '<enum name="Num" encodingType="int64">'),
    ("enum_named_array", '<enum name="Num" encodingType="uint8">', '<enum name="Num" encodingType="Text">'),
    ("enum_named_composite", '<enum name="Num" encodingType="uint8">', '<enum name="Num" encodingType="Dec">'),
    ("enum_unknown", '<enum name="Num" encodingType="uint8">', '<enum name="Num" encodingType="nope">'),
    ("enum_float", '<enum name="Num" encodingType="uint8">', '<enum name="Num" encodingType="float">'),
    ("enum_dup_name", '<validValue name="Sell">', '<validValue name="Buy">'),
    (
        "enum_null_used",
        '<enum name="Num" encodingType="uint8">',
        '<enum name="Num" encodingType="uint8" presence="optional" nullValue="2">',
    ),
    ("enum_value_255", 'sinceVersion="1">2<', 'sinceVersion="1">255<'),
    ("enum_value_range", 'sinceVersion="1">2<', 'sinceVersion="1">300<'),
    (
        "enum_value_named_range",
        (
            '<enum name="Num" encodingType="uint8"><validValue name="One">1</validValue><validValue n'
            'ame="Two" sinceVersion="1">2<'
        ),
        (
            '<enum name="Num" encodingType="Small"><validValue name="One">1</validValue><validValue n'
            'ame="Two" sinceVersion="1">101<'
        ),
    ),
    ("enum_value_empty", '<validValue name="Buy">1<', '<validValue name="Buy"><'),
    ("enum_value_long", '<validValue name="Buy">1<', '<validValue name="Buy">12<'),
    ("enum_value_space", 'sinceVersion="1">2<', 'sinceVersion="1"> 2 <'),
    ("enum_value_noname", '<validValue name="Buy">', "<validValue>"),
    ("enum_value_since_late", 'sinceVersion="1">2<', 'sinceVersion="9">2<'),
    ("set_bit_big", '<choice name="b">7<', '<choice name="b">8<'),
    ("set_bit_neg", '<choice name="b">7<', '<choice name="b">-1<'),
    ("set_bit_text", '<choice name="b">7<', '<choice name="b">x<'),
    ("set_dup_name", '<choice name="b">', '<choice name="a">'),
    ("set_int8", '<set name="Flags" encodingType="uint8">', '<set name="Flags" encodingType="int8">'),
    ("set_named_signed", '<set name="Flags" encodingType="uint8">', '<set name="Flags" encodingType="Price">'),
    ("set_unknown", '<set name="Flags" encodingType="uint8">', '<set name="Flags" encodingType="nope">'),
    (
        "comp_dup",
        '<type name="n" primitiveType="uint32" offset="4"/>',
        ('<type name="n" primitiveType="uint32" offset="4"/><type name="n" primitiveType="uint32"/>'),
    ),
    ("comp_offset_small", 'primitiveType="uint32" offset="4"', 'primitiveType="uint32" offset="0"'),
    (
        "comp_offset_ref",
        '<type name="n" primitiveType="uint32" offset="4"/>',
        '<type name="n" primitiveType="uint32" offset="4"/><ref name="r" type="Dec" offset="2"/>',
    ),
    ("comp_offset_neg", 'primitiveType="uint32" offset="4"', 'primitiveType="uint32" offset="-4"'),
    ("comp_ref_unknown", '<ref name="side" type="Side"/>', '<ref name="side" type="nope"/>'),
    ("comp_ref_primitive", '<ref name="side" type="Side"/>', '<ref name="side" type="uint8"/>'),
    ("comp_ref_notype", '<ref name="side" type="Side"/>', '<ref name="side"/>'),
    (
        "comp_cycle",
        '<composite name="inner"><type name="x" primitiveType="int8"/></composite>',
        '<composite name="inner"><ref name="x" type="Outer"/></composite>',
    ),
    (
        "comp_cycle2",
        '<type name="mantissa" primitiveType="int64"/>',
        '<type name="mantissa" primitiveType="int64"/><ref name="o" type="Outer"/>',
    ),
    (
        "comp_data",
        '<type name="n" primitiveType="uint32" offset="4"/>',
        '<type name="n" primitiveType="uint32" offset="4"/><data name="d" id="1" type="varData"/>',
    ),
    ("comp_since_late", '<composite name="Dec">', '<composite name="Dec" sinceVersion="5">'),
    ("comp_member_since_late", '<type name="mantissa" ', '<type sinceVersion="5" name="mantissa" '),
    ("field_no_id", '<field name="price" id="1"', '<field name="price"'),
    ("field_id_text", '<field name="price" id="1"', '<field name="price" id="x"'),
    ("field_id_neg", '<field name="price" id="1"', '<field name="price" id="-1"'),
    ("field_no_name", '<field name="price" id="1"', '<field id="1"'),
    ("field_no_type", 'id="1" type="Price"', 'id="1"'),
    ("field_type_unknown", 'type="Price"', 'type="nope"'),
    ("field_dup_id", '<field name="side" id="2"', '<field name="side" id="1"'),
    ("field_dup_name", '<field name="side" id="2"', '<field name="price" id="2"'),
    ("field_dup_group_sibling", '<data name="note" id="22"', '<data name="qty" id="22"'),
    ("data_dup_id", '<data name="memo" id="30"', '<data name="memo" id="20"'),
    ("field_offset_small", 'offset="30"', 'offset="3"'),
    ("field_offset_neg", 'offset="30"', 'offset="-1"'),
    ("field_presence", 'id="4" type="Opt"', 'id="4" type="Opt" presence="maybe"'),
    ("field_const_novalueref", ' valueRef="Num.One"', ""),
    ("field_const_plain", 'id="1" type="Price"', 'id="1" type="Price" presence="constant"'),
    ("field_const_plain_ref_wide", 'id="1" type="Price"', 'id="1" type="Price" presence="constant" valueRef="Num.One"'),
    ("field_const_comp", 'id="6" type="Dec"', 'id="6" type="Dec" presence="constant"'),
    ("field_valueref_format", 'valueRef="Num.One"', 'valueRef="Num"'),
    ("field_valueref_format2", 'valueRef="Num.One"', 'valueRef="Num."'),
    ("field_valueref_enum", 'valueRef="Num.One"', 'valueRef="Side.Buy"'),
    ("field_valueref_enum_unknown", 'valueRef="Num.One"', 'valueRef="Nope.Buy"'),
    ("field_valueref_value", 'valueRef="Num.One"', 'valueRef="Num.Three"'),
    ("field_semantic", 'id="5" type="Text" semanticType="String"', 'id="5" type="Text" semanticType="int"'),
    ("field_since_late", 'sinceVersion="2"', 'sinceVersion="3"'),
    ("field_var_type", 'id="1" type="Price"', 'id="1" type="varData"'),
    ("msg_no_id", '<sbe:message name="Order" id="1"', '<sbe:message name="Order"'),
    ("msg_no_name", '<sbe:message name="Order" id="1"', '<sbe:message id="1"'),
    ("msg_dup_id", 'name="Empty" id="2"', 'name="Empty" id="1"'),
    ("msg_dup_name", 'name="Empty" id="2"', 'name="Order" id="2"'),
    ("msg_id_big", 'name="Empty" id="2"', 'name="Empty" id="70000"'),
    ("msg_block_small", 'blockLength="64"', 'blockLength="10"'),
    ("msg_block_huge", 'blockLength="64"', 'blockLength="100000"'),
    ("msg_block_neg", 'blockLength="64"', 'blockLength="-1"'),
    ("msg_block_text", 'blockLength="64"', 'blockLength="x"'),
    ("msg_since_late", 'name="Empty" id="2"', 'name="Empty" id="2" sinceVersion="9"'),
    ("group_since_late", '<group name="legs" ', '<group sinceVersion="9" name="legs" '),
    ("data_since_late", '<data name="memo" ', '<data sinceVersion="9" name="memo" '),
    ("malformed", "</types>", ""),
    ("doctype", "<sbe:messageSchema", '<!DOCTYPE x [<!ENTITY a "b">]><sbe:messageSchema'),
]


def _changed(old: str, new: str) -> str:
    assert old in BASE, old
    return BASE.replace(old, new, 1)


MUTATIONS = {"base": (BASE, "accepted")}
MUTATIONS |= {name: (_changed(old, new), "accepted") for name, old, new in _ACCEPTED}
MUTATIONS |= {name: (_changed(old, new), "refused") for name, old, new in _REFUSED}
MUTATIONS["root_name"] = (BASE.replace("sbe:messageSchema", "sbe:schema"), "refused")
MUTATIONS["no_messages"] = (BASE[: BASE.index("<sbe:message name")] + "</sbe:messageSchema>", "accepted")
MUTATIONS["cycle_of_two"] = (
    BASE.replace('<type name="mantissa" primitiveType="int64"/>', '<ref name="o" type="Two"/>').replace(
        "</types>", '<composite name="Two"><ref name="d" type="Dec"/></composite></types>'
    ),
    "refused",
)
