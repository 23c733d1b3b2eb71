"""`claudius discord invite`, and doctor's findings about who is heard, with the real commands."""

import asyncio

from driven import Machine
from lab.loopback.discord.server import DiscordServer
from lab.loopback.discord.state import APP, BOT_TOKEN

NOBODY = "http://127.0.0.1:9/api/v10"


async def test_it_prints_the_address_for_the_tokens_application(machine: Machine) -> None:
    """Discord reports whose token it is. `--json` gives the same, with the permissions asked for."""
    async with DiscordServer() as server:
        env = {"DISCORD_TOKEN": BOT_TOKEN, "CLAUDIUS_DISCORD_API_URL": server.base_url}
        plain = await asyncio.to_thread(machine.ok, "discord", "invite", env=env)
        json = await asyncio.to_thread(machine.ok, "discord", "invite", "--json", env=env)

    assert plain.stdout.strip() == json.json["url"]
    assert f"client_id={APP}&" in json.json["url"]
    assert "Create Public Threads" in json.json["permissions"]


async def test_an_invalid_token_is_named(machine: Machine) -> None:
    """The error is one line, with exit 78."""
    async with DiscordServer() as server:
        env = {"DISCORD_TOKEN": "MTAw.wrong.token", "CLAUDIUS_DISCORD_API_URL": server.base_url}
        ran = await asyncio.to_thread(machine.run, "discord", "invite", env=env)

    assert ran.code == 78
    assert "DISCORD_TOKEN" in ran.stderr
    assert "wrong" not in ran.shown


def test_without_a_network_the_token_itself_says_it(machine: Machine) -> None:
    """The token's first part is the bot's id. A token without one, or a missing token, is reported."""
    env = {"CLAUDIUS_DISCORD_API_URL": NOBODY}

    ran = machine.ok("discord", "invite", env=env | {"DISCORD_TOKEN": "MTAwMDAwMDAwMDAwMDAwMDAx.x.y"})

    assert "client_id=100000000000000001&" in ran.stdout
    assert machine.run("discord", "invite", env=env | {"DISCORD_TOKEN": "MTAw.x.y"}).code == 75
    assert machine.run("discord", "invite", env=env).code == 78


def test_doctor_names_a_list_that_lets_in_everybody_or_nobody(machine: Machine) -> None:
    """An empty `discord.guilds` beside a token, and a `*`, are findings with a remedy; a named server is not."""
    machine.ok("config", "show")
    token = {"DISCORD_TOKEN": "x.y.z"}

    nobody = machine.run("doctor", "--security", "--json", env=token)
    everybody = machine.run("doctor", "--security", "--json", env=token | {"CLAUDIUS_DISCORD_GUILDS": "*"})
    named = machine.run("doctor", "--security", "--json", env=token | {"CLAUDIUS_DISCORD_GUILDS": "200000000000000001"})

    assert [one["detail"] for one in nobody.json["checks"] if not one["ok"] and one["name"] == "access"] == [
        "discord.guilds is empty: nobody is heard on Discord"
    ]
    assert [one["detail"] for one in everybody.json["checks"] if one["name"] == "access"] == [
        "discord.guilds lets everybody in"
    ]
    assert not [one for one in named.json["checks"] if one["name"] == "access"]
