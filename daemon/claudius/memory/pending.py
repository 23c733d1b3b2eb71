"""An accepted perception that no turn has committed yet, and the id of the turn that will answer it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct, field

from claudius.intent import Call
from claudius.perception import Perception

InboxState = Literal["pending", "taken", "thought", "committed", "settled", "dead"]


def turn_of(key: str) -> str:
    """Return the id of the turn that answers the perception with this dedupe key; re-runs keep it. Pure."""
    return base64.b32encode(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest())[:16].decode().lower()


class Pending(Struct, frozen=True, kw_only=True):
    """An accepted perception that no turn has committed yet."""

    seq: int
    perception: Perception
    turn: str
    """The id of its turn, the same in every run: base32(sha256(key))[:16], lower case."""
    state: InboxState
    attempts: int
    boots: int
    """How many different processes have taken it, this one included."""
    not_before: datetime | None
    heard_at: datetime
    inputs: Mapping[str, str] = field(default_factory=dict)
    """`now` and `nonce` of an earlier, unfinished run; a re-run uses them again."""
    calls: tuple[Call, ...] = ()
    """Finished model calls of an earlier, unfinished run; a re-run does not pay for them again."""
    held: int = 0
    """How often its turn yielded to a newer perception; it is then answered with that one."""
    is_taken_here: bool = False
    """Whether this process has taken it."""
    is_stopped: bool = False
    """Its speaker wants no answer any more: an apology is owed, and no model is asked."""
    further: tuple[Pending, ...] = ()
    """Further perceptions that the same turn answers, oldest first."""

    @property
    def ended(self) -> int:
        """How many processes took it and ended before its turn did."""
        return self.boots - self.is_taken_here

    @property
    def perceptions(self) -> tuple[Perception, ...]:
        """Everything that the turn answers, oldest first."""
        return (self.perception, *(one.perception for one in self.further))
