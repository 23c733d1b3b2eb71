"""The topic `store.leases`: which conversations this process may think for, and which roles it has.

The classes here are those of a store that one process has to itself: it holds every lane and role, and nobody asks it
for anything. `PostgresLeases` shares them: whoever holds a conversation's lane thinks for it. A lane has a token that
grows with each taking; writes of a turn go through the store of its lane (`store_of`), which refuses them once the
token has moved.

Source: the scale design, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from claudius.provider import Rests

if TYPE_CHECKING:
    from claudius.soul.source import PushedSoul


def may(role: str, allowed: Sequence[str]) -> bool:
    """Return whether a process that is allowed these roles, as `worker.roles` names them, may have one. Pure."""
    return any(one in ("all", role) or role.startswith(f"{one}/") for one in allowed)


def listens(allowed: Sequence[str]) -> bool:
    """Return whether a process that is allowed these roles may listen to a network. Pure."""
    return any(one == "all" or one.startswith("listen") for one in allowed)


class LeaseTimes(Struct, frozen=True, kw_only=True):
    """How long a lane is held, and how often it is looked at, in seconds; and how many lanes are held at most."""

    lease_s: float = 60.0
    renew_s: float = 20.0
    look_s: float = 1.0
    most: int = 64
    configuration: str = ""
    """A hash of the settings at the start that all processes of one soul should share."""


class LeaseTally(Struct):
    """What this process counted since it began; `/metrics` shows it."""

    held: int = 0
    """The lanes that it holds now."""
    looks: int = 0
    lost: int = 0
    """Leases that it did not keep: another process has, or will have, the lane."""
    stale: int = 0
    """Writes that were refused because the lane's token had moved."""
    late: int = 0
    """Posts of its own that it took down, because another process had posted the same."""
    batches: int = 0
    """Transactions that wrote."""
    jobs: int = 0
    """What was written in them."""
    lock_wait_s: float = 0.0
    """How long transactions waited for others before they could write."""
    pause_s: float = 0.0
    """The longest time in which it neither looked for lanes nor waited for the server, beyond its interval."""


class AskedToForget(Struct, frozen=True, kw_only=True):
    """A person who is being erased, of whom every process is to keep nothing."""

    number: int
    ids: tuple[str, ...]
    aliases: Mapping[str, str]
    """What stands for each id in the audit log."""
    conversations: tuple[str, ...]
    audiences: tuple[str, ...]
    is_done: bool
    """Whether this process has said that it let go, or is the one that erases."""


class RoleStore:
    """What one process at a time does for the soul: roles, each under a lease of its own, like a lane's."""

    async def take(self, wanted: Sequence[str]) -> Sequence[str]:
        """Take those of these roles that nobody has, and return them.

        Of a role's numbered places, as `listen/slack/0` and `listen/slack/1`, one is taken at most.
        """
        return ()

    async def renew(self, roles: Sequence[str]) -> Sequence[str]:
        """Prolong the leases of these roles; return those that are lost."""
        return ()

    async def give_back(self, roles: Sequence[str]) -> None:
        """Give these roles up, for whoever looks next; one that is lost already stays its new holder's."""

    async def others(self, role: str) -> int:
        """Return how many other processes have one of a role's numbered places now."""
        return 0

    def is_held(self, role: str) -> bool:
        """Return whether a role is held, by this process's own clock, with a tenth of the lease to spare."""
        return True


class ForgettingStore:
    """Whom one process erases, and all let go of. What it leaves unfinished, another process finishes."""

    def letting_go(self, ids: Sequence[str], aliases: Mapping[str, str]) -> AbstractAsyncContextManager[Sequence[str]]:
        """Have every other process let go of a person for the block, and wait until each one at work has said so.

        One that dies meanwhile is waited for until its leases are past; another erasure that began earlier is, too.
        Yields the homes in which none is at work, whose logs nobody can rewrite now. The request ends with the block;
        if that fails, the request stays for whoever finishes it. Raises: StoreError, TryAgain if it was withdrawn.
        """
        return nullcontext(())

    def left(self) -> AbstractAsyncContextManager[AskedToForget | None]:
        """Take over what a process left that failed or is at work no more, and wait as `letting_go` does.

        Yields whose rows are to be erased, or None if there is nothing. The request ends with the block.
        """
        return nullcontext(None)

    def is_alone(self) -> bool:
        """Return whether no other process of this soul is at work. Raises: StoreError."""
        return True

    async def asked(self) -> Sequence[AskedToForget]:
        """Return who is being erased now. What this process itself began and failed in is free to be taken over."""
        return ()

    async def have_let_go(self, number: int) -> None:
        """Say that this process keeps nothing more of that person."""


class SoulStore:
    """The soul that was pushed into the store."""

    def __init__(self) -> None:
        self.in_force = ""
        """The hash of the soul that this process thinks with; the others see it."""
        self.pushed: Callable[[], bool] = lambda: True
        """Called when another soul was pushed: before the next turn, at the latest with the next renewal."""

    async def push(self, files: Mapping[str, str], sha256: str) -> int:
        """Put these files, by name, in force for every process; return the push's number."""
        return 0

    def newest(self) -> PushedSoul | None:
        """Return what was pushed last; None if nothing ever was. Raises: StoreError."""
        return None


class LeaseStore:
    """The lanes that this process holds."""

    is_shared = False
    """Whether other processes may take turns of this store, too."""

    def __init__(self, store: Any) -> None:
        self._all = store
        self.times = LeaseTimes()
        """How often `take` and `renew` are to be called."""
        self.configuration: Callable[[], str] = lambda: ""
        """Returns a hash of the settings in force that all processes of one soul should share; the others see it."""
        self.roles, self.forgetting, self.souls = RoleStore(), ForgettingStore(), SoulStore()
        self._tally = LeaseTally()
        self.is_draining = False
        """Whether somebody wants this process to end its turns and leave, as of the last renewal."""

    @property
    def tally(self) -> LeaseTally:
        """What was counted so far."""
        return self._tally

    def wall(self, own: Callable[[], datetime]) -> Callable[[], datetime]:
        """Return a clock that shows the server's time, so that all processes of a soul agree on it.

        Until it is known, and while it differs by an hour or more from `own`, which somebody has set on purpose then,
        it shows what `own` does.
        """
        return own

    @property
    def is_doubtful(self) -> bool:
        """Whether another server answers since less than an hour: it may not know of the last things that were said.

        What answers a message from before then is looked for before it is sent.
        """
        return False

    def probe(self) -> None:
        """Write some pages in the calling thread, and take them back. Raises: StoreError if there is no room."""

    def round_trip_s(self) -> float:
        """Ask the server for nothing, and return how long the answer took, in seconds. Raises: StoreError."""
        return 0.0

    async def take(self, networks: Sequence[str], most: int, wanted: Sequence[str] = ()) -> Sequence[str]:
        """Take up to `most` lanes with something to do that nobody holds, the longest waiting first.

        `networks`: only of these; empty: of all. `wanted` lanes count as having something to do, whatever their
        network, because somebody can hear them again. Returns the lanes taken, and those held in which something
        became ready since the last look.
        What an earlier holder had begun there is void: what was taken is pending, what may have been sent is in doubt.
        """
        return ()

    async def hold_back(self, networks: Sequence[str], read: Sequence[str] = ()) -> None:
        """Have no process take a lane of these networks while their histories are read; those of `read` are read.

        For 40 s at most, unless it is said again. Only a process that listens there says so.
        """

    def is_paused(self) -> bool:
        """Return whether the soul is paused for every process. Raises: StoreError."""
        return False

    async def pause(self) -> bool:
        """Have no process take a lane, or find what waits in one, but in those of commands and of the terminal.

        Returns False where the setting `runtime.paused` of the one process says it.
        """
        return False

    async def resume(self) -> bool:
        """Have every process answer again, and find what waited. Returns False as `pause` does."""
        return False

    async def renew(self, but: Sequence[str] = ()) -> Sequence[str]:
        """Prolong every lease `but` those of these conversations; return the conversations whose lane is lost."""
        return ()

    async def drain(self, worker: str) -> bool:
        """Have a process end its turns and leave when it renews next; False if none of this name is at work."""
        return False

    def has_taken(self, conversation: str) -> bool:
        """Return whether it took a lane and did not give it back, as far as it knows; its lease may be nearly past."""
        return True

    def is_held(self, conversation: str) -> bool:
        """Return whether its lane is held, by this process's own clock, with a tenth of the lease to spare."""
        return True

    def store_of(self, conversation: str) -> Any:
        """Return the store as the lane's holder writes to it: a write raises StaleTurn once the token has moved."""
        return self._all

    def changed(self, name: str) -> None:
        """Have every process ask again for what it keeps under this name. Written with the next awaited write."""

    def news(self) -> Sequence[str]:
        """Return the names that changed since the last call, whichever process said so."""
        return ()

    def share(self, rests: Rests) -> None:
        """Have a provider that is refused here rest for every process, from the next turn of each on."""

    async def told_elsewhere(self, here: Mapping[str, int]) -> Mapping[str, int]:
        """Say which problems this process would tell the owners of now, each with how bad it is.

        Returns the same of all other processes at work, in the worst grade. Of two that say so at once, the second one
        sees the first. Raises: StoreError.
        """
        return {}

    def is_of(self, store: object, conversation: str) -> bool:
        """Return whether a store that `store_of` returned is still that of the lane's holder."""
        return True

    async def tell(self, about: Mapping[str, str]) -> None:
        """Have the other processes look now, each conversation with the turn of it that is void; empty: none is.

        They may miss it, and find the same at their next look. Raises: StoreError.
        """

    async def listen(self, told: Callable[[Mapping[str, str]], None]) -> None:
        """Call `told` with what the others tell, as long as there is a way to hear it, until cancelled.

        Empty: something was told, perhaps.
        """

    async def heard(self, conversation: str) -> int:
        """Return a mark of everything that became ready in a lane so far; to be read before looking what waits."""
        return 0

    async def release(self, conversation: str, heard: int) -> bool:
        """Give a lane up, unless something became ready since `heard`. Returns whether it was given up.

        One that is given up at -1 is taken, and looked at again, when its lease is past.
        """
        return True
