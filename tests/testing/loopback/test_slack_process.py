"""The Slack server as a process of its own, driven over its control port."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from lab.loopback.slack.world import SlackWorld
from slack_ear import Ear


@pytest.fixture
async def alone() -> AsyncIterator[dict[str, Any]]:
    """Run the server as a process; give the line that it prints."""
    argv = ("-m", "lab.loopback.slack", "--port", "0", "--control-port", "0")
    process = await asyncio.create_subprocess_exec(sys.executable, *argv, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    yield json.loads(await process.stdout.readline())
    process.terminate()
    await process.wait()


async def test_another_process_drives_it_with_the_same_names(alone: dict[str, Any]) -> None:
    """People, faults and records cross over whole, bytes too."""
    async with SlackWorld.at(alone["control_url"]) as slack:
        client = AsyncWebClient(alone["bot_token"], base_url=alone["base_url"])
        ear = Ear(client)
        await ear.handler.connect_async()
        await slack.until_connected(1)
        await slack.set(retry_delays_s=(0.0, 0.0, 0.0))

        ts = await slack.say("D1", "U1", "Hello \ud800")
        await slack.until_quiet()
        await client.chat_postMessage(channel="D1", text="Hello yourself")
        (shown,) = await slack.until_visible(1)
        (call,) = await slack.calls("chat.postMessage")
        await ear.handler.close_async()

        assert [(event["ts"], event["text"]) for event in ear.events] == [(ts, "Hello \ud800")]
        assert shown.raw == call.raw
        assert b"Hello yourself" in shown.raw


async def test_a_wrong_order_is_told_in_words(alone: dict[str, Any]) -> None:
    """An unknown command, fault or setting is an error that names it; so is what does not happen in time."""
    async with SlackWorld.at(alone["control_url"]) as slack:
        with pytest.raises(ValueError, match="no command 'shout'"):
            await slack.do("shout", {})
        with pytest.raises(ValueError, match="explode"):
            await slack.do("fault", {"method": "*", "kind": "explode"})
        with pytest.raises(ValueError, match="C404"):
            await slack.say("C404", "U1", "anyone?")
        with pytest.raises(ValueError, match="unknown field"):
            await slack.set(colour="red")
        with pytest.raises(TimeoutError):
            await slack.until_visible(1, within_s=0.01)
