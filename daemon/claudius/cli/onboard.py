"""`claudius onboard`: ask for what is needed, test each answer, and save it."""

from __future__ import annotations

import asyncio
import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from claudius.cli.output import json_option, print_checks, print_json
from claudius.config import Loaded, load, read_env_file
from claudius.errors import EXIT_FAILED, UsageProblem
from claudius.home import Home, write_private
from claudius.reports.network_checks import Check, ask_discord, ask_slack, gathered, servers
from claudius.reports.status import OFFERS, is_on

WHERE = {
    "SLACK_BOT_TOKEN": "Slack, your app, Install App: xoxb-…",
    "SLACK_APP_TOKEN": "Slack, your app, Basic Information, App-Level Tokens, with connections:write: xapp-…",
    "DISCORD_TOKEN": "Discord, your application, Bot, Reset Token",
    "ANTHROPIC_API_KEY": "console.anthropic.com, API keys: sk-ant-…",
}
OWN_LOGIN = (
    "A Claude login is for your own use: its terms do not let you offer it to others. For a soul that a team talks to, "
    "take an API key (anthropic_api)."
)


@click.command()
@click.option("--yes", is_flag=True, help="Ask nothing: use the flags, the environment and --env-file.")
@click.option("--adapters", default="", help="Networks to set up, with commas: slack, discord, terminal.")
@click.option("--providers", default="", help="Who speaks, with commas, in order: auto, anthropic_api, agent_sdk …")
@click.option(
    "--env-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of NAME=value lines (mode 0600) to take secrets from; never give one on the command line.",
)
@json_option
def onboard(*, yes: bool, adapters: str, providers: str, env_file: Path | None, as_json: bool) -> int:
    """Set the soul up: who speaks, which networks, their tokens; each is tested before it is saved."""
    from claudius.compose import PROVIDERS
    from claudius.config import TOKENS

    is_asked = not yes and sys.stdin.isatty()
    if not (is_asked or yes):
        how = "use --yes, and set secrets in the environment or --env-file"
        raise UsageProblem(f"there is no terminal to ask at: {how}")
    home = Home.of(os.environ)
    home.create()
    given = read_env_file(env_file) if env_file else {}
    at_hand = {**read_env_file(home.env_file), **os.environ, **given}
    before = load(home, os.environ).config
    reachable = [name for name, tokens in {"terminal": (), **TOKENS}.items() if all(map(at_hand.get, tokens))]
    usual = reachable if "auto" in before.adapters else before.adapters
    networks = _chosen(adapters, ("terminal", *TOKENS), "networks", ",".join(usual), is_asked=is_asked)
    voices = _chosen(providers, ("auto", *PROVIDERS), "voices", ",".join(before.providers), is_asked=is_asked)
    needed = [token for name in networks for token in TOKENS.get(name, ())]
    needed += ["ANTHROPIC_API_KEY"] * ("anthropic_api" in voices)
    secrets = _secrets(home, needed, given, is_asked=is_asked)
    found = {**os.environ, **secrets, "CLAUDIUS_ADAPTERS": ",".join(networks), "CLAUDIUS_PROVIDERS": ",".join(voices)}
    there_too = tuple(name for name in usual if adapters and name not in (*networks, "terminal"))
    settings: dict[str, Sequence[str] | bool] = {"adapters": (*networks, *there_too), "providers": voices}
    if "discord" in networks:
        guilds = _server(load(home, found), is_asked=is_asked)
        settings |= guilds
        found["CLAUDIUS_DISCORD_GUILDS"] = ",".join(guilds.get("discord.guilds", ()))
    if owners := load(home, found).config.owners:
        settings["owners"] = owners
    if is_asked:
        settings |= _wished(home, load(home, found))
    checks = asyncio.run(_checks(load(home, found), home, networks, voices))
    ok = all(check.ok for check in checks)
    if ok or (is_asked and click.confirm("Some checks failed. Keep these settings anyway?")):
        _keep(home, secrets, settings)
    say = _owner_line(home, networks) if ok else ""
    follows = "claudius daemon start" if ok else "fix what is named above, then run `claudius onboard` again"
    if as_json:
        found_out = {"ok": ok, "checks": [one._asdict() for one in checks], "home": str(home.root), "next": follows}
        print_json(found_out | {"owner": say or None})
    else:
        print_checks(checks)
        click.echo(f"next: {follows}")
        if say:
            click.echo(f"then: be its owner: within an hour, write to it directly: {say}")
    return 0 if ok else EXIT_FAILED


def _chosen(named: str, known: Sequence[str], what: str, default: str, *, is_asked: bool) -> tuple[str, ...]:
    if not named and is_asked:
        named = click.prompt(f"Which {what}, with commas? ({', '.join(known)})", default=default, err=True)
    names = tuple(name.strip() for name in (named or default).split(",") if name.strip())
    for name in names:
        if name not in known and ":" not in name and "." not in name:
            raise UsageProblem(f"there is no {name!r}: the {what} are {', '.join(known)}")
    return names


def _wished(home: Home, loaded: Loaded) -> dict[str, bool | str]:
    """Offer, once, what is off by default, each in a sentence with its cost. A no is kept, so nobody is asked again."""
    said = tomllib.loads(home.config.read_text("utf-8-sig")) if home.config.exists() else {}
    found: dict[str, bool | str] = {}
    for offer in OFFERS:
        table, _, name = offer.sets.rpartition(".")
        known: Any = said
        for part in table.split("."):
            known = known.get(part, {}) if isinstance(known, dict) else {}
        if name in known or is_on(loaded.config, offer.sets):
            continue
        found[offer.sets] = click.confirm(f"{offer.told}. Turn it on?", default=False, err=True)
        if found[offer.sets] and offer.name == "kothar":
            found["kothar.provider"] = "rehearsal"
    return found


def _secrets(home: Home, needed: Sequence[str], given: Mapping[str, str], *, is_asked: bool) -> dict[str, str]:
    """Find each secret that is needed: in --env-file, the environment, the home's .env, or a hidden prompt."""
    before = read_env_file(home.env_file)
    found = {}
    for name in needed:
        value = given.get(name) or os.environ.get(name) or before.get(name, "")
        if not value and is_asked:
            value = click.prompt(f"{name} ({WHERE[name]})", hide_input=True, default="", show_default=False, err=True)
        if not value:
            where = WHERE[name]
            raise UsageProblem(f"{name} is missing ({where}): set it in the environment, or in a file for --env-file")
        found[name] = value.strip()
    optional = {"CLAUDIUS_OPENAI_API_KEY", "GROQ_API_KEY", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}
    return found | {name: value for name, value in given.items() if name in optional}


def _server(loaded: Loaded, *, is_asked: bool) -> dict[str, tuple[str, ...]]:
    """Find the server whose members are heard: the configured one, else the one that the bot is in."""
    if loaded.config.discord.guilds:
        return {"discord.guilds": loaded.config.discord.guilds}
    there = asyncio.run(servers(loaded))
    if len(there) == 1 and (not is_asked or click.confirm(f"Hear the members of {next(iter(there.values()))}?")):
        return {"discord.guilds": tuple(there)}
    if is_asked and there:
        listed = ", ".join(f"{guild} ({name})" for guild, name in there.items())
        named = click.prompt(f"Whose members are heard? Ids, with commas: {listed}", default="", err=True)
        return {"discord.guilds": tuple(one.strip() for one in named.split(",") if one.strip())}
    return {}


def _owner_line(home: Home, networks: Sequence[str]) -> str:
    """Return what somebody writes to become the owner; empty if each network has an owner already."""
    from claudius.runtime.owner_code import OwnerCode

    owned = {one.partition(":")[0] for one in load(home, os.environ).config.owners}
    if set(networks) <= {"terminal", *owned}:
        return ""
    return f"!owner {OwnerCode(home).make(datetime.now(UTC))}"


async def _checks(loaded: Loaded, home: Home, networks: Sequence[str], voices: Sequence[str]) -> list[Check]:
    from claudius.reports.doctor import one_word

    asking = {"slack": ask_slack, "discord": ask_discord}
    found = [check for name in networks if name in asking for check in await gathered(asking[name](loaded))]
    found.append(await one_word(loaded, home))
    if {"agent_sdk", "claude_cli"} & set(voices) and set(networks) - {"terminal"}:
        found.append(Check("terms", ok=True, detail=OWN_LOGIN))
    return found


def _keep(home: Home, secrets: Mapping[str, str], settings: Mapping[str, Sequence[str] | bool]) -> None:
    """Write secrets to .env, mode 0600, and settings to config.toml; other lines are unchanged."""
    from claudius.cli.config import write_setting

    lines = home.env_file.read_text("utf-8").splitlines() if home.env_file.exists() else []
    for name, value in secrets.items():
        kept = [line for line in lines if line.split("=")[0].replace("export", "").strip() != name]
        lines = [*kept, f"{name}={value}"]
    if secrets:
        write_private(home.env_file, "\n".join(lines) + "\n")
    for key, chosen in settings.items():
        write_setting(home, key, chosen if isinstance(chosen, bool | str) else list(chosen))
