"""What the soul hears, where it was heard, and who may see what was said there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

OURSELVES = "ourselves"
"""In `extra` of a coming or going: it is our own."""
SELF = "self"
"""As a source: learned from no one, may stand anywhere. As a target: only the soul looks."""


class Kind(StrEnum):
    """What sort of thing was heard."""

    MESSAGE = "message"
    MENTION = "mention"
    REACTION = "reaction"
    EDIT = "edit"
    DELETE = "delete"
    JOIN = "join"
    LEAVE = "leave"
    COMMAND = "command"
    SILENCE = "silence"
    TICK = "tick"
    SCHEDULED = "scheduled"
    DIRECTIVE = "directive"


class Origin(StrEnum):
    """Whose voice a perception has in the prompt: external = user role, internal = assistant role."""

    EXTERNAL = "external"
    INTERNAL = "internal"


class Standing(StrEnum):
    """What a network says of a speaker: who may talk is decided from it (`runtime/access.py`)."""

    MEMBER = "member"
    """One of the place: a full member of the workspace, of the guild; whoever sits at this machine."""
    GUEST = "guest"
    OUTSIDER = "outsider"
    """From another organisation, or a stranger."""
    GONE = "gone"
    """Deactivated."""


class Following(StrEnum):
    """What becomes of a message that is owed a reply only where the soul follows its thread."""

    KEPT = "kept"
    """Where it does not follow, the message is kept and owed nothing."""
    DROPPED = "dropped"
    """Where it does not follow, the message is not kept."""


class Perception(Struct, frozen=True, kw_only=True):
    """One thing heard, whole and immutable. `key` is its dedupe key (design: reliability, tables and states)."""

    key: str
    conversation: str
    audience: str
    person: str
    name: str
    text: str
    at: datetime
    position: str
    """The platform's own order within the conversation; compared as text, so numbers are zero-padded."""
    kind: Kind = Kind.MESSAGE
    origin: Origin = Origin.EXTERNAL
    owes: bool = True
    """A reply is owed; decided from structure alone, for good, when it is accepted."""
    following: Following | None = None
    """Where set, `owes` holds only in a thread that the soul follows; the store looks when it accepts."""
    to_other: bool = False
    """It begins by addressing someone else."""
    standing: Standing = Standing.MEMBER
    is_bot: bool = False
    is_owner: bool = False
    """The home's owner at his own terminal: sees everything, is not rate-limited."""
    extra: Mapping[str, Any] = field(default_factory=dict)


class Cause(StrEnum):
    """Why the soul would speak in a turn, judged from the perception that the turn is about."""

    ANSWERS = "answers"
    """It answers a message that is owed a reply, however late."""
    ASKED = "asked"
    """Somebody asked for it: a reminder, a promise made to them, what the soul planned in answering them."""
    JOINS = "joins"
    """It joins talk that goes on now, in a channel where the soul takes part."""
    UNASKED = "unasked"
    """None of these: to speak is to write first."""


TALK = frozenset({Kind.MESSAGE, Kind.MENTION, Kind.COMMAND})
GROUP = "group"
"""The participation in which the soul may speak uncalled."""
GOES_ON = timedelta(minutes=30)
"""Talk goes on for so long after a message."""


def cause_of(perception: Perception, participation: str, now: datetime) -> Cause:
    """Return why the soul would speak about a perception, at `now`. Pure.

    `participation`: how the conversation is heard; what the perception itself says of it comes first.
    """
    if perception.origin is Origin.INTERNAL:
        is_asked = perception.extra.get("asked_by") or perception.extra.get("in_answer")
        return Cause.ASKED if is_asked else Cause.UNASKED
    if perception.owes:
        return Cause.ANSWERS
    is_group = (perception.extra.get("participation") or participation) == GROUP
    is_talk = perception.kind in TALK and now - perception.at <= GOES_ON
    return Cause.JOINS if is_group and is_talk else Cause.UNASKED


class Place(Struct, frozen=True):
    """A conversation key taken apart: `network:workspace:channel:thread`."""

    network: str
    workspace: str
    channel: str
    thread: str

    @classmethod
    def of(cls, conversation: str) -> Place:
        """Split a conversation key. Raises: ValueError where it has not four parts."""
        parts = conversation.split(":", 3)
        if len(parts) != 4:
            raise ValueError(f"not a conversation key: {conversation!r}")
        return cls(*parts)

    @property
    def of_channel(self) -> str:
        """The channel that it lies in: `network:workspace:channel`."""
        return f"{self.network}:{self.workspace}:{self.channel}"


FOLLOWED_FOR = timedelta(hours=72)
"""After so much silence the soul no longer follows a thread."""
FOLLOWED_PEOPLE = 2
"""With more humans than these in a thread, each message needs a mention again."""


class Thread(Struct, frozen=True, kw_only=True):
    """A thread that the soul was called into."""

    since: str
    """Position of the message that called it."""
    last_at: datetime
    """When it was last spoken in."""
    people: int
    """Distinct humans who have spoken in it since, the one at hand included."""
    is_quiet: bool = False
    """Someone asked the soul to be quiet there."""


def settled_in(perception: Perception, thread: Thread | None) -> Perception | None:
    """Decide what a message in a thread is owed, and return it so; None where it is not kept. Pure.

    Source: the chat design, section 4, "follow without mention".
    """
    if perception.following is None:
        return perception
    follows = (
        thread is not None
        and not thread.is_quiet
        and perception.position > thread.since
        and perception.at - thread.last_at <= FOLLOWED_FOR
    )
    if follows and thread is not None:
        return replace(perception, following=None, owes=perception.owes and thread.people <= FOLLOWED_PEOPLE)
    return replace(perception, following=None, owes=False) if perception.following is Following.KEPT else None


def private(person: str) -> str:
    """The audience of a direct message or a terminal: that person alone."""
    return f"private:{person}"


def shared(conversation: str) -> str:
    """The audience of a channel: `shared:<network>:<workspace>:<channel>`."""
    return f"shared:{Place.of(conversation).of_channel}"


Members = Mapping[str, frozenset[str] | None]
"""Who can see a shared audience now, by canonical person id; None or absent = unknown."""


def members_of(audience: str, members: Members) -> frozenset[str] | None:
    """Return who can see `audience` now; None where that is not known. Pure."""
    if audience == SELF:
        return frozenset()
    if audience.startswith("private:"):
        person = audience.removeprefix("private:")
        return members.get(audience) or frozenset({person})
    return members.get(audience)


def may_show(sources: Iterable[str], target: str, members: Members, *, owner: bool = False) -> bool:
    """Tell whether what was learned in all of `sources` may stand in a prompt for `target`. Pure.

    Everyone in the target must already be able to see every source; where the target's members are not
    known, only what was learned in that very audience may. `owner` is the owner at his own terminal.
    Source: the audience rule of the security design, section 5.
    """
    if owner or target == SELF:
        return True
    seeing = members_of(target, members)
    for source in sources:
        if source in (SELF, target):
            continue
        allowed = members_of(source, members)
        if seeing is None or allowed is None or not seeing <= allowed:
            return False
    return True
