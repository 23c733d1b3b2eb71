"""Users, channels and messages as the API writes them. Pure.

Source: docs.discord.com/developers/resources/<user, guild, channel, message>.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from lab.loopback.discord.permissions import Role
from lab.loopback.discord.rules import sees
from lab.loopback.discord.state import (
    BOT_USER,
    HAS_THREAD,
    KINDS,
    Channel,
    File,
    Guild,
    Member,
    Message,
    Space,
    User,
    stamp,
)


@dataclass(frozen=True, slots=True)
class Shapes:
    """Writes what a space holds. `url` is where files are fetched; a file's URL is good for `cdn_life_s`."""

    space: Space
    url: str
    cdn_life_s: float

    def user(self, user: str) -> dict[str, Any]:
        """Write a user; one who is gone keeps his id."""
        return user_json(self.space.users.get(user) or User(user, "Deleted User"))

    def member(self, guild: Guild, member: Member, *, has_user: bool = True) -> dict[str, Any]:
        """Write a membership; inside events of messages it stands without its user."""
        body = {
            "roles": list(member.roles),
            "nick": member.nick,
            "avatar": None,
            "joined_at": stamp(member.joined_at),
            "premium_since": None,
            "deaf": False,
            "mute": False,
            "flags": 0,
            "pending": False,
            "communication_disabled_until": None,
        }
        return body | ({"user": self.user(member.user), "guild_id": guild.id} if has_user else {})

    def channel(self, channel: Channel) -> dict[str, Any]:
        """Write a channel, a thread or a DM."""
        last = channel.messages[-1].id if channel.messages else None
        body: dict[str, Any] = {"id": channel.id, "type": KINDS[channel.kind], "last_message_id": last, "flags": 0}
        if channel.guild is None:
            others = [self.user(user) for user in channel.members if user != BOT_USER]
            return body | {"recipients": others}
        body |= {"guild_id": channel.guild, "name": channel.name, "parent_id": channel.parent, "rate_limit_per_user": 0}
        if channel.is_thread:
            return body | self._thread(channel)
        overwrites = [
            {"id": one.id, "type": 0 if one.is_role else 1, "allow": str(one.allow), "deny": str(one.deny)}
            for one in channel.overwrites.values()
        ]
        body |= {"permission_overwrites": overwrites, "position": 0, "nsfw": False, "topic": None}
        return body | ({"bitrate": 64_000, "user_limit": 0} if channel.kind in ("voice", "stage") else {})

    def _thread(self, thread: Channel) -> dict[str, Any]:
        body: dict[str, Any] = {
            "owner_id": thread.owner,
            "message_count": len(thread.messages),
            "total_message_sent": len(thread.messages),
            "member_count": len(thread.members),
            "thread_metadata": {
                "archived": thread.is_archived,
                "archive_timestamp": stamp(thread.archived_at),
                "auto_archive_duration": thread.auto_archive_minutes,
                "locked": thread.is_locked,
            },
        }
        if BOT_USER in thread.members:
            body["member"] = self.thread_member(thread, BOT_USER)
        return body

    def thread_member(self, thread: Channel, user: str) -> dict[str, Any]:
        """Write who joined a thread."""
        return {"id": thread.id, "user_id": user, "join_timestamp": stamp(thread.archived_at), "flags": 0}

    def guild(self, guild: Guild, *, has_all_members: bool = False) -> dict[str, Any]:
        """Write a guild as `GUILD_CREATE` does: every channel, the active threads that our bot sees.

        Of members it is told only of itself without the intent.
        """
        space = self.space
        places = list(space.guild_channels(guild.id))
        threads = [one for one in places if one.is_thread and not one.is_archived and sees(space, BOT_USER, one)]
        members = guild.members.values() if has_all_members else [guild.members[BOT_USER]]
        return {
            "id": guild.id,
            "name": guild.name,
            "owner_id": guild.owner,
            "icon": None,
            "features": [],
            "emojis": [],
            "stickers": [],
            "region": "deprecated",
            "afk_channel_id": None,
            "afk_timeout": 300,
            "system_channel_id": None,
            "verification_level": 0,
            "default_message_notifications": 0,
            "explicit_content_filter": 0,
            "mfa_level": 0,
            "premium_tier": 0,
            "nsfw_level": 0,
            "preferred_locale": guild.locale,
            "roles": [role_json(role) for role in guild.roles.values()],
            "joined_at": stamp(guild.members[BOT_USER].joined_at),
            "large": False,
            "unavailable": False,
            "member_count": len(guild.members),
            "members": [self.member(guild, member) for member in members],
            "channels": [self.channel(one) for one in places if not one.is_thread],
            "threads": [self.channel(one) for one in threads],
            "voice_states": [],
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
        }

    def author(self, message: Message) -> dict[str, Any]:
        """Write who posted a message: a webhook has no membership, and its name is the message's own."""
        if message.webhook_id is None or message.author == BOT_USER:
            return self.user(message.author)
        return user_json(User(message.webhook_id, message.webhook_name or "webhook", is_bot=True))

    def message(self, message: Message, *, is_referenced: bool = False) -> dict[str, Any]:
        """Write a message as the API returns it."""
        body: dict[str, Any] = {
            "id": message.id,
            "channel_id": message.channel,
            "type": message.kind,
            "content": message.content,
            "author": self.author(message),
            "timestamp": stamp(message.at),
            "edited_timestamp": None if message.edited_at is None else stamp(message.edited_at),
            "tts": False,
            "pinned": False,
            "mention_everyone": message.mention_everyone,
            "mentions": [self.user(user) for user in message.mentions],
            "mention_roles": list(message.mention_roles),
            "attachments": [self.file(self.space.files[file]) for file in message.files],
            "embeds": list(message.embeds),
            "components": list(message.components),
            "flags": message.flags,
        }
        optional = {
            "nonce": message.nonce,
            "webhook_id": message.webhook_id,
            "application_id": message.application_id,
            "interaction_metadata": message.interaction,
            "message_reference": message.reference,
        }
        body |= {name: value for name, value in optional.items() if value is not None}
        if message.reactions:
            body["reactions"] = [_reaction_json(emoji, users) for emoji, users in message.reactions.items()]
        if message.flags & HAS_THREAD and (thread := self.space.channels.get(message.id)):
            body["thread"] = self.channel(thread)
        if message.reference and message.kind != 18 and not is_referenced:
            body["referenced_message"] = self._referenced(message.reference)
        return body | message.fields

    def _referenced(self, reference: dict[str, Any]) -> dict[str, Any] | None:
        channel = self.space.channels.get(str(reference.get("channel_id")))
        found = channel.find(str(reference.get("message_id"))) if channel else None
        return self.message(found, is_referenced=True) if found else None

    def file(self, file: File) -> dict[str, Any]:
        """Write an attachment, with an URL that is good for a while."""
        expires = f"{int(self.space.clock.now() + self.cdn_life_s):x}"
        path = f"attachments/{file.channel}/{file.id}/{file.name}"
        url = f"{self.url}/{path}?ex={expires}&is=0&hm={signature(file, expires)}&"
        return {
            "id": file.id,
            "filename": file.name,
            "size": len(file.content),
            "content_type": file.mimetype,
            "url": url,
            "proxy_url": url,
        }


def signature(file: File, expires: str) -> str:
    """Sign a file's URL."""
    return hashlib.sha256(f"{file.id}/{file.name}/{expires}".encode()).hexdigest()


def user_json(user: User) -> dict[str, Any]:
    """Write a user."""
    body = {"id": user.id, "username": user.name, "global_name": user.global_name, "discriminator": "0"}
    return body | {"avatar": None, "public_flags": 0, "bot": user.is_bot}


def role_json(role: Role) -> dict[str, Any]:
    """Write a role."""
    return {
        "id": role.id,
        "name": role.name,
        "permissions": str(role.permissions),
        "position": role.position,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "managed": False,
        "mentionable": False,
        "flags": 0,
    }


def emoji_json(emoji: str) -> dict[str, Any]:
    """Write an emoji: a character, or `name:id` for one of a guild's own."""
    name, _, number = emoji.partition(":")
    return {"id": number or None, "name": name}


def _reaction_json(emoji: str, users: list[str]) -> dict[str, Any]:
    return {
        "emoji": emoji_json(emoji),
        "count": len(users),
        "count_details": {"burst": 0, "normal": len(users)},
        "me": BOT_USER in users,
        "me_burst": False,
        "burst_colors": [],
    }
