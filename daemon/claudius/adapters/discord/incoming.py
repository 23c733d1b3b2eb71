"""Convert Discord's messages and their changes to perceptions: who spoke, where, when, and whether it was for us.

`KnownChannels` is what one process has learned about channels. It survives a reconnect. The rest is pure.

Source: the chat design, sections 2 and 6; docs.discord.com/developers/events/gateway-events.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import discord
from msgspec import Struct, field
from msgspec.structs import replace

from claudius.adapters.caches import keep
from claudius.adapters.discord.shown import REPLY, key_of, names_in, shows
from claudius.adapters.discord.text import MENTIONS, read
from claudius.adapters.incoming import Ignored, deleted, own_text
from claudius.perception import Kind, MessageExtra, Perception, ReactionExtra, Standing, edited, private, shared
from claudius.prompt import valid
from claudius.runtime.commands.words import SIGN
from claudius.shown import RECENT, Quoted

NETWORK = "discord"
DIRECT = "@me"
"""The workspace of direct messages, and of persons, whose ids are the same in every guild."""
SAID = frozenset({0, REPLY, 20, 23})
"""Types of messages that somebody wrote, an app's answers to commands among them."""
EPOCH, MILLISECOND = datetime(2015, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
"""Ids count milliseconds from here. Source: docs.discord.com/developers/reference, "Snowflakes"."""
POSITION_DIGITS = 20


class DiscordBot(Struct, frozen=True):
    """The bot's own identity."""

    user: str
    application: str
    name: str


class Where(Struct, frozen=True):
    """Where a message is: a channel, a thread under one, or a direct message."""

    guild: str
    channel: str
    thread: str = ""

    @property
    def place(self) -> str:
        """The id under which messages are read and posted."""
        return self.thread or self.channel

    @property
    def conversation(self) -> str:
        """The key of the conversation there: `network:guild:channel:thread`."""
        return f"{NETWORK}:{self.guild}:{self.channel}:{self.thread}"


class Belonging(Struct, frozen=True):
    """What a person is in the guilds that matter for what they say."""

    guilds: tuple[str, ...] = ()
    """Where it is said; of a direct message, every allowed guild that the person shares with us."""
    roles: tuple[str, ...] = ()
    """The ids of their roles in those; empty if no rule is about roles."""


class DiscordMessage(Struct, frozen=True):
    """One message by somebody else, live or from history."""

    where: Where
    id: str
    user: str
    """Or the webhook that posted it."""
    name: str
    raw: str
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of the mentioned users, channels and roles, by id."""
    people: tuple[str, ...] = ()
    """Ids of the users whom it notifies: those mentioned and the one it replies to."""
    answers: str = ""
    """The id of the user whose message it replies to."""
    files: tuple[Mapping[str, Any], ...] = ()
    """Each with its id, name, type, size in bytes and link."""
    own: tuple[str, ...] = ()
    """What its author made besides: a poll."""
    shown: tuple[Quoted, ...] = ()
    """What it shows besides its own words."""
    shown_files: tuple[Mapping[str, Any], ...] = ()
    is_bot: bool = False
    is_ours: bool = False
    place: str = ""
    """What its channel is called there, with its sign; empty = a direct message."""
    place_locale: str = ""
    """The preferred locale of its guild."""

    @property
    def position(self) -> str:
        """Its place in Discord's own order."""
        return position(self.id)


def interpret(
    message: discord.Message, where: Where, us: DiscordBot, *, with_ours: bool = False
) -> DiscordMessage | Ignored:
    """Return the content of a message, live or from history. Pure."""
    author, kind = message.author, message.type.value
    is_ours = str(author.id) == us.user or str(message.application_id or "") == us.application
    if is_ours and not with_ours:
        return Ignored("our own")
    if kind not in SAID:
        return Ignored(f"message of type {kind}")
    what = shows(message, us.user)
    if not (message.content or what.files or what.own or what.shown):
        return Ignored("empty")
    return DiscordMessage(
        where=where,
        id=str(message.id),
        user=str(message.webhook_id or author.id),
        name=author.display_name,
        raw=_words(message, us),
        names=names_in(message),
        people=tuple(str(one.id) for one in message.mentions),
        own=what.own,
        shown=what.shown,
        answers=_answered(message) if kind == REPLY else "",
        files=what.files,
        shown_files=what.shown_files,
        is_ours=is_ours,
        is_bot=author.bot or message.webhook_id is not None,
        place=_place(message.channel),
        place_locale=str(message.guild.preferred_locale) if message.guild else "",
    )


def _place(channel: object) -> str:
    """Return what a channel, or the channel of a thread, is called. Pure."""
    of = channel.parent if isinstance(channel, discord.Thread) else channel
    return valid(f"#{of.name}") if isinstance(of, discord.abc.GuildChannel) else ""


def perceive(said: DiscordMessage, us: DiscordBot, who: Belonging) -> Perception:
    """Return a message as a perception; `who` is what its speaker is there. Pure."""
    where, person = said.where, f"{NETWORK}:{DIRECT}:{said.user}"
    is_direct = where.guild == DIRECT
    is_called = not is_direct and us.user in (*said.people, *MENTIONS.all_in(said.raw))
    conversation = f"{NETWORK}:{where.guild}:{where.channel}:{where.thread or (said.id if is_called else '')}"
    names = {**said.names, us.user: us.name}
    text = read(said.raw, us.user, names)
    addressed = MENTIONS.at_start(said.raw) or said.answers
    extra = MessageExtra(
        can_react=True,
        guilds=who.guilds if is_direct else (),
        roles=who.roles,
        named={f"{NETWORK}:{DIRECT}:{user}": said.names.get(user, user) for user in said.people if user != us.user},
        files=(*said.files, *said.shown_files),
        shown=tuple([replace(one, text=read(one.text, "", names)) for one in said.shown]),
        is_ours=said.is_ours,
        place=said.place,
        place_locale=said.place_locale,
    )
    return Perception(
        key=message_key(said.id),
        conversation=conversation,
        audience=private(person) if is_direct else shared(conversation),
        person=person,
        name=valid(said.name),
        text=own_text((text, *said.own), said.files, said.shown),
        at=moment(said.id),
        position=said.position,
        kind=Kind.MENTION if is_called else Kind.MESSAGE,
        to_other=bool(addressed) and addressed != us.user,
        standing=Standing.MEMBER if who.guilds else Standing.OUTSIDER,
        is_bot=said.is_bot,
        extra=extra,
    )


def message_key(message: str) -> str:
    """Return the dedupe key of a message. Pure."""
    return key_of(message)


def position(snowflake: str) -> str:
    """Return an id padded so that comparing as text gives Discord's order. Pure."""
    return snowflake.zfill(POSITION_DIGITS)


def moment(snowflake: str) -> datetime:
    """Return the time encoded in an id. Pure."""
    return EPOCH + MILLISECOND * (int(snowflake) >> 22)


def stamp(at: datetime) -> str:
    """Return the position of the first id that a time could have. Pure."""
    return position(str(max(0, (at - EPOCH) // MILLISECOND) << 22))


def _words(message: discord.Message, us: DiscordBot) -> str:
    """Return the words of a message, with mentions of our bot role replaced by mentions of us."""
    raw = message.content
    for role in message.role_mentions:
        if role.tags and str(role.tags.bot_id) == us.user:
            raw = raw.replace(role.mention, f"<@{us.user}>")
    return raw


def _answered(message: discord.Message) -> str:
    found = message.reference.resolved if message.reference else None
    author = getattr(found, "author", None)  # a deleted message has no author
    return str(author.id) if author else ""


Change = (
    discord.RawMessageUpdateEvent
    | discord.RawMessageDeleteEvent
    | discord.RawBulkMessageDeleteEvent
    | discord.RawReactionActionEvent
)
"""A change of an earlier message."""
CHANGES = (
    "raw_message_edit",
    "raw_message_delete",
    "raw_bulk_message_delete",
    "raw_reaction_add",
    "raw_reaction_remove",
)
"""The library's events that report one."""


async def heeded(
    change: Change, where: Where, us: DiscordBot, know: Callable[[str, object], Awaitable[Belonging]], now: datetime
) -> list[Perception]:
    """Return a change of an earlier message as perceptions. `know` asks what a user is there.

    It is given the user's id, and the member that came with the event, if one did.

    Raises: TimeoutError if Discord does not say who it was.
    """
    if isinstance(change, discord.RawMessageDeleteEvent | discord.RawBulkMessageDeleteEvent):
        gone = [change.message_id] if isinstance(change, discord.RawMessageDeleteEvent) else sorted(change.message_ids)
        since = discord.utils.snowflake_time
        return [deleted(message_key(str(one)), where.conversation, now, stamp(now), since(one)) for one in gone]
    if isinstance(change, discord.RawReactionActionEvent):
        found = reaction(change, where, us, await know(str(change.user_id), change.member), now)
        return [found] if found else []
    message = change.message
    said, at, is_bare = interpret(message, where, us), message.edited_at, message.flags.suppress_embeds
    if not isinstance(said, DiscordMessage) or not (at or is_bare):
        return []  # only a link preview was added, or the message is ours
    said_now = perceive(said, us, await know(said.user, message.author))
    return [*(reworded(said_now, at) if at else []), *([bared(said_now, at or said_now.at, now)] if is_bare else [])]


def bared(message: Perception, last: datetime, now: datetime) -> Perception:
    """Return a message that may have lost previews, at a time that Discord does not tell: after its last edit. Pure."""
    return edited(message, last, f"{stamp(last)}~{stamp(now)}")


def reworded(message: Perception, at: datetime) -> list[Perception]:
    """Return the edit of a message, and the message if it calls us by now. Pure."""
    is_call = message.kind is Kind.MENTION and at - message.at <= RECENT  # known, if it called us from the first
    return [edited(message, at, stamp(at)), *([message] if is_call else [])]


def reaction(
    event: discord.RawReactionActionEvent, where: Where, us: DiscordBot, who: Belonging, now: datetime
) -> Perception | None:
    """Return a reaction as a perception, or None if it means nothing to us. Pure.

    Discord may omit the author of the message, and always does for a removed reaction. The store knows the author.
    """
    person, is_on = f"{NETWORK}:{DIRECT}:{event.user_id}", event.event_type == "REACTION_ADD"
    author, message = str(event.message_author_id or ""), str(event.message_id)
    emoji = event.emoji.name or str(event.emoji.id)
    is_stop = is_on and emoji == SIGN and author in ("", str(event.user_id))
    is_ours = not is_stop and (author in ("", us.user) or not is_on)
    if str(event.user_id) == us.user or not (is_ours or is_stop):
        return None
    extra = ReactionExtra(
        emoji=f":{emoji}:" if event.emoji.id else emoji,
        is_on=is_on,
        receipt=message if is_ours else "",
        of="" if is_ours else message_key(message),
        guilds=who.guilds if where.guild == DIRECT else (),
        roles=who.roles,
    )
    return Perception(
        key=f"reaction:{message_key(message)}:{person}:{emoji}",
        conversation=where.conversation,
        audience=private(person) if where.guild == DIRECT else shared(where.conversation),
        person=person,
        name=valid(event.member.display_name) if event.member else "",
        at=now,
        position=f"{int(now.timestamp() * 1e6):020d}",
        kind=Kind.REACTION,
        owes=False,
        standing=Standing.MEMBER if who.guilds else Standing.OUTSIDER,
        is_bot=bool(event.member and event.member.bot),
        extra=extra,
    )


class KnownChannels(Struct):
    """What one process has learned about channels."""

    newest: dict[str, str] = field(default_factory=dict)
    """Position of the newest known message, by channel or thread, latest last."""
    opened: dict[str, None] = field(default_factory=dict)
    """Threads that exist."""
    closed: dict[str, None] = field(default_factory=dict)
    """Messages on which no thread can be opened. Replies to them are posted in the channel."""
    titles: dict[str, str] = field(default_factory=dict)
    """The name that a thread on a message would get, by the message's id."""
    spoken: dict[str, str] = field(default_factory=dict)
    """The key of our utterance that a message holds, by the message's id."""
    _found: dict[str, Where] = field(default_factory=dict)

    async def whereabouts(self, message: discord.Message, client: discord.Client) -> Where:
        """Return where a message is, asking Discord about an unknown thread. Raises what an API call raises."""
        channel = message.channel
        if isinstance(channel, discord.PartialMessageable):
            return await self._fetch(channel.id, client)
        return where_is(channel)

    async def find(self, channel: int, guild: int | None, client: discord.Client) -> Where:
        """Return where a channel id points, asking Discord about an unknown thread. Raises what an API call raises."""
        if guild is None:
            return Where(DIRECT, str(channel))
        known = client.get_channel(channel)
        return where_is(known) if known else await self._fetch(channel, client)

    async def _fetch(self, channel: int, client: discord.Client) -> Where:
        number = str(channel)
        found = self._found.get(number) or where_is(await client.fetch_channel(channel))
        keep(self._found, number, found)
        return found

    def know(self, place: str, position: str) -> None:
        """Note that a message exists at a position in a channel or thread."""
        newest = max(position, self.newest.pop(place, ""))
        keep(self.newest, place, newest)


def where_is(channel: object) -> Where:
    """Return the place that a channel represents. Pure.

    A private thread is a place of its own, because not everybody who sees its parent channel sees what is said there.
    """
    if isinstance(channel, discord.Thread) and channel.is_private():
        return Where(str(channel.guild.id), str(channel.id), str(channel.id))
    if isinstance(channel, discord.Thread):
        return Where(str(channel.guild.id), str(channel.parent_id), str(channel.id))
    if isinstance(channel, discord.abc.GuildChannel):
        return Where(str(channel.guild.id), str(channel.id))
    if isinstance(channel, discord.abc.PrivateChannel):
        return Where(DIRECT, str(channel.id))
    raise TypeError(f"a channel of an unknown kind: {channel!r}")  # it must never count as a private place
