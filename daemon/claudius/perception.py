"""Define perceptions with what each kind carries, their place, and the audience rules: who may see what was said where.

`Perception.extra` is one struct a kind. Its JSON is the flat object that inboxes and records of turns have always held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, fields, force_setattr, replace

from claudius.decoding import ready
from claudius.shown import BROUGHT, How, Quoted, ReadFile, lines_of

SELF = "self"
"""As a source: learned from no one, may be shown anywhere. As a target: seen by the soul alone."""


class Kind(StrEnum):
    """The kinds of perception."""

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
    NEWS = "news"
    TOOL = "tool"


class Origin(StrEnum):
    """Whose voice a perception has in the prompt: external = user role, internal = assistant role."""

    EXTERNAL = "external"
    INTERNAL = "internal"


class Standing(StrEnum):
    """The network's statement about a speaker; `admit` in `runtime/access.py` decides from it who may talk."""

    MEMBER = "member"
    """A full member of the workspace or guild, or the user of this machine."""
    GUEST = "guest"
    OUTSIDER = "outsider"
    """A member of another organisation, or a stranger."""
    GONE = "gone"
    """Deactivated."""


class Following(StrEnum):
    """What happens to a message that is owed a reply only if the soul follows its thread, where it does not."""

    KEPT = "kept"  # and owed no reply
    DROPPED = "dropped"


class Extra(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a perception of any kind may carry besides its text; each kind has its own subclass."""

    guilds: tuple[str, ...] = ()
    """Said directly on Discord: the guilds that the speaker shares with the soul."""
    roles: tuple[str, ...] = ()
    """The speaker's roles there, if a rule is about roles; only `admit` reads them, and nothing stores them."""
    is_paired: bool = field(default=False, name="paired")
    """Whether the speaker was let in by a code."""
    is_over_budget: bool = field(default=False, name="over_budget")
    """Whether it is the first message over a rate, which gets an apology."""
    locale: str = ""
    """The speaker's own locale, as their network reports it: `de-DE`."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """What the adapter alone reads, for the answer to this very perception; keys without a field go here, too."""


class MessageExtra(Extra, frozen=True, kw_only=True, omit_defaults=True):
    """What a message or a mention carries."""

    can_react: bool = False
    """Whether the soul can react to it with an emoji."""
    can_speak: bool = True
    """Whether the soul can say anything where it came from."""
    address: str = ""
    """How it is addressed, if the adapter knows better than the text."""
    participation: str = ""
    """How its conversation is heard; empty = as the conversation says."""
    zone: str = ""
    """The speaker's time zone, as their network reports it."""
    place: str = ""
    """What its channel is called there, if the network tells it: `#build`."""
    place_locale: str = ""
    """The locale of its place, for a speaker whose own is not known."""
    named: Mapping[str, str] = field(default_factory=dict)
    """Other people it mentions: person id → name. Erasing a person finds them by it."""
    files: tuple[Mapping[str, Any], ...] = ()
    """Attached files (`name`, `type`, `bytes`, and what the adapter needs), each handed to `Adapter.fetch` as it is."""
    read: tuple[ReadFile, ...] = ()
    """What became of each file, for the one turn."""
    shown: tuple[Quoted, ...] = ()
    """What it shows besides its own words, for the one turn."""
    is_ours: bool = False
    """Whether the soul itself posted it: only of what `Adapter.context` returns."""
    answer: str | None = None
    """The answer that was given elsewhere already, in a session of Claude Code."""


class EditExtra(MessageExtra, frozen=True, kw_only=True, omit_defaults=True):
    """What an edit carries: the message in its present form."""

    of: str = ""  # the key of that message
    since: datetime | None = None  # when it was said


class DeleteExtra(Extra, frozen=True, kw_only=True, omit_defaults=True):
    """What a deletion carries."""

    of: str = ""  # the key of that message
    since: datetime | None = None  # when it was said


class ReactionExtra(Extra, frozen=True, kw_only=True, omit_defaults=True):
    """What a reaction carries."""

    emoji: str = ""
    is_on: bool = field(default_factory=lambda: True)  # a factory's value is written out, for those who read the JSON
    """Whether it was set; False = it was taken back."""
    receipt: str = ""
    """The receipt of the soul's utterance that it is about."""
    of: str = ""
    """The key of the perception that it is about, if that is somebody's message."""
    turn: str = ""
    """The turn of that utterance; the store sets it."""
    is_removed: bool = field(default=False, name="removed")
    """Whether it was taken back; the store sets it."""


class MoveExtra(Extra, frozen=True, kw_only=True, omit_defaults=True):
    """What a join or a leave carries."""

    is_our_own: bool = field(default=False, name="ourselves")
    """Whether it is the soul's own."""


class CommandExtra(Extra, frozen=True, kw_only=True, omit_defaults=True):
    """What a command carries."""

    where: str = ""
    """The conversation in which it was given; empty = the perception's own."""
    is_public: bool | None = None
    """Whether that is a channel; None = its name says."""
    hushes: str = ""  # the conversation that is quiet from here on
    is_moderator: bool = field(default=False, name="moderator")
    """Whether it is from one who may mute people, decided when it was accepted."""
    receipt: str = ""
    """The post of ours on which it was given, by a button or a thumb: it is about that post's question alone."""


class InternalExtra(Extra, frozen=True, kw_only=True, omit_defaults=True):
    """What a perception of the soul's own carries, whatever made it."""

    process: str = ""
    """The process that this one turn runs; empty = the conversation's."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of that process, which it alone reads."""
    says: str | None = None
    """The line to say without asking a model."""
    asked_by: str = ""
    """The person who asked for it."""
    in_answer: bool = False
    """Whether it was planned in answering somebody."""
    lapses_at: datetime | None = None
    """From then on it is dropped."""
    by: str = ""
    """Whom news are from, as the program says that brings them."""
    is_message: bool = False
    """Whether news are somebody's words, and not an event."""
    what: str = ""
    """What it is about, without the words that introduce it: memory is searched for these words alone."""
    event: str = ""
    """The kind under which the psyche knows it, if that is not the perception's."""
    level: float = 0.0
    """How much a milestone, or a silence, means by itself, in [0, 1]."""
    due_at: str = ""
    call: str = ""
    """The call of a tool whose end it tells."""
    there: tuple[str, str] = ("", "")
    """The conversation, and its audience, in which something may follow from an event in the soul's own."""


class ScheduledExtra(InternalExtra, frozen=True, kw_only=True, omit_defaults=True):
    """What a plan carries when it is due."""

    schedule: int = 0
    """The plan's id."""
    made_as: str = ""
    """`remind`: somebody asked for it; `promise`: the soul gave its word; empty = neither."""


class ToolExtra(InternalExtra, frozen=True, kw_only=True, omit_defaults=True):
    """What the end of a tool's call carries."""

    call: str = ""
    """The call's id."""
    tool: str = ""
    """The tool's name."""
    state: str = ""
    """How it ended: a `CallState`; `approved` = it is to be started now."""
    third: bool = False
    """Whether what it gave is third-party text."""


class TickExtra(InternalExtra, frozen=True, kw_only=True, omit_defaults=True):
    """What a run of the scheduler carries."""

    job: str = ""
    """The job to run."""


class DirectiveExtra(InternalExtra, frozen=True, kw_only=True, omit_defaults=True):
    """What a directive of the cortex, or of a command, carries."""

    action: str = ""
    """What the cortex wants done; shown, and nothing decides by it."""


_EXTRAS: dict[Kind, type[Extra]] = {
    Kind.MESSAGE: MessageExtra,
    Kind.MENTION: MessageExtra,
    Kind.EDIT: EditExtra,
    Kind.DELETE: DeleteExtra,
    Kind.REACTION: ReactionExtra,
    Kind.JOIN: MoveExtra,
    Kind.LEAVE: MoveExtra,
    Kind.COMMAND: CommandExtra,
    Kind.SILENCE: InternalExtra,
    Kind.TICK: TickExtra,
    Kind.SCHEDULED: ScheduledExtra,
    Kind.DIRECTIVE: DirectiveExtra,
    Kind.NEWS: Extra,
    Kind.TOOL: ToolExtra,
}
_NAMES = {kind: frozenset(one.encode_name for one in fields(ready(kind))) for kind in _EXTRAS.values()}
_EMPTY = {kind: kind() for kind in _EXTRAS.values()}
_NOTHING = Extra()

if TYPE_CHECKING:
    _AnyExtra = Extra
else:
    _AnyExtra = Any  # msgspec cannot choose a struct by another field; `Perception.__post_init__` does


class Perception(Struct, frozen=True, kw_only=True):
    """One perception, complete and immutable. `key` is its dedupe key (design: reliability, tables and states)."""

    key: str
    conversation: str
    audience: str
    person: str = ""
    """Empty = nobody: it is the soul's own."""
    name: str = ""
    text: str = ""
    at: datetime
    position: str = ""
    """The platform's order within the conversation; compared as text, so numbers are zero-padded."""
    kind: Kind = Kind.MESSAGE
    origin: Origin = Origin.EXTERNAL
    owes: bool = True
    """Whether a reply is owed; decided once, on acceptance, from structure alone."""
    following: Following | None = None
    """If set, `owes` holds only in a thread that the soul follows; the store checks this on acceptance."""
    to_other: bool = False
    """Whether it begins by addressing someone else."""
    standing: Standing = Standing.MEMBER
    is_bot: bool = False
    is_owner: bool = False
    """Whether the home's owner wrote it at their own terminal: they see everything and are not rate-limited."""
    extra: _AnyExtra = _NOTHING
    """What its kind carries. A mapping of the same keys is accepted, too: decoded JSON, or a simple adapter's."""

    def __post_init__(self) -> None:
        """Make `extra` the struct of the perception's kind. Raises: msgspec.ValidationError for a wrong value."""
        kind = _EXTRAS[self.kind]
        if self.origin is Origin.INTERNAL and not issubclass(kind, InternalExtra):
            kind = InternalExtra
        if type(self.extra) is not kind:
            force_setattr(self, "extra", _EMPTY[kind] if self.extra is _NOTHING else _converted(self.extra, kind))


def _converted(given: object, kind: type[Extra]) -> Extra:
    """Convert a mapping, or another kind's extra; None is as good as absent, keys without a field go to `own`."""
    values = msgspec.to_builtins(given) if isinstance(given, Extra) else given
    if not isinstance(values, Mapping):
        raise msgspec.ValidationError(f"expected an object, got {type(values).__name__}")
    names = _NAMES[kind]
    known = {key: value for key, value in values.items() if key in names and value is not None}
    if own := {key: value for key, value in values.items() if key not in names}:
        known["own"] = {**known.get("own", {}), **own}
    return msgspec.convert(known, kind)


_NO_INTERNAL = InternalExtra()


def internal(perception: Perception) -> InternalExtra:
    """Return what a perception of the soul's own carries; of anybody else's, nothing. Pure."""
    extra = perception.extra
    return extra if isinstance(extra, InternalExtra) and perception.origin is Origin.INTERNAL else _NO_INTERNAL


def can_react(perception: Perception) -> bool:
    """Return whether the soul can react to a perception with an emoji. Pure."""
    return isinstance(perception.extra, MessageExtra) and perception.extra.can_react


def whole_text(perception: Perception) -> str:
    """Return the words of a message with what its own author attached to them. Pure."""
    shown = getattr(perception.extra, "shown", ())
    return lines_of(perception.text, *(one.text for one in shown if one.how is How.ATTACHED))


def brought(perception: Perception) -> frozenset[str]:
    """Return the texts that a message brought besides its words. Pure."""
    return frozenset([one.text for one in getattr(perception.extra, "shown", ()) if one.how in BROUGHT])


def amended_key(perception: Perception) -> str:
    """Return the key of the message that an edit, a deletion or a reaction is about; empty if it names none. Pure."""
    extra = perception.extra
    return extra.of if isinstance(extra, EditExtra | DeleteExtra | ReactionExtra) else ""


def given_in(perception: Perception) -> str:
    """Return the conversation in which a command was given. Pure."""
    extra = perception.extra
    return (extra.where if isinstance(extra, CommandExtra) else "") or perception.conversation


def edited(message: Perception, at: datetime, position: str) -> Perception:
    """Return a message in its present form as an edit perception, in force from `position` on. Pure."""
    return replace(
        message,
        key=f"edit:{message.key}:{message.person}:{position}",
        kind=Kind.EDIT,
        owes=False,
        at=at,
        position=position,
        extra=EditExtra(**{**asdict(message.extra), "of": message.key, "since": message.at}),
    )


class Cause(StrEnum):
    """Why the soul would speak in a turn, judged from the perception that the turn is about."""

    ANSWERS = "answers"
    """It answers a message that is owed a reply, however late."""
    ASKED = "asked"
    """Somebody asked for it: a reminder, a promise made to them, or a plan made while answering them."""
    JOINS = "joins"
    """It joins a current exchange in a channel where the soul takes part."""
    UNASKED = "unasked"
    """None of these: speaking would mean writing first."""


TALK = frozenset({Kind.MESSAGE, Kind.MENTION, Kind.COMMAND})
GROUP, CONSUMED = "group", "consume"
"""The participation in which the soul may speak without being called, and that of a message that gets no answer."""
GOES_ON = timedelta(minutes=30)
"""A conversation counts as current for this long after a message."""


def cause_of(perception: Perception, participation: str, now: datetime) -> Cause:
    """Return why the soul would speak about a perception, at `now`. Pure.

    `participation`: how the conversation is heard; the perception's own takes precedence.
    """
    why = internal(perception)
    if why.asked_by or why.in_answer:
        return Cause.ASKED
    is_own = perception.origin is Origin.INTERNAL
    if perception.owes and (not is_own or perception.kind is Kind.NEWS):  # a program's, for a process that answers all
        return Cause.ANSWERS
    if is_own:
        return Cause.UNASKED
    own = perception.extra.participation if isinstance(perception.extra, MessageExtra) else ""
    is_group = (own or participation) == GROUP
    is_talk = perception.kind in TALK and now - perception.at <= GOES_ON
    return Cause.JOINS if is_group and is_talk else Cause.UNASKED


COMMANDS = "!"
"""Starts the last part of the key of a command conversation, so that commands wait for no turn."""


class Place(Struct, frozen=True):
    """The four parts of a conversation key: `network:workspace:channel:thread`."""

    network: str
    workspace: str
    channel: str
    thread: str

    @classmethod
    def of(cls, conversation: str) -> Place:
        """Split a conversation key. Raises: ValueError if it does not have four parts."""
        parts = conversation.split(":", 3)
        if len(parts) != 4:
            raise ValueError(f"not a conversation key: {conversation!r}")
        return cls(*parts)

    @property
    def of_channel(self) -> str:
        """The channel of the conversation: `network:workspace:channel`."""
        return f"{self.network}:{self.workspace}:{self.channel}"

    @property
    def is_for_commands(self) -> bool:
        """Whether the conversation holds one person's commands, apart from the one where they are given."""
        return self.thread.startswith(COMMANDS)


def private(person: str) -> str:
    """Return the audience of a direct message or a terminal: that person alone."""
    return f"private:{person}"


def shared(conversation: str) -> str:
    """Return the audience of a channel: `shared:<network>:<workspace>:<channel>`."""
    return f"shared:{Place.of(conversation).of_channel}"


Members = Mapping[str, frozenset[str] | None]
"""Who can currently see a shared audience, by canonical person id; None or absent = unknown."""


def members_of(audience: str, members: Members) -> frozenset[str] | None:
    """Return who can currently see `audience`; None if unknown. Pure."""
    if audience == SELF:
        return frozenset()
    if audience.startswith("private:"):
        person = audience.removeprefix("private:")
        return members.get(audience) or frozenset({person})
    return members.get(audience)


def may_show(sources: Iterable[str], target: str, members: Members) -> bool:
    """Return whether what was learned in all of `sources` may be shown in a prompt for `target`. Pure.

    Everyone in the target must already be able to see every source. If the target's members are unknown, only what
    was learned in that same audience may be shown.
    Source: the audience rule of the security design, section 5.
    """
    if target == SELF:
        return True
    seeing = members_of(target, members)
    for source in sources:
        if source in (SELF, target):
            continue
        allowed = members_of(source, members)
        if seeing is None or allowed is None or not seeing <= allowed:
            return False
    return True


TERMINAL = "terminal"


def joint(conversation: str) -> str:
    """Return the audience of one terminal conversation in which several persons have spoken. Pure."""
    return f"shared:{conversation}"


def is_terminal(conversation: str) -> bool:
    """Return whether a conversation takes place at the terminal. Pure."""
    return Place.of(conversation).network == TERMINAL


def hearing_audience(conversation: str, carried: str, speakers: Iterable[str]) -> str:
    """Return the audience of a perception: the one it carries, unless several persons share that terminal. Pure.

    `speakers` are all who have spoken in this conversation, the present speaker included, by canonical id. What was
    learned there while only one person spoke keeps its private label, so `perception.may_show` hides it now.
    """
    if is_terminal(conversation) and carried.startswith("private:") and len(set(speakers)) > 1:
        return joint(conversation)
    return carried


def sees_everything(audience: str, *, is_owner: bool) -> bool:
    """Return whether the owner sits alone at his own terminal, where everything may be shown. Pure."""
    return is_owner and audience.startswith(private(""))
