"""What a test has people do at the Discord server: the first half of `DiscordWorld`."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.loopback.control import Do


@dataclass(frozen=True, slots=True)
class Acting:
    """The people of one server. `do` carries a command there. `deliver=False` loses the event.

    A text is as Discord sends it: `<@id>`.
    """

    do: Do

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
        facts = {"reply_to": reply_to, "pings_author": pings_author, "kind": kind, "fields": dict(fields or {})}
        return await self._do("say", _act(channel, user, deliver) | {"text": text} | facts)

    async def edit(self, channel: str, message: str, text: str, *, deliver: bool = True) -> None:
        """Change the text of a message."""
        await self.do("edit", {"channel": channel, "message": message, "text": text, "deliver": deliver})

    async def unfurl(self, channel: str, message: str) -> None:
        """Have Discord tell of a change though the text is the same."""
        await self.do("unfurl", {"channel": channel, "message": message})

    async def delete(self, channel: str, message: str, *, deliver: bool = True) -> None:
        """Take a message down."""
        await self.do("delete", {"channel": channel, "message": message, "deliver": deliver})

    async def bulk_delete(self, channel: str, messages: Sequence[str], *, deliver: bool = True) -> None:
        """Take several messages down at once."""
        await self.do("bulk_delete", {"channel": channel, "messages": list(messages), "deliver": deliver})

    async def react(self, channel: str, message: str, user: str, emoji: str, *, deliver: bool = True) -> None:
        """Put a reaction on a message."""
        await self.do("react", _act(channel, user, deliver) | {"message": message, "emoji": emoji})

    async def unreact(self, channel: str, message: str, user: str, emoji: str, *, deliver: bool = True) -> None:
        """Take a reaction off."""
        await self.do("unreact", _act(channel, user, deliver) | {"message": message, "emoji": emoji})

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
        file = {"name": name, "content": base64.b64encode(content).decode(), "mimetype": mimetype, "text": text}
        return await self._do("upload", _act(channel, user, deliver) | file)

    async def join(self, guild: str, user: str, *, deliver: bool = True) -> None:
        """Come into a guild; the app too."""
        await self.do("join", {"guild": guild, "user": user, "deliver": deliver})

    async def leave(self, guild: str, user: str, *, deliver: bool = True) -> None:
        """Leave a guild, or be thrown out; the app too."""
        await self.do("leave", {"guild": guild, "user": user, "deliver": deliver})

    async def create_thread(
        self, channel: str, user: str, name: str, *, message: str = "", is_private: bool = False, deliver: bool = True
    ) -> str:
        """Open a thread, on a message or by itself; give its id."""
        facts = {"name": name, "message": message, "is_private": is_private}
        return await self._do("create_thread", _act(channel, user, deliver) | facts)

    async def join_thread(self, thread: str, user: str) -> None:
        """Come into a thread, or be asked in."""
        await self.do("join_thread", {"thread": thread, "user": user})

    async def archive(self, thread: str, user: str, *, is_locked: bool = False, deliver: bool = True) -> None:
        """Put a thread away; if it `is_locked`, posting does not wake it."""
        await self.do("archive", {"thread": thread, "user": user, "is_locked": is_locked, "deliver": deliver})

    async def unarchive(self, thread: str, user: str, *, deliver: bool = True) -> None:
        """Take a thread out again, unlocked."""
        await self.do("unarchive", {"thread": thread, "user": user, "deliver": deliver})

    async def slash(
        self, channel: str, user: str, command: str, options: Mapping[str, Any] | None = None, *, deliver: bool = True
    ) -> str:
        """Give a command that the app registered, its parts with blanks between; give the interaction's id."""
        facts = {"command": command, "options": dict(options or {})}
        return await self._do("slash", _act(channel, user, deliver) | facts)

    async def click(self, channel: str, message: str, user: str, custom_id: str, *, deliver: bool = True) -> str:
        """Press a button of a message; give the interaction's id."""
        return await self._do("click", _act(channel, user, deliver) | {"message": message, "custom_id": custom_id})

    async def _do(self, name: str, arguments: Mapping[str, Any]) -> str:
        return str(await self.do(name, arguments))

    async def _count(self, name: str, arguments: Mapping[str, Any]) -> int:
        return int(await self.do(name, arguments))


def _act(channel: str, user: str, deliver: bool) -> dict[str, Any]:  # noqa: FBT001 - handed on as it came
    return {"channel": channel, "user": user, "deliver": deliver}
