"""Keep what outlives one listener: the gateway session, which the next one resumes, and how many were begun today.

Source: the scale design, section 2; docs.discord.com/developers/events/gateway, "Resuming" and "Session Start Limit".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, time, timedelta
from typing import Any, Protocol, runtime_checkable

import discord
import discord.client
import discord.gateway
import yarl
from msgspec import Struct, convert

RESERVE = 50
"""How many of a day's session starts are kept in reserve: past the last one, Discord resets the token."""


class GatewaySession(Struct, frozen=True):
    """A session that can be resumed, as far as what it told is handled."""

    id: str
    sequence: int
    """The last event that is stored, or needs no storing. Discord repeats those after it."""
    gateway: str
    """The address at which it is resumed."""


class Left(Struct, frozen=True, omit_defaults=True):
    """What one listener leaves to the next one, as JSON in the store."""

    token: str = ""
    """A fingerprint of the token whose session it is."""
    session: GatewaySession | None = None
    day: str = ""
    """The UTC day of `logins`."""
    logins: int = 0
    """How many sessions were begun on that day."""

    @staticmethod
    def of(told: Mapping[str, Any]) -> Left:
        """Read what was left; nothing if it has another shape. Pure."""
        try:
            return convert(dict(told), Left)
        except ValueError:
            return Left()


class Logins:
    """Counts the sessions begun on a UTC day, whichever process began them."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock, self.day, self._count = clock, "", 0

    def today(self) -> int:
        """Return how many were begun today."""
        self.know(self._clock().date().isoformat(), 0)
        return self._count

    def add(self) -> None:
        """Note that one is begun now."""
        self._count = self.today() + 1

    def know(self, day: str, count: int) -> None:
        """Take over the count of another process, if it is of the same day and higher, or of a later day."""
        if day > self.day:
            self.day, self._count = day, 0
        if day == self.day:
            self._count = max(self._count, count)

    def rest_s(self) -> float:
        """Return the seconds until the next UTC day."""
        now = self._clock()
        return (datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo) - now).total_seconds()


class Handled:
    """Tells how far a session's events are handled: each is, once whoever hears it has stored it.

    An event that could not be stored counts as not handled for the rest of the session, so that it is told again.
    """

    def __init__(self) -> None:
        self._hearing: dict[asyncio.Task[Any], int] = {}
        self._lost: int | None = None

    def begin(self, task: asyncio.Task[Any], sequence: int) -> None:
        """Note that a task hears the event of this number."""
        self._hearing[task] = sequence
        task.add_done_callback(self._lose)

    def end(self) -> None:
        """Note that the current task's event is handled."""
        if task := asyncio.current_task():
            self._hearing.pop(task, None)

    def restart(self) -> None:
        """Begin to count the events of another session."""
        self._hearing.clear()
        self._lost = None

    def until(self, latest: int) -> int:
        """Return the number of the last event before the first unhandled one; `latest` is the last that arrived."""
        unhandled = [*self._hearing.values(), *([self._lost] if self._lost else [])]
        return min([latest, *(number - 1 for number in unhandled)])

    def _lose(self, task: asyncio.Task[Any]) -> None:
        if number := self._hearing.pop(task, None):
            self._lost = min(number, self._lost or number)


class ResumingSocket(discord.gateway.DiscordWebSocket):
    """A socket whose client may say how it begins: the library resumes only sessions that the same process began."""

    @classmethod
    async def from_client(cls, client: discord.Client, **how: Any) -> ResumingSocket:
        """Open a socket. Raises what the library raises."""
        if isinstance(client, SaysHow):
            how |= await client.before_socket(how)
        return await super().from_client(client, **how)


@runtime_checkable
class SaysHow(Protocol):
    """A client that is asked before each socket."""

    async def before_socket(self, how: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what is to be otherwise than the library wants it."""


def resuming(session: GatewaySession) -> Mapping[str, Any]:
    """Return how a socket begins that resumes a session. Pure."""
    return {
        "resume": True,
        "session": session.id,
        "sequence": session.sequence,
        "gateway": yarl.URL(session.gateway),
    }


def install() -> None:
    """Have the library's clients open sockets of this kind. Where a client says nothing, they are the library's."""
    discord.client.DiscordWebSocket = ResumingSocket  # type: ignore[misc] # the class that `Client.connect` names
