"""`claudius discord invite`: the real command, with a Discord on loopback."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from claudius.testing.loopback.discord.server import DiscordServer
from claudius.testing.loopback.discord.state import APP, BOT_TOKEN
from driven import Machine

NOBODY = "http://127.0.0.1:9/api/v10"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Give a machine of one's own."""
    return Machine(tmp_path)


async def test_it_prints_the_address_for_the_tokens_application(machine: Machine) -> None:
    """Discord says whose token it is; with `--json` the same, and what is asked for."""
    async with DiscordServer() as server:
        env = {"DISCORD_TOKEN": BOT_TOKEN, "CLAUDIUS_DISCORD_API_URL": server.base_url}
        plain = await asyncio.to_thread(machine.ok, "discord", "invite", env=env)
        json = await asyncio.to_thread(machine.ok, "discord", "invite", "--json", env=env)

    assert plain.stdout.strip() == json.json["url"]
    assert f"client_id={APP}&" in json.json["url"]
    assert "Create Public Threads" in json.json["permissions"]


async def test_a_token_that_is_none_is_named(machine: Machine) -> None:
    """78, and one line."""
    async with DiscordServer() as server:
        env = {"DISCORD_TOKEN": "MTAw.wrong.token", "CLAUDIUS_DISCORD_API_URL": server.base_url}
        ran = await asyncio.to_thread(machine.run, "discord", "invite", env=env)

    assert ran.code == 78
    assert "DISCORD_TOKEN" in ran.stderr
    assert "wrong" not in ran.shown


def test_without_a_network_the_token_itself_says_it(machine: Machine) -> None:
    """Its first part is the bot's id; a token without one, or none at all, is told."""
    env = {"CLAUDIUS_DISCORD_API_URL": NOBODY}

    ran = machine.ok("discord", "invite", env=env | {"DISCORD_TOKEN": "MTAwMDAwMDAwMDAwMDAwMDAx.x.y"})

    assert "client_id=100000000000000001&" in ran.stdout
    assert machine.run("discord", "invite", env=env | {"DISCORD_TOKEN": "MTAw.x.y"}).code == 75
    assert machine.run("discord", "invite", env=env).code == 78
