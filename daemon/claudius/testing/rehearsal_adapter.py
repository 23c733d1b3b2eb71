"""The shipped fake network: tests make people speak in it, and read what the soul says."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from claudius.errors import DeliveryError
from claudius.intent import Utterance
from claudius.perception import Kind, MessageExtra, Perception, Place, private, shared
from claudius.runtime.adapter import Accept, Fetched, Gap, Link, PlainNetwork, Swept
from claudius.shown import Quoted

NETWORK = "rehearsal"


@dataclass(slots=True)
class Visible:
    """One message of the soul's that people see."""

    key: str
    conversation: str
    text: str
    is_complete: bool = True


@dataclass(slots=True)
class RehearsalAdapter(PlainNetwork):
    """An in-memory network. `faults` are raised by the next sends, in order; `applied` says whether they arrived."""

    name: str = NETWORK
    places: int = 10
    post_chars: int | None = None
    appears_s: float = 0.0
    link: Link = field(default_factory=Link)
    missed: list[Perception] = field(default_factory=list)
    """What was said while nobody listened; `catch_up` returns it."""
    audiences: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Who can see each shared audience."""
    asked: list[str] = field(default_factory=list)
    """Each audience whose members were requested."""
    looks: int = 0
    """How often `find` was called."""
    visible: list[Visible] = field(default_factory=list)
    faults: deque[tuple[DeliveryError, bool]] = field(default_factory=deque)
    held: list[tuple[str, str]] = field(default_factory=list)
    """Every holding line: conversation, words."""
    files: dict[str, bytes] = field(default_factory=dict)
    """The files that people upload, by id."""
    reactions: list[tuple[str, str]] = field(default_factory=list)
    """Every reaction of the soul's that people see: the key of the message, and the sign."""
    signs: list[tuple[str, bool]] = field(default_factory=list)
    """Every change of the typing indicator: conversation, on or off."""
    _accept: Accept | None = None
    _said: int = 0
    _closed: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, accept: Accept) -> None:
        """Listen until closed."""
        self._accept = accept
        self.link.up()
        await self._closed.wait()

    @property
    def is_listening(self) -> bool:
        """Whether it is listening."""
        return self._accept is not None

    async def hear(
        self,
        text: str,
        *,
        person: str = "ana",
        conversation: str = "",
        key: str = "",
        is_shared: bool = False,
        kind: Kind | None = None,
        zone: str = "",
        shown: tuple[Quoted, ...] = (),
    ) -> Perception:
        """Have a person say something, as the network would deliver it; return it once it is accepted.

        `zone`: the time zone that the network reports for them; `shown`: what the message shows besides its words.
        """
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
            kind=kind or (Kind.MENTION if is_shared else Kind.MESSAGE),
            extra=MessageExtra(zone=zone, shown=shown),
        )
        await self._accept(perception)
        return perception

    async def speak(self, utterance: Utterance) -> str:
        """Make one part visible, or raise the next fault."""
        if self.faults:
            error, is_applied = self.faults.popleft()
            if is_applied:
                self._make_visible(utterance.key, utterance.conversation, utterance.whole)
            raise error
        self._make_visible(utterance.key, utterance.conversation, utterance.whole)
        return f"r:{utterance.key}"

    async def tell(self, person: str, text: str) -> None:
        """Send one line to a person in a direct message."""
        self._make_visible(str(uuid4()), f"{self.name}:t:dm-{person.rpartition(':')[2]}:", text)

    async def react(self, utterance: Utterance) -> str:
        """React to the message that an utterance answers; a repeated reaction has no effect."""
        sign = (utterance.answers[-1], utterance.body)
        if sign not in self.reactions:
            self.reactions.append(sign)
        return f"r:{utterance.key}"

    async def find(self, utterance: Utterance, *, decided_at: datetime) -> str | None:  # noqa: ARG002 - the protocol's signature
        """Return the receipt of a part if it is visible; None if not."""
        self.looks += 1
        seen = any(one.key == utterance.key and one.is_complete for one in self.visible)
        return f"r:{utterance.key}" if seen else None

    async def working(self, perception: Perception, *, on: bool) -> None:
        """Record the typing indicator."""
        self.signs.append((perception.conversation, on))

    async def hold(self, perception: Perception, line: str) -> None:
        """Record the holding line."""
        self.held.append((perception.conversation, line))

    def streams(self, perception: Perception) -> bool:  # noqa: ARG002 - the protocol's signature
        """Return True: everyone can watch a message grow."""
        return True

    async def show(self, utterance: Utterance, text: str) -> None:
        """Append text to a message that is still growing."""
        growing = next((one for one in self.visible if one.key == utterance.key), None)
        if growing is None:
            self.visible.append(Visible(utterance.key, utterance.conversation, text, is_complete=False))
        else:
            growing.text += text
        self._changed.set()

    async def catch_up(self, gap: Gap) -> AsyncIterator[Swept]:
        """Yield what was missed, one conversation at a time."""
        missed, self.missed = [one for one in self.missed if one.at >= gap.since], []
        for conversation in dict.fromkeys(one.conversation for one in missed):
            place = Place.of(conversation)
            said = tuple(one for one in missed if one.conversation == conversation)
            yield Swept(
                channel=f"{place.workspace}:{place.channel}",
                perceptions=said,
                position=said[-1].position,
                conversation=conversation,
            )

    async def context(self, perception: Perception, most: int) -> Sequence[Perception]:
        """Return the missed messages that precede this one in its conversation, at most `most`."""
        there = (one for one in self.missed if one.conversation == perception.conversation)
        return [one for one in there if one.position < perception.position][-most:]

    async def fetch(self, file: Mapping[str, Any], most_bytes: int) -> Fetched:
        """Return a file of this network. Raises: ValueError, FileNotFoundError."""
        content = self.files.get(str(file.get("id")))
        if content is None:
            raise FileNotFoundError(str(file.get("id")))
        if len(content) > most_bytes:
            raise ValueError("too large")
        return Fetched(content, str(file.get("name")), str(file.get("type")))

    async def members(self, audience: str) -> Sequence[str] | None:
        """Return who can see a shared audience, if the test set it; else None."""
        self.asked.append(audience)
        return self.audiences.get(audience)

    async def close(self) -> None:
        """Stop listening."""
        self._accept = None
        self._closed.set()

    async def until_visible(self, count: int, *, within_s: float = 20.0) -> list[Visible]:
        """Wait until this many complete messages are visible. Raises: TimeoutError."""
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
