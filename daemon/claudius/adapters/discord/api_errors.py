"""What a failed call of the API means for what was to be said: refused for good, later, or perhaps visible.

Source: the reliability design, sections 6 and 7; docs.discord.com/developers/topics/opcodes-and-status-codes.
"""

from __future__ import annotations

import aiohttp
import discord

from claudius.errors import AdapterRefused, DeliveryError, DeliveryLater, DeliveryRefused, DeliveryUnknown

NETWORK, TOKEN = "discord", "DISCORD_TOKEN"
MISREAD = (LookupError, TypeError, ValueError, AttributeError)
"""What the library raises of an event or an answer that has another shape than Discord's."""
CLOSED = RuntimeError
"""What a call of the API raises where its client was closed meanwhile: nothing was sent."""
FAILURES = (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError, CLOSED, *MISREAD)
"""All that a call of the API may raise."""

UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, MISSING_ACCESS, THREAD_EXISTS = 10003, 10008, 50001, 160004

UNREACHED_S = 5.0
WAITS_S = {401: 60.0, 429: 60.0}
"""How long to wait where our token is at fault, not what was to be said; where we are shut out for a while."""


def code_of(error: BaseException) -> int:
    """Return Discord's own code for a failure; 0 where it gave none. Pure."""
    return error.code if isinstance(error, discord.HTTPException) else 0


def classify(error: BaseException) -> DeliveryError:
    """Return what a failed post means. Pure."""
    if isinstance(error, (aiohttp.ClientConnectorError, CLOSED)):
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
    """Return what a failed look into the history means: nothing was said, so nothing is in doubt but the look. Pure."""
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
    """Return what a close code of the gateway means; None where it may be tried again. Pure."""
    if code not in _CLOSED:
        return None
    setting, detail, fix = _CLOSED[code]
    return AdapterRefused(NETWORK, setting, f"{detail} ({code})", fix)
