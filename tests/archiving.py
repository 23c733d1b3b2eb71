"""Shared helpers of the archive's tests: a store, its archive, and git as the home's owner would use it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from claudius.home import Home
from claudius.memory.archive import Archive, Remote, Round
from claudius.memory.archive.repository import Repository
from claudius.memory.documents import Document
from claudius.memory.sqlite import SqliteStore
from claudius.memory.store import Store
from claudius.perception import private
from contracts.store.ground import ANA, NOW


@dataclass(slots=True)
class Kept:
    """One home with a store and an archive."""

    home: Home
    store: Store
    archive: Archive
    remote: str = ""

    @classmethod
    async def begin(cls, home: Home, store: Store | None = None, remote: str = "") -> Kept:
        """Open a store, by default the home's file, and an archive in a home; its history is copied to `remote`."""
        store = store or SqliteStore(home.database)
        await store.open()
        return cls(home, store, cls.archive_of(home, store, remote), remote)

    @staticmethod
    def archive_of(home: Home, store: Store, remote: str = "", repository: Repository | None = None) -> Archive:
        """Create an archive as a new process would."""
        copy = Remote(remote, home.state / "archive-pushed") if remote else None
        return Archive(
            store, home.memory, home.backups, clock=lambda: datetime.now(UTC), remote=copy, repository=repository
        )

    async def again(self, repository: Repository | None = None) -> None:
        """Replace the archive with a new one, as a new process would."""
        await self.archive.close()
        self.archive = self.archive_of(self.home, self.store, self.remote, repository)

    async def end(self) -> None:
        """Close both."""
        await self.archive.close()
        await self.store.close(clean=False)

    async def learn(self, text: str, note: str = "note", person: str = ANA) -> None:
        """Write one version of a person's private portrait."""
        await self.store.documents.set_model(person, private(person), text, note, "owner", NOW)

    async def round(self) -> Round:
        """Run one round that looks at every file."""
        self.archive._next_look_s = 0.0
        return await self.archive.round()

    async def settle(self) -> None:
        """Run rounds until nothing is left to commit."""
        while (await self.round()).committed:
            pass

    async def archived(self, text: str, note: str = "note", person: str = ANA) -> None:
        """Write one version of a person's private portrait, and have git hold it."""
        await self.learn(text, note, person)
        await self.settle()

    async def until_archived(self) -> None:
        """Wait until a running archive has nothing left to do."""
        while self.store.documents.unarchived(1):
            await asyncio.to_thread(int)

    def git(self, *args: str) -> str:
        """Run git in the memory directory."""
        return at(str(self.home.memory), *args)

    def subjects(self) -> list[str]:
        """Return the subjects of all commits, oldest first."""
        return self.git("log", "--reverse", "--format=%s").splitlines()

    def file(self, person: str = ANA) -> Path:
        """Return the one file of a person's portrait."""
        found = [
            path for path in self.home.memory.glob("users/*/*.md") if person.rpartition(":")[2].lower() in str(path)
        ]
        assert len(found) == 1, found
        return found[0]

    def by_hand(self, path: Path, content: str | bytes, *, age_s: float = 60.0) -> None:
        """Write a file as a person with an editor would have done `age_s` seconds ago."""
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        then = time.time() - age_s
        os.utime(path, (then, then))

    async def is_whole(self) -> None:
        """Check O8: newest version = file = blob at HEAD, byte for byte; git is sound; git sees no change."""
        for file in self.store.documents.archive_files():
            text = self.store.documents.document(file.document)
            assert text is not None
            assert (self.home.memory / file.path).read_bytes() == text.encode()
            assert self.git("cat-file", "blob", f"HEAD:{file.path}") == text
        assert self.store.documents.unarchived(1) == []
        self.git("fsck", "--strict")
        assert self.git("status", "--porcelain", "--untracked-files=no") == ""

    async def versions(self) -> int:
        """Return how many changes of portraits and of the state are kept, no matter who made them."""
        with closing(sqlite3.connect(self.home.database)) as db:
            return int(db.execute("SELECT count(*) FROM revision").fetchone()[0])

    async def text(self, person: str = ANA) -> str | None:
        """Return a person's newest private portrait."""
        return self.store.documents.document(Document(person, private(person)))


def bare(path: Path) -> str:
    """Make an empty repository for others to push to; return its path."""
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)], check=True)
    return str(path)


def at(remote: str, *args: str) -> str:
    """Run git in a directory, or in a repository that others push to."""
    return subprocess.run(["git", "-C", remote, *args], capture_output=True, check=True).stdout.decode(
        "utf-8", "replace"
    )


def linear(remote: str) -> list[str]:
    """Check that a remote is sound and its history linear; return the subjects of its commits, oldest first."""
    at(remote, "fsck", "--strict")
    assert at(remote, "rev-list", "--merges", "main") == ""
    return at(remote, "log", "--reverse", "--format=%s", "main").splitlines()


def commit_there(remote: str, path: str, content: str, work: Path) -> None:
    """Commit a file at a remote as another does, from a clone of theirs."""
    subprocess.run(["git", "clone", "--quiet", remote, str(work)], check=True)
    (work / path).parent.mkdir(parents=True, exist_ok=True)
    (work / path).write_text(content)
    for words in (["add", "-A"], ["commit", "--quiet", "-m", f"by hand: {path}"], ["push", "--quiet"]):
        subprocess.run(["git", "-c", "user.name=Tom", "-c", "user.email=tom@localhost", *words], cwd=work, check=True)
