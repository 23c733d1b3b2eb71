"""The door to every network: an adapter listens and speaks, and decides nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from claudius.config import Config
from claudius.intent import Utterance
from claudius.perception import Perception

Accept = Callable[[Perception], Awaitable[bool]]
"""Makes a perception durable; True where it is new, False where it is known or not to be heard.

It raises where nothing was kept: then nothing is acknowledged, but for OverBudget, which is meant so.
"""


class Link:
    """How an adapter stands with its network: the adapter tells, the server listens."""

    def __init__(self, *, connected: bool = False) -> None:
        """Begin without a connection; `connected` for a network that is always there."""
        self.connected = connected
        self.reconnects = 0
        self.detail = ""
        """What is wrong, in words for `claudius status`; empty = nothing."""
        self.notice: Callable[[], str] = lambda: ""
        """Looks whether something is wrong though the network is heard; so too."""
        self._was_up = connected
        self._down_at = time.monotonic()
        self._tried = asyncio.Event()
        self._missed: Callable[[float | None], None] = lambda _: None
        if connected:
            self._tried.set()

    def up(self) -> None:
        """Tell that the network is heard, for the first time or again."""
        if self.connected:
            return
        gap_s = time.monotonic() - self._down_at if self._was_up else None
        self.reconnects += self._was_up
        self.connected, self._was_up, self.detail = True, True, ""
        self._tried.set()
        self._missed(gap_s)

    def down(self, detail: str) -> None:
        """Tell that the network is not heard now, and why; the adapter tries again by itself."""
        if self.connected:
            self._down_at = time.monotonic()
        self.connected, self.detail = False, detail
        self._tried.set()

    def deaf(self, silent_s: float | None = None) -> None:
        """Tell that the network holds more than was heard, although it seemed connected.

        `silent_s`: for so long nothing came at all; None = not known.
        """
        self._missed(silent_s)

    async def tried(self) -> None:
        """Return once the first try to connect has ended, however it did."""
        await self._tried.wait()

    def on_missed(self, missed: Callable[[float | None], None]) -> None:
        """Tell `missed` of each gap that ended, with its length in seconds; None = not known."""
        self._missed = missed


class Gap(Struct, frozen=True, kw_only=True):
    """What may have been missed."""

    since: datetime
    """Nothing older is looked at."""
    now: datetime | None = None
    """When the sweep begins, where the clock of its caller is that of the network."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """How far each channel (`workspace:channel`) was heard without a gap, in the network's own order, latest first.

    `workspace:` alone is how far all of them were."""
    conversations: Sequence[str] = ()
    """Conversations of late, latest first: threads that a channel's history does not show."""


class Swept(Struct, frozen=True, kw_only=True):
    """One channel's or thread's history, read from its mark to its end."""

    channel: str
    """`workspace:channel`; `workspace:` alone tells how far all of it is read now, at the end of a sweep."""
    perceptions: tuple[Perception, ...]
    """In the network's own order."""
    position: str = ""
    """How far it was read; empty = the mark stays."""
    conversation: str = ""
    """The one conversation that is complete now; empty = all of the channel."""
    left_out: int = 0
    """Messages past the bounds of a sweep."""


class Adapter(Protocol):
    """One network. It keeps no queue and retries no send."""

    name: str
    """The network's word in conversation keys."""
    post_chars: int | None
    """Longest single post in UTF-16 units; None = any."""
    appears_s: float
    """How long after a send, whose answer was lost, it may still become visible."""
    link: Link

    async def listen(self, accept: Accept) -> None:
        """Hear until closed. Raises: AdapterRefused where the network will not let us in for good."""
        ...

    async def speak(self, utterance: Utterance) -> str:
        """Say one part; return the network's receipt. Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown."""
        ...

    async def find(self, utterance: Utterance, *, decided_at: datetime) -> str | None:
        """Look whether a part is visible already; return its receipt, None where it is not.

        Raises: DeliveryRefused where it can never be known, DeliveryLater and DeliveryUnknown where not now.
        """
        ...

    async def working(self, perception: Perception, *, on: bool) -> None:
        """Show or clear the sign that the soul thinks about a perception.

        It carries no words of the reply, never raises and waits for no network.
        """
        ...

    def streams(self, perception: Perception) -> bool:
        """Tell whether whoever hears the answer can watch it grow."""
        ...

    async def show(self, utterance: Utterance, text: str) -> None:
        """Show one more piece of an utterance that `speak` will complete in the same message. Never raises."""
        ...

    def catch_up(self, gap: Gap) -> AsyncIterator[Swept]:
        """Read what may have been missed, latest activity first, paced under the network's limits.

        Raises: DeliveryError, OSError, TimeoutError where the network does not let us read now.
        """
        ...

    async def context(self, perception: Perception, most: int) -> Sequence[Perception]:
        """Return what was said in a perception's thread before it: the latest so many, oldest first; not by us.

        Raises: DeliveryError, OSError, TimeoutError where the network does not let us read now.
        """
        ...

    async def fetch(self, file: Mapping[str, Any], most_bytes: int) -> Fetched:
        """Return a file that a perception names in `extra["files"]`, from the network's own hosts.

        Raises: ValueError where it is too large, DeliveryError, OSError, TimeoutError where it cannot be had.
        """
        ...

    async def members(self, audience: str) -> Sequence[str] | None:
        """Return who can see a shared audience now, by person id; None where the network cannot tell."""
        ...

    async def close(self) -> None:
        """Stop hearing; leave no task, socket or session."""
        ...


class Fetched(Struct, frozen=True):
    """A file that a network gave."""

    content: bytes
    name: str
    media_type: str


@runtime_checkable
class Reacts(Protocol):
    """What an adapter may do besides: put a sign on a message; what it hears says so in `extra["can_react"]`."""

    async def react(self, utterance: Utterance) -> str:
        """Put the sign that an utterance is on the message that it answers; return a receipt. Twice is once.

        Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown.
        """
        ...


@runtime_checkable
class FollowsSettings(Protocol):
    """What an adapter may do besides: heed edits of the settings while it listens."""

    def follow(self, config: Callable[[], Config]) -> None:
        """Take the settings that are in force from `config`, before it listens."""
        ...


@runtime_checkable
class Sees(Protocol):
    """What an adapter may do besides, where its network lists no members: tell what one person can see."""

    async def sees(self, person: str, audiences: Sequence[str]) -> Sequence[str]:
        """Return those of these shared audiences that a person can see now, by their id; what is in doubt is not seen.

        Raises: DeliveryError, OSError, TimeoutError where the network cannot be asked.
        """
        ...


@runtime_checkable
class TakesBack(Protocol):
    """What an adapter may do besides: take its own posts down."""

    async def take_back(self, conversation: str, receipt: str) -> None:
        """Take one post down; one that is gone is no fault. Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown."""
        ...


@runtime_checkable
class Holds(Protocol):
    """What an adapter may do besides: say, in its sign of thinking and nowhere else, that this takes a moment."""

    async def hold(self, perception: Perception, line: str) -> None:
        """Show a holding line in the sign, until the reply comes. Never raises and waits for no network."""
        ...


@runtime_checkable
class TellsLacks(Protocol):
    """What an adapter may do besides: say what keeps it from hearing a channel."""

    async def lacks(self, conversation: str) -> str:
        """Tell it in words, for whoever wants us there; empty = nothing that the network tells. Never raises."""
        ...


async def nothing_missed() -> AsyncIterator[Swept]:
    """Be the `catch_up` of a network that has no history."""
    nothing: tuple[Swept, ...] = ()
    for swept in nothing:
        yield swept
