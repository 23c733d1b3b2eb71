"""A Slack on loopback, and Slack's own Python clients in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient

from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import BOT_TOKEN
from lab.loopback.slack.world import SlackWorld


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    """Run a Slack that brings an event again at once."""
    async with SlackServer() as running:
        await running.world.set(retry_delays_s=(0.0, 0.01, 0.01))
        yield running


@pytest.fixture
def slack(server: SlackServer) -> SlackWorld:
    """Give the people of that Slack."""
    return server.world


@pytest.fixture
def client(server: SlackServer) -> AsyncWebClient:
    """Give the app's client: only a 429 is tried again."""
    made = AsyncWebClient(BOT_TOKEN, base_url=server.base_url, timeout=3)
    made.retry_handlers = [AsyncRateLimitErrorRetryHandler(max_retry_count=3)]
    return made
