"""A perception that was accepted and that no turn has committed yet, and the turn that will answer it."""

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
    """Return the id of the turn that answers the perception with this dedupe key, however often it is run. Pure."""
    return base64.b32encode(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest())[:16].decode().lower()


class Pending(Struct, frozen=True, kw_only=True):
    """An accepted perception that no turn has committed yet."""

    seq: int
    perception: Perception
    turn: str
    """The id that its turn has, however often it is run: base32(sha256(key))[:16], lower case."""
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
    """How often its turn gave way to a newer perception; it is answered with the next."""
    is_taken_here: bool = False
    """This process has taken it."""
    is_stopped: bool = False
    """Its speaker wants no answer any more: it is owed the apology, and no model."""
    further: tuple[Pending, ...] = ()
    """What is answered in the same turn, oldest first."""

    @property
    def ended(self) -> int:
        """How many processes have taken it and ended before its turn did."""
        return self.boots - self.is_taken_here

    @property
    def perceptions(self) -> tuple[Perception, ...]:
        """Everything that the turn answers, oldest first."""
        return (self.perception, *(one.perception for one in self.further))
