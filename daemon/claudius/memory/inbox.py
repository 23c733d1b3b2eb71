"""The topic `store.inbox`: what was heard and is not answered yet, and what becomes of it.

Every accepted perception waits here until a turn commits it; edits, deletions, reactions and stop requests change it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from claudius.intent import Call
from claudius.perception import Perception

InboxState = Literal["pending", "taken", "thought", "committed", "settled", "dead"]


EVERY_NETWORK = "*"
"""In place of a network: the mark of its channel `` is an instant, before which no history is read."""


def turn_of(key: str) -> str:
    """Return the id of the turn that answers the perception with this dedupe key; re-runs keep it. Pure."""
    return base64.b32encode(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest())[:16].decode().lower()


class Pending(Struct, frozen=True, kw_only=True):
    """An accepted perception that no turn has committed yet."""

    seq: int
    perception: Perception
    turn: str
    """The id of its turn, the same in every run: base32(sha256(key))[:16], lower case."""
    state: InboxState
    attempts: int
    boots: int
    """How many different processes have taken it, this one included."""
    not_before: datetime | None
    heard_at: datetime
    inputs: Mapping[str, str] = field(default_factory=dict)
    """`now` and `nonce` of an earlier, unfinished run; a re-run uses them again."""
    calls: tuple[Call, ...] = ()
    """Finished model calls of an earlier, unfinished run; a re-run does not pay for them again."""
    held: int = 0
    """How often its turn yielded to a newer perception; it is then answered with that one."""
    is_taken_here: bool = False
    """Whether this process has taken it."""
    is_stopped: bool = False
    """Its speaker wants no answer any more: an apology is owed, and no model is asked."""
    further: tuple[Pending, ...] = ()
    """Further perceptions that the same turn answers, oldest first."""

    @property
    def ended(self) -> int:
        """How many processes took it and ended before its turn did."""
        return self.boots - self.is_taken_here

    @property
    def perceptions(self) -> tuple[Perception, ...]:
        """Everything that the turn answers, oldest first."""
        return (self.perception, *[one.perception for one in self.further])


class Amended(Struct, frozen=True, kw_only=True):
    """What an amendment changed."""

    conversation: str = ""
    """The conversation that it changed; empty if it changed nothing."""
    interrupts: str = ""
    """The turn to interrupt, because the message that it answers has changed; empty if none."""

    @property
    def is_new(self) -> bool:
        """Whether it changed something."""
        return bool(self.conversation)


class InboxStore(Protocol):
    """What was heard: made durable here before it is acknowledged, and taken from here, oldest first.

    An amendment of an unknown message changes nothing.
    """

    async def accept(self, perceptions: Sequence[Perception], now: datetime) -> tuple[bool, ...]:
        """Make perceptions durable in one transaction; True for each new one, False if its key is known.

        Decides, permanently, what a message in a thread is owed (`settled_in`); one that is not to be kept is False.
        The mark of each channel rises with what is kept.

        Raises: StoreFull, StoreError. Nothing is acknowledged before this returns.
        """
        ...

    async def marks(self, network: str) -> Mapping[str, str]:
        """Return up to where each channel (`workspace:channel`) of a network was heard without a gap, latest first.

        `workspace:` alone means a whole workspace, if its adapter reports that. Of `EVERY_NETWORK`, the mark of the
        channel `` is an RFC 3339 instant: older messages were answered before a copy was restored, or nobody knows.
        """
        ...

    async def swept(self, network: str, channel: str, position: str, now: datetime) -> None:
        """Record that a channel's history was read up to `position`."""
        ...

    async def oldest(self, conversation: str) -> Pending | None:
        """Return the unfinished perception with the lowest position, including its finished calls.

        Raises: RowInvalid if its row does not decode; it blocks the others until it is given up.
        """
        ...

    async def unfinished(self, conversation: str, most: int = 32) -> Sequence[Pending]:
        """Return what no turn has committed yet, oldest first, without its calls."""
        ...

    async def join(self, pendings: Sequence[Pending]) -> Pending:
        """Merge perceptions of one conversation into one turn, that of the last, and return it."""
        ...

    async def hold(self, pending: Pending) -> None:
        """Leave what a turn was to answer to the next turn, because it yielded to a newer perception."""
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

    def failing(self, turn: str, reason: str) -> None:
        """Keep why a turn fails that is not finished, for `status` and `why`. Not awaited."""
        ...

    async def withdraw(self, seq: int, reason: str) -> None:
        """Settle a perception that nobody needs an answer to any more (state settled, with the reason)."""
        ...

    async def give_up(self, seq: int, reason: str) -> None:
        """Mark a perception as dead, because neither a reply nor an apology can be made.

        Its row stays, with the reason.
        """
        ...

    async def impose(self, perception: Perception, name: str, kept: Mapping[str, Any], now: datetime) -> bool:
        """Queue a perception of the soul's own after everything that waits in its conversation.

        Returns False if it was heard before. `kept` is stored in the same transaction as what `name` keeps of that
        conversation.
        """
        ...

    async def amend(self, perception: Perception, now: datetime) -> Amended:
        """Apply an edit, a deletion or a reaction durably, in one transaction.

        EDIT (of `extra.of`): a pending message gets the new text and keeps its position. A message whose turn is
        running is taken again, once; a second edit waits for the end of that turn. If the message was already answered,
        working memory is corrected and marked. DELETE: a pending message is withdrawn; if it was already answered, its
        words are removed from memory. What was learned from the old words is marked. REACTION: a reaction to something
        the soul said is kept; it is removed again if `extra.is_on` is false.

        Raises: StoreError.
        """
        ...

    async def stop(self, perception: Perception, now: datetime, *, by_owner: bool) -> Amended:
        """Suppress the answer to a message sent before `perception`: the one in `extra.of`, or the oldest.

        Only its own speaker or an owner may do so. The message is then owed the apology `stopped`, and no model is
        asked.
        """
        ...
