"""Records and NumPy: dtypes as declarations, batches as structured arrays; what the record codec calls for them."""

from __future__ import annotations

import keyword
from collections import namedtuple
from typing import TYPE_CHECKING, Annotated, Any, Literal

from relay_accel._sbe import DecodeError, EncodeError
from relay_accel.record_types import At, Bytes, Characters, Field, Number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from relay_accel.record_codec import RecordCodec

__all__ = ["array_over", "bytes_of", "declared_by", "dtype_of"]

_LETTERS = {"u": "u", "i": "i", "f": "f"}
_REASONS = {
    "O": "objects are pointers, which mean nothing to another process",
    "U": "str items take four bytes a character; take S items",
    "T": "strings of any length are pointers, which mean nothing to another process; take S items",
    "b": "a bool is one of 256 bytes; take u1",
    "c": "complex numbers have no type here; take two floats",
    "M": "a time needs its unit in its name; take i8 and say it, such as at_ns",
    "m": "a duration needs its unit in its name; take i8 and say it, such as wait_ns",
}


def declared_by(dtype: npt.DTypeLike, name: str) -> tuple[type, int, Literal["little", "big"]]:
    """Return what a structured dtype declares: a class of named tuples, the length in bytes, the byte order.

    Raises:
        TypeError: a field is no fixed bytes, or byte orders differ.
    """
    row = _numpy().dtype(dtype)
    if row.names is None:
        raise TypeError(f"expected a structured dtype, with names, got {row}")
    places = sorted((row.fields[field][1], field, row.fields[field][0]) for field in row.names)
    for _, field, _ in places:
        if keyword.iskeyword(field) or not field.isidentifier() or field.startswith("_"):
            raise TypeError(f"expected names that can be attributes, got {field!r}")
    make: Any = namedtuple
    made = make(name, [field for _, field, _ in places])
    made.__annotations__ = {field: _hint(f"{name}.{field}", item, offset) for offset, field, item in places}
    return made, row.itemsize, _byte_order(name, [item for *_, item in places])


def _hint(place: str, item: np.dtype[Any], offset: int) -> Any:
    if item.kind == "S":
        return Annotated[bytes, Characters(item.itemsize), At(offset)]
    if item.kind == "V" and item.names is None and item.subdtype is None:
        return Annotated[bytes, Bytes(item.itemsize), At(offset)]
    if item.kind in _LETTERS and item.itemsize in ((4, 8) if item.kind == "f" else (1, 2, 4, 8)):
        kind: Any = f"{_LETTERS[item.kind]}{8 * item.itemsize}"
        base: Any = float if item.kind == "f" else int
        return Annotated[base, Number(kind), At(offset)]
    reason = _REASONS.get(item.kind, "there is no type for it")
    if item.kind == "V":
        reason = "arrays and structs inside of a record are not known; take fields of their own, or V bytes"
    raise TypeError(f"{place}: expected integers of 1 to 8 bytes, f4, f8, S or V, got {item}: {reason}")


def _byte_order(name: str, items: list[np.dtype[Any]]) -> Literal["little", "big"]:
    orders = {">" if item.str[0] == ">" else "<" for item in items if item.itemsize > 1 and item.kind in _LETTERS}
    if len(orders) > 1:
        raise TypeError(f"{name}: expected numbers of one byte order, got both; convert with dtype.newbyteorder('<')")
    return "big" if orders == {">"} else "little"


def dtype_of(fields: tuple[Field, ...], length: int, order: str) -> np.dtype[Any]:
    """Return the structured dtype of a layout; see :attr:`RecordCodec.dtype`."""
    found: np.dtype[Any] = _numpy().dtype(
        {
            "names": [field.name for field in fields],
            "formats": [order + field.numpy if field.numpy[0] in _LETTERS else field.numpy for field in fields],
            "offsets": [field.offset for field in fields],
            "itemsize": length,
        }
    )
    return found


def array_over(codec: RecordCodec[Any], raw: memoryview, base: int) -> npt.NDArray[Any]:
    """See :meth:`RecordCodec.to_numpy`; ``base`` is the offset of ``raw``, for errors."""
    np, dtype = _numpy(), codec.dtype
    found: npt.NDArray[Any] = np.frombuffer(raw, dtype) if raw.nbytes else np.empty(0, dtype)
    found.flags.writeable = False
    unknown = _unknown(codec, found)
    if unknown is not None:
        field, index = unknown
        raise DecodeError(f"byte {base + index * codec.length + field.offset}: {_says(codec, field, found, index)}")
    return found


def bytes_of(codec: RecordCodec[Any], records: npt.NDArray[Any]) -> memoryview:
    """See :meth:`RecordCodec.from_numpy`."""
    np = _numpy()
    if not isinstance(records, np.ndarray) or records.dtype != codec.dtype or records.ndim != 1:
        shown = f"{records.dtype} of {records.ndim} dimensions" if isinstance(records, np.ndarray) else type(records)
        raise ValueError(f"expected one dimension of {codec.dtype}, got {shown}")
    unknown = _unknown(codec, records)
    if unknown is not None:
        field, index = unknown
        raise EncodeError(f"record {index}: {_says(codec, field, records, index)}")
    whole = np.ascontiguousarray(records)
    if any(_octets(whole, codec.length)[:, start:end].any() for start, end in codec.padding):
        clean = np.zeros(len(whole), codec.dtype)
        for field in codec.fields:
            clean[field.name] = whole[field.name]
        whole = clean
    found: memoryview = _octets(whole, codec.length).reshape(-1).data
    return found


def _octets(records: npt.NDArray[Any], length: int) -> npt.NDArray[np.uint8]:
    found: npt.NDArray[np.uint8] = records.view(_numpy().uint8).reshape(len(records), length)
    return found


def _unknown(codec: RecordCodec[Any], records: npt.NDArray[Any]) -> tuple[Field, int] | None:
    """The first record with an enum's value that is not allowed; one pass for each enum."""
    for field in codec.fields:
        if field.allowed is not None:
            is_known = _is_known(records[field.name], [*field.allowed])
            if not is_known.all():
                return field, int(is_known.argmin())
    return None


def _is_known(column: npt.NDArray[Any], allowed: list[Any]) -> npt.NDArray[np.bool_]:
    numpy = _numpy()
    if column.dtype == numpy.uint8:
        # A look into a table is several times as quick as a search.
        table = numpy.zeros(256, bool)
        table[allowed] = True
        found: npt.NDArray[np.bool_] = table[column]
    else:
        found = numpy.isin(column, numpy.array(allowed, column.dtype))
    return found


def _says(codec: RecordCodec[Any], field: Field, records: npt.NDArray[Any], index: int) -> str:
    value = records[field.name][index].tolist()
    return f"{codec.value.__name__}.{field.name} is {value!r}, expected {field.expected}"


def _numpy() -> Any:
    try:
        import numpy as np
    except ImportError as error:
        raise ImportError("arrays need NumPy; install relay-accel[numpy]") from error
    return np
