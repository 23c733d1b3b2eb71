"""Commands and buttons on their way: each has a token, a deadline for the first answer, and a life.

Source: docs.discord.com/developers/interactions/receiving-and-responding.
"""

import asyncio
from dataclasses import dataclass, field
from uuid import uuid4

from lab.loopback.discord.records import Journal
from lab.loopback.discord.settings import Settings
from lab.loopback.discord.state import Channel, Message


@dataclass(slots=True)
class Interaction:
    """One command."""

    id: str
    token: str
    kind: int
    user: str
    channel: Channel
    made_at: float
    name: str
    is_answered: bool = False
    has_failed: bool = False
    original: Message | None = None


@dataclass(slots=True)
class Interactions:
    """All of them."""

    settings: Settings
    journal: Journal
    by_token: dict[str, Interaction] = field(default_factory=dict)
    _timers: list[asyncio.TimerHandle] = field(default_factory=list)

    def begin(self, number: str, kind: int, user: str, channel: Channel, name: str) -> Interaction:
        """Begin one; if no answer comes in time, the person is told that the application did not respond."""
        one = Interaction(number, f"aW50{uuid4().hex}", kind, user, channel, self.journal.now(), name)
        self.by_token[one.token] = one
        later = asyncio.get_running_loop().call_later(self.settings.interaction_deadline_s, self._expire, one)
        self._timers.append(later)
        return one

    def close(self) -> None:
        """Stop waiting for answers."""
        for timer in self._timers:
            timer.cancel()

    def is_alive(self, one: Interaction) -> bool:
        """Say whether the token is good still."""
        return not one.has_failed and self.journal.now() - one.made_at < self.settings.interaction_life_s

    def _expire(self, one: Interaction) -> None:
        if not one.is_answered:
            one.has_failed = True
            self.journal.enter("person", "failed", one.channel.id, user=one.user, text=one.name, to=one.user)
