"""What an HTTP answer means: by its status first, the body is optional (it may be HTML)."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum

from relay.errors import RetryableError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS

__all__ = ["ExchangeError", "HttpAnswer", "Outcome", "OutcomeKind", "classify", "parse_retry_after"]

BAN_DEFAULT_NS = 120 * NANOSECONDS
"""A ban that does not say its length; the shortest that exchanges impose."""
_BAN_STATUS = 418


class OutcomeKind(StrEnum):
    """The classes that a caller treats differently."""

    OK = "ok"
    EMPTY = "empty"
    BAD_SYMBOL = "bad_symbol"
    BAD_INTERVAL = "bad_interval"
    THROTTLED = "throttled"
    BANNED = "banned"
    MAINTENANCE = "maintenance"
    TRANSIENT = "transient"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One HTTP answer.

    Attributes:
        retry_after, date: header texts, None when missing.
        json: decoded body, None when it is none.
        text: the body's beginning, for messages and texts such as "banned until".
    """

    status: int
    retry_after: str | None = None
    date: str | None = None
    json: object = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A classified answer; ``wait_ns`` is None where the exchange named no time."""

    kind: OutcomeKind
    message: str = ""
    wait_ns: int | None = None

    @property
    def code(self) -> ErrorCode:
        """Error code under which a job ends because of this outcome."""
        return _CODES[self.kind]


_CODES = {
    OutcomeKind.OK: ErrorCode.INTERNAL,
    OutcomeKind.EMPTY: ErrorCode.NO_DATA,
    OutcomeKind.BAD_SYMBOL: ErrorCode.UNKNOWN_SYMBOL,
    OutcomeKind.BAD_INTERVAL: ErrorCode.UNSUPPORTED_PERIOD,
    OutcomeKind.THROTTLED: ErrorCode.RATE_LIMITED,
    OutcomeKind.BANNED: ErrorCode.BANNED,
    OutcomeKind.MAINTENANCE: ErrorCode.MAINTENANCE,
    OutcomeKind.TRANSIENT: ErrorCode.EXCHANGE_ERROR,
    OutcomeKind.UNKNOWN: ErrorCode.EXCHANGE_ERROR,
}

BodyKind = Callable[[HttpAnswer], OutcomeKind | None]
"""What an exchange's own error body says, or None when it says nothing about itself."""


class ExchangeError(RetryableError):
    """An exchange did not answer what was asked; ``outcome`` says how to go on."""

    default_code = ErrorCode.EXCHANGE_ERROR

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message, code=outcome.code)
        self.outcome = outcome


def classify(answer: HttpAnswer, *, wall_ns: int, body_kind: BodyKind, ban_until_ns: int | None = None) -> Outcome:
    """Classify an answer.

    Args:
        answer: as received.
        wall_ns: local wall clock, for dates in Retry-After when the answer has no date of its own.
        body_kind: the exchange's dialect.
        ban_until_ns: end of a ban as the body told it.
    """
    wait_ns = parse_retry_after(answer.retry_after, date=answer.date, wall_ns=wall_ns)
    kind = _by_status(answer.status)
    if kind not in (OutcomeKind.THROTTLED, OutcomeKind.BANNED):
        kind = body_kind(answer) or kind
    if ban_until_ns is not None and ban_until_ns > wall_ns:
        kind, wait_ns = OutcomeKind.BANNED, max(wait_ns or 0, ban_until_ns - wall_ns)
    if kind is OutcomeKind.BANNED and wait_ns is None:
        wait_ns = BAN_DEFAULT_NS
    if kind is OutcomeKind.OK:
        return Outcome(kind)
    body = " ".join(answer.text.split())[:200]
    return Outcome(kind, f"the exchange answered HTTP {answer.status} ({kind}): {body}", wait_ns)


def parse_retry_after(text: str | None, *, date: str | None, wall_ns: int) -> int | None:
    """Return the wait of a Retry-After header in ns: seconds or an HTTP date; None when missing or unreadable."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text[:9]) * NANOSECONDS
    until_ns = _http_date_ns(text)
    if until_ns is None:
        return None
    # Against the server's own date, so that a wrong local clock does not matter.
    now_ns = _http_date_ns(date) if date else None
    return max(0, until_ns - (wall_ns if now_ns is None else now_ns))


def _http_date_ns(text: str) -> int | None:
    try:
        instant = parsedate_to_datetime(text)
    except ValueError:
        return None
    return timegm(instant.utctimetuple()) * NANOSECONDS


def _by_status(status: int) -> OutcomeKind:  # noqa: PLR0911 - a table reads best as a list of returns
    if 200 <= status < 300:
        return OutcomeKind.OK
    if status == _BAN_STATUS:
        return OutcomeKind.BANNED
    if status in (403, 429):
        # 403 is the firewall in front of the exchange: its page says nothing, but it opens again.
        return OutcomeKind.THROTTLED
    if status == 503:
        return OutcomeKind.MAINTENANCE
    if status in (408, 425) or status >= 500:
        return OutcomeKind.TRANSIENT
    if status == 404:
        return OutcomeKind.BAD_SYMBOL
    return OutcomeKind.UNKNOWN
