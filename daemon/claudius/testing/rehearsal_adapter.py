"""The shipped fake of a network: people say things to it, and what the soul says becomes visible in it."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from claudius.errors import DeliveryError
from claudius.intent import Utterance
from claudius.perception import Perception, private, shared
from claudius.runtime.adapter import Accept

NETWORK = "rehearsal"


@dataclass(slots=True)
class Visible:
    """One message of the soul's that people see."""

    key: str
    conversation: str
    text: str
    is_complete: bool = True


@dataclass(slots=True)
class RehearsalAdapter:
    """A network in memory. `faults` are raised by the next sends, in order; `applied` says whether they arrived."""

    name: str = NETWORK
    post_chars: int | None = None
    visible: list[Visible] = field(default_factory=list)
    faults: deque[tuple[DeliveryError, bool]] = field(default_factory=deque)
    signs: list[tuple[str, bool]] = field(default_factory=list)
    """Every change of the working sign: conversation, on or off."""
    _accept: Accept | None = None
    _said: int = 0
    _closed: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, accept: Accept) -> None:
        """Hear until closed."""
        self._accept = accept
        await self._closed.wait()

    async def hear(
        self, text: str, *, person: str = "ana", conversation: str = "", key: str = "", is_shared: bool = False
    ) -> Perception:
        """Have a person say something, as the network would deliver it; return it once it is accepted."""
        if self._accept is None:
            raise AssertionError("the adapter does not listen")
        self._said += 1
        place = conversation or f"{NETWORK}:t:dm-{person}:"
        who = f"{NETWORK}:t:{person}"
        perception = Perception(
            key=key or f"{NETWORK}:{uuid4()}",
            conversation=place,
            audience=shared(place) if is_shared else private(who),
            person=who,
            name=person.capitalize(),
            text=text,
            at=datetime.now(UTC),
            position=f"{self._said:020d}",
        )
        await self._accept(perception)
        return perception

    async def speak(self, utterance: Utterance) -> str:
        """Make one part visible, or fail as told."""
        if self.faults:
            error, is_applied = self.faults.popleft()
            if is_applied:
                self._make_visible(utterance.key, utterance.conversation, utterance.body)
            raise error
        self._make_visible(utterance.key, utterance.conversation, utterance.body)
        return f"r:{utterance.key}"

    async def find(self, utterance: Utterance) -> str | None:
        """Look whether a part is visible."""
        seen = any(one.key == utterance.key and one.is_complete for one in self.visible)
        return f"r:{utterance.key}" if seen else None

    async def working(self, conversation: str, *, on: bool) -> None:
        """Remember the sign."""
        self.signs.append((conversation, on))

    def streams(self, perception: Perception) -> bool:  # noqa: ARG002 - the door's signature
        """Everyone can watch a message grow."""
        return True

    async def show(self, utterance: Utterance, text: str) -> None:
        """Let a message grow."""
        growing = next((one for one in self.visible if one.key == utterance.key), None)
        if growing is None:
            self.visible.append(Visible(utterance.key, utterance.conversation, text, is_complete=False))
        else:
            growing.text += text
        self._changed.set()

    async def close(self) -> None:
        """Stop hearing."""
        self._accept = None
        self._closed.set()

    async def until_visible(self, count: int, *, within_s: float = 20.0) -> list[Visible]:
        """Wait until so many complete messages are visible. Raises: TimeoutError."""
        async with asyncio.timeout(within_s):
            while sum(one.is_complete for one in self.visible) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.visible

    def _make_visible(self, key: str, conversation: str, text: str) -> None:
        for one in self.visible:
            if one.key == key and not one.is_complete:
                one.text, one.is_complete = text, True
                break
        else:
            self.visible.append(Visible(key, conversation, text))
        self._changed.set()
