"""Map a model server's answer to the error that the chain acts on: by status, then by its words if they decide.

Source: the reliability design, section 7; platform.claude.com/docs/en/api/errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from claudius.errors import (
    AuthFailed,
    BadRequest,
    Overloaded,
    ProviderError,
    RateLimited,
    SpendLimit,
    TimedOut,
    TooLong,
)

MESSAGE_CHARS = 200

_KINDS: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
}
"""Error kinds inside a stream that a retry cannot fix. All others are temporary."""

_SPENT = re.compile(
    r"credit balance|insufficient[_ ](?:quota|funds|credits)|spending? (?:limit|cap)|billing", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"(?:prompt|input) is too long|context[_ ](?:length|window|size)|maximum context|too many (?:input )?tokens",
    re.IGNORECASE,
)


def by_status(status: int, message: str, *, provider: str, after_s: float | None = None) -> ProviderError:
    """Return the error for a status. `after_s` is its Retry-After in seconds. `x-should-retry` is ignored. Pure."""
    said = f"{one_line(message) or 'no reason given'} (HTTP {status})"
    kind: type[ProviderError]
    if status == 402 or (status in (400, 403, 429) and _SPENT.search(message)):
        kind = SpendLimit
    elif status == 429:
        kind = SpendLimit if after_s is None else RateLimited
    elif status in (401, 403):
        kind = AuthFailed
    elif status == 413 or _TOO_LONG.search(message):
        kind = TooLong
    elif status == 408:
        kind = TimedOut
    else:
        kind = Overloaded if status >= 500 else BadRequest
    return kind(said, provider=provider, after_s=after_s)


def by_kind(kind: str, message: str, *, provider: str) -> ProviderError:
    """Return the error for an error event inside a stream, which has a kind and no status. Pure."""
    if kind in _KINDS:
        return by_status(_KINDS[kind], message, provider=provider)
    return Overloaded(f"{one_line(message) or kind} (in the stream)", provider=provider)


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return Retry-After in seconds, or None without one. `now`: seconds since 1970, for a date in the header. Pure."""
    if milliseconds := headers.get("retry-after-ms"):
        return _number(milliseconds, 1000.0)
    given = headers.get("retry-after")
    if given is None:
        return None
    if (seconds := _number(given, 1.0)) is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(text: str, unit: float) -> float | None:
    try:
        return max(0.0, float(text) / unit)
    except ValueError:
        return None


def message_of(body: Any) -> tuple[str, str]:
    """Return kind and message of any vendor's error body. An HTML page has neither. Pure."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        kind, code = str(error.get("type") or error.get("status") or ""), error.get("code")
        message = str(error.get("message") or error.get("detail") or "")
        if isinstance(code, str) and code != kind and code not in message:
            message = f"{message} [{code}]".strip()
        return kind or str(code or ""), message
    text = error if isinstance(error, str) else ""
    return "", "" if text.lstrip().startswith("<") else text


def one_line(text: str) -> str:
    """Reduce a text to one printable line of at most `MESSAGE_CHARS` characters. Pure."""
    flat = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return flat if len(flat) <= MESSAGE_CHARS else flat[: MESSAGE_CHARS - 1] + "…"
