"""The kinds of events and their base claims on attention, before anything else is known. Pure.

Whether a reply is owed is decided when a message is accepted, never here. Source: the psyche design, section 2.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from claudius.perception import Kind

Address = Literal["dm", "mention", "command", "reply", "thread", "named", "ambient", "self"]
Window = Literal["addressed", "thread", "ambient", "proactive"]


class Claim(NamedTuple):
    """An event's base salience, the bonus for a person's stakes, and the cooldown window that applies."""

    base: float
    bonus: float
    window: Window


ADDRESSED = frozenset(("dm", "mention", "command", "reply"))
MESSAGES = frozenset((Kind.MESSAGE.value, Kind.MENTION.value, Kind.COMMAND.value))
OWN = frozenset(("promise_due", "directive", "scheduled", "tick", "silence", "news", "milestone"))
"""Kinds that come from the soul itself or its clock."""
SOUGHT = frozenset(("promise_due", "directive", "scheduled"))
"""Own kinds that somebody asked for; they count as addressed."""

_MESSAGE: dict[str, Claim] = {
    "dm": Claim(1.00, 0.30, "addressed"),
    "mention": Claim(1.00, 0.30, "addressed"),
    "command": Claim(1.00, 0.30, "addressed"),
    "reply": Claim(0.98, 0.30, "addressed"),
    "thread": Claim(0.45, 0.30, "thread"),
    "named": Claim(0.50, 0.20, "thread"),
    "ambient": Claim(0.15, 0.10, "ambient"),
}
_OWN: dict[str, Claim] = {
    "promise_due": Claim(1.00, 0.0, "addressed"),
    "directive": Claim(1.00, 0.0, "addressed"),
    "scheduled": Claim(1.00, 0.0, "addressed"),
    "tick": Claim(0.10, 0.0, "proactive"),
    "silence": Claim(0.10, 0.30, "proactive"),
    "news": Claim(0.30, 0.0, "proactive"),
    "milestone": Claim(1.00, 0.0, "proactive"),
}
_PASSING = Claim(0.15, 0.10, "ambient")
_JOIN = Claim(0.20, 0.10, "ambient")

SILENCE_EFFECTS = (0.12, 0.0, 0.0, 0.06, 0.0)
"""The effect of a long silence on the drives."""
GLAD_REACTION = (0.2, 0.0, 0.3, 0.2, 0.0)
"""The axes of a positive reaction to a post of the soul; `SORE_REACTION` is a negative one. A removal negates."""
SORE_REACTION = (-0.2, -0.1, -0.3, -0.2, 0.0)
MILESTONE, MILESTONE_REARMED = 0.80, 0.70
"""A drive or arc that rises past the first is a milestone; it rearms once it has fallen below the second."""


def claim(kind: str, address: str, level: float = 0.0) -> Claim:
    """Return the claim of an event; `level` counts for milestones only. Pure."""
    if kind in MESSAGES:
        return _MESSAGE[address]
    if kind == "milestone":
        return _OWN[kind]._replace(base=level**1.5)
    if kind in _OWN:
        return _OWN[kind]
    return _JOIN if kind == "join" else _PASSING


def is_addressed(kind: str, address: str) -> bool:
    """Return whether an event is addressed to the soul, as a message or a `SOUGHT` kind. Pure."""
    return address in ADDRESSED if kind in MESSAGES else kind in SOUGHT
