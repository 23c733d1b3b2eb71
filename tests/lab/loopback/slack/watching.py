"""What a test may look at, and wait for, in the Slack server: its records, oldest first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from lab.loopback.slack.records import ANSWERS, Call, Delivery, Entry

Do = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Watching:
    """The records of one server. `do` carries a command to it."""

    do: Do

    async def trace(self, *, since: int = 0) -> list[Entry]:
        """Give everything that people and the app did, after entry `since`: what an oracle reads."""
        return msgspec.convert(await self.do("trace", {"since": since}), list[Entry])

    async def visible(self) -> list[Entry]:
        """Give the whole messages of the app's."""
        return [entry for entry in await self.trace() if entry.by == "app" and entry.kind in ANSWERS]

    async def calls(self, method: str = "", *, since: int = 0) -> list[Call]:
        """Give the calls of a method, or all."""
        return msgspec.convert(await self.do("calls", {"method": method, "since": since}), list[Call])

    async def deliveries(self, *, since: int = 0) -> list[Delivery]:
        """Give the envelopes."""
        return msgspec.convert(await self.do("deliveries", {"since": since}), list[Delivery])

    async def sockets(self) -> list[dict[str, Any]]:
        """Give the open sockets: id, health, pings, is_leaving."""
        return msgspec.convert(await self.do("sockets", {}), list[dict[str, Any]])

    async def messages(self, channel: str) -> list[dict[str, Any]]:
        """Give the messages of a conversation as they stand, threads and metadata too."""
        return msgspec.convert(await self.do("messages", {"channel": channel}), list[dict[str, Any]])

    async def status(self, channel: str, thread_ts: str) -> str:
        """Give the status that a thread shows now."""
        return str(await self.do("status", {"channel": channel, "thread_ts": thread_ts}))

    async def home(self, user: str) -> dict[str, Any]:
        """Give the App Home that somebody sees; empty where there is none."""
        return msgspec.convert(await self.do("home", {"user": user}), dict[str, Any])

    # Waiting. Each raises TimeoutError.

    async def until_visible(
        self, count: int, *, channel: str = "", thread_ts: str = "", within_s: float = 10.0
    ) -> list[Entry]:
        """Wait for so many whole messages of the app's."""
        facts = {"count": count, "channel": channel, "thread_ts": thread_ts, "within_s": within_s}
        return msgspec.convert(await self.do("until_visible", facts), list[Entry])

    async def until_called(self, method: str, count: int = 1, *, within_s: float = 10.0) -> list[Call]:
        """Wait for so many calls of a method."""
        facts = {"method": method, "count": count, "within_s": within_s}
        return msgspec.convert(await self.do("until_called", facts), list[Call])

    async def until_connected(self, count: int = 1, *, opened: int = 0, within_s: float = 10.0) -> int:
        """Wait for exactly so many open sockets, and `opened` ever; give the number ever."""
        return await self._count("until_connected", {"count": count, "opened": opened, "within_s": within_s})

    async def until_quiet(self, *, within_s: float = 10.0) -> None:
        """Wait until every event is acknowledged or given up."""
        await self.do("until_quiet", {"within_s": within_s})

    async def until_fate(
        self, fate: Literal["acked", "timeout", "offline", "lost"], count: int = 1, *, within_s: float = 10.0
    ) -> list[Delivery]:
        """Wait for so many envelopes that ended so."""
        facts = {"fate": fate, "count": count, "within_s": within_s}
        return msgspec.convert(await self.do("until_fate", facts), list[Delivery])

    async def _count(self, name: str, arguments: Mapping[str, Any]) -> int:
        return int(await self.do(name, arguments))
