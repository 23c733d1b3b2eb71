"""The part of the store's door for second thoughts: messages changed, taken down or stopped, answers judged."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from msgspec import Struct

from claudius.perception import Perception


class Amended(Struct, frozen=True, kw_only=True):
    """What a second thought changed."""

    conversation: str = ""
    """Where; empty = it changed nothing."""
    interrupts: str = ""
    """The turn that is not to go on, because what it answers is another thing now; empty = none."""

    @property
    def is_new(self) -> bool:
        """It changed something."""
        return bool(self.conversation)


class Amendments(Protocol):
    """What people do with a message after they sent it. What is about an unknown message changes nothing."""

    async def amend(self, perception: Perception, now: datetime) -> Amended:
        """Put a second thought in force, in one transaction, for good.

        EDIT (of `extra["of"]`): a message that waits is another one from now on, at its place; one that a turn
        answers is taken again, once, and waits for that turn's end the second time; of one that was answered, memory
        is put right, with a mark. DELETE: a message that waits is withdrawn; of one that was answered, memory holds
        no words any more. What was learned from it is marked. REACTION: to what was said, it is kept; it undoes
        itself where `extra["is_on"]` is false.

        Raises: StoreError.
        """
        ...

    async def stop(self, perception: Perception, now: datetime, *, by_owner: bool) -> Amended:
        """Have no answer given to what was said before `perception`: that message of `extra["of"]`, or the oldest.

        Only its own speaker may, or an owner. It is owed the apology `stopped` from now on, and no model.
        """
        ...
