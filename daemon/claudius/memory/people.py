"""The part of the store's door about people: who takes part, who was let in, what they may know of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from msgspec import Struct

from claudius.recollection import UserModel

Mode = Literal["on", "off", "listen"]
"""How the soul takes part in a channel: may speak; stays out; hears, remembers and stays silent."""


class Known(Struct, frozen=True, kw_only=True):
    """What one person may be shown of what the soul knows."""

    name: str
    models: tuple[UserModel, ...]
    state: Mapping[str, str]
    """The soul's own state, as far as that person may see it."""


class Answered(Struct, frozen=True, kw_only=True):
    """What one answer drew on."""

    turn: str
    at: datetime
    conversation: str
    shown: tuple[UserModel, ...]
    """Portraits that stood in the prompt, as far as whoever asks may see them; without their words."""
    snapshot: bytes
    heard: tuple[str, ...]
    """Positions of the last messages of the conversation, latest first."""


class Sight(Struct, frozen=True, kw_only=True):
    """What one id of a person was last known to see, of the shared places of its network."""

    person: str
    listed: tuple[str, ...]
    """Places whose list of members holds it."""
    unlisted: tuple[str, ...]
    """All places of which nobody lists the members."""
    seen: frozenset[str]
    """Those among them that it sees."""


class People(Protocol):
    """Who takes part, and what a person may know of themself."""

    async def sight(self, person: str) -> Sequence[Sight]:
        """Return what each id of a person was last known to see."""
        ...

    async def know_sight(self, person: str, seen: Sequence[str]) -> None:
        """Record which places that nobody lists one id of a person sees now, in place of what was known."""
        ...

    async def participations(self) -> Mapping[str, Mode]:
        """Return how the soul takes part in each channel (`network:workspace:channel`) that somebody spoke for."""
        ...

    async def participation(self, place: str) -> tuple[str, datetime] | None:
        """Return who said last how the soul is to take part in a channel, and when; None where nobody did."""
        ...

    async def participate(self, place: str, mode: Mode, person: str, now: datetime) -> None:
        """Keep how the soul takes part in a channel, and who said so."""
        ...

    async def participate_no_more(self, place: str) -> None:
        """Forget what was said of how the soul takes part in a channel."""
        ...

    async def hush(self, conversation: str) -> bool:
        """Be quiet in a thread until called again; False where it was not called into it."""
        ...

    async def paired(self) -> Sequence[str]:
        """Return the persons who were let in by a code."""
        ...

    async def pair(self, person: str, name: str, now: datetime) -> None:
        """Let a person in."""
        ...

    async def unpair(self, person: str) -> bool:
        """Let a person in no longer; False where they were not let in by a code."""
        ...

    async def wish(self, person: str, *, proactive: bool, now: datetime) -> None:
        """Keep whether a person wants to be written to first."""
        ...

    async def wants_proactive(self, person: str) -> bool:
        """Tell whether a person said that they may be written to first, and took it back under none of their ids."""
        ...

    async def zone(self, person: str) -> str:
        """Return the time zone that the network tells of a person, by its IANA name; empty where none."""
        ...

    async def known_of(self, person: str, now: datetime, here: str = "") -> Known:
        """Return what a person may be shown, alone, of what the soul knows of them; `here`: a channel they stand in."""
        ...

    async def last_answer(self, person: str, place: str, now: datetime) -> Answered | None:
        """Return what the last answer to a person drew on, in a conversation or anywhere in a channel; None = none."""
        ...

    async def posts_for(self, key: str) -> Sequence[tuple[str, str]]:
        """Return what people see of the answer to one message alone, last part first: conversation and receipt."""
        ...

    async def correct(self, person: str, audience: str, markdown: str, *, suspect: bool, now: datetime) -> int:
        """Write a new version of a person's model in that person's own words; return its number."""
        ...

    async def said_by(self, person: str) -> Mapping[str, Any]:
        """Return `{"messages": [...], "state": [...]}` of one person, under every id of theirs."""
        ...
