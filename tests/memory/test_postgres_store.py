"""The PostgreSQL store keeps the contract of every store, on a real server."""

from __future__ import annotations

import select
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from claudius.errors import StaleTurn, StoreError, StoreMoved
from claudius.home import shipped
from claudius.memory.opening import StorePlace
from claudius.memory.sql.connection import Database
from contracts.store import CASES, Case, Ground
from contracts.store.ground import NOW, heard


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_the_postgres_store_keeps_the_contract(case: Case, postgres_url: str) -> None:
    """Each numbered rule of `tests/contracts/store` holds."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - needs the extra `postgres`

    await case.run(Ground(lambda: PostgresStore(StorePlace(postgres_url))))


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


def _asks_what_fails(db: Database) -> None:
    db.connection.execute("SELECT 1/0 AS one").fetchone()


def _fails_unasked(db: Database) -> None:
    db.connection.execute("SELECT 1/0 AS one")


def _fails_after_an_answer(db: Database) -> None:
    db.connection.execute("SELECT 1 AS one").fetchone()
    db.connection.execute("SELECT 1/0 AS one")
    db.connection.execute("SELECT 1 AS one").fetchone()


def _is_told_at_once(db: Database) -> None:
    made: Any = db.connection
    if made._made._pipeline is None:  # each job is run by itself now
        raise StaleTurn
    made.execute("SELECT 1/0 AS one")
    select.select([made._made.fileno()], [], [])  # the server was quicker than this thread
    try:
        made._made.wait(made._made._pipeline._communicate_gen())  # as at the end of the next `execute`
    except made.Error as error:
        made.kept = error  # as a log does: the frames of whoever was under way live on
        raise


@pytest.mark.parametrize("fails", [_raises, _asks_what_fails, _fails_unasked, _fails_after_an_answer, _is_told_at_once])
async def test_a_job_that_fails_leaves_no_pipeline_open(fails: Callable[[Database], None], postgres_url: str) -> None:
    """Its transaction ends at once: a pipeline left open would be ended by the garbage collector, inside a statement.

    That statement's thread holds the connection's lock then, and would wait for itself for ever.
    """
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    store = PostgresStore(StorePlace(postgres_url))
    await store.open()
    try:
        for _ in range(3):
            with pytest.raises((StaleTurn, StoreError)):
                await store.core.write(fails)

        assert await store.core.alone(_is_at_rest)
    finally:
        await store.close(clean=True)


def _is_at_rest(db: Database) -> bool:
    made: Any = db.connection
    return not made.in_transaction and made._made.info.pipeline_status == 0
