"""What a test does with the Discord server, in its own process or across: one class, the same names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from lab.loopback.control import reach
from lab.loopback.discord.acting import Acting
from lab.loopback.discord.faults import FaultKind
from lab.loopback.discord.permissions import Permission
from lab.loopback.discord.post import Order
from lab.loopback.discord.records import ANSWERS, Call, Delivery, Entry, Fate
from lab.loopback.discord.sessions import Health
from lab.loopback.discord.state import BOT_USER, GUILD, ChannelKind

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DiscordWorld(Acting):
    """The people of one Discord server, its stage, its trouble, and its records."""

    @staticmethod
    @asynccontextmanager
    async def at(control_url: str) -> AsyncIterator[DiscordWorld]:
        """Drive a server in another process."""
        async with reach(control_url) as do:
            yield DiscordWorld(do)

    # The stage.

    async def add_user(self, user: str, name: str, *, guilds: Sequence[str] = (GUILD,), **facts: Any) -> str:
        """Let somebody exist and be in these guilds, silently; facts are the fields of `User`."""
        return await self._do("add_user", {"user": user, "name": name, "guilds": list(guilds), **facts})

    async def add_guild(self, guild: str, name: str, owner: str, members: Sequence[str] = ()) -> str:
        """Found a guild, silently; the app comes in by `join`, or stands among the members."""
        return await self._do("add_guild", {"guild": guild, "name": name, "owner": owner, "members": list(members)})

    async def add_channel(self, channel: str, name: str = "", *, kind: ChannelKind = "text", guild: str = GUILD) -> str:
        """Make a channel."""
        return await self._do("add_channel", {"channel": channel, "name": name, "kind": kind, "guild": guild})

    async def delete_channel(self, channel: str) -> None:
        """Take a channel away, with its threads."""
        await self.do("delete_channel", {"channel": channel})

    async def open_dm(self, user: str) -> str:
        """Give the DM of the app and a person."""
        return await self._do("open_dm", {"user": user})

    async def add_webhook(self, channel: str, name: str) -> str:
        """Make a webhook; give its id, by which it speaks."""
        return await self._do("add_webhook", {"channel": channel, "name": name})

    async def add_role(
        self, guild: str, name: str, permissions: Sequence[Permission] = (), users: Sequence[str] = ()
    ) -> str:
        """Make a role with these permissions and give it to these members; give its id."""
        facts = {"permissions": list(permissions), "users": list(users)}
        return await self._do("add_role", {"guild": guild, "name": name, **facts})

    async def permit(self, guild: str, permissions: Sequence[Permission], *, role: str = "") -> None:
        """Set what a role may do; without one, everyone."""
        await self.do("permit", {"guild": guild, "permissions": list(permissions), "role": role})

    async def overwrite(
        self, channel: str, target: str = BOT_USER, *, allow: Sequence[Permission] = (), deny: Sequence[Permission] = ()
    ) -> None:
        """Set what a channel allows and denies to a role or a member."""
        await self.do("overwrite", {"channel": channel, "target": target, "allow": list(allow), "deny": list(deny)})

    async def set(self, **changes: Any) -> None:
        """Change settings; names are the fields of `Settings`."""
        await self.do("set", msgspec.to_builtins(changes))

    async def shift_clock(self, ahead_s: float) -> None:
        """Put the server's clock forward; heartbeats keep their own time."""
        await self.do("shift_clock", {"ahead_s": ahead_s})

    async def revoke(self) -> None:
        """Take the bot's token back."""
        await self.do("revoke", {})

    async def limit(self, route: str, calls: int, within_s: float) -> None:
        """Set how often a route may be called, and have limits held."""
        await self.do("limit", {"route": route, "calls": calls, "within_s": within_s})

    # Trouble.

    async def fault(self, route: str, kind: FaultKind, **facts: Any) -> None:
        """Order a fault of the API; facts are the fields of `Fault`."""
        await self.do("fault", {"route": route, "kind": kind, **facts})

    async def heal(self) -> None:
        """Take back every order that is still open; sockets are live again."""
        await self.do("heal", {})

    async def sicken(self, health: Health, *, is_lasting: bool = False) -> int:
        """Make every open socket deaf, zombie or half-open, and new ones if it `is_lasting`; give their number."""
        return await self._count("sicken", {"health": health, "is_lasting": is_lasting})

    async def refuse_upgrades(self, times: int) -> None:
        """Refuse so many sockets; negative = all."""
        await self.do("refuse_upgrades", {"times": times})

    async def drop_sockets(self, *, is_reset: bool = False) -> int:
        """Cut every socket without a close frame; give their number."""
        return await self._count("drop_sockets", {"is_reset": is_reset})

    async def close_sockets(self, code: int = 4000) -> int:
        """Close every socket with this code; give their number."""
        return await self._count("close_sockets", {"code": code})

    async def reconnect(self) -> int:
        """Ask every socket to reconnect (op 7); give their number."""
        return await self._count("reconnect", {})

    async def invalidate(self, *, is_resumable: bool) -> int:
        """Call every session invalid (op 9); one that is not resumable is gone. Give the number of sockets."""
        return await self._count("invalidate", {"is_resumable": is_resumable})

    async def expire_sessions(self) -> int:
        """Forget every session, so that a RESUME is answered with an invalid session; give their number."""
        return await self._count("expire_sessions", {})

    async def ask_heartbeat(self) -> int:
        """Ask every socket for a heartbeat (op 1); give their number."""
        return await self._count("ask_heartbeat", {})

    async def lose_events(self, times: int, event: str = "") -> None:
        """Lose so many events to come, of one name or of any; negative = all."""
        await self.do("lose_events", {"times": times, "event": event})

    async def double_events(self, times: int, event: str = "") -> None:
        """Bring so many events to come twice, each with a number of its own."""
        await self.do("double_events", {"times": times, "event": event})

    async def hold_events(self) -> None:
        """Keep events back until they are released."""
        await self.do("hold_events", {})

    async def release_events(self, order: Order = "same", *, seed: int = 0) -> int:
        """Let go of the events that were kept back, in this order; give their number."""
        return await self._count("release_events", {"order": order, "seed": seed})

    # Records, oldest first.

    async def trace(self, *, since: int = 0) -> list[Entry]:
        """Give everything that people and the app did, after entry `since`: what an oracle reads."""
        return msgspec.convert(await self.do("trace", {"since": since}), list[Entry])

    async def visible(self) -> list[Entry]:
        """Give the whole messages of the app's."""
        return [entry for entry in await self.trace() if entry.by == "app" and entry.kind in ANSWERS]

    async def calls(self, route: str = "", *, since: int = 0) -> list[Call]:
        """Give the calls of a route, or all."""
        return msgspec.convert(await self.do("calls", {"route": route, "since": since}), list[Call])

    async def deliveries(self, event: str = "", *, since: int = 0) -> list[Delivery]:
        """Give what became of the events of a name, or of all."""
        return msgspec.convert(await self.do("deliveries", {"event": event, "since": since}), list[Delivery])

    async def sockets(self) -> list[Object]:
        """Give the open sockets: id, health, heartbeats, is_compressed, session, seq, intents."""
        return msgspec.convert(await self.do("sockets", {}), list[Object])

    async def counts(self) -> dict[str, int]:
        """Give how often it was opened, identified and resumed, how many sessions there are, how many remaining."""
        return msgspec.convert(await self.do("counts", {}), dict[str, int])

    async def messages(self, channel: str) -> list[Object]:
        """Give the messages of a channel as they stand."""
        return msgspec.convert(await self.do("messages", {"channel": channel}), list[Object])

    async def channels(self, guild: str = GUILD) -> list[Object]:
        """Give the channels of a guild, threads too."""
        return msgspec.convert(await self.do("channels", {"guild": guild}), list[Object])

    async def commands(self, guild: str = "") -> list[Object]:
        """Give the commands that are registered in a guild, or everywhere."""
        return msgspec.convert(await self.do("commands", {"guild": guild}), list[Object])

    async def is_typing(self, channel: str) -> bool:
        """Say whether the app is shown to write."""
        return bool(await self.do("is_typing", {"channel": channel}))

    # Waiting. Each raises TimeoutError.

    async def until_visible(self, count: int, *, channel: str = "", within_s: float = 10.0) -> list[Entry]:
        """Wait for so many whole messages of the app's."""
        facts = {"count": count, "channel": channel, "within_s": within_s}
        return msgspec.convert(await self.do("until_visible", facts), list[Entry])

    async def until_called(self, route: str, count: int = 1, *, within_s: float = 10.0) -> list[Call]:
        """Wait for so many calls of a route."""
        facts = {"route": route, "count": count, "within_s": within_s}
        return msgspec.convert(await self.do("until_called", facts), list[Call])

    async def until_connected(self, count: int = 1, *, opened: int = 0, within_s: float = 10.0) -> int:
        """Wait for exactly so many sockets with a session, and `opened` ever; give the number ever."""
        return await self._count("until_connected", {"count": count, "opened": opened, "within_s": within_s})

    async def until_heard(self, *, within_s: float = 10.0) -> None:
        """Wait until every live session has taken all its events."""
        await self.do("until_heard", {"within_s": within_s})

    async def until_fate(self, fate: Fate, count: int = 1, *, within_s: float = 10.0) -> list[Delivery]:
        """Wait for so many events that ended so."""
        facts = {"fate": fate, "count": count, "within_s": within_s}
        return msgspec.convert(await self.do("until_fate", facts), list[Delivery])
