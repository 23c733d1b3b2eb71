"""The topic `store.people`: who takes part and sees what, ids and links, and what persons may know of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from msgspec import Struct

from claudius.memory.knowledge import Knowledge
from claudius.perception import Perception

Mode = Literal["on", "off", "listen"]
"""How the soul takes part in a channel: it may speak, stays out, or listens and remembers without speaking."""


class SeenPlaces(Struct, frozen=True, kw_only=True):
    """Which shared places of its network one id of a person was last known to see."""

    person: str
    listed: tuple[str, ...]
    """Places whose member list includes this id."""
    unlisted: tuple[str, ...]
    """All places without a member list."""
    seen: frozenset[str]
    """Those of `unlisted` that it sees."""


class PeopleStore(Protocol):
    """Members of shared places, participation, pairing, ids of one person, and what a person may know of themself."""

    async def know_members(self, audience: str, persons: Sequence[str] | None, now: datetime) -> None:
        """Record who can see a shared audience now; None if that is no longer known, so only it may see itself."""
        ...

    async def sight(self, person: str) -> Sequence[SeenPlaces]:
        """Return what each id of a person was last known to see."""
        ...

    async def know_sight(self, person: str, seen: Sequence[str]) -> None:
        """Record which places without a member list one id of a person can see now, replacing what was known."""
        ...

    async def access(self, person: str, place: str) -> tuple[bool, Mode | None]:
        """Return whether a person was paired by a code, and the mode that was set in a channel, None if none was.

        Asked for everything that is heard: what any process wrote before is in force.
        """
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

    async def hush(self, conversation: str, position: str, now: datetime, *, on: bool = True) -> None:
        """Answer nothing but mentions in a thread or channel from now on; not `on`: what is said after this, again."""
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

    async def ids_of(self, person: str) -> Sequence[str]:
        """Return every id of a person, found by any of them, the canonical one first; empty for an unknown person."""
        ...

    async def link(self, person: str, other: str) -> None:
        """Make two ids one person. Raises: StoreError if either is unknown or they are one already."""
        ...

    async def unlink(self, person: str, now: datetime, author: Literal["owner", "person"] = "owner") -> Sequence[str]:
        """Unlink all ids of a person; return them. Raises: StoreError if there is only one.

        Each gets back the portraits of its own places and what its own messages brought; `author` says who asked.
        """
        ...

    async def known_of(self, person: str, now: datetime, here: str = "") -> Knowledge:
        """Return who a person is to the soul, as far as it may show them alone; `here` is a channel that they are in.

        It reads beside the turns.
        """
        ...

    async def known_in(self, perception: Perception) -> Knowledge:
        """Return who a speaker is to the soul, as far as everybody may know it where they spoke."""
        ...

    async def said_by(self, person: str) -> Mapping[str, Any]:
        """Return `{"messages": [...], "state": [...]}` of one person, under all their ids."""
        ...
