"""The part of the `Store` protocol about people: participation, pairing, and what persons may know of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from msgspec import Struct

from claudius.recollection import UserModel

Mode = Literal["on", "off", "listen"]
"""How the soul takes part in a channel: it may speak, stays out, or listens and remembers without speaking."""


class Known(Struct, frozen=True, kw_only=True):
    """What one person may be shown of what the soul knows."""

    name: str
    models: tuple[UserModel, ...]
    state: Mapping[str, str]
    """The soul's own state, as far as that person may see it."""


class Answered(Struct, frozen=True, kw_only=True):
    """What one answer was based on."""

    turn: str
    at: datetime
    conversation: str
    shown: tuple[UserModel, ...]
    """Portraits that stood in the prompt and that the asking person may see, without their text."""
    snapshot: bytes
    heard: tuple[str, ...]
    """Positions of the last messages of the conversation, latest first."""


class Sight(Struct, frozen=True, kw_only=True):
    """Which shared places of its network one id of a person was last known to see."""

    person: str
    listed: tuple[str, ...]
    """Places whose member list includes this id."""
    unlisted: tuple[str, ...]
    """All places without a member list."""
    seen: frozenset[str]
    """Those of `unlisted` that it sees."""


class People(Protocol):
    """Who takes part, and what a person may know of themself."""

    async def sight(self, person: str) -> Sequence[Sight]:
        """Return what each id of a person was last known to see."""
        ...

    async def know_sight(self, person: str, seen: Sequence[str]) -> None:
        """Record which places without a member list one id of a person can see now, replacing what was known."""
        ...

    async def participations(self) -> Mapping[str, Mode]:
        """Return how the soul takes part in each channel (`network:workspace:channel`) that has a setting."""
        ...

    async def participation(self, place: str) -> tuple[str, datetime] | None:
        """Return who last set the participation in a channel, and when; None if nobody did."""
        ...

    async def participate(self, place: str, mode: Mode, person: str, now: datetime) -> None:
        """Store how the soul takes part in a channel, and who decided it."""
        ...

    async def participate_no_more(self, place: str) -> None:
        """Delete the participation setting of a channel."""
        ...

    async def hush(self, conversation: str) -> bool:
        """Stay quiet in a thread until mentioned again; False if the soul was not called into it."""
        ...

    async def paired(self) -> Sequence[str]:
        """Return the persons who were paired by a code."""
        ...

    async def pair(self, person: str, name: str, now: datetime) -> None:
        """Pair a person."""
        ...

    async def unpair(self, person: str) -> bool:
        """Remove a person's pairing; False if they were not paired by a code."""
        ...

    async def wish(self, person: str, *, proactive: bool, now: datetime) -> None:
        """Store whether a person wants to be written to first."""
        ...

    async def wants_proactive(self, person: str) -> bool:
        """Return whether a person agreed to be written to first, and withdrew it under none of their ids."""
        ...

    async def zone(self, person: str) -> str:
        """Return the person's IANA time zone as reported by the network; empty if unknown."""
        ...

    async def known_of(self, person: str, now: datetime, here: str = "") -> Known:
        """Return what the soul knows of a person and may show to them alone; `here` is a channel that they are in."""
        ...

    async def last_answer(self, person: str, place: str, now: datetime) -> Answered | None:
        """Return what the last answer to a person in a conversation or channel was based on; None if there is none."""
        ...

    async def posts_for(self, key: str) -> Sequence[tuple[str, str]]:
        """Return the visible parts of the answer to this message alone, last part first: conversation and receipt."""
        ...

    async def correct(self, person: str, audience: str, markdown: str, *, suspect: bool, now: datetime) -> int:
        """Write a new version of a person's model in that person's own words; return its number."""
        ...

    async def said_by(self, person: str) -> Mapping[str, Any]:
        """Return `{"messages": [...], "state": [...]}` of one person, under all their ids."""
        ...
