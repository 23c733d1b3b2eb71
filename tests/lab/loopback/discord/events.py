"""The events that the app is told, as the gateway words them.

Source: docs.discord.com/developers/events/gateway-events.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.loopback.discord import intents
from lab.loopback.discord.permissions import Role
from lab.loopback.discord.shapes import Shapes, emoji_json, role_json
from lab.loopback.discord.state import BOT_USER, Channel, Guild, Message


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `intents`: any of these bits lets it through, 0 = always. `channel`: told to who sees it."""

    name: str
    body: dict[str, Any]
    intents: int = 0
    channel: Channel | None = None
    message: Message | None = None
    """Whose content is withheld from a session without the intent."""
    needs_view: bool = True
    """False: told even if the app does not see the channel. Apps are told of every channel, but not of every thread."""

    @property
    def about(self) -> tuple[str, str]:
        """The channel and the message that it is about; empty where there is none."""
        message = self.message.id if self.message else str(self.body.get("message_id", ""))
        return (self.channel.id if self.channel else ""), message


def _with_guild(channel: Channel, body: dict[str, Any]) -> dict[str, Any]:
    return body if channel.guild is None else body | {"guild_id": channel.guild}


def _by_place(channel: Channel, in_guild: int, in_dm: int) -> int:
    return in_dm if channel.guild is None else in_guild


def messaged(shapes: Shapes, channel: Channel, message: Message, *, is_new: bool) -> Event:
    """Tell of a message, new or changed; one in a guild comes with its author's membership, unless by a webhook."""
    body = _with_guild(channel, shapes.message(message))
    if channel.guild and message.webhook_id is None:
        guild = shapes.space.guilds[channel.guild]
        if member := guild.members.get(message.author):
            body["member"] = shapes.member(guild, member, has_user=False)
    needed = _by_place(channel, intents.GUILD_MESSAGES, intents.DIRECT_MESSAGES)
    return Event("MESSAGE_CREATE" if is_new else "MESSAGE_UPDATE", body, needed, channel, message)


def deleted(channel: Channel, messages: Sequence[str], *, is_bulk: bool = False) -> Event:
    """Tell that messages are gone."""
    needed = _by_place(channel, intents.GUILD_MESSAGES, intents.DIRECT_MESSAGES)
    if is_bulk:
        body: dict[str, Any] = {"ids": list(messages), "channel_id": channel.id}
        return Event("MESSAGE_DELETE_BULK", _with_guild(channel, body), needed, channel)
    body = {"id": messages[0], "channel_id": channel.id}
    return Event("MESSAGE_DELETE", _with_guild(channel, body), needed, channel)


def reacted(shapes: Shapes, channel: Channel, message: Message, user: str, emoji: str, *, is_added: bool) -> Event:
    """Tell that a person put a reaction on a message, or took it off."""
    body: dict[str, Any] = {
        "user_id": user,
        "channel_id": channel.id,
        "message_id": message.id,
        "emoji": emoji_json(emoji),
        "burst": False,
        "type": 0,
    }
    if is_added:
        body["message_author_id"] = message.author
        if channel.guild and (member := shapes.space.guilds[channel.guild].members.get(user)):
            body["member"] = shapes.member(shapes.space.guilds[channel.guild], member)
    needed = _by_place(channel, intents.GUILD_REACTIONS, intents.DIRECT_REACTIONS)
    name = "MESSAGE_REACTION_ADD" if is_added else "MESSAGE_REACTION_REMOVE"
    return Event(name, _with_guild(channel, body), needed, channel)


def typing(shapes: Shapes, channel: Channel, user: str) -> Event:
    """Tell that a person writes."""
    now = int(shapes.space.clock.now())
    body = _with_guild(channel, {"channel_id": channel.id, "user_id": user, "timestamp": now})
    return Event("TYPING_START", body, _by_place(channel, intents.GUILD_TYPING, intents.DIRECT_TYPING), channel)


def placed(shapes: Shapes, channel: Channel, what: str) -> Event:
    """Tell of a channel or a thread; `what` is CREATE, UPDATE or DELETE."""
    if what == "DELETE":
        facts = shapes.channel(channel)
        body = {name: facts[name] for name in ("id", "guild_id", "parent_id", "type")} if channel.is_thread else facts
    else:
        body = shapes.channel(channel)
    if channel.is_thread and what == "CREATE":
        body["newly_created"] = True
    kind = "THREAD" if channel.is_thread else "CHANNEL"
    return Event(f"{kind}_{what}", body, intents.GUILDS, channel, needs_view=channel.is_thread)


def thread_joined(shapes: Shapes, thread: Channel, user: str) -> Event:
    """Tell that a person came into a thread; without the members intent an app hears it of itself alone."""
    body = {
        "id": thread.id,
        "guild_id": thread.guild,
        "member_count": len(thread.members),
        "added_members": [shapes.thread_member(thread, user)],
    }
    return Event("THREAD_MEMBERS_UPDATE", body, intents.GUILDS if user == BOT_USER else intents.GUILD_MEMBERS, thread)


def moved(shapes: Shapes, guild: Guild, user: str, *, is_joining: bool) -> Event:
    """Tell that a person came into a guild or left it."""
    if is_joining:
        return Event("GUILD_MEMBER_ADD", shapes.member(guild, guild.members[user]), intents.GUILD_MEMBERS)
    body = {"guild_id": guild.id, "user": shapes.user(user)}
    return Event("GUILD_MEMBER_REMOVE", body, intents.GUILD_MEMBERS)


def member_changed(shapes: Shapes, guild: Guild, user: str) -> Event:
    """Tell of a member's new roles; of itself an app hears without the intent."""
    body = shapes.member(guild, guild.members[user])
    return Event("GUILD_MEMBER_UPDATE", body, 0 if user == BOT_USER else intents.GUILD_MEMBERS)


def role_changed(guild: Guild, role: Role, what: str) -> Event:
    """Tell of a role; `what` is CREATE or UPDATE."""
    return Event(f"GUILD_ROLE_{what}", {"guild_id": guild.id, "role": role_json(role)}, intents.GUILDS)


def guild_entered(shapes: Shapes, guild: Guild, *, has_all_members: bool) -> Event:
    """Tell all of a guild."""
    return Event("GUILD_CREATE", shapes.guild(guild, has_all_members=has_all_members), intents.GUILDS)


def guild_left(guild: Guild) -> Event:
    """Tell that our bot is in a guild no more."""
    return Event("GUILD_DELETE", {"id": guild.id}, intents.GUILDS)
