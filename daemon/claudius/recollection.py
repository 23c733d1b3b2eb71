"""What the soul recalls at the start of a turn: one consistent, immutable reading of memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct, field

from claudius.ledger_types import Belief, Peer
from claudius.perception import Members, Origin, Perception
from claudius.psyche_types import Psyche

T = TypeVar("T")


class EntryType(StrEnum):
    """The kinds of working-memory entry, in the spelling that the seeds store."""

    USER_MESSAGE = "userMessage"
    EVENT = "event"
    PERCEPTION = "perception"
    INTERNAL_MONOLOGUE = "internalMonologue"
    EXTERNAL_DIALOG = "externalDialog"
    MENTAL_QUERY = "mentalQuery"
    DAIMONIC_INTUITION = "daimonicIntuition"
    DAIMON_SPEECH = "daimonSpeech"


class StateKey(StrEnum):
    """The soul's own keys, in the spelling that the seeds store."""

    EMOTIONAL_STATE = "emotionalState"
    CURRENT_TOPIC = "currentTopic"
    CURRENT_TASK = "currentTask"
    CURRENT_PROJECT = "currentProject"
    CONVERSATION_SUMMARY = "conversationSummary"


MOODS = ("neutral", "engaged", "focused", "frustrated", "sardonic")
STATE_DEFAULTS: Mapping[str, str] = {key.value: "" for key in StateKey} | {StateKey.EMOTIONAL_STATE.value: MOODS[0]}


class Entry(Struct, frozen=True, kw_only=True):
    """One line of working memory."""

    entry_type: EntryType
    content: str
    at: datetime
    verb: str | None = None
    person: str | None = None
    """Whose words: the speaker of a message, else None (the soul's own)."""
    name: str | None = None
    """The display name that the words came under."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    position: str = ""
    """Of a message: the network's own order."""
    stems: str = ""
    """Of a message: its content stems, between spaces; empty = they are to be read off its words."""


class Shown(Struct, frozen=True, kw_only=True):
    """A user model that stood in a turn's prompt: whole, or pointed at because it already stands above."""

    person: str
    audience: str
    version: int
    writable: bool
    pointer: bool = False
    text: str = ""
    """The model's markdown as it was shown; empty for a pointer and for version 0."""


class PastTurn(Struct, frozen=True, kw_only=True, dict=True):
    """One earlier turn of this conversation as the history renders it. Equal values render to equal bytes.

    Its `__dict__` holds what was computed from it, by what computes it; a changed copy begins without.
    """

    turn: str
    nonce: str
    number: int
    """The turn's place in its conversation, from 1."""
    entries: tuple[Entry, ...]
    shown: tuple[Shown, ...] = ()
    is_as_kept: bool = False
    """Nothing was changed since its turn was committed, and nothing is left out here: its own record holds it."""


def once(past: PastTurn, work: Callable[[PastTurn], T]) -> T:
    """Return what follows from a past turn alone; worked out once, remembered with the turn. Pure."""
    memo: dict[Any, T] = past.__dict__
    try:
        return memo[work]
    except KeyError:
        return memo.setdefault(work, work(past))


class Summary(Struct, frozen=True, kw_only=True):
    """What working memory held before it was folded away."""

    text: str
    sources: tuple[str, ...]
    """The audiences of everything that was folded in."""
    upto: int
    """The number of the last turn that is folded in."""
    nonce: str = ""
    """The nonce it is fenced with, drawn when it was written."""


class LeftOut(Struct, frozen=True, kw_only=True):
    """Turns that neither the history nor the summary holds any more."""

    count: int
    first_at: datetime
    last_at: datetime


class UserModel(Struct, frozen=True, kw_only=True):
    """The newest version of one person's portrait in one audience; version 0 = nothing written yet."""

    person: str
    audience: str
    version: int
    markdown: str = ""
    suspect: bool = False


class StateValue(Struct, frozen=True, kw_only=True):
    """One value of the soul's state that may stand in this prompt."""

    key: str
    value: str
    audience: str
    updated_at: datetime


class Intuition(Struct, frozen=True, kw_only=True):
    """One whisper that this turn feels; no other turn does."""

    whisper: int
    daimon: str
    text: str


class ProcessState(Struct, frozen=True, kw_only=True):
    """Where a conversation stands in its mental processes; written back with the turn."""

    process: str
    previous_process: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    process_memory: Mapping[str, Any] = field(default_factory=dict)
    invocation_count: int = 0
    entered_at: datetime | None = None


class Person(Struct, frozen=True, kw_only=True):
    """One human or bot, by stable id. `person` is the canonical id where several are linked."""

    person: str
    name: str
    models: tuple[UserModel, ...]
    """Every model of this person that may be shown here, the writable one (this audience's) first; never empty."""
    turns_here: int = 0
    """Their committed turns in this conversation, ever."""
    is_bot: bool = False


class Recollection(Struct, frozen=True, kw_only=True):
    """Everything one turn knows, from one read snapshot. Pure functions of it decide the rest of the turn."""

    turn: str
    nonce: str
    now: datetime
    conversation: str
    audience: str
    """Who can see what is said here now; the label of everything learned in this turn."""
    members: Members
    perceptions: tuple[Perception, ...]
    """What this turn answers: one, or a burst taken together, in order. The last one's author is the speaker."""
    speaker: Person | None
    """None where nobody spoke (internal perceptions)."""
    others: tuple[Person, ...] = ()
    """Other humans heard since the soul's last reply, latest first, two at most."""
    process: ProcessState
    turns: int
    """Committed turns of this conversation."""
    version: int
    """Optimistic lock of the conversation's row; 0 = the conversation is new."""
    past: tuple[PastTurn, ...] = ()
    """Unexpired turns since the last compaction that may be shown here, oldest first."""
    expired: tuple[PastTurn, ...] = ()
    """Turns past their time to live, to be summarised and let go, oldest first."""
    summary: Summary | None = None
    left_out: LeftOut | None = None
    state: tuple[StateValue, ...] = ()
    """Per key the newest value that may be shown here, defaults included in none."""
    task: str = ""
    """The `currentTask` that was set in this very conversation, or by hand for its audience; empty = none is."""
    last_at: datetime | None = None
    """When the last turn of this conversation was thought; None = there was none."""
    participation: str = ""
    """How this conversation is heard, where that was set for it; empty = as its place has it."""
    psyche: Psyche | None = None
    """The numbers below language; None = they were not asked for."""
    peers: tuple[Peer, ...] = ()
    """What the ledger holds of the speaker, then of others who are named, as may be shown here."""
    beliefs: tuple[Belief, ...] = ()
    """What the second mind would have the soul keep in mind here: those about people present first, then the newest."""
    second_thought: str = ""
    """What the second mind said when it was asked about this very message."""
    intuitions: tuple[Intuition, ...] = ()
    """What daimons whispered, and this turn feels, oldest first."""

    @property
    def perception(self) -> Perception:
        """The perception whose author is answered: the last one taken."""
        return self.perceptions[-1]


def unrecalled(turn: str, perceptions: tuple[Perception, ...], nonce: str, now: datetime) -> Recollection:
    """Return what a turn knows before anything was recalled: what was heard, by whom, and when. Pure."""
    heard = perceptions[-1]
    model = UserModel(person=heard.person, audience=heard.audience, version=0)
    speaker = Person(person=heard.person, name=heard.name, models=(model,), is_bot=heard.is_bot)
    return Recollection(
        turn=turn,
        nonce=nonce,
        now=now,
        conversation=heard.conversation,
        audience=heard.audience,
        members={},
        perceptions=perceptions,
        speaker=speaker if heard.person and heard.origin is Origin.EXTERNAL else None,
        process=ProcessState(process=""),
        turns=0,
        version=0,
    )
