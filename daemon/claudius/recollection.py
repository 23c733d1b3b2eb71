"""What the soul recalls at the start of a turn: one consistent, immutable snapshot of memory."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct, field

from claudius.ledger_types import Belief, Peer
from claudius.perception import MessageExtra, Origin, Perception
from claudius.psyche_types import Psyche

T = TypeVar("T")


class EntryType(StrEnum):
    """The kinds of working-memory entry, in the spelling that the seeds store."""

    USER_MESSAGE = "userMessage"
    EVENT = "event"
    """What came in and nobody said: news."""
    PERCEPTION = "perception"
    INTERNAL_MONOLOGUE = "internalMonologue"
    EXTERNAL_DIALOG = "externalDialog"
    MENTAL_QUERY = "mentalQuery"
    DAIMONIC_INTUITION = "daimonicIntuition"
    DAIMON_SPEECH = "daimonSpeech"
    TOOL_USE = "toolUse"
    """What the soul asked of a tool, as JSON."""
    TOOL_RESULT = "toolResult"
    """What came of it; `metadata`: `tool`, `state`, of a call `call`, and `third` if the words are a third party's."""


class StateKey(StrEnum):
    """The soul's own state keys, in the spelling that the seeds store."""

    EMOTIONAL_STATE = "emotionalState"
    CURRENT_TOPIC = "currentTopic"
    CURRENT_TASK = "currentTask"
    CURRENT_PROJECT = "currentProject"
    CONVERSATION_SUMMARY = "conversationSummary"


MOODS = ("neutral", "engaged", "focused", "frustrated", "sardonic")
STATE_DEFAULTS: Mapping[str, str] = {key.value: "" for key in StateKey} | {StateKey.EMOTIONAL_STATE.value: MOODS[0]}


MOST_MATTERS = 8
RECEIPTS = "receipts"
"""The key, in the metadata of the last words of a turn, of the lines that tell what it really did."""
CANNED = "canned"
"""The key, in an entry's metadata, that marks a line spoken without thought."""


class Entry(Struct, frozen=True, kw_only=True):
    """One working-memory entry."""

    entry_type: EntryType
    content: str
    at: datetime
    verb: str | None = None
    person: str | None = None
    """The speaker of a message; None for the soul's own words."""
    name: str | None = None
    """The display name at the time of the entry."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    position: str = ""
    """For a message: the network's own order."""
    stems: str = ""
    """For a message: its content stems, separated by spaces; empty = derive them from its words."""

    @property
    def is_canned(self) -> bool:
        """Whether it was spoken without thought: a fixed line, an apology or an acknowledgement.

        Such a line never appears in a prompt as the soul's own speech, because a model copies it, and is no memory.
        """
        return bool(self.metadata.get(CANNED))


class Shown(Struct, frozen=True, kw_only=True):
    """A user model in a turn's prompt: its full text, or a pointer to the same text earlier in the prompt."""

    person: str
    audience: str
    version: int
    writable: bool
    pointer: bool = False
    text: str = ""
    """The model's markdown as it was shown; empty for a pointer and for version 0."""


class PastTurn(Struct, frozen=True, kw_only=True, dict=True):
    """One earlier turn of this conversation as the history renders it. Equal values render to equal bytes.

    Its `__dict__` caches what callers computed from it; a changed copy starts with an empty cache.
    """

    turn: str
    nonce: str
    number: int
    """The turn's number in its conversation, from 1."""
    entries: tuple[Entry, ...]
    shown: tuple[Shown, ...] = ()
    is_as_kept: bool = False
    """Whether it is exactly as committed, with nothing changed or left out: its own record holds it."""


def once(past: PastTurn, work: Callable[[PastTurn], T]) -> T:
    """Return a result that depends on a past turn alone; computed once and cached with the turn. Pure."""
    memo: dict[Any, T] = past.__dict__
    try:
        return memo[work]
    except KeyError:
        return memo.setdefault(work, work(past))


class Summary(Struct, frozen=True, kw_only=True):
    """A summary of the working-memory turns that it replaced."""

    text: str
    sources: tuple[str, ...]
    """The audiences of everything summarised."""
    upto: int
    """The number of the last turn summarised."""
    nonce: str = ""
    """The nonce that fences it, generated when it was written."""
    keys: tuple[str, ...] = ()
    """Words by which it may be asked for later, of a diary."""
    is_diary: bool = False
    """Whether the talk was over when it was written: then it is also a moment of the soul's own."""


class LeftOut(Struct, frozen=True, kw_only=True):
    """Turns that are no longer in the history or the summary."""

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
    """One soul-state value that may be shown in this prompt."""

    key: str
    value: str
    audience: str
    updated_at: datetime


SITTING = timedelta(hours=8)
"""A longer pause ends a sitting."""


def of_this_sitting(state: tuple[StateValue, ...], past: Sequence[PastTurn], now: datetime) -> tuple[StateValue, ...]:
    """Return the state without a topic of an earlier sitting, which would head a new talk with old business. Pure."""
    if not [one for one in state if one.key == StateKey.CURRENT_TOPIC and one.updated_at < now - SITTING]:
        return state  # a topic of the last hours is of this sitting, whenever that began
    began = now
    for at in [entry.at for turn in reversed(past) for entry in reversed(turn.entries)]:
        if began - at > SITTING:
            break
        began = min(began, at)
    oldest = min(began, now - SITTING)
    return tuple([one for one in state if one.key != StateKey.CURRENT_TOPIC or one.updated_at >= oldest])


class Intuition(Struct, frozen=True, kw_only=True):
    """One whisper that this turn, and no other, feels."""

    whisper: int
    daimon: str
    text: str


class ProcessState(Struct, frozen=True, kw_only=True):
    """A conversation's position in its mental processes; written back with the turn."""

    process: str
    previous_process: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    process_memory: Mapping[str, Any] = field(default_factory=dict)
    invocation_count: int = 0
    entered_at: datetime | None = None


class Person(Struct, frozen=True, kw_only=True):
    """One human or bot, by stable id. `person` is the canonical id if several are linked."""

    person: str
    name: str
    models: tuple[UserModel, ...]
    """Every model of this person that may be shown here, the writable one (this audience's) first; never empty."""
    turns_here: int = 0
    """The number of their committed turns in this conversation, ever."""
    spoke_at: datetime | None = None
    """When the last of them was; None = there was none, or it is not known."""
    is_met: bool = False
    """Whether the soul has answered them before, wherever that was."""
    is_new_here: bool = False
    """Whether they write directly, and the soul has never answered them there."""
    is_bot: bool = False
    zone: str = ""
    """The IANA time zone that they set, else that their network last reported; empty = it is not known."""
    locale: str = ""
    """The locale that their network reports, such as `de-DE`; empty = it is not known."""

    @property
    def is_stranger(self) -> bool:
        """Whether the soul never answered them."""
        return not (self.is_bot or self.turns_here or self.is_met)


class Moment(Struct, frozen=True, kw_only=True):
    """One message of a person, or one line of the soul spoken to a person, as it is kept and found again."""

    turn: str
    at_s: int
    """Seconds since 1970, UTC."""
    person: str
    """Whose words these are, or whom the soul answered."""
    conversation: str
    audience: str
    """Who could see it."""
    text: str
    pictures: str = ""
    """The descriptions of its pictures."""
    name: str = ""
    """The display name then; empty for the soul's own words."""
    position: str = ""
    """Of one of several messages of a turn: the network's own order."""
    importance: int = 35
    """In hundredths."""
    is_own: bool = False
    """Whether these are the soul's own words."""
    id: int = 0
    """The row's id; 0 = not stored yet."""

    @property
    def is_diary(self) -> bool:
        """Whether the soul wrote it for itself, of days that were over."""
        return not self.person and not self.is_own


class Fact(Struct, frozen=True, kw_only=True):
    """Something that somebody is known by, as they told it."""

    id: int
    """The row's id."""
    short: str = ""
    """As people and models call it: `f7`; empty = it may not be called here, because it is somebody else's."""
    person: str
    """Whom it is about, or who told it of somebody who is not here: a canonical id."""
    kind: str
    text: str
    """In the third person; of a name the bare name."""
    audience: str
    """Where it was told."""
    turn: str
    """The turn in which it was told."""
    stated_s: float
    keys: tuple[str, ...] = ()
    """Words by which it may be asked for."""
    about: str = ""
    """The name of somebody who is not here; empty = it is about the person."""
    since: date | None = None
    until: date | None = None
    """From this day on it is not in force."""
    ended_at: datetime | None = None
    why: str = ""
    """Why it ended, as it was told."""
    unchecked: bool = False
    """Whether a pattern found it and nobody has confirmed it."""

    def holds_on(self, day: date) -> bool:
        """Return whether it is in force on a day."""
        return self.ended_at is None and (self.until is None or day <= self.until)


class PlanHere(Struct, frozen=True, kw_only=True):
    """A plan that waits for the speaker in a place of this audience, as the prompt shows it."""

    id: int
    """The row's id."""
    short: str
    """As people and models call it: `p3`."""
    at: datetime
    """When it comes next, UTC."""
    zone: str
    text: str
    repeat: str = ""
    until: date | None = None
    is_asked: bool = True
    """Whether the speaker asked for it; False = the soul's own promise."""


class Matter(Struct, frozen=True, kw_only=True):
    """A piece of somebody's life that is not over."""

    id: int
    short: str
    """`m2`."""
    person: str
    text: str
    opened_at: datetime
    when: date | None = None
    audience: str = ""


class Remembered(Struct, frozen=True, kw_only=True):
    """The lines of memory in a prompt."""

    lines: tuple[Mapping[str, str], ...] = ()
    """Facts that ended first, then moments, best first: `when`, `ago`, `from`, `text`, and for some `before`."""
    rows: tuple[str, ...] = ()
    """Where each line's texts are kept: `ended:3`, `moment:7:0:320`, and after a blank the same for `before`."""


class Recollection(Struct, frozen=True, kw_only=True):
    """Everything that one turn knows, from one read snapshot. Pure functions of it decide the rest of the turn."""

    turn: str
    nonce: str
    now: datetime
    conversation: str
    audience: str
    """Who can see what is said here now; the label of everything learned in this turn."""
    shown_from: str = ""
    """Every audience whose learning may be shown here, a JSON array; none is named where the owner sees all."""
    perceptions: tuple[Perception, ...]
    """What this turn answers: one perception or a burst, in order. The author of the last one is the speaker."""
    speaker: Person | None
    """None if nobody spoke (internal perceptions)."""
    listener: Person | None = None
    """Whom this turn speaks to, if nobody has just spoken: a plan, a promise or news is for somebody."""
    others: tuple[Person, ...] = ()
    """Other humans heard since the soul's last reply, latest first, at most two."""
    process: ProcessState
    turns: int
    """The number of committed turns of this conversation, those of the clock and of subprocesses included."""
    spoken: int = 0
    """The number of those in which a person spoke: what intervals count."""
    version: int
    """The optimistic lock of the conversation's row; 0 = the conversation is new."""
    past: tuple[PastTurn, ...] = ()
    """Unexpired turns since the last compaction that may be shown here, oldest first."""
    expired: tuple[PastTurn, ...] = ()
    """Turns past their time to live, to be summarised and deleted, oldest first."""
    summary: Summary | None = None
    left_out: LeftOut | None = None
    state: tuple[StateValue, ...] = ()
    """Per key, the newest value that may be shown here; defaults are not included."""
    task: str = ""
    """The `currentTask` set in this conversation, or by hand for its audience; empty = none."""
    last_at: datetime | None = None
    """When the last turn of this conversation was thought; None = there was none."""
    participation: str = ""
    """How this conversation is heard, if that was set for it; empty = the place's default."""
    is_first: bool = False
    """No model call of this home was finished before this turn."""
    psyche: Psyche | None = None
    """The psyche; None = it was not requested."""
    peers: tuple[Peer, ...] = ()
    """What the ledger holds of the speaker, then of others who are named, as far as it may be shown here."""
    beliefs: tuple[Belief, ...] = ()
    """The cortex's beliefs that apply here: those about people present first, then the newest."""
    plans: tuple[PlanHere, ...] = ()
    """What waits for the speaker here, soonest first; a prompt shows the first eight."""
    known: tuple[Fact, ...] = ()
    """The facts that the prompt shows, in order: the addressee's with their ids, then those of others present."""
    ended: tuple[Fact, ...] = ()
    """Facts of theirs that hold no more, for memory to find."""
    unshown: int = 0
    """For how many constraints of others there is no room."""
    matters: tuple[Matter, ...] = ()
    """What is open in the life of the addressee and may be shown here, in the order in which it is shown."""
    dated: int = 0
    """How much of what they told here is open in their life and has its day: eight leave no room."""
    second_thought: str = ""
    """The cortex's answer when it was consulted about this message."""
    intuitions: tuple[Intuition, ...] = ()
    """The daimons' whispers that this turn feels, oldest first."""

    @property
    def perception(self) -> Perception:
        """The perception whose author is answered: the last one taken."""
        return self.perceptions[-1]

    @property
    def addressee(self) -> Person | None:
        """Whom this turn speaks to: who has just spoken, else for whom it is."""
        return self.speaker or self.listener

    @property
    def people(self) -> tuple[Person, ...]:
        """Everybody whom the prompt knows, the addressee first."""
        return (self.addressee, *self.others) if self.addressee else self.others

    @property
    def locale(self) -> str:
        """The locale of whom this turn speaks to, else of the place in which they were heard; empty = unknown."""
        extra, to = self.perception.extra, self.addressee
        return (to.locale if to else "") or (extra.place_locale if isinstance(extra, MessageExtra) else "")

    def called(self, perception: Perception) -> str:
        """Return the name of who said something: what the speaker told of it, else the network's."""
        is_speaker = self.speaker is not None and perception.person == self.perception.person
        return self.speaker.name if self.speaker and is_speaker else perception.name

    @property
    def owes(self) -> bool:
        """Whether one of the perceptions is owed a reply."""
        return [one for one in self.perceptions if one.owes] != []


def unrecalled(turn: str, perceptions: tuple[Perception, ...], nonce: str, now: datetime) -> Recollection:
    """Return what a turn knows before anything is recalled: what was heard, from whom, and when. Pure."""
    heard = perceptions[-1]
    model = UserModel(person=heard.person, audience=heard.audience, version=0)
    speaker = Person(person=heard.person, name=heard.name, models=(model,), is_bot=heard.is_bot)
    return Recollection(
        turn=turn,
        nonce=nonce,
        now=now,
        conversation=heard.conversation,
        audience=heard.audience,
        perceptions=perceptions,
        speaker=speaker if heard.person and heard.origin is Origin.EXTERNAL else None,
        process=ProcessState(process=""),
        turns=0,
        version=0,
    )


def turn_of(key: str) -> str:
    """Return the id of the turn that answers the perception with this dedupe key; re-runs keep it. Pure."""
    return base64.b32encode(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest())[:16].decode().lower()
