"""F17: whoever archives continues from what the store holds; who lost the role is refused by the remote as well."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from archiving import Kept, at, bare, linear
from claudius.errors import ClaudiusError
from claudius.home import Home
from claudius.intent import ModelVersion
from claudius.memory.archive import Archive
from claudius.memory.archive.remote import Remote
from claudius.memory.archive.repository import LIMIT_S, Repository
from claudius.memory.database import StorePlace
from claudius.memory.erasing import put_portrait_back
from claudius.memory.seen import Derived, ErasedSource
from claudius.perception import private
from contracts.store.ground import ANA, BEN, NOW, exchange, heard


@pytest.fixture
def remote(tmp_path: Path) -> str:
    """Return an empty repository that all machines can reach."""
    return bare(tmp_path / "remote.git")


@asynccontextmanager
async def machines(url: str, root: Path, remote: str, count: int = 2) -> AsyncIterator[list[Kept]]:
    """Yield machines, each with a home and a process of its own, which share a store and a remote."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    async with AsyncExitStack() as stack:
        made = []
        for n in range(count):
            home = Home(root / f"home{n}")
            home.create()
            one = await Kept.begin(home, PostgresStore(StorePlace(url)), remote)
            stack.push_async_callback(one.end)
            made.append(one)
        yield made


class PausedRemote(Remote):
    """A remote of a process that is paused right before it pushes."""

    def __init__(self, url: str, kept: Path) -> None:
        super().__init__(url, kept)
        self.reached, self.goes_on = threading.Event(), threading.Event()

    def push(self, repository: Repository, commit: str) -> None:
        """Wait until the test lets the process go on."""
        self.reached.set()
        assert self.goes_on.wait(60)
        super().push(repository, commit)


async def test_scale_f17_who_was_paused_past_its_lease_is_refused(
    postgres_url: str, tmp_path: Path, remote: str
) -> None:
    """What the new holder has pushed stands, each version once; the old one continues from there once it has it again."""
    async with machines(postgres_url, tmp_path, remote) as (one, other):
        await one.learn("one", "v1")
        await one.settle()
        paused = PausedRemote(remote, one.home.state / "archive-pushed")
        await one.archive.close()
        one.archive = Archive(one.store, one.home.memory, one.home.backups, clock=one.archive._clock, remote=paused)
        await one.learn("two", "v2")
        late = asyncio.create_task(one.round())
        await asyncio.to_thread(paused.reached.wait, 60)
        await other.learn("three", "v3")
        await other.learn("of Ben", "v4", person=BEN)
        await other.settle()
        theirs = at(remote, "rev-parse", "main")
        paused.goes_on.set()
        await late

        refused = one.archive.remote_problem
        after = at(remote, "rev-parse", "main")
        await one.again()
        await one.learn("five", "v5", person=BEN)
        await one.settle()

        assert "moved on" in (refused or "")
        assert after == theirs
        assert linear(remote) == ["v1", "v2", "v3", "v4", "v5"]
        assert one.archive.remote_problem is None
        await one.is_whole()
        assert one.git("rev-parse", "HEAD") == at(remote, "rev-parse", "main")


@pytest.mark.slow
async def test_scale_f17_a_machine_that_had_the_role_before_has_its_files_overwritten(
    postgres_url: str, tmp_path: Path, remote: str
) -> None:
    """Its old files are no edits by hand: they become the newest versions; only what a person wrote there is taken over."""
    async with machines(postgres_url, tmp_path, remote) as (one, other):
        await one.learn("one", "v1")
        await one.learn("of Ben", "v2", person=BEN)
        await one.settle()
        for n in range(3, 6):
            await other.learn(f"text {n}", f"v{n}")
        await other.settle()
        (ben,) = [path for path in one.home.memory.glob("users/*/*.md") if path.read_text() == "of Ben"]
        one.by_hand(ben, "of Ben, by hand")
        await one.again()
        await one.settle()

        assert await one.text() == "text 5"
        assert await one.text(BEN) == "of Ben, by hand"
        assert linear(remote) == ["v1", "v2", "v3", "v4", "v5", "edited by hand"]
        await one.is_whole()


@pytest.mark.slow
async def test_scale_f17_without_a_remote_each_continues_from_what_it_has(postgres_url: str, tmp_path: Path) -> None:
    """The role moves there and back: each home's history has every version, and no old file becomes a version."""
    async with machines(postgres_url, tmp_path, "") as (one, other):
        for n in range(1, 7):
            holder = (one, other)[n % 2]
            await holder.again()
            await holder.learn(f"text {n}", f"v{n}")
            await holder.settle()
            assert holder.subjects() == [f"v{m}" for m in range(1, n + 1)]
            await holder.is_whole()


class Cut(Repository):
    """A repository whose process is killed at a git command."""

    def __init__(self, root: Path, left: int) -> None:
        super().__init__(root)
        self.left = left

    def run(
        self,
        args: Sequence[str],
        *,
        given: bytes = b"",
        also: Mapping[str, str] = MappingProxyType({}),
        within_s: float = LIMIT_S,
    ) -> bytes:
        """Run a command, unless the process is killed there."""
        self.left -= 1
        if self.left < 0:
            raise ClaudiusError("cut off")
        return super().run(args, given=given, also=also, within_s=within_s)


@pytest.mark.slow
async def test_scale_f17_cut_off_at_each_step(postgres_url: str, tmp_path: Path, remote: str) -> None:
    """Killed at any git command up to the push, the next process goes on: each version is there once."""
    async with machines(postgres_url, tmp_path, remote) as (one, other):
        await one.learn("one", "v1")
        await one.learn("of Ben", "v2", person=BEN)
        await one.settle()
        one.by_hand(one.file(), "by a person")
        await one.settle()
        await other.learn("of Ben, again", "v3", person=BEN)
        cuts = 0
        while True:
            await other.again(Cut(other.home.memory, cuts))
            try:
                await other.settle()
            except ClaudiusError:
                cuts += 1
                continue
            break

        assert cuts > 10
        assert linear(remote) == ["v1", "v2", "edited by hand", "v3"]
        assert await other.text() == "by a person"
        assert await other.text(BEN) == "of Ben, again"
        await other.is_whole()


async def test_scale_f17_cut_off_between_commit_and_push(postgres_url: str, tmp_path: Path, remote: str) -> None:
    """What a dead holder had committed and not pushed is committed by the next one; its home may be lost."""
    async with machines(postgres_url, tmp_path, remote) as (one, other):
        await one.learn("one", "v1")
        await one.settle()
        one.archive._remote = None  # cut off from here on
        await one.learn("two", "v2")
        await one.settle()
        pushed = linear(remote)
        shutil.rmtree(one.home.memory)
        await other.learn("three", "v3")
        await other.settle()

        assert pushed == ["v1"]
        assert linear(remote) == ["v1", "v2", "v3"]
        await other.is_whole()


async def test_scale_f16_who_is_forgotten_is_in_no_machines_history(
    postgres_url: str, tmp_path: Path, remote: str
) -> None:
    """Another process than the holder erases: the holder lets go of its history, and continues from the new one."""
    async with machines(postgres_url, tmp_path, remote) as (one, other):
        await one.learn("canary of Ana", "met")
        await one.learn("of Ben", "v2", person=BEN)
        await one.settle()
        await one.archive.let_go([ANA])
        async with other.archive.halted() as build_anew:
            await other.store.erasure.erase([ANA])
            await build_anew([ANA])
        rested = await one.round()
        one.archive.rests = False
        await one.learn("of Ben, again", "v3", person=BEN)
        await one.settle()

        assert rested.committed == 0
        assert linear(remote) == ["v2", "v3"]
        for machine in (one, other):
            assert "canary" not in machine.git("cat-file", "--batch-all-objects", "--batch")
            assert not [path for path in machine.home.memory.glob("users/*/*.md") if "canary" in path.read_text()]
        await one.is_whole()


async def test_scale_f17_what_was_taken_back_elsewhere_is_no_edit_of_an_owner(
    postgres_url: str, tmp_path: Path, remote: str
) -> None:
    """A portrait is put back while another machine has the role: the file of before does not return with the first."""
    derived, place = Derived(ErasedSource()), {"person": ANA, "audience": private(ANA)}
    async with machines(postgres_url, tmp_path, remote) as (one, other):
        await one.store.start("boot", NOW)
        for n, text in enumerate(("a bee", "a heron", "a dove"), 1):
            model = ModelVersion(**place, version=n, markdown=f"## Likes\n{text}\n", note="")
            intent = await exchange(one.store, heard(n=n), model=model)
        derived.first.add(intent.turn)
        await one.settle()
        await other.settle()
        await other.store.core.write(lambda db: put_portrait_back(db, derived, place, set()))
        await other.round()
        await one.again()
        await one.round()
        found = await one.text()

    assert "a heron" in (found or "")
