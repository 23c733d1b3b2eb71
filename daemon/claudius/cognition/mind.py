"""What a day may cost, and what is given up first as the cap comes near.

Source: the design, section 7: whispers first, then the cortex, then model updates, then a polite refusal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import datetime
from enum import StrEnum
from time import monotonic
from typing import Any, Protocol, TypeVar

from msgspec import Struct, field

from claudius.cognition.hooks import Hooks
from claudius.config import Config
from claudius.intent import Intent
from claudius.memory.store import Pending, Store
from claudius.provider import Provider
from claudius.psyche.intentions import acknowledgement
from claudius.soul import SoulText


class Stage(StrEnum):
    """How near the day's cap is."""

    OPEN = "open"
    WHISPERS_OFF = "whispers_off"
    CORTEX_OFF = "cortex_off"
    UPDATES_OFF = "updates_off"
    REFUSING = "refusing"


_FROM = ((1.0, Stage.REFUSING), (0.95, Stage.UPDATES_OFF), (0.9, Stage.CORTEX_OFF), (0.8, Stage.WHISPERS_OFF))


def stage(limit_usd: float, spent_usd: float) -> Stage:
    """Return the stage that spending has reached; a limit of 0 is no limit. Pure."""
    if limit_usd <= 0:
        return Stage.OPEN
    share = spent_usd / limit_usd
    return next((found for least, found in _FROM if share >= least), Stage.OPEN)


def day_start(now: datetime) -> datetime:
    """Return the beginning of the UTC day. Pure."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


T = TypeVar("T")

FRESH_S = 0.1
"""How long what was read of a watched file counts as what it is: an edit is in force within 300 ms."""


def lately(
    read: Callable[[], T], fresh_s: float = FRESH_S, monotonic: Callable[[], float] = monotonic
) -> Callable[[], T]:
    """Return `read`, asked again only where its last answer is older than `fresh_s` seconds."""
    last: list[tuple[float, T]] = []

    def reading() -> T:
        now = monotonic()
        if not last or now - last[0][0] >= fresh_s:
            last[:] = [(now, read())]
        return last[0][1]

    return reading


class Show(Protocol):
    """Takes words of the reply as they become speakable; set where the conversation's adapter streams."""

    async def __call__(self, text: str) -> None:
        """Show one more piece."""
        ...


class Voice(Struct, frozen=True):
    """Who answers one cognitive step."""

    provider: Provider
    model: str | None = None
    """None = the provider's own."""


class Mind(Struct, frozen=True, kw_only=True):
    """The soul at work. Built once, in `compose`; tests build their own."""

    store: Store
    provider: Provider
    soul: Callable[[], SoulText]
    """The soul's text as it stands now; one call a turn."""
    config: Callable[[], Config]
    """The configuration in force now; one call a turn."""
    clock: Callable[[], datetime]
    """Wall time, aware, UTC."""
    nonce: Callable[[], str]
    """128 random bits as 32 hex digits."""
    aged_at: Callable[[], datetime | None] = lambda: None
    """The instant that ages are measured from, where the wall clock is in doubt."""
    voices: Mapping[str, Voice] = field(default_factory=dict)
    """Cognitive step → a voice of its own; such a step is asked apart."""
    secrets: tuple[str, ...] = ()
    """Values that no reply may hold."""
    hooks: Hooks = field(default_factory=Hooks)
    """Who looks on."""
    reflects: Callable[[], bool] = lambda: False
    """Whether a second mind is at work: its beliefs are recalled, and no turn judges peers."""
    works: Callable[[Pending], Awaitable[bool]] | None = None
    """Does what the soul's own clock has rung for, and tells whether that was it; None = nothing does."""
    beside: Callable[[Intent, Pending], Coroutine[Any, Any, None] | None] = lambda _, __: None
    """Lets others speak after a committed turn; None = nobody does."""
    consult: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]] | None = None
    """Asks the second mind before speaking; None = there is none."""

    async def stage(self) -> Stage:
        """Return how near today's spending is to the day's cap."""
        limit = self.config().budget.daily_usd
        return stage(limit, await self.store.spent_since(day_start(self.clock()))) if limit else Stage.OPEN

    def acknowledgement(self, turn: str) -> str:
        """Return the line that a turn says where no thought is needed; empty where the soul has none."""
        lines = self.soul().steps["external_dialogue"].acknowledge
        return acknowledgement(turn, lines) if lines else ""
