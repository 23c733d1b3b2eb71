"""The Web API client: one session, no send twice, and patience with rates that is bounded."""

from __future__ import annotations

import asyncio
import logging
from random import random

import aiohttp
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState
from slack_sdk.web.async_client import AsyncWebClient

TIMEOUT_S = 20
RETRIES = 3
LONGEST_WAIT_S = 10.0
"""A 429 that asks for more is told to the caller, who has other things to do."""


class ShortWaits(AsyncRateLimitErrorRetryHandler):
    """Waits out a 429 within the call where that is soon over; it was not applied, so that nothing is sent twice."""

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
        request: HttpRequest,  # noqa: ARG002 - the library's signature
        response: HttpResponse | None = None,
        error: Exception | None = None,  # noqa: ARG002 - as above
    ) -> None:
        """Wait as long as was asked for; the library's own way takes whole seconds only."""
        state.next_attempt_requested = True
        await asyncio.sleep(_asked_s(response) + random() if response else 1.0)  # noqa: S311 - no secret
        state.increment_current_attempt()


def _asked_s(response: HttpResponse) -> float:
    given = next((values for name, values in response.headers.items() if name.lower() == "retry-after"), None)
    try:
        asked_s = float(given[0]) if given else 1.0
    except ValueError:
        return LONGEST_WAIT_S + 1
    return asked_s if asked_s >= 0 else LONGEST_WAIT_S + 1


def web_client(token: str, api_url: str, logger: logging.Logger) -> AsyncWebClient:
    """Make the client; its session is the caller's to close. Only a 429 is ever tried again within a call."""
    session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
    client = AsyncWebClient(token=token, base_url=api_url, timeout=TIMEOUT_S, session=session, logger=logger)
    client.retry_handlers = [ShortWaits(max_retry_count=RETRIES)]
    return client
