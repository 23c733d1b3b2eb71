"""What attention needs to know, and what it hands on to the rest of the turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from claudius.psyche.change import Change
from claudius.psyche.classify import Compound
from claudius.psyche.models import Outcome, Weighing
from claudius.psyche.personality import Kernel
from claudius.psyche_types import Felt


class Temper(Struct, frozen=True, kw_only=True):
    """What attention needs to know of the soul and its settings."""

    kernel: Kernel
    """As compiled from soul.md, without drift."""
    soul_name: str
    """In lower case."""
    compound: Compound
    weighing: Weighing = field(default_factory=Weighing)
    max_arcs: int = 12
    top_k: int = 5
    episode_threshold: float = 0.35
    acknowledges_by_emoji: bool = False
    milestone: str = ""
    """How the soul tells itself that something has grown strong; empty = it does not."""
    can_acknowledge: bool = True
    """There are lines that answer what needs no thought."""


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """What attention makes of a perception, for the rest of the turn. Words go on, numbers stay."""

    outcome: Outcome = "think"
    speaks: bool = True
    """An utterance is asked for: it is owed, or the soul chooses to speak."""
    called: bool = False
    """The message is for the soul: a reply is owed, or its name was called in a group."""
    reaction: str = ""
    """The emoji of a `react`; empty = a line, or nothing."""
    felt: Felt = Felt()
    told: Mapping[str, Any] = {}
    """What `claudius why` shows of it."""
    change: Change | None = None
    """What the event does to the numbers; None = nothing (the psyche is off)."""
    wanted: tuple[str, ...] = ()
    """Stems whose episodes are worth recalling; empty = none are."""
    keeps_reply: bool = False
    """The soul's reply becomes an episode, because its event did."""
