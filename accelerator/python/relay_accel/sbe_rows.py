"""Blocks as NumPy arrays and as JSON: what :mod:`relay_accel.sbe` calls when it is asked for them."""

from __future__ import annotations

import base64
import json
import math
from enum import Enum, Flag
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer

    from relay_accel._sbe import BlockView, GroupView, _Codec

    _Memory = bytes | memoryview[int]

__all__ = ["described", "of_group", "of_messages", "to_json"]


def of_group(group: GroupView) -> npt.NDArray[Any]:
    """Return a group's blocks as a read-only structured array; over the buffer where entries lie at equal distances."""
    return _array(*group.sbe_rows())


def of_messages(message: type[BlockView], buffer: Buffer, offset: int, count: int | None) -> npt.NDArray[Any]:
    """See :func:`relay_accel.sbe.to_numpy`."""
    return _array(*_codec(message).rows(buffer, offset, count))


def described(message: type[BlockView]) -> dict[str, Any]:
    """See :func:`relay_accel.sbe.describe`."""
    return _codec(message).describe()


def to_json(values: dict[str, Any], indent: int | None) -> str:
    """Return values as JSON: enums and sets by name, bytes in base64, floats that JSON lacks as text."""
    return json.dumps(_plain(values), indent=indent, ensure_ascii=False, allow_nan=False)


def _codec(message: type[BlockView]) -> _Codec:
    codec: _Codec | None = getattr(message, "_codec", None)
    if codec is None:
        raise TypeError(f"expected the class of a message, got {message!r}")
    return codec


def _array(dtype: Any, memory: _Memory, count: int, stride: int) -> npt.NDArray[Any]:
    try:
        import numpy as np
    except ImportError as error:
        raise ImportError("arrays need NumPy; install relay-accel[numpy]") from error
    row: np.dtype[Any] = np.dtype(dtype)
    if not count:
        return np.empty(0, row)
    array: npt.NDArray[Any] = np.ndarray((count,), row, memory, 0, (stride,))
    array.flags.writeable = False
    return array


def _plain(value: Any) -> Any:
    match value:
        case Flag():
            return _flags(value)
        case Enum():
            return value.name
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case bytes():
            return base64.b64encode(value).decode()
    # JSON has no word for these.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _flags(value: Flag) -> list[str] | int:
    """Names of the bits that are set; the number itself where the schema does not know one of them."""
    names = [flag.name for flag in value if flag.name is not None]
    number: int = value.value
    return names if len(names) == number.bit_count() else number
