"""Gateway intents: what an app asked to be told, and what a message shows it.

Source: docs.discord.com/developers/events/gateway, "Gateway Intents".
"""

from collections.abc import Mapping
from typing import Any

from lab.loopback.discord.settings import Privilege
from lab.loopback.discord.state import BOT_USER, Channel, Message

GUILDS, GUILD_MEMBERS, GUILD_PRESENCES, GUILD_MESSAGES, GUILD_REACTIONS = 1 << 0, 1 << 1, 1 << 8, 1 << 9, 1 << 10
GUILD_TYPING, DIRECT_MESSAGES, DIRECT_REACTIONS, DIRECT_TYPING, MESSAGE_CONTENT = (
    1 << 11,
    1 << 12,
    1 << 13,
    1 << 14,
    1 << 15,
)

_KNOWN = sum(1 << bit for bit in (*range(17), 20, 21, 24, 25))
_PRIVILEGED: Mapping[Privilege, int] = {
    "guild_members": GUILD_MEMBERS,
    "guild_presences": GUILD_PRESENCES,
    "message_content": MESSAGE_CONTENT,
}
_APPLICATION_FLAGS: Mapping[Privilege, int] = {
    "guild_presences": 1 << 13,
    "guild_members": 1 << 15,
    "message_content": 1 << 19,
}
"""The `…_LIMITED` ones. Source: docs.discord.com/developers/resources/application, "Application Flags"."""


def wrong(intents: int, privileges: frozenset[Privilege]) -> int:
    """Give the close code for intents that cannot be had; 0 = they can."""
    if intents & ~_KNOWN:
        return 4013
    if any(intents & bit and name not in privileges for name, bit in _PRIVILEGED.items()):
        return 4014
    return 0


def application_flags(privileges: frozenset[Privilege]) -> int:
    """Give the flags of an application that has these privileges."""
    return sum(_APPLICATION_FLAGS[name] for name in privileges)


def shown(body: dict[str, Any], message: Message, channel: Channel, *, has_content: bool) -> dict[str, Any]:
    """Empty what a message says, unless the app may read it: in DMs, where it is mentioned, and its own.

    Source: the same page, "Message Content Intent".
    """
    if has_content or channel.guild is None or message.author == BOT_USER or BOT_USER in message.mentions:
        return body
    return body | {"content": "", "embeds": [], "attachments": [], "components": []}
