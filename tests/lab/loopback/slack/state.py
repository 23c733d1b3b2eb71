"""The workspace: its people, conversations, messages and files, and the tokens that open it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from lab.loopback.watch import Clock

ChannelKind = Literal["channel", "group", "im", "mpim"]

TEAM, APP, BOT_USER, BOT = "T1", "A1", "U0BOT", "B0BOT"
BOT_TOKEN, APP_TOKEN = "xoxb-loopback", "xapp-loopback"

BOT_SCOPES = frozenset(
    {
        "app_mentions:read", "channels:history", "groups:history", "im:history", "mpim:history", "channels:read",
        "groups:read", "im:read", "mpim:read", "im:write", "users:read", "chat:write", "commands", "reactions:read",
        "reactions:write", "files:read", "channels:join",
    }
)  # fmt: skip
APP_SCOPES = frozenset({"connections:write"})


@dataclass(slots=True)
class Token:
    """A token, what it may do, and whether it was taken back."""

    kind: Literal["bot", "app"]
    scopes: frozenset[str]
    is_revoked: bool = False


@dataclass(slots=True)
class User:
    """A person or a bot. `team` is another one for a person who comes through Slack Connect."""

    id: str
    name: str
    real_name: str = ""
    display_name: str = ""
    team: str = TEAM
    tz: str = "Europe/London"
    locale: str = "en-US"
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False
    is_bot: bool = False
    is_admin: bool = False
    is_owner: bool = False
    deleted: bool = False
    bot_id: str | None = None


@dataclass(slots=True)
class Message:
    """One message, as it stands now."""

    channel: str
    ts: str
    text: str
    user: str | None = None
    thread_ts: str | None = None
    subtype: str | None = None
    bot_id: str | None = None
    username: str | None = None
    team: str = TEAM
    client_msg_id: str | None = None
    blocks: list[Any] = field(default_factory=list)
    attachments: list[Any] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    metadata: dict[str, Any] | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)
    edited: tuple[str, str] | None = None
    """By whom, and when (a ts)."""
    fields: dict[str, Any] = field(default_factory=dict)
    """What its JSON says besides, or instead."""

    @property
    def is_reply(self) -> bool:
        """Stands in a thread and is not its first message."""
        return self.thread_ts is not None and self.thread_ts != self.ts


@dataclass(slots=True)
class Channel:
    """One conversation with its messages, oldest first."""

    id: str
    name: str
    kind: ChannelKind = "channel"
    members: list[str] = field(default_factory=list)
    is_archived: bool = False
    is_shared: bool = False
    messages: list[Message] = field(default_factory=list)

    def find(self, ts: str) -> Message | None:
        """Find the message of that ts."""
        return next((message for message in reversed(self.messages) if message.ts == ts), None)

    def replies(self, ts: str) -> list[Message]:
        """List the replies in a thread, oldest first."""
        return [message for message in self.messages if message.thread_ts == ts and message.is_reply]

    def shown(self) -> Iterator[Message]:
        """Give what stands in the channel itself: replies only where they were broadcast."""
        return (message for message in self.messages if not message.is_reply or message.subtype == "thread_broadcast")


@dataclass(slots=True)
class File:
    """A file that was uploaded."""

    id: str
    name: str
    content: bytes
    mimetype: str
    user: str
    created: int
    is_connect: bool = False
    """Shared through Slack Connect: the event names it only, `files.info` has the rest."""
    fields: dict[str, Any] = field(default_factory=dict)
    """What its JSON says besides, or instead."""


@dataclass(slots=True)
class Workspace:
    """One workspace with our app in it, one person (U1), a channel (C1) and their DM (D1)."""

    clock: Clock = field(default_factory=Clock)
    team: str = TEAM
    tokens: dict[str, Token] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    homes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The App Home of each viewer."""
    _last_us: int = 0
    _ids: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        """Settle in."""
        self.tokens[BOT_TOKEN] = Token("bot", BOT_SCOPES)
        self.tokens[APP_TOKEN] = Token("app", APP_SCOPES)
        self.users[BOT_USER] = User(BOT_USER, "claudius", "Claudius", is_bot=True, bot_id=BOT)
        self.users["U1"] = User("U1", "ana", "Ana Alvarez", "ana")
        self.channels["C1"] = Channel("C1", "general", "channel", [BOT_USER, "U1"])
        self.channels["D1"] = Channel("D1", "", "im", [BOT_USER, "U1"])

    def next_ts(self) -> str:
        """Give the next ts of the workspace: now, and always later than the one before."""
        self._last_us = max(self._last_us + 1, int(self.clock.now() * 1_000_000))
        return f"{self._last_us // 1_000_000}.{self._last_us % 1_000_000:06d}"

    def next_id(self, prefix: str) -> str:
        """Give an id that is free."""
        return f"{prefix}{next(self._ids):08d}"

    def dm(self, user: str) -> Channel:
        """Find the DM of our app and a person; open it if need be."""
        for channel in self.channels.values():
            if channel.kind == "im" and set(channel.members) == {BOT_USER, user}:
                return channel
        channel = Channel(self.next_id("D"), "", "im", [BOT_USER, user])
        self.channels[channel.id] = channel
        return channel

    def sees(self, channel: Channel) -> bool:
        """Say whether our app can know of a conversation: a public one, or one that it is in."""
        return channel.kind == "channel" or BOT_USER in channel.members
