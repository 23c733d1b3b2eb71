"""What a turn thought, and everything that it changes: values, written by nobody but the store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from claudius.ledger_types import Noted
from claudius.provider import StopReason, Usage
from claudius.psyche_types import PsycheChange
from claudius.recollection import Entry, ProcessState, Shown, Summary

UtteranceKind = Literal["reply", "apology", "reaction", "proactive", "daimon"]
ApologyKind = Literal["provider_down", "over_budget", "unreadable", "interrupted", "too_large", "stopped"]
Rung = Literal["complete", "plain", "repair", "cut", "fixed", "silent", "apology"]


class Thought(Struct, frozen=True, kw_only=True):
    """One section of a reply, read and judged. `step` is the cognitive step's name."""

    step: str
    content: str
    verb: str | None = None
    section: str | None = None
    """Of a user-model update: the heading that it replaces; None = the whole model."""


class Call(Struct, frozen=True, kw_only=True):
    """One finished model call of a turn, kept so that a crash need not pay for it twice."""

    n: int
    purpose: str
    request_sha256: str
    response: str
    stop_reason: StopReason
    usage: Usage
    provider: str
    model: str
    ms: int = 0


class Thoughts(Struct, frozen=True, kw_only=True):
    """What the model's reply came to: sections, and the words to speak with the rung of the ladder they came from."""

    thoughts: tuple[Thought, ...]
    """In `STEPS` order; `external_dialogue` joins them when it is concluded."""
    speech: str
    """What is to be spoken before the output gate; empty = nothing."""
    verb: str
    rung: Rung
    flags: tuple[str, ...] = ()
    streamed: str = ""
    """What the listener has already seen of it; a prefix of what is finally spoken."""
    truncated: bool = False
    calls: tuple[Call, ...] = ()


class Utterance(Struct, frozen=True, kw_only=True):
    """One part of what is said aloud. Adapters take nothing else; only the soul engine makes one."""

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
    """Whose perception this answers: where hearers are told apart, that person alone hears it."""
    verb: str = "said"
    apology: ApologyKind | None = None


class ModelVersion(Struct, frozen=True, kw_only=True):
    """A new version of one user model, to be written by the turn's transaction."""

    person: str
    audience: str
    version: int
    markdown: str
    note: str
    author: Literal["turn", "owner", "revert", "person"] = "turn"
    suspect: bool = False
    name: str = ""
    """The person's display name now, for the archive's file name."""


class StateChange(Struct, frozen=True, kw_only=True):
    """A new value of one soul-state key under one audience label. An empty value means the key's default."""

    key: str
    value: str
    audience: str


class Schedule(Struct, frozen=True, kw_only=True):
    """A perception that the soul will have later, of itself."""

    id: int
    conversation: str
    at: datetime
    """When, UTC."""
    text: str
    """What it will notice then."""
    process: str = ""
    """The process that it borrows; empty = the one that is at home there."""
    params: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    """The maker's own name for it: a second one of the same name changes nothing while the first waits."""
    audience: str = ""
    person: str = ""
    """Who hears what is said then, where hearers are told apart."""
    asked_by: str = ""
    """Who asked for it; empty = the soul's own plan, which lapses when it comes too late."""
    in_answer: bool = False
    """The soul planned it in a turn that answered somebody: at its time it may speak, as what was asked for may."""
    instead_of: int = 0
    """The plan that this one puts off; 0 = none."""


PROMISE_DUE = "promise_due"
"""In the `params` of a plan, as `event`: what the soul promised is due then."""


class Planned(Struct, frozen=True, kw_only=True):
    """What a turn changes of the soul's plans, and of what it keeps beside them."""

    schedules: tuple[Schedule, ...] = ()
    cancels: tuple[int, ...] = ()
    closes: bool = False
    """Nothing that is planned or waits here is to happen, until someone addresses the soul here again."""
    participation: str | None = None
    """How the conversation is heard from now on; empty = as its place says; None = as before."""
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Subprocess → what it keeps here from now on."""


class Intent(Struct, frozen=True, kw_only=True):
    """Everything one turn changes, applied in one transaction or not at all."""

    turn: str
    conversation: str
    audience: str
    person: str
    at: datetime
    nonce: str
    answers: tuple[str, ...]
    """The inbox keys that this turn answers or consumes."""
    version: int | None
    """The conversation's version that was recalled; the commit is refused if it moved. None = nothing was recalled:
    the turn is added whatever the version is, and the conversation's process stays as it is."""
    process: str
    """The mental process that ran."""
    next_process: ProcessState
    rung: Rung
    verb: str = "said"
    flags: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    """The steps that were asked."""
    attention: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What changed and what was refused, in words for `claudius why`."""
    entries: tuple[Entry, ...] = ()
    thoughts: tuple[Thought, ...] = ()
    shown: tuple[Shown, ...] = ()
    model: ModelVersion | None = None
    state: tuple[StateChange, ...] = ()
    summary: Summary | None = None
    """A new summary; every turn up to and including `summary.upto` leaves the history, expired ones are deleted."""
    history_from: int = 0
    """The number of the first turn that stays in the rendered history."""
    utterances: tuple[Utterance, ...] = ()
    calls: tuple[Call, ...] = ()
    prompt_sha256: str = ""
    snapshot: bytes = b""
    """What `claudius replay` rebuilds the prompt from."""
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    """Content by sha256 that the snapshot refers to."""
    name: str = ""
    """The speaker's display name, kept current."""
    held: tuple[str, ...] = ()
    """The inbox keys that the turn heard and leaves to the next one, because it was interrupted."""
    planned: Planned | None = None
    """None = nothing of that kind."""
    noted: Noted | None = None
    """What the turn adds to the ledger."""
    psyche: PsycheChange | None = None
    """What it does to the numbers below language; folded on the state as it is when it is written."""
    whispers: tuple[int, ...] = ()
    """The whispers that stood in its prompt: they are used up by the commit."""
