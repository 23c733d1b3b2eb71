"""The PostgreSQL store keeps the contract of every store, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from claudius.errors import StaleTurn, StoreError, StoreFull, StoreMoved
from claudius.home import shipped
from claudius.memory.database import Database, StorePlace
from contracts.store import CASES, Case, Ground
from contracts.store.ground import NOW, heard
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
