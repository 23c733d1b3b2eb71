"""Define what a turn does beyond its words: plans, facts, open matters, a time zone. Plain values, checked and exact.

`cognition/acts.py` reads them from a reply and checks them against what stood in the prompt; the store books them in
the turn's own transaction and answers with one receipt a line. Source: the design of acts, sections 2 to 5 and 10.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from msgspec import Struct

FactKind = Literal["constraint", "name", "kin", "home", "work", "plan", "taste", "other"]
MOST_ACTS = 5
"""More of them in one reply are refused."""
TEXT_CHARS = 300
"""The longest text of a plan, a fact or a matter; the rest is cut."""
MOST_KEYS = 8


class PlanMade(Struct, frozen=True, kw_only=True, tag_field="do", tag="plan"):
    """Something to be said later in this conversation."""

    kind: Literal["remind", "promise"]
    """`remind`: somebody asked for it, and it comes at any hour; `promise`: the soul's own, which keeps quiet hours."""
    at: datetime
    """When first, UTC."""
    zone: str
    """The IANA zone whose wall clock a repetition keeps."""
    text: str
    person: str
    """Whose it is, and who is written to: a canonical id."""
    repeat: str = ""
    """`daily`, `weekdays`, `weekly`, `monthly`, `yearly`, or days: `mon,thu`; empty = once."""
    until: date | None = None
    """The last day of a repetition, inclusive; None = no end."""
    wall: datetime | None = None
    """The clock on the wall, without a zone, as it was written; on that day it may show no such hour."""


class PlanMoved(Struct, frozen=True, kw_only=True, tag_field="do", tag="move"):
    """A plan that comes at another time, or in another rhythm. What is None stays."""

    plan: int
    """The row's id."""
    at: datetime | None = None
    zone: str = ""
    """Empty = the plan's own."""
    repeat: str | None = None
    """Empty = the repetition ends after the next."""
    until: date | None = None
    wall: datetime | None = None


class PlanCancelled(Struct, frozen=True, kw_only=True, tag_field="do", tag="cancel"):
    """Plans that are dropped."""

    plans: tuple[int, ...]
    """The rows' ids; of `all` those that the speaker asked for here."""


class FactKnown(Struct, frozen=True, kw_only=True, tag_field="do", tag="know"):
    """Something that a person said of themself or of somebody, in the third person."""

    person: str
    """Who said it: a canonical id. A fact about somebody who is present is filed under that one's id."""
    kind: FactKind
    text: str
    keys: tuple[str, ...] = ()
    """Words by which it may be asked for later."""
    since: date | None = None
    until: date | None = None
    """The last day on which it is in force."""
    of: str = ""
    """The name of somebody who is not here, whom it is about; empty = the person."""
    instead_of: int = 0
    """The row's id of the fact that it replaces."""


class FactEnded(Struct, frozen=True, kw_only=True, tag_field="do", tag="no_longer"):
    """A fact that is no longer so; it can still be found, with its dates."""

    fact: int
    """The row's id."""
    why: str = ""


class Forgotten(Struct, frozen=True, kw_only=True, tag_field="do", tag="forget"):
    """A fact or a matter that the person asked to forget: hidden at once, destroyed an hour later."""

    fact: int = 0
    matter: int = 0


class MatterOpened(Struct, frozen=True, kw_only=True, tag_field="do", tag="open"):
    """A piece of the person's life that is not over."""

    person: str
    text: str
    when: date | None = None


class MatterClosed(Struct, frozen=True, kw_only=True, tag_field="do", tag="close"):
    """A matter that is over."""

    matter: int
    """The row's id."""


class ZoneSet(Struct, frozen=True, kw_only=True, tag_field="do", tag="zone"):
    """The person's IANA zone, from now on."""

    person: str
    zone: str


Act = PlanMade | PlanMoved | PlanCancelled | FactKnown | FactEnded | Forgotten | MatterOpened | MatterClosed | ZoneSet
