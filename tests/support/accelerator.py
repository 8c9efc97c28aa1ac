"""The accelerator where it was built; else a skip with the reason, or a failure where it has to be there."""

from __future__ import annotations

import os
from types import ModuleType

import pytest

__all__ = ["accelerator"]


def accelerator() -> ModuleType:
    """Return ``relay_accel``; called at the head of a test module."""
    try:
        import relay_accel
    except ImportError as error:
        if os.environ.get("MARKET_RELAY_NEEDS_ACCELERATOR"):
            raise
        pytest.skip(
            f"the accelerator is not built: {error}; `make clean`, then again with cargo", allow_module_level=True
        )
    return relay_accel
