"""`claudius slack`, `discord` and `pairing`: what a network needs to let the soul in, and who else it listens to there.

Source: docs.discord.com/developers/topics/oauth2, "Bot Authorization Flow"; …/topics/permissions.
"""

from __future__ import annotations

import asyncio
import json
import os
from base64 import urlsafe_b64decode
from typing import Any
from urllib.parse import urlencode

import click

from claudius.cli.output import Group, json_option, print_result, safe
from claudius.config.load import load
from claudius.errors import BadConfiguration, ClaudiusError, TryAgain, UsageProblem
from claudius.home import Home
from claudius.reports.session import ask

NAME_CHARS = 35
"""The longest app name that Slack allows."""
TOKEN = "DISCORD_TOKEN"  # noqa: S105 - the setting's name, not a token


@click.group(cls=Group)
def slack() -> None:
    """Set Slack up; docs/slack.md leads through it."""


def slack_manifest(name: str = "Claudius") -> dict[str, Any]:
    """Return the manifest of an app of that name."""
    from claudius.adapters.slack.manifest import manifest

    return manifest(name)


@slack.command()
@click.option("--name", default="Claudius", show_default=True, help="What the app is called in Slack.")
@click.option("--json", "as_json", is_flag=True, help="Print it in one line; it is JSON anyhow.")
def manifest(name: str, *, as_json: bool) -> None:
    """Print the app manifest that Slack's form takes."""
    if not (name.strip() and name.isprintable() and len(name) <= NAME_CHARS):
        raise UsageProblem(f"--name: {name!r} cannot be an app's name: 1 to {NAME_CHARS} printable characters")
    click.echo(json.dumps(slack_manifest(name.strip()), ensure_ascii=False, indent=None if as_json else 2))


@click.group(cls=Group)
def discord() -> None:
    """Bring the soul into Discord."""


@discord.command()
@json_option
def invite(*, as_json: bool) -> None:
    """Print the address at which you add the bot to your server."""
    home = Home.of(os.environ)
    loaded = load(home, os.environ)
    token = loaded.secret(TOKEN)
    if not token:
        fix = "put the bot's token there; see docs/discord.md"
        raise BadConfiguration(str(home.env_file), TOKEN, "it is not set", fix)
    from claudius.reports import network_checks as checks

    application = asyncio.run(checks.application(loaded)) or application_in(token)
    if not application:
        raise TryAgain("Discord cannot be reached, and the token does not say whose it is: try again later")
    url = invite_url(application)
    print_result({"url": url, "application": application, "permissions": [*checks.PERMISSIONS]}, [url], as_json=as_json)


def invite_url(application: str) -> str:
    """Return the invite address for an application's id. Pure."""
    from claudius.reports.network_checks import PERMISSIONS

    query = {
        "client_id": application,
        "scope": "bot applications.commands",
        "permissions": str(sum(PERMISSIONS.values())),
    }
    return f"https://discord.com/oauth2/authorize?{urlencode(query)}"


def application_in(token: str) -> str:
    """Return the bot's id from its token (also the application's id, since 2016); empty if there is none. Pure."""
    first = token.partition(".")[0]
    try:
        found = urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
    except ValueError:
        return ""
    return found if found.isdigit() and 17 <= len(found) <= 20 else ""


@click.group(cls=Group)
def pairing() -> None:
    """Approve strangers who write to the soul directly, or revoke the approval. Never done from chat."""


@pairing.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List who asks to be let in, each with the code that the network showed to them alone."""
    answer = asyncio.run(ask(Home.of(os.environ), "pairing_list"))
    if not answer:
        print_result([], ["no daemon is running: requests are kept only in its memory"], as_json=as_json)
        return
    lines = [
        f"{one['code']}  {one['person']}  {safe(one['name'])}  until {one['expires_at']}" for one in answer["open"]
    ]
    lines += [f"let in:   {person}" for person in answer["paired"]]
    lines += [] if answer["open"] else ["nobody asks to be let in"]
    print_result(answer["open"], lines, as_json=as_json)


@pairing.command()
@click.argument("code")
def approve(code: str) -> None:
    """Let in whoever was shown CODE."""
    answer = _asked("pairing_approve", code=code)
    click.echo(f"{answer['person']} ({safe(str(answer['name']))}) is let in")


@pairing.command()
@click.argument("person")
def revoke(person: str) -> None:
    """Revoke PERSON's approval."""
    _asked("pairing_revoke", person=person)
    click.echo(f"{person} is no longer let in")


def _asked(op: str, **words: str) -> dict[str, Any]:
    answer = asyncio.run(ask(Home.of(os.environ), op, **words))
    if answer is None:
        raise ClaudiusError("no daemon is running, and only it knows who asks: start it with `claudius daemon start`")
    if answer.get("event") == "error":
        raise ClaudiusError(str(answer["message"]))
    return answer
