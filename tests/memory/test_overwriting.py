"""PostgreSQL: what was deleted leaves the server's files; what somebody uses or may still read waits for another try."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from claudius.home import Home
from claudius.memory.database import StorePlace
from claudius.memory.erasure import OVERWRITING
from claudius.memory.postgres import erasure
from claudius.memory.postgres.store import PostgresStore
from claudius.providers.scripted import Scripted
from claudius.runtime.forgetting import Forgetting
from claudius.testing.alive import alive
from lab.postgres import Server


@pytest.fixture
async def store(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PostgresStore]:
    """Yield an open store that tries once."""
    monkeypatch.setattr(erasure, "WAITS_S", (0.0,))
    made = PostgresStore(StorePlace(postgres_url))
    await made.open()
    yield made
    await made.close(clean=True)


async def test_nothing_is_rewritten_that_nobody_asked_for(store: PostgresStore) -> None:
    """The job of each night finds nothing to do, and says so."""
    assert await store.erasure.overwrite() is None


@pytest.mark.parametrize(
    "holds", ["LOCK TABLE person IN ACCESS SHARE MODE", "SELECT 1"], ids=["a table that is read", "an old snapshot"]
)
async def test_what_somebody_still_reads_is_left_for_another_try(
    store: PostgresStore, postgres_url: str, holds: str
) -> None:
    """The work that is due stays on record until every table was rewritten without its deleted rows."""
    with psycopg.connect(postgres_url, autocommit=True) as made, psycopg.connect(postgres_url) as other:
        made.execute(
            "INSERT INTO person (person, name, is_bot, first_at, last_at) VALUES ('x:t:tom', 'Tom', 0, '', '')"
        )
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute(holds)
        other.execute("SELECT 1")
        made.execute("DELETE FROM person")
        await store.erasure.overwrite_later()
        left = await store.erasure.overwrite()
        other.rollback()
        again = await store.erasure.overwrite()
        after = await store.erasure.overwrite()

    assert left is not None
    assert "person" in left
    assert again == ()
    assert after is None


async def test_what_is_erased_while_tables_are_rewritten_is_overwritten_after_that(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An erasure that ends in the middle of the work is not taken for one that the work has covered."""
    begun, go_on, rewritten = asyncio.Event(), threading.Event(), erasure._rewritten
    loop = asyncio.get_running_loop()

    def slowly(*words: object) -> object:
        """Wait in the middle."""
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(60)
        return rewritten(*words)  # type: ignore[arg-type]  # as it was given

    await store.erasure.overwrite_later()
    monkeypatch.setattr(erasure, "_rewritten", slowly)
    working = asyncio.create_task(store.erasure.overwrite())
    await begun.wait()
    await store.erasure.overwrite_later()
    go_on.set()
    first, second, third = await working, await store.erasure.overwrite(), await store.erasure.overwrite()

    assert (first, second, third) == ((), (), None)


async def test_a_user_who_does_not_own_the_database_is_told_what_stays(
    postgres_server: Server, postgres_url: str
) -> None:
    """The server's statistics are the database owner's: the receipt names them, and all else is rewritten."""
    schema = postgres_url.rpartition("%3D")[2]
    with psycopg.connect(postgres_server.url, autocommit=True) as made:
        made.execute("CREATE ROLE tenant LOGIN")
        made.execute(f'ALTER SCHEMA "{schema}" OWNER TO tenant'.encode())
    store = PostgresStore(StorePlace(postgres_url.replace("claudius@", "tenant@")))
    await store.open()
    await store.erasure.overwrite_later()
    left, beyond = await store.erasure.overwrite(), await store.erasure.beyond()
    await store.close(clean=True)
    with psycopg.connect(postgres_server.url, autocommit=True) as made:
        made.execute("REASSIGN OWNED BY tenant TO CURRENT_USER")
        made.execute("DROP ROLE tenant")

    assert left == ()
    assert any("statistics" in one.kind for one in beyond)


async def test_the_receipt_names_the_hour_that_is_planned_though_the_job_came_meanwhile(
    store: PostgresStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quiet hour that begins during an erasure overwrites only half of it: the rest waits for the one that is named."""
    night = datetime(2099, 3, 2, 21, tzinfo=UTC)
    copy_anew = Forgetting._copy_anew

    async def meanwhile(self: Forgetting, *words: Any) -> Any:
        """Have the job of the night run, and be planned for the next one."""
        await store.erasure.overwrite()
        await store.plans.arm({OVERWRITING: night})
        return await copy_anew(self, *words)

    async with alive(home, Scripted(), store=store) as soul:
        await soul.network.hear("a heron nests in my attic", person="ana")
        await soul.idle()
        with monkeypatch.context() as patched:
            patched.setattr(Forgetting, "_copy_anew", meanwhile)
            patched.setattr(soul.server._forgetting, "_is_daemon", True)  # who is alone overwrites at once
            receipt = await soul.server._forgetting.forget("rehearsal:t:ana", soul.mind.clock(), "owner")
        planned = dict(store.plans.jobs())[OVERWRITING].next_due
        waits = await store.erasure.overwrite()

    assert planned < night
    assert receipt["later"] == planned.isoformat(timespec="seconds").replace("+00:00", "Z")
    assert waits is not None
