"""What one worker hears another answers at once, by a notice; without notices it is answered at the next look."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from claudius.errors import StaleTurn
from claudius.memory.database import AS_STORE, StorePlace
from claudius.memory.leases import LeaseTimes
from claudius.perception import EditExtra, Kind, Perception
from claudius.providers.scripted import Line
from claudius.testing.alive import Alive
from contracts.store.ground import DM, LIMITS, NOW, heard, thought
from lab import postgres
from workers import World

if TYPE_CHECKING:
    import psycopg

RARELY = LeaseTimes(lease_s=900.0, renew_s=300.0, look_s=300.0)
"""A look comes too late for any of these tests: what is answered was answered because of a notice."""
SOON_S = 20.0


async def beside(url: str) -> psycopg.AsyncConnection:
    """Connect to the server beside the workers."""
    from psycopg import AsyncConnection  # noqa: PLC0415 - an extra

    return await AsyncConnection.connect(url, autocommit=True)


async def listening(world: World, count: int) -> None:
    """Wait until this many workers hear notices."""
    asked = """SELECT count(*) FROM pg_stat_activity
        WHERE query = 'LISTEN "claudius_' || current_schema()::regnamespace::oid || '"'"""
    async with await beside(world.url) as server, asyncio.timeout(SOON_S):
        while await (await server.execute(asked)).fetchone() != (count,):
            await asyncio.sleep(0.01)


async def pair(world: World, stack: AsyncExitStack, listen_url: str = AS_STORE) -> tuple[Alive, Alive]:
    """Start a worker that takes no lane, and one that takes them."""
    hears = await world.worker(stack, times=replace(RARELY, most=0), listen_url=listen_url)
    thinks = await world.worker(stack, times=RARELY, listen_url=listen_url)
    if listen_url:
        await listening(world, 2)
    return hears, thinks


async def test_scale_what_one_worker_hears_another_answers_at_once(postgres_url: str, tmp_path: Path) -> None:
    """A message that its hearer does not think about is answered long before the next look."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        hears, _ = await pair(world, stack)
        for n in range(3):
            await world.offer(hears, world.post(0, n))
        await world.answered(SOON_S)

    world.judge()


@pytest.mark.parametrize("kind", [Kind.EDIT, Kind.DELETE])
async def test_scale_a_turn_is_broken_off_wherever_it_is_thought(kind: Kind, postgres_url: str, tmp_path: Path) -> None:
    """An edit or a deletion that one worker hears ends the other's call, which would never have ended by itself."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        hears, _ = await pair(world, stack)
        voice = world.voices[1]
        voice.say(Line(hang=True))
        first = world.post(0, 0)
        await world.offer(hears, first)
        async with asyncio.timeout(SOON_S):
            while not voice.open:
                await asyncio.sleep(0.01)
        await world.offer(hears, change(first, kind))
        if kind is Kind.EDIT:
            world.said[0] = replace(first, text="new words")
        else:
            world.said.clear()
            await world.offer(hears, world.post(0, 1))
        await world.answered(SOON_S)

    world.judge()


def change(of: Perception, kind: Kind) -> Perception:
    """Return the edit of a message into other words, or its deletion."""
    return replace(
        of,
        key=f"{of.key}:{kind}",
        kind=kind,
        text="new words",
        owes=False,
        position="9" * 20,
        extra=EditExtra(of=of.key),
    )


async def test_scale_a_void_turn_is_refused_where_no_notice_arrives(postgres_url: str) -> None:
    """What a break-off saves is only time: the turn of words that were edited meanwhile is not committed."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    stores = [PostgresStore(StorePlace(postgres_url, listen_url=""), roles="lanes") for _ in range(2)]
    for n, store in enumerate(stores):
        await store.start(f"w{n}", NOW)
    hears, thinks = stores
    await hears.inbox.accept((heard(),), NOW)
    await thinks.leases.take((), 16)
    lane = thinks.leases.store_of(DM)
    pending = await lane.inbox.oldest(DM)
    assert pending
    lane.inbox.take(pending.seq, {}, NOW)
    known = await lane.turns.recall(pending, nonce="nonce", now=NOW, limits=LIMITS)
    amended = await hears.inbox.amend(change(heard(), Kind.EDIT), NOW)

    with pytest.raises(StaleTurn):
        await lane.turns.commit(thought(known, "To the old words."))
    again = await lane.inbox.oldest(DM)
    for store in stores:
        await store.close(clean=True)

    assert amended.interrupts == pending.turn
    assert again
    assert (again.perception.text, again.turn != pending.turn) == ("new words", True)


async def without_notices(world: World, stack: AsyncExitStack, *, look_s: float) -> tuple[Alive, Alive]:
    """Have two workers that hear no notices: the first only accepts messages, the other looks for lanes, and did once."""
    hears = await world.worker(stack, times=replace(RARELY, most=0), listen_url="")
    thinks = await world.worker(stack, times=replace(RARELY, look_s=look_s), listen_url="")
    await looked(thinks, 1)
    return hears, thinks


async def offered(world: World, hears: Alive) -> None:
    """Have one worker accept two messages."""
    for n in range(2):
        await world.offer(hears, world.post(0, n))


class ToldOnly(asyncio.Event):
    """What a worker that believes notices waits for: no part of its own wakes it, not even a clock that jumped."""

    def set(self) -> None:
        """Ignore it."""

    def tell(self) -> None:
        """Have it look."""
        super().set()


async def believing(soul: Alive) -> ToldOnly:
    """Have a worker look no more until it is told, which the event that is returned does."""
    assert soul.mind.store.leases
    lanes, told = soul.server._lanes, ToldOnly()
    before, lanes.looking = lanes.looking, told
    count = soul.mind.store.leases.tally.looks
    before.set()
    await looked(soul, count + 1)
    return told


async def looked(soul: Alive, count: int) -> None:
    """Wait until a worker has looked this many times since it began."""
    assert soul.mind.store.leases
    async with asyncio.timeout(SOON_S):
        while soul.mind.store.leases.tally.looks < count:
            await asyncio.sleep(0.01)


async def test_scale_without_notices_the_next_look_finds_it(postgres_url: str, tmp_path: Path) -> None:
    """Notices only shorten the look: where none arrives, a message waits for `look_s` at most."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        hears, _ = await without_notices(world, stack, look_s=0.1)
        await offered(world, hears)
        await world.answered(SOON_S)

    world.judge()


async def test_scale_a_worker_that_believes_notices_is_caught(postgres_url: str, tmp_path: Path) -> None:
    """The mutant `NOTIFY` believed does not look by itself: what the test above finds answered it leaves, until told."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        hears, mutant = await without_notices(world, stack, look_s=RARELY.look_s)
        told = await believing(mutant)
        await offered(world, hears)
        another = await world.worker(stack, times=replace(RARELY, look_s=0.05, most=0), listen_url="")
        await looked(another, 20)  # meanwhile whoever looks by itself has found it
        seen = list(world.visible)
        told.tell()
        await world.answered(SOON_S)

    assert seen == []
    world.judge()


async def test_scale_a_lost_connection_for_notices_is_made_anew(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends the listeners' connections; what was missed meanwhile is looked for, what follows is heard."""
    from claudius.memory.postgres import leases as notices  # noqa: PLC0415 - an extra

    monkeypatch.setattr(notices, "FIRST_S", 0.01)
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        hears, _ = await pair(world, stack)
        async with await beside(postgres_url) as server:
            await server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'", prepare=False
            )
        await world.offer(hears, world.post(0, 0))
        await world.answered(SOON_S)
        await listening(world, 2)
        await world.offer(hears, world.post(0, 1))
        await world.answered(SOON_S)

    world.judge()


async def test_scale_two_souls_of_one_database_do_not_hear_each_other(
    postgres_server: postgres.Server, postgres_url: str
) -> None:
    """A notice is of one schema; what is no notice of ours means no more than that it is time to look."""
    from claudius.memory.postgres import leases as notices  # noqa: PLC0415 - an extra

    told: dict[str, list[object]] = {"ours": [], "theirs": []}
    sending = "SELECT pg_notify('claudius_' || current_schema()::regnamespace::oid, %s)"
    with postgres.schema(postgres_server, "another_soul") as other:
        urls = {"ours": postgres_url, "theirs": other}
        ears = [
            asyncio.create_task(notices.listen(StorePlace(url), "w1", told[name].append)) for name, url in urls.items()
        ]
        async with asyncio.timeout(SOON_S):
            while not all(told.values()):
                await asyncio.sleep(0.01)
            async with await beside(postgres_url) as mouth:
                for text in (notices.notice("w1", {"own": ""}), "strange", notices.notice("w2", {DM: "t1"})):
                    await mouth.execute(sending, (text,))
            while len(told["ours"]) < 3:
                await asyncio.sleep(0.01)
        for ear in ears:
            ear.cancel()
        await asyncio.gather(*ears, return_exceptions=True)

    assert told == {"ours": [{}, {}, {DM: "t1"}], "theirs": [{}]}


def test_scale_a_notice_that_would_be_too_long_names_nothing() -> None:
    """The server refuses a notice of 8,000 bytes: then it only says that it is time to look."""
    from claudius.memory.postgres.leases import notice  # noqa: PLC0415 - an extra

    assert notice("w1", {DM: "t"}) == f'["w1",{{"{DM}":"t"}}]'
    assert notice("w1", {f"{DM}{n}": "" for n in range(1000)}) == '["w1",{}]'
