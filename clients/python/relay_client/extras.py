"""Packages that only some results need."""

from __future__ import annotations

import importlib
from typing import Any

from relay.errors import SettingsError
from relay.protocol.codes import ErrorCode

__all__ = ["extra"]


def extra(name: str) -> Any:
    """Import an optional package.

    Raises:
        SettingsError: MISSING_EXTRA, with what to install.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(
            f"expected {name} to be installed; install market-relay-client[{name}]", code=ErrorCode.MISSING_EXTRA
        ) from error
