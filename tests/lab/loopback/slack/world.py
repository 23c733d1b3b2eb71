"""What a test does with the Slack server, in its own process or across: one class, the same names."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from lab.loopback.control import reach
from lab.loopback.slack.envelopes import Order
from lab.loopback.slack.faults import FaultKind
from lab.loopback.slack.sockets import Health, Reason
from lab.loopback.slack.state import BOT_USER, ChannelKind
from lab.loopback.slack.watching import Watching


@dataclass(frozen=True, slots=True)
class SlackWorld(Watching):
    """The people of one Slack server, its trouble, and its records."""

    @staticmethod
    @asynccontextmanager
    async def at(control_url: str) -> AsyncIterator[SlackWorld]:
        """Drive a server in another process."""
        async with reach(control_url) as do:
            yield SlackWorld(do)

    # People. A text is as Slack sends it: `<@U1>`, `&lt;`. `deliver=False` loses the event.

    async def say(  # noqa: PLR0913 - what a message can be
        self,
        channel: str,
        user: str,
        text: str,
        *,
        thread_ts: str | None = None,
        subtype: str | None = None,
        files: Sequence[str] = (),
        username: str | None = None,
        fields: Mapping[str, Any] | None = None,
        deliver: bool = True,
    ) -> str:
        """Post a message; give its ts. A bot's user posts as that bot. `fields` lie over its JSON."""
        facts = {"subtype": subtype, "files": list(files), "username": username, "fields": dict(fields or {})}
        return await self._do("say", _act(channel, user, deliver) | {"text": text, "thread_ts": thread_ts} | facts)

    async def edit(self, channel: str, ts: str, text: str, *, deliver: bool = True) -> str:
        """Change the text of a message; give the ts of the change."""
        return await self._do("edit", {"channel": channel, "ts": ts, "text": text, "deliver": deliver})

    async def delete(self, channel: str, ts: str, *, deliver: bool = True) -> str:
        """Take a message down; give the ts of the event."""
        return await self._do("delete", {"channel": channel, "ts": ts, "deliver": deliver})

    async def unfurl(self, channel: str, ts: str) -> str:
        """Have Slack say that a message changed though its text did not; give the ts of the event."""
        return await self._do("unfurl", {"channel": channel, "ts": ts})

    async def react(self, channel: str, ts: str, user: str, name: str, *, deliver: bool = True) -> str:
        """Put a reaction on a message; give the message's ts."""
        return await self._do("react", _act(channel, user, deliver) | {"ts": ts, "name": name})

    async def unreact(self, channel: str, ts: str, user: str, name: str, *, deliver: bool = True) -> str:
        """Take a reaction off; give the message's ts."""
        return await self._do("unreact", _act(channel, user, deliver) | {"ts": ts, "name": name})

    async def join(self, channel: str, user: str, *, deliver: bool = True) -> str:
        """Come into a channel; give the event's ts."""
        return await self._do("join", _act(channel, user, deliver))

    async def leave(self, channel: str, user: str, *, deliver: bool = True) -> str:
        """Leave a channel; give the event's ts."""
        return await self._do("leave", _act(channel, user, deliver))

    async def archive(self, channel: str, user: str, *, deliver: bool = True) -> str:
        """Put a channel away; give the event's ts."""
        return await self._do("archive", _act(channel, user, deliver))

    async def upload(
        self,
        channel: str,
        user: str,
        name: str,
        content: bytes,
        *,
        text: str = "",
        thread_ts: str | None = None,
        is_connect: bool = False,
        deliver: bool = True,
    ) -> str:
        """Share a file with a text; give the message's ts."""
        file = {"name": name, "content": base64.b64encode(content).decode()}
        facts = {"text": text, "thread_ts": thread_ts, "is_connect": is_connect}
        return await self._do("upload", _act(channel, user, deliver) | file | facts)

    async def describe(self, file: str, fields: Mapping[str, Any]) -> str:
        """Change what Slack says of a file; give its id."""
        return await self._do("describe", {"file": file, "fields": dict(fields)})

    async def slash(self, channel: str, user: str, command: str, text: str = "") -> str:
        """Give a command; return its trigger id."""
        return await self._do("slash", {"channel": channel, "user": user, "command": command, "text": text})

    async def click(self, channel: str, ts: str, user: str, action_id: str, value: str = "") -> str:
        """Press a button on a message (an empty `ts`: in the App Home); return the trigger id."""
        where = {"channel": channel, "ts": ts, "user": user}
        return await self._do("click", where | {"action_id": action_id, "value": value})

    async def open_home(self, user: str) -> str:
        """Look at the App Home; give the event's ts."""
        return await self._do("open_home", {"user": user})

    async def stop_stream(self, channel: str, ts: str) -> None:
        """Press Stop while a message grows."""
        await self.do("stop_stream", {"channel": channel, "ts": ts})

    # The stage.

    async def add_user(self, user: str, name: str, **facts: Any) -> str:
        """Let somebody into the workspace, or change what is known of him; facts are the fields of `User`."""
        return await self._do("add_user", {"user": user, "name": name, **facts})

    async def add_channel(
        self, channel: str, name: str = "", *, kind: ChannelKind = "channel", members: Sequence[str] = (BOT_USER,)
    ) -> str:
        """Make a conversation."""
        facts = {"channel": channel, "name": name, "kind": kind, "members": list(members)}
        return await self._do("add_channel", facts)

    async def open_dm(self, user: str) -> str:
        """Give the DM of the app and a person."""
        return await self._do("open_dm", {"user": user})

    async def set(self, **changes: Any) -> None:
        """Change settings; names are the fields of `Settings`."""
        await self.do("set", msgspec.to_builtins(changes))

    async def shift_clock(self, ahead_s: float) -> None:
        """Put the server's clock forward."""
        await self.do("shift_clock", {"ahead_s": ahead_s})

    async def allow(self, token: str, scopes: Sequence[str]) -> None:
        """Set what a token may do."""
        await self.do("allow", {"token": token, "scopes": list(scopes)})

    async def scopes(self, token: str) -> list[str]:
        """Give what a token may do."""
        return msgspec.convert(await self.do("scopes", {"token": token}), list[str])

    async def revoke(self, token: str) -> None:
        """Take a token back."""
        await self.do("revoke", {"token": token})

    async def uninstall(self) -> None:
        """Remove the app: it is told, then its tokens are void."""
        await self.do("uninstall", {})

    async def limit(self, method: str, calls: int, within_s: float, *, is_by_channel: bool = False) -> None:
        """Set how often a method may be called, and have limits held."""
        facts = {"method": method, "calls": calls, "within_s": within_s, "is_by_channel": is_by_channel}
        await self.do("limit", facts)

    # Trouble.

    async def fault(self, method: str, kind: FaultKind, **facts: Any) -> None:
        """Order a fault of the Web API; facts are the fields of `Fault`."""
        await self.do("fault", {"method": method, "kind": kind, **facts})

    async def heal(self) -> None:
        """Take back every order that is still open; sockets are live again."""
        await self.do("heal", {})

    async def sicken(self, health: Health, *, is_lasting: bool = False) -> int:
        """Make every open socket deaf or half-open, and new ones too if it `is_lasting`; give their number."""
        return await self._count("sicken", {"health": health, "is_lasting": is_lasting})

    async def refuse_upgrades(self, times: int) -> None:
        """Refuse so many sockets; negative = all."""
        await self.do("refuse_upgrades", {"times": times})

    async def spoil_tickets(self, times: int) -> None:
        """Issue so many tickets that open nothing; negative = all."""
        await self.do("spoil_tickets", {"times": times})

    async def drop_sockets(self) -> int:
        """Cut every socket without a close frame; give their number."""
        return await self._count("drop_sockets", {})

    async def close_sockets(self) -> int:
        """Close every socket properly; give their number."""
        return await self._count("close_sockets", {})

    async def disconnect(self, reason: Reason) -> None:
        """Send a `disconnect` frame; but for a warning, the socket ends after `refresh_grace_s`."""
        await self.do("disconnect", {"reason": reason})

    async def lose_events(self, times: int) -> None:
        """Lose so many events (and commands and buttons) to come."""
        await self.do("lose_events", {"times": times})

    async def double_events(self, times: int) -> None:
        """Bring so many events to come twice, each in an envelope of its own."""
        await self.do("double_events", {"times": times})

    async def hold_events(self) -> None:
        """Keep events back until they are released."""
        await self.do("hold_events", {})

    async def release_events(self, order: Order = "same", *, seed: int = 0) -> int:
        """Let go of the events that were kept back, in this order; give their number."""
        return await self._count("release_events", {"order": order, "seed": seed})

    async def _do(self, name: str, arguments: Mapping[str, Any]) -> str:
        return str(await self.do(name, arguments))


def _act(channel: str, user: str, deliver: bool) -> dict[str, Any]:  # noqa: FBT001 - handed on as it came
    return {"channel": channel, "user": user, "deliver": deliver}
