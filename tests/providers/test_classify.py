"""Classification: from a server's words to the error type that decides what the chain does."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.errors import (
    LONGEST_REST_S,
    AuthFailed,
    BadRequest,
    Overloaded,
    ProviderError,
    RateLimited,
    SpendLimit,
    TimedOut,
    TooLong,
)
from claudius.providers.replies import MESSAGE_CHARS, by_kind, by_status, message_of, one_line, retry_after_s

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "message", "after_s", "kind"),
    [
        (400, "nonsense", None, BadRequest),
        (400, "Your credit balance is too low", None, SpendLimit),
        (400, "prompt is too long: 9 tokens > 8 maximum", None, TooLong),
        (400, "This model's maximum context length is 8192 tokens", None, TooLong),
        (400, "the request exceeds the available context size", None, TooLong),
        (422, "Input validation error: `inputs` must have less than 8193 tokens. Given: 9310", None, TooLong),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens", None, TooLong),
        (400, "Prompt length 9000 is greater than max_seq_len 8192", None, TooLong),
        (400, "Trying to keep the first 9310 tokens when context the overflows", None, TooLong),
        (400, "Range of input length should be [1, 30720]", None, TooLong),
        (429, "Request too large for m on tokens per min (TPM): Limit 30000, Requested 48000.", 3.0, TooLong),
        (400, "Your request exceeded model token limit: 8192 (requested: 9310)", None, TooLong),
        (400, "The total number of tokens 9310 exceeds the limit of 8192", None, TooLong),
        (400, "the max input characters is 20000", None, TooLong),
        (400, "The message you submitted was too long, please submit something shorter", None, TooLong),
        (422, "Input should be a valid string", None, BadRequest),
        (400, "max_tokens: 8192 > 4096, the maximum allowed number of output tokens", None, BadRequest),
        (400, "max tokens exceeds what the model can write", None, BadRequest),
        (400, "Daily token limit exceeded for your plan", None, BadRequest),
        (400, "image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes", None, BadRequest),
        (400, "max_tokens must be at least 1", None, BadRequest),
        (401, "", None, AuthFailed),
        (402, "", None, SpendLimit),
        (403, "", None, AuthFailed),
        (404, "model not found", None, BadRequest),
        (408, "", None, TimedOut),
        (413, "", None, TooLong),
        (422, "", None, BadRequest),
        (429, "", None, SpendLimit),
        (429, "", 0.0, RateLimited),
        (429, "", 3600.0, RateLimited),
        (429, "You exceeded your current quota [insufficient_quota]", 5.0, SpendLimit),
        (500, "", None, Overloaded),
        (503, "", 5.0, Overloaded),
        (529, "", None, Overloaded),
        (301, "", None, BadRequest),
    ],
)
def test_a_status_has_one_meaning(status: int, message: str, after_s: float | None, kind: type[ProviderError]) -> None:
    """The status decides first, and words where they matter; the Retry-After is kept in the error."""
    error = by_status(status, message, provider="p", after_s=after_s)

    assert type(error) is kind
    assert (error.provider, error.after_s) == ("p", after_s)
    assert str(status) in error.message


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("overloaded_error", "Overloaded", Overloaded),
        ("api_error", "", Overloaded),
        ("rate_limit_error", "Number of request tokens has exceeded your per-minute rate limit", Overloaded),
        ("", "", Overloaded),
        ("authentication_error", "", AuthFailed),
        ("invalid_request_error", "prompt is too long", TooLong),
        ("context_length_exceeded", "Current length is 9310 while limit is 8192", TooLong),
        ("billing_error", "", SpendLimit),
    ],
)
def test_an_error_in_a_stream_passes_unless_it_cannot(kind: str, message: str, expected: type[ProviderError]) -> None:
    """A stream has no status inside, so the error's kind decides instead; most errors there are retryable."""
    assert type(by_kind(kind, message, provider="p")) is expected


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=30), usegmt=True)}, 30.0),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=30), usegmt=True)}, 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    """Retry-After is seconds or a date; an invalid value counts as none. Source: RFC 9110, 10.2.3."""
    assert retry_after_s(headers, NOW.timestamp()) == seconds


@pytest.mark.parametrize(
    "asked", ["1e12", "inf", "nan", "-5", "Mon, 01 Jan 9999 00:00:00 GMT", "Fri, 31 Dec 99999 23:59:59 GMT"]
)
def test_no_retry_after_is_beyond_a_day(asked: str) -> None:
    """A Retry-After without end is limited to a day, so that every clock can represent the instant."""
    found = by_status(429, "", provider="p", after_s=retry_after_s({"retry-after": asked}, NOW.timestamp()))

    assert found.after_s is None or 0.0 <= found.after_s <= LONGEST_REST_S


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"type": "error", "error": {"type": "api_error", "message": "m"}}, ("api_error", "m")),
        ({"error": {"message": "m", "type": "requests", "code": "rate_limit"}}, ("requests", "m [rate_limit]")),
        ({"error": {"message": "m", "code": 400}}, ("400", "m")),
        ({"error": "model 'x' not found"}, ("", "model 'x' not found")),
        ({"detail": "m"}, ("", "m")),
        ("<html>502</html>", ("", "")),
        ("plain", ("", "plain")),
        (None, ("", "")),
        ([1], ("", "")),
    ],
)
def test_a_message_is_found_in_any_vendors_body(body: object, found: tuple[str, str]) -> None:
    """Bodies differ between servers; a page of HTML is not shown as a message."""
    assert message_of(body) == found


@given(st.text())
def test_a_message_fits_in_one_line(text: str) -> None:
    """A message has no line break, no control character and a maximum length; applying it twice changes nothing."""
    line = one_line(text)

    assert line.isprintable()
    assert len(line) <= MESSAGE_CHARS
    assert one_line(line) == line
