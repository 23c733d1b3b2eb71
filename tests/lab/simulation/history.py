"""The archive inside a simulated life: the real worker, with a history in memory in the place of git, and hands.

`History` outlives the processes, as a repository does. A file that is written or removed is a step of the process, so a
kill may come between two files.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Protocol, TypeVar
from unittest.mock import patch

from msgspec import Struct, field

from claudius.memory.archive import Archive, files, worker
from claudius.memory.archive.changes import ArchivedRevision, HistoryCommit, RevisionCommit
from claudius.memory.archive.repository import GitBusy, Repository
from claudius.memory.store import Store
from lab.simulation.town import instant

T = TypeVar("T")

BATCH = 3
"""Few at once, so that more waits than one round takes."""
LOOK_EVERY_S = 300.0
"""Every look costs a millisecond of a real second, and a life has hours."""


class History(Struct):
    """What git would hold: every commit that was made, and the files of the newest one that is shown."""

    chance: Random
    made: dict[str, tuple[str | None, RevisionCommit]] = field(default_factory=dict)
    head: str | None = None
    number: int = 0
    """The store's count of what was erased, of which it holds nothing."""
    files: dict[str, str] = field(default_factory=dict)

    def chain(self, newest: str | None, until: str | None = None) -> Iterator[tuple[str, RevisionCommit]]:
        """Return the commits from `newest` back to `until`, which is left out."""
        while newest is not None and newest != until:
            parent, change = self.made[newest]
            yield newest, change
            newest = parent


class HistoryRepository(Repository):
    """Stands in for git: keeps commits in a `History`, and is busy now and then."""

    def __init__(self, root: Path, history: History) -> None:
        """Keep in `history` what is committed below `root`."""
        super().__init__(root)
        self._history = history

    @staticmethod
    def is_possible() -> bool:
        """Need no program."""
        return True

    def prepare(self, began_s: float) -> None:
        """Be sound always."""

    def head(self) -> str | None:
        """Return the commit that is shown."""
        return self._history.head

    @property
    def history(self) -> int:
        """Return of which count it is."""
        return self._history.number

    def begin_history(self, number: int) -> None:
        """Record of which count it is."""
        self._history.number = number

    def is_detached(self) -> bool:
        """Have one branch."""
        return False

    def known(self) -> dict[str, ArchivedRevision]:
        """Return the revisions that the shown history holds."""
        chain = self._history.chain(self._history.head)
        return {
            change.token: ArchivedRevision(commit, tuple(path for path, _ in change.written))
            for commit, change in chain
        }

    def prepare_commits(self, changes: Sequence[RevisionCommit], parent: str | None) -> dict[int, str]:
        """Make commits that nothing shows yet."""
        made = {}
        for change in changes:
            commit = f"commit {len(self._history.made)}"
            self._history.made[commit] = (parent, change)
            made[change.revision] = parent = commit
        return made

    def publish(self, newest: str, parent: str | None) -> None:
        """Show them. Raises: GitBusy, now and then."""
        history = self._history
        if parent != history.head or not history.chance.randrange(20):
            raise GitBusy("somebody else is at work")
        for _, change in reversed(list(history.chain(newest, parent))):
            for path in change.removed:
                history.files.pop(path, None)
            history.files |= {path: content.decode() for path, content in change.written}
        history.head = newest

    def line(self, commit: str | None, also: Mapping[str, str] = MappingProxyType({})) -> list[HistoryCommit]:  # noqa: ARG002 - the library's
        """Return a commit and all before it, newest first."""
        return [HistoryCommit(name, change.token) for name, change in self._history.chain(commit)]

    def drop(self) -> None:
        """Show nothing."""
        self._history.head, self._history.files = None, {}

    def align_index(self) -> None:
        """Have no index."""

    def tidy(self) -> None:
        """Have nothing to pack."""


class Stepping(Protocol):
    """What has a virtual time, and counts the steps of the process that runs."""

    now_s: float

    def step(self) -> None:
        """Count a step. Raises: Killed."""


class SlowArchive(Archive):
    """The real worker. What it does in its thread is done at once, and known to it a little later."""

    def __init__(self, store: Store, memory: Path, loop: Stepping, history: History) -> None:
        """Archive what `store` holds into `memory` and `history`."""
        super().__init__(
            store,
            memory,
            memory.parent / "backups",
            clock=lambda: instant(loop.now_s),
            repository=HistoryRepository(memory, history),
        )
        self._chance = history.chance

    async def _in_thread(self, work: Callable[[], T]) -> T:
        done = await super()._in_thread(work)
        await asyncio.sleep(self._chance.choice((0.0, 0.1, 2.0, 9.0)))
        return done


@contextmanager
def archiving(loop: Stepping) -> Iterator[None]:
    """Let files carry the loop's time, let each be a step of the process, and let batches be small."""
    write, remove = files.write, files.remove

    def written(root: Path, path: str, content: bytes) -> None:
        loop.step()
        write(root, path, content)
        os.utime(root / path, (instant(loop.now_s).timestamp(),) * 2)

    def removed(root: Path, path: str) -> None:
        loop.step()
        remove(root, path)

    with ExitStack() as patched:
        patched.enter_context(patch("time.time", lambda: instant(loop.now_s).timestamp()))
        patched.enter_context(patch.object(files, "write", written))
        patched.enter_context(patch.object(files, "remove", removed))
        patched.enter_context(patch.object(worker, "BATCH", BATCH))
        patched.enter_context(patch.object(worker, "LOOK_EVERY_S", LOOK_EVERY_S))
        yield
