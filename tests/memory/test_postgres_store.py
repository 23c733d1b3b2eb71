"""The PostgreSQL store keeps every store's contract, and what one process kept to itself is a row that all read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from claudius.config.schema import ModelSettings
from claudius.errors import AuthFailed, StaleTurn, StoreError, StoreFull, StoreMoved
from claudius.home import shipped
from claudius.memory.database import Database, StorePlace
from claudius.memory.erasing import Probes
from claudius.memory.inbox import RateLimits
from claudius.memory.turns import SpendingCap
from claudius.perception import EditExtra, Kind, Perception
from claudius.provider import Done, Event, Request, Rests
from claudius.providers.chain import REST_S, Chain
from claudius.providers.scripted import Scripted
from contracts.store import CASES, Case, Ground
from contracts.store.ground import ANA, BEN, DM, NOW, OPS, call, heard
from failing import limited
from lab.postgres import Server, schema


@pytest.fixture(scope="module")
def made(postgres_server: Server) -> Iterator[tuple[str, str]]:
    """Return the URL of a schema with the tables of the store, and the statements that make it as new."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - needs the extra `postgres`

    with schema(postgres_server, "contract") as url:
        store = PostgresStore(StorePlace(url))
        asyncio.run(store.open())
        asyncio.run(store.close(clean=True))
        with psycopg.connect(url) as asked:
            tables = asked.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
            counted = asked.execute(
                "SELECT sequencename FROM pg_sequences WHERE schemaname = current_schema()"
            ).fetchall()
        emptied = [f"DELETE FROM {table}" for (table,) in tables if table != "release"]  # noqa: S608 - our own tables
        begun = [f"ALTER SEQUENCE {sequence} RESTART" for (sequence,) in counted]
        yield url, "; ".join(["SET session_replication_role = replica", *emptied, *begun])


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_the_postgres_store_keeps_the_contract(case: Case, made: tuple[str, str]) -> None:
    """Each numbered rule of `tests/contracts/store` holds."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - needs the extra `postgres`

    url, as_new = made
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(as_new.encode())
    await case.run(Ground(lambda: PostgresStore(StorePlace(url))))


async def test_scale_nothing_is_written_where_the_soul_has_left(postgres_url: str, tmp_path: Path) -> None:
    """A process that was cut off while the soul moved away hears, takes, commits and renews nothing there any more."""
    from claudius.memory.postgres.moving import to_sqlite  # noqa: PLC0415 - likewise
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - likewise

    place = StorePlace(postgres_url)
    store = PostgresStore(place)
    await store.start("one", NOW)
    with psycopg.connect(postgres_url, autocommit=True) as made:
        made.execute("UPDATE worker SET seen_at = clock_timestamp() - interval '61 s'")
    to_sqlite(place, tmp_path / "moved.db", shipped("memory"), lambda *_: None, is_kept=True)
    leases = store.leases
    assert leases
    for write in (
        lambda: store.inbox.accept((heard(),), NOW),
        lambda: leases.take(("slack",), 1),
        leases.renew,
        store.flush,
        lambda: store.close(clean=True),
    ):
        with pytest.raises(StoreMoved, match="has moved away"):
            await write()

    assert not store.core.is_open


def _raises(_: Database) -> None:
    raise StaleTurn


def _fails(db: Database) -> None:
    db.connection.execute("SELECT 1/0 AS one")


def _fails_unseen(db: Database) -> None:
    with suppress(psycopg.Error):
        db.connection.execute("SELECT 1/0 AS one")


@pytest.mark.parametrize("fails", [_raises, _fails, _fails_unseen])
async def test_a_job_that_fails_leaves_no_transaction_open(
    fails: Callable[[Database], None], postgres_url: str
) -> None:
    """A person who asked is told, even if the job has not seen it; the others of its batch are written."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    store = PostgresStore(StorePlace(postgres_url))
    await store.open()
    try:
        for n in range(3):
            done = await asyncio.gather(
                store.core.write(fails),
                store.core.write(lambda db, n=n: db.run("told_here", worker="w", problem=f"p{n}", grade=n)),
                return_exceptions=True,
            )
            assert isinstance(done[0], StaleTurn | StoreError)

        assert await store.core.alone(lambda db: not db.connection.in_transaction)
        told = await store.core.write(lambda db: db.all("told_elsewhere", worker="other"))
        assert [row["problem"] for row in told] == (["p0", "p1", "p2"] if fails is not _fails_unseen else [])
    finally:
        await store.close(clean=True)


async def test_scale_a_copy_without_room_is_a_full_disk(postgres_url: str, tmp_path: Path) -> None:
    """Whoever wants a copy is told that there is no room for it, and nothing that looks like one is left."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - needs the extra `postgres`

    store = PostgresStore(StorePlace(postgres_url))
    await store.open()
    with limited(8192), pytest.raises(StoreFull, match=str(tmp_path)):
        store.back_up(tmp_path, NOW)
    await store.close(clean=False)

    assert list(tmp_path.iterdir()) == []


if TYPE_CHECKING:
    from claudius.memory.postgres.store import PostgresStore


@asynccontextmanager
async def two(url: str, *, clean: bool = True) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    """Start the stores of two processes of one soul."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    stores = PostgresStore(StorePlace(url), roles="lanes"), PostgresStore(StorePlace(url), roles="lanes")
    for boot, store in zip(("one", "two"), stores, strict=True):
        await store.start(boot, NOW)
    try:
        yield stores
    finally:
        for store in stores:
            await store.close(clean=clean)


def edited(text: str, n: int) -> Perception:
    """Return an edit of the first message."""
    extra = EditExtra(of=heard().key)
    return heard(text, n=n, key=f"edit {n}", kind=Kind.EDIT, owes=False, extra=extra)


async def test_scale_w7_what_waits_for_its_message_is_erased_with_its_speaker(postgres_url: str) -> None:
    """An early edit holds a person's words, and a rate their id: an erasure finds both, and leaves neither."""
    words = "The heron is in the third reed bed."
    probes = Probes(ids=(ANA,), folders=(), excerpts=(words,))
    limits = RateLimits(person_per_minute=3, person_per_day=9, conversation_per_hour=9)
    async with two(postgres_url) as (one, other):
        await one.inbox.accept((heard(n=7),), NOW, limits)
        await other.inbox.amend(edited(words, 60), NOW)
        before = {row["table"] for row in await one.erasure.rows_with(probes)}
        await one.erasure.erase((ANA,))
        after = {row["table"] for row in await one.erasure.rows_with(probes)}

    assert {"early", "rate"} <= before
    assert not after & {"early", "rate"}


class Refused:
    """A provider whose account is shut."""

    name, model, asked = "shut", "m", 0

    async def complete(self, request: Request) -> AsyncIterator[Event]:  # noqa: ARG002 - signature of every provider
        """Refuse."""
        self.asked += 1
        raise AuthFailed("the key was refused", fix="mend it")
        yield

    async def aclose(self) -> None:
        """Do nothing: it holds nothing."""


async def test_scale_w6_a_refused_account_rests_for_every_process(postgres_url: str) -> None:
    """A process whose account is refused tells the others: from their next turn on they ask the next provider."""
    request = Request(system="s", history=(), tail="t", max_tokens=9)
    refused, others = Refused(), [Scripted(["one"]), Scripted(["two", "three"])]
    async with two(postgres_url) as stores:
        chains = []
        for store, voice in zip(stores, others, strict=True):
            rests = Rests()
            store.leases.share(rests)
            chains.append(Chain([refused, voice], ModelSettings(retries=0), rests=rests, mark="settings"))
        with pytest.raises(AuthFailed):
            [event async for event in chains[0].complete(request)]
        await stores[0].flush()
        assert stores[1].leases
        stores[1].leases.news()
        said = [event async for event in chains[1].complete(request)]
        (resting,) = chains[1].state().resting
        asked_anew = Chain([refused, others[1]], ModelSettings(retries=0), rests=rests, mark="a mended key")
        with pytest.raises(AuthFailed):
            [event async for event in asked_anew.complete(request)]

    assert isinstance(said[-1], Done)
    assert said[-1].text == "two"
    assert (resting.name, resting.why) == ("shut", "the key was refused")
    assert 0 < resting.left_s <= REST_S
    assert refused.asked == 2


async def test_scale_w6_what_is_under_way_counts_as_spent_until_it_is_known(postgres_url: str) -> None:
    """A call is booked as dear as the dearest of late, then counts what it cost; one of a lost lane counts nothing."""
    import psycopg  # noqa: PLC0415 - an extra

    cap = SpendingCap(limit_usd=0.7, since=NOW - timedelta(hours=1))
    async with two(postgres_url) as (one, other):
        one.turns.book("seed", call(cost_usd=0.4), NOW)
        await one.inbox.accept((heard(), heard(at=OPS, person=BEN)), NOW)
        assert await one.leases.take((), 1) == [DM]
        assert await other.leases.take((), 1) == [OPS]
        first, second = one.leases.store_of(DM).turns, other.leases.store_of(OPS).turns
        may = [await first.reserve(DM, ANA, (cap,)), await second.reserve(OPS, BEN, (cap,))]
        spent = [second.spent_since(cap.since), second.spent_since(cap.since, person=BEN)]
        pending = await one.inbox.oldest(DM)
        assert pending
        first.keep_call(pending.turn, call(cost_usd=0.1))
        await one.flush()
        spent.append(second.spent_since(cap.since))
        may.append(await second.reserve(OPS, BEN, (cap,)))
        spent.append(first.spent_since(cap.since, channel="slack:T1:ops"))
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute("UPDATE lane SET lease_until = clock_timestamp() - interval '1 s'")
        spent.append(first.spent_since(cap.since))

    assert may == [True, False, True]
    assert spent == pytest.approx([0.8, 0.0, 0.5, 0.4, 0.5])


async def test_scale_what_waited_for_a_history_is_not_forgotten(postgres_url: str) -> None:
    """The history has been read between a lane's last look, which was shown nothing, and its release: it is taken again."""
    network = DM.partition(":")[0]
    async with two(postgres_url) as (one, other):
        await one.inbox.accept((heard(),), NOW)
        taken = await one.leases.take((network,), 16)
        await other.leases.hold_back((network,))
        mark = await one.leases.heard(DM)
        shown = await one.inbox.oldest(DM)
        await other.leases.hold_back((), read=(network,))
        is_released = await one.leases.release(DM, mark)
        again = await other.leases.take((network,), 16)

    assert (taken, shown, is_released, again) == ([DM], None, True, [DM])
