"""Define the result of a turn: what it thought and everything that it changes.

These are plain values; only the store writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from claudius.acts import Act
from claudius.failure import Failure
from claudius.ledger_types import Noted
from claudius.provider import StopReason, Usage
from claudius.psyche_types import Appraisal, PsycheChange
from claudius.recollection import Entry, Moment, ProcessState, Shown, Summary
from claudius.tool import Card, ToolCall

SIGN_ONLY = "paused"
"""The verb of a sign that is of no turn and answers nothing: it is forgotten once it is shown."""
UtteranceKind = Literal["reply", "apology", "reaction", "proactive", "daimon"]
ApologyKind = Literal["provider_down", "over_budget", "unreadable", "interrupted", "too_large", "stopped"]
Rung = Literal["complete", "plain", "repair", "cut", "fixed", "silent", "apology"]


USED = "tool"
"""The purpose of a call that goes on with what a tool gave."""


class Thought(Struct, frozen=True, kw_only=True):
    """One parsed and checked section of a reply. `step` is the cognitive step's name."""

    step: str
    content: str
    verb: str | None = None
    section: str | None = None
    """In a user-model update: the heading that it replaces; None = the whole model."""


class Call(Struct, frozen=True, kw_only=True):
    """One finished model call of a turn, stored so that a retry after a crash does not pay for it twice."""

    n: int
    purpose: str
    request_sha256: str
    response: str = ""
    """Empty where it is kept as what was made of it, so that nothing is to be erased here."""
    stop_reason: StopReason
    usage: Usage
    provider: str
    model: str
    ms: int = 0


class Thoughts(Struct, frozen=True, kw_only=True):
    """A parsed model reply: its sections, the words to speak, and the rung of the fallback ladder that yielded them."""

    thoughts: tuple[Thought, ...]
    """In `STEPS` order; `external_dialogue` is added when it is concluded."""
    speech: str
    """What to speak, before the output gate; empty = nothing."""
    verb: str
    rung: Rung
    flags: tuple[str, ...] = ()
    streamed: str = ""
    """The part of it that the listener has already seen; a prefix of what is finally spoken."""
    truncated: bool = False
    calls: tuple[Call, ...] = ()
    used: tuple[Entry, ...] = ()
    """What was asked of tools and what came of it, in order; it follows the thought."""
    is_canned: bool = False
    """The words are a fixed line, which no thought chose."""


class Utterance(Struct, frozen=True, kw_only=True):
    """One part of what is said aloud: the only input that adapters accept. Only the soul engine creates one."""

    key: str
    """The idempotency key of this part: uuid5 of turn and part."""
    turn: str
    conversation: str
    body: str
    kind: UtteranceKind = "reply"
    part: int = 0
    parts: int = 1
    answers: tuple[str, ...] = ()
    """The keys of the perceptions that this answers."""
    person: str = ""
    """Whose perception this answers. If the adapter can address one listener, only this person hears it."""
    verb: str = "said"
    apology: ApologyKind | None = None
    receipts: tuple[str, ...] = ()
    """What was really done, one line an act, written by code and shown after the words."""
    card: Card | None = None
    """A question for consent, shown after the words with its buttons."""

    @property
    def whole(self) -> str:
        """The words and, after a blank line, the receipts: what a network without a form of its own shows."""
        return "\n\n".join(filter(None, (self.body, "\n".join(self.receipts))))


class ShownThought(Struct, frozen=True, kw_only=True):
    """A thought that its owner chose to see below the reply of the same turn."""

    turn: str
    conversation: str
    person: str
    text: str


class ModelVersion(Struct, frozen=True, kw_only=True):
    """A new version of one user model, written by the turn's transaction."""

    person: str
    audience: str
    version: int
    markdown: str
    note: str
    author: Literal["turn", "owner", "revert", "person"] = "turn"
    suspect: bool = False
    name: str = ""
    """The person's current display name, for the archive's file name."""


class StateChange(Struct, frozen=True, kw_only=True):
    """A new value of one soul-state key under one audience label. An empty value resets the key to its default."""

    key: str
    value: str
    audience: str


class Schedule(Struct, frozen=True, kw_only=True):
    """A perception that the soul will have later, of its own."""

    id: int
    conversation: str
    at: datetime
    """When, UTC."""
    text: str
    """What the soul will notice at that time."""
    process: str = ""
    """The process to use for it; empty = the conversation's own."""
    params: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    """The creator's own name for it: a second plan of the same name changes nothing while the first is pending."""
    audience: str = ""
    person: str = ""
    """The person who hears what is said then, if the adapter can address one listener."""
    asked_by: str = ""
    """Who asked for it; empty = the soul's own plan, which lapses if it fires too late."""
    in_answer: bool = False
    """The soul planned it while answering somebody; when it fires it may speak, as a requested plan may."""
    instead_of: int = 0
    """The plan that this one postpones; 0 = none."""
    made_as: str = ""
    """`remind`: somebody asked for it; `promise`: the soul gave its word; empty = neither."""


PROMISE_DUE = "promise_due"
"""The `event` in a plan's `params`: a promise of the soul's is due."""
LAPSES_AT = "plan.lapses_at"
"""In a plan's `params`: the instant from which it is dropped."""
WHAT = "what"
"""In a plan's `params`: what it is about, without the words that introduce it."""


class Planned(Struct, frozen=True, kw_only=True):
    """How a turn changes the soul's plans and what is stored with them."""

    schedules: tuple[Schedule, ...] = ()
    cancels: tuple[int, ...] = ()
    closes: bool = False
    """If true, nothing planned or pending here happens until someone addresses the soul here again."""
    participation: str | None = None
    """How the conversation is heard from now on; empty = the place's default; None = unchanged."""
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Subprocess → the state it keeps for this conversation from now on."""


class Intent(Struct, frozen=True, kw_only=True):
    """Everything that one turn changes, applied in one transaction or not at all."""

    turn: str
    conversation: str
    audience: str
    person: str
    at: datetime
    nonce: str
    answers: tuple[str, ...]
    """The inbox keys that this turn answers or consumes."""
    version: int | None
    """The conversation's version that was recalled; the commit is refused if it has changed since. None = nothing was
    recalled: the turn is added at any version, and the conversation's process stays as it is.
    """
    process: str
    """The mental process that ran."""
    next_process: ProcessState
    rung: Rung
    verb: str = "said"
    flags: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    """The steps that the model was asked for."""
    attention: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What changed and what was refused, in words for `claudius why`."""
    entries: tuple[Entry, ...] = ()
    thoughts: tuple[Thought, ...] = ()
    shown: tuple[Shown, ...] = ()
    model: ModelVersion | None = None
    state: tuple[StateChange, ...] = ()
    summary: Summary | None = None
    """A new summary; turns up to and including `summary.upto` leave the history, and expired ones are deleted."""
    history_from: int = 0
    """The number of the first turn that stays in the rendered history."""
    utterances: tuple[Utterance, ...] = ()
    calls: tuple[Call, ...] = ()
    prompt_sha256: str = ""
    snapshot: bytes = b""
    """The data from which `claudius replay` rebuilds the prompt."""
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    """Content by sha256 that the snapshot refers to."""
    name: str = ""
    """The speaker's current display name."""
    held: tuple[str, ...] = ()
    """The inbox keys that the turn took but leaves to the next one, because it was interrupted."""
    planned: Planned | None = None
    """None = no such change."""
    noted: Noted | None = None
    """What the turn adds to the ledger."""
    moments: tuple[Moment, ...] = ()
    """What was said in the turn, to be found again."""
    acts: tuple[Act, ...] = ()
    """What the turn does beyond its words, booked in its transaction; each may yield a receipt."""
    asking: ToolCall | None = None
    """The call of a tool that waits for consent; its row is written with the turn, its card with the last utterance."""
    late: tuple[str, ...] = ()
    """The calls of tools that go on when the turn has ended; their ends are heard as perceptions."""
    tainted: str = ""
    """The third-party text that it heard or fetched, because of which nothing was learned; empty = none."""
    locale: str = ""
    """The speaker's locale, in which receipts name days and hours; empty = English."""
    appraisals: tuple[Appraisal, ...] = ()
    """How the soul took what it heard."""
    psyche: PsycheChange | None = None
    """How the turn changes the psyche; applied to the state current at the time of writing."""
    whispers: tuple[int, ...] = ()
    """The whispers that were in its prompt: the commit marks them as used."""
    failure: Failure | None = None
    """Why it says an apology or a fixed line; None if it says what was thought."""
