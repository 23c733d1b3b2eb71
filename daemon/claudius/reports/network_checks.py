"""Check how the networks are set up, through their own APIs and through what was ever heard. Each fault has its fix.

Called by `claudius doctor --live` and `claudius onboard`. Source: the chat design, sections 1.7 and 2.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from claudius.adapters.slack.manifest import CODES, SCOPES
from claudius.config.load import Loaded, load
from claudius.config.schema import SETTINGS, daimons
from claudius.errors import AdapterRefused
from claudius.foreign import listed
from claudius.home import Home
from claudius.proxies import proxy_of
from claudius.reports.opened import records

TIMEOUT = aiohttp.ClientTimeout(total=10.0)
UNREACHABLE = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
SLACK_EVENTS = {
    "mention": "app_mention",
    "message": "message.channels, message.groups, message.im",
    "join": "member_joined_channel",
    "reaction": "reaction_added",
    "home": "app_home_opened",
}
"""Each kind of thing heard, and the event subscription that brings it."""
REINSTALL = "compare the app's manifest with `claudius slack manifest`, save, reinstall the app, copy the new bot token"
TOKEN = "put a valid token into .env; docs/slack.md says where Slack shows it"  # noqa: S105 - a message, not a token
FIXES: Mapping[str, str] = {
    "not_allowed_token_type": "SLACK_BOT_TOKEN begins with xoxb-, SLACK_APP_TOKEN with xapp-: put each in its place",
    "account_inactive": "the app was removed from the workspace: install it again, and copy the new bot token",
    "token_revoked": "the token was revoked: install the app again, and copy the new one",
    "socket_mode_not_enabled": "turn Socket Mode on in the app's settings; `claudius slack manifest` has it on",
}
CONTENT_INTENT = 1 << 18 | 1 << 19
"""The application's flags for MESSAGE CONTENT INTENT, unlimited and limited."""
ADMINISTRATOR = 1 << 3
PERMISSIONS = {
    "Add Reactions": 1 << 6,
    "View Channels": 1 << 10,
    "Send Messages": 1 << 11,
    "Read Message History": 1 << 16,
    "Create Public Threads": 1 << 35,
    "Send Messages in Threads": 1 << 38,
}
"""What the bot needs in Discord, by the names that Discord shows."""
RESET = "reset it at discord.com/developers/applications, your application, Bot, and put the new one into .env"
INTENT = "switch it on: discord.com/developers/applications, Bot, Privileged Gateway Intents, then start again"
INVITE = "open what `claudius discord invite` prints, and choose the server"


class Check(NamedTuple):
    """The result of one check of `claudius doctor` or `claudius onboard`."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


class _Refused(Exception):
    """The network's answer to a refused request: Slack's error code, or Discord's HTTP status."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def networks(home: Home) -> Iterator[Check]:
    """Query each network that has tokens about its setup, and check which events were ever heard."""
    loaded = load(home, os.environ)
    if loaded.secret("SLACK_BOT_TOKEN") and loaded.secret("SLACK_APP_TOKEN"):
        yield from asyncio.run(gathered(ask_slack(loaded)))
        with records(home) as kept:
            found = kept.kinds_heard("slack")
        if found:
            never = [event for kind, event in SLACK_EVENTS.items() if kind not in found]
            detail = f"never heard yet: {'; '.join(never)}" if never else "every kind was heard"
            yield Check("slack events", ok=True, detail=detail)
        else:  # a missing subscription looks like a quiet workspace
            fix = "if it stays silent, it lacks event subscriptions: reinstall it from the manifest"
            yield Check("slack events", ok=False, detail="nothing was ever heard", fix=f"write to it directly; {fix}")
    if loaded.secret("DISCORD_TOKEN"):
        yield from asyncio.run(gathered(ask_discord(loaded)))


async def gathered(checks: AsyncIterator[Check]) -> list[Check]:
    """Return the checks as a list."""
    return [check async for check in checks]


async def ask_slack(loaded: Loaded) -> AsyncIterator[Check]:
    """Query Slack with the configured tokens; yield one check per question."""
    bot, app = loaded.secret("SLACK_BOT_TOKEN"), loaded.secret("SLACK_APP_TOKEN")
    for name, token, begins in (("SLACK_BOT_TOKEN", bot, "xoxb-"), ("SLACK_APP_TOKEN", app, "xapp-")):
        if not token:
            fix = f"put {name} ({begins}…) into .env; docs/slack.md says where Slack shows it"
            yield Check("slack", ok=False, detail=f"{name} is not set", fix=fix)
    if not (bot and app):
        return
    url = loaded.config.slack.api_url.rstrip("/") + "/"
    async with aiohttp.ClientSession(timeout=TIMEOUT, proxy=proxy_of(url)) as session:
        slack = _Slack(session, url)
        try:
            async for check in _slack(slack, loaded, bot, app):
                yield check
        except UNREACHABLE as error:
            detail = f"Slack cannot be reached ({type(error).__name__})"
            yield Check("slack", ok=False, detail=detail, fix="check the network, HTTPS_PROXY, slack.api_url")


async def _slack(slack: _Slack, loaded: Loaded, bot: str, app: str) -> AsyncIterator[Check]:
    try:
        us, granted = await slack.call("auth.test", bot)
    except _Refused as error:
        fix = FIXES.get(error.code, TOKEN)
        yield Check("slack bot token", ok=False, detail=f"SLACK_BOT_TOKEN: {error.code}", fix=fix)
        return
    if not us.get("bot_id") and not bot.startswith("xoxb-"):
        yield Check("slack bot token", ok=False, detail="it is a person's token", fix="put the bot token (xoxb-) there")
        return
    yield Check("slack bot token", ok=True, detail=f"{us.get('user')} in {us.get('team')} ({us.get('team_id')})")
    missing = [scope for scope in SCOPES if granted and scope not in granted]
    for scope in missing:
        detail = f"{scope} is missing: it cannot {SCOPES[scope]}"
        yield Check("slack scope", ok=False, detail=detail, fix=REINSTALL)
    if granted and not missing:
        yield Check("slack scopes", ok=True, detail=f"all {len(SCOPES)}")
    try:
        await slack.call("apps.connections.open", app)
        yield Check("slack app token", ok=True, detail="Socket Mode is on")
    except _Refused as error:
        needs = "make an app-level token with the scope connections:write (Basic Information, App-Level Tokens)"
        fix = needs if error.code == "missing_scope" else FIXES.get(error.code, TOKEN)
        yield Check("slack app token", ok=False, detail=f"SLACK_APP_TOKEN: {error.code}", fix=fix)
    named = [channel for entry in loaded.config.slack.channels if (channel := entry.partition("=")[0]) != "*"]
    for channel in named or await _joined(slack, bot):
        yield await _in_channel(slack, bot, channel)


async def _joined(slack: _Slack, bot: str) -> Sequence[str]:
    """Return one channel that the bot is in: if it may not read that one, it may not read others either."""
    try:
        found, _ = await slack.call("users.conversations", bot, types="public_channel,private_channel", limit="1")
    except _Refused:
        return []
    return [str(one["id"]) for one in (found.get("channels") or ())[:1]]


async def _in_channel(slack: _Slack, bot: str, channel: str) -> Check:
    """Check whether the bot is in a channel that it should hear, and may read its history."""
    try:
        found, _ = await slack.call("conversations.info", bot, channel=channel)
        about = found.get("channel") or {}
        name = f"#{about.get('name') or channel}"
        if not about.get("is_member"):
            detail = f"{name}: the bot is not in it, so nothing is heard there"
            return Check("slack channel", ok=False, detail=detail, fix=f"in {name}: /invite @Claudius")
        page, _ = await slack.call("conversations.history", bot, channel=channel, limit="1")
        for message in page.get("messages") or ():  # a page of Slack's docs says that bot tokens cannot
            await slack.call("conversations.replies", bot, channel=channel, ts=str(message["ts"]), limit="1")
    except _Refused as error:
        is_absent = error.code in ("channel_not_found", "not_in_channel")
        fix = "look at its id in slack.channels, and invite the bot" if is_absent else REINSTALL
        return Check("slack channel", ok=False, detail=f"{channel}: {error.code}", fix=fix)
    return Check("slack channel", ok=True, detail=f"{name}: in it, and may read it and its threads")


class _Slack:
    def __init__(self, session: aiohttp.ClientSession, api_url: str) -> None:
        self._session, self._api_url = session, api_url

    async def call(self, method: str, token: str, **arguments: str) -> tuple[Mapping[str, Any], frozenset[str]]:
        """Return the answer, and the token's scopes. Raises: _Refused, and whatever a request raises."""
        async with self._session.post(
            self._api_url + method, data=arguments, headers={"Authorization": f"Bearer {token}"}
        ) as answer:
            scopes = answer.headers.get("x-oauth-scopes", "")
            found: Mapping[str, Any] = await answer.json(content_type=None)
        if not found.get("ok"):
            raise _Refused(listed(str(found.get("error") or ""), CODES) or f"status {answer.status}")
        return found, frozenset(scope.strip() for scope in scopes.split(",") if scope.strip())


async def ask_discord(loaded: Loaded) -> AsyncIterator[Check]:
    """Query Discord with the configured token; yield one check per question."""
    token = loaded.secret("DISCORD_TOKEN")
    if not token:
        fix = "put the bot's token into .env; docs/discord.md says where Discord shows it"
        yield Check("discord", ok=False, detail="DISCORD_TOKEN is not set", fix=fix)
        return
    try:
        async with _discord_of(loaded) as discord:
            async for check in _discord(discord, loaded.config.discord.guilds):
                yield check
    except _Refused as error:
        is_token = error.code == "401"
        detail = "Discord does not accept it (401)" if is_token else f"Discord answered with status {error.code}"
        yield Check("discord token", ok=False, detail=detail, fix=RESET if is_token else "try again later")
    except UNREACHABLE as error:
        detail = f"Discord cannot be reached ({type(error).__name__})"
        yield Check("discord", ok=False, detail=detail, fix="check the network, HTTPS_PROXY, discord.api_url")


async def servers(loaded: Loaded) -> Mapping[str, str]:
    """Return the servers that the bot is in, id to name; empty if Discord does not answer."""
    try:
        async with _discord_of(loaded) as discord:
            found = await discord.get("/users/@me/guilds")
    except (_Refused, *UNREACHABLE):
        return {}
    return {str(one["id"]): str(one.get("name")) for one in found}


async def application(loaded: Loaded) -> str:
    """Return the id of the token's application; empty if Discord does not answer. Raises: AdapterRefused."""
    try:
        async with _discord_of(loaded) as discord:
            found = await discord.get("/applications/@me")
    except _Refused as error:
        if error.code == "401":
            what = "Discord does not accept it (401)"
            raise AdapterRefused("discord", "DISCORD_TOKEN", what, "put a new one into .env") from error
        return ""
    except UNREACHABLE:
        return ""
    return str(found.get("id") or "")


@asynccontextmanager
async def _discord_of(loaded: Loaded) -> AsyncIterator[_Discord]:
    headers = {"Authorization": f"Bot {loaded.secret('DISCORD_TOKEN')}"}
    url = loaded.config.discord.api_url.rstrip("/")
    async with aiohttp.ClientSession(timeout=TIMEOUT, headers=headers, proxy=proxy_of(url)) as session:
        yield _Discord(session, url)


async def _discord(discord: _Discord, allowed: Sequence[str]) -> AsyncIterator[Check]:
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
    def __init__(self, session: aiohttp.ClientSession, api_url: str) -> None:
        self._session, self._api_url = session, api_url

    async def get(self, path: str) -> Any:
        """Return the answer. Raises: _Refused, and whatever a request raises."""
        async with self._session.get(self._api_url + path) as answer:
            if answer.status != 200:
                raise _Refused(str(answer.status))
            return await answer.json(content_type=None)


PREFIXES: Mapping[str, str] = {
    "xoxb-": "SLACK_BOT_TOKEN",
    "xapp-": "SLACK_APP_TOKEN",
    "sk-ant-": "ANTHROPIC_API_KEY",
    "gsk_": "GROQ_API_KEY",
}
"""How a token begins, and where it belongs."""
FOREIGN: Mapping[str, str] = {
    "xoxp-": "a person's token of Slack",
    "xoxe": "a refresh token of Slack",
    "http": "an address",
}
"""How something begins that is no token of any setting."""
STRICT = ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN")
"""Tokens that always begin as the table says; a key may be of another kind behind a gateway."""
DISCORD_PARTS = 3
"""A bot's token of Discord has three parts, between dots."""
OWN_SERVERS = (
    *("slack.api_url", "discord.api_url", "discord.gateway_url"),
    *("anthropic.base_url", "openai.base_url", "alerts.webhook"),
)
ANSWERS_S = 2.0
"""How long a name may take to be resolved, or a server on this machine to be reached."""


def misplaced(name: str, value: str) -> str:
    """Return why a secret cannot be what its name says; empty = nothing speaks against it. Pure."""
    begins = next((prefix for prefix, owner in PREFIXES.items() if owner == name), "")
    for prefix, owner in PREFIXES.items():
        if value.startswith(prefix) and owner != name:
            return f"it begins with {prefix} and belongs into {owner}"
    for prefix, what in FOREIGN.items():
        if value.startswith(prefix):
            return f"it is {what}"
    if name in STRICT and not value.startswith(begins):
        return f"it does not begin with {begins}"
    if name == "DISCORD_TOKEN" and value.count(".") + 1 != DISCORD_PARTS:
        return "it does not have three parts, between dots: it may be the application's secret or key"
    return "it contains a space" if any(char.isspace() for char in value) else ""


def exchanged_tokens(loaded: Loaded) -> Iterator[Check]:
    """Check whether each secret can be what its name says."""
    for name in (*PREFIXES.values(), "DISCORD_TOKEN"):
        value = loaded.secret(name)
        if value and (why := misplaced(name, value)):
            yield Check("tokens", ok=False, detail=f"{name}: {why}", fix="put each token into its own line of .env")


def own_servers(loaded: Loaded) -> Iterator[Check]:
    """Check whether each server that the settings name exists: its name resolves, and on this machine it listens."""
    named = dict(_named(loaded))
    with ThreadPoolExecutor(max_workers=max(1, len(named))) as threads:
        for (key, url), why in zip(named.items(), threads.map(_dead, named.values()), strict=True):
            if why:
                fix = f"correct {key}, or start what should listen there"
                yield Check("servers", ok=False, detail=f"{key} = {url}: {why}", fix=fix)


def _named(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """Yield each setting that names a server of one's own, with its address."""
    for key in OWN_SERVERS:
        section, _, name = key.partition(".")
        value = str(getattr(getattr(loaded.config, section), name))
        if value and value != SETTINGS[key].default:
            yield key, value
    for name, daimon in daimons(loaded.config).items():
        if daimon.enabled:
            yield f"{name}.url", daimon.url


def _dead(url: str) -> str:
    """Return why nothing can be there; empty if something may. Resolves the name; tries ports of this machine only."""
    host = url
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme in ("https", "wss") else 80)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, ValueError):
        return f"no server is called {host!r}"
    if not all(ip_address(str(address[4][0]).partition("%")[0]).is_loopback for address in found):
        return ""
    for family, kind, _, _, address in found:
        with socket.socket(family, kind) as trying:
            trying.settimeout(ANSWERS_S)
            if trying.connect_ex(address) == 0:
                return ""
    return f"nothing listens on port {port} of this machine"
