"""The topic `store.outbox`: the parts of committed replies until each is sent or dead."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

from claudius.intent import Utterance

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


class OutboxStore(Protocol):
    """What is to be said: written by the commit of a turn, delivered part by part."""

    async def open_stream(self, utterance: Utterance, now: datetime) -> None:
        """Insert a part's outbox row as `taken` with an empty body, before its first character is shown. Idempotent."""
        ...

    async def deliveries(self, conversation: str) -> tuple[Delivery, ...]:
        """Return the committed parts that are not yet sent or dead, in order of turn and part."""
        ...

    async def answered(self, key: str) -> tuple[Utterance, ...]:
        """Return what was said in answer to a perception, part by part; empty if nothing was said yet."""
        ...

    async def attempt(self, key: str) -> bool:
        """Mark a part `taken`, durably, before its first byte leaves. No write is needed if it already is.

        False if it was erased, and must not be sent.
        """
        ...

    async def settle(self, key: str, receipt: str, now: datetime) -> str:
        """Mark a part sent: WRITE 3. The same transaction takes the turn's next part, or settles its inbox rows.

        Returns the receipt that the part has: another one if another process had sent it before, none if it was erased.
        """
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

    async def posts_for(self, key: str) -> Sequence[tuple[str, str]]:
        """Return the visible parts of the answer to this message alone, last part first: conversation and receipt."""
        ...
