"""The topic `store.whispers`: what daimons are told, what they whisper, and how asking them went."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct, field

from claudius.perception import Perception

Transport = Literal["http", "model", "offer", "manual"]
HEARD_BEFORE = 10
"""A whisper that equals one of this many last whispers of its daimon is not kept."""


class Whisper(Struct, frozen=True, kw_only=True):
    """One line of advice, sanitised, about to be stored."""

    daimon: str
    text: str
    transport: Transport
    sources: tuple[str, ...]
    """The audiences of what was sent to the daimon for it."""
    at: datetime
    expires_at: datetime
    influence: str = ""
    conversation: str = ""


class DaimonScene(Struct, frozen=True, kw_only=True):
    """What a daimon may be told of one conversation, the one that was active last."""

    conversation: str = ""
    """Empty if nothing has happened since, or nothing that may be told."""
    audience: str = ""
    person: str = ""
    monologue: str = ""
    state: Mapping[str, str] = field(default_factory=dict)
    """The values of the soul's state for that audience."""
    mood: str = ""
    """The soul's own mood, independent of whom it talks with."""
    interactions: int = 0
    """The number of turns with somebody, ever."""


class DaimonRecord(Struct, frozen=True, kw_only=True):
    """The record of asking one daimon."""

    asked_at: datetime | None = None
    failures: int = 0
    rests_until: datetime | None = None
    reason: str = ""
    mode: str = ""
    """The mode set by the owner; empty means as configured."""
    today: int = 0
    """The number of whispers today."""
    has_active: bool = False
    """Whether one of its whispers waits to be felt."""
    lately: tuple[str, ...] = ()
    """Its last lines, newest first."""


class WhisperStore(Protocol):
    """What daimons keep and recall."""

    async def scene(self, since: datetime | None) -> DaimonScene:
        """Return the scene of the conversation active last, after `since`; without a conversation if there was none."""
        ...

    async def standing(self, daimon: str, now: datetime) -> DaimonRecord:
        """Return the record of asking a daimon, and what it has said."""
        ...

    async def asked(self, daimon: str, now: datetime) -> None:
        """Record that a daimon is being asked."""
        ...

    async def fared(self, daimon: str, *, failures: int, rests_until: datetime | None, reason: str) -> None:
        """Record the outcome of asking a daimon."""
        ...

    async def keep_whisper(self, whisper: Whisper) -> int:
        """Store a whisper, replacing an active one of the same daimon and sources; return its number."""
        ...

    async def set_mode(self, daimon: str, mode: str, conversation: str = "") -> None:
        """Set a daimon's mode for the owner, in one conversation or everywhere."""
        ...

    async def mode_of(self, daimon: str, conversation: str, otherwise: str) -> str:
        """Return the mode of a daimon in a conversation."""
        ...

    async def surfacing(
        self, perception: Perception, now: datetime, modes: Mapping[str, str], *, own_only: bool = False
    ) -> str:
        """Return the newest whisper that may be felt here, without using it; empty if there is none.

        `own_only` is that of `RecallLimits`.
        """
        ...

    def release(self, turn: str) -> None:
        """Release what a turn has claimed and did not use."""
        ...
