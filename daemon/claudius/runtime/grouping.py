"""Which waiting perceptions of a conversation one turn answers together."""

from __future__ import annotations

from itertools import takewhile

from claudius.cognition.mind import Mind
from claudius.memory.inbox import Pending

TOGETHER = 10
"""The most messages that one reply answers."""


async def together(first: Pending, mind: Mind) -> Pending:
    """Return what is answered together with the oldest perception of its conversation, as one turn.

    A perception that gave way to a newer one goes with the next; with `merge_while_busy`, one person's waiting messages
    are grouped.
    """
    waiting = await mind.store.inbox.unfinished(first.perception.conversation)
    held = list(takewhile(lambda one: bool(one.held), waiting))
    rest = waiting[len(held) :]
    group = [*held, *rest[:1]]
    if mind.config().runtime.merge_while_busy and group:
        person = group[-1].perception.person
        group += takewhile(lambda one: one.perception.owes and one.perception.person == person, rest[1:])
    group = [one for one in group[:TOGETHER] if (one.perception.owes and not one.is_stopped) or one is group[0]]
    return await mind.store.inbox.join(group) if len(group) > 1 else first
