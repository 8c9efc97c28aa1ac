"""Checks of what users pass to a client: each wrong argument is told by name, with what was expected and what came."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from numbers import Real
from typing import Any, SupportsIndex

from relay.errors import SettingsError
from relay.protocol.codes import ErrorCode

__all__ = ["TIMEOUT_SECONDS_MAX", "callback", "flag", "items", "seconds", "text", "whole"]

TIMEOUT_SECONDS_MAX = 30 * 86_400
_SHOWN_MAX = 80
_ITEMS_MAX = 1_000_000


def text(name: str, value: Any, *, code: str = ErrorCode.INVALID_SETTINGS) -> str:
    """Return the value when it is a text that can be sent.

    Raises:
        SettingsError: with ``code``.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise SettingsError(f"expected {name} as text in Unicode, got {_shown(value)}", code=code) from error
        return str(value)
    raise SettingsError(f"expected {name} as text, got {_shown(value)}", code=code)


def whole(name: str, value: Any, *, low: int, high: int, code: str = ErrorCode.INVALID_SETTINGS) -> int:
    """Return a whole number inside its bounds; numpy's integers count, booleans and floats do not.

    Raises:
        SettingsError: with ``code``.
    """
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        try:
            number = operator.index(value)
        except Exception:  # noqa: BLE001 - whatever a foreign number does, it is none
            number = low - 1
        if low <= number <= high:
            return number
    raise SettingsError(f"expected {name} as a whole number of {low} to {high}, got {_shown(value)}", code=code)


def seconds(name: str, value: Any, default: float) -> float:
    """Return a time to wait, the default for None.

    Raises:
        SettingsError: it is no finite number of 0 to TIMEOUT_SECONDS_MAX.
    """
    if value is None:
        return default
    if value is not True and value is not False and isinstance(value, Real):
        try:
            number = value.__float__()
        except Exception:  # noqa: BLE001 - whatever a foreign number does, it is none
            number = math.inf
        if 0 <= number <= TIMEOUT_SECONDS_MAX:
            return number
    raise SettingsError(f"expected {name} as seconds of 0 to {TIMEOUT_SECONDS_MAX}, got {_shown(value)}")


def flag(name: str, value: Any) -> bool:
    """Return True or False; numpy's booleans count.

    Raises:
        SettingsError: it is something else.
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise SettingsError(f"expected {name} to be True or False, got {_shown(value)}")


def callback(name: str, value: Any) -> None:
    """Check something to call, or None.

    Raises:
        SettingsError: it cannot be called.
    """
    if value is not None and not callable(value):
        raise SettingsError(f"expected {name} as a function, got {_shown(value)}")


def items(name: str, value: Any, *, code: str = ErrorCode.INVALID_SETTINGS) -> list[Any]:
    """Return the items of an iterable that is no text.

    Raises:
        SettingsError: with ``code``.
    """
    found: Iterator[Any] | None = None
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        with suppress(TypeError):  # an array without dimensions says it can be gone through
            found = iter(value)
    if found is None:
        raise SettingsError(f"expected {name} as a list, got {_shown(value)}", code=code)
    return list(islice(found, _ITEMS_MAX))


def _shown(value: Any) -> str:
    try:
        shown = ascii(value)
    except Exception:  # noqa: BLE001 - the text of an error must not be another error
        shown = "something that cannot be shown"
    return f"{type(value).__name__} {shown[:_SHOWN_MAX]}"
