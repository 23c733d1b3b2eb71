"""The topic `store.leases`: which conversations this process may think for, where several processes share a store.

Whoever holds a conversation's lane thinks for it. A lane has a token that grows with each taking; writes of a turn go
through the store of its lane (`store_of`), which refuses them once the token has moved.

Source: the scale design, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from claudius.memory.store import Store


class LeaseTimes(Struct, frozen=True, kw_only=True):
    """How long a lane is held, and how often it is looked at, in seconds; and how many lanes are held at most."""

    lease_s: float = 60.0
    renew_s: float = 20.0
    look_s: float = 1.0
    most: int = 64


class LeaseStore(Protocol):
    """The lanes that this process holds. Only a store that several processes share has one."""

    times: LeaseTimes
    """How often `take` and `renew` are to be called."""

    async def take(self, networks: Sequence[str], most: int, wanted: Sequence[str] = ()) -> Sequence[str]:
        """Take up to `most` lanes with something to do that nobody holds, the longest waiting first.

        `networks`: only of these; empty: of all. `wanted` lanes count as having something to do, because somebody can
        hear them again. Returns the lanes taken, and those held in which something became ready since the last look.
        What an earlier holder had begun there is void: what was taken is pending, what may have been sent is in doubt.
        """
        ...

    async def hold_back(self, networks: Sequence[str]) -> None:
        """Have no process take a lane of these networks while their histories are read, and of no others.

        For 40 s at most, unless it is said again. Only the process that listens says so.
        """
        ...

    async def renew(self) -> Sequence[str]:
        """Prolong every lease; return the conversations whose lane is lost."""
        ...

    def is_held(self, conversation: str) -> bool:
        """Return whether its lane is held, by this process's own clock, with a tenth of the lease to spare."""
        ...

    def store_of(self, conversation: str) -> Store:
        """Return the store as the lane's holder writes to it: a write raises StaleTurn once the token has moved."""
        ...

    def changed(self, name: str) -> None:
        """Have every process ask again for what it keeps under this name. Written with the next awaited write."""
        ...

    def changes(self, name: str) -> int:
        """Return how often it changed: what a process keeps is in force as long as this is as it was."""
        ...

    def is_of(self, store: Store, conversation: str) -> bool:
        """Return whether a store that `store_of` returned is still that of the lane's holder."""
        ...

    async def heard(self, conversation: str) -> int:
        """Return a mark of everything that became ready in a lane so far; to be read before looking what waits."""
        ...

    async def release(self, conversation: str, heard: int) -> bool:
        """Give a lane up, unless something became ready since `heard`. Returns whether it was given up."""
        ...
