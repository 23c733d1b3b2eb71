"""Being let in: who we are, and whether a session may be started, so that a bad token is named, not tried for ever."""

from __future__ import annotations

import discord

from claudius.adapters.discord.gateway import Gateway, NotNow
from claudius.adapters.discord.hearing import Us
from claudius.adapters.discord.refusals import FAILURES, NETWORK, TOKEN
from claudius.errors import AdapterRefused

REMEDY = "reset it at discord.com/developers/applications, your application, Bot, and put the new one into .env"


async def enter(gateway: Gateway, token: str) -> Us:
    """Log in; return who we are. Raises: AdapterRefused where the token will never do, NotNow."""
    if not token.strip():
        raise AdapterRefused(NETWORK, TOKEN, "it is not set", "put the bot's token into .env")
    try:
        await gateway.login(token)
        await gateway.check_starts()
    except discord.LoginFailure as error:
        raise AdapterRefused(NETWORK, TOKEN, "Discord does not accept it (401)", REMEDY) from error
    except FAILURES as error:
        raise NotNow(_words(error)) from error
    user, application = gateway.user, gateway.application_id
    if user is None or application is None:
        raise NotNow("Discord did not say who we are")
    return Us(str(user.id), str(application), user.display_name)


def _words(error: BaseException) -> str:
    return f"status {error.status}" if isinstance(error, discord.HTTPException) else type(error).__name__
