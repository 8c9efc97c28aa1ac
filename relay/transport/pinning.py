"""Pins a loop's thread to processors, where the accelerator is installed."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["pin_loop"]


def pin_loop(processors: Sequence[int]) -> str:
    """Let the calling thread run on these processors alone; return why it does not, empty when it does.

    Args:
        processors: their numbers, from 0; none changes nothing.
    """
    if not processors:
        return ""
    try:
        import relay_accel
    except ImportError:
        return "the accelerator is not installed"
    return str(relay_accel.pin_thread(processors).reason)
