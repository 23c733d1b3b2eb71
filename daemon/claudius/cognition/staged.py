"""What a turn of a programmatic process has staged: kept when the turn is committed, gone where it raises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct, field

from claudius.cognition.soul_engine.in_mind import Drawn
from claudius.intent import Call, Planned, Rung, Schedule


class Words(str):
    """A line that was worded and not yet said: text, with how it was won."""

    __slots__ = ("flags", "rung", "truncated", "verb")

    verb: str
    rung: Rung
    truncated: bool
    flags: tuple[str, ...]

    @classmethod
    def of(
        cls,
        text: str,
        verb: str = "said",
        rung: Rung = "complete",
        *,
        truncated: bool = False,
        flags: tuple[str, ...] = (),
    ) -> Words:
        """Make a line."""
        made = cls(text)
        made.verb, made.rung, made.truncated, made.flags = verb, rung, truncated, flags
        return made


class First(Struct, frozen=True):
    """The first prompt of a turn, for its snapshot."""

    sha256: str
    drawn: Drawn


class Staged(Struct, kw_only=True):
    """One turn's, over all of its hops."""

    turn: str
    lines: list[Words] = field(default_factory=list)
    """What is to be said, in order: one utterance, joined by blank lines."""
    streamed: str = ""
    calls: list[Call] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Every step that was asked, in order."""
    schedules: list[Schedule] = field(default_factory=list)
    cancels: list[int] = field(default_factory=list)
    closes: bool = False
    kept: dict[str, Any] | None = None
    """What the running process keeps; None = as it was."""
    first: First | None = None
    own: tuple[str, ...] = ()
    """Private texts of this very turn that stood in the prompt of a later call of it."""

    def guard(self, texts: Iterable[str]) -> None:
        """Let nothing that this turn says from now on repeat these, which its next call is shown."""
        self.own = tuple(dict.fromkeys((*self.own, *texts)))

    @property
    def tokens(self) -> int:
        """Count the tokens of every call, in and out."""
        used = (call.usage for call in self.calls)
        return sum(
            one.input_tokens + one.cache_read_tokens + one.cache_write_tokens + one.output_tokens for one in used
        )

    def planned(self, **changes: Any) -> Planned | None:
        """Return what of it is a plan; None where nothing is."""
        if not (self.schedules or self.cancels or self.closes or changes):
            return None
        return Planned(schedules=tuple(self.schedules), cancels=tuple(self.cancels), closes=self.closes, **changes)


def schedule_id(turn: str, conversation: str, place: int, key: str | None) -> int:
    """Return the id of a plan: the same for the same key here, and for the same place in a turn run again. Pure."""
    named = f"{conversation}\0{key}" if key else f"{turn}\0{place}"
    return int.from_bytes(sha256(named.encode()).digest()[:5], "big") + 1


def schedule(staged: Staged, text: str, *, at: datetime, conversation: str, key: str | None, **rest: Any) -> Schedule:
    """Make a plan and stage it."""
    made = Schedule(
        id=schedule_id(staged.turn, conversation, len(staged.schedules), key),
        conversation=conversation,
        at=at,
        text=text,
        key=key,
        **rest,
    )
    staged.schedules.append(made)
    return made


def kept_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept as JSON will give it back. Pure. Raises: TypeError for what JSON cannot hold."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(values)))
    return found
