"""The whole service: what it holds, its records, its gateway, and the acts that all who post share."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.loopback.breaking import Faults
from lab.loopback.discord import events, intents
from lab.loopback.discord.faults import Fault
from lab.loopback.discord.gateway import Gateway
from lab.loopback.discord.interactions import Interactions
from lab.loopback.discord.limits import Limits
from lab.loopback.discord.post import Post
from lab.loopback.discord.records import Journal
from lab.loopback.discord.sessions import Session, Sessions
from lab.loopback.discord.settings import Settings
from lab.loopback.discord.shapes import Shapes
from lab.loopback.discord.state import (
    APP,
    BOT_USER,
    HAS_THREAD,
    THREAD_CREATED,
    THREAD_STARTER,
    Channel,
    ChannelKind,
    Message,
    Space,
)


@dataclass(slots=True)
class Service:
    """Discord itself. `url` is where it is reached, without a slash at the end."""

    settings: Settings = field(default_factory=Settings)
    space: Space = field(default_factory=Space)
    url: str = ""
    faults: Faults[Fault] = field(default_factory=Faults)
    nonces: dict[tuple[str, str], Message] = field(default_factory=dict)
    """The last message of each author and nonce."""
    journal: Journal = field(init=False)
    limits: Limits = field(init=False)
    sessions: Sessions = field(init=False)
    gateway: Gateway = field(init=False)
    post: Post = field(init=False)
    interactions: Interactions = field(init=False)

    def __post_init__(self) -> None:
        """Put the parts together."""
        now = self.space.clock.now
        self.journal = Journal(now)
        self.limits = Limits(self.settings, now)
        self.sessions = Sessions(self.settings, self.journal)
        self.gateway = Gateway(
            self.space, self.settings, self.journal, self.sessions, self._welcome, self._list_members
        )
        self.post = Post(self.space, self.journal, self.sessions)
        self.interactions = Interactions(self.settings, self.journal)

    @property
    def shapes(self) -> Shapes:
        """What writes the things that the space holds."""
        return Shapes(self.space, self.url, self.settings.cdn_life_s)

    @property
    def gateway_url(self) -> str:
        """Where sockets are opened."""
        return f"{self.url.replace('http', 'ws', 1)}/gateway/"

    def _welcome(self, session: Session) -> None:
        guilds = [guild for guild in self.space.guilds.values() if BOT_USER in guild.members]
        ready = {
            "v": 10,
            "user": self.shapes.user(BOT_USER),
            "guilds": [{"id": guild.id, "unavailable": True} for guild in guilds],
            "session_id": session.id,
            "session_type": "normal",
            "resume_gateway_url": self.gateway_url,
            "application": {"id": APP, "flags": intents.application_flags(self.settings.privileges)},
            "private_channels": [],
            "relationships": [],
            "presences": [],
            "_trace": ["loopback"],
        }
        session.send("READY", ready)
        if session.intents & intents.GUILDS:
            has_all = bool(session.intents & intents.GUILD_MEMBERS)
            for guild in guilds:
                session.send("GUILD_CREATE", self.shapes.guild(guild, has_all_members=has_all))

    def _list_members(self, session: Session, wanted: dict[str, Any]) -> None:
        """Answer a request for members, all in one piece; all of them only with the intent."""
        guild = self.space.guilds.get(str(wanted.get("guild_id")))
        if guild is None:
            return
        ids = wanted.get("user_ids") or []
        named = {str(user) for user in (ids if isinstance(ids, list) else [ids])}
        is_all = not named and session.intents & intents.GUILD_MEMBERS
        found = [one for one in guild.members.values() if is_all or one.user in named]
        body = {
            "guild_id": guild.id,
            "members": [self.shapes.member(guild, one) for one in found],
            "chunk_index": 0,
            "chunk_count": 1,
            "not_found": sorted(named - guild.members.keys()),
        }
        session.send("GUILD_MEMBERS_CHUNK", body | ({"nonce": wanted["nonce"]} if "nonce" in wanted else {}))

    def compose(self, channel: Channel, author: str, content: str, **facts: Any) -> Message:
        """Make a message with the next snowflake; it is not up yet."""
        return Message(self.space.next_id(), channel.id, author, content, self.space.clock.now(), **facts)

    def mention(self, message: Message, pinging: dict[str, Any] | None) -> None:
        """Find who is notified; `pinging` is `allowed_mentions`, None = everybody who is named.

        Source: docs.discord.com/developers/resources/message, "Allowed Mentions Object".
        """
        users = list(dict.fromkeys(re.findall(r"<@!?(\d+)>", message.content)))
        roles = list(dict.fromkeys(re.findall(r"<@&(\d+)>", message.content)))
        is_all = "@everyone" in message.content or "@here" in message.content
        replied = self._replied_author(message)
        if pinging is not None:
            parse = pinging.get("parse") or []
            users = users if "users" in parse else [user for user in users if user in _ids(pinging, "users")]
            roles = roles if "roles" in parse else [role for role in roles if role in _ids(pinging, "roles")]
            is_all = is_all and "everyone" in parse
            replied = replied if pinging.get("replied_user", False) else ""
        if replied and replied not in users:
            users.append(replied)
        message.mentions = [user for user in users if user in self.space.users]
        message.mention_roles, message.mention_everyone = roles, is_all

    def _replied_author(self, message: Message) -> str:
        reference = message.reference or {}
        channel = self.space.channels.get(str(reference.get("channel_id")))
        found = channel.find(str(reference.get("message_id"))) if channel else None
        return found.author if found and message.kind == 19 else ""

    def publish(self, channel: Channel, message: Message, *, is_delivered: bool = True) -> None:
        """Put a new message up and tell of it; it wakes an archived thread and ends the typing of its author."""
        if channel.is_archived:
            self.archive(channel, is_archived=False, is_delivered=is_delivered)
        if channel.is_thread and message.author in self.space.users and message.author not in channel.members:
            self.join_thread(channel, message.author, is_delivered=is_delivered)
        channel.messages.append(message)
        told = events.messaged(self.shapes, channel, message, is_new=True)
        self.post.bring([told], is_delivered=is_delivered)

    def changed(self, channel: Channel, message: Message, *, is_delivered: bool = True) -> None:
        """Tell of a change."""
        told = events.messaged(self.shapes, channel, message, is_new=False)
        self.post.bring([told], is_delivered=is_delivered)

    def remove(self, channel: Channel, messages: Sequence[str], *, is_bulk: bool, is_delivered: bool = True) -> None:
        """Take messages down and tell of it."""
        channel.messages[:] = [message for message in channel.messages if message.id not in messages]
        self.post.bring([events.deleted(channel, messages, is_bulk=is_bulk)], is_delivered=is_delivered)

    def react(
        self, channel: Channel, message: Message, user: str, emoji: str, *, is_added: bool, is_delivered: bool = True
    ) -> None:
        """Put a reaction on a message or take it off, and tell of it; one that is there already changes nothing."""
        users = message.reactions.setdefault(emoji, [])
        is_new = is_added != (user in users)
        if is_new and is_added:
            users.append(user)
        elif is_new:
            users.remove(user)
        if not users:
            del message.reactions[emoji]
        if is_new:
            told = events.reacted(self.shapes, channel, message, user, emoji, is_added=is_added)
            self.post.bring([told], is_delivered=is_delivered)

    def start_thread(
        self,
        parent: Channel,
        owner: str,
        name: str,
        *,
        starter: Message | None = None,
        kind: ChannelKind = "public_thread",
        minutes: int = 1_440,
        is_delivered: bool = True,
    ) -> Channel:
        """Open a thread, on a message (whose id it takes) or by itself, and tell of it.

        Source: docs.discord.com/developers/topics/threads. That the message of type 21 has the starter's author is our
        reading.
        """
        thread = Channel(
            starter.id if starter else self.space.next_id(),
            kind,
            name,
            parent.guild,
            parent.id,
            members=[owner],
            owner=owner,
            archived_at=self.space.clock.now(),
            auto_archive_minutes=minutes,
        )
        self.space.channels[thread.id] = thread
        self.post.bring([events.placed(self.shapes, thread, "CREATE")], is_delivered=is_delivered)
        reference = {"type": 0, "guild_id": parent.guild, "channel_id": thread.id}
        if starter:
            starter.flags |= HAS_THREAD
            self.changed(parent, starter, is_delivered=is_delivered)
            reference |= {"channel_id": parent.id, "message_id": starter.id}
            first = self.compose(thread, starter.author, "", kind=THREAD_STARTER, reference=reference)
            self.publish(thread, first, is_delivered=is_delivered)
        elif kind != "private_thread":
            first = self.compose(parent, owner, name, kind=THREAD_CREATED, reference=reference)
            self.publish(parent, first, is_delivered=is_delivered)
        return thread

    def join_thread(self, thread: Channel, user: str, *, is_delivered: bool = True) -> None:
        """Come into a thread."""
        thread.members.append(user)
        self.post.bring([events.thread_joined(self.shapes, thread, user)], is_delivered=is_delivered)

    def archive(self, thread: Channel, *, is_archived: bool, is_delivered: bool = True) -> None:
        """Put a thread away, or take it out again, and tell of it."""
        thread.is_archived, thread.archived_at = is_archived, self.space.clock.now()
        self.post.bring([events.placed(self.shapes, thread, "UPDATE")], is_delivered=is_delivered)


def _ids(pinging: dict[str, Any], name: str) -> set[str]:
    return {str(one) for one in pinging.get(name) or []}
