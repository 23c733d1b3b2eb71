"""What git receives, and the copy of the archive elsewhere: few bytes, few rounds, and the home goes on."""

import asyncio
import base64
import os
import shutil
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiving import Kept, at, bare, commit_there, linear
from claudius.home import Home
from claudius.memory.archive import Archive, Remote
from claudius.memory.archive.changes import RevisionCommit, fast_import
from claudius.memory.archive.worker import Round
from claudius.memory.sqlite import SqliteStore
from contracts.store.ground import ANA, BEN

SCRIPT = "#!/bin/sh\necho ran >>{canary}\nexit 1\n"


@pytest.fixture
def remote(tmp_path: Path) -> str:
    """Return an empty repository."""
    return bare(tmp_path / "remote.git")


@pytest.fixture
async def copied(home: Home, remote: str) -> AsyncIterator[Kept]:
    """Yield a home with a store and an archive that copies to a remote."""
    begun = await Kept.begin(home, remote=remote)
    yield begun
    await begun.end()


async def test_every_commit_is_copied(copied: Kept, remote: str) -> None:
    """After each round the remote has what the home has, also after a restart."""
    await copied.archived("one", "v1")
    await copied.again()
    await copied.archived("two", "v2")

    assert linear(remote) == ["v1", "v2"]
    assert at(remote, "rev-parse", "main") == copied.git("rev-parse", "HEAD")
    await copied.is_whole()


@pytest.mark.parametrize("is_at_once", [True, False])
async def test_the_mirror_wins(copied: Kept, remote: str, tmp_path: Path, *, is_at_once: bool) -> None:
    """What is committed at the remote does not return, and goes with our next push, in this process or the next."""
    await copied.archived("one", "v1")
    path = str(copied.file().relative_to(copied.home.memory))
    commit_there(remote, path, "by a person", tmp_path / "a")
    commit_there(remote, "notes/README", "mine", tmp_path / "b")
    await copied.learn("two", "v2")
    if is_at_once:
        await copied.settle()  # refused: somebody has pushed
        assert copied.archive._remote
        copied.archive._remote._due_s = 0.0
    else:
        await copied.again()
    await copied.settle()

    assert linear(remote) == ["v1", "v2"]
    assert copied.archive.remote_problem is None
    assert copied.file().read_text() == await copied.text() == "two"
    assert not (copied.home.memory / "notes").exists()
    await copied.is_whole()


async def test_a_home_that_lost_its_history_builds_it_anew(copied: Kept, remote: str, tmp_path: Path) -> None:
    """All versions are committed again, and the remote gets that history."""
    await copied.archived("one", "v1")
    commit_there(remote, "README", "mine", tmp_path / "a")
    (copied.home.memory / ".git").rename(tmp_path / "lost")
    await copied.again()
    await copied.archived("two", "v2")

    assert linear(remote) == ["v1", "v2"]
    await copied.is_whole()


async def test_a_remote_that_is_away_stops_nothing(copied: Kept, remote: str, tmp_path: Path) -> None:
    """The home is archived, one line says what is wrong, the pauses grow; once it is back, it gets everything."""
    away = Path(remote).rename(tmp_path / "away")
    copy = copied.archive._remote
    assert copy
    waits = []
    for n in range(3):
        copy._due_s = 0.0
        await copied.archived(f"text {n}", f"v{n}")
        waits.append(copy.waits_s)
    trouble = copied.archive.remote_problem
    away.rename(remote)
    copy._due_s = 0.0
    await copied.settle()

    assert trouble
    assert trouble.startswith("git ls-remote: ")
    assert "\n" not in trouble
    assert waits[0] < waits[1] < waits[2]
    assert copied.subjects() == ["v0", "v1", "v2"] == linear(remote)
    assert copied.archive.remote_problem is None


async def test_who_is_forgotten_leaves_the_remote_as_well(copied: Kept, remote: str) -> None:
    """The remote's history is rewritten without them before the receipt is written, also if no one else was in it."""
    for person, words in ((ANA, "canary of Ana"), (BEN, "of Ben")):
        await copied.archived(words, "met", person=person)
    await _forget(copied, ANA)
    without_ana = at(remote, "log", "-p", "main")
    first = [one.where for one in copied.archive.beyond()]
    await _forget(copied, BEN)

    assert "canary" not in without_ana
    assert "of Ben" in without_ana
    assert "could not" not in first[0]
    assert "of Ben" not in at(remote, "log", "-p", "main")
    assert linear(remote) == ["Nothing is kept"]
    assert "canary" not in copied.git("cat-file", "--batch-all-objects", "--batch")


async def test_a_remote_that_is_away_is_rewritten_when_it_is_back(copied: Kept, remote: str, tmp_path: Path) -> None:
    """The receipt says that its history is not rewritten yet; the next process does it, and takes nothing from there."""
    await copied.archived("canary of Ana", "met")
    away = Path(remote).rename(tmp_path / "away")
    await _forget(copied, ANA)
    said = [one.where for one in copied.archive.beyond()]
    away.rename(remote)
    await copied.again()
    await copied.settle()

    assert "could not be rewritten yet" in said[0]
    assert remote in said[0]
    assert "canary" not in at(remote, "log", "-p", "main")
    assert not list(copied.home.memory.glob("users/*/*.md"))


async def test_the_history_of_another_soul_is_left_alone(copied: Kept, remote: str, tmp_path: Path) -> None:
    """A remote that already holds another soul's history is not overwritten; one line says so."""
    home = Home(tmp_path / "other")
    home.create()
    other = await Kept.begin(home, remote=remote)
    await other.archived("of another soul", "theirs")
    await other.end()
    await copied.archived("one", "v1")

    assert linear(remote) == ["theirs"]
    assert copied.subjects() == ["v1"]
    assert "another soul" in (copied.archive.remote_problem or "")


async def test_s19_a_prepared_repository_leads_no_push_astray(copied: Kept, remote: str, tmp_path: Path) -> None:
    """Settings of the home's repository redirect nothing, run nothing and ask no one when it is copied."""
    await copied.archived("one", "v1")
    canary, script = tmp_path / "canary", tmp_path / "evil"
    script.write_text(SCRIPT.format(canary=canary))
    script.chmod(0o755)
    elsewhere = bare(tmp_path / "elsewhere.git")
    hook = copied.home.memory / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(SCRIPT.format(canary=canary))
    hook.chmod(0o755)
    for key, value in {
        f"url.{elsewhere}.insteadOf": remote,
        f"remote.{remote}.url": elsewhere,
        f"remote.{remote}.receivepack": str(script),
        f"remote.{remote}.uploadpack": str(script),
        "core.sshCommand": str(script),
        "core.askPass": str(script),
        "credential.helper": str(script),
        "core.hooksPath": str(hook.parent),
    }.items():
        copied.git("config", key, value)
    await copied.again()
    await copied.archived("two", "v2")

    assert linear(remote) == ["v1", "v2"]
    assert at(elsewhere, "for-each-ref") == ""
    assert not canary.exists()


async def test_nobody_is_asked_for_a_password(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither ssh nor https may ask: a server that wants one is a failure, and no name in a URL is told."""
    canary, script = tmp_path / "canary", tmp_path / "ssh"
    script.write_text(f'#!/bin/sh\necho "$@" >>{canary}\nexit 255\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_SSH_COMMAND", "/nonexistent")
    kept = await Kept.begin(home, remote="ssh://name-of-tom@localhost/soul.git")
    await kept.archived("one", "v1")
    trouble = kept.archive.remote_problem
    await kept.end()

    assert "BatchMode=yes" in canary.read_text()
    assert trouble
    assert "name-of-tom" not in trouble
    assert kept.subjects() == ["v1"]


async def test_s20_a_token_stands_in_no_command_line(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The token for an https remote is in git's environment alone: not in its arguments, the problem or a file."""
    seen, real = tmp_path / "seen", shutil.which("git")
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "$@" >>{seen}\nenv >>{seen}.env\nexec {real} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    kept = await Kept.begin(home)
    copy = Remote("https://tom@127.0.0.1:1/soul.git", home.state / "archive-pushed", token="canary-token")
    kept.archive = Archive(kept.store, home.memory, home.backups, clock=kept.archive._clock, remote=copy)
    await kept.archived("one", "v1")
    await kept.end()

    pair = base64.b64encode(b"tom:canary-token").decode()
    assert f"Authorization: Basic {pair}" in seen.with_suffix(".env").read_text()
    assert pair not in seen.read_text()
    assert "canary" not in seen.read_text() + (copy.problem or "canary")
    assert not [path for path in home.root.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]


async def _forget(kept: Kept, person: str) -> None:
    async with kept.archive.halted() as build_anew:
        await kept.store.erasure.erase([person])
        await build_anew([person])


NOW = datetime(2026, 1, 5, tzinfo=UTC)


def change(revision: int, *written: tuple[str, bytes]) -> RevisionCommit:
    """Return one revision's commit."""
    return RevisionCommit(
        revision=revision, token=f"{revision}.x", at=NOW, note="new", author="turn", turn=None, written=written
    )


def test_the_versions_of_one_file_stand_together() -> None:
    """The versions of one file follow each other in the stream, because git stores each as a delta of the previous."""
    changes = [
        change(5, ("a.md", b"a one")),
        change(6, ("b.md", b"b one")),
        change(7, ("a.md", b"a two"), ("c.md", b"c one")),
        change(8, ("a.md", b"a one")),
    ]

    stream = fast_import(changes, None).decode()

    places = [stream.index(f"\n{content}\n") for content in ("a one", "a two", "b one", "c one")]
    assert places == sorted(places)
    assert places[-1] < stream.index("commit ")
    assert [line for line in stream.splitlines() if line.startswith("M ")] == [
        "M 100644 :9 a.md", "M 100644 :11 b.md", "M 100644 :10 a.md", "M 100644 :12 c.md", "M 100644 :9 a.md",
    ]  # fmt: skip


@pytest.mark.parametrize(("gather_s", "rounds"), [(0.0, 2), (3600.0, 1)])
async def test_a_wake_waits_for_more_to_come(
    home: Home, monkeypatch: pytest.MonkeyPatch, gather_s: float, rounds: int
) -> None:
    """A round begins some seconds after the first wake, so that it includes what is written meanwhile."""
    begun: list[asyncio.Event] = [asyncio.Event(), asyncio.Event()]
    count = 0

    async def counted(_: Archive) -> Round:
        """Count the call instead of archiving."""
        nonlocal count
        begun[count].set()
        count += 1
        return Round()

    monkeypatch.setattr(Archive, "round", counted)
    archive = Archive(SqliteStore(home.database), home.memory, home.backups, clock=lambda: NOW, gather_s=gather_s)
    running = asyncio.create_task(archive.run())
    await begun[0].wait()
    archive.wake()
    if rounds > 1:
        await begun[1].wait()
    for _ in range(10):
        await asyncio.sleep(0)

    assert count == rounds
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await archive.close()
