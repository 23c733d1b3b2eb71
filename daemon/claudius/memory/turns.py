"""The topic `store.turns`: what a turn recalls and commits, and what is known of turns afterwards.

The record of a turn is one compressed document that `why`, `replay` and an erasure read. It holds no text that another
row holds: portraits are referenced by version, recalled lines by id, earlier turns by number, the soul and a summary by
hash. They are resolved when a prompt is rebuilt (`KeptTexts` in `memory/records.py`); a missing row leaves a blank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec
from msgspec import Raw, Struct, field

from claudius.decoding import decoder
from claudius.failure import KeptFailure
from claudius.intent import Call, Intent, Thought
from claudius.memory.erasure import ERASED
from claudius.memory.inbox import Pending
from claudius.memory.packing import unpacked
from claudius.perception import Perception
from claudius.recollection import Entry, Recollection, Summary, UserModel

NO_SNAPSHOT = Raw(b"null")
"""No model was asked."""
ERASED_SNAPSHOT = Raw(b'"erased"')
"""It was erased."""


class RecallLimits(Struct, frozen=True, kw_only=True):
    """The settings that shape a recollection."""

    ttl_hours: float
    beliefs: bool = False
    """Whether the cortex is running, so that its beliefs are read too."""
    moments: int = 50_000
    """Upper limit on moments kept of one audience."""
    max_past: int = 400
    """Upper limit on past turns read; compaction keeps far fewer."""
    aged_at: datetime | None = None
    """The instant that ages are measured from, where clocks are in doubt; None is the turn's own."""
    daimons: Mapping[str, str] = field(default_factory=dict)
    """Daimons that are on, with their modes; if empty, nothing of theirs is read."""
    psyche: bool = False
    """Whether the psyche is read."""
    own_only: bool = False
    """Read only what was learned from the speaker alone, or from no one: no place that anybody else sees."""
    in_order: bool = False
    """Refuse, as stale, what is no longer the next to be answered in its conversation."""


class Quiet(Struct, frozen=True, kw_only=True):
    """A conversation in which nobody has spoken for a while."""

    conversation: str
    audience: str
    last_at: datetime
    number: int
    """The last turn that answered somebody."""
    person: str
    """The person it answered."""


class FirstWords(Struct, frozen=True, kw_only=True):
    """When the soul has spoken unprompted, and the state of the conversation that it wants to speak in."""

    here: tuple[datetime, ...] = ()
    """When it spoke unprompted to this person or in this channel, oldest first."""
    everywhere: tuple[datetime, ...] = ()
    last_heard: datetime | None = None
    """When they last spoke, or somebody there."""
    waiting: int = 0
    """Number of people's messages that wait here, without the one that this is about."""
    under_way: int = 0
    """How many others were to be said first to the same audience before this one, and are not settled yet."""


class Answered(Struct, frozen=True, kw_only=True):
    """What one answer was based on."""

    turn: str
    at: datetime
    conversation: str
    shown: tuple[UserModel, ...]
    """Portraits that stood in the prompt and that the asking person may see, without their text."""
    snapshot: bytes
    heard: tuple[str, ...]
    """Positions of the last messages of the conversation, latest first."""


class SpendingCap(Struct, frozen=True, kw_only=True):
    """A budget: what may be spent since an instant, by the soul, for one person, or in one channel."""

    limit_usd: float
    since: datetime
    person: str = ""
    channel: str = ""


class TurnStore(Protocol):
    """One read snapshot before a turn, one transaction after it, and the record of every turn."""

    async def recall(self, pending: Pending, *, nonce: str, now: datetime, limits: RecallLimits) -> Recollection:
        """Read everything that the turn may know, in one read snapshot, filtered by the audience rule.

        Raises: StaleTurn if `limits.in_order` and something else is to be answered first.
        """
        ...

    async def commit(self, intent: Intent) -> None:
        """Apply a turn: WRITE 2. A second commit of a turn id changes nothing and succeeds.

        Raises: StaleTurn if the conversation moved since `intent.version`.
        """
        ...

    async def fold(
        self, conversation: str, turn: str, summary: Summary | None, calls: Sequence[Call], now: datetime
    ) -> None:
        """Replace a conversation's summary while it is idle; turns up to `summary.upto` leave the history.

        The costs of `calls` are recorded on `turn`, also where they led to no summary (None). Nothing else changes if
        there is already a later summary.
        """
        ...

    def keep_call(self, turn: str, call: Call) -> None:
        """Keep one finished model call of an unfinished turn. Not awaited."""
        ...

    def book(self, job: str, call: Call, at: datetime) -> None:
        """Record the cost of a call that belongs to no turn, under a name that is used once. Not awaited."""
        ...

    async def spent_since(self, since: datetime, *, person: str = "", channel: str = "") -> float:
        """Return the cost of all calls since then, in dollars; of one person under all ids, or of one channel."""
        ...

    async def reserve(self, conversation: str, person: str, caps: Sequence[SpendingCap]) -> bool:
        """Book the probable cost of the next call for a person. False if a cap is reached.

        `keep_call` puts it right, `call_failed` takes it back. What others have booked counts, so that the caps are
        passed by one call at most, however many processes ask.
        Where one process has the store nothing is booked, and the answer is True.
        """
        ...

    def call_failed(self, conversation: str) -> None:
        """Take back what `reserve` booked for a call in a conversation that came to nothing. Not awaited."""
        ...

    async def kept(self, conversation: str, subprocess: str) -> Mapping[str, Any]:
        """Return what a subprocess keeps about a conversation."""
        ...

    async def recent(self, network: str, since: datetime) -> Sequence[str]:
        """Return a network's conversations with a turn since then, latest first."""
        ...

    async def quiet(self, since: datetime, until: datetime, most: int) -> Sequence[Quiet]:
        """Return conversations whose last turn lies between two instants, latest first."""
        ...

    async def expired(self, before: datetime, most: int) -> Sequence[tuple[str, str]]:
        """Return conversations, with their audiences, all of whose entries are older than `before`."""
        ...

    async def calls_unasked(self, since: datetime) -> int | None:
        """Return how many model calls were made since `since`; None if somebody spoke since then."""
        ...

    async def first_words(self, perception: Perception, since: datetime) -> FirstWords:
        """Return when the soul spoke unprompted since `since`, and the state of the place where a perception happens.

        What was said to the same channel, or to the same person under any of their ids, counts wherever it was said.
        """
        ...

    async def last_answer(self, person: str, place: str, now: datetime) -> Answered | None:
        """Return what the last answer to a person in a conversation or channel was based on; None if there is none."""
        ...

    async def expire_records(self, before: datetime, now: datetime, most: int) -> int:
        """Delete the records of at most `most` turns older than `before`; return how many."""
        ...


class KeptTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a turn's record holds besides its columns."""

    entries: tuple[Entry, ...] = ()
    """The turn's own entries of working memory as committed; later prompts of its conversation show them."""
    snapshot: Raw = NO_SNAPSHOT
    """JSON from which `replay` rebuilds the prompt."""
    attention: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    thoughts: tuple[Thought, ...] = ()
    steps: tuple[str, ...] = ()
    """The cognitive steps that were asked."""
    prompt_sha256: str = ""
    """Hash of the first prompt; empty if none was built."""
    failure: KeptFailure | None = None
    """Why it says an apology or a fixed line."""
    responses: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Number of a model call → hash of its request, and its reply; calls missing here keep both in their own row."""


def unpack(content: bytes) -> KeptTurn:
    """Read a turn that `pack` wrote. Pure. Raises: ValueError, msgspec.ValidationError."""
    return decoder(KeptTurn).decode(unpacked(content))


def is_damaged(content: bytes) -> bool:
    """Return whether a packed document can no longer be read. Pure."""
    try:
        msgspec.json.decode(unpacked(content))
    except (ValueError, msgspec.MsgspecError):
        return True
    return False


def snapshot_of(kept: KeptTurn) -> bytes:
    """Return the JSON of a turn's snapshot. Pure.

    Empty if no model was asked, `ERASED` if it was erased.
    """
    snapshot = bytes(kept.snapshot)
    return {bytes(NO_SNAPSHOT): b"", bytes(ERASED_SNAPSHOT): ERASED}.get(snapshot, snapshot)
