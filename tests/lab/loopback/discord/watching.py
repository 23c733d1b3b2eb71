"""Gives the records, and waits for things to happen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.loopback.discord.records import ANSWERS, Call, Delivery, Entry, Fate
from lab.loopback.discord.service import Service
from lab.loopback.discord.state import GUILD


@dataclass(frozen=True)
class Watching:
    """What a test looks at. Lists are oldest first."""

    service: Service

    async def trace(self, *, since: int = 0) -> list[Entry]:
        """Give everything that people and the app did, after entry `since`."""
        return self.service.journal.trace[since:]

    async def visible(self) -> list[Entry]:
        """Give the whole messages of the app's."""
        return [entry for entry in self.service.journal.trace if entry.by == "app" and entry.kind in ANSWERS]

    async def calls(self, route: str = "", *, since: int = 0) -> list[Call]:
        """Give the calls of a route, or all."""
        return [call for call in self.service.journal.calls[since:] if route in ("", call.route)]

    async def deliveries(self, event: str = "", *, since: int = 0) -> list[Delivery]:
        """Give what became of the events of a name, or of all."""
        return [one for one in self.service.journal.deliveries[since:] if event in ("", one.event)]

    async def sockets(self) -> list[Mapping[str, Any]]:
        """Give the open sockets."""
        return [
            {
                "id": socket.id,
                "health": socket.health,
                "heartbeats": socket.heartbeats,
                "is_compressed": socket.is_compressed,
                "session": socket.session.id if socket.session else "",
                "seq": socket.session.seq if socket.session else 0,
                "intents": socket.session.intents if socket.session else 0,
            }
            for socket in self.service.gateway.sockets.values()
        ]

    async def counts(self) -> Mapping[str, int]:
        """Give how often it was connected, identified and resumed, and how many sessions there are."""
        gateway, sessions = self.service.gateway, self.service.sessions
        return {
            "opened": gateway.opened,
            "identified": gateway.identified,
            "resumed": gateway.resumed,
            "sessions": len(sessions.open),
            "remaining": sessions.remaining(),
        }

    async def messages(self, channel: str) -> list[Mapping[str, Any]]:
        """Give the messages of a channel as they stand."""
        shapes = self.service.shapes
        return [shapes.message(message) for message in self.service.space.channels[channel].messages]

    async def channels(self, guild: str = GUILD) -> list[Mapping[str, Any]]:
        """Give the channels of a guild, threads too."""
        return [self.service.shapes.channel(one) for one in self.service.space.guild_channels(guild)]

    async def commands(self, guild: str = "") -> list[Mapping[str, Any]]:
        """Give the commands that are registered in a guild, or everywhere."""
        return list(self.service.space.commands.get(guild, []))

    async def until_visible(self, count: int, *, channel: str = "", within_s: float = 10.0) -> list[Entry]:
        """Wait for so many whole messages of the app's. Raises: TimeoutError."""
        journal = self.service.journal

        def found() -> list[Entry]:
            mine = (entry for entry in journal.trace if entry.by == "app" and entry.kind in ANSWERS)
            return [entry for entry in mine if channel in ("", entry.channel)]

        await journal.changes.until(lambda: len(found()) >= count, within_s)
        return found()

    async def until_called(self, route: str, count: int = 1, *, within_s: float = 10.0) -> list[Call]:
        """Wait for so many calls of a route. Raises: TimeoutError."""
        journal = self.service.journal
        await journal.changes.until(lambda: sum(call.route == route for call in journal.calls) >= count, within_s)
        return await self.calls(route)

    async def until_connected(self, count: int = 1, *, opened: int = 0, within_s: float = 10.0) -> int:
        """Wait for exactly so many sockets with a session, and `opened` ever; give the number ever.

        Raises: TimeoutError.
        """
        gateway = self.service.gateway

        def is_so() -> bool:
            ready = sum(socket.session is not None for socket in gateway.sockets.values())
            return ready == count == len(gateway.sockets) and gateway.opened >= opened

        await self.service.journal.changes.until(is_so, within_s)
        return gateway.opened

    async def until_heard(self, *, within_s: float = 10.0) -> None:
        """Wait until every live session has taken all its events: each is asked for a heartbeat, which names the last.

        Raises: TimeoutError.
        """
        live = [one for one in self.service.sessions.open.values() if one.socket and one.socket.health == "live"]
        wanted = [(session, session.seq) for session in live]
        asked: set[int] = set()

        def is_so() -> bool:
            late = [session for session, seq in wanted if session.heard < seq]
            for socket in [session.socket for session in late if session.socket]:
                if socket.id not in asked:  # another socket than before, after a RESUME
                    asked.add(socket.id)
                    socket.put(1)
            return not late

        await self.service.journal.changes.until(is_so, within_s)

    async def until_fate(self, fate: Fate, count: int = 1, *, within_s: float = 10.0) -> list[Delivery]:
        """Wait for so many events that ended so. Raises: TimeoutError."""
        journal = self.service.journal
        await journal.changes.until(lambda: sum(one.fate == fate for one in journal.deliveries) >= count, within_s)
        return [one for one in journal.deliveries if one.fate == fate]
