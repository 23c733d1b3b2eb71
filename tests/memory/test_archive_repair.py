"""The archive repairs itself: each row of section 10 of the reliability design, and a crash at any point. R19."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from archiving import Kept
from claudius.home import Home
from claudius.memory.archive import Archive, GitFailed, files, repository, worker
from claudius.memory.archive.repository import GitBusy, Repository
from claudius.memory.documents import DocumentStore
from claudius.perception import SELF, shared
from contracts.store.ground import ANA, BEN, NOW, OPS, exchange, heard

OTHERS = ("-c", "user.name=me", "-c", "user.email=me@x")


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "refs/heads/main.lock", "packed-refs.lock", "config.lock"])
async def test_a_stale_lock_is_removed_at_start(kept: Kept, lock: str) -> None:
    """A lock older than this process has no owner: our own lock on the home proves that no other daemon runs."""
    await kept.archived("one\n")
    path = kept.home.memory / ".git" / lock
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - 3600,) * 2)
    await kept.learn("two\n")
    await kept.again()

    await kept.settle()

    assert not path.exists()
    await kept.is_whole()


async def test_a_fresh_lock_is_respected(kept: Kept) -> None:
    """A lock younger than this process belongs to a running command: the round fails and is retried; the lock stays."""
    await kept.archived("one\n")
    path = kept.home.memory / ".git" / "HEAD.lock"
    path.touch()
    os.utime(path, (time.time() + 60,) * 2)
    await kept.learn("two\n")

    with pytest.raises(GitBusy):
        await kept.round()
    assert path.exists()
    path.unlink()
    await kept.settle()

    await kept.is_whole()


async def test_a_commit_by_a_person_at_the_same_moment_is_kept(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a person commits while our commits are made, theirs stays, and ours follow on top in the next round."""
    await kept.archived("one\n", "ours 1")
    await kept.learn("two\n", "ours 2")
    prepare = Repository.prepare_commits

    def interrupted(self: Repository, *args: object) -> object:
        """Commit as a person, after our commits are made and before they are published."""
        made = prepare(self, *args)  # type: ignore[arg-type] - handed on
        (kept.home.memory / "theirs.txt").write_text("x")
        kept.git("add", "theirs.txt")
        kept.git(*OTHERS, "commit", "--quiet", "-m", "theirs")
        return made

    with monkeypatch.context() as patched:
        patched.setattr(Repository, "prepare_commits", interrupted)
        with pytest.raises(GitBusy):
            await kept.round()
    await kept.settle()

    assert kept.subjects() == ["ours 1", "theirs", "ours 2"]
    await kept.is_whole()


async def test_a_detached_head_is_committed_onto(kept: Kept) -> None:
    """With a detached HEAD, versions are committed onto HEAD, and no branch moves."""
    await kept.learn("one\n", "one")
    await kept.archived("two\n", "two")
    kept.git("checkout", "--quiet", "--detach")
    await kept.again()
    await kept.settle()
    await kept.learn("three\n", "three")

    await kept.settle()

    assert kept.subjects()[-1] == "three"
    assert kept.git("log", "--format=%s", "main").splitlines() == ["two", "one"]
    assert kept.file().read_text() == await kept.text()


async def test_git_that_hangs_is_ended(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git command that hangs is killed with its children after the limit; the next round succeeds."""
    await kept.archived("one\n")
    await kept.learn("two\n")
    pids = tmp_path / "pids"
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\nsleep 600 &\necho $$ $! >>{pids}\nwait\n")
    shim.chmod(0o755)

    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
        patched.setattr(repository, "LIMIT_S", 0.5)
        with pytest.raises(GitFailed, match="longer than"):
            await kept.round()
    for pid in pids.read_text().split():
        assert _is_gone(int(pid))
    await kept.settle()

    await kept.is_whole()


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state in "ZX"


DAMAGES = ("objects", "head", "blob", "everything")


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_broken_repository_is_kept_and_built_anew(kept: Kept, damage: str) -> None:
    """If objects are missing or corrupt, the old repository goes to backups; a new one has every version and edit."""
    for n in range(5):
        await kept.archived(f"text {n}\n", f"note {n}")
    _break(kept.home.memory / ".git", damage)
    kept.by_hand(kept.file(), "edited meanwhile\n")
    await kept.again()

    await kept.settle()

    assert kept.subjects() == [*(f"note {n}" for n in range(5)), "edited by hand"]
    assert await kept.text() == "edited meanwhile\n"
    assert len(list(kept.home.backups.iterdir())) == 1
    await kept.is_whole()


def _break(git_dir: Path, damage: str) -> None:
    objects = [path for path in (git_dir / "objects").rglob("*") if path.is_file()]
    match damage:
        case "objects":
            for path in objects:
                path.unlink()
        case "head":
            (git_dir / "HEAD").write_text("nonsense")
        case "blob":
            path = max(objects, key=lambda one: one.stat().st_size)
            path.chmod(0o600)
            path.write_bytes(path.read_bytes()[:-20] + bytes(20))
        case "everything":
            for path in git_dir.rglob("*"):
                if path.is_file():
                    path.chmod(0o600)
                    path.write_bytes(b"x")


async def test_a_readable_history_is_kept_as_a_bundle(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """If git can still read the old history, it is kept in one file that git can clone."""
    await kept.archived("one\n", "old note")
    await kept.again()

    def broken(*_: object) -> None:
        """Report the repository as broken once."""
        monkeypatch.undo()
        raise repository.Broken("as said")

    monkeypatch.setattr(Repository, "prepare", broken)
    await kept.settle()

    (bundle,) = kept.home.backups.iterdir()
    assert "refs/heads/main" in kept.git("bundle", "list-heads", str(bundle))
    await kept.is_whole()


@pytest.mark.parametrize("when", ["stopped", "running"])
async def test_a_repository_that_was_deleted_is_built_anew(kept: Kept, when: str) -> None:
    """If `.git` is gone, at start or later, the directory gets a new repository with every version."""
    await kept.archived("one\n", "one")
    shutil.rmtree(kept.home.memory / ".git")
    await kept.learn("two\n", "two")
    if when == "stopped":
        await kept.again()
    else:
        with pytest.raises(GitFailed):
            await kept.round()

    await kept.settle()

    assert kept.subjects() == ["one", "two"]
    await kept.is_whole()


async def test_an_index_that_cannot_be_read_is_made_anew(kept: Kept) -> None:
    """A damaged index is replaced, since it contains no history."""
    await kept.archived("one\n")
    (kept.home.memory / ".git" / "index").write_bytes(b"DIRC nonsense")
    await kept.learn("two\n")

    await kept.settle()

    await kept.is_whole()


async def test_without_git_everything_else_works(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """If git is not installed, a round does nothing and says why; once git is there, all versions follow."""
    await kept.learn("one\n")
    with monkeypatch.context() as patched:
        patched.setenv("PATH", "/nowhere")
        assert (await kept.round()).committed == 0
    assert kept.archive.problem is not None
    assert "git is not installed" in kept.archive.problem

    await kept.settle()

    await kept.is_whole()


@pytest.mark.parametrize("step", ["prepare_commits", "publish", "align_index", "recorded"])
async def test_a_crash_at_any_step_leaves_each_version_once(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """After a crash before, during or after publishing, or before recording, the next process finds its commits."""
    await kept.archived("one\n", "one")
    await kept.learn("two\n", "two")
    await kept.learn("of Ben\n", "ben", person=BEN)

    def cut(*_: object) -> None:
        """Crash here."""
        raise OSError("the power went out")

    async def unrecorded(*_: object) -> None:
        """Crash before recording."""
        cut()

    with monkeypatch.context() as patched:
        if step == "recorded":
            patched.setattr(type(kept.store.documents), "archived", unrecorded)
        else:
            patched.setattr(Repository, step, cut)
        with pytest.raises(OSError, match="power"):
            await kept.round()
    await kept.again()
    await kept.settle()

    assert kept.subjects() == ["one", "two", "ben"]
    assert await kept.text() == "two\n"
    await kept.is_whole()


async def test_a_restored_older_database_takes_newer_words_over(home: Home) -> None:
    """Texts that git has and a restored older database lacks come back as the owner's version."""
    kept = await Kept.begin(home)
    await kept.archived("one\n", "one")
    await kept.end()
    older = home.database.read_bytes()
    kept = await Kept.begin(home)
    await kept.archived("two\n", "two")
    os.utime(kept.file(), (time.time() - 60,) * 2)
    await kept.end()
    home.database.write_bytes(older)

    kept = await Kept.begin(home)
    await kept.settle()

    assert await kept.text() == "two\n"
    assert kept.subjects()[-1] == "edited by hand"
    await kept.is_whole()
    await kept.end()


async def test_a_home_that_brings_files_of_its_own_loses_none(kept: Kept) -> None:
    """A file that we never wrote, at a path of ours, is a person's: it is imported before ours is written."""
    await kept.archived("ours\n", "ours")
    path = kept.file()
    shutil.rmtree(kept.home.memory / ".git")
    await kept.store.documents.archive_anew()
    kept.by_hand(path, "theirs\n")
    await kept.again()

    await kept.settle()

    assert await kept.text() == "theirs\n"
    assert kept.subjects() == ["ours", "edited by hand"]
    await kept.is_whole()


async def test_a_failing_archive_says_why_and_goes_on(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed round is reported as a problem of one line and retried later; replies are not affected."""
    monkeypatch.setattr(worker, "FIRST_WAIT_S", 0.0)
    await kept.learn("one\n")
    failing = asyncio.Event()

    def fails(*_: object) -> None:
        """Fail once."""
        failing.set()
        monkeypatch.undo()
        raise GitFailed("for a moment")

    monkeypatch.setattr(Repository, "prepare", fails)
    task = asyncio.create_task(kept.archive.run())
    async with asyncio.timeout(20):
        await failing.wait()
        await kept.until_archived()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    await kept.is_whole()
    assert kept.file(ANA).read_text() == "one\n"


async def test_a_version_committed_while_a_round_looks_is_not_undone(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round commits only what it looked at: a version of another person that arrives meanwhile waits for the next."""
    await kept.archived("of Ben, once\n", person=BEN)
    await kept.learn("of Ana\n")
    in_thread = Archive._in_thread

    async def slow(self: Archive, work: Callable[[], Any]) -> Any:
        """Learn about Ben while the round looks at Ana's file."""
        found = await in_thread(self, work)
        if getattr(work, "func", None) == self._read:
            monkeypatch.undo()
            await kept.learn("of Ben, more\n", person=BEN)
        return found

    monkeypatch.setattr(Archive, "_in_thread", slow)
    await kept.archive.round()
    for path in kept.home.memory.glob("users/*/*.md"):
        os.utime(path, (time.time() - 60,) * 2)
    await kept.settle()

    assert await kept.text(BEN) == "of Ben, more\n"
    assert await kept.versions() == 3
    await kept.is_whole()


async def test_an_older_file_of_ours_is_known_though_its_record_is_lost(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without a recorded hash is compared with every version of the document, not only with the next few."""
    monkeypatch.setattr(worker, "BATCH", 2)
    for n in range(7):
        await kept.learn(f"text {n}\n", f"{n}")
        await kept.store.documents.set_state("currentTopic", f"topic {n}", SELF, NOW + timedelta(seconds=n))
    for _ in range(4):
        await kept.round()
    assert kept.file().read_text() == "text 3\n"
    for path in (kept.file(), kept.home.memory / "soul_state.md"):
        os.utime(path, (time.time() - 60,) * 2)
    await kept.store.documents.archive_anew()
    await kept.again()

    await kept.settle()

    assert await kept.versions() == 14
    await kept.is_whole()


async def test_an_edit_that_was_taken_over_before_a_crash_is_not_taken_over_again(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the owner's version and the file's record does not import it twice, even with a full batch."""
    await kept.archived("one\n")
    monkeypatch.setattr(worker, "BATCH", 2)
    for n in range(3):
        await kept.learn(f"of Ben {n}\n", person=BEN)
    kept.by_hand(kept.file(), "by hand\n")
    with monkeypatch.context() as patched:
        patched.setattr(type(kept.store.documents), "archived", _cut)
        with pytest.raises(OSError, match="power"):
            await kept.round()
    await kept.learn("by hand, and learned\n")
    await kept.again()

    await kept.settle()

    assert await kept.text() == "by hand, and learned\n"
    assert await kept.versions() == 6
    await kept.is_whole()


@pytest.mark.parametrize("after", range(9))
async def test_a_crash_between_two_files_undoes_nothing(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """Files move after a rename, and the process ends after `after` steps: the next process undoes nothing."""
    await exchange(kept.store, heard(n=1, name="Ana"))
    await kept.learn("Ana, one\n")
    await kept.store.documents.set_model(ANA, shared(OPS), "Ana in the channel\n", "note", "owner", NOW)
    await kept.archived("Ben, one\n", person=BEN)
    await exchange(kept.store, heard(n=2, name="Ana Lovelace"))
    await kept.learn("Ana, two\n")
    await kept.learn("Ben, two\n", person=BEN)
    steps = iter(range(after + 1))

    def step(work: Callable[..., object]) -> Callable[..., object]:
        """Run the step, or crash once `after` steps have run."""
        return lambda *args: work(*args) if next(steps, after) < after else _end()

    with monkeypatch.context() as patched:
        for room, name in ((files, "write"), (files, "remove"), (Repository, "publish"), (DocumentStore, "archived")):
            patched.setattr(room, name, step(getattr(room, name)))
        with suppress(OSError):
            await kept.round()
    await kept.learn("Ana, three\n")
    for path in kept.home.memory.glob("users/*/*.md"):
        os.utime(path, (time.time() - 60,) * 2)
    await kept.again()
    await kept.settle()

    assert await kept.text() == "Ana, three\n"
    assert await kept.versions() == 6
    assert sorted(path.read_text() for path in kept.home.memory.glob("users/*/*.md")) == [
        "Ana in the channel\n",
        "Ana, three\n",
        "Ben, two\n",
    ]
    assert len(kept.git("ls-files", "users").split()) == 3
    await kept.is_whole()


def _end() -> None:
    raise OSError("the power went out")


async def _cut(*_: object) -> None:
    _end()


async def test_a_crash_before_a_person_has_another_name_loses_no_file(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is in git but not recorded stays at the path of its commit, whatever the person is called now."""
    await exchange(kept.store, heard(n=1, name="Ana"))
    await kept.learn("Ana, one\n")
    await kept.store.documents.set_model(ANA, shared(OPS), "Ana in the channel\n", "note", "owner", NOW)
    with monkeypatch.context() as patched:
        patched.setattr(type(kept.store.documents), "archived", _cut)
        with pytest.raises(OSError, match="power"):
            await kept.round()
    await exchange(kept.store, heard(n=2, name="Ana Lovelace"))
    await kept.again()

    await kept.settle()

    assert {path.parent.name[:4] for path in kept.home.memory.glob("users/*/*.md")} == {"ana-"}
    assert len(kept.git("ls-files", "users").split()) == 2
    assert len(kept.subjects()) == 2
    await kept.is_whole()


async def test_an_edit_while_the_file_is_about_to_move_is_taken_over(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a person edits a file between the look and the move, it moves only after the edit is imported."""
    await exchange(kept.store, heard(n=1, name="Ana"))
    await kept.archived("Ana, one\n")
    await exchange(kept.store, heard(n=2, name="Zoe"))
    await kept.learn("Ana, two\n")
    path, head = kept.file(), Repository.head

    def edited(self: Repository) -> str | None:
        """Edit the file by hand just before the commits are made."""
        kept.by_hand(path, "Ana, by hand\n")
        return head(self)

    with monkeypatch.context() as patched:
        patched.setattr(Repository, "head", edited)
        await kept.round()
    await kept.settle()

    assert await kept.text() == "Ana, by hand\n"
    assert kept.file().parent.name.startswith("zoe-")
    assert await kept.versions() == 3
    await kept.is_whole()


async def test_a_file_that_a_crash_left_unrecorded_is_still_found_after_a_new_name(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file's path is recorded before it is written, so that a later edit by hand is imported."""
    await exchange(kept.store, heard(n=1, name="Ana"))
    await kept.learn("Ana, one\n")
    with monkeypatch.context() as patched:
        patched.setattr(Repository, "publish", lambda *_: _end())
        with pytest.raises(OSError, match="power"):
            await kept.round()
    await exchange(kept.store, heard(n=2, name="Zoe"))
    kept.by_hand(kept.file(), "Ana, by hand\n")
    await kept.again()

    await kept.settle()

    assert await kept.text() == "Ana, by hand\n"
    assert kept.file().parent.name.startswith("zoe-")
    await kept.is_whole()
