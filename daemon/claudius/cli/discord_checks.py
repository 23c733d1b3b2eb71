"""Check the setup through Discord's own API: token, intent, servers, permissions. Each fault comes with its fix.

Source: the chat design, section 2.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp

from claudius.cli.checks import Check
from claudius.cli.discord import PERMISSIONS
from claudius.config import Loaded

PATIENCE_S = 10.0
CONTENT_INTENT = 1 << 18 | 1 << 19
"""The application's flags for MESSAGE CONTENT INTENT, unlimited and limited."""
ADMINISTRATOR = 1 << 3
RESET = "reset it at discord.com/developers/applications, your application, Bot, and put the new one into .env"
INTENT = "switch it on: discord.com/developers/applications, Bot, Privileged Gateway Intents, then start again"
INVITE = "open what `claudius discord invite` prints, and choose the server"


class _Refused(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


async def ask_discord(loaded: Loaded) -> AsyncIterator[Check]:
    """Query Discord with the configured token; yield one check per question."""
    token = loaded.secret("DISCORD_TOKEN")
    if not token:
        fix = "put the bot's token into .env; docs/discord.md says where Discord shows it"
        yield Check("discord", ok=False, detail="DISCORD_TOKEN is not set", fix=fix)
        return
    headers = {"Authorization": f"Bot {token}"}
    patience = aiohttp.ClientTimeout(total=PATIENCE_S)
    async with aiohttp.ClientSession(timeout=patience, headers=headers) as session:
        discord = _Discord(session, loaded.config.discord.api_url.rstrip("/"))
        try:
            async for check in _asked(discord, loaded.config.discord.guilds):
                yield check
        except _Refused as error:
            is_token = error.status == 401
            detail = "Discord does not accept it (401)" if is_token else f"Discord answered with status {error.status}"
            yield Check("discord token", ok=False, detail=detail, fix=RESET if is_token else "try again later")
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            detail = f"Discord cannot be reached ({type(error).__name__})"
            yield Check("discord", ok=False, detail=detail, fix="check the network, HTTPS_PROXY, discord.api_url")


async def servers(loaded: Loaded) -> Mapping[str, str]:
    """Return the servers that the bot is in, id to name; empty if Discord does not answer."""
    headers = {"Authorization": f"Bot {loaded.secret('DISCORD_TOKEN')}"}
    patience = aiohttp.ClientTimeout(total=PATIENCE_S)
    try:
        async with aiohttp.ClientSession(timeout=patience, headers=headers) as session:
            found = await _Discord(session, loaded.config.discord.api_url.rstrip("/")).get("/users/@me/guilds")
    except (_Refused, aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return {}
    return {str(one["id"]): str(one.get("name")) for one in found}


async def _asked(discord: _Discord, allowed: Sequence[str]) -> AsyncIterator[Check]:
    me = await discord.get("/users/@me")
    yield Check("discord token", ok=True, detail=f"{me.get('username')} ({me.get('id')})")
    flags = int((await discord.get("/applications/@me")).get("flags") or 0)
    has_intent = bool(flags & CONTENT_INTENT)
    detail = "on" if has_intent else "off: it hears empty messages"
    yield Check("discord message content intent", ok=has_intent, detail=detail, fix=INTENT)
    there = {str(one["id"]): str(one.get("name")) for one in await discord.get("/users/@me/guilds")}
    if not there:
        yield Check("discord servers", ok=False, detail="the bot is in no server", fix=INVITE)
    named = ", ".join(f"{guild} ({name})" for guild, name in there.items())
    if not allowed:
        fix = f"claudius config set discord.guilds ID; the bot is in: {named or 'none yet'}"
        yield Check("discord servers", ok=False, detail="discord.guilds is empty: nobody is heard", fix=fix)
    for guild in allowed:
        if guild == "*":
            continue
        if guild not in there:
            fix = f"{INVITE}; the bot is in: {named or 'none yet'}"
            yield Check("discord servers", ok=False, detail=f"the bot is not in the server {guild}", fix=fix)
        else:
            yield await _may(discord, guild, there[guild], str(me["id"]))


async def _may(discord: _Discord, guild: str, name: str, me: str) -> Check:
    """Check what the bot's roles permit in a server; a channel may still forbid it."""
    roles = {str(role["id"]): int(role["permissions"]) for role in await discord.get(f"/guilds/{guild}/roles")}
    member = await discord.get(f"/guilds/{guild}/members/{me}")
    has = roles.get(guild, 0)
    for role in member.get("roles") or ():
        has |= roles.get(str(role), 0)
    missing = [] if has & ADMINISTRATOR else [what for what, bit in PERMISSIONS.items() if not has & bit]
    if missing:
        fix = "give its role these permissions: Server Settings, Roles"
        return Check("discord permissions", ok=False, detail=f"{name}: it may not {', '.join(missing)}", fix=fix)
    return Check("discord permissions", ok=True, detail=f"{name}: all that it needs")


class _Discord:
    """The REST API, one request at a time."""

    def __init__(self, session: aiohttp.ClientSession, api_url: str) -> None:
        self._session, self._api_url = session, api_url

    async def get(self, path: str) -> Any:
        """Return the answer. Raises: _Refused, and whatever a request raises."""
        async with self._session.get(self._api_url + path) as answer:
            if answer.status != 200:
                raise _Refused(answer.status)
            return await answer.json(content_type=None)
