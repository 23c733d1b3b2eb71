"""Build the Web API client and classify its failures.

A failed delivery was refused for good, must be tried later, or may have succeeded.

Source: the reliability design, sections 6 and 7; docs.slack.dev/reference/methods/chat.postMessage, "Errors".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from random import random
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.chat_adapter import is_refused_by_proxy
from claudius.adapters.slack.manifest import CODES
from claudius.errors import DeliveryError, DeliveryLater, DeliveryRefused, DeliveryUnknown
from claudius.foreign import listed
from claudius.proxies import proxy_of

FAILURES = (SlackClientError, aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError)
"""Every error that a call of the Web API may raise."""

AMBIGUOUS = frozenset(
    {"fatal_error", "internal_error", "service_unavailable", "request_timeout", "team_added_to_org", "org_level_error"}
)
"""Errors after which the message may still be visible. The same holds for any `duplicate_…`."""
NOT_NOW = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded", "accesslimited"})
SHUT_OUT = frozenset(
    {
        *("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "no_permission"),
        *("org_login_required", "ekm_access_denied", "two_factor_setup_required", "not_allowed_token_type"),
    }
)
"""Our token is at fault, not the message, which waits until somebody fixes the token."""
NOT_UNDERSTOOD = frozenset({"invalid_arguments", "invalid_arg_name", "invalid_blocks", "no_text", "unknown_argument"})
"""How a server refuses what it does not know. One without `markdown_text` sees a post without a text."""

NOWHERE = (404, 405, 501)
"""How a server answers a call of an unknown method."""

RATE_S = 30.0
"""How long to wait if a 429 does not say."""
UNREACHED_S = 5.0
SHUT_OUT_S = 60.0


def code_of(error: BaseException) -> str:
    """Return Slack's error code for a failure, `UNLISTED` for a text that is none, or "" without any. Pure."""
    return listed(_given(error), CODES)


def _given(error: BaseException) -> str:
    data = getattr(getattr(error, "response", None), "data", None)
    code = data.get("error") if isinstance(data, Mapping) else None
    return code if isinstance(code, str) else ""


def next_cursor(page: Any) -> str:
    """Return the cursor of the page after this one, or "" if it is the last. Pure."""
    return str((page.get("response_metadata") or {}).get("next_cursor") or "")


def retry_after_s(error: BaseException) -> float | None:
    """Return how long a 429 asks us to wait, in seconds, or None if it does not say. Pure."""
    headers: Mapping[str, Any] = getattr(getattr(error, "response", None), "headers", None) or {}
    given = next((value for name, value in headers.items() if name.lower() == "retry-after"), None)
    try:
        return max(1.0, float(given)) if given is not None else None
    except ValueError:
        return None


def classify(error: BaseException) -> DeliveryError:
    """Return the delivery error that a failed post means. Pure."""
    if isinstance(error, aiohttp.ClientConnectorError) or is_refused_by_proxy(error):
        return DeliveryLater(UNREACHED_S)
    if not isinstance(error, SlackApiError):
        return DeliveryUnknown(type(error).__name__)
    code, status = code_of(error), getattr(error.response, "status_code", 0)
    if status == 429 or code in NOT_NOW:
        return DeliveryLater(retry_after_s(error) or RATE_S)
    if code in SHUT_OUT or _is_nowhere(error):
        return DeliveryLater(SHUT_OUT_S)
    if not code or status != 200 or code in AMBIGUOUS or _given(error).startswith("duplicate_"):
        return DeliveryUnknown(code or f"status {status}")
    return DeliveryRefused(code)


def classify_read(error: BaseException) -> DeliveryError:
    """Return the delivery error that a failed read means. A method that does not exist will not exist later. Pure."""
    return DeliveryRefused("unknown_method") if _is_nowhere(error) else classify(error)


def _is_nowhere(error: BaseException) -> bool:
    return not code_of(error) and getattr(getattr(error, "response", None), "status_code", 0) in NOWHERE


def classify_look(error: BaseException) -> DeliveryError:
    """Return the delivery error that a failed history lookup means.

    Nothing was posted, so only the lookup is in doubt. Pure.
    """
    found = classify_read(error)
    if isinstance(found, DeliveryLater) and code_of(error) in SHUT_OUT:
        return DeliveryRefused(code_of(error))
    return found


TIMEOUT_S = 20
RETRIES = 3
LONGEST_WAIT_S = 10.0
"""A 429 that asks for a longer wait is passed to the caller, who has other work."""


class ShortWaits(AsyncRateLimitErrorRetryHandler):
    """Waits out a short 429 within the call. The refused call had no effect, so nothing is sent twice."""

    async def _can_retry_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        is_limited = await super()._can_retry_async(state=state, request=request, response=response, error=error)
        return is_limited and response is not None and _asked_s(response) <= LONGEST_WAIT_S

    async def prepare_for_next_attempt_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,  # noqa: ARG002 - library signature
        response: HttpResponse | None = None,
        error: Exception | None = None,  # noqa: ARG002 - library signature
    ) -> None:
        """Wait as long as requested. The library's own wait handles whole seconds only."""
        state.next_attempt_requested = True
        await asyncio.sleep(_asked_s(response) + random() if response else 1.0)  # noqa: S311 - not a secret
        state.increment_current_attempt()


def _asked_s(response: HttpResponse) -> float:
    given = next((values for name, values in response.headers.items() if name.lower() == "retry-after"), None)
    try:
        asked_s = float(given[0]) if given else 1.0
    except ValueError:
        return LONGEST_WAIT_S + 1
    return asked_s if asked_s >= 0 else LONGEST_WAIT_S + 1


def web_client(token: str, api_url: str, logger: logging.Logger, trace: aiohttp.TraceConfig) -> AsyncWebClient:
    """Build the client, whose session the caller must close. Within a call, only a 429 is ever retried."""
    session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S), trace_configs=[trace])
    client = AsyncWebClient(token=token, base_url=api_url, timeout=TIMEOUT_S, session=session, logger=logger)
    client.proxy = proxy_of(api_url)  # what the SDK finds by itself disregards NO_PROXY
    client.retry_handlers = [ShortWaits(max_retry_count=RETRIES)]
    return client
