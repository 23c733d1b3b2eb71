"""`claudius discord`: print the address at which an owner adds the bot to a guild.

Source: docs.discord.com/developers/topics/oauth2, "Bot Authorization Flow"; …/topics/permissions.
"""

from __future__ import annotations

import asyncio
import os
from base64 import urlsafe_b64decode
from urllib.parse import urlencode

import click

from claudius.cli.output import json_option, print_json
from claudius.config import load
from claudius.errors import AdapterRefused, BadConfiguration, TryAgain
from claudius.home import Home

PERMISSIONS = {
    "Add Reactions": 1 << 6,
    "View Channels": 1 << 10,
    "Send Messages": 1 << 11,
    "Read Message History": 1 << 16,
    "Create Public Threads": 1 << 35,
    "Send Messages in Threads": 1 << 38,
}
SCOPES = ("bot", "applications.commands")


def invite_url(application: str) -> str:
    """Return the invite address for an application's id. Pure."""
    query = {"client_id": application, "scope": " ".join(SCOPES), "permissions": str(sum(PERMISSIONS.values()))}
    return f"https://discord.com/oauth2/authorize?{urlencode(query)}"


def application_in(token: str) -> str:
    """Return the bot's id from its token (also the application's id, since 2016); empty if there is none. Pure."""
    first = token.partition(".")[0]
    try:
        found = urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
    except ValueError:
        return ""
    return found if found.isdigit() and 17 <= len(found) <= 20 else ""


TOKEN = "DISCORD_TOKEN"  # noqa: S105 - the setting's name, not a token
PATIENCE_S = 5.0


@click.group()
def discord() -> None:
    """Bring the soul into Discord."""


@discord.command()
@json_option
def invite(*, as_json: bool) -> None:
    """Print the address at which you add the bot to your server."""
    from claudius.cli.discord import PERMISSIONS, application_in, invite_url

    home = Home.of(os.environ)
    loaded = load(home, os.environ)
    token = loaded.secret(TOKEN)
    if not token:
        raise BadConfiguration(
            str(home.env_file), TOKEN, "it is not set", "put the bot's token there; see docs/discord.md"
        )
    application = asyncio.run(_application(loaded.config.discord.api_url, token)) or application_in(token)
    if not application:
        raise TryAgain("Discord cannot be reached, and the token does not say whose it is: try again later")
    if as_json:
        print_json({"url": invite_url(application), "application": application, "permissions": list(PERMISSIONS)})
    else:
        click.echo(invite_url(application))


async def _application(api_url: str, token: str) -> str:
    """Ask Discord for the token's application; empty if it does not answer. Raises: AdapterRefused for a bad token."""
    import aiohttp

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE_S)) as session,
            session.get(f"{api_url.rstrip('/')}/applications/@me", headers={"Authorization": f"Bot {token}"}) as answer,
        ):
            if answer.status == 401:
                raise AdapterRefused("discord", TOKEN, "Discord does not accept it (401)", "put a new one into .env")
            found = await answer.json(content_type=None) if answer.status == 200 else {}
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return ""
    return str(found.get("id") or "")
