"""Channels and threads. Source: docs.discord.com/developers/resources/channel."""

from collections.abc import Mapping
from typing import Any

from lab.loopback.discord.asking import Asking
from lab.loopback.discord.rules import Refused, channel_of, invalid, may, message_of, need
from lab.loopback.discord.state import BOT_USER, Channel, ChannelKind

EMPTY: tuple[int, Any] = (204, None)
NAME_CHARS = 100
_ON_MESSAGE: Mapping[ChannelKind, ChannelKind] = {"text": "public_thread", "announcement": "announcement_thread"}


def _place(asking: Asking) -> Channel:
    return channel_of(asking.service.space, asking.path["channel_id"])


def get(asking: Asking) -> tuple[int, Any]:
    """Give a channel."""
    return 200, asking.service.shapes.channel(_place(asking))


def start_on_message(asking: Asking) -> tuple[int, Any]:
    """Open a thread on a message, whose id it takes."""
    service, parent = asking.service, _place(asking)
    kind = _ON_MESSAGE.get(parent.kind)
    if kind is None:
        raise Refused(50024)
    starter = message_of(parent, asking.path["message_id"])
    need(service.space, parent, "create_public_threads")
    if starter.id in service.space.channels:
        raise Refused(160004)
    thread = service.start_thread(parent, BOT_USER, _name(asking), starter=starter, kind=kind, minutes=_minutes(asking))
    _enter(asking, thread, starter.id)
    return 201, service.shapes.channel(thread)


def _name(asking: Asking) -> str:
    name = str(asking.body.get("name") or "").strip()
    if not 1 <= len(name) <= NAME_CHARS:
        raise invalid("name", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {NAME_CHARS} in length.")
    return name


def _minutes(asking: Asking) -> int:
    minutes = int(asking.body.get("auto_archive_duration") or 1_440)
    if minutes not in (60, 1_440, 4_320, 10_080):
        raise invalid("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of (60, 1440, 4320, 10080).")
    return minutes


def _enter(asking: Asking, thread: Channel, message: str) -> None:
    asking.service.journal.enter(
        "app", "thread", thread.parent or "", message=message, user=BOT_USER, text=thread.name, raw=asking.call.raw
    )


def join(asking: Asking) -> tuple[int, Any]:
    """Come into a thread."""
    thread = _place(asking)
    if thread.is_archived:
        raise Refused(50083)
    if BOT_USER not in thread.members:
        asking.service.join_thread(thread, BOT_USER)
    return EMPTY


def member(asking: Asking) -> tuple[int, Any]:
    """Give a person's membership of a thread. Source: docs …/resources/channel, "Get Thread Member"."""
    thread, user = _place(asking), asking.path["user_id"]
    if user not in thread.members:
        raise Refused(10007)
    return 200, asking.service.shapes.thread_member(thread, user)


def active(asking: Asking) -> tuple[int, Any]:
    """List the active threads of a guild that our bot sees."""
    shapes = asking.service.shapes
    guild = asking.service.space.guilds.get(asking.path["guild_id"])
    if guild is None or BOT_USER not in guild.members:
        raise Refused(50001 if guild else 10004)
    threads = [
        one
        for one in asking.service.space.guild_channels(guild.id)
        if one.is_thread and not one.is_archived and may(asking.service.space, BOT_USER, one, "view_channel")
    ]
    joined = [shapes.thread_member(one, BOT_USER) for one in threads if BOT_USER in one.members]
    return 200, {"threads": [shapes.channel(one) for one in threads], "members": joined}


def open_dm(asking: Asking) -> tuple[int, Any]:
    """Give the DM with a person; open it if need be."""
    space = asking.service.space
    user = str(asking.body.get("recipient_id"))
    if user not in space.users or user == BOT_USER:
        raise Refused(10013)
    return 200, asking.service.shapes.channel(space.dm(user))


ROUTES: Mapping[str, Any] = {
    "get_channel": get,
    "start_thread_from_message": start_on_message,
    "join_thread": join,
    "get_thread_member": member,
    "list_active_guild_threads": active,
    "create_dm": open_dm,
}
