"""What Discord holds: guilds, people, roles, channels, threads, messages, files, webhooks, commands."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from lab.loopback.discord.permissions import EVERYONE, Overwrite, Role
from lab.loopback.watch import Clock

EPOCH_MS = 1_420_070_400_000
"""The first second of 2015. Source: docs.discord.com/developers/reference, "Snowflakes"."""

APP = BOT_USER = "100000000000000001"
GUILD, CHANNEL, DM, ANA = "200000000000000001", "300000000000000001", "500000000000000001", "400000000000000001"
BOT_TOKEN = "MTAw.loopback.token"

ChannelKind = Literal[
    "text", "dm", "voice", "category", "announcement", "announcement_thread", "public_thread", "private_thread",
    "stage", "forum",
]  # fmt: skip
KINDS: dict[ChannelKind, int] = {
    "text": 0, "dm": 1, "voice": 2, "category": 4, "announcement": 5, "announcement_thread": 10, "public_thread": 11,
    "private_thread": 12, "stage": 13, "forum": 15,
}  # fmt: skip
"""Source: docs.discord.com/developers/resources/channel, "Channel Types"."""
THREADS = frozenset({"announcement_thread", "public_thread", "private_thread"})

DEFAULT, THREAD_CREATED, REPLY, SLASH, THREAD_STARTER = 0, 18, 19, 20, 21
"""Types of messages. Source: docs.discord.com/developers/resources/message, "Message Types"."""
SUPPRESS_EMBEDS, HAS_THREAD, EPHEMERAL, LOADING = 1 << 2, 1 << 5, 1 << 6, 1 << 7
"""Flags of messages. Source: the same page, "Message Flags"."""


@dataclass(slots=True)
class User:
    """A person or a bot, the same in every guild."""

    id: str
    name: str
    global_name: str | None = None
    is_bot: bool = False
    takes_dms: bool = True
    """False: a DM to him is refused with 50007."""
    locale: str = "en-US"
    """Which only an interaction of theirs tells."""


@dataclass(slots=True)
class Member:
    """A person's membership of a guild."""

    user: str
    roles: list[str] = field(default_factory=list)
    nick: str | None = None
    joined_at: float = 1_700_000_000.0


@dataclass(slots=True)
class Webhook:
    """What posts into one channel under a name of its own."""

    id: str
    channel: str
    name: str


@dataclass(slots=True)
class File:
    """A file that was attached to a message."""

    id: str
    channel: str
    name: str
    content: bytes
    mimetype: str


@dataclass(slots=True)
class Message:
    """One message, as it stands now."""

    id: str
    channel: str
    author: str
    """A user, or the webhook that posted it."""
    content: str
    at: float
    kind: int = DEFAULT
    edited_at: float | None = None
    reference: dict[str, Any] | None = None
    mentions: list[str] = field(default_factory=list)
    mention_roles: list[str] = field(default_factory=list)
    mention_everyone: bool = False
    files: list[str] = field(default_factory=list)
    embeds: list[Any] = field(default_factory=list)
    components: list[Any] = field(default_factory=list)
    reactions: dict[str, list[str]] = field(default_factory=dict)
    flags: int = 0
    nonce: str | int | None = None
    webhook_id: str | None = None
    webhook_name: str | None = None
    application_id: str | None = None
    interaction: dict[str, Any] | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    """What its JSON says besides, or instead."""

    @property
    def pings(self) -> list[str]:
        """Those who were notified."""
        return [*self.mentions, *self.mention_roles, *(["everyone"] if self.mention_everyone else [])]


@dataclass(slots=True)
class Channel:
    """A channel, a thread or a DM, with its messages, oldest first."""

    id: str
    kind: ChannelKind
    name: str = ""
    guild: str | None = None
    parent: str | None = None
    members: list[str] = field(default_factory=list)
    """Of a DM, or who joined a thread."""
    overwrites: dict[str, Overwrite] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    owner: str = ""
    is_archived: bool = False
    is_locked: bool = False
    archived_at: float = 1_700_000_000.0
    auto_archive_minutes: int = 1_440

    @property
    def is_thread(self) -> bool:
        """Stands under another channel."""
        return self.kind in THREADS

    def find(self, message: str) -> Message | None:
        """Find a message."""
        return next((one for one in reversed(self.messages) if one.id == message), None)


@dataclass(slots=True)
class Guild:
    """A server, as people call it."""

    id: str
    name: str
    owner: str
    members: dict[str, Member] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)
    locale: str = "en-US"


@dataclass(slots=True)
class Space:
    """One guild with our bot in it, one person (ANA), a text channel, and their DM; more is added by tests."""

    clock: Clock = field(default_factory=Clock)
    token: str = BOT_TOKEN
    users: dict[str, User] = field(default_factory=dict)
    guilds: dict[str, Guild] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    webhooks: dict[str, Webhook] = field(default_factory=dict)
    commands: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By guild; the empty one holds those that are everywhere."""
    _last_id: int = 0

    def __post_init__(self) -> None:
        """Settle in."""
        self.users[BOT_USER] = User(BOT_USER, "claudius", "Claudius", is_bot=True)
        self.users[ANA] = User(ANA, "ana", "Ana Alvarez")
        self.add_guild(GUILD, "loopback", ANA, [BOT_USER, ANA])
        self.channels[CHANNEL] = Channel(CHANNEL, "text", "general", GUILD)
        self.channels[DM] = Channel(DM, "dm", members=[BOT_USER, ANA])

    def add_guild(self, guild: str, name: str, owner: str, members: list[str]) -> Guild:
        """Found a guild; the role of everyone has its id."""
        made = Guild(guild, name, owner, {user: Member(user) for user in members}, {guild: Role(guild, "@everyone")})
        made.roles[guild].permissions = EVERYONE
        self.guilds[guild] = made
        return made

    def next_id(self) -> str:
        """Give the next snowflake: the time, and always more than the one before."""
        self._last_id = max(self._last_id + 1, (int(self.clock.now() * 1000) - EPOCH_MS) << 22)
        return str(self._last_id)

    def dm(self, user: str) -> Channel:
        """Find the DM of our bot and a person; open it if need be."""
        for channel in self.channels.values():
            if channel.kind == "dm" and set(channel.members) == {BOT_USER, user}:
                return channel
        made = Channel(self.next_id(), "dm", members=[BOT_USER, user])
        self.channels[made.id] = made
        return made

    def guild_channels(self, guild: str) -> Iterator[Channel]:
        """Give the channels of a guild, threads too."""
        return (channel for channel in self.channels.values() if channel.guild == guild)

    def stamp(self) -> str:
        """Tell the time as the API writes it."""
        return stamp(self.clock.now())


def stamp(at: float) -> str:
    """Write a time as the API does."""
    return datetime.fromtimestamp(at, UTC).isoformat()
