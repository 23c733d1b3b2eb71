"""The `Store` protocol. `SqliteStore` implements it; `claudius.testing.check_store` is its contract.

`Store` is held by the one process that takes turns (async, one writer); `Records` (`records.py`) reads beside it for
commands. Every time is an aware UTC datetime. Every write is one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct, field

from claudius.intent import Call, Intent, Utterance
from claudius.memory.amendments import Amendments
from claudius.memory.documents import Document, KeptFile, Unarchived
from claudius.memory.jobs import Jobs
from claudius.memory.ledger_store import Ledger
from claudius.memory.pending import Pending, turn_of
from claudius.memory.personal import Personal
from claudius.memory.plans import Plans
from claudius.memory.retention import Retention
from claudius.memory.whispers import Whispers
from claudius.perception import Perception
from claudius.psyche_types import Found
from claudius.recollection import Recollection, Summary

__all__ = ["Delivery", "OutboxState", "Pending", "RecallLimits", "Store", "Waiting", "turn_of"]

OutboxState = Literal["pending", "taken", "unknown_after_send", "sent", "dead"]


class Delivery(Struct, frozen=True, kw_only=True):
    """One part that is not yet settled."""

    utterance: Utterance
    state: OutboxState
    attempts: int
    not_before: datetime | None
    decided_at: datetime
    """When it was committed."""
    stream_ref: str | None = None
    reason: str = ""
    """Why it waits."""


class Waiting(Struct, frozen=True, kw_only=True):
    """Unfinished work that a new boot finds."""

    conversations: tuple[str, ...]
    """Conversations with unfinished inbox or outbox rows, oldest first."""
    was_clean: bool
    """Whether the last process stopped in good order."""


class RecallLimits(Struct, frozen=True, kw_only=True):
    """The settings that shape a recollection."""

    ttl_hours: float
    beliefs: bool = False
    """Whether the cortex is at work, so that its beliefs are read too."""
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


class Store(Plans, Amendments, Ledger, Personal, Whispers, Jobs, Retention, Protocol):
    """What the process that takes turns keeps and recalls."""

    async def start(self, boot: str, now: datetime) -> Waiting:
        """Open a new boot and report what is unfinished.

        Leases of earlier boots are void: `taken` inbox rows become pending, attempts kept; `taken` outbox rows become
        `unknown_after_send`.
        """
        ...

    async def check(self) -> None:
        """Check everything that is kept, while the store is in use. Raises: StoreCorrupt."""
        ...

    async def flush(self) -> None:
        """Return once everything queued so far is durable. Raises: StoreError."""
        ...

    async def close(self, *, clean: bool) -> None:
        """Write what is queued; `clean` records an orderly stop; close."""
        ...

    # -- hearing: WRITE 1 --------------------------------------------------------------------------------------------

    async def accept(self, perceptions: Sequence[Perception], now: datetime) -> tuple[bool, ...]:
        """Make perceptions durable in one transaction; True for each new one, False if its key is known.

        Decides, permanently, what a message in a thread is owed (`settled_in`); one that is not to be kept is False.
        The mark of each channel rises with what is kept.

        Raises: StoreFull, StoreError. Nothing is acknowledged before this returns.
        """
        ...

    async def marks(self, network: str) -> Mapping[str, str]:
        """Return up to where each channel (`workspace:channel`) of a network was heard without a gap, latest first.

        `workspace:` alone means a whole workspace, if its adapter reports that.
        """
        ...

    async def swept(self, network: str, channel: str, position: str, now: datetime) -> None:
        """Record that a channel's history was read up to `position`."""
        ...

    async def recent(self, network: str, since: datetime) -> Sequence[str]:
        """Return a network's conversations with a turn since then, latest first."""
        ...

    async def oldest(self, conversation: str) -> Pending | None:
        """Return the unfinished perception with the lowest position, including its finished calls.

        Raises: RowInvalid if its row does not decode; it blocks the others until it is given up.
        """
        ...

    async def meet(self, pending: Pending) -> None:
        """Count this process among those that took a perception; durable before anything is done with it."""
        ...

    def take(self, seq: int, inputs: Mapping[str, str], now: datetime) -> None:
        """Count one attempt of this boot at a perception and keep the run's inputs. Not awaited."""
        ...

    async def postpone(self, seq: int, not_before: datetime, reason: str, attempts: int = 0) -> None:
        """Put a perception back to pending until `not_before`; it was tried at least `attempts` times."""
        ...

    async def withdraw(self, seq: int, reason: str) -> None:
        """Settle a perception that nobody needs an answer to any more (state settled, with the reason)."""
        ...

    async def give_up(self, seq: int, reason: str) -> None:
        """Mark a perception as dead, because neither a reply nor an apology can be made.

        Its row stays, with the reason.
        """
        ...

    def keep_call(self, turn: str, call: Call) -> None:
        """Keep one finished model call of an unfinished turn. Not awaited."""
        ...

    # -- thinking ----------------------------------------------------------------------------------------------------

    async def recall(self, pending: Pending, *, nonce: str, now: datetime, limits: RecallLimits) -> Recollection:
        """Read everything that the turn may know, in one read snapshot, filtered by the audience rule."""
        ...

    async def remember(self, perception: Perception, stems: Sequence[str]) -> Found:
        """Return the episodes that share a stem with what was heard and may be shown where it was heard."""
        ...

    async def commit(self, intent: Intent) -> None:
        """Apply a turn: WRITE 2. A second commit of a turn id changes nothing and succeeds.

        Raises: StaleTurn if the conversation moved since `intent.version`.
        """
        ...

    async def fold(self, conversation: str, turn: str, summary: Summary, calls: Sequence[Call], now: datetime) -> None:
        """Replace a conversation's summary while it is idle; turns up to `summary.upto` leave the history.

        The costs of `calls` are recorded on `turn`. Nothing changes if there is already a later summary.
        """
        ...

    async def open_stream(self, utterance: Utterance, now: datetime) -> None:
        """Insert a part's outbox row as `taken` with an empty body, before its first character is shown. Idempotent."""
        ...

    # -- speaking ----------------------------------------------------------------------------------------------------

    async def deliveries(self, conversation: str) -> tuple[Delivery, ...]:
        """Return the committed parts that are not yet sent or dead, in order of turn and part."""
        ...

    async def answered(self, key: str) -> tuple[Utterance, ...]:
        """Return what was said in answer to a perception, part by part; empty if nothing was said yet."""
        ...

    async def attempt(self, key: str) -> None:
        """Mark a part `taken`, durably, before its first byte leaves. No write is needed if it already is."""
        ...

    async def settle(self, key: str, receipt: str, now: datetime) -> None:
        """Mark a part sent: WRITE 3. The same transaction takes the turn's next part, or settles its inbox rows."""
        ...

    async def delay(self, key: str, not_before: datetime | None, reason: str, *, unknown: bool = False) -> None:
        """Put a part back to pending (definitely not delivered), or to unknown_after_send if `unknown`."""
        ...

    async def doubt(self, conversation: str) -> None:
        """Mark every `taken` part of a conversation as possibly visible, because sending it ended unexpectedly."""
        ...

    async def undeliverable(self, key: str, reason: str) -> None:
        """Mark a part, the turn's later parts and its inbox rows as dead, with the reason."""
        ...

    async def say_instead(self, key: str, line: str) -> bool:
        """Let a turn say a line instead of a reaction; False if it owes nobody a reply."""
        ...

    # -- spending ----------------------------------------------------------------------------------------------------

    async def spent_since(self, since: datetime) -> float:
        """Return the cost of all calls since then, in dollars."""
        ...

    # -- the owner's hand, and the archive ---------------------------------------------------------------------------

    async def know_members(self, audience: str, persons: Sequence[str] | None, now: datetime) -> None:
        """Record who can see a shared audience now; None if that is no longer known, so only it may see itself."""
        ...

    async def set_state(self, key: str, value: str, audience: str, now: datetime) -> None:
        """Set one soul-state value by hand."""
        ...

    async def set_model(
        self, person: str, audience: str, markdown: str, note: str, author: Literal["owner", "revert"], now: datetime
    ) -> int:
        """Write a new version of one user model by hand; return its number."""
        ...

    async def link(self, person: str, other: str) -> None:
        """Make two ids one person. Raises: StoreError if either is unknown or they are one already."""
        ...

    async def unlink(self, person: str, now: datetime, author: Literal["owner", "person"] = "owner") -> Sequence[str]:
        """Unlink all ids of a person; return them. Raises: StoreError if there is only one.

        Each gets back the portraits of its own places and what its own messages brought; `author` says who asked.
        """
        ...

    async def unarchived(self, limit: int) -> Sequence[Unarchived]:
        """Return changes of user models and of the soul's state that git does not hold yet, oldest first."""
        ...

    async def archived(
        self, commits: Mapping[int, str], files: Sequence[KeptFile], gone: Sequence[Document] = ()
    ) -> None:
        """Record which commit holds which change (one that has a commit keeps it), and the files' current paths."""
        ...

    async def archive_files(self, persons: Sequence[str] | None = None) -> Sequence[KeptFile]:
        """Return where git holds which document: all, or those of some persons ("" is the soul's state)."""
        ...

    async def archive_anew(self) -> None:
        """Forget everything that git holds, so that it is rebuilt from every version."""
        ...

    async def document(self, document: Document) -> str | None:
        """Return a document's newest text; None if there is none."""
        ...

    async def has_written(self, document: Document, text: str, *, ever: bool) -> bool:
        """Return whether a document's newest version, or one that git lacks, is this text; `ever`: any version."""
        ...
