"""What the log's client library says about itself, thinned out: a broker that is away is no reason to fill a disk."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["RepeatFilter"]


@dataclass(slots=True)
class _Said:
    at: float
    left_out: int = 0


class RepeatFilter(logging.Filter):
    """Lets the first message of a kind pass, then one every interval, with the number of those left out.

    A kind is a level and the first word of the message: librdkafka's facility, such as ``FAIL`` for a connection that
    could not be made, which it tries anew up to forty times a second.

    Args:
        every_s: seconds between two messages of one kind.
        clock: monotonic seconds.
    """

    def __init__(self, every_s: float = 30.0, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._every_s, self._clock = every_s, clock
        self._said: dict[tuple[int, str], _Said] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged; changes its text when others were left out before it."""
        text = record.getMessage()
        kind = (record.levelno, text.partition(" ")[0])
        with self._lock:
            now = self._clock()
            said = self._said.get(kind)
            if said is not None and now - said.at < self._every_s:
                said.left_out += 1
                return False
            left_out = 0 if said is None else said.left_out
            self._said[kind] = _Said(now)
        if left_out:
            record.msg, record.args = f"{text} (and {left_out} like it since the last)", None
        return True
