"""The part of the store's door that daimons use: what they are told, what they whisper, how they fare."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct, field

from claudius.perception import Perception

Transport = Literal["http", "model", "offer", "manual"]
HEARD_BEFORE = 10
"""A whisper that equals one of its daimon's last so many is not kept."""


class Whisper(Struct, frozen=True, kw_only=True):
    """One line of counsel, sanitised, on its way into the store."""

    daimon: str
    text: str
    transport: Transport
    sources: tuple[str, ...]
    """The audiences of what was sent out for it."""
    at: datetime
    expires_at: datetime
    influence: str = ""
    conversation: str = ""


class Scene(Struct, frozen=True, kw_only=True):
    """What may be told to a daimon of one conversation: the one that was active last."""

    conversation: str = ""
    """Empty: nothing has happened since, or nothing that may be told."""
    audience: str = ""
    person: str = ""
    monologue: str = ""
    state: Mapping[str, str] = field(default_factory=dict)
    """What stands in the soul's state for that audience."""
    mood: str = ""
    """The soul's own mood, whoever it talks with."""
    interactions: int = 0
    """Turns with somebody, ever."""


class Standing(Struct, frozen=True, kw_only=True):
    """How asking one daimon has gone."""

    asked_at: datetime | None = None
    failures: int = 0
    rests_until: datetime | None = None
    reason: str = ""
    mode: str = ""
    """By the owner's hand; empty = as the settings say."""
    today: int = 0
    """Whispers of this day."""
    has_active: bool = False
    """One of its whispers waits to be felt."""
    lately: tuple[str, ...] = ()
    """Its last lines, newest first."""


class Whispers(Protocol):
    """What daimons keep and recall."""

    async def scene(self, since: datetime | None) -> Scene:
        """Return what was active last, after `since`; without a conversation where nothing was."""
        ...

    async def standing(self, daimon: str, now: datetime) -> Standing:
        """Return how asking a daimon has gone, and what it has said."""
        ...

    async def asked(self, daimon: str, now: datetime) -> None:
        """Note that a daimon is being asked."""
        ...

    async def fared(self, daimon: str, *, failures: int, rests_until: datetime | None, reason: str) -> None:
        """Note how that went."""
        ...

    async def keep_whisper(self, whisper: Whisper) -> int:
        """Keep a whisper, in place of an active one of the same daimon and sources; return its number."""
        ...

    async def set_mode(self, daimon: str, mode: str, conversation: str = "") -> None:
        """Set a daimon's mode by the owner's word, in one conversation or everywhere."""
        ...

    async def mode_of(self, daimon: str, conversation: str, otherwise: str) -> str:
        """Return the mode of a daimon in a conversation."""
        ...

    async def surfacing(
        self, perception: Perception, now: datetime, modes: Mapping[str, str], *, own_only: bool = False
    ) -> str:
        """Return the newest whisper that may be felt here, without using it; empty where there is none.

        `own_only` is that of `RecallLimits`.
        """
        ...

    def release(self, turn: str) -> None:
        """Let go of what a turn has felt and did not use."""
        ...
