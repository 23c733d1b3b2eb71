"""Does what people do: say, edit, react, press. Each act is written down, and told to the app unless it is lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.loopback.discord import events
from lab.loopback.discord.service import Service
from lab.loopback.discord.state import BOT_USER, REPLY, SUPPRESS_EMBEDS, Channel, File, Member, Message


@dataclass(frozen=True)
class People:
    """The hands of everybody but the app. Texts are as Discord sends them: `<@id>`."""

    service: Service

    async def say(
        self,
        channel: str,
        user: str,
        text: str,
        *,
        reply_to: str = "",
        pings_author: bool = True,
        kind: int = 0,
        fields: Mapping[str, Any] | None = None,
        deliver: bool = True,
    ) -> str:
        """Post a message; give its id. `user` may be a webhook's id. `fields` lie over its JSON."""
        place = self._channel(channel)
        message = self._composed(place, user, text, kind)
        message.fields = dict(fields or {})
        if reply_to:
            message.kind = REPLY
            message.reference = {"type": 0, "message_id": reply_to, "channel_id": channel}
            message.reference |= {"guild_id": place.guild} if place.guild else {}
        pinging = None if pings_author else {"parse": ["users", "roles", "everyone"], "replied_user": False}
        self.service.mention(message, pinging)
        self._enter("post", message, user, is_delivered=deliver)
        self.service.publish(place, message, is_delivered=deliver)
        return message.id

    def _composed(self, place: Channel, user: str, text: str, kind: int) -> Message:
        message = self.service.compose(place, user, text, kind=kind)
        if hook := self.service.space.webhooks.get(user):
            message.webhook_id, message.webhook_name = hook.id, hook.name
        elif user not in self.service.space.users:
            raise LookupError(f"nobody has the id {user}")
        return message

    async def edit(self, channel: str, message: str, text: str, *, deliver: bool = True) -> None:
        """Change the text of a message."""
        place, found = self._message(channel, message)
        found.content, found.edited_at = text, self.service.space.clock.now()
        self.service.mention(found, None)
        self._enter("edit", found, found.author, is_delivered=deliver)
        self.service.changed(place, found, is_delivered=deliver)

    async def unfurl(self, channel: str, message: str, title: str = "Example", *, deliver: bool = True) -> None:
        """Have Discord tell of a change though the text is the same: a link got its preview, or lost it."""
        place, found = self._message(channel, message)
        found.embeds[:] = [{"type": "link", "url": "https://example.org/", "title": title}] if title else []
        found.flags |= 0 if title else SUPPRESS_EMBEDS
        found.fields.pop("embeds", "")
        self._enter("unfurl", found, "", is_delivered=deliver)
        self.service.changed(place, found, is_delivered=deliver)

    async def delete(self, channel: str, message: str, *, deliver: bool = True) -> None:
        """Take a message down."""
        place, found = self._message(channel, message)
        self._enter("delete", found, found.author, is_delivered=deliver)
        self.service.remove(place, [message], is_bulk=False, is_delivered=deliver)

    async def bulk_delete(self, channel: str, messages: Sequence[str], *, deliver: bool = True) -> None:
        """Take several messages down at once."""
        for message in messages:
            place, found = self._message(channel, message)
            self._enter("delete", found, found.author, is_delivered=deliver)
        self.service.remove(place, list(messages), is_bulk=True, is_delivered=deliver)

    async def react(self, channel: str, message: str, user: str, emoji: str, *, deliver: bool = True) -> None:
        """Put a reaction on a message."""
        place, found = self._message(channel, message)
        self.service.react(place, found, user, emoji, is_added=True, is_delivered=deliver)
        self.service.journal.enter(
            "person", "react", channel, message=message, user=user, text=emoji, is_delivered=deliver
        )

    async def unreact(self, channel: str, message: str, user: str, emoji: str, *, deliver: bool = True) -> None:
        """Take a reaction off."""
        place, found = self._message(channel, message)
        self.service.react(place, found, user, emoji, is_added=False, is_delivered=deliver)
        self.service.journal.enter(
            "person", "unreact", channel, message=message, user=user, text=emoji, is_delivered=deliver
        )

    async def upload(
        self,
        channel: str,
        user: str,
        name: str,
        content: bytes,
        *,
        mimetype: str = "text/plain",
        text: str = "",
        deliver: bool = True,
    ) -> str:
        """Post a file with a text; give the message's id."""
        place, space = self._channel(channel), self.service.space
        message = self._composed(place, user, text, 0)
        file = File(space.next_id(), channel, name, content, mimetype)
        space.files[file.id] = file
        message.files.append(file.id)
        self.service.mention(message, None)
        self._enter("post", message, user, is_delivered=deliver)
        self.service.publish(place, message, is_delivered=deliver)
        return message.id

    async def join(self, guild: str, user: str, *, deliver: bool = True) -> None:
        """Come into a guild; our bot too, which is told all of it."""
        where, post, shapes = self.service.space.guilds[guild], self.service.post, self.service.shapes
        where.members.setdefault(user, Member(user, joined_at=self.service.space.clock.now()))
        told = events.moved(shapes, where, user, is_joining=True)
        if user == BOT_USER:
            told = events.guild_entered(shapes, where, has_all_members=False)
        post.bring([told], is_delivered=deliver)
        self.service.journal.enter("person", "join", guild, user=user, is_delivered=deliver)

    async def leave(self, guild: str, user: str, *, deliver: bool = True) -> None:
        """Leave a guild, or be thrown out; our bot too."""
        where = self.service.space.guilds[guild]
        where.members.pop(user)
        told = events.moved(self.service.shapes, where, user, is_joining=False)
        self.service.post.bring([events.guild_left(where) if user == BOT_USER else told], is_delivered=deliver)
        self.service.journal.enter("person", "leave", guild, user=user, is_delivered=deliver)

    async def create_thread(
        self, channel: str, user: str, name: str, *, message: str = "", is_private: bool = False, deliver: bool = True
    ) -> str:
        """Open a thread, on a message or by itself; give its id."""
        place = self._channel(channel)
        starter = self._message(channel, message)[1] if message else None
        kind: Any = "private_thread" if is_private else "public_thread"
        self.service.journal.enter("person", "thread", channel, message=message, user=user, text=name)
        thread = self.service.start_thread(place, user, name, starter=starter, kind=kind, is_delivered=deliver)
        return thread.id

    async def join_thread(self, thread: str, user: str) -> None:
        """Come into a thread, or be asked in."""
        if user not in self._channel(thread).members:
            self.service.join_thread(self._channel(thread), user)

    async def archive(self, thread: str, user: str, *, is_locked: bool = False, deliver: bool = True) -> None:
        """Put a thread away; if it `is_locked`, posting does not wake it."""
        place = self._channel(thread)
        place.is_locked = is_locked
        self.service.journal.enter("person", "archive", thread, user=user, is_delivered=deliver)
        self.service.archive(place, is_archived=True, is_delivered=deliver)

    async def unarchive(self, thread: str, user: str, *, deliver: bool = True) -> None:
        """Take a thread out again, unlocked."""
        place = self._channel(thread)
        place.is_locked = False
        self.service.journal.enter("person", "unarchive", thread, user=user, is_delivered=deliver)
        self.service.archive(place, is_archived=False, is_delivered=deliver)

    def _channel(self, channel: str) -> Channel:
        found = self.service.space.channels.get(channel)
        if found is None:
            raise LookupError(f"no channel {channel}")
        return found

    def _message(self, channel: str, message: str) -> tuple[Channel, Message]:
        place = self._channel(channel)
        found = place.find(message)
        if found is None:
            raise LookupError(f"no message {message} in {channel}")
        return place, found

    def _enter(self, kind: Any, message: Message, user: str, *, is_delivered: bool = True) -> None:
        self.service.journal.enter(
            "person",
            kind,
            message.channel,
            message=message.id,
            user=user,
            text=message.content,
            pings=message.pings,
            reference=str((message.reference or {}).get("message_id", "")),
            is_delivered=is_delivered,
        )
