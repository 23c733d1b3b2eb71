"""The interface through which the adapter contract drives the people of a network, the same for every network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

PATIENCE_S = 20.0
DM, CHANNEL = "dm", "channel"
"""The two places that every stage has: the app's direct messages with Ana, and a channel with both people."""
ANA, BEN = "ana", "ben"
"""Two people whom the network knows as full members."""
BOT, STRANGER = "bot", "stranger"
"""Two who join by `meet`: another app, and somebody who is not a member."""
Trouble = Literal["slow", "closed", "dropped", "renewed", "deaf", "shut out"]
"""In this order: the next post must wait a second; the channel is closed to us; the socket is cut; it is cut and
cannot be resumed; it is open but nothing arrives; our token is revoked. After a cut the stage waits for recovery.
"""

EVERYTHING = frozenset(
    {
        "threads", "edits", "deletes", "reactions", "files", "history", "redelivery", "lost answers",
        "strangers", "sockets", "limits", "commands",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """One complete message of the app's that people see."""

    where: str
    thread: str
    """Empty if it is in no thread."""
    text: str
    id: str


class Stage:
    """One network: what people do there, and what they see. What a network cannot do stays as it is here."""

    name: str
    """The network's name in conversation keys."""
    own_person: str
    """The person id of Ana."""

    @property
    def can(self) -> frozenset[str]:
        """What this network supports, of `EVERYTHING`; cases that need more are skipped."""
        return frozenset()

    def seen(self, text: str) -> str:
        """Return how people there see a text that was sent."""
        return text

    async def say_as_us(self, where: str, text: str) -> None:
        """Post under the app's own name, but not through the adapter."""

    async def double(self, events: int) -> None:
        """Deliver this many events twice."""

    async def lose_answer(self, *, is_applied: bool) -> None:
        """Lose the answer to the next post, after it was applied or before."""

    async def say(
        self, where: str, text: str, *, by: str = ANA, thread: str = "", calls: bool = False, deliver: bool = True
    ) -> str:
        """Say something; return the message's id. `calls`: it mentions the app. Not `deliver`: its event is lost."""
        raise NotImplementedError

    async def edit(self, where: str, message: str, text: str, *, thread: str = "", calls: bool = False) -> None:
        """Edit a message."""

    async def unfurl(self, where: str, message: str, title: str = "Example", *, thread: str = "") -> None:
        """Have the network report a change that leaves the words the same."""

    async def delete(self, where: str, messages: Sequence[str], *, thread: str = "") -> None:
        """Delete messages: one, or several at once if the network can."""

    async def react(
        self, where: str, message: str, emoji: str, *, by: str = ANA, thread: str = "", is_on: bool = True
    ) -> None:
        """Add a reaction to a message, or remove it."""

    async def upload(
        self, where: str, name: str, content: bytes, mimetype: str, *, text: str = "", calls: bool = False
    ) -> str:
        """Upload a file to the app; return the message's id."""
        raise NotImplementedError

    async def begin_thread(self, message: str) -> str:
        """Start a thread on a channel message, as people do; return its id."""
        raise NotImplementedError

    async def refuse_history(self) -> None:
        """Refuse the app every history request from now on."""

    async def visible(self) -> list[Shown]:
        """Return the app's messages, oldest first."""
        raise NotImplementedError

    async def until_visible(self, count: int) -> list[Shown]:
        """Wait until this many messages are visible. Raises: TimeoutError."""
        async with asyncio.timeout(PATIENCE_S):
            while len(await self.visible()) < count:  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.005)
        return await self.visible()

    async def until_told(self) -> None:
        """Wait until the app has received and accepted every event. Raises: TimeoutError."""

    async def meet(self, who: str) -> None:
        """Add another app, or a stranger, who may then speak."""

    async def hold(self) -> None:
        """Hold back all events from now on."""

    async def release(self) -> None:
        """Deliver the held events, in another order."""

    async def trouble(self, what: Trouble) -> None:
        """Cause one kind of trouble."""

    async def command(self, where: str, word: str) -> None:
        """Have Ana use the command `/claudius WORD`."""

    async def told(self) -> list[str]:
        """Return what was said to Ana alone in answer to commands."""
        return []

    async def is_quiet(self) -> bool:
        """Return whether no post so far notified anybody or may unfurl a link, judged by what was actually sent."""
        return True
