"""Read what a Discord message shows besides its words: what it answers, forwards, previews, polls and components. Pure.

Source: docs.discord.com/developers/resources/message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from mimetypes import guess_type
from typing import Any

import discord
from msgspec import Struct

from claudius.adapters.discord.text import read
from claudius.adapters.incoming import file_lines
from claudius.prompt import valid
from claudius.shown import DELETED, MOST_QUOTED, How, Quoted, lines_of

REPLY = 19


class Shows(Struct, frozen=True):
    """What a message shows besides its own words."""

    own: tuple[str, ...] = ()
    """What its author made besides: a poll."""
    shown: tuple[Quoted, ...] = ()
    files: tuple[Mapping[str, Any], ...] = ()
    """Attached to it, or a sticker."""
    shown_files: tuple[Mapping[str, Any], ...] = ()
    """Attached to the messages that it shows."""


def shows(message: discord.Message, us: str) -> Shows:
    """Return what a message shows; `us` is our own user's id."""
    answered = message.reference.resolved if message.reference and message.type.value == REPLY else None
    texts = [*_embeds(message), *([Quoted(how=How.ATTACHED, text=words)] if (words := _components(message)) else [])]
    forwarded = [_forwarded(one, message) for one in message.message_snapshots]
    before = [_answered(answered, us)] if answered else []
    return Shows(
        own=tuple(_poll(message)),
        shown=tuple([one for one in (*before, *forwarded, *texts) if one.text or one.unread][:MOST_QUOTED]),
        files=tuple(_files(message)),
        shown_files=(
            *(
                [{**one, "of": before[0].of} for one in _files(answered)]
                if isinstance(answered, discord.Message)
                else ()
            ),
            *[_file(file, message) for one in message.message_snapshots for file in one.attachments],
        ),
    )


def names_in(message: discord.Message) -> dict[str, str]:
    """Return the names of the users, channels and roles that a message mentions, by id."""
    places = {str(one.id): one.name for one in (*message.channel_mentions, *message.role_mentions)}
    return places | {str(one.id): one.display_name for one in message.mentions}


def key_of(message: object) -> str:
    """Return the dedupe key of a message by its id."""
    return f"discord:{message}"


def _answered(message: discord.Message | discord.DeletedReferencedMessage, us: str) -> Quoted:
    if isinstance(message, discord.DeletedReferencedMessage):
        return Quoted(how=How.ANSWERED, unread=DELETED)
    user = str(message.webhook_id or message.author.id)
    words = read(message.content, "", names_in(message))
    forwarded = (_forwarded(one, message).text for one in message.message_snapshots)
    lines = (line for file in _files(message) for line in file_lines(file))
    embeds = (one.text for one in _embeds(message))
    return Quoted(
        how=How.ANSWERED,
        text=valid(lines_of(words, *forwarded, *embeds, _components(message), *_poll(message), *lines)),
        of=key_of(message.id),
        person=f"discord:@me:{user}",
        name=valid(message.author.display_name),
        is_bot=message.author.bot or message.webhook_id is not None,
        is_ours=user == us,
    )


def _forwarded(one: discord.MessageSnapshot, message: discord.Message) -> Quoted:
    """Return a forwarded message. Discord does not say whose it is."""
    files = (*[_file(file, message) for file in one.attachments], *_stickers(one))
    lines = (line for file in files for line in file_lines(file))
    text = valid(lines_of(one.content, *map(_embed, one.embeds), _components(one), *lines))
    return Quoted(
        how=How.FORWARDED,
        text=text,
        unread="" if text else "it holds nothing that can be read here",
        of=key_of(message.reference.message_id) if message.reference else "",
    )


def _embeds(message: discord.Message) -> Iterator[Quoted]:
    is_made = message.author.bot or message.webhook_id is not None
    for embed in message.embeds:
        how = How.ATTACHED if is_made and embed.type == "rich" else How.PREVIEW
        yield Quoted(how=how, text=valid(_embed(embed)), name=valid(embed.provider.name or ""))


def _embed(embed: discord.Embed) -> str:
    fields = (f"{field.name}: {field.value}" for field in embed.fields)
    return lines_of(
        embed.author.name or "", embed.title or "", embed.description or "", *fields, embed.footer.text or ""
    )


def _components(message: discord.Message | discord.MessageSnapshot) -> str:
    return valid(lines_of(*(line for one in message.components for line in _words(one))))


def _words(component: object) -> Iterator[str]:
    """Yield the words of a component and of those within it."""
    for name in ("content", "label", "placeholder", "description"):
        words = getattr(component, name, None)
        if isinstance(words, str):
            yield words
    for name in ("children", "items", "accessory"):
        within = getattr(component, name, None) or ()
        for one in within if isinstance(within, list | tuple) else (within,):
            yield from _words(one)


def _poll(message: discord.Message) -> Iterator[str]:
    if message.poll:
        yield f"📊 {message.poll.question} ({', '.join(one.text for one in message.poll.answers)})"


def _files(message: discord.Message) -> Iterator[dict[str, Any]]:
    for file in message.attachments:
        yield _file(file, message)
    yield from _stickers(message)


def _stickers(message: discord.Message | discord.MessageSnapshot) -> Iterator[dict[str, Any]]:
    for one in message.stickers:
        yield {"id": str(one.id), "name": valid(one.name), "type": "sticker", "bytes": 0}


def _file(file: discord.Attachment, message: discord.Message) -> dict[str, Any]:
    kind, _, more = (file.content_type or guess_type(file.filename)[0] or "").partition(";")
    return {
        "id": str(file.id),
        "name": valid(file.filename),
        "type": kind,
        "with": more.strip(),
        "bytes": file.size,
        "url": file.url,
        "channel": str(message.channel.id),
        "message": str(message.id),
    }
