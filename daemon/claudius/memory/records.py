"""What commands read beside the process that takes turns: synchronous, read-only, rows as plain dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from claudius.memory.knowledge import Knowledge
from claudius.psyche_types import Psyche
from claudius.recollection import PastTurn

if TYPE_CHECKING:
    from claudius.soul.source import PushedSoul


class Expired(LookupError):
    """A turn's record has expired and was deleted."""

    def __init__(self, at: str) -> None:
        """`at`: when it was deleted, as the database writes it."""
        super().__init__(at)
        self.at = at


class KeptTexts(Protocol):
    """Texts that a kept turn references, read when its prompt is rebuilt."""

    def blob(self, sha256: str) -> bytes | None:
        """Return stored content by its hash; None if it was erased."""
        ...

    def past_turn(self, conversation: str, number: int) -> PastTurn | None:
        """Return a turn as committed, its portraits without text; None if it was erased.

        Raises: Expired if its record has expired.
        """
        ...

    def portrait(self, person: str, audience: str, version: int) -> str | None:
        """Return the text of one version of a portrait; None if it was erased."""
        ...

    def recalled(self, row: str) -> str | None:
        """Return the text of a recalled line by its row (`moment:7:0:320`, `fact:3`); None if it is no longer kept."""
        ...


class Records(KeptTexts, Protocol):
    """What a command reads beside a running daemon. Rows are plain dicts with the keys of the outward interfaces."""

    is_open: bool
    """Whether it can be read: nobody has closed it."""

    def counts(self, now: datetime) -> Mapping[str, Any]:
        """Return `{"inbox": {"pending", "dead"}, "outbox": {"pending", "failed"}, "turns": {"total", "today"}}`."""
        ...

    def waits_since(self) -> Mapping[str, datetime]:
        """Return since when the oldest unfinished row waits, by queue: `inbox`, `outbox`; an empty queue has no key."""
        ...

    def conversations(self) -> Sequence[Mapping[str, Any]]:
        """Return all conversations, latest first."""
        ...

    def conversation(self, conversation: str) -> Mapping[str, Any] | None:
        """Return one conversation with its entries, oldest first."""
        ...

    def turns(self, conversation: str, before: str, most: int) -> Mapping[str, Any] | None:
        """Return the newest turns of a conversation before one of its turns (empty: the newest of all).

        In the shape of `conversation`, with `"before"`, the turn that the next page comes before. None if the
        conversation or the turn is not known. A turn whose words have expired has those that its record keeps.
        """
        ...

    def turns_between(self, begin: datetime, end: datetime) -> Sequence[Mapping[str, Any]]:
        """Return the turns between two instants: `turn conversation process preview`."""
        ...

    def newest_turns(self, most: int) -> Sequence[str]:
        """Return the newest turns whose record is kept, newest first."""
        ...

    def evidence(self, ids: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """Return lines of the ledger by their ids, oldest first; one that was erased is missing."""
        ...

    def whispers(self, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the newest whispers, newest first, each with what became of it."""
        ...

    def positions(self) -> Sequence[Mapping[str, Any]]:
        """Return each conversation's position: `{"conversation", "process", "previous_process", …}`, by process."""
        ...

    def plans(self) -> Sequence[Mapping[str, Any]]:
        """Return the soul's pending plans, soonest first, those that are due and wait, and those that lapsed."""
        ...

    def jobs(self) -> Sequence[Mapping[str, Any]]:
        """Return the scheduler's jobs, soonest first: `{"job", "next_due", "started_at", "ended_at", …}`."""
        ...

    def daimons(self) -> Sequence[Mapping[str, Any]]:
        """Return the status of each daimon that was ever asked: `{"daimon", "mode", "last_whisper_at", …}`."""
        ...

    def turn(self, turn: str) -> Mapping[str, Any] | None:
        """Return one turn's record: the row, its perceptions, entries, calls, thoughts, deliveries."""
        ...

    def last_turn(self, audience: str = "") -> str | None:
        """Return the newest turn of an audience, or of all; one that is still tried counts too."""
        ...

    def last_failure(self) -> Mapping[str, Any] | None:
        """Return why the turn that is being tried, or else the newest one, fails; None if it does not."""
        ...

    def state(self, *, every_audience: bool = False) -> Mapping[str, Any]:
        """Return the soul state: the newest value per key, or every audience's."""
        ...

    def psyche(self) -> tuple[Psyche, tuple[float, ...]]:
        """Return the current psyche, and the traits in force (none before its first turn)."""
        ...

    def psyche_moves(self, since: datetime) -> Sequence[Mapping[str, Any]]:
        """Return how the psyche moved since then, oldest first: `turn at person inputs after edges traits`."""
        ...

    def psyche_checkpoint(self) -> Psyche:
        """Return the numbers and edges before the oldest trace that is kept, where folding the traces begins."""
        ...

    def people(self) -> Sequence[Mapping[str, Any]]:
        """Return every person with a model or a message."""
        ...

    def person(self, person: str, *, own_only: bool = False) -> Knowledge | None:
        """Return who somebody is to the soul, by id, linked id, or unambiguous name; the owner is shown everything.

        `own_only`: no more than what was learned from that person alone.
        """
        ...

    def versions(self, person: str) -> Sequence[Mapping[str, Any]]:
        """Return every version of a person's models, oldest first, markdown included."""
        ...

    def personal(self, ids: Sequence[str]) -> Mapping[str, Any]:
        """Return `{"messages": [...], "state": [...]}` of one person, by all their ids."""
        ...

    def kinds_heard(self, network: str) -> frozenset[str]:
        """Return the kinds of event (message, mention, join …) that a network delivered recently."""
        ...

    def usage(self, by: Literal["day", "model", "person", "conversation", "job"]) -> Mapping[str, Any]:
        """Return `{"rows": [...], "total": {...}}`; `self` is the soul itself, `erased` everybody who was erased."""
        ...

    def spent_since(self, since: datetime) -> float:
        """Return the cost of all calls since then, in dollars."""
        ...

    def audit(self, since: str, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the newest acts since a time (RFC 3339 UTC; empty = ever), oldest first: `at who act target from`."""
        ...

    def integrity(self) -> Sequence[str]:
        """Return the problems that `integrity_check` and `foreign_key_check` find; empty if the file is sound."""
        ...

    def dead(self) -> Sequence[Mapping[str, Any]]:
        """Return dead rows: `{"what": "heard" or "said", "key", "turn", "reason", "at"}`, latest first."""
        ...

    def peers(self) -> Sequence[Mapping[str, Any]]:
        """Return every peer with the newest assessment, latest first."""
        ...

    def peer(self, peer: str) -> Mapping[str, Any] | None:
        """Return one peer (by id or unambiguous name) with every assessment and the newest part of the timeline."""
        ...

    def beliefs(self, now: datetime) -> Mapping[str, Any]:
        """Return `{"last_reflection_at", "beliefs": [...]}`."""
        ...

    def reflections(self, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the newest cycles, newest first."""
        ...

    def size(self) -> Mapping[str, Any]:
        """Return `{"bytes", "turns", "days", "gives_back"}`; `bytes` excludes free pages."""
        ...

    def invalid(self) -> Sequence[tuple[str, str]]:
        """Return rows with a value that does not decode, as table and primary key; at most a few."""
        ...

    def archive_lag(self) -> int:
        """Return how many versions git does not hold yet."""
        ...

    def served(self) -> Mapping[str, Any] | None:
        """Return the database server, its lanes, and who has which role; None if the store is a file."""
        ...

    def pushed_soul(self) -> PushedSoul | None:
        """Return the soul that was pushed into the store; None if none ever was, or the store is a file."""
        ...

    def workers(self) -> Sequence[Mapping[str, Any]]:
        """Return the processes that share the store, oldest first: host, age, what each may do and holds, lanes."""
        ...

    def marks(self, seen: int) -> tuple[int, str]:
        """Return the file's version, and what has changed with it: an opaque mark, empty if the version is `seen`."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...
