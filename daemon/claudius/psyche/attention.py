"""The input of attention (the soul and its settings) and its result for the rest of the turn."""

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
    """The text with which the soul tells itself that a level has grown strong; empty = no milestones."""
    can_acknowledge: bool = True
    """The soul has lines for acknowledging a message without thought."""


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """The result of attention for the rest of the turn. Words reach the prompt; numbers do not."""

    outcome: Outcome = "think"
    speaks: bool = True
    """An utterance is wanted: a reply is owed, or the soul chooses to speak."""
    called: bool = False
    """The message is addressed to the soul: a reply is owed, or its name was called in a group."""
    reaction: str = ""
    """The emoji of a `react`; empty = a line, or nothing."""
    felt: Felt = Felt()
    told: Mapping[str, Any] = {}
    """What `claudius why` shows about it."""
    change: Change | None = None
    """The change that the event makes to the numbers; None = none (the psyche is off)."""
    wanted: tuple[str, ...] = ()
    """Stems to recall episodes by; empty = recall none."""
    keeps_reply: bool = False
    """The soul's reply is stored as an episode, because its event is."""
