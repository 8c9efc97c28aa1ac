"""The library's errors: one root, few branches chosen by what the caller can do.

Every error carries a stable ``code`` out of :class:`relay.protocol.codes.ErrorCode` (as text, so that
this module imports nothing). The text says what was expected, what it was, and what to do.
"""

from __future__ import annotations

__all__ = [
    "AccessError",
    "PeerError",
    "RelayError",
    "RetryableError",
    "SettingsError",
    "StorageError",
]


class RelayError(Exception):
    """Root of all errors of this library.

    Args:
        message: what was expected, what it was, what to do.
        code: stable code out of the registry.
    """

    default_code = "INTERNAL"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code or self.default_code


class SettingsError(RelayError):
    """Fix the settings or the arguments; trying again changes nothing."""

    default_code = "INVALID_SETTINGS"


class PeerError(RelayError):
    """The peer or the bytes are wrong."""

    default_code = "INVALID_REQUEST"


class RetryableError(RelayError):
    """Try again, after ``retry_after_ms`` where it is known."""

    default_code = "UNAVAILABLE"

    def __init__(self, message: str, *, code: str | None = None, retry_after_ms: int | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after_ms = retry_after_ms


class StorageError(RelayError):
    """Disk, table store or event log failed."""

    default_code = "STORAGE"


class AccessError(RelayError):
    """Not allowed."""

    default_code = "DENIED"
