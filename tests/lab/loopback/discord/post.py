"""Brings each event to every session that may hear it; loses, doubles, holds back and reorders on order."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from lab.loopback.discord import intents
from lab.loopback.discord.events import Event
from lab.loopback.discord.records import Journal
from lab.loopback.discord.rules import sees
from lab.loopback.discord.sessions import Session, Sessions
from lab.loopback.discord.state import BOT_USER, Space

Order = Literal["same", "reversed", "shuffled"]


@dataclass(slots=True)
class Meant:
    """How many events to come are meant; of one name, or of any where it is empty. Negative = all."""

    times: int = 0
    event: str = ""

    def hits(self, event: Event) -> bool:
        """Say whether an event is one of those, and count it."""
        if not self.times or self.event not in ("", event.name):
            return False
        self.times -= self.times > 0
        return True


@dataclass(slots=True)
class Post:
    """The post office. `held` is set while events are kept back."""

    space: Space
    journal: Journal
    sessions: Sessions
    losing: Meant = field(default_factory=Meant)
    doubling: Meant = field(default_factory=Meant)
    held: list[Event] | None = None

    def bring(self, events: Iterable[Event], *, is_delivered: bool = True) -> None:
        """Bring events."""
        for event in events:
            if not is_delivered or self.losing.hits(event):
                self.journal.note(event.name, *event.about, "", 0, "lost")
            elif self.held is not None:
                self.held.append(event)
            else:
                self._carry(event)
                if self.doubling.hits(event):
                    self._carry(event)

    def release(self, order: Order, seed: int) -> int:
        """Let go of the events that were kept back; give their number."""
        events, self.held = self.held or [], None
        if order == "reversed":
            events.reverse()
        elif order == "shuffled":
            random.Random(seed).shuffle(events)  # noqa: S311 - a test's order, no secret
        for event in events:
            self._carry(event)
        return len(events)

    def _carry(self, event: Event) -> None:
        self.sessions.sweep()
        if event.channel and event.needs_view and not sees(self.space, BOT_USER, event.channel):
            return
        if not self.sessions.open:
            self.journal.note(event.name, *event.about, "", 0, "offline")
        for session in self.sessions.open.values():
            if event.intents and not event.intents & session.intents:
                continue
            fate = session.send(event.name, self._shown(event, session))
            self.journal.note(event.name, *event.about, session.id, session.seq, fate)

    def _shown(self, event: Event, session: Session) -> dict[str, object]:
        if event.message is None or event.channel is None:
            return event.body
        has_content = bool(session.intents & intents.MESSAGE_CONTENT)
        return intents.shown(event.body, event.message, event.channel, has_content=has_content)
