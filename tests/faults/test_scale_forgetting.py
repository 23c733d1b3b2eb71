"""F16: a person who writes everywhere is forgotten on every worker, whoever dies; the receipt is true."""

import asyncio
import json
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
import pytest
from msgspec.structs import replace

from claudius.errors import ClaudiusError, StoreError, TryAgain
from claudius.memory.leases import LeaseTimes
from claudius.memory.postgres.store import PostgresErasure
from claudius.perception import Perception
from claudius.runtime.server import Server
from claudius.runtime.sweeping import renew_backups
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from minds import until
from workers import LEASE_S, World

OWNER = "rehearsal:t:owner"


def held(url: str, words: str) -> list[str]:
    """Return the tables that hold these words in any row."""
    with psycopg.connect(url) as made:
        names = made.execute(
            "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        ).fetchall()
        return [
            name
            for (name,) in names
            if made.execute(f'SELECT 1 FROM "{name}" AS t WHERE t::text LIKE %s LIMIT 1', [f"%{words}%"]).fetchone()  # noqa: S608 - our own names
        ]


@pytest.mark.parametrize("dies", [False, True])
async def test_scale_f16_forgotten_on_every_worker(postgres_url: str, tmp_path: Path, dies: bool) -> None:  # noqa: FBT001 - a case
    """Each worker lets go of sessions, caches and log lines before the receipt; one that dies is waited for, no longer."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack, AsyncExitStack() as doomed:
        one = await world.worker(stack)
        other = await world.worker(doomed if dies else stack, clean=not dies)
        for n in range(3):
            for soul in (one, other):
                await world.offer(soul, world.post(1, n))
                await world.offer(soul, world.post(2, n))
        await world.answered()
        writing = asyncio.create_task(keep_writing(world, (one,) if dies else (one, other)))
        if dies:
            await doomed.aclose()
        forgetting = one.server._forgetting
        receipt = await forgetting.forget("rehearsal:t:p1", world.said[-1].at, OWNER)
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
        with psycopg.connect(postgres_url) as made:
            left = made.execute("SELECT count(*) FROM letting_go").fetchone()
            turns = made.execute("SELECT count(*) FROM turn").fetchone()

    assert receipt["left"] == []
    assert (receipt["verified"], bool(receipt["later"])) == (dies, not dies)  # another process is being waited for
    assert any("write-ahead log" in one for one in receipt["not_ours"])
    assert held(postgres_url, "rehearsal:t:p1") == []
    assert left == (0,)
    assert turns == (3,)


async def keep_writing(world: World, souls: tuple[object, ...]) -> None:
    """Have the person write at every worker, over and over; nothing of it is taken while they are being erased."""
    n = 100
    while True:
        for soul in souls:
            n += 1
            with suppress(TryAgain):
                await world.offer(soul, world.post(1, n))  # type: ignore[arg-type]  # an Alive
        await asyncio.sleep(0.01)


async def test_scale_f16_who_is_asked_to_let_go_hears_them_again_afterwards(postgres_url: str, tmp_path: Path) -> None:
    """While another process erases a person, a worker refuses them, clears what it has at hand, and says so; then hears."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        one = await world.worker(stack)
        await world.offer(one, world.post(1, 0))
        await world.answered()
        with psycopg.connect(postgres_url, autocommit=True) as made:
            made.execute(
                "INSERT INTO letting_go (ids, conversations, audiences) VALUES (%s, '[]', '[]')",
                [json.dumps(["rehearsal:t:p1"])],
            )
            async with asyncio.timeout(5 * LEASE_S):
                while made.execute("SELECT count(*) FROM let_go").fetchone() == (0,):
                    await asyncio.sleep(0.02)
            with pytest.raises(TryAgain):
                await world.offer(one, world.post(1, 1))
            made.execute("DELETE FROM letting_go")
            async with asyncio.timeout(5 * LEASE_S):
                while one.server._forgetting.is_frozen("rehearsal:t:p1"):
                    await asyncio.sleep(0.02)
            await world.offer(one, world.said[-1])
        await world.answered()

    world.judge()


def asked(url: str) -> list[tuple[int, str]]:
    """Return the numbers of the erasures that are under way, and whose."""
    with psycopg.connect(url) as made:
        return made.execute("SELECT number, ids FROM letting_go ORDER BY number").fetchall()


def fails(*_: object) -> None:
    """Make no copy, as where there is no room."""
    raise StoreError("no space left to write to")


async def test_scale_f16_an_erasure_that_fails_freezes_nobody(postgres_url: str, tmp_path: Path) -> None:
    """The store keeps nothing of whom it was to erase, and then every process hears them; the home resumes it later."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        souls = one, _ = [await world.worker(stack) for _ in range(2)]
        for n in (1, 2):
            await world.offer(one, world.post(n, 0))
        await world.answered()
        forgetting, one.mind.store.back_up = one.server._forgetting, fails  # type: ignore[method-assign]  # broken
        assert renew_backups(one.mind.store, one.server._home, world.said[-1].at) == (0, [])
        (one.server._home.backups / "claudius-20260101T000000.000000Z.db").touch()
        with pytest.raises(ClaudiusError, match="no fresh backup"):
            await forgetting.forget("rehearsal:t:p1", world.said[-1].at, OWNER)
        await until(lambda: not asked(postgres_url))
        await until(lambda: not any(soul.server._forgetting.is_frozen("rehearsal:t:p1") for soul in souls))
        left = held(postgres_url, "rehearsal:t:p1")
        for soul, n in zip(souls, (1, 2), strict=True):
            await world.offer(soul, world.post(1, n))
        await world.answered()

    assert left == []
    assert forgetting._ledger.unfinished()
    world.judge()


async def test_scale_f16_another_process_finishes_what_a_dead_one_left(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No one comes back half erased; the dead one's home does the rest when it starts, whatever roles it may have."""
    world, begun = World(postgres_url, tmp_path), asyncio.Event()
    erase = PostgresErasure.erase

    async def hangs(*_: object) -> None:
        """Be under way for ever."""
        begun.set()
        await asyncio.Event().wait()

    async with AsyncExitStack() as stack:
        other = await world.worker(stack)
        monkeypatch.setattr("claudius.testing.alive.Server", partial(Server, roles=("lanes", "listen")))
        async with AsyncExitStack() as doomed:
            one = await world.worker(doomed, clean=False)
            await world.offer(one, world.post(1, 0))
            await world.answered()
            monkeypatch.setattr(PostgresErasure, "erase", hangs)
            forgetting = one.server._forgetting
            dying = asyncio.create_task(forgetting.forget("rehearsal:t:p1", world.said[-1].at, OWNER))
            await begun.wait()
            monkeypatch.setattr(PostgresErasure, "erase", erase)
            dying.cancel()
        assert asked(postgres_url)
        await until(lambda: not asked(postgres_url))
        left = held(postgres_url, "rehearsal:t:p1")
        world.born -= 1  # the same home again
        again = await world.worker(stack)
        await until(lambda: not again.server._forgetting._ledger.unfinished())
        await until(lambda: not other.server._forgetting.is_frozen("rehearsal:t:p1"))

    assert left == []


async def test_scale_f16_two_processes_erase_one_after_the_other(postgres_url: str, tmp_path: Path) -> None:
    """Two erasures that begin at once on two processes both end, each with a receipt, and neither ends the other's."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        souls = [await world.worker(stack) for _ in range(2)]
        for n in (1, 2):
            await world.offer(souls[0], world.post(n, 0))
        await world.answered()
        now = world.said[-1].at
        async with asyncio.timeout(20 * LEASE_S):
            receipts = await asyncio.gather(
                *(soul.server._forgetting.forget(f"rehearsal:t:p{n}", now, OWNER) for n, soul in enumerate(souls, 1))
            )
        left = asked(postgres_url)

    assert [one["left"] for one in receipts] == [[], []]
    assert left == []


async def test_scale_f16_a_wait_ends_where_the_request_was_withdrawn(postgres_url: str, tmp_path: Path) -> None:
    """An older release withdraws every earlier request with its own: whoever waited for that one says so, and ends."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        one = await world.worker(stack)
        await world.worker(stack, times=LeaseTimes(lease_s=60.0, renew_s=20.0, look_s=0.1))  # lets go late
        await world.offer(one, world.post(1, 0))
        await world.answered()
        erasing = asyncio.create_task(one.server._forgetting.forget("rehearsal:t:p1", world.said[-1].at, OWNER))
        await until(lambda: bool(asked(postgres_url)))
        with psycopg.connect(postgres_url, autocommit=True) as made:
            made.execute("DELETE FROM letting_go")
        with pytest.raises(TryAgain, match="withdrew"):
            await erasing


async def test_scale_f16_who_starts_meanwhile_hears_nobody_who_is_being_erased(
    postgres_url: str, tmp_path: Path
) -> None:
    """A process knows from its first message on whom another one is erasing, not only from its first renewal."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        await world.worker(stack)
        with psycopg.connect(postgres_url, autocommit=True) as made:
            made.execute(
                "INSERT INTO letting_go (ids, conversations, audiences) VALUES (%s, '[]', '[]')",
                [json.dumps(["rehearsal:t:p1"])],
            )
        other = await world.worker(stack, times=LeaseTimes())

        with pytest.raises(TryAgain):
            await world.offer(other, world.post(1, 0))


async def test_scale_f16_the_receipt_names_a_home_at_rest_on_the_same_machine(
    postgres_url: str, tmp_path: Path
) -> None:
    """No one can rewrite the log of a home whose process is stopped, wherever it is; each home is known by one row."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        one = await world.worker(stack)
        for _ in range(2):
            async with AsyncExitStack() as other:
                resting = (await world.worker(other)).home.root
            world.born -= 1  # the same home again
        await world.offer(one, world.post(1, 0))
        await world.answered()
        receipt = await one.server._forgetting.forget("rehearsal:t:p1", world.said[-1].at, OWNER)
        with psycopg.connect(postgres_url) as made:
            known = made.execute("SELECT home FROM worker ORDER BY home").fetchall()

    assert [line for line in receipt["not_ours"] if str(resting) in line]
    assert known == [(str(one.home.root),), (str(resting),)]


@dataclass(slots=True)
class Answering(RehearsalAdapter):
    """A network that answers a command to the one who said it."""

    answers: list[str] = field(default_factory=list)

    async def answer(self, perception: Perception, text: str) -> None:  # noqa: ARG002 - the protocol's signature
        """Keep the answer."""
        self.answers.append(text)


async def test_scale_forget_me_may_be_confirmed_at_another_process(postgres_url: str, tmp_path: Path) -> None:
    """Any process takes the yes to what another one has asked, once, and not without having been asked."""
    world, answers = World(postgres_url, tmp_path), list[str]()
    async with AsyncExitStack() as stack:
        souls = [await world.worker(stack, network=Answering(answers=answers)) for _ in range(2)]
        await world.offer(souls[0], world.post(1, 0))
        await world.answered()
        for n in (1, 2):
            await world.offer(souls[n % 2], replace(world.post(1, n), text="!forget me yes"))
            await until(lambda count=n: len(answers) == count)

    assert "If you mean it" in answers[0]
    assert answers[1].startswith("You are forgotten")
