"""The interface to every network: an adapter listens and speaks, and decides nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct, field

from claudius.config.schema import Config
from claudius.errors import DeliveryError, DeliveryRefused
from claudius.failure import Failure
from claudius.intent import ShownThought, Utterance
from claudius.memory.seen import HeardPost
from claudius.perception import Perception
from claudius.tool import Card

Accept = Callable[[Perception], Awaitable[bool]]
"""Makes a perception durable. Returns True if it is new, False if it is known already or not to be heard.

Raises if nothing was stored; the adapter then acknowledges nothing. OverBudget is the exception: it is acknowledged.
"""
BELIEVED_S = 90.0
"""A network that missed a message counts as deaf until an event arrives, or for this long without another missed one.

It is longer than the watchdogs of the adapters need to find the next missed message.
"""


class Link:
    """The state of an adapter's connection: the adapter reports it, the server reads it."""

    def __init__(self, *, connected: bool = False) -> None:
        """Start disconnected; pass `connected` for a network that is always there."""
        self.connected = connected
        """Whether the network can be spoken to; while this process listens, whether it is heard as well."""
        self.reconnects = 0
        self.listeners = 1
        """How many processes of this soul may listen at once."""
        self.was_alone: Callable[[float], bool] = lambda _: True
        """Whether this process was the only one that listened, so many seconds ago; False where nobody can say."""
        self.detail = ""
        """What is wrong, in words for `claudius status`; empty = nothing."""
        self.last_error = ""
        """The latest thing that was wrong, kept when it is right again."""
        self.reason: Callable[[], str] = lambda: ""
        """Why the network cannot be reached, in words as in `detail`, where that is known better; empty = it is not."""
        self.notice: Callable[[], str] = lambda: ""
        """Checks for a problem while the network is connected; returns words as in `detail`."""
        self.listens = True
        """Whether this process is to hear the network; False = it only speaks."""
        self._was_up = connected
        self._down_at = self._deaf_at = time.monotonic()
        self._missed_at: float | None = None
        """When the last missed message was found; None = events arrive."""
        self._tried = asyncio.Event()
        self._missed: Callable[[float | None], None] = lambda _: None
        if connected:
            self._tried.set()

    @property
    def hears(self) -> bool:
        """Whether this process hears the network now."""
        return self.listens and self.unheard_s() is None

    def speaks(self) -> None:
        """Report that the network can be spoken to while this process does not listen."""
        self.listens, self.connected, self.detail, self._missed_at = False, True, "", None
        self._tried.set()

    def listen(self) -> None:
        """Report that this process begins to listen, be it again: it counts as disconnected until `up`."""
        if self.connected or not self.listens:
            self.listens, self.connected, self._was_up, self._down_at = True, False, False, time.monotonic()

    def up(self) -> None:
        """Report that the network is connected, for the first time or again."""
        if self.connected:
            return
        gap_s = time.monotonic() - self._down_at if self._was_up else None
        self.reconnects += self._was_up
        self.connected, self._was_up, self.detail = True, True, ""
        self._tried.set()
        self._missed(gap_s)

    def down(self, detail: str) -> None:
        """Report that the network is disconnected, and why; the adapter reconnects by itself."""
        detail = self.reason() or detail
        if self.connected:
            self._down_at = time.monotonic()
        self.connected, self.detail, self.last_error = False, detail, detail
        self._tried.set()

    def deaf(self, silent_s: float | None = None) -> None:
        """Report that the network holds messages that were not received, although it seemed connected.

        `silent_s`: for how long nothing arrived at all; None = unknown.
        """
        if self._deaf_s() is None:
            self._deaf_at = time.monotonic()
        self._missed_at = time.monotonic()
        self._missed(silent_s)

    def heard(self) -> None:
        """Report that an event arrived by itself: the network is not deaf."""
        self._missed_at = None

    def look_back(self) -> None:
        """Ask for a sweep of the history: something arrived that could not be stored."""
        self._missed(None)

    def unheard_s(self) -> float | None:
        """Return for how many seconds the network has not been heard; None = it is heard.

        It is not heard while it is disconnected, and while it misses messages although it is connected. None too if
        this process is not to hear it.
        """
        if self.listens and not self.connected:
            return time.monotonic() - self._down_at
        return self._deaf_s()

    def _deaf_s(self) -> float | None:
        now = time.monotonic()
        if self._missed_at is None or now - self._missed_at > BELIEVED_S:
            return None
        return now - self._deaf_at

    async def tried(self) -> None:
        """Return once the first attempt to connect has ended, whether or not it succeeded."""
        await self._tried.wait()

    def on_missed(self, missed: Callable[[float | None], None]) -> None:
        """Call `missed` after each gap, with its length in seconds; None = unknown."""
        self._missed = missed


class Gap(Struct, frozen=True, kw_only=True):
    """A period in which messages may have been missed."""

    since: datetime
    """Nothing older is read."""
    now: datetime | None = None
    """When the sweep begins, if the caller's clock is that of the network."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """How far each channel (`workspace:channel`) was read without a gap, in the network's own order, latest first.

    `workspace:` alone is how far all of them were read.
    """
    conversations: Sequence[str] = ()
    """Recent conversations, latest first: threads that a channel's history does not show."""
    known: Sequence[HeardPost] = ()
    """What was heard and shown since then, if it may have been changed or deleted meanwhile."""


class Swept(Struct, frozen=True, kw_only=True):
    """The history of one channel or thread, read from its mark to its end."""

    channel: str
    """`workspace:channel`; `workspace:` alone, at the end of a sweep, says how far the whole workspace is read."""
    perceptions: tuple[Perception, ...]
    """In the network's own order."""
    position: str = ""
    """How far it was read; empty = the mark stays."""
    conversation: str = ""
    """The one conversation that is now complete; empty = the whole channel."""
    left_out: int = 0
    """How many messages lay beyond the limits of the sweep."""


class PlainNetwork(Protocol):
    """What is asked of every network beside its messages, answered as one does that has no more than these.

    Each method has a body: without one, a type checker takes it for abstract.
    """

    name: str
    """The network's name in conversation keys."""
    post_chars: int | None
    """The longest single post in UTF-16 units; None = unlimited."""
    appears_s: float
    """For how long a message may still become visible after a send whose response was lost."""
    link: Link
    is_plain: bool = False
    """Whether it shows neither tables nor deep headings."""
    introduces: bool = False
    """Whether a first direct message is answered with a line on what the soul can do."""
    is_local: bool = False
    """Whether only whoever uses this machine hears it."""
    places: int = 1
    """How many processes of one soul may listen to it at once."""
    logs_in: bool = False
    """Whether it can speak in a process that does not listen, once `log_in` has returned."""

    @property
    def lists_members(self) -> bool:
        """Whether `members` tells who sees a place; else `sees` tells which places one person sees."""
        return type(self).sees is PlainNetwork.sees

    @property
    def tells(self) -> bool:
        """Whether it can `tell` one person something, whatever the store's state."""
        return type(self).tell is not PlainNetwork.tell

    async def find(self, utterance: Utterance, *, decided_at: datetime) -> str | None:  # noqa: ARG002 - a network's own
        """Return the receipt of a part that is visible already, or None if it is not, or nobody records it.

        Raises: DeliveryRefused if that can never be known, DeliveryLater and DeliveryUnknown if not now.
        """
        return None

    async def working(self, perception: Perception, *, on: bool) -> None:  # noqa: ARG002 - a network's own
        """Show or clear the typing indicator for a perception.

        It carries no words of the reply. Never raises and does not wait for the network.
        """
        return

    def streams(self, perception: Perception) -> bool:  # noqa: ARG002 - a network's own
        """Return whether the recipients of the answer can watch it grow."""
        return False

    async def show(self, utterance: Utterance, text: str) -> None:  # noqa: ARG002 - a network's own
        """Show the next piece of an utterance that `speak` will complete in the same message. Never raises."""
        return

    def catch_up(self, gap: Gap) -> AsyncIterator[Swept]:  # noqa: ARG002 - a network's own
        """Read what may have been missed, latest activity first, paced under the network's limits.

        Raises: DeliveryError, OSError, TimeoutError if the network cannot be read now.
        """
        return nothing_missed()

    async def context(self, perception: Perception, most: int) -> Sequence[Perception]:  # noqa: ARG002 - a network's own
        """Return the latest `most` messages before a perception in its thread, oldest first, without our own.

        Raises: DeliveryError, OSError, TimeoutError if the network cannot be read now.
        """
        return ()

    async def fetch(self, file: Mapping[str, Any], most_bytes: int) -> Fetched:  # noqa: ARG002 - a network's own
        """Return a file that a message names in `extra.files`, from the network's own hosts.

        Raises: ValueError if it is too large; DeliveryError, OSError, TimeoutError if it cannot be fetched.
        """
        raise FileNotFoundError(f"{self.name} holds no files")

    async def members(self, audience: str) -> Sequence[str] | None:  # noqa: ARG002 - a network's own
        """Return the person ids of all who can see a shared audience now, or None if the network cannot tell."""
        return None

    async def sees(self, person: str, audiences: Sequence[str]) -> Sequence[str]:  # noqa: ARG002 - a network's own
        """Return the ids of those shared audiences that a person can see now; doubtful ones are left out.

        Raises: DeliveryError, OSError, TimeoutError if the network cannot be asked.
        """
        return ()

    def follow(self, config: Callable[[], Config]) -> None:  # noqa: ARG002 - a network's own
        """Read the settings in force from `config` from now on; called before `listen`."""
        return

    async def log_in(self) -> None:
        """Become able to speak; try again while the network cannot be reached. Raises: AdapterRefused."""
        return

    async def react(self, utterance: Utterance) -> str:  # noqa: ARG002 - a network's own
        """Add the utterance's reaction to the message that it answers and return a receipt. Idempotent.

        A message that allows it has `extra.can_react`. Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown.
        """
        raise DeliveryRefused("cannot_react")

    async def take_back(self, conversation: str, receipt: str) -> None:  # noqa: ARG002 - a network's own
        """Delete one of our posts; a missing one is no error. Raises: as `react`."""
        raise DeliveryRefused("cannot_take_back")

    async def settles(self, conversation: str, receipt: str, card: Card) -> None:  # noqa: ARG002 - a network's own
        """Put the verdict of `card` in place of its post's buttons; a missing one is no error. Raises: as `react`."""
        return

    async def transcribed(self, file: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a file of `extra.files` with what was `spoken` in it, once the network has it; else as it is.

        Raises: DeliveryError, OSError, TimeoutError if the network cannot be asked.
        """
        return file

    async def hold(self, perception: Perception, line: str) -> None:  # noqa: ARG002 - a network's own
        """Show a line in the typing indicator until the reply comes. Never raises or waits for the network."""
        return

    async def answer(self, perception: Perception, text: str) -> None:  # noqa: ARG002 - a network's own
        """Answer a command to the person who gave it, where possible to nobody else. Raises: DeliveryError, OSError."""
        raise DeliveryRefused("cannot_answer")

    async def tell(self, person: str, text: str) -> None:  # noqa: ARG002 - a network's own
        """Send one line to a person in a direct message. Raises: DeliveryError, OSError, TimeoutError."""
        raise DeliveryRefused("cannot_tell")

    async def show_thought(self, thought: ShownThought) -> None:  # noqa: ARG002 - a network's own
        """Show an owner a thought, folded, below what was said. Raises: DeliveryError, OSError."""
        return

    async def failed(self, perception: Perception, turn: str, failure: Failure) -> None:  # noqa: ARG002 - a network's own
        """Tell the owner alone, at once, what keeps an answer from coming. Never raises and does not wait."""
        return

    async def name_of(self, person: str) -> str:  # noqa: ARG002 - a network's own
        """Return the name that the network shows of a person; empty = none. Raises: DeliveryError, OSError."""
        return ""

    async def lacks(self, conversation: str) -> str:  # noqa: ARG002 - a network's own
        """Return what keeps it from hearing a channel, for whoever wants us there; empty = nothing. Never raises."""
        return ""

    async def close(self) -> None:
        """Stop listening; leave no task, socket or session. The task of `listen` is cancelled in any case."""
        return


class Adapter(PlainNetwork, Protocol):
    """One network. An adapter keeps no queue and does not retry sends."""

    async def listen(self, accept: Accept) -> None:
        """Listen until closed. Raises: AdapterRefused if the network refuses us permanently.

        Of an adapter that `logs_in`, it may be cancelled and called again any number of times; speaking goes on
        before, between and after.
        """

    async def speak(self, utterance: Utterance) -> str:
        """Send one part and return the network's receipt. Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown."""


class PlainAdapter(PlainNetwork):
    """What a network can do that has no more than messages: the start for an adapter of your own.

    It then needs a `name`, `listen` and `speak`; everything else is answered as `PlainNetwork` says.
    """

    name = ""
    post_chars: int | None = None
    appears_s = 0.0

    def __init__(self) -> None:
        """Start disconnected: call `link.up()` once the network is heard."""
        self.link = Link()


class Fetched(Struct, frozen=True):
    """A file fetched from a network."""

    content: bytes
    name: str
    media_type: str


async def shown_name(adapter: Adapter | None, person: str) -> str:
    """Return the name that a network shows of a person; empty if it shows none, or cannot be asked now."""
    if adapter:
        with suppress(DeliveryError, OSError, TimeoutError):
            return await adapter.name_of(person)
    return ""


async def nothing_missed() -> AsyncIterator[Swept]:
    """Serve as the `catch_up` of a network without history."""
    nothing: tuple[Swept, ...] = ()
    for swept in nothing:
        yield swept
