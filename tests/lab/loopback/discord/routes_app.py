"""The app itself, its commands, and what it may know of guilds and users.

Source: docs.discord.com/developers/resources/<application, guild, user>, …/interactions/application-commands.
"""

import re
from collections.abc import Mapping
from typing import Any

from lab.loopback.discord.asking import Asking
from lab.loopback.discord.intents import application_flags
from lab.loopback.discord.rules import Refused, invalid
from lab.loopback.discord.shapes import role_json
from lab.loopback.discord.state import APP, BOT_USER, Guild

EMPTY: tuple[int, Any] = (204, None)
MAX_COMMANDS = 100


def me(asking: Asking) -> tuple[int, Any]:
    """Give our bot's user."""
    facts = {"mfa_enabled": False, "verified": True, "locale": "en-US", "flags": 0, "email": None}
    return 200, asking.service.shapes.user(BOT_USER) | facts


def user(asking: Asking) -> tuple[int, Any]:
    """Give a user."""
    if asking.path["user_id"] not in asking.service.space.users:
        raise Refused(10013)
    return 200, asking.service.shapes.user(asking.path["user_id"])


def my_guilds(asking: Asking) -> tuple[int, Any]:
    """List the guilds that our bot is in."""
    return 200, [
        {"id": guild.id, "name": guild.name, "icon": None, "owner": False, "permissions": "0", "features": []}
        for guild in asking.service.space.guilds.values()
        if BOT_USER in guild.members
    ]


def gateway(asking: Asking) -> tuple[int, Any]:
    """Say where sockets are opened, and how many sessions may be started still."""
    service = asking.service
    limit = {
        "total": service.settings.session_starts,
        "remaining": service.sessions.remaining(),
        "reset_after": service.sessions.resets_after_ms(),
        "max_concurrency": 1,
    }
    return 200, {"url": service.gateway_url, "shards": 1, "session_start_limit": limit}


def application(asking: Asking) -> tuple[int, Any]:
    """Give the app."""
    owner = next((guild.owner for guild in asking.service.space.guilds.values()), BOT_USER)
    return 200, {
        "id": APP,
        "name": "Claudius",
        "icon": None,
        "description": "",
        "summary": "",
        "bot_public": False,
        "bot_require_code_grant": False,
        "verify_key": "0" * 64,
        "owner": asking.service.shapes.user(owner),
        "team": None,
        "flags": application_flags(asking.service.settings.privileges),
        "bot": asking.service.shapes.user(BOT_USER),
    }


def commands(asking: Asking) -> tuple[int, Any]:
    """List the commands, of a guild or everywhere."""
    return 200, _registered(asking)


def overwrite_commands(asking: Asking) -> tuple[int, Any]:
    """Put these commands in place of all; one that keeps its name keeps its id."""
    _check_app(asking)
    if len(asking.items) > MAX_COMMANDS:
        raise Refused(30032, message=f"Maximum number of application commands reached ({MAX_COMMANDS}).")
    before = {(one["name"], one["type"]): one["id"] for one in _registered(asking)}
    made = []
    for number, wanted in enumerate(asking.items):
        # Source: docs …/application-commands, "Application Command Naming"
        if wanted.get("type", 1) == 1 and not re.fullmatch(r"[-_'\w]{1,32}", str(wanted.get("name"))):
            raise invalid(f"{number}.name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
        command = {"type": 1, "options": [], "description": "", **wanted}
        known = before.get((command["name"], command["type"]))
        guild = asking.path.get("guild_id")
        facts = {"id": known or asking.service.space.next_id(), "application_id": APP}
        made.append(
            command | facts | {"version": asking.service.space.next_id()} | ({"guild_id": guild} if guild else {})
        )
    asking.service.space.commands[asking.path.get("guild_id", "")] = made
    return 200, made


def _registered(asking: Asking) -> list[dict[str, Any]]:
    _check_app(asking)
    return asking.service.space.commands.get(asking.path.get("guild_id", ""), [])


def _check_app(asking: Asking) -> None:
    if asking.path["application_id"] != APP:
        raise Refused(10002, status=404, message="Unknown Application")
    if "guild_id" in asking.path:
        _guild(asking)


def _guild(asking: Asking) -> Guild:
    found = asking.service.space.guilds.get(asking.path["guild_id"])
    if found is None:
        raise Refused(10004)
    if BOT_USER not in found.members:
        raise Refused(50001)
    return found


def guild(asking: Asking) -> tuple[int, Any]:
    """Give a guild."""
    return 200, asking.service.shapes.guild(_guild(asking))


def channels(asking: Asking) -> tuple[int, Any]:
    """List the channels of a guild, without threads."""
    found = asking.service.space.guild_channels(_guild(asking).id)
    return 200, [asking.service.shapes.channel(one) for one in found if not one.is_thread]


def member(asking: Asking) -> tuple[int, Any]:
    """Give a person's membership."""
    where = _guild(asking)
    found = where.members.get(asking.path["user_id"])
    if found is None:
        raise Refused(10007 if asking.path["user_id"] in asking.service.space.users else 10013)
    return 200, asking.service.shapes.member(where, found)


def roles(asking: Asking) -> tuple[int, Any]:
    """List the roles of a guild, as `claudius doctor --live` asks for them."""
    return 200, [role_json(role) for role in _guild(asking).roles.values()]


ROUTES: Mapping[str, Any] = {
    "get_current_user": me,
    "get_user": user,
    "get_current_user_guilds": my_guilds,
    "get_gateway_bot": gateway,
    "get_current_bot_application": application,
    "get_current_application": application,
    "get_global_application_commands": commands,
    "get_guild_application_commands": commands,
    "bulk_overwrite_global_application_commands": overwrite_commands,
    "bulk_overwrite_guild_application_commands": overwrite_commands,
    "get_guild": guild,
    "get_guild_channels": channels,
    "get_guild_member": member,
    "get_guild_roles": roles,
}
