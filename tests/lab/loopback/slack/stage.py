"""Sets the stage and gives the records: who is there, what is allowed, what has happened, waiting for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lab.loopback.slack import events
from lab.loopback.slack.limits import Limit
from lab.loopback.slack.records import ANSWERS, Call, Delivery, Entry
from lab.loopback.slack.service import Service
from lab.loopback.slack.shapes import message_json
from lab.loopback.slack.state import BOT_USER, Channel, ChannelKind, Message, User


@dataclass(frozen=True)
class Stage:
    """What a test sets up and looks at."""

    service: Service

    async def add_user(self, user: str, name: str, **facts: Any) -> str:
        """Let a person into the workspace, or change what is known of him; facts are the fields of `User`."""
        self.service.space.users[user] = User(user, name, **facts)
        return user

    async def add_channel(
        self, channel: str, name: str = "", *, kind: ChannelKind = "channel", members: Sequence[str] = (BOT_USER,)
    ) -> str:
        """Make a conversation."""
        self.service.space.channels[channel] = Channel(channel, name, kind, list(members))
        return channel

    async def open_dm(self, user: str) -> str:
        """Give the DM of the app and a person."""
        return self.service.space.dm(user).id

    async def set(self, **changes: Any) -> None:
        """Change settings; names are the fields of `Settings`."""
        for name, value in changes.items():
            setattr(self.service.settings, name, value)

    async def shift_clock(self, ahead_s: float) -> None:
        """Put the server's clock forward."""
        self.service.space.clock.ahead_s += ahead_s

    async def allow(self, token: str, scopes: Sequence[str]) -> None:
        """Set what a token may do."""
        self.service.space.tokens[token].scopes = frozenset(scopes)

    async def scopes(self, token: str) -> list[str]:
        """Give what a token may do."""
        return sorted(self.service.space.tokens[token].scopes)

    async def revoke(self, token: str) -> None:
        """Take a token back."""
        self.service.space.tokens[token].is_revoked = True

    async def uninstall(self) -> None:
        """Remove the app: it is told, then its tokens are void."""
        self.service.tell(events.uninstalled(event_ts=self.service.space.next_ts()))
        for token in self.service.space.tokens.values():
            token.is_revoked = True

    async def limit(self, method: str, calls: int, within_s: float, *, is_by_channel: bool = False) -> None:
        """Set how often a method may be called, and have limits held."""
        self.service.limits.set_instead[method] = Limit(calls, within_s, is_by_channel)
        self.service.settings.has_rate_limits = True

    async def trace(self, *, since: int = 0) -> list[Entry]:
        """Give everything that people and the app did, oldest first, after entry `since`."""
        return self.service.journal.trace[since:]

    async def visible(self) -> list[Entry]:
        """Give the whole messages of the app's."""
        return [entry for entry in self.service.journal.trace if entry.by == "app" and entry.kind in ANSWERS]

    async def calls(self, method: str = "", *, since: int = 0) -> list[Call]:
        """Give the calls of a method, or all."""
        return [call for call in self.service.journal.calls[since:] if method in ("", call.method)]

    async def deliveries(self, *, since: int = 0) -> list[Delivery]:
        """Give the envelopes."""
        return self.service.journal.deliveries[since:]

    async def sockets(self) -> list[Mapping[str, Any]]:
        """Give the open sockets."""
        return [
            {"id": socket.id, "health": socket.health, "pings": socket.pings, "is_leaving": socket.is_leaving}
            for socket in self.service.sockets.open.values()
        ]

    async def messages(self, channel: str) -> list[Mapping[str, Any]]:
        """Give the messages of a conversation as they stand, threads and metadata too, oldest first."""
        return [self._shown(message) for message in self.service.space.channels[channel].messages]

    async def status(self, channel: str, thread_ts: str) -> str:
        """Give the status that a thread shows now."""
        status = self.service.statuses.get((channel, thread_ts))
        if status is None or self.service.space.clock.now() - status.at > self.service.settings.status_life_s:
            return ""
        return status.status

    async def home(self, user: str) -> Mapping[str, Any]:
        """Give the App Home that a person sees; empty where there is none."""
        return self.service.space.homes.get(user, {})

    async def until_visible(
        self, count: int, *, channel: str = "", thread_ts: str = "", within_s: float = 10.0
    ) -> list[Entry]:
        """Wait for so many whole messages of the app's. Raises: TimeoutError."""

        def found() -> list[Entry]:
            return [
                entry
                for entry in self.service.journal.trace
                if entry.by == "app"
                and entry.kind in ANSWERS
                and channel in ("", entry.channel)
                and thread_ts in ("", entry.thread_ts)
            ]

        await self.service.journal.changes.until(lambda: len(found()) >= count, within_s)
        return found()

    async def until_called(self, method: str, count: int = 1, *, within_s: float = 10.0) -> list[Call]:
        """Wait for so many calls of a method. Raises: TimeoutError."""
        journal = self.service.journal
        await journal.changes.until(lambda: sum(call.method == method for call in journal.calls) >= count, within_s)
        return await self.calls(method)

    async def until_connected(self, count: int = 1, *, opened: int = 0, within_s: float = 10.0) -> int:
        """Wait for exactly so many open sockets, and `opened` ever; give the number ever. Raises: TimeoutError."""
        sockets = self.service.sockets
        await self.service.journal.changes.until(
            lambda: len(sockets.open) == count and sockets.opened >= opened, within_s
        )
        return sockets.opened

    async def until_quiet(self, *, within_s: float = 10.0) -> None:
        """Wait until every event is acknowledged or given up. Raises: TimeoutError."""
        await self.service.journal.changes.until(lambda: self.service.post.on_the_way == 0, within_s)

    async def until_fate(
        self, fate: Literal["acked", "timeout", "offline", "lost"], count: int = 1, *, within_s: float = 10.0
    ) -> list[Delivery]:
        """Wait for so many envelopes that ended so. Raises: TimeoutError."""
        journal = self.service.journal
        await journal.changes.until(lambda: sum(one.fate == fate for one in journal.deliveries) >= count, within_s)
        return [one for one in journal.deliveries if one.fate == fate]

    def _shown(self, message: Message) -> dict[str, Any]:
        return message_json(self.service.space, message, url=self.service.url, has_metadata=True)
