"""Typed publishers and subscribers: records of one NumPy dtype through a ring, without a copy on the reader's side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relay_accel._native import FixedConsumer, FixedProducer, FixedRing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["RecordPublisher", "RecordSubscriber"]


class RecordPublisher:
    """Pushes structured records into a fixed-item ring.

    Args:
        ring: whose items are as long as a record.
        dtype: of a record; packed or not, its ``itemsize`` is the item's length in bytes.

    Raises:
        ValueError: item and record differ in length.
        ImportError: NumPy is not installed (extra ``numpy``).
    """

    def __init__(self, ring: FixedRing, dtype: npt.DTypeLike) -> None:
        self._dtype = _checked(ring, dtype)
        self._producer: FixedProducer = ring.producer()

    def publish(self, records: npt.NDArray[Any]) -> int:
        """Push records; return how many were taken, from the first on: fewer than given when the ring is full.

        Args:
            records: of the publisher's dtype, one-dimensional.

        Raises:
            ValueError: of another dtype.
        """
        if records.dtype != self._dtype:
            raise ValueError(f"expected records of {self._dtype}, got {records.dtype}")
        import numpy as np

        # Bytes of records are bytes: the ring knows no fields.
        pushed = self._producer.push(np.ascontiguousarray(records).view(np.uint8).data)
        return max(pushed, 0)

    def close(self) -> None:
        """Give the writing end back."""
        self._producer.close()


class RecordSubscriber:
    """Pops structured records out of a fixed-item ring.

    Args:
        ring, dtype: as of :class:`RecordPublisher`.
    """

    def __init__(self, ring: FixedRing, dtype: npt.DTypeLike) -> None:
        self._dtype = _checked(ring, dtype)
        self._consumer: FixedConsumer = ring.consumer()

    def poll(self, limit: int = 1024) -> npt.NDArray[Any]:
        """Return at most so many records as a read-only array over the batch's own memory; perhaps none."""
        import numpy as np

        return np.frombuffer(memoryview(self._consumer.pop_batch(limit)), dtype=self._dtype)

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep until there is something, or ``timeout`` seconds; return whether there is."""
        return self._consumer.wait(timeout)

    def close(self) -> None:
        """Give the reading end back."""
        self._consumer.close()


def _checked(ring: FixedRing, dtype: npt.DTypeLike) -> np.dtype[Any]:
    try:
        import numpy as np
    except ImportError as error:
        raise ImportError("records need NumPy; install relay-accel[numpy]") from error
    found: np.dtype[Any] = np.dtype(dtype)
    if found.itemsize != ring.item_length:
        raise ValueError(f"expected records of {ring.item_length} bytes, {found} has {found.itemsize}")
    return found
