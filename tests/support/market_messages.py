"""Any market message: every field of its class, optional ones there or not, texts and numbers of every size."""

from __future__ import annotations

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

from relay.protocol.envelope import encode

__all__ = ["ENUM_NUMBER_MAX", "any_message", "body_of"]

ENUM_NUMBER_MAX = 254
"""Greatest number of an enum that SBE's byte can say."""
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_TEXTS = (
    st.text(max_size=20)
    | st.integers(0, 2**65).map(str)
    | st.sampled_from(
        ["", "0", "00", "007", "-1", "+1", "1_0", "٣", "²", "18446744073709551615", "18446744073709551616"]
    )
    | st.decimals(allow_nan=False, allow_infinity=False, places=8).map(lambda number: format(number, "f"))
)


def body_of(message: Message) -> bytes:
    """Return type id and protobuf, as they go through the sockets."""
    return encode(message)[1]


def any_message(message_class: type[Message]) -> st.SearchStrategy[Message]:
    """Messages of a class."""
    return st.fixed_dictionaries(
        {}, optional={field.name: _value(field) for field in message_class.DESCRIPTOR.fields}
    ).map(lambda values: message_class(**values))


def _value(field: FieldDescriptor) -> st.SearchStrategy[object]:
    if field.message_type is not None:
        return any_message(field.message_type._concrete_class)
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values]) | st.integers(0, ENUM_NUMBER_MAX)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _TEXTS
    least, greatest = _RANGES[field.cpp_type]
    return st.sampled_from([0, least, greatest]) | st.integers(least, greatest)
