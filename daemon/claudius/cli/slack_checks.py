"""Check the setup through Slack's own API: tokens, scopes, Socket Mode, channels. Each fault comes with its fix.

Source: the chat design, section 1.7.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp

from claudius.adapters.slack.manifest import SCOPES
from claudius.cli.checks import Check
from claudius.config import Loaded

PATIENCE_S = 10.0
REINSTALL = "compare the app's manifest with `claudius slack manifest`, save, reinstall the app, copy the new bot token"
TOKEN = "put a token that is in force into .env; docs/slack.md says where Slack shows it"  # noqa: S105 - a message, not a token
FIXES: Mapping[str, str] = {
    "not_allowed_token_type": "SLACK_BOT_TOKEN begins with xoxb-, SLACK_APP_TOKEN with xapp-: put each in its place",
    "account_inactive": "the app was removed from the workspace: install it again, and copy the new bot token",
    "token_revoked": "the token was taken back: install the app again, and copy the new one",
    "socket_mode_not_enabled": "turn Socket Mode on in the app's settings; `claudius slack manifest` has it on",
}


class _Refused(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


async def ask_slack(loaded: Loaded) -> AsyncIterator[Check]:
    """Query Slack with the configured tokens; yield one check per question."""
    bot, app = loaded.secret("SLACK_BOT_TOKEN"), loaded.secret("SLACK_APP_TOKEN")
    for name, token, begins in (("SLACK_BOT_TOKEN", bot, "xoxb-"), ("SLACK_APP_TOKEN", app, "xapp-")):
        if not token:
            fix = f"put {name} ({begins}…) into .env; docs/slack.md says where Slack shows it"
            yield Check("slack", ok=False, detail=f"{name} is not set", fix=fix)
    if not (bot and app):
        return
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE_S)) as session:
        slack = _Slack(session, loaded.config.slack.api_url.rstrip("/") + "/")
        try:
            async for check in _asked(slack, loaded, bot, app):
                yield check
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            detail = f"Slack cannot be reached ({type(error).__name__})"
            yield Check("slack", ok=False, detail=detail, fix="check the network, HTTPS_PROXY, slack.api_url")


async def _asked(slack: _Slack, loaded: Loaded, bot: str, app: str) -> AsyncIterator[Check]:
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
    """The Web API, one call at a time."""

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
            raise _Refused(str(found.get("error") or f"status {answer.status}"))
        return found, frozenset(scope.strip() for scope in scopes.split(",") if scope.strip())
