"""The Discord server as a process of its own, driven over its control port."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import discord
import pytest
import yarl

from discord_ear import Ear
from lab.loopback.discord.world import DiscordWorld


@pytest.fixture
async def alone() -> AsyncIterator[dict[str, Any]]:
    """Run the server as a process; give the line that it prints."""
    argv = ("-m", "lab.loopback.discord", "--port", "0", "--control-port", "0")
    process = await asyncio.create_subprocess_exec(sys.executable, *argv, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    yield json.loads(await process.stdout.readline())
    process.terminate()
    await process.wait()


async def test_another_process_drives_it_with_the_same_names(
    alone: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """People, faults and records cross over whole, bytes too."""
    monkeypatch.setattr(discord.http.Route, "BASE", alone["base_url"])
    monkeypatch.setattr(discord.gateway.DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(alone["gateway_url"]))
    ear = Ear()
    async with DiscordWorld.at(alone["control_url"]) as world:
        await ear.listen()

        said = await world.upload(alone["dm"], alone["user"], "a.txt", b"\x00\xff", text="Hello \u202e")
        await world.drop_sockets(is_reset=True)
        await world.until_connected(1, opened=2)
        await world.until_heard()
        await ear.heard[0].reply("Hello yourself")
        content = await ear.heard[0].attachments[0].read()
        (shown,) = await world.until_visible(1)
        (call,) = await world.calls("create_message")
        await ear.leave()

    assert [(str(one.id), one.content) for one in ear.heard[:1]] == [(said, "Hello \u202e")]
    assert content == b"\x00\xff"
    assert shown.raw == call.raw
    assert b"Hello yourself" in shown.raw


async def test_a_wrong_order_is_told_in_words(alone: dict[str, Any]) -> None:
    """An unknown command, fault or setting is an error that names it; so is what does not happen in time."""
    async with DiscordWorld.at(alone["control_url"]) as world:
        with pytest.raises(ValueError, match="no command 'shout'"):
            await world.do("shout", {})
        with pytest.raises(ValueError, match="explode"):
            await world.do("fault", {"route": "*", "kind": "explode"})
        with pytest.raises(ValueError, match="no channel 404"):
            await world.say("404", alone["user"], "anyone?")
        with pytest.raises(ValueError, match="unknown field"):
            await world.set(colour="red")
        with pytest.raises(TimeoutError):
            await world.until_visible(1, within_s=0.01)
