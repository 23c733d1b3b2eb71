"""What a turn thinks with: the store, the soul's text, a voice, the settings, the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from claudius.config import Config
from claudius.memory.store import Store
from claudius.provider import Provider
from claudius.soul import SoulText


class Show(Protocol):
    """Takes words of the reply as they become speakable; set where the conversation's adapter streams."""

    async def __call__(self, text: str) -> None:
        """Show one more piece."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mind:
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
    secrets: tuple[str, ...] = ()
    """Values that no reply may hold."""
