"""Fixed records: their codec, the types of their fields, and publishers and subscribers of them through a ring.

A record is declared once (:class:`RecordCodec`), goes into a fixed-item ring one by one or as an array, and comes out
as an array over the batch's own memory: ``from relay_accel import records``. Layout: proto/spec/0015.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from relay_accel._native import FixedConsumer, FixedProducer, FixedRing
from relay_accel.market_records import (
    ORDER_MESSAGES,
    TICK_MESSAGES,
    BookSide,
    OrderKind,
    OrderMessage,
    OrderSide,
    TickMessage,
)
from relay_accel.record_codec import RecordCodec
from relay_accel.record_types import (
    At,
    Bytes,
    Characters,
    Field,
    Number,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "ORDER_MESSAGES",
    "TICK_MESSAGES",
    "At",
    "BookSide",
    "Bytes",
    "Characters",
    "Field",
    "Number",
    "OrderKind",
    "OrderMessage",
    "OrderSide",
    "RecordCodec",
    "RecordPublisher",
    "RecordSubscriber",
    "TickMessage",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
]


class RecordPublisher:
    """Pushes records into a fixed-item ring.

    Args:
        ring: whose items are as long as a record.
        layout: a codec, whose enums and padding are kept; or a dtype, whose bytes go as they are.

    Raises:
        ValueError: item and record differ in length.
        TypeError: the dtype has objects, which are pointers.
        ImportError: a dtype, and NumPy is not installed (extra ``numpy``).
    """

    def __init__(self, ring: FixedRing, layout: RecordCodec[Any] | npt.DTypeLike) -> None:
        self._layout = _checked(ring, layout)
        self._producer: FixedProducer = ring.producer()

    def publish(self, records: npt.NDArray[Any] | Iterable[Any]) -> int:
        """Push records; return how many were taken, from the first on: fewer than given when the ring is full.

        Args:
            records: a one-dimensional array of the publisher's dtype; with a codec also records of its class.

        Raises:
            ValueError: of another dtype.
            EncodeError: a record does not fit the codec's layout; none was pushed.
        """
        return max(self._producer.push(_bytes(self._layout, records)), 0)

    def close(self) -> None:
        """Give the writing end back."""
        self._producer.close()


class RecordSubscriber:
    """Pops records out of a fixed-item ring.

    Args:
        ring, layout: as of :class:`RecordPublisher`.
    """

    def __init__(self, ring: FixedRing, layout: RecordCodec[Any] | npt.DTypeLike) -> None:
        self._layout = _checked(ring, layout)
        self._consumer: FixedConsumer = ring.consumer()

    def poll(self, limit: int = 1024) -> npt.NDArray[Any]:
        """Return at most so many records as a read-only array over the batch's own memory; perhaps none.

        Raises:
            DecodeError: with a codec, an enum's byte is unknown; the batch is gone from the ring.
        """
        import numpy as np

        batch = memoryview(self._consumer.pop_batch(limit))
        if isinstance(self._layout, RecordCodec):
            return self._layout.to_numpy(batch)
        return np.frombuffer(batch, dtype=self._layout)

    def poll_records(self, limit: int = 1024) -> list[Any]:
        """Return at most so many records as values of the codec's class; perhaps none.

        Raises:
            TypeError: the subscriber has a dtype; see :meth:`RecordCodec.of_dtype`.
            DecodeError: as of :meth:`RecordCodec.decode_all`; the batch is gone from the ring.
        """
        if not isinstance(self._layout, RecordCodec):
            raise TypeError(f"expected a subscriber with a RecordCodec, this one has {self._layout}")
        return self._layout.decode_all(self._consumer.pop_batch(limit))

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep until there is something, or ``timeout`` seconds; return whether there is."""
        return self._consumer.wait(timeout)

    def close(self) -> None:
        """Give the reading end back."""
        self._consumer.close()


def _bytes(layout: RecordCodec[Any] | np.dtype[Any], records: Any) -> bytes | memoryview:
    is_array = hasattr(records, "dtype")
    if isinstance(layout, RecordCodec):
        return layout.from_numpy(records) if is_array else layout.encode_all(records)
    if not is_array or records.dtype != layout:
        raise ValueError(f"expected records of {layout}, got {records.dtype if is_array else type(records)}")
    import numpy as np

    # Bytes of records are bytes: the ring knows no fields.
    found: memoryview = np.ascontiguousarray(records).view(np.uint8).data
    return found


def _checked(ring: FixedRing, layout: RecordCodec[Any] | npt.DTypeLike) -> RecordCodec[Any] | np.dtype[Any]:
    if isinstance(layout, RecordCodec):
        if layout.length != ring.item_length:
            raise ValueError(f"expected records of {ring.item_length} bytes, {layout} has {layout.length}")
        return layout
    try:
        import numpy as np
    except ImportError as error:
        raise ImportError("records of a dtype need NumPy; install relay-accel[numpy]") from error
    found: np.dtype[Any] = np.dtype(layout)
    if found.hasobject:
        raise TypeError(f"expected records without objects, which are pointers of this process alone, got {found}")
    if found.itemsize != ring.item_length:
        raise ValueError(f"expected records of {ring.item_length} bytes, {found} has {found.itemsize}")
    return found
