"""A Slack server on loopback and the adapter that uses it, with the whole soul or with a listener that only records."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from claudius.adapters.slack.adapter import SlackAdapter, SlackOptions
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from ear import Ear, echo
from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN, BOT_TOKEN
from lab.loopback.slack.world import SlackWorld
from slack_side import QUICK, Make, Wake


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    """Run a Slack server that redelivers an event soon."""
    async with SlackServer() as running:
        await running.world.set(retry_delays_s=(0.01, 0.05, 0.05), ack_deadline_s=1.0, refresh_grace_s=0.2)
        yield running


@pytest.fixture
def slack(server: SlackServer) -> SlackWorld:
    """Add the people of that Slack server."""
    return server.world


@pytest.fixture
def make(server: SlackServer) -> Make:
    """Return a factory of adapters for that Slack server."""

    def made(**changes: Any) -> SlackAdapter:
        values = {"bot_token": BOT_TOKEN, "app_token": APP_TOKEN, "api_url": server.base_url, "status": "is thinking…"}
        timings = changes.pop("timings", QUICK)
        adapter = SlackAdapter(SlackOptions(**(values | changes)), timings)
        adapter.appears_s, adapter.introduces = 0.05, False
        return adapter

    return made


@pytest.fixture
async def adapter(make: Make) -> SlackAdapter:
    """Return an adapter that is not listening yet."""
    return make()


@pytest.fixture
async def ear(adapter: SlackAdapter, slack: SlackWorld) -> AsyncIterator[Ear]:
    """Listen without a soul."""
    made = Ear()
    listening = asyncio.create_task(adapter.listen(made.accept))
    await slack.until_connected()
    yield made
    await adapter.close()
    await asyncio.wait_for(listening, 20)


@pytest.fixture
def wake(home: Home, make: Make, slack: SlackWorld) -> Wake:
    """Return a function that wakes a whole soul connected to that Slack server."""

    @asynccontextmanager
    async def awake(*, voice: Scripted | None = None, clean: bool = True, **settings: str) -> AsyncIterator[Alive]:
        """Wake the soul."""
        async with alive(home, voice or Scripted(default=echo), adapter=make(), settings=settings, clean=clean) as soul:
            await slack.until_connected()
            yield soul

    return awake
