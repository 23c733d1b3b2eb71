"""The door to every network: an adapter listens and speaks, and decides nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from claudius.intent import Utterance
from claudius.perception import Perception

Accept = Callable[[Perception], Awaitable[bool]]
"""Makes a perception durable; True where it is new. It raises where nothing was kept: then nothing is acknowledged."""


class Adapter(Protocol):
    """One network. It keeps no queue and retries no send."""

    name: str
    """The network's word in conversation keys."""
    post_chars: int | None
    """Longest single post; None = any."""

    async def listen(self, accept: Accept) -> None:
        """Hear until closed."""
        ...

    async def speak(self, utterance: Utterance) -> str:
        """Say one part; return the network's receipt. Raises: DeliveryRefused, DeliveryLater, DeliveryUnknown."""
        ...

    async def find(self, utterance: Utterance) -> str | None:
        """Look whether a part is visible already; return its receipt, None where it provably is not."""
        ...

    async def working(self, conversation: str, *, on: bool) -> None:
        """Show or clear the sign that the soul is thinking. It carries no words of the reply and never raises."""
        ...

    def streams(self, perception: Perception) -> bool:
        """Tell whether whoever hears the answer can watch it grow."""
        ...

    async def show(self, utterance: Utterance, text: str) -> None:
        """Show one more piece of an utterance that `speak` will complete in the same message. Never raises."""
        ...

    async def close(self) -> None:
        """Stop hearing; leave no task, socket or session."""
        ...
