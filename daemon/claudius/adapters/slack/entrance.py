"""Being let in: who we are, and a first ticket, each asked once, so that a bad token is named, not tried for ever."""

from __future__ import annotations

from msgspec import Struct
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.slack.hearing import NETWORK, Us
from claudius.adapters.slack.refusals import FAILURES, NOT_NOW, code_of
from claudius.errors import AdapterRefused

BOT_TOKEN, APP_TOKEN = "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"
BOT = "xoxb-"
"""What a bot's token begins with."""
TRANSIENT = frozenset(
    {*NOT_NOW, "fatal_error", "internal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
)
SOCKET_MODE = "turn Socket Mode on in the app's settings; `claudius slack manifest` has it on"
REMEDIES = {
    "missing_scope": "give the app-level token the scope connections:write (Basic Information, App-Level Tokens)",
    "not_allowed_token_type": "SLACK_BOT_TOKEN begins with xoxb-, SLACK_APP_TOKEN with xapp-: put each in its place",
    "socket_mode_not_enabled": SOCKET_MODE,
    "link_disabled": SOCKET_MODE,
}
REMEDY = "put a token that is in force into .env; docs/slack.md says where Slack shows it"


class LetIn(Struct, frozen=True):
    """What Slack gave at the door."""

    us: Us
    ticket: str
    """The address of the first socket; it opens one, once."""


class NotNow(Exception):
    """Slack cannot be reached or does not answer now."""


async def enter(client: AsyncWebClient, app_token: str) -> LetIn:
    """Ask who we are and for a socket. Raises: AdapterRefused where a token will never do, NotNow."""
    setting = BOT_TOKEN
    try:
        found = await client.auth_test()
        us = Us(*(str(found.get(key) or "") for key in ("team_id", "user_id", "bot_id", "enterprise_id")))
        if not us.bot and not (client.token or "").startswith(BOT):
            raise AdapterRefused(NETWORK, BOT_TOKEN, "it is a person's token", "put the bot token (xoxb-) into .env")
        setting = APP_TOKEN
        opened = await client.apps_connections_open(app_token=app_token)
    except FAILURES as error:
        code = code_of(error)
        if not code or code in TRANSIENT:
            raise NotNow(code or type(error).__name__) from error
        raise AdapterRefused(NETWORK, setting, code, REMEDIES.get(code, REMEDY)) from error
    return LetIn(us, str(opened.get("url") or ""))
