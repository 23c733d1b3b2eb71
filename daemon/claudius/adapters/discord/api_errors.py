"""Classify failed API calls: the delivery was refused for good, must be tried later, or may have succeeded.

Source: the reliability design, sections 6 and 7; docs.discord.com/developers/topics/opcodes-and-status-codes.
"""

from __future__ import annotations

import aiohttp
import discord

from claudius.adapters.chat_adapter import is_refused_by_proxy
from claudius.adapters.incoming import MISREAD
from claudius.errors import AdapterRefused, DeliveryError, DeliveryLater, DeliveryRefused, DeliveryUnknown

NETWORK, TOKEN = "discord", "DISCORD_TOKEN"
CLOSED = RuntimeError
"""What an API call raises if its client was closed meanwhile: nothing was sent."""
FAILURES = (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError, CLOSED, *MISREAD)
"""Every error that an API call may raise."""

UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, MISSING_ACCESS, THREAD_EXISTS = 10003, 10008, 50001, 160004

UNREACHED_S = 5.0
WAITS_S = {401: 60.0, 429: 60.0}
"""How long to wait, by status: 401 = our token is at fault, not the message; 429 = we are shut out for a while."""


def code_of(error: BaseException) -> int:
    """Return Discord's error code for a failure, or 0 if it gave none. Pure."""
    return error.code if isinstance(error, discord.HTTPException) else 0


def classify(error: BaseException) -> DeliveryError:
    """Return the delivery error that a failed post means. Pure."""
    if isinstance(error, (aiohttp.ClientConnectorError, CLOSED)) or is_refused_by_proxy(error):
        return DeliveryLater(UNREACHED_S)
    if isinstance(error, discord.RateLimited):
        return DeliveryLater(error.retry_after)
    if not isinstance(error, discord.HTTPException):
        return DeliveryUnknown(type(error).__name__)
    if error.status in WAITS_S:
        return DeliveryLater(WAITS_S[error.status])
    if error.status == 408 or error.status >= 500:
        return DeliveryUnknown(f"status {error.status}")
    return DeliveryRefused(str(error.code or error.status))


def classify_look(error: BaseException) -> DeliveryError:
    """Return the delivery error that a failed history lookup means.

    Nothing was posted, so only the lookup is in doubt. Pure.
    """
    if isinstance(error, discord.HTTPException) and error.status == 401:
        return DeliveryRefused("401")
    return classify(error)


_CLOSED = {
    4004: (TOKEN, "Discord does not accept it", "reset it at discord.com/developers/applications, put it into .env"),
    4010: ("the gateway", "it was asked for a shard that there is not", "report this as a bug"),
    4011: ("the gateway", "the bot is in too many servers for one connection", "leave some: there is no sharding here"),
    4012: ("discord.gateway_url", "it does not speak this version", "take the setting out: the default is right"),
    4013: ("the gateway", "it does not know what it was asked to tell", "report this as a bug"),
    4014: (
        "MESSAGE CONTENT INTENT",
        "it is off",
        "enable MESSAGE CONTENT INTENT at discord.com/developers/applications, your application, Bot",
    ),
}
"""Why a socket is closed for good. Source: the same page, "Gateway Close Event Codes"."""


def refusal(code: int) -> AdapterRefused | None:
    """Return the refusal that a gateway close code means, or None if connecting may be tried again. Pure."""
    if code not in _CLOSED:
        return None
    setting, detail, fix = _CLOSED[code]
    return AdapterRefused(NETWORK, setting, f"{detail} ({code})", fix)
