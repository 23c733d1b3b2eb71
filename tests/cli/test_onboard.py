"""`claudius onboard` and `claudius doctor --live`: from nothing to a first reply, and every fault named."""

import asyncio
import json
import re
import signal
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from case_rows import Row, rows
from claudius.adapters.slack.manifest import manifest
from claudius.providers.chain import HAD_MODEL
from driven import Machine, Ran, reply
from lab.loopback.discord.server import DiscordServer
from lab.loopback.discord.state import ANA, BOT_TOKEN, BOT_USER, DM, GUILD
from lab.loopback.model import ModelServer
from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN
from lab.loopback.slack.state import BOT_TOKEN as SLACK_TOKEN

EVERYTHING = ("view_channel", "send_messages", "send_messages_in_threads", "create_public_threads",
              "read_message_history", "add_reactions")  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine of its own."""
    made = Machine(tmp_path)
    made.scripted(reply("yes"), reply("Hello there."))
    return made


def secrets(machine: Machine, **values: str) -> str:
    """Write a file of secrets. Returns its path."""
    path = machine.root / "secrets.env"
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    path.chmod(0o600)
    return str(path)


async def run(machine: Machine, *args: str, env: Mapping[str, str] | None = None) -> Ran:
    """Run a command while the loopback servers serve."""
    return await asyncio.to_thread(machine.run, *args, env=env)


def faults(ran: Ran) -> dict[str, str]:
    """Return the faults by name, each with its fix."""
    checks: list[Any] = ran.json["checks"]
    assert all(one["fix"] for one in checks if not one["ok"])
    return {one["name"]: f"{one['detail']}; {one['fix']}" for one in checks if not one["ok"]}


async def test_from_nothing_to_a_first_reply_on_slack(machine: Machine) -> None:
    """docs/slack.md: onboard, start, write. Secrets are stored in .env (0600), never in config.toml or on a screen."""
    async with SlackServer() as server:
        await server.world.set(retry_delays_s=(0.1, 0.5, 1.0))
        machine.env["CLAUDIUS_SLACK_API_URL"] = server.base_url
        file = secrets(machine, SLACK_BOT_TOKEN=SLACK_TOKEN, SLACK_APP_TOKEN=APP_TOKEN)
        ran = await run(machine, "onboard", "--yes", "--adapters", "slack", "--env-file", file, "--json")
        started = await run(machine, "daemon", "start")
        await server.world.say("D1", "U1", "Are you there?")
        (shown,) = await server.world.until_visible(1, within_s=60)
        stopped = await run(machine, "daemon", "stop")

    assert (ran.code, ran.json["ok"]) == (0, True)
    assert (started.code, stopped.code) == (0, 0)
    assert shown.text
    env_file = machine.home / ".env"
    assert stat.S_IMODE(env_file.stat().st_mode) == 0o600
    assert SLACK_TOKEN in env_file.read_text()
    assert SLACK_TOKEN not in (machine.home / "config.toml").read_text() + ran.shown


@pytest.mark.slow
async def test_a_network_that_is_set_up_later_silences_no_other(machine: Machine) -> None:
    """docs/slack.md, then another page: what was set up before stays."""
    async with SlackServer() as server:
        machine.env["CLAUDIUS_SLACK_API_URL"] = server.base_url
        file = secrets(machine, SLACK_BOT_TOKEN=SLACK_TOKEN, SLACK_APP_TOKEN=APP_TOKEN)
        first = await run(machine, "onboard", "--yes", "--adapters", "slack", "--env-file", file)
        later = await run(machine, "onboard", "--yes", "--adapters", "terminal")

    assert (first.code, later.code) == (0, 0)
    assert machine.ok("config", "get", "adapters", "--json").json["value"] == ["terminal", "slack"]


def test_a_network_with_one_of_its_two_tokens_is_named(machine: Machine) -> None:
    """The network is not heard and `status` cannot say so, but doctor does, without a network call."""
    machine.env["SLACK_BOT_TOKEN"] = SLACK_TOKEN

    ran = machine.run("doctor", "--json")

    assert "SLACK_APP_TOKEN is not set" in faults(ran)["slack"]


async def test_from_nothing_to_a_first_reply_on_discord(machine: Machine) -> None:
    """docs/discord.md: if the bot is in one server, the members of that server are heard."""
    async with DiscordServer() as server:
        await server.world.set(identify_every_s=0.0)
        machine.env |= {"CLAUDIUS_DISCORD_API_URL": server.base_url, "CLAUDIUS_DISCORD_GATEWAY_URL": server.gateway_url}
        file = secrets(machine, DISCORD_TOKEN=BOT_TOKEN)
        ran = await run(machine, "onboard", "--yes", "--adapters", "discord", "--env-file", file, "--json")
        started = await run(machine, "daemon", "start")
        await server.world.say(DM, ANA, "Are you there?")
        (shown,) = await server.world.until_visible(1, within_s=60)
        stopped = await run(machine, "daemon", "stop")

    assert (ran.code, ran.json["ok"]) == (0, True), ran.shown
    assert (started.code, stopped.code) == (0, 0)
    assert shown.text
    assert f'guilds = ["{GUILD}"]' in (machine.home / "config.toml").read_text()


async def test_a_refused_token_is_named_and_not_stored(machine: Machine) -> None:
    """A refused token is named with its fix and exit 1, and nothing is written."""
    async with SlackServer() as server:
        machine.env["CLAUDIUS_SLACK_API_URL"] = server.base_url
        file = secrets(machine, SLACK_BOT_TOKEN="xoxb-not-this-one", SLACK_APP_TOKEN=APP_TOKEN)
        ran = await run(machine, "onboard", "--yes", "--adapters", "slack", "--env-file", file, "--json")

    assert ran.code == 1
    assert "SLACK_BOT_TOKEN" in faults(ran)["slack bot token"]
    assert not (machine.home / ".env").exists()
    assert "xoxb-not-this-one" not in ran.shown


def test_without_anybody_to_ask_it_says_what_is_missing(machine: Machine) -> None:
    """Non-interactive: a missing secret, an unknown network and a missing --yes each give one line and exit 2."""
    for args in (("--yes", "--adapters", "slack"), ("--yes", "--adapters", "irc"), ("--yes", "--providers", "gpt"), ()):
        ran = machine.run("onboard", *args)

        assert ran.code == 2, args
        assert len(ran.stderr.splitlines()) == 1


async def test_doctor_names_every_fault_of_slack(machine: Machine) -> None:
    """§1.7: scopes, channels, events and Socket Mode, each with its fix."""
    async with SlackServer() as server:
        machine.env |= {
            "CLAUDIUS_SLACK_API_URL": server.base_url,
            "SLACK_BOT_TOKEN": SLACK_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "CLAUDIUS_SLACK_CHANNELS": "C7,C404,*",
        }
        await server.world.add_channel("C7", "kitchen", members=())
        scopes = await server.world.scopes(SLACK_TOKEN)
        await server.world.allow(SLACK_TOKEN, [scope for scope in scopes if scope != "reactions:read"])
        await server.world.allow(APP_TOKEN, [])
        ran = await run(machine, "doctor", "--live", "--json")
        plain = await run(machine, "doctor", "--live")

    found = faults(ran)
    assert "reactions:read" in found["slack scope"]
    assert "reinstall" in found["slack scope"]
    assert "connections:write" in found["slack app token"]
    assert "C404" in found["slack channel"]
    assert "#kitchen: the bot is not in it" in plain.stdout
    assert "/invite" in plain.stdout
    assert "nothing was ever heard" in found["slack events"]
    assert "slack.channels hears every channel" in found["access"]


async def test_doctor_tries_whether_a_channel_and_its_threads_can_be_read(machine: Machine) -> None:
    """If no channel is named, one that the bot is in is tried. A bot's token may be refused its threads."""
    async with SlackServer() as server:
        machine.env |= {
            "CLAUDIUS_SLACK_API_URL": server.base_url,
            "SLACK_BOT_TOKEN": SLACK_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
        }
        await server.world.say("C1", "U1", "good morning", deliver=False)
        await server.world.fault("conversations.replies", "error", error="not_allowed_token_type")
        refused = await run(machine, "doctor", "--live", "--json")

    assert "not_allowed_token_type" in faults(refused)["slack channel"]


async def test_doctor_names_every_fault_of_discord(machine: Machine) -> None:
    """§2: the intent, servers that are not allowed or missing, permissions, and finally a wrong token."""
    async with DiscordServer() as server:
        machine.env |= {
            "CLAUDIUS_DISCORD_API_URL": server.base_url,
            "DISCORD_TOKEN": BOT_TOKEN,
            "CLAUDIUS_DISCORD_GUILDS": f"{GUILD},299",
        }
        await server.world.set(privileges=())
        await server.world.permit(GUILD, ("view_channel", "send_messages"))
        ran = await run(machine, "doctor", "--live", "--json")
        empty = await run(machine, "doctor", "--live", "--json", env={"CLAUDIUS_DISCORD_GUILDS": ""})
        wrong = await run(machine, "doctor", "--live", "--json", env={"DISCORD_TOKEN": "MTAw.wrong.token"})

    found = faults(ran)
    assert "MESSAGE CONTENT" in found["discord message content intent"].upper().replace("INTENTS", "MESSAGE CONTENT")
    assert "not in the server 299" in found["discord servers"]
    assert "Create Public Threads" in found["discord permissions"]
    assert GUILD in faults(empty)["discord servers"]
    assert "401" in faults(wrong)["discord token"]
    assert BOT_USER not in found["discord servers"]


def test_doctor_finds_exchanged_tokens_without_asking_anybody(machine: Machine) -> None:
    """A token in another's place is told by how it begins, and is not shown."""
    machine.env |= {
        "SLACK_BOT_TOKEN": "xapp-1-secret",
        "SLACK_APP_TOKEN": "xoxb-1-secret",
        "DISCORD_TOKEN": "a-client-secret",
        "ANTHROPIC_API_KEY": "gsk_of_another",
    }

    ran = machine.run("doctor", "--json")

    found = [one["detail"] for one in ran.json["checks"] if one["name"] == "tokens"]
    assert [one.partition(":")[0] for one in found] == [
        "SLACK_BOT_TOKEN",
        "SLACK_APP_TOKEN",
        "ANTHROPIC_API_KEY",
        "DISCORD_TOKEN",
    ]
    assert "belongs into SLACK_APP_TOKEN" in found[0]
    assert "1-secret" not in ran.shown


def test_doctor_finds_servers_that_cannot_be_there(machine: Machine) -> None:
    """A name that no one has, and a port of this machine on which nothing listens; neither needs a network."""
    machine.env |= {
        "CLAUDIUS_OPENAI_BASE_URL": "http://no-such-model.invalid/v1",
        "CLAUDIUS_ALERTS_WEBHOOK": "http://127.0.0.1:9/",
    }

    found = [one["detail"] for one in machine.run("doctor", "--json").json["checks"] if one["name"] == "servers"]

    assert "no server is called 'no-such-model.invalid'" in found[0]
    assert "nothing listens on port 9" in found[1]


async def test_a_typo_ends_nothing_and_good_answers_are_kept(machine: Machine) -> None:
    """Every wrong answer is asked for again: a name, a token in another's place, one that is refused, no server."""

    def walk() -> str:
        """Answer as a person who mistypes everything once."""
        machine.shim("systemctl", "exit 1")
        with machine.terminal("onboard") as terminal:
            terminal.until("Which networks")
            for wrong in ("slak", "http://127.0.0.1:9/v1"):
                terminal.type(f"{wrong},discord")
                terminal.until(f"there is no '{wrong}'")
            terminal.until("Which networks")
            terminal.type("slack,discord")
            terminal.until("https://api.slack.com/apps?new_app=1&manifest_json=%7B")
            terminal.until("SLACK_BOT_TOKEN")
            terminal.type(APP_TOKEN)
            terminal.until("it begins with xapp-")
            terminal.until("SLACK_BOT_TOKEN (")
            terminal.type(SLACK_TOKEN + "x")
            terminal.until("SLACK_APP_TOKEN (")
            terminal.type(APP_TOKEN)
            terminal.until("What now?")
            terminal.type("again")
            terminal.until("SLACK_BOT_TOKEN (")
            terminal.type(SLACK_TOKEN)
            terminal.until("Socket Mode is on")
            terminal.until("DISCORD_TOKEN (")
            assert SLACK_TOKEN in (machine.home / ".env").read_text()
            terminal.type(BOT_TOKEN)
            terminal.until("Hear the members of")
            terminal.type("y")
            terminal.until("Which voices, with commas? (auto, anthropic_api, agent_sdk, claude_cli")
            for said, shown in (("scriptd", "there is no 'scriptd'"), ("auto", "What now?"), ("", "[rehearsal]:")):
                terminal.type(said)
                terminal.until(shown)
            terminal.type("scripted")
            terminal.until("What may it call you?")
            terminal.type("")
            terminal.until("Your time zone")
            terminal.type("")
            for _ in range(3):  # the fourth is decided in the environment
                terminal.until("Turn it on?")
                terminal.type("n")
            terminal.until("Have the system start it")
            terminal.type("n")
            return terminal.rest()

    async with SlackServer() as slack, DiscordServer() as discord:
        machine.env |= {
            "CLAUDIUS_SLACK_API_URL": slack.base_url,
            "CLAUDIUS_DISCORD_API_URL": discord.base_url,
            "CLAUDIUS_DISCORD_GATEWAY_URL": discord.gateway_url,
            "CLAUDIUS_PSYCHE_PROACTIVE": "false",
        }
        shown = await asyncio.to_thread(walk)

    assert "next: claudius daemon start" in shown
    assert SLACK_TOKEN not in shown
    config = (machine.home / "config.toml").read_text()
    assert 'adapters = ["slack","discord"]' in config
    assert f'guilds = ["{GUILD}"]' in config


async def test_what_was_answered_before_somebody_gave_up_is_kept(machine: Machine) -> None:
    """Ctrl-C in the middle loses nothing that was tested; the next time only the rest is asked for."""

    def walk() -> None:
        """Set Slack up, then leave."""
        with machine.terminal("onboard", "--adapters", "slack,discord") as terminal:
            terminal.until("SLACK_BOT_TOKEN (")
            terminal.type(SLACK_TOKEN)
            terminal.until("SLACK_APP_TOKEN (")
            terminal.type(APP_TOKEN)
            terminal.until("Ctrl-C leaves; what worked is kept")
            terminal.process.send_signal(signal.SIGINT)
            terminal.rest()
        with machine.terminal("onboard", "--adapters", "slack") as terminal:
            terminal.until("Socket Mode is on")
            terminal.until("Which voices")

    async with SlackServer() as slack:
        machine.env["CLAUDIUS_SLACK_API_URL"] = slack.base_url
        await asyncio.to_thread(walk)

    assert 'adapters = ["slack"]' in (machine.home / "config.toml").read_text()


def test_what_is_off_by_default_is_offered_once_with_its_cost(machine: Machine) -> None:
    """At a terminal it asks for each in a sentence that names the cost; a second time it asks for none of them."""
    machine.env["CLAUDIUS_PROVIDERS"] = "rehearsal"
    with machine.terminal("onboard") as terminal:
        for asked, said in (("networks", ""), ("voices", ""), ("call you", "Ada"), ("time zone", "Europe/Lisbn"),
                            ("no time zone", ""), ("Kothar", "y"), ("a person a day", "n"),
                            ("twelve model calls", "n"), ("one more model call", "n"), ("Have the system start it", "n")):  # fmt: skip
            terminal.until(asked)
            terminal.type(said)
        terminal.rest()
    with machine.terminal("onboard") as terminal:
        for asked in ("networks", "voices"):
            terminal.until(asked)
            terminal.type("")
        terminal.until("Have the system start it")
        terminal.type("n")
        again = terminal.rest()
    offers = {one["name"]: one["command"] for one in machine.run("status", "--json").json["offers"]}
    machine.ok("chat", "--once", "I build bridges.")
    whispered = machine.ok("daimon", "whisper", "--json").json

    assert "Kothar" not in again.partition("voices")[2]
    assert offers == {
        "writing first": "claudius config set psyche.proactive true",
        "ism": "claudius config set ism.enabled true",
        "consultation": "claudius config set cortex.consult.enabled true",
    }
    assert whispered["whisper"]
    assert "no model" not in whispered["whisper"]


def test_the_command_that_status_names_for_kothar_has_him_whisper_without_a_model(machine: Machine) -> None:
    """Typed as it stands, it turns on a Kothar in rehearsal; a provider that the owner chose for him stays."""
    offered = {one["name"]: one["command"] for one in machine.run("status", "--json").json["offers"]}["kothar"]
    machine.ok("config", "set", "kothar.provider", "anthropic_api")
    chosen = {one["name"]: one["command"] for one in machine.run("status", "--json").json["offers"]}["kothar"]
    for command in offered.split(" && "):
        machine.ok(*command.split()[1:])
    machine.ok("chat", "--once", "I build bridges.")

    assert machine.ok("daimon", "whisper", "--json").json["whisper"]
    assert chosen == "claudius config set kothar.groq_enabled true"


def test_where_no_model_is_found_it_says_how_to_have_one(machine: Machine) -> None:
    """The remedy is that of this failure: the ways to a model, and the voice without one."""
    (machine.home / "state").mkdir(parents=True)
    (machine.home / "state" / HAD_MODEL).touch()
    found = machine.run("onboard", "--yes", "--providers", "auto")

    assert found.code == 1
    assert re.search("`claudius model get`.*rehearsal", found.stdout)
    assert "asked again" not in found.stdout


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("row", [*rows("newcomer", "onboard", only="onboard-server")])
async def test_a_chat_completions_server_is_asked_for_tried_and_kept(row: Row, machine: Machine, columns: int) -> None:
    """Address, key and model; a wrong one is named and asked for again, the key for each server; no word breaks, it stays unseen."""
    row.knows_only("must", "never")
    kind, url, key, model = row.input["says"]
    machine.env["CLAUDIUS_OPENAI_PROFILE"] = "full"

    def walk(port: int) -> str:
        """Set the server up, with a wrong port first."""
        machine.shim("systemctl", "exit 1")
        with machine.terminal("onboard", columns=columns) as terminal:
            for asked, said in (("Which networks", ""), ("Which voices", kind), ("Address of the", "my server"),
                                ("is no web address", ""), ("Address of the", "127.0.0.1:9/v1"), ("Its key (Enter: none)", "old"),
                                ("Which of its models", model), ("FIX", ""), ("What now?", "again"), ("Which voices", ""),
                                ("Address of the", url.format(port=port)), ("Its key (Enter: none)", key),
                                ("Which of its models", model), ("some-model answered", ""), ("call you", "Ada"),
                                ("Your time zone", "Europe/Lisbon")):  # fmt: skip
                terminal.until(asked)
                if not asked.startswith(("FIX", "some-model", "is no web")):
                    terminal.type(said)
            for _ in range(4):
                terminal.until("[y/N]")
                terminal.type("n")
            terminal.until("Have the system start it")
            terminal.type("n")
            return terminal.rest()

    async with ModelServer(default="yes", models=(model,)) as server:
        shown = await asyncio.to_thread(walk, int(server.url.rpartition(":")[2]))
        asked = server.asked[-1]
    config = (machine.home / "config.toml").read_text()
    told = [re.sub(r"\x1b\[\d*m|(?<=[])]: ).*", "", line) for line in shown.replace("\r", "").split("\n")]  # not typed

    assert row.right["must"] == ["asks the three, tries them, keeps them"]
    assert not [one for one in row.right["never"] if one in shown]
    assert (asked.body["model"], asked.headers["Authorization"]) == (model, f"Bearer {key}")
    assert f'model = "{model}"' in config
    assert 'timezone = "Europe/Lisbon"' in config
    assert f"CLAUDIUS_OPENAI_API_KEY={key}" in (machine.home / ".env").read_text()
    assert "127.0.0.1:9" in shown.partition("FIX")[2].partition("What now?")[0]
    assert [line for line in told if len(line) > columns] == []
    spoken = machine.ok("chat", "--once", "Bye.", env={"CLAUDIUS_PROVIDERS": "rehearsal"}).stdout
    assert "Ada" in spoken


@pytest.mark.parametrize("columns", [80, 120])
def test_the_form_of_slack_is_one_link(machine: Machine, columns: int) -> None:
    """It holds the manifest, and takes at most 25 lines of a terminal; around it no word breaks."""
    (slack, width) = [
        one for name in ("onboard-slack", "onboard-width") for one in rows("newcomer", "onboard", only=name)
    ]
    with machine.terminal("onboard", "--adapters", "slack", columns=columns) as terminal:
        terminal.until("SLACK_BOT_TOKEN")
        lines = terminal.shown.replace("\r", "").split("\n")
    (link,) = [line for line in lines if line.startswith("https://")]
    asked = parse_qs(urlsplit(link).query)

    assert "at most 25 lines" in slack.values[0].right["must"][0]
    assert width.values[0].right["must"] == ["words never break"]
    assert sum(-(-max(len(line), 1) // columns) for line in lines[:-1]) <= 25
    assert [line for line in lines if len(line) > columns] == [link]
    assert asked["new_app"] == ["1"]
    assert json.loads(asked["manifest_json"][0]).items() <= manifest().items()
